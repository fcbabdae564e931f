"""The ns-3 host: what ns-3 adds, what it refuses, and that it leaves nothing behind."""

from __future__ import annotations

import math
import random
import struct
import threading
import xml.etree.ElementTree as ElementTree
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import scenarios
from helpers.endpoints import MILLISECOND, make_flow, make_link, make_scenario, rate_steps
from helpers.memory import resident_bytes

from quicgym import Scenario, Simulation, _core

_ns3: Any = pytest.importorskip("quicgym_ns3", exc_type=ImportError)

pytestmark = pytest.mark.ns3

QUEUE_PACKETS = 40
DATAGRAM_BYTES = 1200
LINK_BYTES = 30


def dumbbell(flows: list[dict[str, Any]], **queue: Any) -> Scenario:
    """10 Mbps, 40 ms of round trip, for 10 s."""
    return scenarios.dumbbell(
        flows,
        duration_s=10,
        rate_mbps=10,
        delay_ms=15,
        access=(100, 2.5),
        bottleneck={"queue": {"limit": QUEUE_PACKETS, **queue}},
        max_datagram_bytes=DATAGRAM_BYTES,
    )


def totals_of(scenario: Scenario, until_s: float | None = None) -> list[dict[str, Any]]:
    """Every flow's totals after a run on ns-3."""
    with Simulation(scenario, "ns3", trace_interval_ms=None) as simulation:
        simulation.run_until(until_s or scenario.duration_s)
        return [flow.statistics for flow in simulation.flows]


def quic(controller: str = "newreno", **fields: Any) -> dict[str, Any]:
    return {"name": f"quic-{controller}", "controller": controller, **fields}


def tcp(controller: str, **fields: Any) -> dict[str, Any]:
    return {"name": f"tcp-{controller}", "transport": "tcp", "controller": controller, **fields}


def rows(simulation: Simulation) -> list[Any]:
    """Everything that a run records, without the padding between a row's fields."""
    arrays = [simulation.trace(flow.index) for flow in simulation.flows]
    return [array.tolist() for array in [*arrays, simulation.queue_trace()]]


def test_drop_tail_has_no_queue_disc_before_the_device() -> None:
    with Simulation(dumbbell([quic()]), "ns3", trace_interval_ms=1) as simulation:
        simulation.run()
        queue = simulation.queue_trace()
        statistics = simulation.flows[0].statistics
    # ns-3's helpers would put a queue disc of 1000 packets or more in front: nothing would drop.
    assert statistics["dropped_packets"] > 0
    assert queue["packets"].max() == QUEUE_PACKETS
    assert queue["bytes"].max() <= QUEUE_PACKETS * (DATAGRAM_BYTES + LINK_BYTES)


def test_deliveries_equal_those_of_the_native_engine() -> None:
    """Equal delays and rates, so that much happens at one instant, and changed parameters."""
    scenario = dumbbell([quic("cubic"), quic("newreno"), quic("bbr")], limit=4)
    results = []
    for engine in ("native", "ns3"):
        with Simulation(scenario, engine, record_deliveries=True) as simulation:
            simulation.run_until(2)
            simulation.flows[2].set_parameters(gain_cycle=[1.5, 0.5])
            simulation.run_until(4)
            results.append((simulation.deliveries().tolist(), rows(simulation)))
    assert len(results[0][0]) > 2000
    assert results[0] == results[1]


