"""What the receiver acknowledges, and when (RFC 9000 13.2)."""

import pytest
from helpers.endpoints import (
    MILLISECOND,
    RTT,
    SECOND,
    Late,
    Pair,
    constant_rate,
    losing,
    make_flow,
    one_rtt,
    times,
    transfer,
    with_window,
)


def test_every_second_packet_is_acknowledged_at_once_and_a_single_one_after_25_ms():
    pair = Pair(transfer(4000)).run_until(SECOND)
    sent = [time for time, _ in pair.frames("data", "STREAM")]
    acknowledged = [time for time, frame in pair.frames("ack", "ACK") if time > RTT]
    assert len(sent) == 4
    # The first is acknowledged beside HANDSHAKE_DONE, the next two together, the last one alone.
    assert acknowledged[:3] == [
        sent[0] + RTT // 2,
        sent[2] + RTT // 2,
        sent[3] + RTT // 2 + 25 * MILLISECOND,
    ]


def test_a_gap_is_acknowledged_at_once():
    pair = Pair(transfer(60_000), drop=losing("data", 7)).run_until(SECOND)
    gap_acks = [time for time, frame in pair.frames("ack", "ACK") if len(frame[2]) > 1]
    after_gap = pair.sent_times("data")[8]
    assert gap_acks[0] == after_gap + RTT // 2


def test_old_ack_ranges_are_not_repeated_for_ever():
    pair = Pair(make_flow(), drop=losing("data", 20)).run_until(2 * SECOND)
    ranges = [len(frame[2]) for _, frame in pair.frames("ack", "ACK")]
    assert max(ranges) == 2
    assert ranges[-1] == 1


