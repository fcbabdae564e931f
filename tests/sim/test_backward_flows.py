"""Data in both directions, with every application and transport."""

from __future__ import annotations

from typing import Any

import pytest
from helpers.scenarios import dumbbell

from quicgym import Scenario, Simulation
from quicgym.benchmarks.parity import compare

APPLICATIONS: dict[str, dict[str, Any]] = {
    "bulk": {},
    "transfer": {"size_bytes": 400_000},
    "constant-rate": {"rate_mbps": 2.0},
    "bursts": {
        **{"rate_mbps": 1.0, "burst_rate_mbps": 8.0},
        **{"burst_duration_s": 0.3, "burst_period_s": 1.0, "burst_count": 3},
    },
    "on-off": {"rate_mbps": 5.0, "on_s": 0.4, "off_s": 0.3},
    "request-response": {"responses": 60_000, "think_s": 0.05},
    "web-page": {
        "objects": [
            {"name": "html", "size_bytes": 40_000},
            {"name": "image", "size_bytes": 200_000, "after": ["html"]},
        ]
    },
    "video": {
        **{"rates_mbps": [0.5, 2.0, 4.0], "chunk_s": 0.5},
        **{"reservoir_s": 1.0, "cushion_s": 2.0, "max_buffer_s": 4.0},
    },
    "real-time-media": {"rates_mbps": [0.5, 2.0, 4.0]},
}
WIDE = {"rate_mbps": 12.0, "delay_ms": 8.0, "queue": {"limit": 60}}
NARROW = {
    **{"rate_mbps": 5.0, "delay_ms": 21.0, "queue": {"limit": 30}},
    "loss": {"kind": "bernoulli", "probability": 0.002},
}


def scenario(flows: list[dict[str, Any]], there: dict[str, Any], back: dict[str, Any]) -> Scenario:
    return dumbbell(flows, access=(100, 2), bottleneck=there, reverse=back, duration_s=4.0)


def flow(kind: str, direction: str = "backward", **fields: Any) -> dict[str, Any]:
    application = {"kind": kind, **APPLICATIONS[kind]}
    chosen = {"controller": "bbr", "direction": direction, "application": application}
    return {**chosen, **fields}


def results(described: Scenario, engine: str) -> list[dict[str, Any]]:
    with Simulation(described, engine, 3, trace_interval_ms=None) as simulation:
        simulation.run()
        return [
            {**each.statistics, "requests": simulation.requests(each.index).tolist()}
            for each in simulation.flows
        ]


@pytest.mark.parametrize("kind", APPLICATIONS)
def test_an_application_is_the_same_in_the_mirror(kind: str) -> None:
    """Its data, its requests and the flow against it take the other link each."""
    lossless = [{**link, "loss": None} for link in (WIDE, NARROW)]
    first, second = (
        results(scenario([flow(kind, one), flow("bulk", other)], there, back), "native")
        for one, other, there, back in (
            ("forward", "backward", *lossless),
            ("backward", "forward", *reversed(lossless)),
        )
    )
    assert first == second
    assert first[0]["goodput_bytes"] > 100_000


@pytest.mark.ns3
@pytest.mark.parametrize("kind", APPLICATIONS)
def test_an_application_backward_beside_a_flow_forward_is_the_same_on_both_engines(
    kind: str,
) -> None:
    flows = [flow(kind), flow("bulk", "forward", controller="cubic")]
    described = scenario(flows, WIDE, NARROW)
    assert compare(described, None, seed=3).difference is None
    native, ns3 = (results(described, engine) for engine in ("native", "ns3"))
    assert native == ns3
    assert native[0]["goodput_bytes"] > 100_000


@pytest.mark.ns3
def test_tcp_one_way_beside_quic_the_other_way_is_the_same_in_the_mirror() -> None:
    def run(tcp: str, quic: str, there: dict[str, Any], back: dict[str, Any]) -> list[Any]:
        flows = [
            {"transport": "tcp", "controller": "cubic", "direction": tcp},
            {"controller": "cubic", "direction": quic, "start_s": 0.5},
        ]
        return results(scenario(flows, there, back), "ns3")

    links = WIDE, {**NARROW, "loss": None}
    first = run("forward", "backward", *links)
    assert first == run("backward", "forward", *reversed(links))
    assert all(each["goodput_bytes"] > 500_000 for each in first)
    assert first[0]["dropped_packets"] > 0
