"""Queue disciplines decide on each packet once; test_path_parity.py compares them with ns-3."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.endpoints import make_link
from hypothesis import given, settings
from hypothesis import strategies as st

import quicgym
from quicgym import Scenario, Simulation, _core
from quicgym.envs.scenarios.engines import EngineName
from quicgym.envs.scenarios.links import Queue
from quicgym.envs.scenarios.words import network_in_words
from quicgym.envs.simulation.metrics import FlowResult

EVERY = [entry for entry in _core.queue_disciplines() if entry.name != "drop-tail"]
MARKING = [entry.name for entry in EVERY if entry.can_mark]
IN_PACKETS = [entry.name for entry in EVERY if not entry.counts_bytes]


def test_every_discipline_is_listed_with_what_it_can_do() -> None:
    facts = {
        entry.name: [
            fact
            for fact in ("can_mark", "always_marks", "counts_bytes", "has_ce_threshold", "in_ns3")
            if getattr(entry, fact)
        ]
        for entry in _core.queue_disciplines()
    }
    assert facts == {
        "drop-tail": ["counts_bytes", "in_ns3"],
        "fifo": ["counts_bytes", "in_ns3"],
        "sfq": [],
        "codel": ["can_mark", "counts_bytes", "has_ce_threshold", "in_ns3"],
        "dualpi2": ["can_mark", "always_marks", "counts_bytes"],
        "fq-codel": ["can_mark", "has_ce_threshold", "in_ns3"],
        "pie": ["can_mark", "counts_bytes", "in_ns3"],
        "red": ["can_mark", "counts_bytes", "in_ns3"],
    }
    schema = Scenario.model_json_schema()["$defs"]["Queue"]["properties"]["discipline"]
    assert schema["enum"] == [*facts]
    page = (Path(__file__).parents[2] / "docs/reference/networks.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| `([\w-]+)` \|.* \| (?:native|both) \|$", page, re.M) == [*facts]
    with pytest.raises(ValueError, match="no queue discipline decides"):
        _core.QueueDiscipline(make_link())


NOT_ECT, ECT_1, ECT_0, CE = range(4)
events = st.lists(
    st.tuples(
        st.integers(0, 3_000_000),  # ns since the event before
        st.integers(0, 3),  # packets that leave after this one arrives
        st.integers(0, 2000),  # flow
        st.integers(40, 1500),  # bytes
        st.sampled_from([NOT_ECT, ECT_1, ECT_0, CE]),
    ),
    min_size=1,
    max_size=200,
)


@pytest.mark.parametrize("discipline", [entry.name for entry in EVERY])
@settings(deadline=None, max_examples=60)
@given(
    events=events,
    repeats=st.integers(1, 20),
    limit=st.integers(1, 100_000),
    in_bytes=st.booleans(),
    marking=st.booleans(),
)
def test_every_packet_passes_once_or_is_dropped_once(
    discipline: str,
    events: list[tuple[int, int, int, int, int]],
    repeats: int,
    limit: int,
    in_bytes: bool,
    marking: bool,
) -> None:
    link = make_link(queue_limit=limit)
    link.queue_discipline = discipline
    link.ecn_marking = marking and discipline in MARKING
    if in_bytes and discipline not in IN_PACKETS:
        link.queue_unit = _core.QueueUnit.bytes
    queue = _core.QueueDiscipline(link)
    sent: dict[int, tuple[int, int]] = {}
    gone: list[int] = []
    now = 0
    last_of: dict[tuple[int, bool], int] = {}

    def take() -> bool:
        number, ecn, dropped = queue.dequeue(now)
        gone.extend(dropped)
        if number is None:
            return False
        gone.append(number)
        flow, ecn_before = sent[number]
        assert ecn == ecn_before or (ecn == CE and ecn_before != NOT_ECT)
        # Packets of a flow keep their order, in each of DualPI2's queues.
        kind = (flow, discipline == "dualpi2" and ecn_before in (ECT_1, CE))
        assert last_of.get(kind, -1) < number
        last_of[kind] = number
        return True

    for number, (gap, leaving, flow, size, ecn) in enumerate(events * repeats):
        now += gap
        sent[number] = (flow, ecn)
        gone.extend(queue.enqueue(now, number, size, ecn, flow))
        assert (queue.bytes if link.queue_unit == _core.QueueUnit.bytes else queue.packets) <= limit
        for _ in range(leaving):
            take()
    while take():
        now += 1_000_000
    assert queue.packets == queue.bytes == 0
    assert sorted(gone) == list(range(len(sent)))


@pytest.mark.parametrize("discipline", ["fq-codel", "sfq"])
def test_flows_share_a_queue_of_fair_queueing_only_beyond_1024(discipline: str) -> None:
    link = make_link(queue_limit=10_000)
    link.queue_discipline = discipline
    queue = _core.QueueDiscipline(link)
    number = 0
    for flow in (0, 1023, 1024):
        for _ in range(3):
            queue.enqueue(0, number, 1500, 0, flow)
            number += 1
    order = [queue.dequeue(0)[0] for _ in range(9)]
    # Flows 0 and 1024 take turns with 1023 as one.
    assert order == [0, 3, 1, 4, 2, 5, 6, 7, 8]


class PlainSfq:
    """SFQ in lists: turns of 1500 bytes, and the last packet of the longest queue is dropped."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.queues: dict[int, list[tuple[int, int]]] = {}
        self.round: list[tuple[int, int]] = []  # flow and bytes that its turn may still send

    def enqueue(self, number: int, size: int, flow: int) -> list[int]:
        queue = self.queues.setdefault(flow, [])
        dropped = []
        if sum(map(len, self.queues.values())) == self.limit:
            longest = max(self.queues.values(), key=len)
            if len(longest) <= len(queue) + 1:
                return [number]
            dropped.append(longest.pop()[0])
        if not queue:
            self.round.append((flow, 1500))
        queue.append((number, size))
        return dropped

    def dequeue(self) -> int | None:
        while self.round:
            flow, left = self.round.pop(0)
            if left <= 0:
                self.round.append((flow, left + 1500))
                continue
            number, size = self.queues[flow].pop(0)
            if self.queues[flow]:
                self.round.insert(0, (flow, left - size))
            return number
        return None


