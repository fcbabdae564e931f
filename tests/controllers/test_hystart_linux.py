"""HyStart as in Linux's tcp_cubic.c, in each controller that has it."""

import pytest
from helpers.ack_rounds import DATAGRAM, MILLISECOND, SECOND, AckRounds, Driver, Path

from quicgym import _core
from quicgym.controllers import find

Mode = _core.ControllerMode
RTT = 100 * MILLISECOND
pytestmark = pytest.mark.parametrize("name", ["newreno", "cubic"])


def make(name, slow_start="hystart-linux"):
    return _core.make_controller(name, find(name).numbers({"slow_start": slow_start}))


class SlowStart(Driver):
    """In slow start with this window, in packets; RTTmin is 100 ms, and a round has begun."""

    def __init__(self, name, window=100, rtt=RTT):
        super().__init__(make(name), rtt)
        self.ack((window - 10) * DATAGRAM)
        self.begin_round(rtt)

    def begin_round(self, rtt=RTT):
        self.ack(0, after=SECOND, rtt=rtt, round_start=True)

    def train(self, duration, gap=2 * MILLISECOND):
        """ACKs at a distance that is no longer than the gap, all with the lowest RTT."""
        count = -(-duration // gap)
        for number in range(1, count + 1):
            self.ack(0, after=duration * number // count - duration * (number - 1) // count)

    def sees(self, *rtts_ms):
        """A round in which ACKs measure these RTTs, too far apart for a train."""
        self.begin_round(int(rtts_ms[0] * MILLISECOND))
        for rtt in rtts_ms[1:]:
            self.ack(0, after=3 * MILLISECOND, rtt=int(rtt * MILLISECOND))

    @property
    def ended(self):
        assert self.mode in (Mode.slow_start, Mode.congestion_avoidance)
        return self.mode == Mode.congestion_avoidance


def test_a_train_of_acks_longer_than_the_lowest_rtt_ends_slow_start_with_the_window_as_it_is(name):
    flow = SlowStart(name)
    flow.train(RTT + MILLISECOND)  # 1 ms is for packets that come aggregated
    assert not flow.ended
    flow.ack(0, after=1)
    assert flow.ended and flow.window == 100 * DATAGRAM


def test_at_a_high_pacing_rate_aggregation_takes_less_time(name):
    flow = SlowStart(name, window=20_000)  # 4 * 64 KiB take 0.546 ms at twice that in an RTT
    flow.train(RTT + int(0.54 * MILLISECOND))
    assert not flow.ended
    flow.ack(0, after=10_000)
    assert flow.ended


def test_a_gap_of_more_than_2_ms_ends_the_train(name):
    flow = SlowStart(name)
    flow.train(RTT // 2)
    flow.ack(0, after=2 * MILLISECOND + 1)
    flow.train(RTT)
    assert not flow.ended


def test_a_train_is_of_one_round(name):
    flow = SlowStart(name)
    for _ in range(3):
        flow.train(RTT)
        flow.ack(0, after=MILLISECOND, round_start=True)
    assert not flow.ended


@pytest.mark.parametrize("window, ends", [(15, False), (16, True)])
def test_below_16_packets_nothing_is_looked_at(name, window, ends):
    flow = SlowStart(name, window)
    flow.train(2 * RTT)
    assert flow.ended == ends
    flow = SlowStart(name, window)
    flow.sees(*[200] * 9)
    assert flow.ended == ends


@pytest.mark.parametrize("lowest, rise", [(10, 4), (80, 10), (400, 16)])
def test_a_delay_above_an_eighth_of_the_lowest_rtt_within_4_and_16_ms_ends_slow_start(
    name, lowest, rise
):
    flow = SlowStart(name, rtt=lowest * MILLISECOND)
    flow.sees(*[lowest + rise] * 9)
    assert not flow.ended
    flow.sees(*[lowest + rise + 0.01] * 9)
    assert flow.ended


def test_eight_samples_of_a_round_are_taken_first_and_the_lowest_of_a_round_counts(name):
    flow = SlowStart(name)
    flow.sees(*[200] * 8)
    assert not flow.ended
    flow.sees(101, *[200] * 20)
    assert not flow.ended
    flow.sees(*[200] * 9)
    assert flow.ended


def test_slow_start_after_persistent_congestion_is_watched_as_well(name):
    flow = SlowStart(name, window=1000)
    flow.sees(*[200] * 9)
    assert flow.ended
    flow.controller.on_persistent_congestion(flow.now)
    flow.now += SECOND
    flow.ack(98 * DATAGRAM, rtt=RTT, round_start=True)
    assert flow.mode == Mode.slow_start
    flow.sees(*[200] * 9)
    assert flow.mode == Mode.congestion_avoidance and flow.window == 100 * DATAGRAM


def test_it_spares_a_path_with_a_short_queue_losses_of_slow_start(name):
    path = Path(rate=2.5e6, base_rtt=40 * MILLISECOND, queue_packets=83)  # 20 Mbps, 1 BDP

    def lost(slow_start):
        return AckRounds(make(name, slow_start), path).run(4 * SECOND).lost

    assert lost("hystart-linux") < 0.8 * lost("standard")
