"""Computes what a bottleneck could have sent, and how long the packets before it will wait."""

from __future__ import annotations

import numpy as np

from quicgym import _core
from quicgym.envs.scenarios.conversion import nanoseconds, network
from quicgym.envs.scenarios.model import Scenario

STEP = 1_000_000
"""ns, between two moments at which a changing capacity is looked at, where a run is short."""
MOST_STEPS = 1_000_000
"""A longer run has longer steps, so that the moments fit in memory."""
LONGEST_DELAY_S = 30.0
"""Longest delay of what waits at the end of a run; with more it counts as never sent."""


class BottleneckCapacity:
    """The capacity of one hop of a scenario, forward; hop 1 is the bottleneck.

    `core` is the scenario in C++, where that is at hand.
    """

    def __init__(
        self, scenario: Scenario, hop: int = 1, core: _core.Scenario | None = None
    ) -> None:
        """Reads the link."""
        self._core = core or network(scenario)
        self._hop = hop - 1
        self._has_rate = scenario.wifi is None
        links = list(scenario.links.values())[::2]
        link = links[self._hop] if self._has_rate else None
        self._rate_mbps = None
        if link is not None and not (link.trace or link.rate_schedule or link.reroutes):
            self._rate_mbps = link.first_rate_mbps
        self._end_s = scenario.duration_s + LONGEST_DELAY_S

    def mean_mbps(self, times: np.ndarray) -> np.ndarray:
        """Returns the mean capacity since the moment before; `times` in ns, ascending from 0."""
        times = np.asarray(times, np.int64)
        spans = np.diff(times, prepend=0)
        sent = np.array(_core.capacity_bytes(self._core, self._hop, times.tolist()), float)
        return np.divide(sent * 8e3, spans, out=np.zeros_like(sent), where=spans > 0)

    def delay_ms(self, times: np.ndarray, waiting_bytes: np.ndarray) -> np.ndarray:
        """Returns in which time the link sends what waits at each moment; NaN: not known."""
        waiting = np.asarray(waiting_bytes, float)
        if not self._has_rate:
            return np.full(len(waiting), np.nan)
        if self._rate_mbps is not None:
            return waiting * 8e-3 / self._rate_mbps
        end = nanoseconds(self._end_s)
        step = max(STEP, end // MOST_STEPS)
        grid = np.arange(0, end + step, step)
        sent = np.cumsum(_core.capacity_bytes(self._core, self._hop, grid.tolist()))
        now = np.interp(times, grid, sent)
        # Where nothing is sent for a while, keep only the last moment of the pause.
        rising = np.diff(sent, append=np.inf) > 0
        done = np.interp(now + waiting, sent[rising], grid[rising], right=np.nan)
        delay = np.maximum(done - times, 0.0) * 1e-6
        return np.where(waiting > 0, delay, 0.0)
