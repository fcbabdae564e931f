"""Every command that writes into a folder refuses one that another process writes into.

It also refuses to resume one that does not exist.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from conftest import Command

from quicgym.benchmarks import reports
from quicgym.cli import main
from quicgym.jobs import LocalProcesses

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


BASELINE = "- {name: CUBIC, policy: cubic, kind: baseline}\n"
LEADERBOARD = "leaderboard --suite papers --policies policies.yaml --engine native --results"
COMMANDS = [
    ("baselines --scenario ebcc-single --seeds 1 --out", main),
    ("evaluate --policy cubic --suite ebcc-single --seeds 1 --out", main),
    pytest.param("train tuning-ppo --out", main, marks=pytest.mark.train),
    pytest.param("sweep ebcc-gamma-beta --out", main, marks=pytest.mark.train),
    (LEADERBOARD, reports.main),
]


@pytest.mark.parametrize(("arguments", "program"), COMMANDS)
def test_a_command_refuses_a_folder_in_use(
    arguments: str, program: Callable[[], None], folder: Path, quicgym: Command, tmp_path: Path
) -> None:
    (tmp_path / "policies.yaml").write_text(BASELINE)
    option = arguments.split()[-1]
    done = quicgym(*arguments.split(), folder, status=2, main=program)
    error = done.stderr.splitlines()[-1]
    assert error.startswith(f"quicgym: {folder}: another quicgym command is writing there (process")
    assert error.endswith(f"wait until it has ended, or give another folder with {option}")
    assert (folder / "runs.jsonl").read_text() == "of the first\n"
    assert (folder / "trials.parquet").read_text() == "of the first"


RESUMED = [
    "evaluate",
    "baselines",
    "baselines --scenario ebcc-single",
    "papers",
    "checklist cubic",
    "league ccbench --policies cubic vegas",
    "coexist cubic",
    *(
        pytest.param(command, marks=pytest.mark.train)
        for command in ("attack cubic", "sweep ebcc-gamma-beta", "train tuning-ppo")
    ),
]


@pytest.mark.parametrize("arguments", RESUMED)
def test_a_folder_that_does_not_exist_is_not_resumed(
    arguments: str, quicgym: Command, tmp_path: Path
) -> None:
    done = quicgym(*arguments.split(), "--resume", "--out", "nothere", status=2)
    error = done.stderr.splitlines()[-1]
    assert "nothere: does not exist" in error and "--resume" in error
    assert not (tmp_path / "nothere").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param("attacks --policy cubic --trials 1", marks=pytest.mark.train),
        "leaderboard --suite papers --engine native --seeds 2",
        "checklists --seeds 2",
        "coexistence --policy window --seeds 1",
        "leagues",
    ],
)
def test_the_reports_resume_what_is_there_and_begin_the_rest(
    arguments: str, quicgym: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(LocalProcesses, "run", interrupt)
    done = quicgym(*arguments.split(), "--resume", status=130, main=reports.main)
    assert "interrupted" in done.stderr and "--resume --resume" not in done.stderr
