"""Paths that change or misbehave: native engine and ns-3, packet by packet."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from helpers.random_scenarios import delays, links, rates, steps, wired
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from quicgym import Scenario, Simulation
from quicgym.benchmarks.parity import compare
from quicgym.envs.scenarios.engines import EngineName

pytestmark = pytest.mark.ns3

outages = steps("rate_mbps", st.just(0.0) | rates, min_size=1)
jitters = st.one_of(
    st.fixed_dictionaries({"kind": st.just("uniform"), "max_ms": delays}),
    st.fixed_dictionaries({"kind": st.just("normal"), "mean_ms": delays, "deviation_ms": delays}),
)
policers = st.fixed_dictionaries({"rate_mbps": rates, "burst_bytes": st.integers(1502, 200_000)})
disciplines = st.fixed_dictionaries(
    {
        "limit": st.integers(1, 200),
        "discipline": st.sampled_from(["fifo", "codel", "fq-codel", "pie", "red"]),
    }
)
SHORT, LONG = 20, 1000
"""Pairs of runs for each feature."""

traces = st.lists(st.integers(0, 12), min_size=1, max_size=200).map(
    # From steps to times; a step of 0 lets another 1500 bytes go in the same millisecond.
    lambda gaps: [1 + sum(gaps[: end + 1]) for end in range(len(gaps))]
)


def traced_links(
    folder: Path, name: str, **features: st.SearchStrategy[Any]
) -> st.SearchStrategy[dict[str, Any]]:
    """Links with a random trace, written to a file of this name."""

    def write(times: list[int]) -> str:
        path = folder / f"{name}-{hash(tuple(times)) % 2**64:x}.trace"
        path.write_text("\n".join(map(str, times)))
        return str(path)

    plain = links(trace=traces.map(write), rate_schedule=st.just([]), **features)
    return plain.map(lambda link: {k: v for k, v in link.items() if k != "rate_mbps"})


def with_directions(description: dict[str, Any], ways: list[str]) -> dict[str, Any]:
    """The scenario with these directions of its flows' data."""
    turned = zip(description["flows"], ways, strict=False)
    return {**description, "flows": [{**flow, "direction": way} for flow, way in turned]}


LinkMaker = Callable[[Path, str], st.SearchStrategy[dict[str, Any]]]
FEATURES: dict[str, LinkMaker] = {
    "outages": lambda folder, name: links(rate_schedule=outages),
    "trace": traced_links,
    "openings": lambda folder, name: links(
        opens_every_ms=st.sampled_from([1.0, 5.0, 10.0]) | st.floats(0.1, 100),
        rate_schedule=st.just([]) | outages,
    ),
    "delay-schedule": lambda folder, name: links(delay_schedule=steps("delay_ms", delays, 1)),
    "jitter": lambda folder, name: links(jitter=jitters),
    "reordering": lambda folder, name: links(
        jitter=jitters, delay_schedule=steps("delay_ms", delays), reordering=st.just(True)
    ),
    "policer": lambda folder, name: links(policer=policers),
    "discipline-on-outages": lambda folder, name: links(rate_schedule=outages, queue=disciplines),
    "discipline-on-trace": lambda folder, name: traced_links(folder, name, queue=disciplines),
    "discipline-on-jitter": lambda folder, name: links(
        queue=disciplines, jitter=jitters, reordering=st.booleans(), policer=st.none() | policers
    ),
    "both-directions": lambda folder, name: links(),
    "everything": lambda folder, name: links(
        rate_schedule=outages,
        opens_every_ms=st.none() | st.floats(0.1, 100),
        delay_schedule=steps("delay_ms", delays, 1),
        jitter=st.none() | jitters,
        reordering=st.booleans(),
        policer=st.none() | policers,
    ),
}
"""By name: links that have the feature, given a folder for their files and a name."""


directions = st.sampled_from(["forward", "backward"])


def check_parity(feature: str, folder: Path, pairs: int) -> None:
    link, reverse = (FEATURES[feature](folder, name) for name in ("there", "back"))
    scenarios = wired(link, links() | reverse)
    if feature in ("both-directions", "everything"):
        scenarios = st.tuples(scenarios, st.lists(directions, min_size=5, max_size=5)).map(
            lambda drawn: with_directions(*drawn)
        )

    @settings(deadline=None, max_examples=pairs, suppress_health_check=list(HealthCheck))
    @given(description=scenarios, seed=st.integers(0, 2**32))
    def check(description: dict[str, Any], seed: int) -> None:
        assert compare(Scenario.model_validate(description), None, seed).difference is None

    check()


@pytest.mark.parametrize("feature", FEATURES)
def test_every_packet_arrives_in_the_same_nanosecond(feature: str, tmp_path: Path) -> None:
    check_parity(feature, tmp_path, SHORT)


@pytest.mark.long
@pytest.mark.parametrize("feature", FEATURES)
def test_every_packet_arrives_in_the_same_nanosecond_a_thousand_times(
    feature: str, tmp_path: Path
) -> None:
    check_parity(feature, tmp_path, LONG)


def path(tmp_path: Path, **link: Any) -> Scenario:
    trace = tmp_path / "cell.trace"
    trace.write_text("\n".join(str(ms) for ms in [*range(1, 200), *range(600, 900, 2)]))
    return Scenario.model_validate(
        {
            "name": "path",
            "duration_s": 5,
            "bottleneck": {
                "delay_ms": 15,
                "queue": {"limit": 40},
                **({} if "trace" in link else {"rate_mbps": 10}),
                **{field: trace if value == "cell" else value for field, value in link.items()},
            },
            "reverse": {"rate_mbps": 10, "delay_ms": 15},
            "access": {"rate_mbps": 100, "delay_ms": 2.5},
            "flows": [
                {"controller": "cubic", "start_jitter_ms": 300},
                {"controller": "bbr", "start_s": 1, "stop_s": 3.7},
                {"controller": "cubic", "direction": "backward", "extra_delay_ms": 3},
                {
                    "controller": "newreno",
                    "application": {"kind": "transfer", "size_bytes": 900_000},
                },
            ],
        }
    )


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
}


@pytest.mark.parametrize("sample", SAMPLES)
def test_statistics_and_queues_agree_at_every_moment(sample: str, tmp_path: Path) -> None:
    def history(engine: EngineName) -> list[Any]:
        with Simulation(path(tmp_path, **SAMPLES[sample]), engine, 7) as simulation:
            rows: list[Any] = []
            for step in range(1, 400):
                simulation.run_until(0.0123456789 * step)
                rows.append(simulation.queue_occupancy_seconds)
                rows += [flow.statistics for flow in simulation.flows]
            return [*rows, simulation.queue_trace().tolist()]

    native, ns3 = history("native"), history("ns3")
    for ours, theirs in zip(native, ns3, strict=True):
        assert ours == theirs


def test_packets_so_late_that_their_number_is_misread_are_dropped_by_both_engines() -> None:
    scenario = Scenario.model_validate(
        {
            "name": "late",
            "duration_s": 2,
            "bottleneck": {
                "rate_mbps": 20,
                "delay_ms": 1,
                "queue": {"limit": 100},
                "jitter": {"kind": "normal", "mean_ms": 20, "deviation_ms": 60},
                "reordering": True,
            },
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
