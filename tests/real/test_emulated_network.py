"""A scenario's network for packets from outside: every arrival is the native engine's."""

from __future__ import annotations

import heapq
import struct
from collections.abc import Callable

import numpy as np
import pytest
from helpers.endpoints import MILLISECOND, NEVER, SECOND, make_flow, make_link, make_scenario

from quicgym import _core

WIRE_OVERHEAD = 30
FORWARD, BACKWARD = _core.DataDirection.forward, _core.DataDirection.backward


class Host:
    """One endpoint's side of the network; see `drive` of _core.Sender and _core.Receiver."""

    def __init__(self, loop: Loop, endpoint, path: int, way) -> None:
        self.endpoint = endpoint
        self._loop = loop
        self._path = path
        self._way = way  # of what it sends
        self.arrivals: list = []  # a heap of (time, number of the datagram, datagram)
        self.received: list[int] = []

    def next_arrival(self):
        return self.arrivals[0][0] if self.arrivals else NEVER

    def arrived(self):
        return self.arrivals[0][2]

    def on_received(self, now, error):
        assert error is None, error
        self.received.append(now)
        heapq.heappop(self.arrivals)

    def send(self, now, datagram):
        self._loop.send(now, self._path, self._way, datagram)


class Loop:
    """Endpoints over an EmulatedNetwork in virtual time, as a program would run them."""

    def __init__(self, scenario, seed: int) -> None:
        self.network = _core.EmulatedNetwork(scenario, seed)
        self.sent: list[tuple] = []
        self.fates: dict[int, tuple] = {}
        self.hosts = {}
        for path, flow in enumerate(scenario.flows):
            sender = _core.Sender(flow, path, seed, flow.start)
            self.hosts[path, FORWARD] = Host(self, sender, path, FORWARD)
            receiver = _core.Receiver(flow, flow.start)
            self.hosts[path, BACKWARD] = Host(self, receiver, path, BACKWARD)

    def send(self, now, path, way, datagram):
        _, size, ecn, _ = datagram
        number = len(self.sent)
        self.sent.append((now, size + WIRE_OVERHEAD, path, way == BACKWARD, datagram))
        assert self.network.send(number, now, path, way, size + WIRE_OVERHEAD, ecn) == 0

    def run_until(self, until):
        hosts = self.hosts.values()
        while True:
            now = min(min(host.endpoint.next_timeout, host.next_arrival()) for host in hosts)
            now = min(now, self.network.next_event)
            if now > until:
                return
            for number, time, fate, path, way, ecn in self.network.advance(now + 1):
                self.fates[number] = (fate, time)
                if fate == _core.Fate.delivered:
                    prefix, size, _, sealed_number = self.sent[number][4]
                    far = self.hosts[path, BACKWARD if way == FORWARD else FORWARD]
                    heapq.heappush(far.arrivals, (time, number, (prefix, size, ecn, sealed_number)))
            for host in hosts:
                host.endpoint.drive(host, now + 1)


def with_queue(discipline: str):
    link = make_link(queue_limit=40)
    link.queue_discipline = discipline
    return link


def in_bytes():
    link = make_link(queue_limit=40_000)
    link.queue_unit = _core.QueueUnit.bytes
    return link


def lossy():
    link = make_link(queue_limit=20)
    link.loss.kind = _core.LossKind.gilbert_elliott
    link.loss.good_to_bad, link.loss.bad_to_good, link.loss.loss_in_bad = 0.01, 0.3, 0.5
    return link


def stepped():
    def step(at, rate):
        result = _core.RateStep()
        result.at, result.rate_bits_per_second = at, rate
        return result

    link = make_link(queue_limit=30)
    link.rate_schedule = [
        step(SECOND, 4_000_000),
        step(2 * SECOND, 0),
        step(2_200_000_000, 9_000_000),
    ]
    return link


def traced():
    link = make_link(queue_limit=50)
    link.delivery_opportunities_ms = [1, 1, 2, 5, 5, 9]
    return link


