"""Every command that writes into a folder refuses one that another process writes into."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from quicgym.benchmarks import leaderboard
from quicgym.cli import main

HOLDER = """
import sys
from pathlib import Path
from quicgym.output_folders import locked

with locked(Path(sys.argv[1])):
    print("locked", flush=True)
    sys.stdin.read()
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder that a process writes into, with results of its own."""
    path = tmp_path_factory.mktemp("in use") / "out"
    command = [sys.executable, "-c", HOLDER, str(path)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "locked\n"
        (path / "runs.jsonl").write_text("of the first\n")
        (path / "trials.parquet").write_text("of the first")
        yield path
        process.kill()


@pytest.mark.parametrize(
    ("command", "package"),
    [
        ("baselines --scenario ebcc-single --seeds 1", None),
        ("papers --paper ebcc --seeds 1 --without-ns3", None),
        ("evaluate --policy cubic --suite ebcc-single --seeds 1", None),
        ("train ppo", "stable_baselines3"),
        ("sweep ebcc-gamma-beta", "ray"),
        ("search ppo-asha", "ray"),
    ],
)
def test_a_command_refuses_a_folder_in_use(
    command: str,
    package: str | None,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    if package is not None:
        pytest.importorskip(package)
    monkeypatch.setattr(sys, "argv", ["quicgym", *command.split(), "--out", str(folder)])
    check_refusal(main, folder, "--out", capsys)


def test_the_leaderboard_refuses_a_folder_in_use(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    policies = tmp_path / "policies.yaml"
    policies.write_text("- {name: CUBIC, policy: cubic, kind: baseline}\n")
    arguments = ["--results", str(folder), "--policies", str(policies), "--engine", "native"]
    monkeypatch.setattr(sys, "argv", ["leaderboard", *arguments])
    check_refusal(leaderboard.main, folder, "--results", capsys)


def check_refusal(main, folder: Path, option: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main()
    error = capsys.readouterr().err.splitlines()[-1]
    assert ended.value.code == 2
    assert error.startswith(f"quicgym: {folder}: another quicgym command is writing there (process")
    assert error.endswith(f"wait until it has ended, or give another folder with {option}")
    assert (folder / "runs.jsonl").read_text() == "of the first\n"
    assert (folder / "trials.parquet").read_text() == "of the first"
