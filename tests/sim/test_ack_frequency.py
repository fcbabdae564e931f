"""When a receiver acknowledges: the flow's ack_frequency (draft-ietf-quic-ack-frequency)."""

import pytest
from helpers.endpoints import (
    MILLISECOND,
    RTT,
    SECOND,
    Pair,
    constant_rate,
    losing,
    transfer,
    with_window,
)

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