@settings(deadline=None, max_examples=100)
@given(events=events, limit=st.integers(1, 40), flows=st.integers(1, 6))
def test_sfq_serves_turns_of_1500_bytes_and_drops_from_the_longest_queue(
    events: list[tuple[int, int, int, int, int]], limit: int, flows: int
) -> None:
    link = make_link(queue_limit=limit)
    link.queue_discipline = "sfq"
    queue, plain = _core.QueueDiscipline(link), PlainSfq(limit)
    for number, (_, leaving, flow, size, ecn) in enumerate(events):
        assert queue.enqueue(0, number, size, ecn, flow % flows) == plain.enqueue(
            number, size, flow % flows
        )
        for _ in range(leaving):
            assert queue.dequeue(0)[0] == plain.dequeue()


def test_a_small_flow_keeps_its_rate_and_waits_for_no_queue_beside_a_bulk_flow_in_sfq() -> None:
    def small_flow(discipline: str) -> FlowResult:
        run = quicgym.run(
            Scenario.model_validate(
                {
                    **{"name": discipline, "duration_s": 10},
                    "bottleneck": {
                        **{"rate_mbps": 10, "delay_ms": 10},
                        "queue": {"limit": 200, "discipline": discipline},
                    },
                    "access": {"rate_mbps": 100, "delay_ms": 1},
                    "flows": [
                        {"controller": "cubic"},
                        {
                            "controller": "cubic",
                            "application": {"kind": "constant-rate", "rate_mbps": 1},
                        },
                    ],
                }
            )
        )
        return run.flows[1]

    fair, shared = small_flow("sfq"), small_flow("fifo")
    assert fair.goodput_mbps > 0.95
    assert fair.mean_queue_delay_ms < 4 < 50 < shared.mean_queue_delay_ms


