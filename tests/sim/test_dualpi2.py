"""DualPI2 against the pseudocode of RFC 9332, appendix A.2, decision by decision."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

import pytest
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
    scenario = Scenario.model_validate(
        {
            "name": "dualpi2",
            "duration_s": 20,
            "bottleneck": {
                **{"rate_mbps": 20, "delay_ms": 10},
                "queue": {"limit": 1000, "discipline": "dualpi2"},
            },
            "access": {"rate_mbps": 100, "delay_ms": 1},
            "flows": [{"controller": "cubic", "ecn": ecn, "count": 2}],
        }
    )
    with Simulation(scenario) as simulation:
        simulation.run()
        statistics = [flow.statistics for flow in simulation.flows]
    samples = sum(flow["queue_samples"] for flow in statistics)
    delay = sum(flow["queue_delay_sum_seconds"] for flow in statistics) / samples
    assert 0.008 < delay < 0.022
    marks = sum(flow["ecn_marks"] for flow in statistics)
    assert (marks > 0) == ecn
