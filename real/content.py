"""The bytes that flows transfer, which receivers know beforehand."""

from __future__ import annotations

import random

_PERIOD = 1_048_573
"""A prime: a packet never begins at the same place of it twice in a row."""
_LONGEST = 1 << 18
_BYTES = random.Random(1).randbytes(_PERIOD)
_CONTENT = memoryview(_BYTES + _BYTES[:_LONGEST])


def content(offset: int, size: int) -> memoryview:
    """Returns a part of the endless content: at most 256 KiB from a place on."""
    if size > _LONGEST:
        raise ValueError(f"size = {size}: give at most {_LONGEST}")
    start = offset % _PERIOD
    return _CONTENT[start : start + size]


class Comparison:
    """Compares what arrives, in order, with what was sent; counts the bytes that were equal."""

    def __init__(self) -> None:
        """Begins at the first byte."""
        self.compared_bytes = 0

    def add(self, data: bytes) -> bool:
        """Compares the next bytes; returns whether they are equal."""
        for begin in range(0, len(data), _LONGEST):
            part = data[begin : begin + _LONGEST]
            if part != content(self.compared_bytes, len(part)):
                return False
            self.compared_bytes += len(part)
        return True
