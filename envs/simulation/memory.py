"""The memory that a run takes at most, estimated before any of it is reserved.

A scenario of a few lines can describe a run that fills any machine. The factors are measured:
tests/envs/simulation/test_memory.py compares the estimate with what runs take.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from quicgym import _core
from quicgym.envs.scenarios.engines import EngineName
from quicgym.envs.scenarios.fields import LINK_HEADER_BYTES, ScenarioError
from quicgym.envs.scenarios.model import Scenario
from quicgym.envs.scenarios.paths import capacities, flow_control_window_bytes, path_bytes
from quicgym.envs.simulation.series import REWARD_INTERVAL_MS

MAXIMUM_BYTES = 2 * 2**30
"""A run whose estimate is above this is refused."""

_FLOW_BYTES = {"native": 64 * 2**10, "ns3": 96 * 2**10}
"""Of two endpoints, their way through the network, and the flow's results."""
_CONNECTION_BYTES = 28 * 2**10
"""Of a short flow that is not complete."""
_TRANSFER_BYTES = 100
_ROW_BYTES, _QUEUE_ROW_BYTES, _DELIVERY_BYTES, _EVENT_BYTES = (
    np.dtype(_core.LAYOUTS[name]).itemsize
    for name in ("TraceSample", "QueueSample", "Delivery", "SenderEvent")
)
_EVENTS_PER_PACKET = 4
_GROWN = 3.0
"""A vector as it grows, and its copy in the `Run`."""
_KEPT = 5.0
"""The same with a table of pandas."""
_PER_BYTE_IN_FLIGHT = 0.6
"""What a sender and the network keep of a packet, by the packet's size."""
_IN_FLIGHT_PER_PATH = 3
"""Slow start doubles what fits the path and its queue; what was lost is kept for a while."""
_IN_FLIGHT_PER_DELIVERED = 2
"""A window grows by what was acknowledged, so flows send at most twice what the link delivers."""
_LONGEST_TRANSFER_S = 10
"""Of short flows on a link that is not overloaded."""


class Part(NamedTuple):
    """One of the things that take memory.

    Attributes:
        size_bytes: The estimate.
        reason: Use of the memory, with the fields and arguments that decide about it.
        remedy: How the user makes it less.
    """

    size_bytes: float
    reason: str
    remedy: str


def estimate(
    scenario: Scenario,
    engine: EngineName = "native",
    *,
    is_measured: bool = True,
    trace_interval_ms: float | None = None,
    record_deliveries: bool = False,
    record_events: bool = False,
) -> list[Part]:
    """Returns what a run takes at most, by its parts.

    Args:
        scenario: Scenario of the run.
        engine: "native" or "ns3".
        is_measured: Whether the run has the series of a `Run`.
        trace_interval_ms: Interval between two rows of the traces, in ms; None: no traces.
        record_deliveries: Whether every delivery is recorded.
        record_events: Whether every sender's events are recorded.
    """
    duration_s = scenario.duration_s
    flows = sum(flow.count for flow in scenario.flows)
    lasts = f"duration_s = {duration_s:g}"
    parts = [
        Part(flows * _FLOW_BYTES[engine], f"{flows} flows", "make flows.count smaller"),
        _in_flight(scenario),
        *(_short_flows(scenario, index) for index in range(len(scenario.short_flows))),
    ]
    if is_measured:
        row_bytes = 8 * (len(_core.METER_COLUMNS) + 1 + flows)
        parts.append(
            Part(
                duration_s * 1e3 / REWARD_INTERVAL_MS * row_bytes * _GROWN,
                f"measurements of {flows} flows every {REWARD_INTERVAL_MS:g} ms for {lasts}",
                "make duration_s shorter, or flows.count smaller",
            )
        )
    if trace_interval_ms is not None:
        row_bytes = _ROW_BYTES * flows + _QUEUE_ROW_BYTES * (1 + len(scenario.chain))
        parts.append(
            Part(
                duration_s * 1e3 / trace_interval_ms * row_bytes * _KEPT,
                f"traces of {flows} flows with trace_interval_ms = {trace_interval_ms:g} for "
                f"{lasts}",
                "make trace_interval_ms larger or None, or duration_s shorter",
            )
        )
    packets = (
        duration_s * sum(capacities(scenario)) / (scenario.max_datagram_bytes + LINK_HEADER_BYTES)
    )
    for name, recorded, row_bytes in (
        ("record_deliveries", record_deliveries, _DELIVERY_BYTES),
        ("record_events (for qlog)", record_events, _EVENT_BYTES * _EVENTS_PER_PACKET),
    ):
        if recorded:
            reason = f"{name} of up to {packets:.3g} packets in {lasts}"
            remedy = "leave it out, or make duration_s shorter"
            parts.append(Part(packets * row_bytes * _KEPT, reason, remedy))
    return parts


