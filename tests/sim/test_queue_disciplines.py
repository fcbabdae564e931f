"""Queue disciplines: native engine and ns-3 decide the same for every packet."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from helpers.random_scenarios import flows, links, wired
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from quicgym import Scenario, Simulation
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
