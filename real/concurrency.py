"""How many runs in real time may be under way at once, so that the machine keeps up with all."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from quicgym.envs.scenarios.model import Scenario
from quicgym.envs.simulation.capacity import BottleneckCapacity

BUDGET_MBPS = 200.0
"""Sum of the rates of the networks of runs at the same time."""
MOST_AT_ONCE = 8
"""Runs in real time at the same time, however slow their networks are."""


def by_workers(scenarios: Sequence[Scenario], budget_mbps: float) -> dict[int, list[Scenario]]:
    """Returns how many runs in real time may be under way at once -> the scenarios, slow ones last.

    `budget_mbps` is the largest sum of their rates.
    """
    groups: dict[int, list[Scenario]] = {}
    for scenario in scenarios:
        workers = max(1, min(MOST_AT_ONCE, int(budget_mbps / peak_mbps(scenario))))
        groups.setdefault(workers, []).append(scenario)
    return dict(sorted(groups.items()))


def peak_mbps(scenario: Scenario) -> float:
    """Returns the largest mean rate of the bottleneck over a second."""
    seconds = np.arange(1, max(2, int(scenario.duration_s) + 1)) * 1_000_000_000
    return float(np.max(BottleneckCapacity(scenario).mean_mbps(seconds)))
