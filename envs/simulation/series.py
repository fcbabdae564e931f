"""Time series: measurements of a run over intervals of time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

REWARD_INTERVAL_MS = 100.0
"""Over which the reward and its terms are taken, however long a policy's decisions last."""


@dataclass(frozen=True)
class Series:
    """A run's intervals, in the order of time, from `begin` on, in ns.

    `columns` has `time_s`, the end of each interval, `reward`, and columns of `info`. `received`
    are the bytes that had reached each flow's receiver at `received_times`, in ns; shape
    (intervals, flows).
    """

    begin: int
    columns: Mapping[str, np.ndarray]
    received_times: np.ndarray
    received: np.ndarray

    @classmethod
    def of_nothing(cls, begin: int, columns: Iterable[str], flows: int) -> Series:
        """Returns the series of a run that has not reached its first interval, at `begin` in ns."""
        return cls(
            begin,
            {name: np.empty(0) for name in columns},
            np.empty(0, np.int64),
            np.empty((0, flows), np.uint64),
        )

    def mean(self, column: str, window: tuple[int, int]) -> float | None:
        """Returns the mean of a column over time; None where the window, in ns, has no interval."""
        ends = self.columns["time_s"]
        begins = np.concatenate([[self.begin * 1e-9], ends[:-1]])
        begins = np.maximum(begins, window[0] * 1e-9)
        durations_s = np.maximum(np.minimum(ends, window[1] * 1e-9) - begins, 0.0)
        if not durations_s.any():
            return None
        return float(np.average(self.columns[column], weights=durations_s))
