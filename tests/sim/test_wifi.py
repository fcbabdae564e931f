"""The wireless LAN, which ns-3 alone can do."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import gymnasium
import numpy as np
import pytest
import yaml
from helpers.memory import resident_bytes

from quicgym import ScenarioError, Simulation, load_scenario
from quicgym.envs import Scenario

ns3 = pytest.mark.ns3
START_S = 0.5
"""The stations are associated by then."""

WIFI: dict[str, Any] = {
    "standard": "802.11n",
    "band_ghz": 5,
    "channel_width_mhz": 40,
    "mcs": 7,
    "short_guard_interval": False,
    "max_ampdu_bytes": 65535,
    "distance_m": 1,
    "path_loss_exponent": 3,
    "queue": {"limit_packets": 500, "max_delay_ms": 500},
    "wired": {"rate_mbps": 1000, "delay_ms": 0, "queue_packets": 100},
}


def lan_fields(flows: list[dict[str, Any]], **wifi: Any) -> dict[str, Any]:
    return {
        **{"name": "lan", "duration_s": 3, "flows": flows, "wifi": {**WIFI, **wifi}},
        "access": {"rate_mbps": 1000, "delay_ms": 0},
    }


def lan(flows: list[dict[str, Any]], **wifi: Any) -> Scenario:
    return Scenario.model_validate(lan_fields(flows, **wifi))


def flow(controller: str = "newreno", **fields: Any) -> dict[str, Any]:
    return {"controller": controller, "start_s": START_S, **fields}


OFFERED_150 = flow(application={"kind": "constant-rate", "rate_mbps": 150})


def run(flows: list[dict[str, Any]], **wifi: Any) -> tuple[list[dict[str, Any]], list[float], int]:
    """Every flow's totals, the rates in Mbps at which they received, and the longest queue."""
    with Simulation(lan(flows, **wifi), "ns3") as simulation:
        simulation.run()
        totals = [flow.statistics for flow in simulation.flows]
        rates = [total["received_bytes"] * 8e-6 / (3 - START_S) for total in totals]
        return totals, rates, int(simulation.queue_trace()["packets"].max())


@ns3
@pytest.mark.parametrize(
    ("wifi", "low", "high"),
    [
        ({}, 98, 108),
        ({"mcs": 6}, 90, 98),
        ({"short_guard_interval": True}, 110, 120),
        ({"channel_width_mhz": 20}, 48, 60),
        ({"max_ampdu_bytes": 0}, 15, 40),
    ],
)
def test_capacity(wifi: dict[str, Any], low: float, high: float) -> None:
    _, (rate_mbps,), _ = run([OFFERED_150], **wifi)
    assert low < rate_mbps < high


@ns3
def test_every_packet_is_accounted_for() -> None:
    with Simulation(
        lan([OFFERED_150]), "ns3", record_deliveries=True, trace_interval_ms=1
    ) as simulation:
        simulation.run()
        total = simulation.flows[0].statistics
        queue = simulation.queue_trace()
        occupancy = simulation.queue_occupancy_seconds / simulation.time
        numbers = simulation.deliveries()["packet_number"]
    missing = len(np.setdiff1d(np.arange(numbers.max() + 1), numbers))
    assert total["dropped_packets"] == missing > 0
    assert total["declared_lost_packets"] == missing
    in_flight = total["sent_packets"] - total["received_packets"] - total["dropped_packets"]
    assert 0 <= in_flight <= 500
    assert queue["packets"].max() == 500
    assert occupancy == pytest.approx(queue["packets"].mean(), rel=0.01)
    mean_one_way_delay_s = total["one_way_delay_sum_seconds"] / total["received_packets"]
    assert abs(total["queue_samples"] - total["received_packets"]) < 100
    mean_delay_s = total["queue_delay_sum_seconds"] / total["queue_samples"]
    assert 0.005 < mean_one_way_delay_s < total["rtt_sum_seconds"] / total["rtt_samples"] < 0.1
    # Frames of an aggregate arrive one by one and are acknowledged together.
    assert mean_one_way_delay_s < mean_delay_s < 1.2 * mean_one_way_delay_s


@ns3
@pytest.mark.parametrize(("packets", "delay_ms"), [(50, 500), (500, 8)])
def test_a_short_queue_and_a_short_delay_bound_the_wait(packets: int, delay_ms: int) -> None:
    queue = {"limit_packets": packets, "max_delay_ms": delay_ms}
    (total,), _, longest = run([OFFERED_150], queue=queue)
    assert longest <= packets
    assert total["dropped_packets"] > 0
    assert total["queue_delay_sum_seconds"] / total["queue_samples"] < 0.01


@ns3
def test_the_wired_link_may_be_the_bottleneck() -> None:
    wired = {"rate_mbps": 20, "delay_ms": 5, "queue_packets": 20}
    (total,), (rate_mbps,), _ = run([OFFERED_150], wired=wired)
    assert 15 < rate_mbps < 20
    assert total["dropped_packets"] == total["declared_lost_packets"] > 0
    assert total["min_rtt"] > 10e6


@ns3
def test_access_link_and_extra_delay_are_the_senders() -> None:
    access = {"rate_mbps": 10, "delay_ms": 3}
    (near, far), rates_mbps, _ = run([flow(access=access), flow(access=access, extra_delay_ms=4)])
    assert rates_mbps[0] < 10
    assert 6e6 < near["min_rtt"] < 9e6
    assert 14e6 < far["min_rtt"] < 17e6


@ns3
def test_several_stations_share_the_air() -> None:
    _, rates_mbps, _ = run([flow(count=3)])
    assert len(rates_mbps) == 3 and min(rates_mbps) > 10
    assert 90 < sum(rates_mbps) < 108


