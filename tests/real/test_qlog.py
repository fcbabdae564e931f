"""qlog files: of the simulator and of the stacks, held against what the runs counted."""

import json
import sys

import pytest
from helpers.scenarios import short

import quicgym
from quicgym import ScenarioError
from quicgym.envs.simulation.qlog import METRICS, log_path, read_log, rewrite_log
from quicgym.envs.simulation.simulation import MODES
from quicgym.errors import UserError
from quicgym.real import run_stack
from quicgym.real.comparison import run_real

linux = pytest.mark.skipif(sys.platform != "linux", reason="the relay needs Linux")
KEYS = {
    "transport:packet_sent": {"header", "raw", "frames"},
    "transport:packet_received": {"header", "raw", "frames"},
    "recovery:packet_lost": {"header", "raw", "trigger"},
    "recovery:metrics_updated": set(METRICS),
    "recovery:congestion_state_updated": {"old", "new"},
}
"""Name of an event -> the keys that its data may have."""


def events_of(path):
    """The events of a file, whose form is checked."""
    header, *events = read_log(path)
    assert (header["qlog_version"], header["qlog_format"]) == ("0.3", "JSON-SEQ")
    assert header["trace"]["vantage_point"]["type"] in {"client", "server"}
    assert header["trace"]["common_fields"]["time_format"] == "relative"
    times = [event["time"] for event in events]
    assert times == sorted(times)
    assert times[0] >= 0.0
    for event in events:
        assert set(event) == {"time", "name", "data"}
    return events


def sender_events(folder, flow=0):
    """The events of a file of the simulator, by name."""
    events = events_of(log_path(folder, flow, "sender"))
    named = {name: [] for name in KEYS}
    for event in events:
        data = event["data"]
        assert set(data) <= KEYS[event["name"]]
        if "header" in data:
            assert data["header"]["packet_type"] in {"initial", "1RTT"}
        named[event["name"]].append(data)
    return named


def numbers(packets):
    return [
        packet["header"]["packet_number"]
        for packet in packets
        if packet["header"]["packet_type"] == "1RTT"
    ]


def check_against(result, named, max_datagram_bytes=1400):
    """Holds a file against the run's statistics."""
    sent = named["transport:packet_sent"]
    assert numbers(sent) == list(range(len(numbers(sent))))
    logged_bytes = sum(packet["raw"]["length"] for packet in sent)
    assert logged_bytes == result.trace()["sent_bytes"].iloc[-1]
    lost = numbers(named["recovery:packet_lost"])
    data = [packet for packet in sent if packet["header"]["packet_type"] == "1RTT"]
    sizes = [packet["raw"]["length"] for packet in data]
    assert sum(sizes[number] for number in lost) == result.trace()["lost_bytes"].iloc[-1]
    frames = [frame for packet in named["transport:packet_received"] for frame in packet["frames"]]
    acked = {
        number
        for frame in frames
        for smallest, largest in frame["acked_ranges"]
        for number in range(smallest, largest + 1)
    }
    assert max(acked) <= numbers(sent)[-1]
    streams = [
        frame for packet in data for frame in packet["frames"] if frame["frame_type"] == "stream"
    ]
    assert streams
    assert all(0 < frame["length"] < max_datagram_bytes for frame in streams)
    latest = {}
    for update in named["recovery:metrics_updated"]:
        latest.update(update)
    row = result.trace().iloc[-1]
    assert latest["smoothed_rtt"] == pytest.approx(row["smoothed_rtt_ms"])
    assert latest["congestion_window"] == row["window_bytes"]
    modes = [update["new"] for update in named["recovery:congestion_state_updated"]]
    assert set(modes) <= set(MODES)
    assert modes[-1] == row["mode"]


@pytest.mark.parametrize("controller", ["newreno", "bbr3"])
def test_the_simulators_qlog_has_every_packet_loss_and_metric(controller, tmp_path):
    scenario = short(tmp_path, duration_s=3.0, loss=0.01)
    result = quicgym.run(scenario, controller, qlog=tmp_path / "logs")
    named = sender_events(tmp_path / "logs")
    check_against(result, named)
    flow = result.to_dict()["flows"][0]
    with quicgym.Simulation(scenario, controllers=controller) as simulation:
        simulation.run()
        counted = simulation.flows[0].statistics
    assert len(named["transport:packet_sent"]) == counted["sent_packets"]
    assert len(named["recovery:packet_lost"]) == counted["declared_lost_packets"] > 0
    assert flow["mean_rtt_ms"] == quicgym.run(scenario, controller).flows[0].mean_rtt_ms


