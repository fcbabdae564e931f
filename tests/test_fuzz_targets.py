"""tests/fuzz: each target passes the inputs that fuzzing starts from."""

from __future__ import annotations

import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from quicgym.envs import ScenarioError, load_scenario

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


def test_a_target_that_lets_an_error_through_fails(
    python_targets: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = import_module("traces")
    monkeypatch.setattr(target.traces, "read_mahimahi", lambda path: [3, 2])
    with pytest.raises(AssertionError):
        target.check(b"3\n2\n")


def test_a_changed_yaml_file_is_another_that_its_reader_understands(
    python_targets: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.syspath_prepend(str(FUZZ))
    mutate = import_module("yaml_mutator").mutate
    data = (FUZZ / "corpus/yaml_files/scenario").read_bytes()
    changed = [mutate(data, 4096, seed, lambda data, max_size: data) for seed in range(60)]
    assert changed == [mutate(data, 4096, seed, lambda data, max_size: data) for seed in range(60)]
    assert all(len(file) <= 4096 and file[0] == data[0] for file in changed)
    valid = 0
    for file in {*changed} - {data}:
        (tmp_path / "changed.yaml").write_bytes(file[1:])
        try:
            load_scenario(tmp_path / "changed.yaml")
            valid += 1
        except ScenarioError as error:
            assert "YAML" not in str(error)
    assert 5 < valid < 50


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