def test_links_transmit_as_the_native_engine_computes() -> None:
    generator = random.Random(1)
    for _ in range(20_000):
        any_rate = generator.randrange(1_000, 10**11)
        rate = generator.choice([any_rate, any_rate // 10**6 * 10**6 + 10**6])
        wire_bytes = generator.randrange(1, 1503)
        expected = _core.transmission_time_ns(wire_bytes, rate)
        assert _ns3.transmission_time_ns(wire_bytes, rate) == expected, (wire_bytes, rate)


def test_a_second_simulation_is_refused_until_the_first_is_closed() -> None:
    first = Simulation(dumbbell([quic()]), "ns3")
    first.run_until(1)
    with pytest.raises(RuntimeError, match=r"close\(\).*another process"):
        Simulation(dumbbell([quic()]), "ns3")
    first.run_until(2)
    before = first.flows[0].statistics
    first.close()
    first.close()
    assert first.flows[0].statistics == before
    with pytest.raises(RuntimeError, match="closed"):
        first.run_until(3)
    with pytest.raises(RuntimeError, match="closed"):
        first.flows[0].set_parameters()
    with Simulation(dumbbell([quic()]), "ns3") as second:
        second.run_until(1)


def test_a_refused_scenario_leaves_ns3_free() -> None:
    unknown = valid_core(controller="no-such-controller")
    for core, text in ((_core.Scenario(), "flows"), (unknown, "no-such-controller")):
        with pytest.raises(ValueError, match=text):
            _ns3.Ns3Simulation(core, 1)
    _ns3.Ns3Simulation(valid_core(), 1).close()


def test_time_does_not_go_back_but_the_present_may_be_run_to_again() -> None:
    simulation = _ns3.Ns3Simulation(valid_core(), 1)
    for _ in range(2):
        simulation.run_until(1_500_000_001)
        assert simulation.now == 1_500_000_001
    with pytest.raises(ValueError, match="before the current time"):
        simulation.run_until(1_500_000_000)
    simulation.close()


def test_any_thread_may_drive() -> None:
    """ns-3 ends the process when another thread than its own schedules an event."""

    def drive(simulation: Any) -> None:
        simulation.run_until(10**9)
        simulation.set_parameters(0, {})
        simulation.run_until(2 * 10**9)

    results = []
    for elsewhere in (True, False):
        simulation = _ns3.Ns3Simulation(valid_core(), 1)
        if elsewhere:
            thread = threading.Thread(target=drive, args=(simulation,))
            thread.start()
            thread.join()
        simulation.run_until(3 * 10**9)
        results.append(simulation.statistics(0))
        simulation.close()
    assert results[0] == results[1]


def valid_core(link_fields: dict[str, dict[str, Any]] | None = None, **flow_fields: Any) -> Any:
    """A scenario that ns-3 can do, unless these fields of a link or of its flow prevent it."""
    links = {
        name: make_link(10_000_000, 15 * MILLISECOND, 40) for name in ("bottleneck", "reverse")
    }
    for name, fields in (link_fields or {}).items():
        for field, value in fields.items():
            setattr(links[name], field, value)
    usual = {"access_rate_bits_per_second": 100_000_000, "access_delay": 2_500_000}
    return make_scenario([make_flow(**usual | flow_fields)], *links.values())


TCP = _core.Transport.tcp


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"max_datagram_bytes": 1473}, "MTU"),
        ({"access_rate_bits_per_second": 0}, "access rate"),
        ({"transport": TCP, "controller": "ebcc"}, "there are newreno"),
        *(
            ({"transport": TCP, "controller": controller, "parameters": {name: values}}, expected)
            for controller, name, values, expected in (
                ("newreno", "beta", [0.5], "has an attribute 'beta'"),
                ("newreno", "DelAckCount", [1, 2], "DelAckCount takes one value"),
                ("newreno", "DelAckCount", [0.5], "DelAckCount takes one value"),
                ("newreno", "DelAckCount", [math.nan], "DelAckCount takes one value"),
                ("newreno", "Sack", [2], "Sack takes 0 or 1"),
                ("newreno", "SegmentSize", [0], "set that"),
                ("bbr", "HighGain", [0], "'HighGain' of ns-3's TCP must be above 0"),
            )
        ),
    ],
)
def test_a_flow_that_ns3_cannot_do(fields: dict[str, Any], expected: str) -> None:
    with pytest.raises(ValueError, match=expected):
        _ns3.Ns3Simulation(valid_core(**fields), 1)


@pytest.mark.parametrize(
    ("discipline", "unit"),
    # ns-3's FqCoDel counts packets only.
    [("fq-codel", "packets"), *product(["fifo", "codel", "pie", "red"], ["packets", "bytes"])],
)
def test_queue_disc(discipline: str, unit: str) -> None:
    limit = QUEUE_PACKETS if unit == "packets" else QUEUE_PACKETS * (DATAGRAM_BYTES + 28)
    flows = [quic("cubic"), quic("newreno")]
    scenario = dumbbell(flows, limit=limit, unit=unit, discipline=discipline)
    with Simulation(scenario, "ns3") as simulation:
        simulation.run()
        queue = simulation.queue_trace()
        statistics = [flow.statistics for flow in simulation.flows]
    assert sum(total["goodput_bytes"] for total in statistics) * 8 / 10 > 8.5e6
    for total in statistics:
        assert total["dropped_packets"] > 0
        assert total["sent_packets"] - total["received_packets"] - total["dropped_packets"] < 60
        # Whatever left the queue arrived, but for the few packets between it and the receiver.
        assert 0 <= total["queue_samples"] - total["received_packets"] < 25
    delay_s = sum(total["queue_delay_sum_seconds"] for total in statistics)
    mean_delay_s = delay_s / sum(total["queue_samples"] for total in statistics)
    # The disc's limit and the one packet that the device keeps ready.
    assert queue["packets"].max() <= QUEUE_PACKETS + 1
    if discipline == "fifo":
        assert queue["packets"].max() == QUEUE_PACKETS + 1
        assert mean_delay_s > 0.02
    else:
        assert mean_delay_s < 0.02


