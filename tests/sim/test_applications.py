"""What applications write, and when."""

import itertools

import pytest
from helpers.endpoints import (
    MILLISECOND,
    RTT,
    SECOND,
    Pair,
    application,
    constant_rate,
    make_flow,
    with_window,
)


def test_constant_rate_writes_at_its_rate_and_is_application_limited():
    flow = make_flow(application=application("constant_rate", rate_bits_per_second=1_000_000))
    pair = Pair(flow).run_until(10 * SECOND)
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


def test_what_a_message_lacks_when_a_pause_begins_is_written_after_it():
    # A message takes 9.3 ms; the application writes for 15 ms of 20.
    kind = application(
        "on_off",
        rate_bits_per_second=1_000_000,
        on_duration=15 * MILLISECOND,
        off_duration=5 * MILLISECOND,
    )
    pair = Pair(make_flow(application=kind)).run_until(2 * SECOND)
    written = pair.receiver.statistics()["goodput_bytes"] * 8
    assert written == pytest.approx(0.75e6 * (2 - 0.025), abs=20_000)


def test_a_message_is_written_when_its_last_bit_is():
    pair = Pair(constant_rate(7_000_001)).run_until(SECOND // 4)
    sent = pair.frames("data", "STREAM")
    needed = -(-sent[-1][1][3] * 8 * SECOND // 7_000_001)
    assert {later[0] - earlier[0] for earlier, later in itertools.pairwise(sent[-50:])} == {needed}


def test_an_application_without_a_rate_writes_nothing():
    pair = Pair(
        with_window(12_000, application=application("bursts", burst_period=SECOND))
    ).run_until(SECOND)
    assert pair.receiver.statistics()["goodput_bytes"] == 0


def bursts_of_their_own(**fields):
    """1 Mbps over the first stream, 4 Mbps over the second in the seconds 0 and 2."""
    return application(
        "bursts",
        rate_bits_per_second=1_000_000,
        burst_rate_bits_per_second=4_000_000,
        burst_duration=SECOND,
        burst_period=2 * SECOND,
        burst_count=2,
        burst_own_stream=True,
        **fields,
    )


def stream_bytes(pair, stream_id):
    """How far each stream has come at the sender."""
    return max(
        frame[2] + frame[3] for _, frame in pair.frames("data", "STREAM") if frame[1] == stream_id
    )


def test_bursts_over_a_stream_of_their_own_are_no_goodput():
    pair = Pair(with_window(1_000_000, application=bursts_of_their_own()))
    goodput, received = [0], [0]
    for second in range(1, 7):
        pair.run_until(second * SECOND)
        goodput.append(pair.receiver.statistics()["goodput_bytes"] * 8 / 1e6)
        received.append(pair.receiver.statistics()["received_bytes"] * 8 / 1e6)
    assert [round(b - a) for a, b in itertools.pairwise(goodput)][1:] == [1, 1, 1, 1, 1]
    assert [round(b - a) for a, b in itertools.pairwise(received)][1:] == [1, 5, 1, 1, 1]


def test_original_data_and_bursts_share_what_the_window_lets_out():
    # Two packets a round trip are 0.37 Mbps, less than either stream has.
    flow = with_window(2 * 1200, application=bursts_of_their_own())
    pair = Pair(flow).run_until(SECOND)
    assert stream_bytes(pair, 2) == pytest.approx(stream_bytes(pair, 6), rel=0.1)


def test_lost_data_of_a_burst_is_sent_again_over_its_stream():
    lost = []

    def drop(direction, index, frames):
        is_first = direction == "data" and any(frame[:2] == ("STREAM", 6) for frame in frames)
        lost.extend(frames if is_first and not lost else ())
        return is_first and frames == lost

    pair = Pair(with_window(1_000_000, application=bursts_of_their_own()), drop=drop)
    pair.run_until(SECOND)
    begins = [frame[1:3] for _, frame in pair.frames("data", "STREAM")]
    assert begins.count((6, 0)) == 2
    assert begins.count((2, 0)) == 1


def test_flow_control_counts_both_streams_of_a_connection():
    limit = 30_000
    flow = with_window(
        1_000_000, application=bursts_of_their_own(), flow_control_window_bytes=limit
    )
    without_updates = Pair(
        flow, drop=lambda direction, _, frames: any(frame[0] == "MAX_DATA" for frame in frames)
    ).run_until(SECOND)
    sent = stream_bytes(without_updates, 2) + stream_bytes(without_updates, 6)
    assert sent == limit
    assert without_updates.frames("data", "DATA_BLOCKED")[0][1] == ("DATA_BLOCKED", limit)
    assert stream_bytes(Pair(flow).run_until(6 * SECOND), 6) > 0.9 * 8_000_000 / 8
