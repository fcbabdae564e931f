"""What claims say of curves over time, as numbers of a flow's time series.

Only the runs of a claim that asks for one of them keep their time series: rows every
TRACE_INTERVAL_MS.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from quicgym.benchmarks.simulations import Job
from quicgym.envs.simulation.metrics import mean_of
from quicgym.envs.simulation.result import Result
from quicgym.output_folders import digest

CONVERGED_SHARE = 0.9
"""Of the rate of the second half; our reading of convergence."""
CONVERGENCE_WINDOW_S = 0.1


def _rtt_deviation_ms(trace: pd.DataFrame) -> float | None:
    known = trace["rtt_ms"].dropna()
    return float(known.std(ddof=0)) if len(known) else None


def _startup_entries(trace: pd.DataFrame) -> float | None:
    in_startup = (trace["mode"] == "startup").to_numpy()
    return float(np.count_nonzero(np.diff(in_startup, prepend=False) & in_startup))


def _convergence_time_s(trace: pd.DataFrame) -> float | None:
    time, received = trace["time_s"].to_numpy(), trace["received_bytes"].to_numpy(dtype=float)
    if len(time) < 2 or received[-1] == 0:
        return None
    half_s = (time[0] + time[-1]) / 2
    late_rate = (received[-1] - np.interp(half_s, time, received)) / (time[-1] - half_s)
    before = np.interp(time - CONVERGENCE_WINDOW_S, time, received, left=0.0)
    reached = (received - before) / CONVERGENCE_WINDOW_S >= CONVERGED_SHARE * late_rate
    return float(time[np.argmax(reached)] - time[0]) if late_rate > 0 and reached.any() else None


@dataclass(frozen=True)
class SeriesMetric:
    """A number of a flow's time series.

    Attributes:
        title: For reports, with the unit.
        formula: In words.
        compute: The value, of the time series, which begins with the flow; None: no sample.
    """

    title: str
    formula: str
    compute: Callable[[pd.DataFrame], float | None]


SERIES_METRICS = {
    "rtt_deviation_ms": SeriesMetric(
        "standard deviation of the RTT (ms)",
        "standard deviation of the sender's latest RTT over time",
        _rtt_deviation_ms,
    ),
    "startup_entries": SeriesMetric(
        "entries into Startup",
        "how often the controller enters Startup, the first time included",
        _startup_entries,
    ),
    "convergence_time_s": SeriesMetric(
        "convergence time (s)",
        "from the flow's start until the receiving rate of 0.1 s is first 90% of that of the "
        "flow's second half",
        _convergence_time_s,
    ),
}
"""By name; a run's value is the mean over its flows."""


@dataclass(frozen=True, eq=False)
class SeriesJob(Job):
    """A simulation whose metrics include SERIES_METRICS."""

    @property
    def key(self) -> str:
        """What identifies the run for --resume."""
        return digest([super().key, *SERIES_METRICS])

    @property
    def traced(self) -> bool:
        """Always, in memory at least."""
        return True

    def measure(self, result: Result) -> dict[str, Any]:
        """Returns the metrics of the run and of each flow, those of the time series included."""
        run = super().measure(result)
        for name, metric in SERIES_METRICS.items():
            for flow in run["flows"]:
                flow[name] = metric.compute(result.trace(flow["name"]))
            run[name] = mean_of(flow[name] for flow in run["flows"])
        return run