@pytest.mark.parametrize("discipline", ["codel", "fq-codel", "pie", "red"])
def test_queue_disc_marks(discipline: str) -> None:
    marking = dumbbell([quic("cubic", ecn=True)], discipline=discipline, ecn_marking=True)
    (marked,) = totals_of(marking)
    (dropped,) = totals_of(dumbbell([quic("cubic")], discipline=discipline))
    assert marked["ecn_marks"] > 0
    assert marked["dropped_packets"] < dropped["dropped_packets"]


@pytest.mark.parametrize("controller", ["newreno", "linux-reno", "cubic", "bbr", "vegas"])
def test_tcp_flow(controller: str) -> None:
    with Simulation(dumbbell([tcp(controller)]), "ns3", trace_interval_ms=100) as simulation:
        simulation.run()
        flow = simulation.flows[0]
        total = flow.statistics
        trace = simulation.trace(0)
        assert flow.parameters == {}
        assert flow.snapshot["window_bytes"] == trace["window_bytes"][-1] > 0
        with pytest.raises(ValueError, match="before it starts"):
            flow.set_parameters(beta=0.5)
    # ns-3's Vegas stays below the capacity: it judges by the smoothed RTT, ACK delays included.
    assert total["goodput_bytes"] * 8 / 10 > (3e6 if controller == "vegas" else 8e6)
    assert total["received_bytes"] == total["received_packets"] * DATAGRAM_BYTES
    assert 0 <= total["sent_packets"] - total["received_packets"] - total["dropped_packets"] < 100
    assert 40e6 < total["min_rtt"] < 45e6
    assert 0.04 < total["rtt_sum_seconds"] / total["rtt_samples"] < 0.09
    assert trace["delivered_bytes"][-1] <= total["goodput_bytes"]
    assert (np.diff(trace["sent_bytes"].astype(np.int64)) >= 0).all()


def tcp_option_kinds(capture: bytes) -> set[int]:
    """The kinds of TCP options in a pcap file of packets with PPP and IPv4 headers."""
    kinds = set()
    position = 24
    while position < len(capture):
        captured = struct.unpack_from("=I", capture, position + 8)[0]
        tcp_header = capture[position + 16 + 22 : position + 16 + captured]
        options = tcp_header[20 : (tcp_header[12] >> 4) * 4]
        while options:
            kinds.add(options[0])
            options = options[1 if options[0] <= 1 else options[1] :]  # end and padding: one byte
        position += 16 + captured
    return kinds


def test_tcp_with_and_without_sack(tmp_path: Path) -> None:
    """RFC 2018: option 4 allows selective acknowledgements, option 5 holds them."""
    totals = []
    for sack in (0, 1):
        prefix = tmp_path / f"sack-{sack}"
        scenario = dumbbell([tcp("newreno", parameters={"Sack": sack})])
        with Simulation(scenario, "ns3", pcap_prefix=str(prefix)) as simulation:
            simulation.run()
            total = simulation.flows[0].statistics
        kinds = tcp_option_kinds(Path(f"{prefix}-router-1.pcap").read_bytes())
        assert (4 in kinds, 5 in kinds) == (bool(sack), bool(sack))
        assert 8 in kinds  # timestamps, in both
        assert total["dropped_packets"] > 0
        totals.append(total)
    without, with_sack = totals
    # Without SACK a recovery repairs one segment per round trip, and more waits for a timeout.
    assert without["goodput_bytes"] < 0.95 * with_sack["goodput_bytes"]
    assert without["declared_lost_packets"] > 2 * with_sack["declared_lost_packets"]


