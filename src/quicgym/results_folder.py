"""The folder that results go to: what an earlier run left there is never lost."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path

from quicgym.console import say

RUN_FILE = "run.json"
"""What a training has in its folder, and nothing else has."""


def prepare(directory: Path, names: Iterable[str], *, resume: bool) -> bool:
    """Makes the folder; moves an earlier run's results into previous-<time>/ unless resumed.

    Args:
        directory: The folder.
        names: What results are called in it; other files stay where they are.
        resume: Leave everything, because this run goes on with it.

    Returns:
        False where the folder cannot be used; the user has been told then.
    """
    if (directory / RUN_FILE).exists():
        say(f"quicgym: {directory}: holds a run of `quicgym train`; give another folder with --out")
        return False
    try:
        _move_aside(directory, names, resume)
    except OSError as error:
        say(
            f"quicgym: {directory}: cannot be written to ({error.strerror}); "
            "give another folder with --out"
        )
        return False
    return True


def _move_aside(directory: Path, names: Iterable[str], resume: bool) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    tempfile.TemporaryFile(dir=directory).close()  # it may be there and not be writable
    there = [directory / name for name in names if (directory / name).exists()]
    if resume or not there:
        return
    previous = directory / datetime.now().strftime("previous-%Y%m%d-%H%M%S-%f")
    previous.mkdir()
    for path in there:
        path.rename(previous / path.name)
    say(f"earlier results are now in {previous}")