def test_recording_events_changes_nothing_and_survives_a_batch_of_flows(tmp_path):
    scenario = short(tmp_path, flow="{count: 2}")
    quicgym.run(scenario, "cubic", qlog=tmp_path)
    plain = quicgym.run(scenario, "cubic")
    logged = quicgym.run(scenario, "cubic", qlog=tmp_path)
    assert plain.to_dict() == logged.to_dict()
    for flow in range(2):
        assert sender_events(tmp_path, flow)["transport:packet_sent"]
    with quicgym.Simulation(scenario, controllers="cubic") as simulation:
        simulation.run()
        assert len(simulation.events(0)) == 0


@linux
def test_aioquics_qlog_has_the_same_form(tmp_path):
    pytest.importorskip("quicgym_aioquic")
    run_stack(short(tmp_path), "newreno", "aioquic", "virtual", qlog=tmp_path / "logs")
    for side in ("sender", "receiver"):
        names = {event["name"] for event in events_of(log_path(tmp_path / "logs", 0, side))}
        assert {"transport:packet_sent", "transport:packet_received"} <= names
    sender = events_of(log_path(tmp_path / "logs", 0, "sender"))
    assert any("congestion_window" in event["data"] for event in sender)


def test_a_file_of_the_later_drafts_is_rewritten(tmp_path):
    path = tmp_path / "flow-0-sender.sqlog"
    stream = {"frame_type": "stream", "stream_id": 2, "offset": 0, "raw": {"payload_length": 9}}
    metrics = {"congestion_window": 7, "pacing_rate": 100}
    header = {"packet_type": "1RTT", "packet_number": 3, "length": 31}
    later = [
        {"file_schema": "urn:ietf:params:qlog:file:sequential"},
        {"time": 1.5, "name": "quic:packet_sent", "data": {"header": header, "frames": [stream]}},
        {"time": 2, "name": "quic:recovery_metrics_updated", "data": metrics},
    ]
    path.write_text("".join(f"\x1e{json.dumps(record)}\n" for record in later))
    rewrite_log(path, "sender", "noq-virtual")
    first, second = events_of(path)
    assert first["name"] == "transport:packet_sent"
    assert first["data"]["frames"][0]["length"] == 9
    assert first["data"]["raw"]["length"] == 31
    assert second["name"] == "recovery:metrics_updated"
    assert second["data"]["pacing_rate"] == 800  # bits per second


def test_the_command_writes_a_folder_for_each_run(tmp_path, capsys):
    pytest.importorskip("quicgym_aioquic")
    short(tmp_path, duration_s=0.6)
    status = run_real(
        scenarios=[str(tmp_path / "short.yaml")],
        controllers=["cubic:beta=0.6"],
        stack="aioquic",
        clock="virtual",
        compare=True,
        qlog=tmp_path / "logs",
    )
    assert status == 0
    folders = sorted(path.name for path in (tmp_path / "logs").iterdir())
    assert folders == [
        "short-cubic-beta-0.6-seed-0-aioquic-virtual",
        "short-cubic-beta-0.6-seed-0-native",
    ]
    assert sender_events(tmp_path / "logs" / folders[1])["transport:packet_sent"]


def test_what_writes_no_qlog_is_named(tmp_path, monkeypatch):
    scenario = short(tmp_path)
    with pytest.raises(ScenarioError, match="records no events"):
        quicgym.Simulation(scenario, "ns3", controllers="bbr", record_events=True)
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="name another folder"):
        quicgym.run(scenario, "bbr", qlog=tmp_path / "file" / "logs")

    class Silent:
        name, clocks, own_controllers = "silent", ("virtual",), ()

        def run(self, flows, network, *, clock, duration, interval, progress, deadline_s):
            raise AssertionError

    monkeypatch.setattr("quicgym.real.runs.find_stack", lambda name: Silent())
    with pytest.raises(ScenarioError, match="'silent' writes no qlog"):
        run_stack(scenario, "bbr", "silent", qlog=tmp_path)
