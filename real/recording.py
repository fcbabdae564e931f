"""A run over real packets, as results and rewards read it.

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
from quicgym.agents.evaluation.rollouts import REWARD_INTERVAL_MS, Episode, measure_episode
from quicgym.envs.rewards import Reward
from quicgym.envs.scenarios.conversion import nanoseconds, with_every_flow
from quicgym.envs.scenarios.model import Scenario
from quicgym.envs.simulation.simulation import (
    NEVER,
    QUEUE_DTYPE,
    TRANSFER_DTYPE,
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
    """One flow: what a stack measured of it, and what passed its path.

    Attributes:
        index: Place of the flow in the scenario, from 0.
        name: Name of the flow in the scenario.
        controller: Name of the controller or policy that steered the flow.
    """

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
        """Joins the two.

        Args:
            index: Place of the flow in the scenario, from 0.
            name: Name of the flow in the scenario.
            plan: The plan that the stack carried out.
            record: The stack's measurements.
            passed: Shape (rows,), of PASSED_DTYPE: what passed the path before each row.
            interval: Time between two rows, in ns.
            hops: Number of hops that the flow's data passes.
        """
        self.index, self.name = index, name
        self.controller = plan.steering.title or plan.steering.name
        self._plan, self._record, self._hops = plan, record, hops
        self._times = np.arange(len(passed), dtype=np.int64) * interval
        self._passed = {column: np.cumsum(passed[column]) for column in PASSED_DTYPE.names or ()}
        self._states = self._make_states()

    @property
    def states(self) -> NDArray[Any]:
        """Shape (rows,), of STATE_DTYPE."""
        return self._states

    @property
    def end(self) -> int:
        """When the flow stops or its transfer is complete, in ns."""
        return min(self._plan.stop, self._record.completion)

    @property
    def trace(self) -> NDArray[Any]:
        """Shape (rows,), of TRACE_DTYPE, from the first row on after the start."""
        samples: NDArray[Any] = self._states["sample"]
        return samples[samples["time"] >= max(self._plan.start, 1)]

    @property
    def statistics(self) -> dict[str, Any]:
        """Returns the members of FlowStatistics in sim/simulation.hpp."""
        plan, record = self._plan, self._record
        total = {column: int(sums[-1]) for column, sums in self._passed.items()}
        end = int(self._times[-1])
        window = record.rows["window_bytes"] / plan.max_datagram_bytes
        sends_until = min(end, plan.stop, record.completion)
        sends = (self._times >= plan.start) & (self._times < sends_until)
        # A row's window holds until the next one.
        window_seconds = (sends_until - plan.start) / SECOND
        mean_window = float(np.mean(window[sends])) if sends.any() else 0.0
        rtt = record.rtt[:, 1] if len(record.rtt) else np.empty(0, np.int64)
        receives_until = min(end, plan.stop, record.completion)
        send_bins, send_variance = self._rates("sent_bytes", sends_until)
        receive_bins, receive_variance = self._rates("received_bytes", receives_until)
        return {
            "start": plan.start,
            "completion": None if record.completion == NEVER else record.completion,
            **{
                name: total[name]
                for name in ("sent_packets", "sent_bytes", "received_packets", "received_bytes",
                             "dropped_packets", "queue_samples")
            },
            "goodput_bytes": int(record.rows["goodput_bytes"][-1]),
            "declared_lost_packets": int(record.rows["lost_packets"][-1]),
            "persistent_congestion_events": record.persistent_congestion,
            "probe_timeouts": record.probe_timeouts,
            "rtt_samples": len(rtt),
            "rtt_sum_seconds": float(np.sum(rtt)) / SECOND,
            "rtt_p95_seconds": float(np.quantile(rtt, 0.95)) / SECOND if len(rtt) else 0.0,
            "min_rtt": int(np.min(rtt)) if len(rtt) else 0,
            "queues": self._hops,
            "queue_delay_sum_seconds": total["queue_delay"] / SECOND,
            "one_way_delay_sum_seconds": total["one_way_delay"] / SECOND,
            "window_seconds": window_seconds,
            "window_packet_seconds": mean_window * window_seconds,
            "max_window_packets": float(np.max(window[sends])) if sends.any() else 0.0,
            "send_rate_bins": send_bins,
            "send_rate_variance": send_variance,
            "receive_rate_bins": receive_bins,
            "receive_rate_variance": receive_variance,
        }  # fmt: skip

    def _rates(self, column: str, until: int) -> tuple[int, float]:
        """Returns the number of whole seconds, and the variance of the rates in them."""
        bins = (until - self._plan.start) // SECOND
        if bins <= 0:
            return 0, 0.0
        edges = self._plan.start + np.arange(bins + 1) * SECOND
        totals = np.interp(edges, self._times, self._passed[column])
        return int(bins), float(np.var(np.diff(totals)))

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
class RecordedRun:
    """A run, as quicgym.envs.simulation.result.Result reads it.

    Attributes:
        scenario: The scenario that was run.
        engine: The stack and the clock.
        seed: Seed of the network, of jitter and of controllers.
        flows: One for each of the scenario's.
        queues: Shape (rows,), of QUEUE_RECORD_DTYPE, of each hop.
        interval: Time between two rows, in ns.
        has_traces: Whether traces are kept.
    """

    scenario: Scenario
    engine: str
    seed: int
    flows: Sequence[RecordedFlow]
    queues: Sequence[NDArray[Any]]
    interval: int
    has_traces: bool = True
    short_flow_controllers: Sequence[str] = ()

    @property
    def time(self) -> float:
        """Of the last row, in s: the scenario's duration, or up to an interval less."""
        return (len(self.queues[0]) - 1) * self.interval * 1e-9

    @property
    def queue_occupancy_seconds(self) -> float:
        """∫ of the bottleneck's queue dt."""
        return float(self.queues[0]["occupancy_seconds"][-1])

    def trace(self, flow: int) -> NDArray[Any]:
        """Returns the time series of a flow."""
        return self.flows[flow].trace[slice(None) if self.has_traces else slice(0)]

    def queue_trace(self, hop: int = 1) -> NDArray[Any]:
        """Returns that of a hop's queue."""
        rows = self.queues[hop - 1][slice(1, None) if self.has_traces else slice(0)]
        trace = np.empty(len(rows), QUEUE_DTYPE)
        for column in QUEUE_DTYPE.names or ():
            trace[column] = rows[column]
        return trace

    def requests(self, flow: int) -> NDArray[Any]:
        """There are none."""
        return np.empty(0, TRANSFER_DTYPE)

    def transfers(self, short_flows: int) -> NDArray[Any]:
        """There are none."""
        return np.empty(0, TRANSFER_DTYPE)

    def episode(self, reward: Reward, keep_series: bool = False) -> Episode:
        """Returns what an agent would have earned: as `quicgym evaluate` counts it in simulations.

        Args:
            reward: The reward that agents earn.
            keep_series: Keep the time series.
        """
        agents = [
            index
            for index, (_, flow) in enumerate(self.scenario.single_flows())
            if flow.controller is None
        ] or [0]
        recorded = _core.RecordedRun(
            self.interval,
            [flow.states.tobytes() for flow in self.flows],
            [self._queue_samples(queue) for queue in self.queues],
        )
        begin = min(int(self.flows[index].states["start"][0]) for index in agents)
        end = nanoseconds(self.time)
        meter = _core.Meter(
            recorded,
            with_every_flow(self.scenario),
            reward.to_core(),
            nanoseconds(REWARD_INTERVAL_MS / 1e3),
            end,
            begin=begin,
        )
        meter.run_until(end)
        # An episode is over at the first decision after all agents' flows.
        over = max(self.flows[index].end for index in agents)
        rows = meter.rows[: int(np.searchsorted(meter.times, over)) + 1]
        series = dict(zip(_core.METER_COLUMNS, rows.T, strict=True))
        rewards = series.pop("reward")
        places = meter.times[: len(rows)] // self.interval
        windows = self.flows[agents[0]].states["sample"]["window_bytes"]
        series["flow_window_bytes"] = windows[places].astype(float)
        return measure_episode(
            self.flows[agents[0]].controller,
            self.scenario,
            lambda flow: self.flows[flow].statistics,
            self.requests,
            [],
            rewards,
            series,
            begin * 1e-9,
            keep_series,
        )

    @staticmethod
    def _queue_samples(queue: NDArray[Any]) -> bytes:
        samples = np.empty(len(queue), QUEUE_DTYPE)
        for column in QUEUE_DTYPE.names or ():
            samples[column] = queue[column]
        return samples.tobytes()
