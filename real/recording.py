"""A run over real packets, as a quicgym.Run keeps it.

What passed the network was recorded by quicgym, what endpoints did by the stack. Together they make
the totals, series and rewards of a simulation (quicgym.envs.simulation.simulation).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quicgym import _core
from quicgym.envs.rewards import Reward
from quicgym.envs.scenarios.conversion import nanoseconds, with_every_flow
from quicgym.envs.scenarios.model import Scenario
from quicgym.envs.simulation.run import Mark, Recorded
from quicgym.envs.simulation.series import Series
from quicgym.envs.simulation.simulation import (
    NEVER,
    QUEUE_DTYPE,
    REWARD_INTERVAL_MS,
)
from quicgym.real.stacks import FlowPlan, FlowRecord

PASSED_DTYPE = np.dtype(_core.LAYOUTS["PassedPackets"])
QUEUE_RECORD_DTYPE = np.dtype(_core.LAYOUTS["QueueRecord"])
STATE_DTYPE = np.dtype(_core.LAYOUTS["FlowState"])
SECOND = 1_000_000_000
COPIED = ("window_bytes", "pacing_rate", "smoothed_rtt", "in_flight_bytes", "delivered_bytes",
          "lost_bytes", "mode")  # fmt: skip
"""Columns of a stack's rows that a trace has, too."""


