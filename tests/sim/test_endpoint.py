"""The QUIC endpoints against RFC 9000 and RFC 9002, on a scripted network."""

import itertools

import pytest
from helpers.endpoints import MILLISECOND, SECOND, Pair, application, make_flow
from hypothesis import given, settings
from hypothesis import strategies as st

import quicgym
from quicgym.controllers import describe

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
    pair = Pair(make_flow(), drop=lambda *_: SECOND <= pair.now < 3 * SECOND)
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

    def __init__(self, flow, start, end, marked=False, delay=RTT // 2):
        to_mark = marked

        def mark(index):
            nonlocal to_mark
            marks = to_mark and self.now >= end
            to_mark = to_mark and not marks
            return marks

        super().__init__(
            flow, delay, lambda direction, *_: direction == "data" and start <= self.now < end, mark
        )


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


class Late(Pair):
    """Some datagrams take longer: `late` gets direction and index and says by how much."""

    def __init__(self, flow, late, usual=RTT // 2, drop=None):
        super().__init__(flow, lambda direction, index: usual + late(direction, index), drop)


def with_window(window_bytes, **fields):
    """A flow whose window does not move."""
    return make_flow(controller="external", parameters={"window_bytes": [window_bytes]}, **fields)


def constant_rate(rate_bits_per_second, **fields):
    kind = application("constant_rate", rate_bits_per_second=rate_bits_per_second)
    return with_window(1_000_000, application=kind, **fields)


def times(pair, direction, name):
    return [time for time, _ in pair.frames(direction, name)]


def listening(flow):
    """The flow with a window that stands, and a list of the ACK and loss events that it gets."""
    events = []

    class Listening(quicgym.Controller):
        def on_start(self, max_datagram_bytes):
            self.window_bytes = 40 * max_datagram_bytes

        def on_ack(self, event):
            sample = event.sample
            limited = (event.app_limited, sample.app_limited)
            events.append(("ack", event.now, sample.interval, sample.delivery_rate, limited))

        def on_loss(self, event):
            lost = (event.lost_packets, event.lost_bytes, event.largest_lost_sent_time)
            events.append(("loss", event.now, *lost))

    flow.set_python_controller(describe(Listening))
    return flow, events


def test_a_handshake_reply_that_may_answer_either_initial_gives_no_rtt():
    # The reply to the first Initial arrives after the second one has left, at 999 ms.
    pair = Pair(transfer(5000), delay=600 * MILLISECOND)
    pair.run_until(1300 * MILLISECOND)
    assert pair.sender.statistics()["rtt_samples"] == 0
    pair.run_until(10 * SECOND)
    assert pair.sender.statistics()["min_rtt"] >= 1200 * MILLISECOND


def test_timeouts_of_the_handshake_do_not_lengthen_the_first_probe_timeout():
    drop = lambda direction, index, frames: direction == "data" and index != 1  # noqa: E731
    pair = Pair(transfer(2000), drop=drop)
    pair.run_until(3 * SECOND)
    first, second, probe = times(pair, "data", "STREAM")[:3]
    assert first == 999 * MILLISECOND + RTT
    # RFC 9002 6.2.1 after one sample: RTT + 4 * RTT / 2 + max_ack_delay.
    assert probe == second + 3 * RTT + 25 * MILLISECOND


def test_an_acknowledged_probe_ends_the_backoff():
    flow = constant_rate(9288)  # a message per second
    seen = set()

    def lose_first_copies(direction, index, frames):
        offsets = [frame[2] for frame in frames if frame[0] == "STREAM"]
        new = direction == "data" and bool(offsets) and not set(offsets) <= seen
        seen.update(offsets)
        return new and len(seen) > 3

    pair = Pair(flow, drop=lose_first_copies)
    pair.run_until(9 * SECOND)
    sent = times(pair, "data", "STREAM")
    waits = [b - a for a, b in zip(sent, sent[1:], strict=False) if 0 < b - a < SECOND // 2]
    assert len(waits) > 3
    assert max(waits) == waits[0] < 3 * RTT


def test_a_loss_event_names_the_last_of_its_packets():
    flow, events = listening(make_flow())
    pair = Interrupted(flow, 450 * MILLISECOND, 500 * MILLISECOND)
    pair.run_until(SECOND)
    dropped = iter([(time, size) for time, _, size, _, lost in pair.log if lost])
    losses = [event[2:] for event in events if event[0] == "loss"]
    assert max(packets for packets, *_ in losses) > 10
    for packets, lost_bytes, largest_lost_sent_time in losses:
        lost = [next(dropped) for _ in range(packets)]
        assert lost_bytes == sum(size for _, size in lost)
        assert largest_lost_sent_time == lost[-1][0]
    assert next(dropped, None) is None


def test_the_minimum_rtt_starts_anew_after_persistent_congestion():
    start = 450 * MILLISECOND
    pair = Interrupted(
        make_flow(),
        start,
        2500 * MILLISECOND,
        delay=lambda *_: (40 if pair.now >= start else 25) * MILLISECOND,
    )
    pair.run_until(400 * MILLISECOND)
    assert pair.sender.statistics()["min_rtt"] == RTT
    pair.run_until(4 * SECOND)
    assert pair.sender.statistics()["persistent_congestion_events"] == 1
    assert pair.sender.statistics()["min_rtt"] == 80 * MILLISECOND


@pytest.mark.parametrize("lost, events", [(22, 0), (25, 1)])
def test_persistent_congestion_takes_three_probe_timeouts(lost, events):
    # RFC 9002 7.6.1, for an RTT that does not vary: 3 * (50 ms + 1 ms + 25 ms).
    pair = Pair(constant_rate(928_800), drop=losing("data", *range(100, 100 + lost)))
    pair.run_until(3 * SECOND)
    statistics = pair.sender.statistics()
    assert statistics["declared_lost_packets"] == lost
    assert statistics["persistent_congestion_events"] == events


def test_data_blocked_waits_for_room_in_the_window():
    pair = Pair(with_window(12_000, flow_control_window_bytes=11_660))
    pair.run_until(SECOND)
    blocked = times(pair, "data", "DATA_BLOCKED")
    assert blocked and blocked[0] >= 2 * RTT  # when the first packets are acknowledged


def test_a_full_window_is_not_application_limited_though_nothing_more_waits():
    # Ten packets, the initial window: their first acknowledgement, of one, still lets it grow.
    pair = Pair(transfer(11_000))
    pair.run_until(4 * RTT)
    assert pair.sender.closed
    assert pair.sender.window_bytes == 12_000 + 1200


def test_a_packet_that_arrives_late_is_acknowledged_at_once_with_the_delay_of_the_largest():
    # A packet every 33 ms; the tenth takes 40 ms longer and comes after the next.
    late = 40 * MILLISECOND
    pair = Late(
        constant_rate(280_000),
        lambda direction, index: late if (direction, index) == ("data", 10) else 0,
    )
    pair.run_until(2 * SECOND)
    sent = [time for time, direction, *_ in pair.log if direction == "data"]
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
    )
    pair.run_until(3 * SECOND)
    ranges = [gap for _, frame in pair.frames("ack", "ACK") for gap in frame[2]]
    assert any(smallest <= 19 <= largest for smallest, largest in ranges)
    assert not any(smallest <= 29 <= largest for smallest, largest in ranges)


def test_a_marked_packet_is_acknowledged_at_once():
    flow = constant_rate(100_000, ecn=True)
    pair = Pair(flow, mark=lambda index: index == 10)
    pair.run_until(2 * SECOND)
    sent = [time for time, direction, *_ in pair.log if direction == "data"]
    acknowledged = times(pair, "ack", "ACK")
    assert sent[10] + RTT // 2 in acknowledged
    assert sent[11] + RTT // 2 + 25 * MILLISECOND in acknowledged


def test_delivery_rate_of_packets_alone_is_their_size_over_the_time_until_the_acknowledgement():
    # 93 ms between packets, 50 for the way there and back, 25 until the acknowledgement leaves.
    kind = application("constant_rate", rate_bits_per_second=100_000)
    flow, events = listening(make_flow(application=kind))
    pair = Pair(flow)
    pair.run_until(3 * SECOND)
    samples = [event[2:4] for event in events if event[0] == "ack"][5:]
    assert len(samples) > 20
    for interval, rate in samples:
        assert interval == RTT + 25 * MILLISECOND
        assert 1150 < rate * interval * 1e-9 <= 1200


def test_acknowledgements_that_catch_up_do_not_raise_the_delivery_rate():
    # 119 kB/s of packets. Their acknowledgements take 40 ms longer until, from one on, they do not.
    kind = application("constant_rate", rate_bits_per_second=928_800)
    flow, events = listening(make_flow(application=kind))
    pair = Late(
        flow,
        lambda direction, index: 40 * MILLISECOND if direction == "ack" and index < 40 else 0,
    )
    pair.run_until(2 * SECOND)
    rates = [event[3] for event in events if event[0] == "ack"]
    assert 119_000 < max(rates) < 1.2 * 119_000


def test_the_application_limits_the_sender_no_longer_when_it_has_filled_the_window_again():
    # 0.2 s of 20 Mbps in 1.2 s; the window carries 7.7 Mbps, so that a part of each pause is idle.
    kind = application(
        "on_off",
        rate_bits_per_second=20_000_000,
        on_duration=SECOND // 5,
        off_duration=SECOND,
    )
    flow, events = listening(make_flow(application=kind))
    pair = Pair(flow)
    pair.run_until(2 * SECOND)
    limited = [(event[1], event[4]) for event in events if event[0] == "ack"]
    assert any(flags[0] for now, flags in limited if now < 1.2 * SECOND)
    busy = {flags for now, flags in limited if 1.4 * SECOND < now < 1.6 * SECOND}
    assert busy == {(False, False)}


@pytest.mark.parametrize(
    "delay, more, expected",
    [(25_000_000, 60_000_000, 110_000_000 * 9 // 8), (100_000, 0, MILLISECOND)],
    ids=["longer", "short"],
)
def test_the_time_threshold_is_nine_eighths_of_the_latest_rtt_and_a_millisecond_at_least(
    delay, more, expected
):
    # The path becomes longer for the last packets of the flight; of these the third last is lost.
    pair = Late(
        transfer(30_000, controller="external", parameters={"window_bytes": [1e6]}),
        lambda direction, index: more if direction == "data" and index >= 20 else 0,
        delay,
        losing("data", 24),
    )
    pair.run_until(SECOND)
    sent = [(frame[2], time) for time, frame in pair.frames("data", "STREAM")]
    (lost,) = {
        frame[2] for _, _, _, read, dropped in pair.log for frame in read["frames"] if dropped
    }
    first, second = [time for offset, time in sent if offset == lost]
    assert second - first == expected


@pytest.mark.parametrize("delays", [7, 1], ids=["varying", "steady"])
def test_the_first_probe_leaves_when_the_smoothed_rtt_and_its_variation_say(delays):
    """RFC 9002 5.3 and 6.2.1, from what the acknowledgements in the log brought."""
    # A packet every 10 ms over a path of so many delays; from one on nothing arrives.
    kind = application("constant_rate", rate_bits_per_second=928_800)
    pair = Late(
        with_window(36_000, application=kind),
        lambda direction, index: index % delays * MILLISECOND if direction == "data" else 0,
        drop=lambda direction, index, frames: direction == "data" and index > 99,
    )
    pair.run_until(3 * SECOND)
    data = [
        (time, read["frames"]) for time, direction, _, read, _ in pair.log if direction == "data"
    ]
    # The first datagram is the Initial.
    sent = {
        index - 1: time for index, (time, frames) in enumerate(data) if frames[-1][0] == "STREAM"
    }
    smoothed, variation, minimum, largest = RTT, RTT // 2, RTT, -1
    for time, (_, delay, ranges, *_) in pair.frames("ack", "ACK"):
        newest = ranges[0][1]
        if time < RTT or newest <= largest:
            continue
        largest = newest
        if newest not in sent:
            continue
        latest = time + RTT // 2 - sent[newest]
        minimum = min(minimum, latest)
        delay = min(delay * 8000, 25 * MILLISECOND)
        adjusted = latest - delay if latest >= minimum + delay else latest
        variation = (3 * variation + abs(smoothed - adjusted)) // 4
        smoothed = (7 * smoothed + adjusted) // 8
    assert pair.sender.smoothed_rtt == smoothed
    times = list(sent.values())
    last, probe = next(
        (a, c) for a, b, c in zip(times, times[1:], times[2:], strict=False) if b == c
    )
    assert probe - last == smoothed + max(4 * variation, MILLISECOND) + 25 * MILLISECOND


def test_what_a_message_lacks_when_a_pause_begins_is_written_after_it():
    # A message takes 9.3 ms; the application writes for 15 ms of 20.
    kind = application(
        "on_off",
        rate_bits_per_second=1_000_000,
        on_duration=15 * MILLISECOND,
        off_duration=5 * MILLISECOND,
    )
    pair = Pair(make_flow(application=kind))
    pair.run_until(2 * SECOND)
    written = pair.receiver.statistics()["goodput_bytes"] * 8
    assert written == pytest.approx(0.75e6 * (2 - 0.025), abs=20_000)


def losing_control(*lost):
    """Drops these of the receiver's packets with HANDSHAKE_DONE or MAX_DATA, counted from 0."""
    seen = itertools.count()
    return lambda direction, index, frames: (
        direction == "ack"
        and any(frame[0] in ("HANDSHAKE_DONE", "MAX_DATA") for frame in frames)
        and next(seen) in lost
    )


def test_an_acknowledged_handshake_done_ends_the_receivers_backoff():
    # A message per second: the ninth makes the receiver grant more.
    flow = constant_rate(9288, flow_control_window_bytes=20_000)
    pair = Pair(flow, drop=losing_control(0, 1, 3))
    pair.run_until(15 * SECOND)
    done, credit = times(pair, "ack", "HANDSHAKE_DONE"), times(pair, "ack", "MAX_DATA")
    # 1024 ms without a sample of the RTT.
    assert [later - earlier for earlier, later in itertools.pairwise(done)] == [
        1024 * MILLISECOND,
        2048 * MILLISECOND,
    ]
    # RTT + 4 * RTT / 2 + max_ack_delay, of an RTT with 25 ms of delay at most.
    assert credit[2] > 8 * SECOND
    assert credit[3] - credit[2] <= 3 * (RTT + 25 * MILLISECOND) + 25 * MILLISECOND


def test_timeouts_of_the_handshake_do_not_lengthen_the_receivers_first_one():
    lose_done = losing_control(0)
    pair = Pair(
        constant_rate(9288),
        drop=lambda *sent: losing("ack", 0)(*sent) or lose_done(*sent),
    )
    pair.run_until(4 * SECOND)
    first, again = times(pair, "ack", "HANDSHAKE_DONE")
    assert first > SECOND
    assert again - first == 1024 * MILLISECOND


def test_newer_credit_repeats_a_handshake_done_that_is_not_acknowledged():
    pair = Pair(make_flow(flow_control_window_bytes=20_000), drop=losing_control(0))
    pair.run_until(SECOND // 2)
    done, credit = times(pair, "ack", "HANDSHAKE_DONE"), times(pair, "ack", "MAX_DATA")
    assert done[1] == credit[0] < 4 * RTT
    assert len(credit) > len(done)


def test_more_credit_is_granted_when_half_of_it_is_used():
    pair = Pair(constant_rate(1_000_000, flow_control_window_bytes=20_000))
    pair.run_until(SECOND)
    message = pair.frames("data", "STREAM")[0][1][3]
    limits = [frame[1] for _, frame in pair.frames("ack", "MAX_DATA")]
    read = [limit - 20_000 for limit in limits]
    assert len(read) > 5
    assert all(
        0 < later - earlier - 10_000 <= message
        for earlier, later in zip([0, *read], read, strict=False)
    )


@pytest.mark.parametrize("pause, events", [(180, 1), (220, 2)])
def test_a_send_buffer_is_full_until_a_third_of_it_is_free(pause, events):
    # Of 75,000 bytes written, 24,000 wait after 180 ms of pause and 18,000 after 220.
    kind = application(
        "on_off",
        rate_bits_per_second=6_000_000,
        on_duration=100 * MILLISECOND,
        off_duration=pause * MILLISECOND,
    )
    pair = Pair(with_window(12_000, application=kind, send_buffer_bytes=30_000))
    pair.run_until((200 + pause) * MILLISECOND)
    assert pair.sender.statistics()["send_buffer_events"] == events


def test_a_message_is_written_when_its_last_bit_is():
    pair = Pair(constant_rate(7_000_001))
    pair.run_until(SECOND // 4)
    sent = pair.frames("data", "STREAM")
    needed = -(-sent[-1][1][3] * 8 * SECOND // 7_000_001)
    assert {later[0] - earlier[0] for earlier, later in itertools.pairwise(sent[-50:])} == {needed}


def test_an_application_without_a_rate_writes_nothing():
    pair = Pair(with_window(12_000, application=application("bursts", burst_period=SECOND)))
    pair.run_until(SECOND)
    assert pair.receiver.statistics()["goodput_bytes"] == 0


@pytest.mark.parametrize("limit", [63, 64, 16_383, 16_384])
def test_limits_where_an_integer_of_the_wire_grows_are_written_right(limit):
    def lose_credit(direction, index, frames):
        return direction == "ack" and any(frame[0] == "MAX_DATA" for frame in frames)

    pair = Pair(make_flow(flow_control_window_bytes=limit), drop=lose_credit)
    pair.run_until(SECOND)
    assert pair.frames("data", "DATA_BLOCKED")[0][1] == ("DATA_BLOCKED", limit)
    assert pair.receiver.statistics()["goodput_bytes"] == limit


@pytest.mark.parametrize("delay, events", [(600, 0), (25, 1)])
def test_losses_from_before_the_first_sample_of_the_rtt_are_not_persistent_congestion(
    delay, events
):
    # With 600 ms of delay the reply may answer either Initial and gives no sample.
    drop = lambda direction, index, frames: (  # noqa: E731
        direction == "data" and frames[0][0] != "CRYPTO" and pair.now < 20 * SECOND
    )
    pair = Pair(constant_rate(92_880), delay=delay * MILLISECOND)
    pair.drop = drop
    pair.run_until(25 * SECOND)
    assert pair.sender.statistics()["rtt_samples"] > 0
    assert pair.sender.statistics()["persistent_congestion_events"] == events


def test_losses_found_after_persistent_congestion_are_not_another_one():
    # Every 4 ms a packet: when the first one arrives again, the one before it may still come.
    drop = lambda direction, index, frames: (  # noqa: E731
        direction == "data" and SECOND < pair.now < 3 * SECOND
    )
    pair = Pair(constant_rate(2_322_000))
    pair.drop = drop
    pair.run_until(5 * SECOND)
    assert pair.sender.statistics()["persistent_congestion_events"] == 1


def test_a_packet_below_all_ranges_that_are_remembered_is_a_duplicate():
    pair = Pair(constant_rate(9288))
    pair.run_until(SECOND // 2)

    def goodput_after(number):
        stream = b"\x0e\x02" + (1 << 31 | 100 * number).to_bytes(4, "big") + b"\x01"
        prefix = b"\x43" + bytes(8) + number.to_bytes(4, "big") + stream + b"x"
        assert pair.receiver.on_datagram(pair.now, (prefix, len(prefix) + 16, 0)) is None
        return pair.receiver.statistics()["goodput_bytes"]

    before = goodput_after(100)
    for number in range(102, 182, 2):
        before += 1
        assert goodput_after(number) == before
    # Of 41 ranges the 32 newest are left: 118 and later.
    assert goodput_after(117) == before
    assert goodput_after(119) == before + 1
