"""Chains of bottlenecks: conservation and capacity at every hop, shares, refusals, both engines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
import yaml
from helpers.endpoints import MILLISECOND, SECOND, make_flow, make_link, make_scenario
from helpers.random_scenarios import chains
from helpers.scenarios import dumbbell
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import quicgym
from quicgym import Scenario, ScenarioError, Simulation, _core, load_scenario
from quicgym.benchmarks.random_networks import DISCIPLINES, random_chain

WIRE_BYTES = 1230
"""Of a full packet."""
HOP = {"rate_mbps": 1.0, "delay_ms": 1.0}


def lot(rate_mbps: float = 10.0, hops: int = 3, **fields: Any) -> dict[str, Any]:
    """A parking lot: a flow over all hops, and one over each of them."""
    link = {"rate_mbps": rate_mbps, "delay_ms": 5.0}
    cross = [
        {"name": f"cross-{hop}", "controller": "newreno", "first_hop": hop, "last_hop": hop}
        for hop in range(1, hops + 1)
    ]
    return {
        "name": "lot",
        "duration_s": 10.0,
        "bottleneck": link,
        "chain": [link] * (hops - 1),
        "access": {"rate_mbps": 100.0, "delay_ms": 2.0},
        "flows": [{"name": "long", "controller": "newreno"}, *cross],
        **fields,
    }


@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(scenario=st.sampled_from(DISCIPLINES).flatmap(chains), seed=st.integers(0, 2**32))
def test_packets_are_conserved_and_none_is_too_early(scenario: Scenario, seed: int) -> None:
    runs = []
    for moments in ([2.0], [0.3, 0.77, 1.5, 2.0]):
        with Simulation(scenario, "native", seed, record_deliveries=True) as simulation:
            for moment in moments:
                simulation.run_until(moment)
            totals = [flow.statistics for flow in simulation.flows]
            traces = [simulation.queue_trace(hop) for hop in range(1, 2 + len(scenario.chain))]
            runs.append(
                (simulation.deliveries().tolist(), totals, [trace.tolist() for trace in traces])
            )
    assert runs[0] == runs[1]
    links_of = [scenario.links["bottleneck"], *scenario.chain]
    for link, trace in zip(links_of, traces, strict=True):
        # A discipline stands before a device that keeps one packet more.
        assert trace["packets"].max() <= link.queue.limit + (link.queue.discipline != "drop-tail")
    backward = list(scenario.links.values())[1::2]
    for flow, total in zip(scenario.flows, totals, strict=True):
        under_way = total["sent_packets"] - total["received_packets"] - total["dropped_packets"]
        assert under_way >= 0
        hops = scenario.hops_of(flow)
        assert total["queues"] == len(hops)
        ways = links_of if flow.direction == "forward" else backward
        shortest_ms = 2 * scenario.access.delay_ms + flow.extra_delay_ms
        for hop in hops:
            shortest_ms += min(
                ways[hop].delay_ms, *(step.delay_ms for step in ways[hop].delay_schedule), 1e9
            )
        mean_s = total["one_way_delay_sum_seconds"]
        assert mean_s * 1e3 >= (shortest_ms - 1e-6) * total["received_packets"]


@settings(max_examples=40, deadline=None)
@given(
    hop_rates=st.lists(st.integers(1_000_000, 20_000_000), min_size=2, max_size=4),
    limit=st.integers(2, 200),
    controller=st.sampled_from(["newreno", "cubic", "bbr"]),
    backward=st.booleans(),
)
def test_no_hop_carries_more_than_its_rate(
    hop_rates: list[int], limit: int, controller: str, backward: bool
) -> None:
    def path() -> list[Any]:
        return [make_link(rate, MILLISECOND, limit) for rate in hop_rates]

    way = _core.DataDirection.backward if backward else _core.DataDirection.forward
    parts = [(1, 0), *((hop, hop) for hop in range(1, len(hop_rates) + 1))]
    flows = [
        make_flow(controller=controller, direction=way, first_hop=first, last_hop=last)
        for first, last in parts
    ]
    (bottleneck, *chain), (reverse, *reverse_chain) = path(), path()
    scenario = make_scenario(flows, bottleneck, reverse, chain=chain, reverse_chain=reverse_chain)
    simulation = _core.NativeSimulation(scenario, 1)
    received = []
    for moment in range(0, 2 * SECOND, 50 * MILLISECOND):
        simulation.run_until(moment)
        totals = [simulation.statistics(flow) for flow in range(len(flows))]
        received.append(
            [total["received_bytes"] + 30 * total["received_packets"] for total in totals]
        )
    # What waited before another hop comes to the receiver when this one sends again.
    behind = 8 * WIRE_BYTES * limit * (len(hop_rates) - 1)
    for windows in (1, 10):
        for before, after in zip(received, received[windows:], strict=False):
            carried = [8 * (b - a) for a, b in zip(before, after, strict=True)]
            for hop, rate in enumerate(hop_rates):
                most = rate * windows * 0.05
                assert carried[1 + hop] <= most + 8 * WIRE_BYTES
                assert carried[0] + carried[1 + hop] <= most + behind + 16 * WIRE_BYTES
    for hop, rate in enumerate(hop_rates):
        used = 8 * (received[-1][0] + received[-1][1 + hop])
        assert used > 0.3 * rate * 1.95 or limit < 20, "a hop is hardly used"


@pytest.mark.parametrize("hops", [2, 3, 4])
@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_a_flow_over_every_hop_gets_less_than_cross_traffic(hops: int, direction: str) -> None:
    """It loses at each hop and has a longer RTT: the parking lot of NewReno."""
    description = lot(hops=hops, duration_s=30.0)
    description["flows"] = [flow | {"direction": direction} for flow in description["flows"]]
    long, *cross = quicgym.run(Scenario.model_validate(description), trace_interval_ms=None).flows
    assert 0.1 < long.goodput_mbps < 0.7 * min(flow.goodput_mbps for flow in cross)
    for flow in cross:
        assert long.receive_rate_mbps + flow.receive_rate_mbps == pytest.approx(9.76, rel=0.05)


def test_a_hop_that_no_packet_waits_at_is_a_delay() -> None:
    """Two hops of which one is far faster: the same throughput as through the other alone."""
    slow, fast = {"rate_mbps": 10.0, "delay_ms": 5.0}, {"rate_mbps": 10_000.0, "delay_ms": 5.0}
    rest = {"flows": [{"controller": "cubic"}], "access": (100, 2), "duration_s": 10.0}
    expected = quicgym.run(dumbbell(**rest, rate_mbps=10, delay_ms=10)).flows[0]
    for first, second in ((slow, fast), (fast, slow)):
        result = quicgym.run(dumbbell(**rest, **first, chain=[second])).flows[0]
        for name, most in (
            ("goodput_mbps", 0.01),
            ("mean_queue_delay_ms", 0.02),
            ("mean_one_way_delay_ms", 0.02),
        ):
            assert getattr(result, name) == pytest.approx(getattr(expected, name), rel=most)


def test_every_hop_has_a_record_of_its_queue() -> None:
    slow = {"rate_mbps": 5.0, "delay_ms": 5.0, "queue": {"limit": 30}}
    fast = {"rate_mbps": 20.0, "delay_ms": 5.0}
    flow = {"controller": "newreno"}
    result = quicgym.run(
        Scenario.model_validate(lot(bottleneck=fast, chain=[slow, fast], flows=[flow]))
    )
    peaks = [result.queue_trace(hop)["packets"].max() for hop in (1, 2, 3)]
    assert peaks[1] == 30 and peaks[0] < 30 and peaks[2] == 0
    with pytest.raises(ValueError, match="give 1 to 3"):
        result.queue_trace(4)
    with Simulation(Scenario.model_validate(lot())) as simulation:
        for hop in (0, 4):
            with pytest.raises(ValueError, match="hop"):
                simulation.queue_trace(hop)


@pytest.mark.parametrize("slow", [0, 1])
def test_marks_of_every_hop_reach_the_sender(slow: int) -> None:
    hops = [{"rate_mbps": 10.0, "delay_ms": 5.0} for _ in range(2)]
    marking = {"limit": 500, "discipline": "codel", "ecn_marking": True}
    hops[slow] |= {"rate_mbps": 5.0, "queue": marking}
    flows = [{"controller": "newreno", "ecn": True}]
    description = lot(bottleneck=hops[0], chain=hops[1:], flows=flows)
    with Simulation(Scenario.model_validate(description)) as simulation:
        simulation.run()
        assert simulation.flows[0].statistics["ecn_marks"] > 0


JITTER = {"jitter": {"kind": "uniform", "max_ms": 1.0}, "reordering": True}


@pytest.mark.parametrize(
    ("changed", "field", "text"),
    [
        ({"flows": [{"first_hop": 4}]}, "flows.0.first_hop = 4", "last hop, 3"),
        ({"flows": [{"first_hop": 3, "last_hop": 2}]}, "flows.0.first_hop = 3", "last hop, 2"),
        ({"chain": [{"rate_mbps": 1.0}]}, "chain.0.delay_ms", "missing"),
        (
            {"flows": [{"access": {**HOP, "mtu_bytes": 1500}}]},
            "access.mtu_bytes = 1500",
            "not in a chain",
        ),
        (
            {"chain": [{**HOP, "queue": {"discipline": "dualpi2"}}]},
            "chain.0.queue.discipline = 'dualpi2'",
            "not in a chain",
        ),
        (
            {"reverse": {**HOP, **JITTER}},
            "reverse.reordering = True",
            "packets keep their order from hop to hop",
        ),
        (
            {"chain": [{**HOP, "reverse": {**HOP, "queue": {"limit": 100, "unit": "bytes"}}}]},
            "chain.0.reverse.queue.limit = 100",
            "no packet fits",
        ),
    ],
)
def test_a_bad_hop_is_refused_by_field_value_and_remedy(
    changed: dict[str, Any], field: str, text: str, tmp_path: Path
) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text(yaml.safe_dump(lot() | {"flows": [{}]} | changed))
    with pytest.raises(ScenarioError) as caught:
        load_scenario(path)
    assert field in str(caught.value) and text in str(caught.value)


def test_a_hop_has_no_trace_and_a_dumbbell_no_second_hop(tmp_path: Path) -> None:
    trace = tmp_path / "cell.trace"
    trace.write_text("1\n2\n")
    hop = {"trace": str(trace), "delay_ms": 1.0, "reverse": HOP}
    for changed, text in (
        ({"chain": [hop], "flows": [{}]}, r"chain\.0\.trace"),
        ({"chain": [], "flows": [{"last_hop": 2}]}, r"\.0\.last_hop = 2: .* the bottleneck: 1"),
    ):
        with pytest.raises(ValueError, match=text):
            Scenario.model_validate(lot() | changed)


def test_share_and_jain_of_an_environment_are_of_max_min_fair_rates() -> None:
    """Hops of 10 and 30 Mbps: 5 Mbps for the long flow, 5 and 25 for the cross traffic."""
    description = lot(hops=2)
    description["chain"] = [{"rate_mbps": 30.0, "delay_ms": 5.0}]
    fair = {"long": 5.0, "cross-1": 5.0, "cross-2": 25.0}
    # Each sends what is fair, without a loss: the share of a hop is full, and the index 1.
    for flow in description["flows"]:
        rate_mbps = 0.95 * fair[flow["name"]] * 1190 / WIRE_BYTES
        flow["application"] = {"kind": "constant-rate", "rate_mbps": rate_mbps}
        flow["controller"] = "cubic"
    scenario = Scenario.model_validate(description)
    environment = gymnasium.make("quicgym/Tuning-v1", scenario=scenario, flow="long")
    environment.reset(seed=1)
    infos = [environment.step(environment.action_space.low * 0)[4] for _ in range(80)][-20:]
    environment.close()
    means = {name: np.mean([info[name] for info in infos]) for name in infos[0]}
    assert means["capacity_mbps"] == pytest.approx(40.0)
    assert means["throughput_mbps"] == pytest.approx(0.95 * 35, rel=0.03)
    assert means["throughput_share"] == pytest.approx(0.95, rel=0.03)
    assert means["jain"] == pytest.approx(1.0, abs=0.01)


@pytest.mark.ns3
def test_a_capture_has_two_files_for_each_hop(tmp_path: Path) -> None:
    scenario = Scenario.model_validate(lot(hops=2, duration_s=2.0))
    with Simulation(scenario, "ns3", pcap_prefix=str(tmp_path / "c")) as simulation:
        simulation.run()
    names = {path.name: path.stat().st_size for path in tmp_path.iterdir()}
    assert set(names) == {
        f"c-hop-{hop}-router-{router}.pcap" for hop in (1, 2) for router in (hop, hop + 1)
    }
    assert min(names.values()) > 100_000


def test_random_chains_have_what_parity_needs_to_cover() -> None:
    with_everything = [random_chain("codel", number, everything=True) for number in range(60)]
    of_hops = [link for network in with_everything for link in network.links.values()]
    for field in (
        "opens_every_ms",
        "delay_schedule",
        "jitter",
        "policer",
        "shaper",
        "loss_schedule",
    ):
        assert any(getattr(link, field) for link in of_hops), field
    networks = [random_chain("codel", number) for number in range(60)]
    assert networks == [random_chain("codel", number) for number in range(60)]
    assert {len(network.chain) for network in networks} == {1, 2, 3}
    for network in networks:
        hops = 1 + len(network.chain)
        parts = {(flow.first_hop, flow.last_hop) for flow in network.flows}
        assert {(1, hops), *((hop, hop) for hop in range(1, hops + 1))} <= parts
        assert {flow.direction for flow in network.flows} == {"forward", "backward"}