@ns3
def test_bursts_fill_the_send_buffer() -> None:
    application = {
        **{"kind": "bursts", "rate_mbps": 20, "burst_rate_mbps": 120},
        **{"burst_duration_s": 0.5, "burst_period_s": 1, "burst_count": 2},
    }
    (total,), _, _ = run([flow(application=application)])
    assert total["goodput_bytes"] == pytest.approx(2.5 * 2.5e6 + 2 * 0.5 * 15e6, rel=0.02)
    assert total["send_buffer_events"] >= 1


@ns3
def test_tcp_over_the_air() -> None:
    (total,), (rate_mbps,), _ = run([flow("cubic", transport="tcp")])
    assert 85 < rate_mbps < 108
    assert total["sent_packets"] - total["received_packets"] - total["dropped_packets"] < 600


@ns3
def test_equal_seeds_equal_traces() -> None:
    """In one process, where ns-3's random streams and addresses could go on from run to run."""
    results = []
    for seed in (5, 5, 6):
        with Simulation(
            lan([flow("bbr"), flow("cubic")]), "ns3", seed, record_deliveries=True
        ) as simulation:
            simulation.run_until(1.5)
            traces = [simulation.trace(index).tolist() for index in range(2)]
            queue = simulation.queue_trace().tolist()
            results.append((simulation.deliveries().tolist(), traces, queue))
    assert len(results[0][0]) > 1000
    assert results[0] == results[1]
    assert results[0] != results[2]


@ns3
def test_output_files(tmp_path: Path) -> None:
    monitor = tmp_path / "monitor.xml"
    prefix = tmp_path / "capture"
    with Simulation(
        lan([flow()]), "ns3", pcap_prefix=str(prefix), flow_monitor_path=monitor
    ) as simulation:
        simulation.run_until(1)
        total = simulation.flows[0].statistics
    flows = ElementTree.parse(monitor).getroot().findall("./FlowStats/Flow")
    assert int(flows[0].attrib["txPackets"]) == total["sent_packets"]
    assert int(flows[0].attrib["rxPackets"]) == total["received_packets"]
    for end, expected_link_type in (("router", 9), ("access-point", 105)):  # PPP, IEEE 802.11
        capture = Path(f"{prefix}-{end}.pcap").read_bytes()
        magic, link_type = struct.unpack("=I16xI", capture[:24])
        assert magic in (0xA1B2C3D4, 0xA1B23C4D)
        assert link_type == expected_link_type
        assert len(capture) > total["received_packets"] * 1200


def error_of(folder: Path, **changes: Any) -> str:
    path = folder / "lan.yaml"
    path.write_text(yaml.safe_dump({**lan_fields([{}]), **changes}))
    with pytest.raises(ScenarioError) as caught:
        load_scenario(path)
    message = str(caught.value)
    assert str(path) in message
    return message


def wifi_with(**fields: Any) -> dict[str, Any]:
    return {"wifi": {**WIFI, **fields}}


WIRED = WIFI["wired"]
LINK = {"rate_mbps": 15, "delay_ms": 10}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"bottleneck": LINK}, ["bottleneck = ", "wifi takes its place", "leave out wifi or"]),
        ({"reverse": LINK}, ["reverse = ", "wifi takes its place", "leave out wifi or reverse"]),
        (wifi_with(standard="802.11ax"), ["wifi.standard = '802.11ax'", "did you mean 802.11n"]),
        (wifi_with(mcs=8), ["wifi.mcs = 8", "give a whole number, 0 to 7"]),
        (wifi_with(wired={**WIRED, "trace": "x"}), ["wifi.wired.trace", "unknown field"]),
        ({"wifi": None}, ["bottleneck", "missing", "or wifi"]),
        (
            {"short_flows": [{"arrivals_per_s": 1, "sizes": 1000}]},
            ["short_flows = ", "stations for flows alone", "leave out wifi or short_flows"],
        ),
    ],
    ids=str,
)
def test_refused_by_field(tmp_path: Path, changes: dict[str, Any], expected: list[str]) -> None:
    message = error_of(tmp_path, **changes)
    for text in expected:
        assert text in message


def test_nothing_has_a_default(tmp_path: Path) -> None:
    for field in WIFI:
        rest = {name: value for name, value in WIFI.items() if name != field}
        message = error_of(tmp_path, wifi=rest)
        assert f"wifi.{field}" in message and "missing" in message, field


@ns3
def test_episodes_leave_no_memory_behind() -> None:
    def episodes(count: int) -> None:
        for seed in range(count):
            with Simulation(lan([flow("bbr", start_s=0.2)]), "ns3", seed) as simulation:
                simulation.run_until(0.3)

    episodes(10)
    before = resident_bytes()
    episodes(30)
    assert resident_bytes() - before < 1_000_000


@ns3
@pytest.mark.parametrize(
    ("short", "width_mhz", "rate_mbps"), [(False, 20, 65), (True, 20, 72.222), (True, 40, 150)]
)
def test_the_share_is_of_the_rate_on_the_air(short: bool, width_mhz: int, rate_mbps: float) -> None:
    scenario = lan([{"start_s": START_S}], short_guard_interval=short, channel_width_mhz=width_mhz)
    environment = gymnasium.make(
        "quicgym/Tuning-v1", scenario=scenario, engine="ns3", decision_interval_ms=50
    ).unwrapped
    environment.reset(seed=1)
    *_, info = environment.step(environment.action_space.low * 0)
    environment.close()
    assert info["throughput_mbps"] / info["throughput_share"] == pytest.approx(rate_mbps, rel=1e-5)
