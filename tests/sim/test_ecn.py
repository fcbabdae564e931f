"""Explicit congestion notification (RFC 9000 13.4, 13.2.1), and the CE threshold of queues."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from helpers.endpoints import SECOND, Pair, make_flow, make_link
from helpers.scenarios import dumbbell
from hypothesis import given, settings
from hypothesis import strategies as st

from quicgym import Simulation, _core

NOT_ECT, ECT_1, ECT_0, CE = range(4)


class Codepoints(Pair):
    """Keeps the ECN codepoint of every datagram, as it was sent."""

    def __init__(self, flow, **arguments):
        self.sent = {"data": [], "ack": []}
        super().__init__(flow, **arguments)

    def carry(self, direction, now, datagram):
        self.sent[direction].append(datagram[2])
        super().carry(direction, now, datagram)


@pytest.mark.parametrize(
    "controller, ecn, codepoint",
    [
        ("newreno", False, NOT_ECT),
        ("newreno", True, ECT_0),
        ("prague", False, ECT_1),
        ("prague", True, ECT_1),
    ],
)
def test_a_controller_for_l4s_gets_ect_1_whether_or_not_the_flow_has_ecn(
    controller, ecn, codepoint
):
    pair = Codepoints(make_flow(controller=controller, ecn=ecn)).run_until(SECOND // 4)
    handshake, *others = pair.sent["data"]
    assert handshake == NOT_ECT
    assert set(others) == {codepoint}
    assert set(pair.sent["ack"]) == {NOT_ECT}


@pytest.mark.parametrize("controller, counted", [("newreno", 0), ("prague", 1)])
def test_ack_frames_count_each_codepoint(controller, counted):
    marked = {20, 21, 40, 77}
    pair = Codepoints(
        make_flow(controller=controller, ecn=True), mark=marked.__contains__
    ).run_until(SECOND)
    _, (_, _, ranges, counts) = pair.frames("ack", "ACK")[-1]
    received = sum(last - first + 1 for first, last in ranges)
    assert received > 100
    assert counts[2] == len(marked)
    assert counts[counted] == received - len(marked)
    assert counts[1 - counted] == 0


MILLISECOND = 1_000_000
every_discipline = pytest.mark.parametrize("discipline", ["codel", "fq-codel"])

gaps = st.lists(st.integers(0, 4 * MILLISECOND), min_size=1, max_size=50)
Decision = tuple[int | None, int | None, list[int]]


def make_queue(discipline: str, ce_threshold: int) -> _core.QueueDiscipline:
    link = make_link(queue_limit=10**6)
    link.queue_discipline, link.ecn_marking, link.ce_threshold = discipline, True, ce_threshold
    return _core.QueueDiscipline(link)


def served(
    queue: _core.QueueDiscipline, gaps: list[int], codepoints: Iterable[int], service: int
) -> list[tuple[int, Decision]]:
    """Times and results of taking a packet out every `service` ns; 40 times the same gaps."""
    now = leaves = 0
    results = []
    codepoints = iter(codepoints)
    for number, gap in enumerate(gaps * 40):
        now += gap
        while leaves + service <= now:
            leaves += service
            results.append((leaves, queue.dequeue(leaves)))
        assert queue.enqueue(now, number, 1230, next(codepoints)) == []
    return results


@every_discipline
@settings(deadline=None, max_examples=50)
@given(gaps=gaps, service=st.integers(100_000, 4 * MILLISECOND), threshold=st.integers(2000, 10**7))
def test_an_l4s_packet_is_marked_above_the_threshold_and_never_dropped(
    discipline: str, gaps: list[int], service: int, threshold: int
) -> None:
    arrivals = [sum((gaps * 40)[: number + 1]) for number in range(len(gaps) * 40)]
    every = [ECT_1] * len(arrivals)
    expected = 0
    for time, (number, ecn, dropped) in served(
        make_queue(discipline, threshold), gaps, every, service
    ):
        assert dropped == []
        if number is None:
            continue
        assert number == expected
        expected += 1
        # ns-3 counts in units of 1.024 µs.
        is_late = (time - arrivals[number]) >> 10 > threshold >> 10
        assert ecn == (CE if is_late else ECT_1)


@every_discipline
@settings(deadline=None, max_examples=50)
@given(
    gaps=gaps,
    service=st.integers(100_000, 4 * MILLISECOND),
    codepoint=st.sampled_from([NOT_ECT, ECT_0]),
)
def test_other_packets_meet_the_discipline_as_it_is_without(
    discipline: str, gaps: list[int], service: int, codepoint: int
) -> None:
    every = [codepoint] * (40 * len(gaps))
    plain, with_threshold = (
        served(make_queue(discipline, threshold), gaps, every, service)
        for threshold in (0, MILLISECOND)
    )
    assert plain == with_threshold


def test_prague_has_the_threshold_as_its_delay_beside_cubic() -> None:
    queue = {"limit": 1000, "discipline": "fq-codel", "ecn_marking": True, "ce_threshold_ms": 1.0}
    flows = [{"controller": "prague"}, {"controller": "cubic", "ecn": True}]
    with Simulation(dumbbell(flows, bottleneck={"queue": queue})) as simulation:
        simulation.run()
        prague, cubic = (flow.statistics for flow in simulation.flows)
    delays = [t["queue_delay_sum_seconds"] / t["queue_samples"] for t in (prague, cubic)]
    assert delays[0] < 0.002 < delays[1]
    assert prague["ecn_marks"] > 10 * cubic["ecn_marks"] > 0
    assert 0.8 < prague["goodput_bytes"] / cubic["goodput_bytes"] < 1.25


@pytest.mark.parametrize("discipline", ["fifo", "pie", "red", "dualpi2"])
def test_a_discipline_without_a_threshold_says_which_have_one(discipline: str) -> None:
    link = make_link()
    link.queue_discipline, link.ce_threshold = discipline, MILLISECOND
    with pytest.raises(ValueError, match=f"{discipline} has no CE threshold; .* codel or fq-codel"):
        _core.QueueDiscipline(link)
