"""Commands start in a process of their own, as users start them; others call their functions."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import Command
from helpers.commands import command, run_process
from helpers.inputs import write_inputs

from quicgym.cli import group

COMMANDS = sorted(group().commands)
STARTS = {
    "--version": "Python 3.",
    "parity --chain --networks 1 --discipline drop-tail": "1 of 1 equal to the nanosecond",
    "show controllers": "gamma",
}
"""Command lines and what they print. Tests of the other commands start processes, too."""


@pytest.mark.parametrize(
    "arguments",
    [pytest.param(line, marks=[pytest.mark.ns3] * line.startswith("parity")) for line in STARTS],
)
def test_a_command_starts(arguments: str, tmp_path: Path) -> None:
    assert STARTS[arguments] in run_process(tmp_path, *arguments.split()).stdout


RUN = "baselines --scenario ./path.yaml --controller newreno --seeds 1 --engine native --jobs 1"


@pytest.fixture
def in_folder(tmp_path: Path) -> Path:
    """A folder with the scenario of RUN."""
    return write_inputs(tmp_path)


def test_a_command_runs_without_the_streams_that_a_shell_has_closed(in_folder: Path) -> None:
    line = " ".join([*command(*RUN.split(), "--out", "out"), "0>&-", "1>&-", "2>&-"])
    done = subprocess.run(line, shell=True, cwd=in_folder, stdin=subprocess.DEVNULL)
    assert done.returncode == 0
    assert (in_folder / "out/results.parquet").is_file()


def test_a_stream_without_a_minus_sign_gets_a_hyphen(in_folder: Path) -> None:
    say = "print('−1 ≤ 2 ⊕')"
    code = f"from quicgym import cli; cli.group = lambda: lambda *_, **__: {say}; cli.main()"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        text=True,
    )
    assert done.stdout == "-1 <= 2 ?\n", done.stderr


@pytest.mark.parametrize("package", ["gymnasium", "typer"])
def test_ctrl_c_while_quicgym_is_imported_ends_without_a_traceback(
    package: str, tmp_path: Path
) -> None:
    # Stands in for a package that quicgym or its commands import.
    interrupt = "import os, signal, time; os.kill(os.getpid(), signal.SIGINT); time.sleep(60)"
    (tmp_path / f"{package}.py").write_text(interrupt)
    done = subprocess.run(
        [sys.executable, "-m", "quicgym_start"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        # Whoever runs the tests may ignore it.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert (done.returncode, done.stderr) == (-signal.SIGINT, "")


@pytest.mark.parametrize("name", COMMANDS)
def test_a_wrong_option_is_named(name: str, quicgym: Command, tmp_path: Path) -> None:
    done = quicgym(name, "--nonsense", status=2)
    assert done.stdout == "" and "--nonsense" in done.stderr
    assert list(tmp_path.iterdir()) == []
