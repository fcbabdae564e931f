"""Processes that are told apart by a word in their environment, which their children inherit."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path


def marked(mark: str) -> list[int]:
    """Returns this machine's other processes that have `mark`, NAME=VALUE, in their environment."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and int(folder.name) != os.getpid():
            with suppress(OSError):
                if mark.encode() in (folder / "environ").read_bytes().split(b"\0"):
                    found.append(int(folder.name))
    return found


def left_after(mark: str, seconds: float) -> list[int]:
    """Waits until no process has the mark; returns those that have it all the same."""
    deadline = time.monotonic() + seconds
    while (left := marked(mark)) and time.monotonic() < deadline:
        time.sleep(0.05)
    return left


def only_child(process: int) -> int | None:
    """Returns the one child of a process; None without any."""
    children = [
        int(child)
        for task in Path(f"/proc/{process}/task").iterdir()
        for child in (task / "children").read_text().split()
    ]
    return children[0] if len(children) == 1 else None
