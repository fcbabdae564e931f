"""tests/fuzz: each target passes the inputs that fuzzing starts from."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from fuzz.make_corpus import make_corpus, write_corpus

FUZZ = Path(__file__).parent / "fuzz"


@pytest.fixture(scope="module")
def corpus() -> dict[str, dict[str, bytes]]:
    return make_corpus()


def test_the_corpus_has_every_frame_that_an_endpoint_sends(
    corpus: dict[str, dict[str, bytes]],
) -> None:
    frames = {part for name in corpus["frames"] for part in name.split("-")}
    assert frames >= {
        *("ack", "connection_close", "crypto", "data_blocked"),
        *("handshake_done", "max_data", "max_stream_data", "stream"),
    }


@pytest.mark.long  # compiles the endpoints and controllers once more
def test_the_targets_pass_their_corpus(corpus: dict[str, dict[str, bytes]], tmp_path: Path) -> None:
    cmake = shutil.which("cmake") or str(Path(sys.executable).parent / "cmake")
    build = FUZZ.parents[1] / "build/fuzz-replay"
    for command in ((cmake, "-S", FUZZ, "-B", build), (cmake, "--build", build)):
        subprocess.run([*map(str, command)], check=True, capture_output=True)
    write_corpus(tmp_path)
    assert corpus.keys() == {path.stem for path in FUZZ.glob("*.cpp")} - {"replay"}
    for name in sorted(corpus):
        done = subprocess.run([build / name, tmp_path / name], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-2000:]
        assert f"{len(corpus[name])} files" in done.stdout