def check_memory(scenario: Scenario, parts: Sequence[Part]) -> None:
    """Refuses a run that would take too much memory.

    Args:
        scenario: Scenario of the run.
        parts: Estimate of the run, as `estimate` returns it.

    Raises:
        ScenarioError: The estimate is above MAXIMUM_BYTES; names the largest part.
    """
    needed_bytes = total_bytes(parts)
    if needed_bytes > MAXIMUM_BYTES:
        largest = max(parts)
        raise ScenarioError(
            f"{scenario.name}: the run may take {_gib(needed_bytes)} of memory, and at most "
            f"{_gib(MAXIMUM_BYTES)} are allowed: {_gib(largest.size_bytes)} for {largest.reason}; "
            f"{largest.remedy}"
        )


def fitting_interval_ms(scenario: Scenario, engine: EngineName, interval_ms: float) -> float:
    """Returns the interval between two rows of traces that fit the memory.

    Args:
        scenario: Scenario of the run.
        engine: "native" or "ns3".
        interval_ms: The wanted interval, in ms; is returned where the traces fit.
    """
    needed_bytes = total_bytes(estimate(scenario, engine, trace_interval_ms=interval_ms))
    rest_bytes = total_bytes(estimate(scenario, engine))
    if needed_bytes <= MAXIMUM_BYTES or rest_bytes >= MAXIMUM_BYTES:
        return interval_ms
    factor = (needed_bytes - rest_bytes) / (MAXIMUM_BYTES - rest_bytes)
    steps = (step * 10**power for power in range(9) for step in (1, 2, 5))
    return interval_ms * next(step for step in steps if step >= factor)


def total_bytes(parts: Iterable[Part]) -> float:
    """Returns the sum of the parts."""
    return sum(part.size_bytes for part in parts)


def _gib(size_bytes: float) -> str:
    return f"{size_bytes / 2**30:.3g} GiB"


def _in_flight(scenario: Scenario) -> Part:
    """Flows with a slow access link wait before that, in a queue without a limit."""
    capacity = max(capacities(scenario))
    default_window_bytes = flow_control_window_bytes(scenario)
    shared = slow = 0.0
    for flow in scenario.flows:
        access = (flow.access or scenario.access).rate_mbps * 125e3
        ends_s = scenario.duration_s if flow.stop_s is None else flow.stop_s
        most = flow.count * min(
            flow.flow_control_window_bytes or default_window_bytes,
            access * max(0.0, ends_s - flow.start_s),
        )
        if access < capacity:
            slow += most
        else:
            shared += most
    flight_bytes = slow + min(
        shared,
        _IN_FLIGHT_PER_PATH * path_bytes(scenario),
        _IN_FLIGHT_PER_DELIVERED * capacity * scenario.duration_s,
    )
    return Part(
        flight_bytes * _PER_BYTE_IN_FLIGHT,
        f"{flight_bytes:.3g} bytes that the flows may have in flight",
        "make flow_control_window_bytes, the queues' limits or the delays smaller"
        + (", or access.rate_mbps no lower than the bottleneck's rate" if slow else ""),
    )


def _short_flows(scenario: Scenario, index: int) -> Part:
    """Of an overloaded link every transfer that ever arrives may still be open at the end."""
    entry = scenario.short_flows[index]
    ends_s = scenario.duration_s if entry.stop_s is None else min(entry.stop_s, scenario.duration_s)
    seconds = max(0.0, ends_s - entry.start_s)
    arrivals = entry.arrivals_per_second * seconds
    offered = entry.offered_mbps(entry.max_datagram_bytes or scenario.max_datagram_bytes) * 125e3
    access = (entry.access or scenario.access).rate_mbps * 125e3
    load = offered / min(access, *capacities(scenario))
    waits_s = seconds if load > 0.5 else min(seconds, _LONGEST_TRANSFER_S)
    connections = entry.arrivals_per_second * waits_s
    field = f"short_flows.{index}"
    return Part(
        connections * _CONNECTION_BYTES + arrivals * _TRANSFER_BYTES * _KEPT,
        f"{arrivals:.3g} transfers of {field}, which offer {load:.3g} times what the link carries",
        f"make {field}.load_mbps or arrivals_per_s smaller, sizes larger, or duration_s shorter",
    )
