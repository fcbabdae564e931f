"""tests/fuzz: each target passes the inputs that fuzzing starts from."""

from __future__ import annotations

import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
from fuzz.make_corpus import make_corpus, write_corpus

FUZZ = Path(__file__).parent / "fuzz"
PYTHON = sorted(path.stem for path in (FUZZ / "python").glob("*.py"))


@pytest.fixture(scope="module")
def corpus() -> dict[str, dict[str, bytes]]:
    return make_corpus()


@pytest.fixture
def python_targets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(FUZZ / "python"))


@pytest.mark.parametrize("name", PYTHON)
def test_a_target_of_python_passes_its_corpus(
    name: str, corpus: dict[str, dict[str, bytes]], python_targets: None
) -> None:
    check = import_module(name).check
    for data in corpus[name].values():
        check(data)
        check(data[:-3])
    check(b"")


def test_the_corpus_has_every_frame_that_an_endpoint_sends(
    corpus: dict[str, dict[str, bytes]],
) -> None:
    frames = {part for name in corpus["frames"] for part in name.split("-")}
    assert frames >= {
        *("ack", "connection_close", "crypto", "data_blocked"),
        *("handshake_done", "max_data", "max_stream_data", "stream"),
    }


@pytest.mark.long  # compiles the endpoints and controllers once more
def test_the_targets_of_cpp_pass_their_corpus(
    corpus: dict[str, dict[str, bytes]], tmp_path: Path
) -> None:
    cmake = shutil.which("cmake") or str(Path(sys.executable).parent / "cmake")
    build = FUZZ.parents[1] / "build/fuzz-replay"
    for command in ((cmake, "-S", FUZZ, "-B", build), (cmake, "--build", build)):
        subprocess.run([*map(str, command)], check=True, capture_output=True)
    write_corpus(tmp_path)
    cpp = corpus.keys() - set(PYTHON)
    assert cpp == {path.stem for path in FUZZ.glob("*.cpp")} - {"replay"}
    for name in sorted(cpp):
        done = subprocess.run([build / name, tmp_path / name], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-2000:]
        assert f"{len(corpus[name])} files" in done.stdout
