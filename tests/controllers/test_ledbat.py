"""LEDBAT++ against draft-irtf-iccrg-ledbat-plus-plus-01; tests name the sections of their rules."""

import math

import pytest
from helpers.ack_rounds import DATAGRAM, MILLISECOND, SECOND, AckRounds, Driver, Path

from quicgym import _core

Mode = _core.ControllerMode
MINIMUM = 2


class Flow(Driver):
    """Rounds in which everything in the window is acknowledged, in ten ACKs."""

    def __init__(self, base_ms=120, **parameters):
        super().__init__(_core.make_controller("ledbat++", parameters))
        self.base = base_ms * MILLISECOND
        self.ack(0, rtt=self.base, round_start=True)

    def round(self, delay_ms=0, count=1):
        rtt = self.base + int(delay_ms * MILLISECOND)
        for _ in range(count):
            share = self.window / 10
            for place in range(10):
                self.ack(int(share), rtt=rtt, after=rtt // 10, round_start=place == 0)

    @property
    def packets(self):
        return self.window / DATAGRAM


def avoiding(**parameters):
    """In congestion avoidance with no slowdown near."""
    flow = Flow(**parameters)
    flow.round(count=5)
    flow.loss()
    flow.round(count=6)  # the first slowdown, and back
    while flow.mode == Mode.slow_start or flow.packets < 3:
        flow.round()
    return flow


@pytest.mark.parametrize(
    "base_ms, gain", [(120, 1), (60, 1 / 2), (59, 1 / 3), (20, 1 / 6), (1, 1 / 16)]
)
def test_4_1_and_4_2_slow_start_grows_by_the_gain(base_ms, gain):
    flow = Flow(base_ms)
    assert flow.packets == MINIMUM
    flow.round()
    assert flow.packets == pytest.approx(MINIMUM * (1 + gain), abs=0.01)


def test_4_1_the_first_slow_start_ends_above_three_quarters_of_the_target():
    flow = Flow()
    flow.round(44, count=3)
    assert flow.mode == Mode.slow_start
    flow.round(46)
    assert flow.mode == Mode.congestion_avoidance


def test_4_2_congestion_avoidance_adds_the_gain_per_round():
    flow = avoiding()
    before = flow.packets
    flow.round(50)
    assert flow.packets - before == pytest.approx(1, abs=0.1)


def test_4_3_above_the_target_the_window_shrinks_with_the_excess():
    flow = avoiding()
    flow.round(30, count=3)
    before = flow.packets
    flow.round(72)  # a fifth above
    assert flow.packets == pytest.approx(before + 1 - 0.2 * before, rel=0.15)


def test_4_3_it_loses_half_of_the_window_in_a_round_at_most():
    flow = avoiding()
    flow.round(30, count=4)
    before = flow.packets
    flow.round(600)
    assert before * math.exp(-0.7) < flow.packets < 0.75 * before


def test_4_4_the_first_slowdown_follows_two_round_trips_after_slow_start():
    flow = Flow()
    flow.round(count=3)
    flow.round(50)  # slow start ends
    assert flow.mode == Mode.congestion_avoidance
    threshold = flow.packets
    flow.round(50)
    assert flow.packets > MINIMUM
    flow.round(50, count=2)
    assert flow.packets == MINIMUM  # frozen, and then slow start up to the threshold
    for _ in range(12):
        flow.round()
        if flow.mode == Mode.congestion_avoidance:
            break
    assert flow.packets == pytest.approx(threshold, rel=0.3)


def test_4_4_the_next_slowdown_follows_after_nine_times_the_last():
    path = Path(rate=1.25e6, base_rtt=50 * MILLISECOND, queue_packets=500)
    rows = AckRounds(_core.make_controller("ledbat++"), path).run(60 * SECOND).rows
    windows = [row.window / DATAGRAM for row in rows]
    begins = [
        row.now for row, before, after in zip(rows[1:], windows, windows[1:], strict=False)
        if after == MINIMUM < before / 3
    ]  # fmt: skip
    assert len(begins) >= 3
    first, second = begins[1] - begins[0], begins[2] - begins[1]
    ends = [
        next(row.now for row in rows if row.now > begin + 10 * MILLISECOND
             and row.snapshot.mode == Mode.congestion_avoidance)
        for begin in begins[:2]
    ]  # fmt: skip
    for begin, end, interval in zip(begins, ends, (first, second), strict=False):
        assert interval == pytest.approx(10 * (end - begin), rel=0.05)


def test_rfc_6817_the_base_delay_is_that_of_ten_minutes():
    flow = Flow(base_ms=20, slowdown_interval=1000)
    assert flow.controller.snapshot.round_trip_estimate == 20 * MILLISECOND
    for minute in range(11):
        flow.ack(rtt=50 * MILLISECOND, after=61 * SECOND)
        expected = 20 if minute < 9 else 50
        assert flow.controller.snapshot.round_trip_estimate == expected * MILLISECOND


def test_alone_it_fills_the_path_and_keeps_the_queue_near_the_target():
    path = Path(rate=1.25e6, base_rtt=50 * MILLISECOND, queue_packets=500)
    rounds = AckRounds(_core.make_controller("ledbat++"), path).run(60 * SECOND)
    assert rounds.throughput(20 * SECOND, 60 * SECOND) > 0.8 * path.rate
    late = [row.rtt - path.base_rtt for row in rounds.rows if row.now > 20 * SECOND]
    assert max(late) < 90 * MILLISECOND and rounds.lost == 0
