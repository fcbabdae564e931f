"""Loss detection, probes, persistent congestion and the RTT (RFC 9002)."""

import pytest
from helpers.endpoints import (
    MILLISECOND,
    RTT,
    SECOND,
    Interrupted,
    Late,
    Pair,
    application,
    constant_rate,
    listening,
    losing,
    make_flow,
    times,
    transfer,
    with_window,
)
from hypothesis import given, settings
from hypothesis import strategies as st


def test_a_packet_three_below_the_largest_acknowledged_is_lost_and_its_data_sent_again():
    pair = Pair(transfer(60_000), drop=losing("data", 5)).run_until(2 * SECOND)
    statistics = pair.sender.statistics()
    assert statistics["declared_lost_packets"] == 1
    assert statistics["congestion_events"] == 1
    offsets = [frame[2] for _, frame in pair.frames("data", "STREAM")]
    assert len(offsets) - len(set(offsets)) == 1
    assert pair.receiver.statistics()["goodput_bytes"] == 60_000


def test_tail_loss_is_found_by_the_probe_timeout_with_two_probes():
    # The last two packets of the transfer vanish, so nothing after them reveals the loss.
    pair = Pair(transfer(9000), drop=losing("data", 7, 8)).run_until(5 * SECOND)
    statistics = pair.sender.statistics()
    assert statistics["probe_timeouts"] == 1
    assert pair.receiver.statistics()["goodput_bytes"] == 9000


def test_probe_timeouts_back_off_exponentially_when_nothing_comes_back():
    paced = transfer(60_000, pace_initial_window=True)
    pair = Pair(paced, drop=lambda direction, index, frames: index >= 4).run_until(60 * SECOND)
    times = pair.sent_times("data")
    # RFC 9002 6.2.4: each timeout sends two datagrams at once; pacing never does.
    probes = [a for a, b in zip(times, times[1:], strict=False) if a == b]
    gaps = [b - a for a, b in zip(probes, probes[1:], strict=False)]
    assert len(gaps) >= 4
    for shorter, longer in zip(gaps, gaps[1:], strict=False):
        assert longer == 2 * shorter


def test_scattered_losses_are_not_persistent_congestion():
    pair = Pair(make_flow(), drop=losing("data", *range(49, 10_000, 50))).run_until(10 * SECOND)
    assert pair.sender.statistics()["declared_lost_packets"] > 20
    assert pair.sender.statistics()["persistent_congestion_events"] == 0


def test_ecn_marks_are_counted_echoed_and_reduce_the_window():
    marked = Pair(make_flow(ecn=True), mark=lambda index: index == 100)
    plain = Pair(make_flow(ecn=True))
    for pair in (marked, plain):
        pair.run_until(SECOND // 2)
    assert marked.sender.statistics()["ecn_marks"] == 1
    assert plain.sender.statistics()["ecn_marks"] == 0
    assert marked.sender.window_bytes < plain.sender.window_bytes


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

    pair = Pair(flow, drop=drop).run_until(3600 * SECOND)
    assert pair.receiver.statistics()["goodput_bytes"] == size
    assert pair.receiver.statistics()["completion"] is not None
    assert pair.sender.closed
    assert pair.sender.in_flight_bytes == 0
    assert all(size <= datagram for _, direction, size, *_ in pair.log if direction == "data")


@pytest.mark.parametrize("controller", ["newreno", "cubic", "vegas", "cubic+"])
def test_a_mark_that_comes_with_persistent_congestion_does_not_cut_a_second_time(controller):
    windows = []
    for marked in (False, True):
        flow = make_flow(controller=controller, ecn=True)
        pair = Interrupted(flow, 450 * MILLISECOND, 2500 * MILLISECOND, marked).run_until(
            3 * SECOND
        )
        assert pair.sender.statistics()["persistent_congestion_events"] == 1
        assert pair.sender.statistics()["ecn_marks"] == marked
        pair.run_until(3400 * MILLISECOND)
        windows.append(pair.sender.window_bytes)
    assert windows[1] > windows[0] / 2  # slow start again, as without the mark


def test_what_a_probe_has_delivered_is_not_sent_again():
    pair = Pair(transfer(9000), drop=losing("data", 7, 8)).run_until(5 * SECOND)
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


def test_an_acknowledged_probe_ends_the_backoff():
    flow = constant_rate(9288)  # a message per second
    seen = set()

    def lose_first_copies(direction, index, frames):
        offsets = [frame[2] for frame in frames if frame[0] == "STREAM"]
        new = direction == "data" and bool(offsets) and not set(offsets) <= seen
        seen.update(offsets)
        return new and len(seen) > 3

    pair = Pair(flow, drop=lose_first_copies).run_until(9 * SECOND)
    sent = times(pair, "data", "STREAM")
    waits = [b - a for a, b in zip(sent, sent[1:], strict=False) if 0 < b - a < SECOND // 2]
    assert len(waits) > 3
    assert max(waits) == waits[0] < 3 * RTT


def test_a_loss_event_names_the_last_of_its_packets():
    flow, events = listening(make_flow())
    pair = Interrupted(flow, 450 * MILLISECOND, 500 * MILLISECOND).run_until(SECOND)
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
    assert pair.sender.statistics()["lowest_rtt"] == RTT


@pytest.mark.parametrize("lost, events", [(22, 0), (25, 1)])
def test_persistent_congestion_takes_three_probe_timeouts(lost, events):
    # RFC 9002 7.6.1, for an RTT that does not vary: 3 * (50 ms + 1 ms + 25 ms).
    pair = Pair(constant_rate(928_800), drop=losing("data", *range(100, 100 + lost))).run_until(
        3 * SECOND
    )
    statistics = pair.sender.statistics()
    assert statistics["declared_lost_packets"] == lost
    assert statistics["persistent_congestion_events"] == events


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
    ).run_until(SECOND)
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
        with_window(36_000, application=kind, pace_initial_window=True),
        lambda direction, index: index % delays * MILLISECOND if direction == "data" else 0,
        drop=lambda direction, index, frames: direction == "data" and index > 99,
    ).run_until(3 * SECOND)
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


class Silent(Pair):
    """Nothing of the data but handshakes arrives between two times."""

    def __init__(self, flow, start, end, **arguments):
        def drop(direction, index, frames):
            is_silent = start <= self.now < end and frames[0][0] != "CRYPTO"
            return direction == "data" and is_silent

        super().__init__(flow, drop=drop, **arguments)


@pytest.mark.parametrize("delay, events", [(600, 0), (25, 1)])
def test_losses_from_before_the_first_sample_of_the_rtt_are_not_persistent_congestion(
    delay, events
):
    # With 600 ms of delay the reply may answer either Initial and gives no sample.
    pair = Silent(constant_rate(92_880), 0, 20 * SECOND, delay=delay * MILLISECOND)
    pair.run_until(25 * SECOND)
    assert pair.sender.statistics()["rtt_samples"] > 0
    assert pair.sender.statistics()["persistent_congestion_events"] == events


def test_losses_found_after_persistent_congestion_are_not_another_one():
    # Every 4 ms a packet: when the first one arrives again, the one before it may still come.
    pair = Silent(constant_rate(2_322_000), SECOND + 1, 3 * SECOND).run_until(5 * SECOND)
    assert pair.sender.statistics()["persistent_congestion_events"] == 1
