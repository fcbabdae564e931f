"""The QUIC endpoints against RFC 9000 and RFC 9002, on a scripted network."""

import pytest
from endpoints import MILLISECOND, SECOND, Pair, application, make_flow
from hypothesis import given, settings
from hypothesis import strategies as st

RTT = 50 * MILLISECOND


def transfer(size_bytes, **fields):
    return make_flow(application=application("transfer", size_bytes=size_bytes), **fields)


def losing(direction, *indices):
    """Drops the datagrams of one direction with these indices, counted from 0."""
    return lambda sent, index, frames: sent == direction and index in indices


def test_handshake_takes_one_round_trip_and_initials_fill_1200_bytes():
    pair = Pair(transfer(5000))
    pair.run_until(SECOND)
    time, direction, size, read, _ = pair.log[0]
    assert (time, direction, size, read["type"]) == (0, "data", 1200, "Initial")
    first_data = pair.frames("data", "STREAM")[0][0]
    assert first_data == RTT
    assert len(pair.frames("ack", "HANDSHAKE_DONE")) == 1


def test_a_lost_initial_is_sent_again_after_twice_the_initial_rtt_and_backs_off():
    pair = Pair(transfer(5000), drop=losing("data", 0, 1))
    pair.run_until(10 * SECOND)
    initials = [time for time, _, _, read, _ in pair.log if read["frames"][0][0] == "CRYPTO"]
    # RFC 9002 6.2.2: 333 ms + 4 * 166.5 ms.
    assert initials == [0, 999 * MILLISECOND, 3 * 999 * MILLISECOND]
    assert pair.receiver.statistics()["goodput_bytes"] == 5000


def test_a_lost_handshake_reply_is_recovered():
    pair = Pair(transfer(5000), drop=losing("ack", 0))
    pair.run_until(10 * SECOND)
    assert pair.receiver.statistics()["goodput_bytes"] == 5000
    assert pair.sender.closed


def test_every_second_packet_is_acknowledged_at_once_and_a_single_one_after_25_ms():
    pair = Pair(transfer(4000))
    pair.run_until(SECOND)
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
    lost = {7}
    pair = Pair(
        transfer(60_000),
        drop=lambda direction, index, frames: direction == "data" and index in lost,
    )
    pair.run_until(SECOND)
    gap_acks = [time for time, frame in pair.frames("ack", "ACK") if len(frame[2]) > 1]
    after_gap = [entry[0] for entry in pair.log if entry[1] == "data"][8]
    assert gap_acks[0] == after_gap + RTT // 2


def test_a_packet_three_below_the_largest_acknowledged_is_lost_and_its_data_sent_again():
    lost = {5}
    pair = Pair(
        transfer(60_000),
        drop=lambda direction, index, frames: direction == "data" and index in lost,
    )
    pair.run_until(2 * SECOND)
    statistics = pair.sender.statistics()
    assert statistics["declared_lost_packets"] == 1
    assert statistics["congestion_events"] == 1
    offsets = [frame[2] for _, frame in pair.frames("data", "STREAM")]
    assert len(offsets) - len(set(offsets)) == 1
    assert pair.receiver.statistics()["goodput_bytes"] == 60_000


def test_tail_loss_is_found_by_the_probe_timeout_with_two_probes():
    # The last two packets of the transfer vanish, so nothing after them reveals the loss.
    pair = Pair(
        transfer(9000),
        drop=losing("data", 7, 8),
    )
    pair.run_until(5 * SECOND)
    statistics = pair.sender.statistics()
    assert statistics["probe_timeouts"] == 1
    assert pair.receiver.statistics()["goodput_bytes"] == 9000


def test_probe_timeouts_back_off_exponentially_when_nothing_comes_back():
    pair = Pair(transfer(60_000), drop=lambda direction, index, frames: index >= 4)
    pair.run_until(60 * SECOND)
    times = [time for time, direction, *_ in pair.log if direction == "data"]
    # RFC 9002 6.2.4: each timeout sends two datagrams at once; pacing never does.
    probes = [a for a, b in zip(times, times[1:], strict=False) if a == b]
    gaps = [b - a for a, b in zip(probes, probes[1:], strict=False)]
    assert len(gaps) >= 4
    for shorter, longer in zip(gaps, gaps[1:], strict=False):
        assert longer == 2 * shorter