def test_a_packet_that_arrives_late_is_acknowledged_at_once_with_the_delay_of_the_largest():
    # A packet every 33 ms; the tenth takes 40 ms longer and comes after the next.
    late = 40 * MILLISECOND
    pair = Late(
        constant_rate(280_000),
        lambda direction, index: late if (direction, index) == ("data", 10) else 0,
    ).run_until(2 * SECOND)
    sent = pair.sent_times("data")
    arrival = sent[10] + late + RTT // 2
    frames = [frame for time, frame in pair.frames("ack", "ACK") if time == arrival]
    assert len(frames) == 1
    delay, ranges = frames[0][1:]
    assert len(ranges) == 1 and ranges[0][1] == 10  # no gap is left
    assert delay * 8 == pytest.approx((arrival - sent[11] - RTT // 2) / 1000, abs=8)


def test_a_packet_that_fills_a_gap_long_reported_is_acknowledged():
    # Two gaps that every ACK frame has reported often enough; then the first one is filled.
    pair = Late(
        constant_rate(928_800),
        lambda direction, index: SECOND if (direction, index) == ("data", 20) else 0,
        drop=losing("data", 30),
    ).run_until(3 * SECOND)
    ranges = [gap for _, frame in pair.frames("ack", "ACK") for gap in frame[2]]
    assert any(smallest <= 19 <= largest for smallest, largest in ranges)
    assert not any(smallest <= 29 <= largest for smallest, largest in ranges)


def test_a_late_packet_does_not_bring_back_the_ranges_below_it():
    # A gap that every ACK frame has reported often enough; then a packet comes after the next one.
    late = 40 * MILLISECOND
    pair = Late(
        constant_rate(280_000),
        lambda direction, index: late if (direction, index) == ("data", 60) else 0,
        drop=losing("data", 20),
    ).run_until(4 * SECOND)
    arrival = pair.sent_times("data")[60] + late + RTT // 2
    ranges = [gap for time, ack in pair.frames("ack", "ACK") if time >= arrival for gap in ack[2]]
    assert min(smallest for smallest, _ in ranges) == 20


def test_a_marked_packet_is_acknowledged_at_once():
    flow = constant_rate(100_000, ecn=True)
    pair = Pair(flow, mark=lambda index: index == 10).run_until(2 * SECOND)
    sent = pair.sent_times("data")
    acknowledged = times(pair, "ack", "ACK")
    assert sent[10] + RTT // 2 in acknowledged
    assert sent[11] + RTT // 2 + 25 * MILLISECOND in acknowledged


def test_a_packet_so_late_that_its_number_reads_as_a_later_one_is_not_acknowledged():
    # 1,000 packets a second, of which fewer than 128 are unacknowledged: numbers have one byte.
    pair = Late(
        constant_rate(9_288_000),
        lambda direction, index: 200 * MILLISECOND if (direction, index) == ("data", 50) else 0,
    ).run_until(SECOND)
    sent = [(time, read) for time, direction, _, read, _ in pair.log if direction == "data"]
    assert {read["packet_number_bytes"] for _, read in sent} == {1}
    number = sent[50][1]["truncated_packet_number"]
    later = (time for time, ack in pair.frames("ack", "ACK") if ack[2][0][1] >= number + 256)
    assert next(later) >= sent[50 + 256][0] + RTT // 2


@pytest.mark.parametrize("sealed_number", [99, 101, 100 + 2**16])
def test_a_packet_is_not_opened_under_another_number(sealed_number):
    pair = Pair(constant_rate(9288)).run_until(SECOND // 2)
    *packet, number = one_rtt(100, b"\x0e\x02\x80\x00\xff\xff\x01x" + b"\x1c\x00\x00\x00")
    before = pair.receiver.statistics()["goodput_bytes"]
    assert pair.receiver.on_datagram(pair.now, (*packet, sealed_number)) is None
    assert pair.sender.on_datagram(pair.now, (*packet, sealed_number)) is None
    assert (pair.receiver.statistics()["goodput_bytes"], pair.sender.closed) == (before, False)
    assert pair.receiver.on_datagram(pair.now, (*packet, number)) is None
    assert pair.sender.on_datagram(pair.now, (*packet, number)) is None
    assert (pair.receiver.statistics()["goodput_bytes"], pair.sender.closed) == (before + 1, True)


def test_the_first_packet_is_new_when_others_have_overtaken_it():
    pair = Late(
        transfer(6000),
        lambda direction, index: 5 * MILLISECOND if (direction, index) == ("data", 1) else 0,
    ).run_until(2 * SECOND)
    statistics = pair.sender.statistics()
    assert statistics["spuriously_lost_packets"] == statistics["declared_lost_packets"]
    assert pair.receiver.statistics()["received_packets"] == statistics["sent_packets"]
    offsets = [frame[2] for _, frame in pair.frames("data", "STREAM")]
    assert pair.receiver.statistics()["goodput_bytes"] == 6000
    assert len(offsets) - len(set(offsets)) == statistics["declared_lost_packets"]


def test_a_packet_below_all_ranges_that_are_remembered_is_a_duplicate():
    pair = Pair(constant_rate(9288)).run_until(SECOND // 2)

    def goodput_after(number):
        stream = b"\x0e\x02" + (1 << 31 | 100 * number).to_bytes(4, "big") + b"\x01"
        assert pair.receiver.on_datagram(pair.now, one_rtt(number, stream + b"x")) is None
        return pair.receiver.statistics()["goodput_bytes"]

    before = goodput_after(100)
    for number in range(102, 182, 2):
        before += 1
        assert goodput_after(number) == before
    # Of 41 ranges the 32 newest are left: 118 and later.
    assert goodput_after(117) == before
    assert goodput_after(119) == before + 1


FULL = 1165
"""Stream bytes of a full packet, about."""


def packets_by_ack(pair):
    """How many packets each ACK frame of the connection adds to the one before."""
    largest = [frame[2][0][1] for _, frame in pair.frames("ack", "ACK")]
    return [after - before for before, after in zip(largest, largest[1:], strict=False)]


@pytest.mark.parametrize("threshold", [0, 1, 2, 9])
def test_so_many_packets_go_without_an_ack_and_the_next_one_brings_it(threshold):
    pair = Pair(
        transfer(400 * FULL, ack_eliciting_threshold=threshold, max_ack_delay=SECOND)
    ).run_until(4 * SECOND)
    acknowledged = packets_by_ack(pair)[3:-2]  # HANDSHAKE_DONE and flow control bring some early
    assert len(acknowledged) > 20
    assert sum(acknowledged) / len(acknowledged) == pytest.approx(threshold + 1, rel=0.05)


@pytest.mark.parametrize("delay_ms", [5, 80])
def test_a_single_packet_is_acknowledged_after_max_ack_delay(delay_ms):
    pair = Pair(constant_rate(40_000, max_ack_delay=delay_ms * MILLISECOND))  # one in 230 ms
    pair.run_until(3 * SECOND)
    sent = [time for time, _ in pair.frames("data", "STREAM")][3:]
    acknowledged = [time for time, _ in pair.frames("ack", "ACK")]
    for time in sent[:-1]:
        assert time + RTT // 2 + delay_ms * MILLISECOND in acknowledged


@pytest.mark.parametrize(("threshold", "at_once"), [(1, True), (0, False)])
def test_a_gap_brings_an_ack_at_once_unless_the_reordering_threshold_is_0(threshold, at_once):
    lost = 30
    pair = Pair(
        with_window(
            100_000,
            reordering_threshold=threshold,
            ack_eliciting_threshold=500,
            max_ack_delay=SECOND,
        ),
        drop=losing("data", lost),
    )
    pair.run_until(SECOND)
    after_gap = pair.sent_times("data")[lost + 1]
    times = [time for time, _ in pair.frames("ack", "ACK")]
    assert (after_gap + RTT // 2 in times) is at_once


def test_the_probe_timeout_allows_for_the_receivers_max_ack_delay():
    def first_probe(delay_ms):
        pair = Pair(
            transfer(3 * FULL, max_ack_delay=delay_ms * MILLISECOND),
            drop=lambda direction, index, frames: direction == "ack" and index > 0,
        ).run_until(3 * SECOND)
        sent = sorted({time for time, _ in pair.frames("data", "STREAM")})
        return sent[-1] if len(sent) == 1 else next(t for t in sent if t > sent[0] + RTT)

    assert first_probe(200) - first_probe(25) == 175 * MILLISECOND
