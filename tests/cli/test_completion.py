"""What the command offers a shell that completes a line."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest


def completed(line: str, shell: str) -> list[str]:
    """The words that the line's last one may become; the environment is as the shells set it."""
    words = line.split(" ")
    variables = {"_QUICGYM_COMPLETE": f"complete_{shell}"}
    if shell == "bash":
        variables |= {"COMP_WORDS": "\n".join(words), "COMP_CWORD": str(len(words) - 1)}
    else:
        variables |= {"_TYPER_COMPLETE_ARGS": line, "_TYPER_COMPLETE_FISH_ACTION": "get-args"}
    command = [sys.executable, "-c", "from quicgym.cli import main; main()"]
    run = subprocess.run(command, env=os.environ | variables, capture_output=True, text=True)
    return run.stdout.split()


@pytest.mark.parametrize(
    ("shell", "line", "words"),
    [
        ("bash", "quicgym eva", ["evaluate"]),
        ("bash", "quicgym evaluate --suite heldout --policy cubic wi", ["window"]),
        ("fish", "quicgym evaluate --suite heldout pap", ["papers"]),
        ("bash", "quicgym show policies low", ["low-delay"]),
    ],
)
def test_a_shell_completes_commands_and_names(shell: str, line: str, words: list[str]) -> None:
    assert completed(line, shell) == words
