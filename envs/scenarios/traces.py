"""Mahimahi traces, the moments at which a packet may go: drawn, or read from files."""

from __future__ import annotations

import os
import re
from array import array
from dataclasses import replace
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import TextIO

from quicgym.envs.scenarios.cellular_trace import MODELS, cellular_trace
from quicgym.validation import problem

TRACES = "QUICGYM_TRACES"
"""Environment variable with the user's folder of traces."""
_DRAWN = re.compile(
    r"(?P<model>\w+):mean_mbps=(?P<mean_mbps>\d{1,6}(\.\d{1,6})?),"
    r"duration_s=(?P<duration_s>\d{1,4}),seed=(?P<seed>\d{1,18})"
)
"""A trace that is drawn: its text says from which model, how fast, how long and with which seed."""


def is_drawn(trace: Path) -> bool:
    """Returns whether a trace is drawn from a model, as `lte:mean_mbps=6,duration_s=60,seed=0`."""
    model, colon, _ = str(trace).partition(":")
    return bool(colon) and model in MODELS


def find_trace(trace: Path, folder: Path) -> Path:
    """Returns where the trace is that a file names: in its own folder, or in the user's traces.

    A drawn trace is nowhere, and is returned as it is.

    Args:
        trace: Path of the trace, or its name in the folder of QUICGYM_TRACES.
        folder: Folder of the file.

    Raises:
        PydanticCustomError: QUICGYM_TRACES is no folder.
    """
    if is_drawn(trace):
        return trace
    path = (folder / trace).absolute()
    given = os.environ.get(TRACES)
    if not given or trace.is_absolute() or path.exists():
        return path
    root = Path(given).absolute()
    if not root.is_dir():
        raise problem(
            "", str(trace), f"{TRACES} = {given!r} is no folder",
            "set it to a folder of traces",
        )  # fmt: skip
    return root / trace


def read_mahimahi(path: Path) -> list[int]:
    """Reads a mahimahi trace: the times in ms at which one packet may go, in ascending order.

    A time may repeat; its packets then leave in the same millisecond. Blank lines and lines that
    begin with # are skipped, as is a byte order mark, and any line ends will do. A trace is drawn,
    or its file parsed, again only where it has changed: the episodes of an evaluation ask for the
    same few traces many times. Raises a validation error that names the file where it is missing,
    empty, not of numbers or not ascending.
    """
    return _parse(path, *_state_of(path)).tolist()


def mean_rate_mbps(path: Path) -> float:
    """Returns what a trace lets through on average; raises what `read_mahimahi` raises."""
    times_ms = read_mahimahi(path)
    return len(times_ms) * 1500 * 8e-3 / times_ms[-1]


def trace_digest(path: Path) -> str:
    """Returns the SHA-256 of a trace's times; raises what `read_mahimahi` raises."""
    return _digest(path, *_state_of(path))


def _state_of(path: Path) -> tuple[int, int]:
    """When the file was last written, and its size; no file has a state too, for the error."""
    try:
        status = path.stat()
    except OSError:
        return (0, 0)
    return status.st_mtime_ns, status.st_size


@lru_cache(maxsize=1024)
def _digest(path: Path, modified_ns: int, size_bytes: int) -> str:
    times = _parse(path, modified_ns, size_bytes)
    return sha256(",".join(map(str, times)).encode()).hexdigest()


@lru_cache(maxsize=8)
def _parse(path: Path, modified_ns: int, size_bytes: int) -> array[int]:
    if is_drawn(path):
        return _draw(str(path))
    try:
        with path.open(encoding="utf-8-sig") as file:
            return _times_of(path, file)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "is not a text file"
        raise problem(
            "", str(path), f"cannot read the trace: {reason}",
            "give the path of a mahimahi trace, absolute or from the YAML's folder, or its name in "
            f"{TRACES}",
        ) from None  # fmt: skip


def _draw(text: str) -> array[int]:
    remedy = "write it as lte:mean_mbps=6,duration_s=60,seed=0"
    wanted = _DRAWN.fullmatch(text)
    if wanted is None:
        raise problem("", text, "is no drawn trace", remedy)
    duration_ms, mean_mbps = 1000 * int(wanted["duration_s"]), float(wanted["mean_mbps"])
    if duration_ms == 0 or mean_mbps == 0:
        raise problem("", text, "lets nothing through", "give a rate and a duration above 0")
    model = replace(MODELS[wanted["model"]], mean_mbps=mean_mbps)
    try:
        return array("Q", cellular_trace(model, duration_ms, int(wanted["seed"])).tolist())
    except ValueError as error:
        raise problem("", text, str(error), remedy) from None


def _times_of(path: Path, file: TextIO) -> array[int]:
    times = array("Q")
    latest = 0
    for number, line in enumerate(file, start=1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        if not text.isdecimal() or (time := int(text)) >= 2**32:
            raise problem(
                "", f"{path}:{number}", f"{text[:40]!r} is not a time",
                "give whole milliseconds per line",
            )  # fmt: skip
        if time < latest:
            raise problem(
                "", f"{path}:{number}", f"{time} ms comes after {latest} ms",
                "sort the trace in ascending order",
            )  # fmt: skip
        times.append(time)
        latest = time
    if not times or times[-1] == 0:
        raise problem(
            "", str(path), "the trace is empty",
            "give at least one time above 0 ms; the last one is the trace's length",
        )  # fmt: skip
    return times
