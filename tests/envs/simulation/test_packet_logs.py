"""qlog and pcap files with every Nth packet, and with a limit of their size."""

from __future__ import annotations

import struct
from collections import Counter
from pathlib import Path

import pytest

import quicgym
from quicgym.agents.evaluation.rollouts import play
from quicgym.agents.policies import find_policy
from quicgym.envs.simulation.packet_logs import PacketLogs
from quicgym.envs.simulation.pcap import thinned
from quicgym.envs.simulation.qlog import read_log

LOSSY = quicgym.Scenario(
    name="lossy",
    duration_s=3,
    bottleneck={"rate_mbps": 4, "delay_ms": 10, "queue": {"limit": 10}},
    access={"rate_mbps": 100, "delay_ms": 1},
    flows=[{}],
)
COUNTED = ("transport:packet_sent", "transport:packet_received", "recovery:metrics_updated")


def counts(folder: Path) -> Counter[str]:
    return Counter(record["name"] for record in read_log(folder / "flow-0-sender.sqlog")[1:])


def test_every_tenth_packet_is_in_a_qlog_file_and_every_loss(tmp_path: Path) -> None:
    quicgym.run(LOSSY, "cubic", qlog=tmp_path / "all")
    quicgym.run(LOSSY, "cubic", qlog=PacketLogs(tmp_path / "few", every=10))
    every, tenth = counts(tmp_path / "all"), counts(tmp_path / "few")
    for name in COUNTED:
        assert tenth[name] == -(-every[name] // 10) > 10, name
    assert tenth["recovery:packet_lost"] == every["recovery:packet_lost"] > 10
    header = read_log(tmp_path / "few" / "flow-0-sender.sqlog")[0]
    assert "every 10th" in header["trace"]["description"]


def test_metrics_of_a_thinned_qlog_file_are_those_at_their_times(tmp_path: Path) -> None:
    state: dict[str, dict[float, dict[str, float]]] = {}
    for name, every in (("all", 1), ("few", 7)):
        quicgym.run(LOSSY, "bbr", qlog=PacketLogs(tmp_path / name, every))
        known: dict[str, float] = {}
        state[name] = {}
        for record in read_log(tmp_path / name / "flow-0-sender.sqlog")[1:]:
            if record["name"] == "recovery:metrics_updated":
                known |= record["data"]
                state[name][record["time"]] = dict(known)
    assert state["few"]
    for time, metrics in state["few"].items():
        assert state["all"][time]["smoothed_rtt"] == metrics["smoothed_rtt"]


def test_a_qlog_file_ends_at_its_limit_and_says_so(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="flow-0-sender.sqlog: ends at 0.05 MB"):
        quicgym.run(LOSSY, "cubic", qlog=PacketLogs(tmp_path, limit_mb=0.05))
    path = tmp_path / "flow-0-sender.sqlog"
    assert 45_000 < path.stat().st_size <= 50_000
    assert read_log(path)[-1]["time"] < 3000


@pytest.mark.parametrize("name", ["cubic", "tuning"])
def test_a_policy_s_episode_has_its_packets_from_the_first_on(name: str, tmp_path: Path) -> None:
    play(find_policy(name), LOSSY, packet_logs=PacketLogs(tmp_path))
    records = read_log(tmp_path / "flow-0-sender.sqlog")[1:]
    sent = [record for record in records if record["name"] == "transport:packet_sent"]
    assert sent[0]["data"]["header"]["packet_type"] == "initial"
    numbers = [record["data"]["header"]["packet_number"] for record in sent[1:]]
    assert numbers == list(range(len(numbers)))


def test_a_controller_s_log_is_that_of_its_run(tmp_path: Path) -> None:
    play(find_policy("cubic"), LOSSY, seed=3, packet_logs=PacketLogs(tmp_path / "episode"))
    quicgym.run(LOSSY, "cubic", seed=3, qlog=tmp_path / "run")
    episode, run = (
        (tmp_path / name / "flow-0-sender.sqlog").read_text() for name in ("episode", "run")
    )
    assert episode == run


def capture(sizes: list[int]) -> bytes:
    header = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 9)
    packets = [struct.pack("<IIII", 1, place, size, size) + bytes([place]) * size
               for place, size in enumerate(sizes)]  # fmt: skip
    return header + b"".join(packets)


def test_a_thinned_capture_has_the_header_and_every_third_packet(tmp_path: Path) -> None:
    path = tmp_path / "a.pcap"
    path.write_bytes(capture([10, 20, 30, 40, 50, 60, 70]))
    parts = list(thinned(path, 3))
    assert [len(part) for part in parts] == [24, 26, 56, 86]
    assert b"".join(thinned(path)) == path.read_bytes()


@pytest.mark.ns3
@pytest.mark.parametrize("name", ["cubic", "tuning"])
def test_captures_of_ns3_have_every_nth_packet_up_to_the_limit(name: str, tmp_path: Path) -> None:
    def captured(logs: PacketLogs) -> bytes:
        if name == "cubic":
            quicgym.run(LOSSY, name, "ns3", pcap=logs)
        else:
            play(find_policy(name), LOSSY, "ns3", packet_logs=logs)
        return (logs.folder / "lossy-router-1.pcap").read_bytes()

    whole = captured(PacketLogs(tmp_path / "all"))
    (tmp_path / "whole.pcap").write_bytes(whole)
    assert captured(PacketLogs(tmp_path / "few", 5)) == b"".join(
        thinned(tmp_path / "whole.pcap", 5)
    )
    with pytest.warns(UserWarning, match="router-1.pcap: ends at 0.1 MB"):
        limited = captured(PacketLogs(tmp_path / "limited", limit_mb=0.1))
    assert whole.startswith(limited) and 90_000 < len(limited) <= 100_000


def test_the_engine_decides_which_logs_there_are(tmp_path: Path) -> None:
    with pytest.raises(quicgym.ScenarioError, match="records no events for qlog"):
        quicgym.run(LOSSY, "cubic", "ns3", qlog=tmp_path)
    with pytest.raises(quicgym.ScenarioError, match="cannot do pcap_prefix"):
        quicgym.run(LOSSY, "cubic", pcap=tmp_path)
    with pytest.raises(quicgym.ScenarioError, match="logs all packets, as qlog"):
        quicgym.run(LOSSY, "cubic", stack="aioquic", qlog=PacketLogs(tmp_path))


def test_a_log_names_the_stream_of_bursts_that_have_their_own(tmp_path: Path) -> None:
    bursts = {
        "kind": "bursts", "rate_mbps": 1, "burst_rate_mbps": 2, "burst_duration_s": 1,
        "burst_period_s": 2, "burst_count": 1, "burst_own_stream": True,
    }  # fmt: skip
    fields = {**LOSSY.model_dump(exclude_none=True), "flows": [{"application": bursts}]}
    quicgym.run(quicgym.Scenario(**fields), "cubic", qlog=tmp_path)
    sent = Counter(
        frame["stream_id"]
        for record in read_log(tmp_path / "flow-0-sender.sqlog")[1:]
        for frame in record["data"].get("frames", ())
        if frame["frame_type"] == "stream" and record["time"] < 1000
    )
    assert sent[6] == pytest.approx(2 * sent[2], rel=0.1)
