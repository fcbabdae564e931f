"""Commands start in a process of their own, as users start them; others call their functions."""

from __future__ import annotations

from pathlib import Path

import pytest
import typer
from conftest import Command
from helpers.commands import run_process

from quicgym.cli import app

COMMANDS = sorted(typer.main.get_command(app).commands)  # type: ignore[attr-defined]
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


@pytest.mark.parametrize("name", COMMANDS)
def test_a_wrong_option_is_named(name: str, quicgym: Command, tmp_path: Path) -> None:
    done = quicgym(name, "--nonsense", status=2)
    assert done.stdout == "" and "--nonsense" in done.stderr
    assert list(tmp_path.iterdir()) == []
