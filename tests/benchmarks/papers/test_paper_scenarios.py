"""The experiments of the Cubic+ paper, of the high-latency report and of IBCCA, as scenarios."""

from __future__ import annotations

import pytest

from quicgym import Scenario, ScenarioError, Simulation, load_scenario, run, scenario_names
from quicgym.envs.scenarios.applications import Transfer
from quicgym.envs.scenarios.fields import LINK_HEADER_BYTES
from quicgym.envs.scenarios.suites import load_suite
from quicgym.envs.simulation.traffic import burst_times_s

# Table 1 of the paper: rate, access rate (Mbps), RTT (ms), buffer (bytes), period, threshold (ms),
# and the size of the foreground's transfer from section 4.3.1.
NETWORKS = {
    "cubic-plus-2mbps-50kb": (2, 10, 20, 50_000, 100, 30, 5_000_000),
    "cubic-plus-2mbps-500kb": (2, 10, 20, 500_000, 100, 30, 500_000),
    "cubic-plus-400mbps-300kb": (400, 1000, 120, 300_000, 200, 0.6, 300_000_000),
    "cubic-plus-400mbps-1500kb": (400, 1000, 120, 1_500_000, 200, 0.6, 300_000_000),
}
ON_BOTH_ENGINES = ("", "-two", "-reno", "-completion")
ON_NS3 = ("-tcp-reno", "-completion-tcp-reno", "-completion-tcp-sack")
FURTHER = {"2": ("-rtt-2", "-rtt-3"), "400": ("-friendliness",)}
NAMES = [
    f"{network}{suffix}"
    for network, (rate, *_) in NETWORKS.items()
    for suffix in (*ON_BOTH_ENGINES, *ON_NS3, *FURTHER[str(rate)])
]


def shortened(name: str, duration_s: float) -> Scenario:
    """Without what begins later."""
    scenario = load_scenario(name)
    flows = tuple(flow for flow in scenario.flows if flow.start_s < duration_s)
    return scenario.model_copy(update={"duration_s": duration_s, "flows": flows})


def test_every_experiment_has_its_scenario() -> None:
    assert {name for name in scenario_names() if name.startswith("cubic-plus-")} == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_the_networks_are_the_papers(name: str) -> None:
    network = next(known for known in NETWORKS if name.startswith(f"{known}-") or name == known)
    rate, access, rtt_ms, buffer, period_ms, threshold_ms, _ = NETWORKS[network]
    scenario = load_scenario(name)
    assert scenario.bottleneck.rate_mbps == rate
    assert scenario.access.rate_mbps == access
    assert 2 * (scenario.bottleneck.delay_ms + 2 * scenario.access.delay_ms) == rtt_ms
    queue = scenario.bottleneck.queue
    assert (queue.limit, queue.unit, queue.discipline) == (buffer, "bytes", "drop-tail")
    assert scenario.max_datagram_bytes + LINK_HEADER_BYTES == 1500
    assert scenario.duration_s == 200
    start = {"slow_start": "standard"}
    plus = {**start, "period_ms": period_ms, "jitter_threshold_ms": threshold_ms}
    assert scenario.controller_parameters == {
        "newreno": start, "newreno+": plus, "cubic": start, "cubic+": plus
    }  # fmt: skip
    for flow in scenario.flows:
        assert flow.controller != "newreno" or flow.parameters == start


@pytest.mark.parametrize("network", NETWORKS)
def test_the_flows_are_the_papers(network: str) -> None:
    def flows(suffix: str) -> list[tuple[str, str | None, str, float]]:
        return [
            (flow.transport, flow.controller, name, flow.start_s)
            for name, flow in load_scenario(network + suffix).single_flows()
        ]

    assert flows("") == [("quic", None, "flow-1", 0)]
    assert flows("-two") == [("quic", None, "flow-1", 0), ("quic", None, "flow-2", 0)]
    variant = ("quic", None, "variant", 0)
    assert flows("-reno") == [variant, ("quic", "newreno", "reno", 0)]
    assert flows("-tcp-reno") == [variant, ("tcp", "linux-reno", "reno", 0)]
    for suffix, transport, controller in (
        ("", "quic", "newreno"),
        ("-tcp-reno", "tcp", "linux-reno"),
        ("-tcp-sack", "tcp", "linux-reno"),
    ):
        assert flows(f"-completion{suffix}") == [
            ("quic", None, "background", 0),
            (transport, controller, "foreground", 15),
        ]
        foreground = load_scenario(f"{network}-completion{suffix}").flows[1]
        assert foreground.application == Transfer(size_bytes=NETWORKS[network][-1])