def test_persistent_congestion_is_a_long_run_of_losses_without_an_acknowledgement():
    blackout = (1 * SECOND, 3 * SECOND)

    class Clocked(Pair):
        def _drain(self, endpoint, direction):
            self.drop = lambda *_: blackout[0] <= self.now < blackout[1]
            super()._drain(endpoint, direction)

    pair = Clocked(make_flow())
    pair.run_until(10 * SECOND)
    assert pair.sender.statistics()["persistent_congestion_events"] == 1


def test_scattered_losses_are_not_persistent_congestion():
    pair = Pair(make_flow(), drop=losing("data", *range(49, 10_000, 50)))
    pair.run_until(10 * SECOND)
    assert pair.sender.statistics()["declared_lost_packets"] > 20
    assert pair.sender.statistics()["persistent_congestion_events"] == 0


def test_flow_control_stops_the_sender_which_says_data_blocked():
    def lose_credit(direction, index, frames):
        return direction == "ack" and any(frame[0] == "MAX_DATA" for frame in frames)

    pair = Pair(make_flow(flow_control_window_bytes=20_000), drop=lose_credit)
    pair.run_until(3 * SECOND)
    assert pair.receiver.statistics()["goodput_bytes"] == 20_000
    assert pair.sender.statistics()["blocked_events"] == 1
    assert pair.frames("data", "DATA_BLOCKED")[0][1] == ("DATA_BLOCKED", 20_000)


def test_lost_credit_is_granted_again_after_a_timeout():
    dropped = []

    def lose_first_credit(direction, index, frames):
        if direction == "ack" and any(frame[0] == "MAX_DATA" for frame in frames) and not dropped:
            dropped.append(index)
            return True
        return False

    pair = Pair(make_flow(flow_control_window_bytes=20_000), drop=lose_first_credit)
    pair.run_until(5 * SECOND)
    assert dropped
    assert pair.receiver.statistics()["goodput_bytes"] > 100_000


def test_ecn_marks_are_counted_echoed_and_reduce_the_window():
    marked = Pair(make_flow(ecn=True), mark=lambda index: index == 100)
    plain = Pair(make_flow(ecn=True))
    for pair in (marked, plain):
        pair.run_until(SECOND)
    assert marked.sender.statistics()["ecn_marks"] == 1
    assert plain.sender.statistics()["ecn_marks"] == 0
    assert marked.sender.window_bytes < plain.sender.window_bytes


def test_rtt_excludes_the_acknowledgement_delay():
    flow = make_flow(application=application("constant_rate", rate_bits_per_second=100_000))
    pair = Pair(flow)
    pair.run_until(20 * SECOND)
    # Each packet waits 25 ms for its ACK; the smoothed RTT is the path's all the same.
    assert abs(pair.sender.smoothed_rtt - RTT) < 100_000


def test_old_ack_ranges_are_not_repeated_for_ever():
    pair = Pair(make_flow(), drop=losing("data", 20))
    pair.run_until(5 * SECOND)
    ranges = [len(frame[2]) for _, frame in pair.frames("ack", "ACK")]
    assert max(ranges) == 2
    assert ranges[-1] == 1


def test_a_transfer_ends_with_connection_close_and_completes_when_every_byte_arrived():
    pair = Pair(transfer(100_000))
    pair.run_until(10 * SECOND)
    assert pair.sender.closed
    assert len(pair.frames("data", "CONNECTION_CLOSE")) == 1
    completion = pair.receiver.statistics()["completion"]
    assert 0 < completion < pair.frames("data", "CONNECTION_CLOSE")[0][0]


def test_a_flow_stops_at_its_stop_time():
    pair = Pair(make_flow(stop=2 * SECOND))
    pair.run_until(5 * SECOND)
    assert pair.sender.closed
    assert max(time for time, direction, *_ in pair.log if direction == "data") == 2 * SECOND


def test_constant_rate_writes_at_its_rate_and_is_application_limited():
    flow = make_flow(application=application("constant_rate", rate_bits_per_second=1_000_000))
    pair = Pair(flow)
    pair.run_until(10 * SECOND)
    received = pair.receiver.statistics()["goodput_bytes"] * 8 / (10 * SECOND - 2 * RTT) * SECOND
    assert abs(received - 1_000_000) < 10_000
    # RFC 9002 7.8: an unused window does not grow.
    assert pair.sender.window_bytes < 50_000


def test_bursts_add_their_rate_during_each_burst_and_stop_after_the_last():
    flow = make_flow(
        application=application(
            "bursts",
            rate_bits_per_second=1_000_000,
            burst_rate_bits_per_second=4_000_000,
            burst_duration=SECOND,
            burst_period=2 * SECOND,
            burst_count=2,
        )
    )
    pair = Pair(flow)
    written = []
    for second in range(1, 7):
        pair.run_until(second * SECOND)
        written.append(pair.receiver.statistics()["goodput_bytes"] * 8 / 1e6)
    megabits = [b - a for a, b in zip([0, *written], written, strict=False)]
    assert [round(m) for m in megabits[1:]] == [1, 5, 1, 1, 1]