def jittery(reordering: bool):
    link = make_link(queue_limit=50)
    link.jitter.kind = _core.JitterKind.uniform
    link.jitter.max = 8 * MILLISECOND
    link.reordering = reordering
    return link


def policed():
    link = make_link()
    policer = _core.Policer()
    policer.rate_bits_per_second, policer.burst_bytes = 5_000_000, 30_000
    link.policer = policer
    return link


def shaped():
    link = make_link()
    shaper = _core.Shaper()
    shaper.rate_bits_per_second, shaper.burst_bytes = 5_000_000, 30_000
    link.shaper = shaper
    return link


def rerouted(discipline="drop-tail"):
    link = with_queue(discipline)
    paths = []
    for at_s, rate, delay in ((1, 3_000_000, 60), (2, 30_000_000, 2)):
        path = _core.Reroute()
        path.at, path.rate_bits_per_second, path.delay = at_s * SECOND, rate, delay * MILLISECOND
        paths.append(path)
    link.reroutes = paths
    return link


def ack_bursts():
    link = make_link()
    link.opens_every = 25 * MILLISECOND
    return link


def one_flow(bottleneck, reverse=None, controller="cubic", **fields):
    return make_scenario([make_flow(controller=controller, **fields)], bottleneck, reverse)


def three_flows():
    flows = [
        make_flow(controller=name, start=at * MILLISECOND, extra_delay=at * MILLISECOND)
        for name, at in (("cubic", 0), ("bbr", 100), ("newreno", 30))
    ]
    return make_scenario(flows)


def chain():
    flows = [
        make_flow(controller="cubic"),
        make_flow(controller="bbr", first_hop=1, last_hop=1),
        make_flow(controller="newreno", first_hop=2),
    ]
    second = make_link(10_000_000, queue_limit=30)
    return make_scenario(
        flows, chain=[second, make_link()], reverse_chain=[make_link(), make_link()]
    )


def marking(discipline):
    link = with_queue(discipline)
    link.ecn_marking = True
    return link


SCENARIOS: dict[str, Callable] = {
    "drop-tail": lambda: one_flow(make_link()),
    "bytes": lambda: one_flow(in_bytes()),
    "random-loss": lambda: one_flow(lossy(), lossy(), "newreno"),
    "rate-schedule": lambda: one_flow(stepped()),
    "trace": lambda: one_flow(traced(), controller="bbr"),
    "jitter": lambda: one_flow(jittery(False), jittery(False)),
    "reordering": lambda: one_flow(jittery(True), jittery(True)),
    "policer": lambda: one_flow(policed(), controller="newreno"),
    "shaper": lambda: one_flow(shaped(), controller="newreno"),
    "reroutes": lambda: one_flow(rerouted(), rerouted()),
    "reroutes-codel": lambda: one_flow(rerouted("codel")),
    "ack-bursts": lambda: one_flow(make_link(), ack_bursts(), "bbr"),
    "three-flows": three_flows,
    "chain": chain,
    "codel-ecn": lambda: one_flow(marking("codel"), ecn=True),
    "pie": lambda: one_flow(with_queue("pie")),
    "red": lambda: one_flow(with_queue("red")),
    "fq-codel": lambda: three_flows_over("fq-codel"),
    "dualpi2": lambda: one_flow(with_queue("dualpi2"), controller="prague"),
}


LOSSLESS = {"dualpi2", "reordering"}
"""Those whose queue drops nothing within the time of the test."""


def three_flows_over(discipline):
    scenario = three_flows()
    scenario.bottleneck = with_queue(discipline)
    return scenario


def engine_run(scenario, seconds):
    scenario.record_deliveries = True
    engine = _core.NativeSimulation(scenario, 3)
    engine.run_until(seconds * SECOND)
    arrivals: dict[int, list[int]] = {path: [] for path in range(len(scenario.flows))}
    for path, _, time, _ in struct.iter_unpack("<QQqq", engine.deliveries()):
        arrivals[path].append(time)
    return engine, arrivals


