"""Numbers as unsigned integers, for agents that can read nothing else."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from gymnasium import spaces

LARGEST = 2**32 - 256
"""The largest uint32 that is a float32 too, in which a BoxSpace states its bounds."""

_FRACTION = 2.0**-16
"""The step where a Box has no bounds, or bounds wider than 2^32."""


@dataclass(frozen=True)
class FixedPoint:
    """A number is `offset + scale * unsigned`, with `unsigned` from 0 to LARGEST."""

    offset: float
    scale: float

    @classmethod
    def of(cls, box: spaces.Box) -> FixedPoint:
        """Returns the finest one that covers the Box.

        Integers keep the step 1. Without bounds, or with bounds wider than 2^32, it covers
        -2^15 to 2^15 in steps of 2^-16, and integers -2^31 to 2^31.
        """
        low, high = float(box.low.min()), float(box.high.max())
        integer = np.issubdtype(box.dtype, np.integer)
        if not high - low <= (LARGEST if integer else 2.0**32):
            scale = 1.0 if integer else _FRACTION
            return cls(-(2.0**31) * scale, scale)
        return cls(low, 1.0 if integer else (high - low) / LARGEST or 1.0)

    @property
    def largest_number(self) -> float:
        """The number for which LARGEST stands."""
        return self.offset + self.scale * LARGEST

    def encode(self, numbers: np.ndarray) -> np.ndarray:
        """Returns the nearest unsigned integers, as float64; outside 0 to LARGEST too."""
        return np.rint((numbers.astype(np.float64) - self.offset) / self.scale)

    def decode(self, unsigned: np.ndarray) -> np.ndarray:
        """Returns the numbers that unsigned integers stand for, as float64."""
        return self.offset + self.scale * unsigned.astype(np.float64)

    def __str__(self) -> str:
        """Returns the text that goes into the space's name."""
        return f"offset={self.offset!r} scale={self.scale!r}"
