"""DualPI2 against the pseudocode of RFC 9332, appendix A.2, decision by decision."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

import numpy as np
import pytest
from helpers import scenarios
from helpers.endpoints import make_link
from hypothesis import given, settings
from hypothesis import strategies as st

from quicgym import Scenario, Simulation, _core

NOT_ECT, ECT_1, ECT_0, CE = range(4)
MILLISECOND = 1_000_000


def seconds(nanoseconds: int) -> float:
    return nanoseconds * 1e-9


@dataclass
class PseudocodeQueue:
    packets: deque[tuple[int, int, int, int]] = field(default_factory=deque)
    count: float = 0.0

    def time(self, now: int) -> int:
        return now - self.packets[0][0] if self.packets else 0

    def recur(self, likelihood: float) -> bool:
        self.count += likelihood
        if self.count > 1:
            self.count -= 1
            return True
        return False


class Pseudocode:
    """Names as in the RFC. The scheduler is ours: 15 bytes of lq for each of cq, in packets."""

    k = 2.0
    target, tupdate = 15 * MILLISECOND, 15 * MILLISECOND
    rtt_max = 0.1
    alpha = 0.1 * 0.015 / (rtt_max * rtt_max)
    beta = 0.3 / rtt_max
    min_th, th_range, th_len = 800_000, 400_000, 1
    p_cmax, p_lmax = 0.25, 1.0

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.lq, self.cq = PseudocodeQueue(), PseudocodeQueue()
        self.p = self.p_cl = self.p_c = 0.0
        self.prevq = self.next_update = self.lead = 0

    def enqueue(self, now: int, number: int, size: int, ecn: int) -> list[int]:
        if len(self.lq.packets) + len(self.cq.packets) + 1 > self.limit:
            return [number]
        queue = self.lq if ecn % 2 == 1 else self.cq
        queue.packets.append((now, number, size, ecn))
        return []

    def scheduler(self) -> PseudocodeQueue:
        if not self.lq.packets:
            return self.cq
        if not self.cq.packets:
            self.lead = 0
            return self.lq
        if self.lead >= 15 * self.cq.packets[0][2]:
            self.lead -= 15 * self.cq.packets[0][2]
            return self.cq
        self.lead += self.lq.packets[0][2]
        return self.lq

    def laqm(self, qdelay: int) -> float:
        if qdelay >= self.min_th + self.th_range:
            return 1
        if qdelay > self.min_th:
            return seconds(qdelay - self.min_th) / seconds(self.th_range)
        return 0

    def dequeue(self, now: int) -> tuple[int | None, int | None, list[int]]:
        dropped = []
        while self.lq.packets or self.cq.packets:
            if self.scheduler() is self.lq:
                stamp, number, _, ecn = self.lq.packets.popleft()
                if self.p_cl < self.p_lmax:
                    native = self.laqm(now - stamp) if len(self.lq.packets) > self.th_len else 0
                    if self.lq.recur(max(native, self.p_cl)):
                        ecn = CE
                else:
                    if self.lq.recur(self.p_c):
                        dropped.append(number)
                        continue
                    if self.lq.recur(self.p_cl):
                        ecn = CE
            else:
                stamp, number, _, ecn = self.cq.packets.popleft()
                if self.cq.recur(self.p_c):
                    if ecn == NOT_ECT or self.p_c >= self.p_cmax:
                        dropped.append(number)
                        continue
                    ecn = CE
            return number, ecn, dropped
        return None, None, dropped

    def update_before(self, now: int) -> None:
        while self.next_update < now:
            curq = max(self.cq.time(self.next_update), self.lq.time(self.next_update))
            self.p += self.alpha * seconds(curq - self.target)
            self.p += self.beta * seconds(curq - self.prevq)
            self.p = min(max(self.p, 0), 1)
            self.p_cl = min(self.k * self.p, 1)
            self.p_c = self.p * self.p
            self.prevq = curq
            self.next_update += self.tupdate


packets = st.tuples(
    st.integers(0, 2 * MILLISECOND),  # since the packet before
    st.sampled_from([60, 1230, 1500]),
    st.sampled_from([NOT_ECT, ECT_1, ECT_0, CE]),
)


@settings(deadline=None, max_examples=100)
@given(
    arrivals=st.lists(packets, min_size=1, max_size=60),
    repeats=st.integers(1, 40),
    service=st.integers(100_000, 4 * MILLISECOND),
    limit=st.integers(1, 400),
)
def test_every_decision_is_that_of_the_pseudocode(
    arrivals: list[tuple[int, int, int]], repeats: int, service: int, limit: int
) -> None:
    link = make_link(queue_limit=limit)
    link.queue_discipline = "dualpi2"
    ours, rfc = _core.QueueDiscipline(link), Pseudocode(limit)
    now, served = 0, 0
    for number, (gap, size, ecn) in enumerate(arrivals * repeats):
        now += gap
        while served + service <= now:
            served += service
            rfc.update_before(served)
            assert ours.dequeue(served) == rfc.dequeue(served)
        rfc.update_before(now)
        assert ours.enqueue(now, number, size, ecn) == rfc.enqueue(now, number, size, ecn)
        assert ours.packets == len(rfc.lq.packets) + len(rfc.cq.packets)


def flood(ecn: int, packets: int = 4000) -> tuple[int, int, int]:
    """Sends 1.25 times what the link carries; returns the numbers of passed, marked and dropped."""
    link = make_link(queue_limit=10**6)
    link.queue_discipline = "dualpi2"
    queue = _core.QueueDiscipline(link)
    passed = marked = dropped = 0
    for number in range(packets):
        now = number * MILLISECOND
        queue.enqueue(now, number, 1500, ecn)
        if number % 5:
            _, codepoint, gone = queue.dequeue(now)
            passed += codepoint is not None
            marked += codepoint == CE
            dropped += len(gone)
    return passed, marked, dropped


def test_an_overload_is_answered_with_drops_whatever_the_codepoint() -> None:
    for ecn in (NOT_ECT, ECT_0, ECT_1):
        passed, marked, dropped = flood(ecn)
        assert dropped > 0.1 * passed
        assert (marked > 0) == (ecn != NOT_ECT)


@pytest.mark.parametrize("ecn", [False, True])
def test_classic_flows_are_held_at_the_target_delay(ecn: bool) -> None:
    with Simulation(dumbbell([{"controller": "cubic", "ecn": ecn, "count": 2}])) as simulation:
        simulation.run()
        statistics = [flow.statistics for flow in simulation.flows]
    assert 8 < queue_delay_ms(*statistics) < 22
    assert (sum(flow["ecn_marks"] for flow in statistics) > 0) == ecn


def dumbbell(flows: list[dict[str, object]], **fields: object) -> Scenario:
    """20 Mbps and 24 ms with a DualPI2 queue of 1000 packets, for 20 s."""
    queue = {"limit": 1000, "discipline": "dualpi2"}
    return scenarios.dumbbell(flows, bottleneck={"queue": queue}, **fields)


def probe(controller: str, **fields: object) -> dict[str, object]:
    """A flow of paced packets far apart, which builds no queue of its own."""
    application = {"kind": "constant-rate", "rate_mbps": 0.4}
    return {"controller": controller, "application": application, **fields}


def queue_delay_ms(*totals: dict[str, float]) -> float:
    delay = sum(total["queue_delay_sum_seconds"] for total in totals)
    return 1e3 * delay / sum(total["queue_samples"] for total in totals)


@settings(deadline=None, max_examples=10)
@given(
    bulk=st.integers(1, 4),
    load_mbps=st.floats(0.5, 4),
    size_bytes=st.sampled_from([1000, 20_000, 200_000]),
    seed=st.integers(0, 2**32),
)
def test_short_l4s_flows_beside_classic_bulk_flows(
    bulk: int, load_mbps: float, size_bytes: int, seed: int
) -> None:
    arriving = {"load_mbps": load_mbps, "sizes": size_bytes, "controller": "prague"}
    flows = [probe("prague"), {"controller": "cubic", "ecn": True, "count": bulk}]
    with Simulation(dumbbell(flows, short_flows=[arriving]), seed=seed) as simulation:
        simulation.run()
        l4s, *classic = [flow.statistics for flow in simulation.flows]
        transfers = simulation.transfers()
        waiting = simulation.queue_trace()["packets"][-1]
    # Conservation: every packet is received, dropped, in the queue, or in one of the links.
    for total in (l4s, *classic):
        rest = total["sent_packets"] - total["received_packets"] - total["dropped_packets"]
        assert 0 <= rest <= waiting + 20e6 * 0.012 / 8 / 1200 + 100e6 * 0.001 / 8 / 1200 + 2
    completed = transfers[transfers["completion"] != 2**63 - 1]
    carried = sum(total["goodput_bytes"] for total in (l4s, *classic))
    # A transfer begins with an Initial padded to 1200 bytes (RFC 9000 14.1).
    carried += int(completed["size_bytes"].sum()) + 1200 * len(completed)
    assert 0.7 * 20e6 < carried * 8 / 20 < 20e6
    # Drops are for the overload of a slow start. A transfer takes one and a half RTTs at least.
    assert all(t["dropped_packets"] < 0.02 * t["sent_packets"] for t in (l4s, *classic))
    early = transfers[transfers["start"] < 15_000 * MILLISECOND]
    assert np.mean(early["completion"] != 2**63 - 1) > 0.9
    assert (completed["completion"] - completed["start"]).min() > 35 * MILLISECOND
    # The classic queue has the target's delay, the other one a small part of it.
    delay_ms = queue_delay_ms(*classic)
    assert 5 < delay_ms < 25
    assert queue_delay_ms(l4s) < 0.2 * delay_ms


@pytest.mark.parametrize("bulk", [4, 16])
def test_l4s_marks_are_coupled_to_those_of_the_classic_queue(bulk: int) -> None:
    """Appendix A: p_CL = k * p' and p_C = p'^2, with k = 2."""
    # A packet every 24 ms each, and never two at once.
    probes = [probe("prague", start_s=0.008 * number) for number in range(3)]
    flows = [*probes, {"controller": "cubic", "ecn": True, "count": bulk}]
    with Simulation(dumbbell(flows, duration_s=100.0)) as simulation:
        simulation.run()
        totals = [flow.statistics for flow in simulation.flows]

    def marked(some: list[dict[str, float]]) -> float:
        marks, received = (sum(t[name] for t in some) for name in ("ecn_marks", "received_packets"))
        return marks / received

    # Without a queue of their own, these marks are the coupled ones. p' varies, so the mean of its
    # square is above the square of its mean.
    assert 0.75 < marked(totals[:3]) / (2 * marked(totals[3:]) ** 0.5) < 1.1


def test_flows_of_all_codepoints_share_the_link() -> None:
    flows = [
        {"name": "not-ect", "controller": "cubic"},
        {"name": "ect-0", "controller": "cubic", "ecn": True},
        {"name": "ect-1", "controller": "prague"},
    ]
    with Simulation(dumbbell(flows, duration_s=40.0)) as simulation:
        simulation.run()
        not_ect, ect_0, ect_1 = (flow.statistics for flow in simulation.flows)
    assert not_ect["ecn_marks"] == 0 < not_ect["dropped_packets"]
    assert ect_0["dropped_packets"] == 0 < ect_0["ecn_marks"]
    assert ect_1["dropped_packets"] == 0 < ect_1["ecn_marks"]
    goodputs = [total["goodput_bytes"] for total in (not_ect, ect_0, ect_1)]
    assert min(goodputs) > 0.3 * max(goodputs)
    assert queue_delay_ms(ect_1) < 2 < 8 < queue_delay_ms(ect_0)
