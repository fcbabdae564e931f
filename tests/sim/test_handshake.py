"""The handshake of one round trip, and how a connection ends."""

import itertools

from helpers.endpoints import (
    MILLISECOND,
    RTT,
    SECOND,
    Pair,
    constant_rate,
    losing,
    losing_control,
    make_flow,
    times,
    transfer,
)


def test_handshake_takes_one_round_trip_and_initials_fill_1200_bytes():
    pair = Pair(transfer(5000)).run_until(SECOND)
    time, direction, size, read, _ = pair.log[0]
    assert (time, direction, size, read["type"]) == (0, "data", 1200, "Initial")
    first_data = pair.frames("data", "STREAM")[0][0]
    assert first_data == RTT
    assert len(pair.frames("ack", "HANDSHAKE_DONE")) == 1


def test_a_lost_initial_is_sent_again_after_twice_the_initial_rtt_and_backs_off():
    pair = Pair(transfer(5000), drop=losing("data", 0, 1)).run_until(10 * SECOND)
    initials = [time for time, _, _, read, _ in pair.log if read["frames"][0][0] == "CRYPTO"]
    # RFC 9002 6.2.2: 333 ms + 4 * 166.5 ms.
    assert initials == [0, 999 * MILLISECOND, 3 * 999 * MILLISECOND]
    assert pair.receiver.statistics()["goodput_bytes"] == 5000


def test_a_lost_handshake_reply_is_recovered():
    pair = Pair(transfer(5000), drop=losing("ack", 0)).run_until(10 * SECOND)
    assert pair.receiver.statistics()["goodput_bytes"] == 5000
    assert pair.sender.closed


def test_a_handshake_reply_that_may_answer_either_initial_gives_no_rtt():
    # The reply to the first Initial arrives after the second one has left, at 999 ms.
    pair = Pair(transfer(5000), delay=600 * MILLISECOND).run_until(1300 * MILLISECOND)
    assert pair.sender.statistics()["rtt_samples"] == 0
    pair.run_until(10 * SECOND)
    assert pair.sender.statistics()["min_rtt"] >= 1200 * MILLISECOND


def test_timeouts_of_the_handshake_do_not_lengthen_the_first_probe_timeout():
    drop = lambda direction, index, frames: direction == "data" and index != 1  # noqa: E731
    pair = Pair(transfer(2000), drop=drop).run_until(3 * SECOND)
    first, second, probe = times(pair, "data", "STREAM")[:3]
    assert first == 999 * MILLISECOND + RTT
    # RFC 9002 6.2.1 after one sample: RTT + 4 * RTT / 2 + max_ack_delay.
    assert probe == second + 3 * RTT + 25 * MILLISECOND


def test_timeouts_of_the_handshake_do_not_lengthen_the_receivers_first_one():
    lose_done = losing_control(0)
    pair = Pair(
        constant_rate(9288),
        drop=lambda *sent: losing("ack", 0)(*sent) or lose_done(*sent),
    ).run_until(4 * SECOND)
    first, again = times(pair, "ack", "HANDSHAKE_DONE")
    assert first > SECOND
    assert again - first == 1024 * MILLISECOND


def test_an_acknowledged_handshake_done_ends_the_receivers_backoff():
    # A message per second: the ninth makes the receiver grant more.
    flow = constant_rate(9288, flow_control_window_bytes=20_000)
    pair = Pair(flow, drop=losing_control(0, 1, 3)).run_until(15 * SECOND)
    done, credit = times(pair, "ack", "HANDSHAKE_DONE"), times(pair, "ack", "MAX_DATA")
    # 1024 ms without a sample of the RTT.
    assert [later - earlier for earlier, later in itertools.pairwise(done)] == [
        1024 * MILLISECOND,
        2048 * MILLISECOND,
    ]
    # RTT + 4 * RTT / 2 + max_ack_delay, of an RTT with 25 ms of delay at most.
    assert credit[2] > 8 * SECOND
    assert credit[3] - credit[2] <= 3 * (RTT + 25 * MILLISECOND) + 25 * MILLISECOND


def test_newer_credit_repeats_a_handshake_done_that_is_not_acknowledged():
    pair = Pair(make_flow(flow_control_window_bytes=20_000), drop=losing_control(0)).run_until(
        SECOND // 2
    )
    done, credit = times(pair, "ack", "HANDSHAKE_DONE"), times(pair, "ack", "MAX_DATA")
    assert done[1] == credit[0] < 4 * RTT
    assert len(credit) > len(done)


def test_a_transfer_ends_with_connection_close_and_completes_when_every_byte_arrived():
    pair = Pair(transfer(100_000)).run_until(10 * SECOND)
    assert pair.sender.closed
    assert len(pair.frames("data", "CONNECTION_CLOSE")) == 1
    completion = pair.receiver.statistics()["completion"]
    assert 0 < completion < pair.frames("data", "CONNECTION_CLOSE")[0][0]


def test_a_flow_stops_at_its_stop_time():
    pair = Pair(make_flow(stop=SECOND // 5)).run_until(SECOND)
    assert pair.sender.closed
    assert max(time for time, direction, *_ in pair.log if direction == "data") == SECOND // 5