def test_on_off_is_silent_when_off():
    flow = make_flow(
        application=application(
            "on_off", rate_bits_per_second=2_000_000, on_duration=SECOND, off_duration=SECOND
        )
    )
    pair = Pair(flow)
    pair.run_until(4 * SECOND)
    silent = [t for t, _ in pair.frames("data", "STREAM") if t % (2 * SECOND) > 1.3 * SECOND]
    assert silent == []
    assert abs(pair.receiver.statistics()["goodput_bytes"] * 8 - 4_000_000) < 100_000


@settings(max_examples=40, deadline=None)
@given(
    controller=st.sampled_from(["newreno", "cubic", "bbr", "ebcc"]),
    size=st.integers(1, 200_000),
    datagram=st.integers(1200, 1472),
    losses=st.sets(st.integers(0, 300), max_size=60),
    ack_losses=st.sets(st.integers(0, 200), max_size=40),
)
def test_every_byte_arrives_once_whatever_is_lost(controller, size, datagram, losses, ack_losses):
    flow = transfer(size, controller=controller, max_datagram_bytes=datagram)

    def drop(direction, index, frames):
        return index in (losses if direction == "data" else ack_losses)

    pair = Pair(flow, drop=drop)
    pair.run_until(3600 * SECOND)
    assert pair.receiver.statistics()["goodput_bytes"] == size
    assert pair.receiver.statistics()["completion"] is not None
    assert pair.sender.closed
    assert pair.sender.in_flight_bytes == 0
    assert all(size <= datagram for _, direction, size, *_ in pair.log if direction == "data")


class Interrupted(Pair):
    """Nothing of the data arrives between two times; the first datagram after it can be marked."""

    def __init__(self, flow, start, end, marked=False):
        self.start, self.end, self.mark_next = start, end, marked
        super().__init__(flow, mark=self._mark)

    def _mark(self, index):
        marks = self.mark_next and self.now >= self.end
        self.mark_next = self.mark_next and not marks
        return marks

    def _drain(self, endpoint, direction):
        self.drop = lambda way, *_: way == "data" and self.start <= self.now < self.end
        super()._drain(endpoint, direction)


@pytest.mark.parametrize("controller", ["newreno", "cubic", "vegas", "cubic+"])
def test_a_mark_that_comes_with_persistent_congestion_does_not_cut_a_second_time(controller):
    windows = []
    for marked in (False, True):
        flow = make_flow(controller=controller, ecn=True)
        pair = Interrupted(flow, 450 * MILLISECOND, 2500 * MILLISECOND, marked)
        pair.run_until(3 * SECOND)
        assert pair.sender.statistics()["persistent_congestion_events"] == 1
        assert pair.sender.statistics()["ecn_marks"] == marked
        pair.run_until(3400 * MILLISECOND)
        windows.append(pair.sender.window_bytes)
    assert windows[1] > windows[0] / 2  # slow start again, as without the mark


def test_what_a_probe_has_delivered_is_not_sent_again():
    pair = Pair(transfer(9000), drop=losing("data", 7, 8))
    pair.run_until(5 * SECOND)
    offsets = [frame[2] for _, frame in pair.frames("data", "STREAM")]
    lost = [
        frame[2]
        for _, direction, _, read, dropped in pair.log
        for frame in read["frames"]
        if direction == "data" and dropped and frame[0] == "STREAM"
    ]
    assert len(lost) == 2
    assert [offset for offset in offsets if offsets.count(offset) > 1] == [*lost, *lost]
    assert pair.receiver.statistics()["goodput_bytes"] == 9000


def test_a_lost_data_blocked_is_sent_again_and_is_the_same_event():
    dropped = []

    def lose(direction, index, frames):
        if direction == "ack":
            return any(frame[0] == "MAX_DATA" for frame in frames)
        if any(frame[0] == "DATA_BLOCKED" for frame in frames) and not dropped:
            dropped.append(index)
            return True
        return False

    pair = Pair(make_flow(flow_control_window_bytes=20_000), drop=lose)
    pair.run_until(10 * SECOND)
    assert dropped and len(pair.frames("data", "DATA_BLOCKED")) > 1
    assert pair.sender.statistics()["blocked_events"] == 1