# 10 Mbps and 2 · (10 + 2 · 2.5) = 30 ms: a BDP of 37,500 bytes.
PATH: dict[str, Any] = {
    "name": "path",
    "duration_s": 4,
    "access": {"rate_mbps": 100, "delay_ms": 2.5},
    "flows": [{"controller": "cubic"}, {"controller": "cubic", "extra_delay_ms": 30}],
}


def path(queue: dict[str, Any], **more: Any) -> Scenario:
    link = {"rate_mbps": 10, "delay_ms": 10, "queue": queue}
    return Scenario.model_validate({**PATH, "bottleneck": link, **more})


def deliveries(scenario: Scenario, engine: EngineName) -> np.ndarray:
    with Simulation(scenario, engine, record_deliveries=True) as simulation:
        simulation.run()
        return simulation.deliveries()


@pytest.mark.parametrize("engine", ["native", pytest.param("ns3", marks=pytest.mark.ns3)])
@pytest.mark.parametrize(
    ("discipline", "explicit"),
    [
        ("drop-tail", {"limit": 18_750, "unit": "bytes"}),
        ("fq-codel", {"limit": 15}),  # which counts packets: 18,750 bytes / 1230 bytes
    ],
)
def test_half_a_bdp_is_the_explicit_limit(
    engine: EngineName, discipline: str, explicit: dict[str, Any]
) -> None:
    found = deliveries(path({"limit": 0.5, "unit": "bdp", "discipline": discipline}), engine)
    expected = deliveries(path({**explicit, "discipline": discipline}), engine)
    np.testing.assert_array_equal(found, expected)
    other = deliveries(path({"limit": 1, "unit": "bdp", "discipline": discipline}), engine)
    assert len(other) != len(expected)


def test_codel_still_drops_after_73_minutes_where_32_bits_of_its_clock_are_full() -> None:
    flow = {"controller": "external", "parameters": {"window_bytes": 60_000}, "count": 6}
    link = {"rate_mbps": 2, "delay_ms": 10, "queue": {"limit": 1000, "discipline": "codel"}}
    scenario = {
        "name": "long", "duration_s": 4600, "access": {"rate_mbps": 100, "delay_ms": 5},
        "bottleneck": link, "flows": [flow],
    }  # fmt: skip
    run = quicgym.run(
        Scenario.model_validate(scenario), trace_interval_ms=None, marks_s=[4000, 4100, 4450, 4550]
    )
    before, after = (
        sum(total["dropped_packets"] for total in run.over(*window).totals)
        for window in ((4000, 4100), (4450, 4550))
    )
    assert after > 0.8 * before > 1000


def test_every_link_has_its_own_rate_and_the_lowest_base_rtt() -> None:
    bdp = {"limit": 2, "unit": "bdp"}
    scenario = path(
        bdp,
        reverse={"rate_mbps": 1, "delay_ms": 10, "queue": bdp},
        chain=[{"rate_mbps": 5, "delay_ms": 0, "queue": bdp}],
    )
    limits = {field: link.queue for field, link in scenario.links.items()}
    expected = {"bottleneck": 75_000, "reverse": 7500, "chain.0": 37_500, "chain.0.reverse": 37_500}
    assert limits == {field: Queue(limit=limit, unit="bytes") for field, limit in expected.items()}
    assert scenario.queue_limit == 75_000
    assert "queue of 2 BDP" in network_in_words(scenario)


def test_of_a_trace_the_mean_rate_counts(tmp_path: Path) -> None:
    trace = tmp_path / "steady.trace"
    trace.write_text("1\n2\n3\n4\n")  # 1500 bytes each ms: 12 Mbps
    link = {"trace": trace, "delay_ms": 10, "queue": {"limit": 1, "unit": "bdp"}}
    scenario = path({}, bottleneck=link, reverse={"rate_mbps": 1, "delay_ms": 10})
    assert scenario.queue_limit == 45_000


def test_a_change_of_the_path_changes_the_limit() -> None:
    scenario = path({"limit": 1, "unit": "bdp"})
    assert scenario.bottleneck is not None
    faster = scenario.bottleneck.model_copy(update={"rate_mbps": 20})
    assert scenario.model_copy(update={"bottleneck": faster}).queue_limit == 75_000
