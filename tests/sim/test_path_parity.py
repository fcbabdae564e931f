"""Native engine and ns-3 do the same: packet by packet, and at every moment of a run."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import pytest
from helpers.random_scenarios import chains, networks
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from quicgym import Scenario, Simulation, _core
from quicgym.benchmarks.parity import compare
from quicgym.benchmarks.random_networks import DISCIPLINES, FEATURES, random_chain
from quicgym.envs.scenarios.engines import EngineName

pytestmark = [
    pytest.mark.ns3,
    pytest.mark.filterwarnings("ignore:.*no queue on its path marks"),
]
KNOWN = {entry.name: entry for entry in _core.queue_disciplines()}
KINDS = [
    *(pytest.param(None, discipline, id=discipline) for discipline in DISCIPLINES),
    *(pytest.param(feature, None, id=feature) for feature in FEATURES),
]
PAIRS = [12, pytest.param(1000, marks=pytest.mark.long)]


@pytest.mark.parametrize("pairs", PAIRS)
@pytest.mark.parametrize(("feature", "discipline"), KINDS)
def test_every_packet_arrives_in_the_same_nanosecond(
    feature: str | None, discipline: str | None, pairs: int, tmp_path: Path
) -> None:
    @settings(deadline=None, max_examples=pairs, suppress_health_check=list(HealthCheck))
    @given(network=networks(discipline, feature, tmp_path), seed=st.integers(0, 2**64 - 1))
    def check(network: Scenario, seed: int) -> None:
        assert compare(network, None, seed).difference is None

    check()


@pytest.mark.parametrize("pairs", PAIRS)
@pytest.mark.parametrize("discipline", DISCIPLINES)
def test_every_packet_of_a_chain_arrives_in_the_same_nanosecond(
    discipline: str, pairs: int
) -> None:
    @settings(deadline=None, max_examples=pairs, suppress_health_check=list(HealthCheck))
    @given(chain=chains(discipline), seed=st.integers(0, 2**64 - 1))
    def check(chain: Scenario, seed: int) -> None:
        assert compare(chain, None, seed).difference is None

    check()


def path(tmp_path: Path, **link: Any) -> Scenario:
    trace = tmp_path / "cell.trace"
    trace.write_text("\n".join(str(ms) for ms in [*range(1, 200), *range(600, 900, 2)]))
    usual = {"delay_ms": 15, "queue": {"limit": 40}}
    if "trace" in link:
        link["trace"] = str(trace)
    else:
        usual["rate_mbps"] = 10
    transfer = {"kind": "transfer", "size_bytes": 300_000}
    on_off = {"kind": "on-off", "rate_mbps": 3, "on_s": 0.4, "off_s": 0.9}
    is_marking = link.get("queue", {}).get("ecn_marking", False)
    return Scenario.model_validate(
        {
            "name": "path",
            "duration_s": 5,
            "bottleneck": {**usual, **link},
            "reverse": {"rate_mbps": 10, "delay_ms": 15},
            "access": {"rate_mbps": 100, "delay_ms": 2.5},
            "flows": [
                {"controller": "cubic", "start_jitter_ms": 300, "ecn": is_marking},
                {"controller": "bbr", "start_s": 1, "stop_s": 3.7},
                {"controller": "cubic", "direction": "backward", "extra_delay_ms": 3},
                {"controller": "newreno", "application": transfer},
                {"controller": "ibcca", "application": on_off, "start_s": 0.5},
            ],
        }
    )


LIMITS = {"packets": 80, "bytes": 100_000}
SAMPLES: dict[str, dict[str, Any]] = {
    "outages": {"rate_schedule": [{"at_s": 0.5, "rate_mbps": 0}, {"at_s": 0.9, "rate_mbps": 30}]},
    "silent-for-good": {"rate_schedule": [{"at_s": 2, "rate_mbps": 0}]},
    "trace": {"trace": "cell"},
    "openings": {"opens_every_ms": 7},
    "delay-schedule": {"delay_schedule": [{"at_s": 1, "delay_ms": 3}, {"at_s": 2, "delay_ms": 80}]},
    "jitter": {"jitter": {"kind": "normal", "mean_ms": 5, "deviation_ms": 4}},
    "reordering": {
        "jitter": {"kind": "uniform", "max_ms": 8},
        "reordering": True,
        "loss": {"kind": "bernoulli", "probability": 0.01},
    },
    "policer": {"policer": {"rate_mbps": 4, "burst_bytes": 60_000}},
    "shaper": {"shaper": {"rate_mbps": 4, "burst_bytes": 60_000}},
    "loss-schedule": {
        "loss": {"kind": "bernoulli", "probability": 0.01},
        "loss_schedule": [
            {"at_s": 1, "loss": None},
            {
                "at_s": 2,
                "loss": {"kind": "gilbert-elliott", "good_to_bad": 0.1, "bad_to_good": 0.5},
            },
        ],
    },
    "reroutes": {
        "reroutes": [
            {"at_s": 1, "rate_mbps": 2, "delay_ms": 60},
            {"at_s": 2.5, "rate_mbps": 30, "delay_ms": 3},
        ]
    },
    "few-packets": {"queue": {"limit": 8}},
    "few-bytes": {"queue": {"limit": 15_000, "unit": "bytes"}},
    **{
        f"{discipline}-{unit}-{marking}": {
            "queue": {
                **{"discipline": discipline, "unit": unit},
                **{"limit": LIMITS[unit], "ecn_marking": marking},
            }
        }
        for discipline, unit, marking in product(DISCIPLINES, LIMITS, (False, True))
        if discipline != "drop-tail"
        if KNOWN[discipline].can_mark or not marking
        if KNOWN[discipline].counts_bytes or unit == "packets"
    },
}


def history(scenario: Scenario, engine: EngineName) -> tuple[list[Any], list[dict[str, Any]]]:
    """Statistics and queues at moments of no particular time, and the last statistics."""
    with Simulation(scenario, engine, 7) as simulation:
        rows: list[Any] = []
        for step in range(int(scenario.duration_s / 0.0123456789)):
            simulation.run_until(0.0123456789 * step)
            totals = [flow.statistics for flow in simulation.flows]
            rows += [simulation.queue_occupancy_seconds, *totals]
        hops = range(1, 2 + len(scenario.chain))
        return [*rows, *(simulation.queue_trace(hop).tolist() for hop in hops)], totals


def assert_same_history(scenario: Scenario) -> list[dict[str, Any]]:
    (native, totals), (ns3, _) = (history(scenario, engine) for engine in ("native", "ns3"))
    for ours, theirs in zip(native, ns3, strict=True):
        assert ours == theirs
    return totals


@pytest.mark.parametrize("sample", SAMPLES)
def test_statistics_and_queues_agree_at_every_moment(sample: str, tmp_path: Path) -> None:
    totals = assert_same_history(path(tmp_path, **SAMPLES[sample]))
    if sample.startswith("few"):
        is_complete = [total["completion"] is not None for total in totals]
        assert is_complete == [False, False, False, True, False]
        assert all(total["dropped_packets"] > 0 for total in totals[:2])
        going_on = [total for total in totals if total["completion"] is None]
        assert all(total["receive_rate_variance"] > 0 for total in going_on)


@pytest.mark.parametrize("discipline", ["drop-tail", "codel", "fq-codel"])
def test_statistics_and_queues_of_every_hop_agree_at_every_moment(discipline: str) -> None:
    assert_same_history(random_chain(discipline, 3))


def test_rerouted_packets_that_arrive_at_once_come_in_the_order_of_their_transmissions() -> None:
    """The burst and all rates are multiples of one another, so packets of both paths meet."""
    scenario = Scenario.model_validate(
        {
            "name": "meeting",
            "duration_s": 0.5,
            "bottleneck": {
                **{"rate_mbps": 10, "delay_ms": 10, "queue": {"limit": 1000}},
                "reroutes": [{"at_s": 0.05, "rate_mbps": 5, "delay_ms": 10}],
            },
            "access": {"rate_mbps": 20, "delay_ms": 1},
            "flows": [{"controller": "external", "parameters": {"window_bytes": 1_000_000}}],
        }
    )

    def order(engine: EngineName) -> list[tuple[int, ...]]:
        with Simulation(scenario, engine, 1, record_deliveries=True) as simulation:
            simulation.run()
            return [tuple(row) for row in simulation.deliveries()]

    native = order("native")
    numbers = [number for _, number, *_ in native]
    # The later packet's transmission on the slower path began before that of the earlier one.
    assert numbers.index(42) == numbers.index(22) - 1
    assert native == order("ns3")


def test_the_smallest_datagram_comes_before_what_arrives_a_microsecond_later() -> None:
    """At 0.5 Mbps a byte takes 16 us, so how far an engine may look ahead depends on each byte."""
    link = {"rate_mbps": 0.5, "delay_ms": 0, "queue": {"limit": 200}}
    one_byte = {"kind": "transfer", "size_bytes": 1}
    scenario = Scenario.model_validate(
        {
            **{"name": "near", "duration_s": 0.5, "max_datagram_bytes": 1200, "bottleneck": link},
            "reverse": {**link, "rate_mbps": 5, "delay_ms": 1, "opens_every_ms": 1.703125},
            "access": {"rate_mbps": 0.5, "delay_ms": 0},
            "flows": [
                {"controller": "newreno"},
                {"controller": "newreno", "application": one_byte},
            ],
        }
    )
    assert compare(scenario, None).difference is None


def test_packets_so_late_that_their_number_is_misread_are_dropped_by_both_engines() -> None:
    jitter = {"kind": "normal", "mean_ms": 20, "deviation_ms": 60}
    link = {"rate_mbps": 20, "delay_ms": 1, "queue": {"limit": 100}, "jitter": jitter}
    scenario = Scenario.model_validate(
        {
            **{"name": "late", "duration_s": 2, "bottleneck": {**link, "reordering": True}},
            "access": {"rate_mbps": 100, "delay_ms": 1},
            "flows": [{"controller": "external", "parameters": {"window_bytes": 1_000_000}}],
        }
    )

    def run(engine: EngineName) -> tuple[list[Any], int]:
        with Simulation(scenario, engine, 1, record_deliveries=True) as simulation:
            simulation.run()
            (flow,) = simulation.flows
            return list(simulation.deliveries()), flow.statistics["received_packets"]

    read, received = run("native")
    assert received - len(read) > 100
    assert run("ns3") == (read, received)


def test_a_capture_of_a_link_with_a_trace_has_both_directions(tmp_path: Path) -> None:
    prefix = tmp_path / "capture"
    with Simulation(
        path(tmp_path, trace="cell"), "ns3", pcap_prefix=str(prefix), record_deliveries=True
    ) as simulation:
        simulation.run()
        delivered = len(simulation.deliveries())
    captured = (tmp_path / "capture-router-1.pcap").stat().st_size
    # A packet's record is longer than 1200 bytes; acknowledgements have less than 200.
    assert captured > 1200 * delivered > 0
