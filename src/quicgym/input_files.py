"""Files that others may have made: regular ones of a bounded size, and JSON in them."""

from __future__ import annotations

import errno
import json
import os
import stat
from pathlib import Path
from typing import Any

MOST_JSON_BYTES = 2**26
MOST_DESCRIPTION_BYTES = 2**20
MOST_WEIGHTS_BYTES = 2**27


def read_input(path: Path, most_bytes: int) -> bytes:
    """Reads a file, without waiting for a writer and without reading a device.

    `strerror` of OSError says why not: the file cannot be read, is no regular file (but a device, a
    pipe, a folder), or is larger than `most_bytes`.
    """
    with open(path, "rb", opener=lambda *how: os.open(how[0], how[1] | os.O_NONBLOCK)) as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "Is a pipe or a device, not a regular file", str(path))
        if status.st_size > most_bytes:
            text = f"Has {status.st_size} bytes, more than the {most_bytes} that are read"
            raise OSError(errno.EFBIG, text, str(path))
        return file.read(most_bytes)


def read_input_json(path: Path, most_bytes: int = MOST_JSON_BYTES) -> Any:
    """Reads a JSON file; OSError as `read_input`.

    ValueError where the file is not JSON: text that is not UTF-8, nesting that is too deep, and
    numbers of thousands of digits are included.
    """
    data = read_input(path, most_bytes)
    try:
        return json.loads(data)
    except RecursionError:
        raise ValueError("lists or objects are nested too deeply") from None
