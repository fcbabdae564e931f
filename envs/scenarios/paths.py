"""How much data the path of a scenario holds, and the flow control that follows from it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quicgym.envs.scenarios.fields import LINK_HEADER_BYTES

if TYPE_CHECKING:
    from quicgym.envs.scenarios.flows import Flow
    from quicgym.envs.scenarios.model import Scenario
    from quicgym.envs.scenarios.short_flows import ShortFlows

_WIFI_MBPS = 150
_LEAST_WINDOW_BYTES = 64 * 2**20
_WINDOW_PER_PATH = 16
"""Half of a window is free when the receiver renews it. A lost packet holds the limit back for two
round trips or more, while a sender in slow start may have three times the path in flight."""


def capacities(scenario: Scenario) -> list[float]:
    """Returns the rates at which the links carry data at their best, in bytes per second."""
    if scenario.wifi is not None:
        return [_WIFI_MBPS * 125e3]
    links = list(scenario.links.values())
    backward = any(flow.direction == "backward" for flow in scenario.flows)
    return [125e3 * link.highest_rate_mbps for link in (links if backward else links[::2])]


def path_bytes(scenario: Scenario) -> float:
    """Returns how many bytes fit the longest path and all queues."""
    capacity = max(capacities(scenario))
    packet_bytes = scenario.max_datagram_bytes + LINK_HEADER_BYTES
    connections: list[Flow | ShortFlows] = [*scenario.flows, *scenario.short_flows]
    rtt_ms = max(
        4 * (flow.access or scenario.access).delay_ms + 2 * flow.extra_delay_ms
        for flow in connections
    )
    if scenario.wifi is not None:
        wifi = scenario.wifi
        rtt_ms += 2 * wifi.wired.delay_ms
        queues = wifi.queue.limit_packets * len(connections) + wifi.wired.queue_packets
        return capacity * rtt_ms * 1e-3 + queues * packet_bytes
    queue_bytes = 0.0
    for link in scenario.links.values():
        rtt_ms += max(link.delays_ms)
        queue_bytes += link.queue.limit * (packet_bytes if link.queue.unit == "packets" else 1)
    return capacity * rtt_ms * 1e-3 + queue_bytes


def flow_control_window_bytes(scenario: Scenario) -> int:
    """Returns the receiver's window of flows that state none.

    A receiver that tunes its window ends at several times what the path holds. Here it starts
    there, so that flow control never limits a flow and has no start-up of its own.
    """
    return max(_LEAST_WINDOW_BYTES, round(_WINDOW_PER_PATH * path_bytes(scenario)))