@pytest.mark.parametrize("network", [name for name in NETWORKS if "-2mbps-" in name])
@pytest.mark.parametrize("ratio", [2, 3])
def test_the_rtt_of_one_flow_is_a_multiple_of_the_others(network: str, ratio: int) -> None:
    scenario = shortened(f"{network}-rtt-{ratio}", 2)
    # Alone, or the second flow's shortest RTT has the first one's packets in it.
    rtts_ms = []
    for flow in scenario.flows:
        simulation = Simulation(
            scenario.model_copy(update={"flows": (flow,)}), "native", 0, "cubic"
        )
        simulation.run()
        rtts_ms.append(simulation.flows[0].statistics["min_rtt"] * 1e-6)
    assert [flow.name for flow in scenario.flows] == ["rtt-20ms", f"rtt-{20 * ratio}ms"]
    assert rtts_ms[1] - rtts_ms[0] == pytest.approx(20 * ratio - 20, abs=0.01)
    assert 20 < rtts_ms[0] < 30  # a full packet takes 6 ms on the bottleneck


def test_friendliness_is_two_against_two() -> None:
    for network in ("cubic-plus-400mbps-300kb", "cubic-plus-400mbps-1500kb"):
        flows = load_scenario(f"{network}-friendliness").single_flows()
        assert [(name, flow.controller) for name, flow in flows] == [
            ("variant-1", None),
            ("variant-2", None),
            ("reno-1", "newreno"),
            ("reno-2", "newreno"),
        ]


@pytest.mark.parametrize("name", [name for name in NAMES if "-tcp-" not in name])
def test_the_native_engine_runs_them(name: str) -> None:
    scenario = shortened(name, 20 if "-2mbps-" in name else 3)
    if "-completion" in name and "-400mbps-" in name:
        scenario = scenario.model_copy(update={"flows": scenario.flows[:1]})
    simulation = Simulation(scenario, "native", 1, "cubic+", trace_interval_ms=None)
    assert simulation.flows[0].parameters["period_ms"] in (100, 200)
    simulation.run()
    for flow in simulation.flows:
        assert flow.statistics["goodput_bytes"] > 0
        assert flow.statistics["blocked_events"] == 0  # flow control never limits


@pytest.mark.ns3
@pytest.mark.parametrize("name", [name for name in NAMES if "-tcp-" in name])
def test_tcp_beside_quic_runs_on_ns3_only(name: str) -> None:
    scenario = load_scenario(name)
    with pytest.raises(ScenarioError, match=r"flows\.1\.transport = tcp; use the engine ns3"):
        scenario.check_engine("native")
    # The foreground from the start, so that it is seen in a short time.
    flows = tuple(flow.model_copy(update={"start_s": 0.0}) for flow in scenario.flows)
    scenario = scenario.model_copy(update={"duration_s": 0.5, "flows": flows})
    with Simulation(scenario, "ns3", 1, "cubic+", trace_interval_ms=None) as simulation:
        simulation.run()
        assert all(flow.statistics["goodput_bytes"] > 0 for flow in simulation.flows)


@pytest.mark.ns3
def test_sack_is_off_for_reno_and_on_for_sack() -> None:
    """Many losses in a window: without SACK they take a round trip each."""
    completions = []
    for kind in ("reno", "sack"):
        scenario = load_scenario(f"cubic-plus-2mbps-500kb-completion-tcp-{kind}")
        # Alone, and of a size that overflows the buffer once in slow start.
        foreground = scenario.flows[1].model_copy(
            update={"start_s": 0.0, "application": Transfer(size_bytes=3_000_000)}
        )
        scenario = scenario.model_copy(update={"duration_s": 60.0, "flows": (foreground,)})
        with Simulation(scenario, "ns3", 1, trace_interval_ms=None) as simulation:
            simulation.run()
            completions.append(simulation.flows[0].statistics["completion"])
    assert completions[1] is not None
    assert completions[0] is None or completions[0] > 1.2 * completions[1]


