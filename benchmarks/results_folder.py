"""The folder that results go to: what an earlier run left there is never lost."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from pathlib import Path

from quicgym.console import say


def prepare(directory: Path, names: Iterable[str], *, resume: bool) -> None:
    """Makes the folder; moves an earlier run's results into previous-<time>/ unless resumed.

    Args:
        directory: The folder.
        names: What results are called in it; other files stay where they are.
        resume: Leave everything, because this run goes on with it.

    Raises:
        OSError: The folder cannot be written to.
    """
    directory.mkdir(parents=True, exist_ok=True)
    there = [directory / name for name in names if (directory / name).exists()]
    if resume or not there:
        return
    previous = directory / datetime.now().strftime("previous-%Y%m%d-%H%M%S-%f")
    previous.mkdir()
    for path in there:
        path.rename(previous / path.name)
    say(f"earlier results are now in {previous}")