def test_tcp_beside_quic() -> None:
    totals = totals_of(dumbbell([quic("cubic"), tcp("cubic")]))
    rates = [total["goodput_bytes"] * 8 / 10 for total in totals]
    assert min(rates) > 1e6
    assert sum(rates) > 8.5e6


@pytest.mark.parametrize(
    ("application", "expected_bytes"),
    [
        ({"kind": "transfer", "size_bytes": 3_000_000}, 3_000_000),
        ({"kind": "constant-rate", "rate_mbps": 2}, 10 * 250_000),
        ({"kind": "on-off", "rate_mbps": 4, "on_s": 1, "off_s": 1}, 5 * 500_000),
        (
            {
                **{"kind": "bursts", "rate_mbps": 1, "burst_rate_mbps": 4},
                **{"burst_duration_s": 1, "burst_period_s": 4, "burst_count": 3},
            },
            10 * 125_000 + 3 * 500_000,
        ),
    ],
)
def test_tcp_application(application: dict[str, Any], expected_bytes: int) -> None:
    (total,) = totals_of(dumbbell([tcp("cubic", application=application)]))
    assert total["goodput_bytes"] == pytest.approx(expected_bytes, rel=0.02)
    if application["kind"] == "transfer":
        assert total["goodput_bytes"] == expected_bytes
        assert total["completion"] is not None


def test_tcp_stops() -> None:
    with Simulation(dumbbell([tcp("cubic", stop_s=5)]), "ns3") as simulation:
        simulation.run_until(6)
        sent = simulation.flows[0].statistics["sent_packets"]
        simulation.run()
        assert simulation.flows[0].statistics["sent_packets"] == sent > 3000


def test_output_files(tmp_path: Path) -> None:
    monitor = tmp_path / "monitor.xml"
    prefix = tmp_path / "capture"
    with Simulation(
        dumbbell([quic()]), "ns3", pcap_prefix=str(prefix), flow_monitor_path=monitor
    ) as simulation:
        simulation.run_until(3)
        total = simulation.flows[0].statistics
    flows = ElementTree.parse(monitor).getroot().findall("./FlowStats/Flow")
    assert int(flows[0].attrib["txPackets"]) == total["sent_packets"]
    assert int(flows[0].attrib["rxPackets"]) == total["received_packets"]
    assert len(flows) == 2
    for router in (1, 2):
        capture = Path(f"{prefix}-router-{router}.pcap").read_bytes()
        magic, link_type = struct.unpack("=I16xI", capture[:24])
        assert magic in (0xA1B2C3D4, 0xA1B23C4D)
        assert link_type == 9  # PPP
        assert len(capture) > total["received_packets"] * DATAGRAM_BYTES


@pytest.mark.parametrize("option", ["pcap_prefix", "flow_monitor_path"])
def test_output_file_that_cannot_be_written(tmp_path: Path, option: str) -> None:
    with pytest.raises(ValueError, match="cannot write"):
        Simulation(dumbbell([quic()]), "ns3", **{option: str(tmp_path / "no-such-folder" / "x")})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("flows", "queue"),
    [
        ([quic("bbr"), quic("cubic")], {}),
        ([quic("cubic")], {"discipline": "red"}),
        ([quic("cubic")], {"discipline": "pie"}),
        ([tcp("bbr")], {}),
    ],
)
def test_equal_seeds_equal_traces(flows: list[dict[str, Any]], queue: dict[str, Any]) -> None:
    """In one process, where ns-3's own random streams would go on from simulation to simulation."""
    jittered = [{**flow, "start_jitter_ms": 20} for flow in flows]
    results = []
    for seed in (5, 5, 6):
        with Simulation(dumbbell(jittered, **queue), "ns3", seed) as simulation:
            simulation.run_until(5)
            results.append(rows(simulation))
    assert results[0] == results[1]
    assert results[0] != results[2]


def test_episodes_leave_no_memory_behind() -> None:
    scenario = dumbbell([quic("bbr"), quic("cubic"), tcp("cubic")], discipline="fq-codel")

    def episodes(count: int) -> None:
        for seed in range(count):
            with Simulation(scenario, "ns3", seed) as simulation:
                simulation.run_until(0.5)

    episodes(10)
    before = resident_bytes()
    episodes(50)
    # A leaked node with its stack would be about 20 kB, of which an episode has eight.
    assert resident_bytes() - before < 1_000_000