def test_the_high_latency_network_is_the_reports() -> None:
    scenario = load_scenario("high-latency")
    assert scenario.bottleneck.rate_mbps == 1
    assert 2 * (scenario.bottleneck.delay_ms + 2 * scenario.access.delay_ms) == 600
    results = []
    for controller in ("bbr", "bbr-smooth", "bbr-extended", "bbr-combined"):
        simulation = Simulation(scenario, "native", 0, controller)
        simulation.run()
        results.append(simulation.flows[0].statistics)
    assert all(total["min_rtt"] >= 600e6 for total in results)
    assert all(total["received_bytes"] * 8 / scenario.duration_s > 0.8e6 for total in results)


@pytest.mark.parametrize(
    ("name", "bdps"),
    [
        *((f"bbr3-cubic-{bdps}bdp", bdps) for bdps in (0.5, 1, 2)),
        *((f"bbr3-shallow-{flows}", 0.05) for flows in ("single", "flows-4")),
        ("bbr3-deep-single", 10),
    ],
)
def test_the_queues_of_the_networks_for_bbr3_are_as_many_bdp_as_they_say(
    name: str, bdps: float
) -> None:
    scenario = load_scenario(name)
    link = scenario.bottleneck
    rtt_s = 2 * (link.delay_ms + 2 * scenario.access.delay_ms) / 1000
    bdp_packets = link.rate_mbps * 1e6 / 8 * rtt_s / scenario.max_datagram_bytes
    assert link.queue.limit == pytest.approx(bdps * bdp_packets, rel=0.02)


def burst_goodput(scenario: Scenario, controller: str, engine: str) -> float:
    """Returns the goodput of the original data in the first burst."""
    short = scenario.model_copy(update={"duration_s": 3.0})
    times_s = [time_s for burst in burst_times_s(short) for time_s in burst]
    measured = run(short, controller, engine, trace_interval_ms=None, marks_s=times_s)
    return measured.metric("burst_goodput_mbps") or 0.0


WIRED = {scenario.name: scenario for scenario in load_suite("ibcca-wired")}


@pytest.mark.parametrize("controller", ["cubic", "bbr", "ibcca"])
def test_goodput_of_the_original_data_falls_with_the_rate_of_competing_bursts(
    controller: str,
) -> None:
    goodputs = [
        burst_goodput(WIRED[f"ibcca-wired-burst-{rate}-1s"], controller, "native")
        for rate in (28, 35, 42)
    ]
    assert goodputs == sorted(goodputs, reverse=True)
    assert goodputs[0] - goodputs[-1] > 5


@pytest.mark.ns3
@pytest.mark.parametrize("controller", ["cubic", "bbr"])
def test_bursts_compete_on_the_wireless_lan(controller: str) -> None:
    goodputs = [
        burst_goodput(load_scenario(f"ibcca-burst-{rate}"), controller, "ns3") for rate in (28, 42)
    ]
    assert goodputs[0] - goodputs[1] > 3


@pytest.mark.ns3
def test_a_bbr_flow_alone_has_the_delay_that_the_paper_prints() -> None:
    single = load_scenario("ibcca-single").model_copy(update={"duration_s": 6.0})
    (flow,) = run(single, "bbr", "ns3", trace_interval_ms=None).flows
    assert flow.mean_one_way_delay_ms == pytest.approx(4.29, rel=0.1)


@pytest.mark.parametrize("name", ["28", "35", "42", "35-2s", "35-3s"])
def test_the_bursts_over_a_wire_are_those_of_the_wireless_lan(name: str) -> None:
    flows = load_scenario(f"ibcca-burst-{name}").flows
    assert WIRED[f"ibcca-wired-burst-{name if '-' in name else f'{name}-1s'}"].flows == flows
    if "-" not in name:
        assert load_scenario(f"beyond-ibcca-burst-{name}").flows == flows
