"""Queue disciplines: native engine and ns-3 decide the same for every packet."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from helpers.endpoints import make_link
from helpers.random_scenarios import flows, links, wired
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from quicgym import Scenario, Simulation, _core
from quicgym.benchmarks.parity import compare
from quicgym.envs.scenarios.engines import EngineName

DISCIPLINES = ("fifo", "codel", "fq-codel", "pie", "red")
MARKING = ("codel", "fq-codel", "pie", "red")
SHORT, LONG = 20, 1000
"""Pairs of runs for each discipline."""


def queues(discipline: str) -> st.SearchStrategy[dict[str, Any]]:
    packets = {"limit": st.integers(1, 200)}
    in_bytes = {"limit": st.integers(1502, 300_000), "unit": st.just("bytes")}
    marking = st.booleans() if discipline in MARKING else st.just(False)
    common = {"discipline": st.just(discipline), "ecn_marking": marking}
    units = [packets] if discipline == "fq-codel" else [packets, in_bytes]
    return st.one_of(st.fixed_dictionaries({**unit, **common}) for unit in units)


def check_parity(discipline: str, pairs: int) -> None:
    managed = links(queue=queues(discipline))
    ecn_flows = st.tuples(flows, st.booleans()).map(lambda pair: {**pair[0], "ecn": pair[1]})
    paths = wired(managed, st.none() | links() | managed)
    scenarios = st.tuples(paths, st.lists(ecn_flows, min_size=1, max_size=6)).map(
        lambda pair: {**pair[0], "flows": pair[1]}
    )

    @settings(deadline=None, max_examples=pairs, suppress_health_check=list(HealthCheck))
    @given(description=scenarios, seed=st.integers(0, 2**64 - 1))
    def check(description: dict[str, Any], seed: int) -> None:
        assert compare(Scenario.model_validate(description), None, seed).difference is None

    check()


@pytest.mark.ns3
@pytest.mark.filterwarnings("ignore:.*no queue on its path marks")
@pytest.mark.parametrize("discipline", DISCIPLINES)
def test_every_packet_arrives_in_the_same_nanosecond(discipline: str) -> None:
    check_parity(discipline, SHORT)


@pytest.mark.ns3
@pytest.mark.long
@pytest.mark.filterwarnings("ignore:.*no queue on its path marks")
@pytest.mark.parametrize("discipline", DISCIPLINES)
def test_every_packet_arrives_in_the_same_nanosecond_a_thousand_times(discipline: str) -> None:
    check_parity(discipline, LONG)


def network(**queue: Any) -> Scenario:
    return Scenario.model_validate(
        {
            "name": "queues",
            "duration_s": 5,
            "bottleneck": {"rate_mbps": 10, "delay_ms": 15, "queue": queue},
            "access": {"rate_mbps": 100, "delay_ms": 2.5},
            "flows": [
                {"controller": "cubic", "ecn": queue.get("ecn_marking", False)},
                {"controller": "bbr", "start_s": 1, "stop_s": 3.7},
                {"controller": "newreno", "start_s": 0.5, "extra_delay_ms": 40},
            ],
        }
    )


LIMITS = {"packets": 80, "bytes": 100_000}
CASES = [
    {"discipline": discipline, "unit": unit, "limit": LIMITS[unit], "ecn_marking": marking}
    for discipline, unit, marking in product(DISCIPLINES, LIMITS, (False, True))
    if not (marking and discipline not in MARKING) and (discipline, unit) != ("fq-codel", "bytes")
]


@pytest.mark.ns3
@pytest.mark.parametrize("queue", CASES, ids=lambda queue: "-".join(map(str, queue.values())))
def test_statistics_and_queues_agree_at_every_moment(queue: dict[str, Any]) -> None:
    def history(engine: EngineName) -> list[Any]:
        with Simulation(network(**queue), engine, 7) as simulation:
            rows: list[Any] = []
            for step in range(1, 400):
                simulation.run_until(0.0123456789 * step)
                rows.append(simulation.queue_occupancy_seconds)
                rows += [flow.statistics for flow in simulation.flows]
            return [*rows, simulation.queue_trace().tolist()]

    native, ns3 = history("native"), history("ns3")
    for ours, theirs in zip(native, ns3, strict=True):
        assert ours == theirs


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


@pytest.mark.parametrize("discipline", [*DISCIPLINES, "dualpi2"])
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
    link.ecn_marking = marking and discipline != "fifo"
    if in_bytes and discipline != "fq-codel":
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


def test_flows_of_fq_codel_share_a_queue_only_beyond_1024() -> None:
    link = make_link(queue_limit=10_000)
    link.queue_discipline = "fq-codel"
    queue = _core.QueueDiscipline(link)
    number = 0
    for flow in (0, 1023, 1024):
        for _ in range(3):
            queue.enqueue(0, number, 1500, 0, flow)
            number += 1
    order = [queue.dequeue(0)[0] for _ in range(9)]
    # Flows 0 and 1024 take turns with 1023 as one.
    assert order == [0, 3, 1, 4, 2, 5, 6, 7, 8]
