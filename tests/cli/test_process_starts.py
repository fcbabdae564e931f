"""Commands start in a process of their own, as users start them; others call their functions."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import Command
from helpers.commands import run_process

from quicgym.cli import group

COMMANDS = sorted(group().commands)
STARTS = {
    "--version": "Python 3.",
    "controllers": "gamma",
    "parity --chain --networks 1 --discipline drop-tail": "1 of 1 equal to the nanosecond",
    "scenarios": "ebcc-bandwidth-17.5",
    "trace link.trace --duration-s 1": "",
}
"""Command lines and what they print. Tests of the other commands start processes, too."""


@pytest.mark.parametrize(
    "arguments",
    [pytest.param(line, marks=[pytest.mark.ns3] * line.startswith("parity")) for line in STARTS],
)
def test_a_command_starts(arguments: str, tmp_path: Path) -> None:
    assert STARTS[arguments] in run_process(tmp_path, *arguments.split()).stdout


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
