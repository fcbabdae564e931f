"""Native engine and ns-3 do the same: packet by packet, and at every moment of a run."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from helpers.random_scenarios import (
    chains,
    delays,
    jitters,
    links,
    losses,
    outages,
    policers,
    reroutes,
    shapers,
    steps,
    wired,
)
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from quicgym import Scenario, Simulation, _core
from quicgym.benchmarks.parity import compare
from quicgym.benchmarks.random_networks import random_chain
from quicgym.envs.scenarios.engines import EngineName

pytestmark = [
    pytest.mark.ns3,
    pytest.mark.filterwarnings("ignore:.*no queue on its path marks"),
]
KNOWN = {entry.name: entry for entry in _core.queue_disciplines()}
DISCIPLINES = [name for name in KNOWN if KNOWN[name].in_ns3 and name != "drop-tail"]
Strategy = st.SearchStrategy[dict[str, Any]]

disciplines = st.fixed_dictionaries(
    {"limit": st.integers(1, 200), "discipline": st.sampled_from(DISCIPLINES)}
)
traces = st.lists(st.integers(0, 12), min_size=1, max_size=200).map(
    # From steps to times; a step of 0 lets another 1500 bytes go in the same millisecond.
    lambda gaps: [1 + sum(gaps[: end + 1]) for end in range(len(gaps))]
)


few_short_flows = st.fixed_dictionaries(
    {
        "arrivals_per_s": st.floats(0.5, 8),
        "sizes": st.integers(1, 20_000),
        "controller": st.sampled_from(["cubic", "bbr", "newreno", "prague"]),
    }
)


def traced_links(folder: Path, **features: st.SearchStrategy[Any]) -> Strategy:
    """Links with a random trace, written to a file of the folder."""

    def write(times: list[int]) -> str:
        path = folder / f"{hash(tuple(times)) % 2**64:x}.trace"
        path.write_text("\n".join(map(str, times)))
        return str(path)

    plain = links(trace=traces.map(write), rate_schedule=st.just([]), **features)
    return plain.map(lambda link: {k: v for k, v in link.items() if k != "rate_mbps"})


def queues(discipline: str) -> Strategy:
    packets = {"limit": st.integers(1, 200)}
    in_bytes = {"limit": st.integers(1502, 300_000), "unit": st.just("bytes")}
    marking = st.booleans() if KNOWN[discipline].can_mark else st.just(False)
    common = {"discipline": st.just(discipline), "ecn_marking": marking}
    units = [packets, in_bytes] if KNOWN[discipline].counts_bytes else [packets]
    return st.one_of(st.fixed_dictionaries({**unit, **common}) for unit in units)


FEATURES: dict[str, Callable[[Path], Strategy]] = {
    "outages": lambda folder: links(rate_schedule=steps("rate_mbps", outages, 1)),
    "trace": traced_links,
    "openings": lambda folder: links(
        opens_every_ms=st.sampled_from([1.0, 5.0, 10.0]) | st.floats(0.1, 100),
        rate_schedule=st.just([]) | steps("rate_mbps", outages, 1),
    ),
    "delay-schedule": lambda folder: links(delay_schedule=steps("delay_ms", delays, 1)),
    "jitter": lambda folder: links(jitter=jitters),
    "reordering": lambda folder: links(
        jitter=jitters, delay_schedule=steps("delay_ms", delays), reordering=st.just(True)
    ),
    "policer": lambda folder: links(policer=policers),
    "shaper": lambda folder: links(
        shaper=shapers, rate_schedule=st.just([]) | steps("rate_mbps", outages, 1)
    ),
    "loss-schedule": lambda folder: links(loss_schedule=steps("loss", losses, 1)),
    "reroutes": lambda folder: links(reroutes=reroutes, rate_schedule=st.just([])),
    "discipline-on-shaper": lambda folder: links(queue=disciplines, shaper=shapers),
    "discipline-on-reroutes": lambda folder: links(
        queue=disciplines,
        reroutes=reroutes,
        rate_schedule=st.just([]),
        policer=st.none() | policers,
        jitter=st.none() | jitters,
        reordering=st.just(False),
    ),
    "discipline-on-outages": lambda folder: links(
        rate_schedule=steps("rate_mbps", outages, 1), queue=disciplines
    ),
    "discipline-on-trace": lambda folder: traced_links(folder, queue=disciplines),
    "discipline-on-jitter": lambda folder: links(
        queue=disciplines, jitter=jitters, reordering=st.booleans(), policer=st.none() | policers
    ),
    "both-directions": lambda folder: links(),
    "everything": lambda folder: links(
        rate_schedule=steps("rate_mbps", outages, 1),
        opens_every_ms=st.none() | st.floats(0.1, 100),
        delay_schedule=steps("delay_ms", delays, 1),
        jitter=st.none() | jitters,
        reordering=st.booleans(),
        policer=st.none() | policers,
        shaper=st.none() | shapers,
        loss_schedule=steps("loss", losses),
    ),
    "fifo": lambda folder: links(queue=queues("fifo")),
    "codel": lambda folder: links(queue=queues("codel")),
    "fq-codel": lambda folder: links(queue=queues("fq-codel")),
    "pie": lambda folder: links(queue=queues("pie")),
    "red": lambda folder: links(queue=queues("red")),
    "chain": lambda folder: chains(),
    "short-flows": lambda folder: links(queue=disciplines | st.just({"limit": 40})),
}
"""By name: links that have the feature, given a folder for their files; chains are complete."""
FLOW_FIELDS: dict[str, tuple[str, st.SearchStrategy[Any]]] = {
    **dict.fromkeys(DISCIPLINES, ("ecn", st.booleans())),
    **dict.fromkeys(
        ("both-directions", "everything"), ("direction", st.sampled_from(["forward", "backward"]))
    ),
}
"""What each flow has besides, by feature."""


def with_each(description: dict[str, Any], field: str, values: list[Any]) -> dict[str, Any]:
    """The scenario with these values of a field of its flows."""
    flows = zip(description["flows"], values, strict=False)
    return {**description, "flows": [{**flow, field: value} for flow, value in flows]}


def scenarios_with(feature: str, folder: Path) -> Strategy:
    link = FEATURES[feature](folder)
    if feature == "chain":
        return link
    reverse = links() | link
    scenarios = wired(link, st.none() | reverse if feature in DISCIPLINES else reverse)
    if feature == "short-flows":
        entries = st.lists(few_short_flows, min_size=1, max_size=2)
        return st.tuples(scenarios, entries).map(lambda drawn: drawn[0] | {"short_flows": drawn[1]})
    if feature not in FLOW_FIELDS:
        return scenarios
    field, values = FLOW_FIELDS[feature]
    return st.tuples(scenarios, st.lists(values, min_size=5, max_size=5)).map(
        lambda drawn: with_each(drawn[0], field, drawn[1])
    )


@pytest.mark.parametrize("pairs", [12, pytest.param(1000, marks=pytest.mark.long)])
@pytest.mark.parametrize("feature", FEATURES)
def test_every_packet_arrives_in_the_same_nanosecond(
    feature: str, pairs: int, tmp_path: Path
) -> None:
    @settings(deadline=None, max_examples=pairs, suppress_health_check=list(HealthCheck))
    @given(description=scenarios_with(feature, tmp_path), seed=st.integers(0, 2**64 - 1))
    def check(description: dict[str, Any], seed: int) -> None:
        assert compare(Scenario.model_validate(description), None, seed).difference is None

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
    numbers = [number for _, number, _ in native]
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
