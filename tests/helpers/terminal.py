"""Commands in a terminal: what is printed there, and what is left of it."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import termios
from collections.abc import Sequence
from pathlib import Path

_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def in_terminal(command: Sequence[str], folder: Path, width: int = 120) -> tuple[int, list[str]]:
    """Runs a command in a terminal.

    Args:
        command: The program and its arguments.
        folder: Where it runs.
        width: Of the terminal, in characters.

    Returns:
        The exit status, and all lines, without escape sequences; a bar that was drawn again is
        there as often as it was drawn.
    """
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, width, 0, 0))
    left_out = ("COLUMNS", "LINES", "NO_COLOR")
    environment = {name: value for name, value in os.environ.items() if name not in left_out}
    process = subprocess.Popen(
        command,
        cwd=folder,
        env={**environment, "TERM": "xterm"},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    output = b""
    while True:
        try:
            read = os.read(ours, 1 << 16)
        except OSError:  # nobody has the other end any more
            break
        if not read:
            break
        output += read
    os.close(ours)
    lines = re.split(r"[\r\n]+", _ESCAPES.sub("", output.decode()))
    return process.wait(), [line.rstrip() for line in lines if line.strip()]
