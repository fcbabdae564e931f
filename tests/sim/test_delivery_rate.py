"""Delivery-rate samples, and when the application limits the sender."""

from helpers.endpoints import (
    MILLISECOND,
    RTT,
    SECOND,
    Late,
    Pair,
    application,
    listening,
    losing,
    make_flow,
    transfer,
)

import quicgym
from quicgym.controllers import describe


def test_delivery_rate_of_packets_alone_is_their_size_over_the_time_until_the_acknowledgement():
    # 93 ms between packets, 50 for the way there and back, 25 until the acknowledgement leaves.
    kind = application("constant_rate", rate_bits_per_second=100_000)
    flow, events = listening(make_flow(application=kind))
    Pair(flow).run_until(3 * SECOND)
    samples = [event[2:4] for event in events if event[0] == "ack"][5:]
    assert len(samples) > 20
    for interval, rate in samples:
        assert interval == RTT + 25 * MILLISECOND
        assert 1150 < rate * interval * 1e-9 <= 1200


def test_acknowledgements_that_catch_up_do_not_raise_the_delivery_rate():
    # 119 kB/s of packets. Their acknowledgements take 40 ms longer until, from one on, they do not.
    kind = application("constant_rate", rate_bits_per_second=928_800)
    flow, events = listening(make_flow(application=kind))
    Late(
        flow,
        lambda direction, index: 40 * MILLISECOND if direction == "ack" and index < 40 else 0,
    ).run_until(2 * SECOND)
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
    Pair(flow).run_until(2 * SECOND)
    limited = [(event[1], event[4]) for event in events if event[0] == "ack"]
    assert any(flags[0] for now, flags in limited if now < 1.2 * SECOND)
    busy = {flags for now, flags in limited if 1.4 * SECOND < now < 1.6 * SECOND}
    assert busy == {(False, False)}


def test_a_full_window_is_not_application_limited_though_nothing_more_waits():
    # Ten packets, the initial window: their first acknowledgement, of one, still lets it grow.
    pair = Pair(transfer(11_000)).run_until(4 * RTT)
    assert pair.sender.closed
    assert pair.sender.window_bytes == 12_000 + 1200


def test_a_sample_tells_what_was_in_flight_when_its_packet_left_and_lost_and_delivered_since():
    window = 40 * 1200

    class Watching(quicgym.Controller):
        def on_start(self, max_datagram_bytes):
            self.window_bytes = window

        def on_ack(self, event):
            sample = event.sample
            rows.append(
                (
                    event.now,
                    sample.in_flight_at_send_bytes,
                    sample.lost_bytes,
                    sample.delivered_bytes,
                )
            )

        def on_loss(self, event):
            losses.append((event.now, event.lost_bytes))

    rows, losses = [], []
    flow = make_flow()
    flow.set_python_controller(describe(Watching))
    Pair(flow, drop=losing("data", 500)).run_until(2 * SECOND)
    assert rows[0][1:] == (0, 0, 0)  # the handshake's
    ((lost_at, lost_bytes),) = losses
    full = [row for row in rows if row[0] > 5 * RTT]
    assert all(window - 2400 <= in_flight <= window for _, in_flight, _, _ in full)
    # A round trip's samples, whose packets left before the loss was known, and no others.
    with_loss = [now for now, _, lost, _ in full if lost > 0]
    assert {lost for _, _, lost, _ in full} == {0, lost_bytes}
    assert with_loss[0] == lost_at and RTT / 2 < with_loss[-1] - lost_at <= RTT
    # A round trip delivers what was in flight, but for the loss and a packet that waits.
    assert all(window - 3600 <= delivered <= window for *_, delivered in full)
