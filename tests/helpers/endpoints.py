"""A sender and a receiver on a scripted network, for tests of the endpoints alone."""

import heapq
import itertools
from collections.abc import Callable

import quicgym
from quicgym import _core
from quicgym.controllers import describe

MILLISECOND = 1_000_000
SECOND = 1_000_000_000
NEVER = 2**63 - 1
RTT = 50 * MILLISECOND
"""Of a Pair whose delay is the default."""


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


def rate_steps(*steps):
    """A link's rate schedule of steps (seconds, bits per second)."""
    schedule = []
    for at_s, rate in steps:
        step = _core.RateStep()
        step.at, step.rate_bits_per_second = int(at_s * SECOND), rate
        schedule.append(step)
    return schedule


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
        flow: The flow from which the two endpoints are made.
        delay: One way, in ns, or a function of direction and index that returns it.
        drop: Which are lost: a function of the direction, "data" or "ack", the datagram's index in
            that direction, and the frames that _core.read_datagram lists.
        mark: Which data datagrams the network marks with ECN-CE: a function of the index.

    Hooks may read `now`. Every datagram sent is kept in `log`.
    """

    def __init__(
        self,
        flow,
        delay: int | Callable = RTT // 2,
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
        prefix, size, ecn, sealed_number = datagram
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
        heapq.heappush(arrivals, (time, len(self.log), (prefix, size, ecn, sealed_number)))

    def run_until(self, until):
        """Runs up to a time in ns, and returns the pair."""
        endpoints = ((self.sender, self._hosts["data"]), (self.receiver, self._hosts["ack"]))
        while True:
            now = min(min(end.next_timeout, host.next_arrival()) for end, host in endpoints)
            if now > until:
                self.now = until
                return self
            self.now = now
            for endpoint, host in endpoints:
                endpoint.drive(host, now + 1)

    def sent_times(self, direction):
        """When the datagrams of a direction left."""
        return [time for time, sent, *_ in self.log if sent == direction]

    def frames(self, direction, name):
        """(time, frame) of every frame of that name sent in that direction."""
        return [
            (time, frame)
            for time, sent, _, read, _ in self.log
            for frame in read["frames"]
            if sent == direction and frame[0] == name
        ]


def one_rtt(number, frames):
    """A 1-RTT packet with these frames, as a peer would send it."""
    prefix = b"\x43" + bytes(8) + number.to_bytes(4, "big") + frames
    return (prefix, len(prefix) + 16, 0, number)


def transfer(size_bytes, **fields):
    return make_flow(application=application("transfer", size_bytes=size_bytes), **fields)


def losing(direction, *indices):
    """Drops the datagrams of one direction with these indices, counted from 0."""
    return lambda sent, index, frames: sent == direction and index in indices


class Interrupted(Pair):
    """Nothing of the data arrives between two times; the first datagram after it can be marked."""

    def __init__(self, flow, start, end, marked=False, delay=RTT // 2):
        to_mark = marked

        def mark(index):
            nonlocal to_mark
            marks = to_mark and self.now >= end
            to_mark = to_mark and not marks
            return marks

        super().__init__(
            flow, delay, lambda direction, *_: direction == "data" and start <= self.now < end, mark
        )


class Late(Pair):
    """Some datagrams take longer: `late` gets direction and index and says by how much."""

    def __init__(self, flow, late, usual=RTT // 2, drop=None):
        super().__init__(flow, lambda direction, index: usual + late(direction, index), drop)


def with_window(window_bytes, **fields):
    """A flow whose window does not move."""
    return make_flow(controller="external", parameters={"window_bytes": [window_bytes]}, **fields)


def constant_rate(rate_bits_per_second, **fields):
    kind = application("constant_rate", rate_bits_per_second=rate_bits_per_second)
    return with_window(1_000_000, application=kind, **fields)


def times(pair, direction, name):
    return [time for time, _ in pair.frames(direction, name)]


def losing_control(*lost):
    """Drops these of the receiver's packets with HANDSHAKE_DONE or MAX_DATA, counted from 0."""
    seen = itertools.count()
    return lambda direction, index, frames: (
        direction == "ack"
        and any(frame[0] in ("HANDSHAKE_DONE", "MAX_DATA") for frame in frames)
        and next(seen) in lost
    )


def listening(flow):
    """The flow with a window that stands, and a list of the ACK and loss events that it gets."""
    events = []

    class Listening(quicgym.Controller):
        def on_start(self, max_datagram_bytes):
            self.window_bytes = 40 * max_datagram_bytes

        def on_ack(self, event):
            sample = event.sample
            limited = (event.app_limited, sample.app_limited)
            events.append(("ack", event.now, sample.interval, sample.delivery_rate, limited))

        def on_loss(self, event):
            lost = (event.lost_packets, event.lost_bytes, event.largest_lost_sent_time)
            events.append(("loss", event.now, *lost))

    flow.set_python_controller(describe(Listening))
    return flow, events
