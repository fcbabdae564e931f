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


class _Host:
    """The network as one endpoint sees it: what `drive` of _core.Sender and _core.Receiver asks."""

    def __init__(self, pair, direction):
        self._pair = pair
        self._direction = direction  # of what this endpoint sends
        self.arrivals = []  # a heap of (time, order, datagram)

    def next_arrival(self):
        return self.arrivals[0][0] if self.arrivals else NEVER

    def arrived(self):
        return self.arrivals[0][2]

    def on_received(self, now, error):
        assert error is None, error
        heapq.heappop(self.arrivals)

    def send(self, now, datagram):
        self._pair.carry(self._direction, now, datagram)


class Pair:
    """Carries datagrams both ways; the hooks say what happens to them.

    Args:
        flow: What the two endpoints are made from.
        delay: One way, in ns, or a function of direction and index that returns it.
        drop: Which are lost: a function of the direction, "data" or "ack", the datagram's index in
            that direction, and the frames that _core.read_datagram lists.
        mark: Which data datagrams the network marks with ECN-CE: a function of the index.

    Hooks may read `now`. Every datagram sent is kept in `log`.
    """

    def __init__(
        self,
        flow,
        delay: int | Callable = 25 * MILLISECOND,
        drop: Callable | None = None,
        mark: Callable | None = None,
    ):
        self.now = 0
        self.drop = drop or (lambda direction, index, frames: False)
        self.sender = _core.Sender(flow, 0, 1, 0)
        self.receiver = _core.Receiver(flow)
        self.log = []
        self._delay = delay if callable(delay) else lambda direction, index: delay
        self._mark = mark or (lambda index: False)
        self._hosts = {direction: _Host(self, direction) for direction in ("data", "ack")}
        self._count = {"data": 0, "ack": 0}

    def carry(self, direction, now, datagram):
        """Takes a datagram that the endpoint which sends in this direction has sent."""
        prefix, size, ecn = datagram
        read = _core.read_datagram(prefix, size)
        assert read["error"] is None, read["error"]
        index = self._count[direction]
        self._count[direction] += 1
        dropped = self.drop(direction, index, read["frames"])
        self.log.append((now, direction, size, read, dropped))
        if dropped:
            return
        if direction == "data" and self._mark(index):
            ecn = 3
        arrivals = self._hosts["ack" if direction == "data" else "data"].arrivals
        time = now + self._delay(direction, index)
        heapq.heappush(arrivals, (time, len(self.log), (prefix, size, ecn)))

    def run_until(self, until):
        endpoints = ((self.sender, self._hosts["data"]), (self.receiver, self._hosts["ack"]))
        while True:
            now = min(min(end.next_timeout, host.next_arrival()) for end, host in endpoints)
            if now > until:
                self.now = until
                return
            self.now = now
            for endpoint, host in endpoints:
                endpoint.drive(host, now + 1)

    def frames(self, direction, name):
        """(time, frame) of every frame of that name sent in that direction."""
        return [
            (time, frame)
            for time, sent, _, read, _ in self.log
            for frame in read["frames"]
            if sent == direction and frame[0] == name
        ]
