"""Files that are there as a whole, or as they were before."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path


def write_whole(writers: Mapping[Path, Callable[[Path], object]]) -> None:
    """Writes files beside their places, and renames them when all are on the disk.

    Args:
        writers: Write what is to be at a path to the one that they are given.

    Raises:
        OSError: One cannot be written; all are as they were.
    """
    beside = {path: path.with_name(path.name + ".new") for path in writers}
    try:
        for path, write in writers.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            write(beside[path])
            with beside[path].open("rb") as file:
                os.fsync(file.fileno())
        for path, new in beside.items():
            new.replace(path)
    except OSError:
        for new in beside.values():
            new.unlink(missing_ok=True)
        raise