class RecordedFlow:
    """One flow of the scenario: what a stack measured of it, and what passed its path."""

    def __init__(
        self,
        index: int,
        name: str,
        plan: FlowPlan,
        record: FlowRecord,
        passed: NDArray[Any],
        interval: int,
        hops: int,
    ) -> None:
        """Joins the plan, the stack's record, and what had `passed` the path before each row.

        `passed` has the shape (rows,), of PASSED_DTYPE; `interval` is between two rows, in ns. The
        flow's data passes a number of `hops`.
        """
        self.index, self.name = index, name
        self.controller = plan.steering.title or plan.steering.name
        self._plan, self._record, self._hops = plan, record, hops
        self._interval = interval
        self._times = np.arange(len(passed), dtype=np.int64) * interval
        self._passed = {column: np.cumsum(passed[column]) for column in PASSED_DTYPE.names or ()}
        self._states = self._make_states()

    @property
    def states(self) -> NDArray[Any]:
        """Shape (rows,), of STATE_DTYPE."""
        return self._states

    @property
    def trace(self) -> NDArray[Any]:
        """Shape (rows,), of TRACE_DTYPE, from the first row on after the start."""
        samples: NDArray[Any] = self._states["sample"]
        return samples[samples["time"] >= max(self._plan.start, 1)]

    def totals(self, time: int) -> RecordedTotals:
        """Returns the totals at the time of a row, in ns."""
        return RecordedTotals(self, time)

    def statistics(self, begin: int, end: int) -> dict[str, Any]:
        """Returns FlowStatistics (sim/simulation.hpp) between the times of two rows, in ns."""
        plan, record = self._plan, self._record
        first, last = begin // self._interval, end // self._interval

        def count(sums: NDArray[Any]) -> int:
            return int(sums[last]) - (int(sums[first]) if first else 0)

        active_from = max(plan.start, begin)
        active_until = min(end, plan.stop, record.completion)
        window = record.rows["window_bytes"] / plan.max_datagram_bytes
        sends = (self._times >= active_from) & (self._times < active_until)
        # A row's window holds until the next one.
        window_seconds = max(0, active_until - active_from) / SECOND
        mean_window = float(np.mean(window[sends])) if sends.any() else 0.0
        # Samples after the last row count in a window that ends with the run.
        last_sample = end if last < len(self._times) - 1 else NEVER
        times, rtt = record.rtt.reshape(-1, 2).T
        rtt = rtt[(times >= (begin + 1 if first else 0)) & (times <= last_sample)]
        send_bins, send_variance = self._rates("sent_bytes", begin, active_until)
        receive_bins, receive_variance = self._rates("received_bytes", begin, active_until)
        passed = {column: count(sums) for column, sums in self._passed.items()}
        return {
            "start": plan.start,
            "completion": record.completion if record.completion <= end else None,
            **{
                name: passed[name]
                for name in ("sent_packets", "sent_bytes", "received_packets", "received_bytes",
                             "dropped_packets", "queue_samples")
            },
            "goodput_bytes": count(record.rows["goodput_bytes"]),
            "declared_lost_packets": count(record.rows["lost_packets"]),
            "rtt_samples": len(rtt),
            "rtt_sum_seconds": float(np.sum(rtt)) / SECOND,
            **{
                f"rtt_p{share}_seconds": float(np.percentile(rtt, share)) / SECOND
                for share in (50, 95, 99)
                if len(rtt)
            },
            "min_rtt": int(np.min(rtt)) if len(rtt) else 0,
            "queues": self._hops,
            "queue_delay_sum_seconds": passed["queue_delay"] / SECOND,
            "one_way_delay_sum_seconds": passed["one_way_delay"] / SECOND,
            "window_seconds": window_seconds,
            "window_packet_seconds": mean_window * window_seconds,
            "max_window_packets": float(np.max(window[sends])) if sends.any() else 0.0,
            "send_rate_bins": send_bins,
            "send_rate_variance": send_variance,
            "receive_rate_bins": receive_bins,
            "receive_rate_variance": receive_variance,
        }  # fmt: skip

    def _rates(self, column: str, begin: int, until: int) -> tuple[int, float]:
        """Returns the number of whole seconds from the start, and the variance of their rates.

        The first second begins at `begin` at the earliest, the last one ends at `until` at the
        latest, in ns.
        """
        start = self._plan.start
        first, last = -(-max(0, begin - start) // SECOND), (until - start) // SECOND
        if last <= first:
            return 0, 0.0
        edges = start + np.arange(first, last + 1) * SECOND
        totals = np.interp(edges, self._times, self._passed[column])
        return int(last - first), float(np.var(np.diff(totals)))

    def _make_states(self) -> NDArray[Any]:
        rows, rtt = self._record.rows, self._record.rtt
        states = np.zeros(len(self._times), STATE_DTYPE)
        states["start"], states["completion"] = self._plan.start, self._record.completion
        sample = states["sample"]
        sample["time"] = self._times
        for column in COPIED:
            sample[column] = rows[column]
        for column in ("sent_bytes", "received_bytes", "dropped_packets"):
            sample[column] = self._passed[column]
        for column in ("received_packets", "dropped_packets"):
            states[column] = self._passed[column]
        if len(rtt):
            before = np.searchsorted(rtt[:, 0], self._times, side="right")
            sums = np.concatenate([[0], np.cumsum(rtt[:, 1])])
            lowest = np.concatenate([[0], np.minimum.accumulate(rtt[:, 1])])
            latest = np.concatenate([[0], rtt[:, 1]])
            states["rtt_samples"] = before
            states["rtt_sum_seconds"] = sums[before] / SECOND
            states["min_rtt"] = lowest[before]
            sample["rtt"] = latest[before]
        return states


@dataclass(frozen=True)
class RecordedTotals:
    """The totals of a flow at the time of a row, in ns."""

    flow: RecordedFlow
    time: int

    def statistics(self) -> dict[str, Any]:
        """Returns the members of FlowStatistics in sim/simulation.hpp, from the flow's start."""
        return self.flow.statistics(0, self.time)

    def since(self, earlier: RecordedTotals) -> dict[str, Any]:
        """Returns them from an earlier row of the same flow to this one."""
        return self.flow.statistics(earlier.time, self.time)


def recorded_run(
    scenario: Scenario,
    engine: str,
    seed: int,
    flows: Sequence[RecordedFlow],
    queues: Sequence[NDArray[Any]],
    interval: int,
    marks: Sequence[int],
    *,
    keep_traces: bool,
) -> Recorded:
    """Returns the record of a run.

    `engine` is the stack and the clock. `queues` has each hop's queue, of QUEUE_RECORD_DTYPE, shape
    (rows,). `interval` is between two rows, in ns; `marks`, at which the totals of every flow are
    kept, are multiples of it.
    """
    end = (len(queues[0]) - 1) * interval
    times = [time for time in marks if time < end]
    occupancy = queues[0]["occupancy_seconds"]
    samples = [_queue_samples(queue) for queue in queues]
    return Recorded(
        scenario,
        engine,
        seed,
        [flow.controller for flow in flows],
        [],
        [
            Mark(time, [flow.totals(time) for flow in flows], float(occupancy[time // interval]))
            for time in (*times, end)
        ],
        _series(scenario, flows, samples, interval, end),
        {},
        [],
        [flow.trace for flow in flows] if keep_traces else [],
        [queue[1:] for queue in samples] if keep_traces else [],
    )


def _series(
    scenario: Scenario,
    flows: Sequence[RecordedFlow],
    queues: Sequence[NDArray[Any]],
    interval: int,
    end: int,
) -> Series:
    """Returns what an agent would have earned, measured as in simulations."""
    models = [flow for _, flow in scenario.single_flows()]
    agents = [index for index, flow in enumerate(models) if flow.controller is None]
    begin = min(int(flows[index].states["start"][0]) for index in agents or range(len(flows)))
    run = _core.RecordedRun(
        interval,
        [flow.states.tobytes() for flow in flows],
        [queue.tobytes() for queue in queues],
    )
    every = nanoseconds(REWARD_INTERVAL_MS / 1e3)
    core, reward = with_every_flow(scenario), Reward().to_core()
    meter = _core.Meter(run, core, reward, every, end, [], begin)
    meter.run_until(end)
    columns = dict(zip(_core.METER_COLUMNS, meter.rows.T, strict=True))
    return Series(begin, columns, meter.times, meter.received)


def _queue_samples(queue: NDArray[Any]) -> NDArray[Any]:
    samples = np.empty(len(queue), QUEUE_DTYPE)
    for column in QUEUE_DTYPE.names or ():
        samples[column] = queue[column]
    return samples