def test_the_bytes_that_wait_are_those_on_the_wire() -> None:
    scenario = dumbbell([quic("cubic")], discipline="fifo")
    with Simulation(scenario, "ns3", trace_interval_ms=1) as simulation:
        simulation.run_until(2)
        queue = simulation.queue_trace()
    full = queue[queue["packets"] > 10]
    assert len(full) > 500
    # Now and then a packet is not full.
    wire_bytes = full["packets"] * (DATAGRAM_BYTES + LINK_BYTES)
    assert (full["bytes"] <= wire_bytes).all()
    assert (full["bytes"] == wire_bytes).mean() > 0.8


def test_tcps_window_counts_until_the_flow_ends() -> None:
    with Simulation(dumbbell([tcp("cubic", stop_s=1.5)]), "ns3") as simulation:
        simulation.run_until(1.5)
        at_the_end = simulation.flows[0].statistics
        simulation.run_until(3)
        later = simulation.flows[0].statistics
    assert later["received_bytes"] > at_the_end["received_bytes"]
    for key in ("window_seconds", "window_packet_seconds", "max_window_packets"):
        assert later[key] == at_the_end[key]


def lossy_tcp(probability: float, **fields: Any) -> Scenario:
    description = dumbbell([tcp("cubic", **fields)]).model_dump()
    description["bottleneck"]["loss"] = {"kind": "bernoulli", "probability": probability}
    return Scenario.model_validate(description)


def test_tcps_lost_bytes_are_those_sent_again() -> None:
    scenario = lossy_tcp(0.02, application={"kind": "constant-rate", "rate_mbps": 2})
    with Simulation(scenario, "ns3", 1, trace_interval_ms=100) as simulation:
        simulation.run_until(6)
        lost_packets = simulation.flows[0].statistics["declared_lost_packets"]
        assert lost_packets > 10
        assert simulation.trace(0)["lost_bytes"][-1] == lost_packets * DATAGRAM_BYTES


def test_tcps_timeouts_are_counted() -> None:
    (total,) = totals_of(lossy_tcp(0.3), 10)
    assert 0 < total["probe_timeouts"] <= 10 / 0.2


def test_the_end_of_a_tcp_connection_is_no_delivered_byte() -> None:
    application = {"kind": "transfer", "size_bytes": 100_000}
    flow = tcp("cubic", application=application)
    with Simulation(dumbbell([flow]), "ns3", trace_interval_ms=100) as simulation:
        simulation.run_until(2)
        assert simulation.trace(0)["delivered_bytes"][-1] == 100_000


def short_transfers(count: int, until_s: float) -> list[dict[str, Any]]:
    """Totals of TCP transfers that begin every 50 ms, from 1 s on, into a full queue of a packet.

    SYNs and the handshake's third packets are dropped; ns-3 repeats a SYN after 3 s.
    """
    application = {"kind": "transfer", "size_bytes": 1000}
    transfers = [
        tcp("cubic", name=f"{index}", start_s=1 + index / 20, application=application)
        for index in range(count)
    ]
    flows = [quic("cubic", count=4), *transfers]
    return totals_of(dumbbell(flows, limit=1), until_s)[4:]


def test_dropped_packets_without_data_do_not_count() -> None:
    totals = short_transfers(20, 12)
    waited = [total["completion"] * 1e-9 - 1 - i / 20 for i, total in enumerate(totals)]
    assert max(waited) > 3
    for total in totals:
        assert total["sent_packets"] - total["received_packets"] == total["dropped_packets"]


def test_data_that_completes_tcps_handshake_is_counted_as_received() -> None:
    # The first packet of data carries the same acknowledgement as the handshake's third packet.
    for total in short_transfers(50, 20):
        assert total["completion"] is not None
        assert total["received_packets"] >= 1
        assert total["sent_packets"] - total["received_packets"] == total["dropped_packets"]


def test_the_largest_datagram_and_steps_at_the_same_time_can_be_done() -> None:
    changes = {"rate_schedule": rate_steps((5e-9, 10**6), (5e-9, 10**7))}
    simulation = _ns3.Ns3Simulation(valid_core({"bottleneck": changes}, max_datagram_bytes=1472), 1)
    simulation.run_until(10**9)
    assert simulation.statistics(0)["goodput_bytes"] > 100_000
    simulation.close()
