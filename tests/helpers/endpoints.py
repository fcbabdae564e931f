"""A sender and a receiver on a scripted network, for tests of the endpoints alone."""

import heapq
from collections.abc import Callable

from quicgym import _core

MILLISECOND = 1_000_000
SECOND = 1_000_000_000
NEVER = 2**63 - 1


def make_flow(**fields):
    """A bulk flow with NewReno; fields override what sim/scenario.hpp names."""
    flow = _core.Flow()
    flow.name = "flow"
    flow.controller = "newreno"
    flow.access_rate_bits_per_second = 50_000_000
    flow.access_delay = 20 * MILLISECOND
    flow.max_datagram_bytes = 1200
    flow.flow_control_window_bytes = 1 << 24
    for name, value in fields.items():
        setattr(flow, name, value)
    return flow


def make_link(rate_bits_per_second=15_000_000, delay=10 * MILLISECOND, queue_limit=100):
    link = _core.Link()
    link.rate_bits_per_second = rate_bits_per_second
    link.delay = delay
    link.queue_limit = queue_limit
    return link


def make_scenario(flows, bottleneck=None, reverse=None, **fields):
    scenario = _core.Scenario()
    scenario.flows = flows
    scenario.bottleneck = bottleneck or make_link()
    scenario.reverse = reverse or make_link()
    for name, value in fields.items():
        setattr(scenario, name, value)
    return scenario


def application(kind, **fields):
    result = _core.Application()
    result.kind = getattr(_core.ApplicationKind, kind)
    for name, value in fields.items():
        setattr(result, name, value)
    return result


class Pair:
    """Carries datagrams both ways with a constant delay; `drop` says which are lost.

    It gets the direction, "data" or "ack", the datagram's index in that direction, and the frames
    that _core.read_datagram lists. Every datagram sent is kept in `log`.
    """

    def __init__(self, flow, delay=25 * MILLISECOND, drop: Callable | None = None, mark=None):
        self.now = 0
        self.delay = delay
        self.drop = drop or (lambda direction, index, frames: False)
        self.mark = mark or (lambda index: False)
        self.sender = _core.Sender(flow, 0, 1, 0)
        self.receiver = _core.Receiver(flow)
        self.log = []
        self._arrivals = []
        self._count = {"data": 0, "ack": 0}
        self._drain(self.sender, "data")
        self._drain(self.receiver, "ack")

    def _drain(self, endpoint, direction):
        while (datagram := endpoint.poll_datagram(self.now)) is not None:
            prefix, size, ecn = datagram
            read = _core.read_datagram(prefix, size)
            assert read["error"] is None, read["error"]
            index = self._count[direction]
            self._count[direction] += 1
            dropped = self.drop(direction, index, read["frames"])
            self.log.append((self.now, direction, size, read, dropped))
            if dropped:
                continue
            if direction == "data" and self.mark(index):
                ecn = 3
            heapq.heappush(
                self._arrivals, (self.now + self.delay, len(self.log), direction, datagram[:2], ecn)
            )

    def run_until(self, until):
        while True:
            timers = (self.sender.next_timeout, self.receiver.next_timeout)
            arrival = self._arrivals[0][0] if self._arrivals else NEVER
            self.now = min(*timers, arrival)
            if self.now > until:
                self.now = until
                return
            if timers[0] == self.now:
                self.sender.on_timeout(self.now)
            elif timers[1] == self.now:
                self.receiver.on_timeout(self.now)
            else:
                _, _, direction, (prefix, size), ecn = heapq.heappop(self._arrivals)
                endpoint = self.receiver if direction == "data" else self.sender
                assert endpoint.on_datagram(self.now, prefix, size, ecn) is None
            self._drain(self.sender, "data")
            self._drain(self.receiver, "ack")

    def frames(self, direction, name):
        """(time, frame) of every frame of that name sent in that direction."""
        return [
            (time, frame)
            for time, sent, _, read, _ in self.log
            for frame in read["frames"]
            if sent == direction and frame[0] == name
        ]
