"""HyStart++ against RFC 9406, in each controller that has it."""

import pytest
from helpers.ack_rounds import DATAGRAM, MILLISECOND, SECOND, AckRounds, Driver, Path

from quicgym import _core
from quicgym.controllers import find

Mode = _core.ControllerMode
CONTROLLERS = ["newreno", "cubic", "newreno+", "cubic+"]
pytestmark = pytest.mark.parametrize("name", CONTROLLERS)


class SlowStart(Driver):
    """Rounds of ten ACKs for two datagrams each, all with the same RTT."""

    def __init__(self, name, **parameters):
        if name.endswith("+"):  # its own mechanism stays out of the way
            parameters["period_ms"] = 60000
        super().__init__(_core.make_controller(name, find(name).numbers(parameters)))

    def round(self, rtt_ms, acks=10):
        rtt = int(rtt_ms * MILLISECOND)
        self.ack(rtt=rtt, after=rtt, round_start=True)
        for _ in range(acks - 1):
            self.ack(rtt=rtt)

    @property
    def datagrams(self):
        return self.window / DATAGRAM

    def growth(self, rtt_ms):
        """Datagrams that the window grows by in a round."""
        before = self.datagrams
        self.round(rtt_ms)
        return self.datagrams - before


def in_conservative(name, **parameters):
    """With a baseline of 50 ms."""
    flow = SlowStart(name, **parameters)
    flow.round(40)
    flow.round(50)
    return flow


def test_it_is_the_default(name):
    assert (
        find(name).complete()["slow_start"]
        == find(name).numbers({"slow_start": "hystart++"})["slow_start"]
    )


def test_standard_slow_start_ends_with_loss_alone(name):
    flow = SlowStart(name, slow_start="standard")
    for rtt in (40, 40, 80, 160, 320, 640, 640, 640, 640):
        flow.round(rtt)
    assert flow.mode == Mode.slow_start
    assert flow.datagrams == 10 + 9 * 20


def test_4_2_without_a_rise_each_acknowledged_byte_adds_one_whatever_the_ack_covers(name):
    flow = SlowStart(name)
    flow.ack(100 * DATAGRAM, rtt=40 * MILLISECOND, round_start=True)  # L is infinite
    assert flow.datagrams == 110
    assert flow.growth(40) == 20


@pytest.mark.parametrize(
    "rtt, rise, conservative",
    [
        (10, 3.9, False),  # MIN_RTT_THRESH, 4 ms
        (10, 4, True),
        (80, 9.9, False),  # an eighth
        (80, 10, True),
        (400, 15.9, False),  # MAX_RTT_THRESH, 16 ms
        (400, 16, True),
    ],
)
def test_4_2_a_rise_of_an_eighth_within_4_and_16_ms_begins_conservative_slow_start(
    name, rtt, rise, conservative
):
    flow = SlowStart(name)
    flow.round(rtt)
    flow.round(rtt + rise)
    assert flow.growth(rtt + rise) == (5 if conservative else 20)


def test_4_2_a_round_is_judged_from_eight_samples_on(name):
    flow = SlowStart(name)
    flow.round(40)
    flow.round(80, acks=7)
    assert flow.datagrams == 10 + 20 + 14
    flow.ack(rtt=80 * MILLISECOND)
    flow.ack(rtt=80 * MILLISECOND)
    assert flow.datagrams == 44 + 2 + 0.5


def test_4_2_the_lowest_rtt_of_a_round_counts(name):
    flow = SlowStart(name)
    flow.round(40)
    flow.round(80, acks=6)
    for rtt in (41, 80, 80, 80, 80, 80):
        flow.ack(rtt=rtt * MILLISECOND)
    assert flow.datagrams == 10 + 20 + 24


def test_4_2_a_round_is_compared_with_the_one_before(name):
    flow = SlowStart(name)
    for rtt in (40, 43, 46, 49, 52):  # never more than an eighth in a round
        flow.round(rtt)
    assert flow.datagrams == 10 + 5 * 20


def test_4_2_conservative_slow_start_grows_by_a_quarter(name):
    flow = in_conservative(name)
    assert flow.growth(50) == 20 / 4


def test_4_2_it_ends_in_congestion_avoidance_after_five_rounds_the_first_in_part(name):
    flow = in_conservative(name)
    for _ in range(4):
        flow.round(50)
        assert flow.mode == Mode.slow_start
    flow.ack(rtt=50 * MILLISECOND, after=50 * MILLISECOND, round_start=True)
    assert flow.mode == Mode.congestion_avoidance


def test_4_2_a_lower_rtt_than_the_baseline_resumes_slow_start(name):
    flow = in_conservative(name)
    flow.round(50)
    flow.round(49)
    assert flow.growth(49) == 20
    flow.round(60)  # and HyStart++ with it
    assert flow.growth(60) == 20 / 4


@pytest.mark.parametrize("signal", ["loss", "ecn"])
def test_4_2_congestion_ends_it_at_once(name, signal):
    flow = in_conservative(name)
    getattr(flow, signal)()
    flow.ack(0, after=flow.rtt + 1)
    assert flow.mode == Mode.congestion_avoidance


def test_4_3_it_is_for_the_first_slow_start(name):
    flow = SlowStart(name)
    flow.ack(100 * DATAGRAM)
    flow.loss()
    flow.controller.on_persistent_congestion(flow.now)
    flow.now += SECOND
    flow.ack(0)
    flow.round(40)
    assert flow.growth(80) == 20


def test_it_spares_a_path_with_room_for_a_queue_losses_of_slow_start(name):
    path = Path(rate=2.5e6, base_rtt=50 * MILLISECOND, queue_packets=200)

    def lost(slow_start):
        controller = SlowStart(name, slow_start=slow_start).controller
        return AckRounds(controller, path).run(4 * SECOND).lost

    assert lost("hystart++") < 0.8 * lost("standard")