@pytest.mark.parametrize("name", SCENARIOS)
def test_endpoints_over_it_do_what_they_do_in_the_engine(name: str) -> None:
    scenario, seconds = SCENARIOS[name](), 3
    engine, arrivals = engine_run(scenario, seconds)
    loop = Loop(scenario, 3)
    loop.run_until(seconds * SECOND)
    for path in range(len(scenario.flows)):
        totals = engine.statistics(path)
        sender = loop.hosts[path, FORWARD].endpoint.statistics(seconds * SECOND)
        receiver = loop.hosts[path, BACKWARD].endpoint.statistics(seconds * SECOND)
        assert sender["sent_packets"] == totals["sent_packets"] > 300
        assert sender["rtt_sum_seconds"] == totals["rtt_sum_seconds"]
        assert receiver["received_bytes"] == totals["received_bytes"]
        gone = {
            number
            for number, (fate, time) in loop.fates.items()
            if fate != _core.Fate.delivered and time <= seconds * SECOND
            if loop.sent[number][2:4] == (path, False)
        }
        assert len(gone) == totals["dropped_packets"]
        # Initial packets have no number that the engine records.
        received = loop.hosts[path, BACKWARD].received
        assert received[-len(arrivals[path]) :] == arrivals[path]


@pytest.mark.parametrize("name", SCENARIOS)
def test_replayed_times_give_the_same_arrivals_and_drops(name: str) -> None:
    scenario, seconds = SCENARIOS[name](), 3
    loop = Loop(scenario, 3)
    loop.run_until(seconds * SECOND)
    times, sizes, paths, backward, datagrams = zip(*loop.sent, strict=True)
    arrivals, fates = _core.replay(
        scenario, 3,
        np.array(times, np.int64), np.array(sizes, np.uint32),
        np.array(paths, np.uint32), np.array(backward, bool),
        np.array([ecn for _, _, ecn, _ in datagrams], np.uint8),
    )  # fmt: skip
    assert any(fate == _core.Fate.dropped for fate, _ in loop.fates.values()) or name in LOSSLESS
    for number, (fate, time) in loop.fates.items():
        assert fates[number] == fate.value
        assert arrivals[number] == (time if fate == _core.Fate.delivered else NEVER)


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_packet_that_still_waits_is_not_counted_as_delivered_or_lost(name: str) -> None:
    loop = Loop(SCENARIOS[name](), 3)
    for until in (100 * MILLISECOND, 300 * MILLISECOND, SECOND):
        loop.run_until(until)
        for way in (FORWARD, BACKWARD):
            counted = loop.network.totals(way, until)
            happened = {fate: 0 for fate in ("delivered", "dropped", "lost", "held")}
            delivered_bytes = 0
            for number, (fate, time) in loop.fates.items():
                _, size, _, backward, _ = loop.sent[number]
                if time <= until and backward == (way == BACKWARD):
                    happened[fate.name] += 1
                    delivered_bytes += size if fate == _core.Fate.delivered else 0
            assert {fate: counted[f"{fate}_packets"] for fate in happened} == happened
            assert counted["delivered_bytes"] == delivered_bytes


@pytest.mark.parametrize("discipline", ["drop-tail", "fifo"])
def test_a_link_delivers_no_more_than_its_rate_while_packets_wait(discipline: str) -> None:
    rate, size, packets = 2_000_000, 1430, 100
    link = make_link(rate, queue_limit=packets)
    link.queue_discipline = discipline
    network = _core.EmulatedNetwork(one_flow(link), 0)
    for number in range(packets):
        network.send(number, 0, 0, FORWARD, size)
    for now in range(0, SECOND, 20 * MILLISECOND):
        network.advance(now)
        totals = network.totals(FORWARD, now)
        assert totals["delivered_bytes"] * 8 <= rate * now / SECOND
    network.advance(NEVER)
    assert network.totals(FORWARD, SECOND)["delivered_packets"] == packets
