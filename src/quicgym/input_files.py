"""Files that a user names: regular ones of a bounded size, and JSON in them."""

from __future__ import annotations

import errno
import json
import os
import stat
from io import BufferedReader
from pathlib import Path
from typing import Any

MOST_YAML_BYTES = 2**22
MOST_JSON_BYTES = 2**26
MOST_DESCRIPTION_BYTES = 2**20
MOST_TRACE_BYTES = 2**28
"""For 20 million packets, each with its line."""
MOST_WEIGHTS_BYTES = 2**27
MOST_CHECKPOINT_BYTES = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
"""All of this machine's memory, because a training can resume from whatever it has written."""
MOST_RUNS_BYTES = 2**32
MOST_TABLE_BYTES = 2**32


def open_input(path: Path, most_bytes: int) -> BufferedReader:
    """Opens a file for reading, without waiting for a writer and without reading a device.

    `strerror` of OSError says why not: the file cannot be read, is no regular file (but a device, a
    pipe, a folder), or is larger than `most_bytes`.
    """
    file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        status = os.fstat(file)
        if stat.S_ISDIR(status.st_mode):
            raise OSError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "Is a pipe or a device, not a regular file", str(path))
        if status.st_size > most_bytes:
            text = f"Has {status.st_size} bytes, more than the {most_bytes} that are read"
            raise OSError(errno.EFBIG, text, str(path))
        return os.fdopen(file, "rb")
    except BaseException:
        os.close(file)
        raise


def read_input(path: Path, most_bytes: int) -> bytes:
    """Reads a file as `open_input` opens it."""
    with open_input(path, most_bytes) as file:
        # One that grows meanwhile is cut; so is one of /proc, which has no size.
        return file.read(most_bytes)


def read_input_json(path: Path, most_bytes: int = MOST_JSON_BYTES) -> Any:
    """Reads a JSON file of anybody's making; OSError as `open_input`.

    ValueError where the file is not JSON: text that is not UTF-8, nesting that is too deep, and
    numbers of thousands of digits are included.
    """
    data = read_input(path, most_bytes)
    try:
        return json.loads(data)
    except RecursionError:
        raise ValueError("lists or objects are nested too deeply") from None
