"""Rules of RFC 9000 and 9002 that no other test shows; tests/rfc_requirements.yaml lists all."""

import pytest
from helpers.endpoints import (
    MILLISECOND,
    RTT,
    SECOND,
    Late,
    Pair,
    constant_rate,
    make_flow,
    one_rtt,
    times,
    transfer,
    with_window,
)

from quicgym import _core

ACK_ONLY = {"ACK", "PADDING"}


def varint(value):
    return (value | 3 << 62).to_bytes(8, "big")


def acknowledgement(largest, delay_ns=0):
    """An ACK frame of one packet."""
    return b"\x02" + varint(largest) + varint(delay_ns // 8000) + b"\x00\x00"


def without_acks(flow):
    """A pair whose receiver's packets are lost behind the handshake."""
    return Pair(flow, drop=lambda direction, index, frames: direction == "ack" and index > 0)


@pytest.mark.parametrize(
    ("latest_ms", "reported_ms", "adjusted_ms"),
    [
        (60, 10, 50),
        (50, 24, 50),  # 26 would be below the minimum
        (70, 24, 70),
        (90, 24, 66),
        (160, 100, 135),  # of the peer's delay no more than its max_ack_delay, 25 ms
    ],
)
def test_the_smoothed_rtt_takes_the_peer_s_delay_off_within_bounds(
    latest_ms, reported_ms, adjusted_ms
):
    pair = without_acks(constant_rate(9288))
    pair.run_until(3 * SECOND // 2)
    (sent, *_) = times(pair, "data", "STREAM")
    pair = without_acks(constant_rate(9288))
    pair.run_until(sent + latest_ms * MILLISECOND)
    assert pair.sender.smoothed_rtt == RTT
    frame = acknowledgement(0, reported_ms * MILLISECOND)
    assert pair.sender.on_datagram(pair.now, one_rtt(5, frame)) is None
    assert pair.sender.smoothed_rtt == (7 * RTT + adjusted_ms * MILLISECOND) // 8


def test_an_ack_frame_gives_a_sample_only_where_its_largest_packet_is_newly_acknowledged():
    # Every fifth packet of the receiver comes after the two behind it.
    def late(direction, index):
        is_slow = direction == "ack" and index > 10 and index % 5 == 0
        return 30 * MILLISECOND if is_slow else 0

    pair = Late(constant_rate(2_000_000), late).run_until(2 * SECOND)
    data = [entry for entry in pair.log if entry[1] == "data"]
    sent = [time for time, *_, read, _ in data if read["frames"][0][0] != "CRYPTO"]
    acks = [entry for entry in pair.log if entry[1] == "ack"]
    arrivals = sorted(
        (time + RTT // 2 + late("ack", index), index, frame[2][0][1])
        for index, (time, *_, read, _) in enumerate(acks)
        for frame in read["frames"]
        if frame[0] == "ACK" and index > 0
    )
    samples, acknowledged, repeated = [RTT / SECOND], -1, 0
    for time, _, largest in arrivals:
        if time <= 2 * SECOND and largest > acknowledged:
            samples.append((time - sent[largest]) / SECOND)
            acknowledged = largest
        else:
            repeated += time <= 2 * SECOND
    statistics = pair.sender.statistics()
    assert repeated > 10
    assert statistics["rtt_samples"] == len(samples)
    assert statistics["rtt_sum_seconds"] == pytest.approx(sum(samples), rel=1e-9)


def test_a_probe_timeout_marks_nothing_as_lost_and_its_probes_are_in_flight_beyond_the_window():
    window = 12_000
    pair = without_acks(with_window(window))
    pair.run_until(SECOND)
    statistics = pair.sender.statistics()
    assert statistics["probe_timeouts"] > 0
    assert statistics["declared_lost_packets"] == 0
    data = [size for _, direction, size, *_ in pair.log if direction == "data"]
    assert pair.sender.in_flight_bytes == sum(data[1:]) > window  # the first is the Initial


class Watched(Pair):
    """Keeps the largest share of the window that was in flight."""

    most = 0.0

    def carry(self, direction, now, datagram):
        if direction == "data" and self.sender.window_bytes > 0:
            share = self.sender.in_flight_bytes / self.sender.window_bytes
            self.most = max(self.most, share)
        super().carry(direction, now, datagram)


@pytest.mark.parametrize("controller", ["newreno", "cubic", "bbr", "copa"])
def test_without_a_timeout_no_packet_makes_in_flight_exceed_the_window(controller):
    pair = Watched(make_flow(controller=controller)).run_until(350 * MILLISECOND)
    assert pair.sender.statistics()["probe_timeouts"] == 0
    assert 0.5 < pair.most <= 1


def test_an_acknowledgement_of_a_packet_that_was_never_sent_is_ignored():
    pair = without_acks(with_window(12_000))
    pair.run_until(100 * MILLISECOND)
    before = pair.sender.in_flight_bytes, pair.sender.smoothed_rtt
    assert pair.sender.on_datagram(pair.now, one_rtt(5, acknowledgement(1_000))) is None
    assert (pair.sender.in_flight_bytes, pair.sender.smoothed_rtt) == before
    assert pair.sender.statistics()["declared_lost_packets"] == 0


def test_a_limit_that_is_lower_than_the_last_one_is_ignored():
    max_data, max_stream_data = b"\x10" + varint(10), b"\x11\x02" + varint(10)
    pair = Pair(transfer(60_000, flow_control_window_bytes=100_000)).run_until(60 * MILLISECOND)
    for number, frame in enumerate((max_data, max_stream_data)):
        assert pair.sender.on_datagram(pair.now, one_rtt(1 + number, frame)) is None
    pair.run_until(5 * SECOND)
    assert pair.receiver.statistics()["goodput_bytes"] == 60_000


def test_data_beyond_the_limit_is_not_taken():
    pair = Pair(constant_rate(9288, flow_control_window_bytes=20_000)).run_until(SECOND // 2)
    before = pair.receiver.statistics()["goodput_bytes"]
    stream = b"\x0e\x02" + varint(30_000) + b"\x01" + b"x"
    assert pair.receiver.on_datagram(pair.now, one_rtt(100, stream)) is None
    assert pair.receiver.statistics()["goodput_bytes"] == before


@pytest.mark.parametrize("window", [40_000, 1 << 24])
def test_packets_of_acks_alone_answer_packets_that_elicit_one_and_no_others(window):
    pair = Pair(make_flow(flow_control_window_bytes=window)).run_until(350 * MILLISECOND)
    eliciting, alone = {"data": 0, "ack": 0}, {"data": 0, "ack": 0}
    for _, direction, _, read, _ in pair.log:
        names = {frame[0] for frame in read["frames"]}
        counts = alone if names <= ACK_ONLY else eliciting
        counts[direction] += 1
    assert eliciting["data"] > 60
    assert alone["ack"] <= eliciting["data"]
    assert alone["data"] <= eliciting["ack"]


def test_packet_numbers_of_a_direction_rise_by_one():
    pair = Pair(make_flow(), drop=lambda direction, index, frames: index % 50 == 49).run_until(
        2 * SECOND
    )
    expected = {"data": 0, "ack": 0}
    for _, direction, _, read, _ in pair.log:
        if any(frame[0] == "CRYPTO" for frame in read["frames"]):
            continue
        bits = 8 * read["packet_number_bytes"]
        assert read["truncated_packet_number"] == expected[direction] % (1 << bits)
        expected[direction] += 1
    assert min(expected.values()) > 100


def test_every_packet_has_a_frame():
    assert _core.read_datagram(b"\x43" + bytes(12), 29)["error"] == "a packet without frames"
