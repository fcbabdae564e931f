"""Chains of bottlenecks: conservation and capacity at every hop, shares, refusals, both engines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
import yaml
from helpers.endpoints import MILLISECOND, SECOND, make_flow, make_link, make_scenario
from helpers.random_scenarios import delays, flows, links, rates, steps
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import quicgym
from quicgym import Scenario, ScenarioError, Simulation, _core, load_scenario, preset_action
from quicgym.benchmarks.parity import compare
from quicgym.benchmarks.random_networks import random_chain
from quicgym.envs.scenarios.engines import EngineName

WIRE_BYTES = 1230
"""Of a full packet."""


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


queues = st.fixed_dictionaries(
    {
        "limit": st.integers(1, 200),
        "discipline": st.sampled_from(["drop-tail", "fifo", "codel", "fq-codel", "pie", "red"]),
    }
)
jitters = st.fixed_dictionaries({"kind": st.just("uniform"), "max_ms": delays})
policers = st.fixed_dictionaries({"rate_mbps": rates, "burst_bytes": st.integers(1502, 200_000)})
hop_links = links(
    queue=queues,
    rate_schedule=steps("rate_mbps", st.just(0.0) | rates),
    opens_every_ms=st.none() | st.floats(0.1, 100),
    delay_schedule=steps("delay_ms", delays),
    jitter=st.none() | jitters,
    policer=st.none() | policers,
)


@st.composite
def chains(draw: st.DrawFn) -> dict[str, Any]:
    """Chains of 2 to 4 hops with every feature that a hop can have, and flows over any part."""
    hops = draw(st.integers(2, 4))
    ways = [(draw(hop_links), draw(hop_links)) for _ in range(hops)]
    chosen = []
    for flow in draw(st.lists(flows, min_size=1, max_size=6)):
        first = draw(st.integers(1, hops))
        last = draw(st.integers(first, hops))
        direction = draw(st.sampled_from(["forward", "backward"]))
        chosen.append(flow | {"first_hop": first, "last_hop": last, "direction": direction})
    return {
        "name": "chain",
        "duration_s": 2.0,
        "bottleneck": ways[0][0],
        "reverse": ways[0][1],
        "chain": [there | {"reverse": back} for there, back in ways[1:]],
        "access": {"rate_mbps": draw(rates), "delay_ms": draw(delays)},
        "flows": chosen,
    }


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(description=chains(), seed=st.integers(0, 2**32))
def test_packets_are_conserved_and_none_is_too_early(
    description: dict[str, Any], seed: int
) -> None:
    scenario = Scenario.model_validate(description)
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
    rest = {
        "name": "fast",
        "duration_s": 10.0,
        "access": {"rate_mbps": 100.0, "delay_ms": 2.0},
        "flows": [{"controller": "cubic"}],
    }
    alone = Scenario.model_validate({**rest, "bottleneck": {**slow, "delay_ms": 10.0}})
    for order in ([slow, fast], [fast, slow]):
        chain = Scenario.model_validate({**rest, "bottleneck": order[0], "chain": order[1:]})
        result, expected = quicgym.run(chain).flows[0], quicgym.run(alone).flows[0]
        assert result.goodput_mbps == pytest.approx(expected.goodput_mbps, rel=0.01)
        assert result.mean_queue_delay_ms == pytest.approx(expected.mean_queue_delay_ms, rel=0.02)
        assert result.mean_one_way_delay_ms == pytest.approx(
            expected.mean_one_way_delay_ms, rel=0.02
        )


def test_every_hop_has_a_record_of_its_queue() -> None:
    description = lot(rate_mbps=20.0)
    description["chain"] = [
        {"rate_mbps": 5.0, "delay_ms": 5.0, "queue": {"limit": 30}},
        {"rate_mbps": 20.0, "delay_ms": 5.0},
    ]
    description["flows"] = description["flows"][:1]
    result = quicgym.run(Scenario.model_validate(description))
    peaks = [result.queue_trace(hop)["packets"].max() for hop in (1, 2, 3)]
    assert peaks[1] == 30 and peaks[0] < 30 and peaks[2] == 0
    with pytest.raises(ValueError, match="give 1 to 3"):
        result.queue_trace(4)
    with Simulation(Scenario.model_validate(lot())) as simulation:
        for hop in (0, 4):
            with pytest.raises(ValueError, match="hop"):
                simulation.queue_trace(hop)


def test_marks_of_every_hop_reach_the_sender() -> None:
    queue = {"limit": 500, "discipline": "codel", "ecn_marking": True}
    for marking in (1, 2):
        description = lot(hops=2)
        description["bottleneck"] = {"rate_mbps": 10.0 / marking, "delay_ms": 5.0}
        description["chain"] = [{"rate_mbps": 5.0 * marking, "delay_ms": 5.0}]
        ends = [description["bottleneck"], description["chain"][0]]
        slow = min(ends, key=lambda link: link["rate_mbps"])
        slow["queue"] = queue
        description["flows"] = [{"controller": "newreno", "ecn": True}]
        with Simulation(Scenario.model_validate(description)) as simulation:
            simulation.run()
            assert simulation.flows[0].statistics["ecn_marks"] > 0


@pytest.mark.parametrize(
    ("changed", "field", "text"),
    [
        ({"flows": [{"first_hop": 4}]}, "flows.0.first_hop = 4", "last hop, 3"),
        ({"flows": [{"last_hop": 4}]}, "flows.0.last_hop = 4", "hops with the bottleneck: 3"),
        ({"flows": [{"first_hop": 3, "last_hop": 2}]}, "flows.0.first_hop = 3", "last hop, 2"),
        ({"flows": [{"first_hop": 0}]}, "flows.0.first_hop = 0", "1 (bottleneck) to 16"),
        ({"chain": [{"rate_mbps": 1.0}]}, "chain.0.delay_ms", "missing"),
        (
            {"flows": [{"access": {"rate_mbps": 9.0, "delay_ms": 1.0, "mtu_bytes": 1500}}]},
            "access.mtu_bytes = 1500",
            "not in a chain",
        ),
        ({"chain": [{"rate_mbps": 1.0, "delay_ms": 1.0}] * 16}, "chain", "at most 15"),
        (
            {"chain": [{"rate_mbps": 1.0, "delay_ms": 1.0, "queue": {"discipline": "dualpi2"}}]},
            "chain.0.queue.discipline = 'dualpi2'",
            "not in a chain",
        ),
        (
            {
                "reverse": {
                    "rate_mbps": 1.0,
                    "delay_ms": 1.0,
                    "jitter": {"kind": "uniform", "max_ms": 1.0},
                    "reordering": True,
                }
            },
            "reverse.reordering = True",
            "packets keep their order from hop to hop",
        ),
        (
            {
                "chain": [
                    {
                        "rate_mbps": 1.0,
                        "delay_ms": 1.0,
                        "reverse": {
                            "rate_mbps": 1.0,
                            "delay_ms": 1.0,
                            "queue": {"limit": 100, "unit": "bytes"},
                        },
                    }
                ]
            },
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
    back = {"rate_mbps": 1.0, "delay_ms": 1.0}
    hop = {"trace": str(trace), "delay_ms": 1.0, "reverse": back}
    with pytest.raises(ValueError, match=r"chain\.0\.trace"):
        Scenario.model_validate(lot() | {"chain": [hop], "flows": [{}]})
    with pytest.raises(ValueError, match=r"flows\.0\.last_hop = 2: hops with the bottleneck: 1"):
        Scenario.model_validate(lot() | {"chain": [], "flows": [{"last_hop": 2}]})


def test_the_engine_refuses_a_bad_chain() -> None:
    late = make_flow(first_hop=3)
    for scenario, text in (
        (make_scenario([make_flow()], chain=[make_link()]), "reverse_chain"),
        (make_scenario([late], chain=[make_link()], reverse_chain=[make_link()]), "hops 3 to 2"),
        (make_scenario([make_flow(last_hop=2)]), "1 to 1"),
        (make_scenario([make_flow(first_hop=0)]), "1 to 1"),
    ):
        with pytest.raises(ValueError, match=text):
            _core.NativeSimulation(scenario, 1)
    link = make_link()
    link.reordering = True
    with pytest.raises(ValueError, match=r"chain\.0\.reordering"):
        _core.NativeSimulation(
            make_scenario([make_flow()], chain=[link], reverse_chain=[make_link()]), 1
        )


def info_of(description: dict[str, Any], flow: str, steps_count: int) -> list[dict[str, Any]]:
    """The info of every decision of an agent that has this flow and acts as BBR does."""
    environment = gymnasium.make(
        "quicgym/Tuning-v1", scenario=Scenario.model_validate(description), flow=flow
    )
    environment.reset(seed=1)
    action = preset_action("bbr")
    infos = [environment.step(action)[4] for _ in range(steps_count)]
    environment.close()
    return infos


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
    last = info_of(description, "long", 80)[-20:]
    assert np.mean([info["capacity_mbps"] for info in last]) == pytest.approx(40.0)
    assert np.mean([info["throughput_mbps"] for info in last]) == pytest.approx(0.95 * 35, rel=0.03)
    assert np.mean([info["throughput_share"] for info in last]) == pytest.approx(0.95, rel=0.03)
    assert np.mean([info["jain"] for info in last]) == pytest.approx(1.0, abs=0.01)


def check_parity(pairs: int) -> None:
    @settings(deadline=None, max_examples=pairs, suppress_health_check=list(HealthCheck))
    @given(description=chains(), seed=st.integers(0, 2**32))
    def check(description: dict[str, Any], seed: int) -> None:
        assert compare(Scenario.model_validate(description), None, seed).difference is None

    check()


@pytest.mark.ns3
def test_every_packet_of_a_chain_arrives_in_the_same_nanosecond() -> None:
    check_parity(20)


@pytest.mark.ns3
@pytest.mark.long
def test_every_packet_of_a_chain_arrives_in_the_same_nanosecond_a_thousand_times() -> None:
    check_parity(1000)


@pytest.mark.ns3
@pytest.mark.parametrize("discipline", ["drop-tail", "codel", "fq-codel"])
def test_statistics_and_queues_of_every_hop_agree_at_every_moment(discipline: str) -> None:
    scenario = random_chain(discipline, 3)

    def history(engine: EngineName) -> list[Any]:
        with Simulation(scenario, engine, 7) as simulation:
            rows: list[Any] = []
            for step in range(1, 160):
                simulation.run_until(0.0123456789 * step)
                rows.append(simulation.queue_occupancy_seconds)
                rows += [flow.statistics for flow in simulation.flows]
            hops = range(1, 2 + len(scenario.chain))
            return [*rows, *(simulation.queue_trace(hop).tolist() for hop in hops)]

    for ours, theirs in zip(history("native"), history("ns3"), strict=True):
        assert ours == theirs


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
    networks = [random_chain("codel", number) for number in range(60)]
    assert networks == [random_chain("codel", number) for number in range(60)]
    assert {len(network.chain) for network in networks} == {1, 2, 3}
    for network in networks:
        hops = 1 + len(network.chain)
        parts = {(flow.first_hop, flow.last_hop) for flow in network.flows}
        assert {(1, hops), *((hop, hop) for hop in range(1, hops + 1))} <= parts
        assert {flow.direction for flow in network.flows} == {"forward", "backward"}
