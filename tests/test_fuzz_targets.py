"""tests/fuzz: each target passes the inputs that fuzzing starts from."""

from __future__ import annotations

import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

FUZZ = Path(__file__).parent / "fuzz"
PYTHON = sorted(path.stem for path in (FUZZ / "python").glob("*.py"))
CORPUS = sorted(path.name for path in (FUZZ / "corpus").iterdir())


@pytest.fixture
def python_targets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(FUZZ / "python"))


@pytest.mark.parametrize("name", PYTHON)
def test_a_target_of_python_passes_its_corpus(name: str, python_targets: None) -> None:
    check = import_module(name).check
    for file in sorted((FUZZ / "corpus" / name).iterdir()):
        check(file.read_bytes())
        check(file.read_bytes()[:-3])
    check(b"")


@pytest.mark.long  # compiles the endpoints and controllers once more
def test_the_targets_of_cpp_pass_their_corpus() -> None:
    cmake = shutil.which("cmake") or str(Path(sys.executable).parent / "cmake")
    build = FUZZ.parents[1] / "build/fuzz-replay"
    for command in ((cmake, "-S", FUZZ, "-B", build), (cmake, "--build", build)):
        subprocess.run([*map(str, command)], check=True, capture_output=True)
    cpp = set(CORPUS) - set(PYTHON)
    assert cpp == {path.stem for path in FUZZ.glob("*.cpp")} - {"replay"}
    for name in sorted(cpp):
        folder = FUZZ / "corpus" / name
        done = subprocess.run([build / name, folder], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-2000:]
        assert f"{len(list(folder.iterdir()))} files" in done.stdout
