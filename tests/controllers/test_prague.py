"""Prague, rule by rule: draft-briscoe-iccrg-prague-congestion-control-04, section 2."""

from itertools import pairwise

import pytest
from helpers.ack_rounds import DATAGRAM, MILLISECOND, SECOND, AckRounds, Driver, Path

from quicgym import _core

Mode = _core.ControllerMode
RTT = 100 * MILLISECOND


def make(rtt=RTT, **parameters):
    driver = Driver(_core.make_controller("prague", parameters), rtt)
    driver.ack(0)  # the handshake
    return driver


def packets(driver):
    return driver.window / DATAGRAM


def one_round(driver, *, acked=100, marked=0, after=None, **arguments):
    """A round trip in which so many packets are acknowledged, and so many of them are marked."""
    driver.now += driver.rtt if after is None else after
    if marked:
        driver.ecn(marked)
    driver.ack(acked * DATAGRAM, round_start=True, **arguments)


def in_avoidance(window=100, **parameters):
    """In congestion avoidance with this window and alpha = 0, long after the last reduction."""
    driver = make(**parameters)
    driver.ack((window * 2 - 10) * DATAGRAM)
    driver.ecn()  # the first mark: alpha is 1, so that the window is halved
    assert (driver.mode, packets(driver)) == (Mode.congestion_avoidance, window)
    measure(driver, 0)
    return driver


def measure(driver, share):
    """Makes alpha this share, by a round with that share of marks and a gain of 1."""
    gain = driver.controller.parameters["alpha_gain"]
    driver.controller.set_parameters({"alpha_gain": 1})
    driver.ack(0, after=2 * driver.rtt, app_limited=True, round_start=True)
    one_round(
        driver, acked=1000, marked=round(1000 * share), app_limited=True, after=2 * driver.rtt
    )
    driver.controller.set_parameters({"alpha_gain": gain})


def reduction(driver):
    """What the next mark leaves of the window; no ACK follows."""
    before = driver.window
    driver.ecn()
    return driver.window / before


def test_slow_start_doubles_the_window_and_the_first_mark_halves_it():
    driver = make()
    windows = []
    for _ in range(3):
        one_round(driver, acked=driver.window // DATAGRAM)
        windows.append(packets(driver))
    assert windows == [20, 40, 80]
    assert driver.mode == Mode.slow_start
    driver.ecn(after=RTT)
    assert (packets(driver), driver.mode) == (40, Mode.congestion_avoidance)


@pytest.mark.parametrize("gain", [1 / 16, 0.5])
def test_alpha_is_an_average_over_rounds_of_the_share_of_marked_packets(gain):
    driver = in_avoidance(alpha_gain=gain)
    measure(driver, 0.8)
    for _ in range(3):
        one_round(driver, acked=100, app_limited=True, after=2 * RTT)
    driver.now += 2 * RTT
    assert 2 * (1 - reduction(driver)) == pytest.approx(0.8 * (1 - gain) ** 3, rel=0.01)


@pytest.mark.parametrize("marked", [0, 10, 50, 100])
def test_alpha_is_1_until_the_first_mark_and_approaches_the_share_of_marked_packets(marked):
    driver = make()
    driver.ack(190 * DATAGRAM)
    for _ in range(120):
        one_round(driver, acked=100, marked=marked, after=2 * RTT, app_limited=True)
    # Windows fall to the minimum; with a large one the next cut shows alpha.
    driver.ack(1000 * DATAGRAM * 1000)
    driver.now += 2 * RTT
    assert 2 * (1 - reduction(driver)) == pytest.approx(marked / 100 or 1, rel=0.05)


def test_a_mark_cuts_by_half_of_alpha_and_only_once_per_round_trip():
    driver = make()
    driver.ack(190 * DATAGRAM)
    driver.ecn()
    assert packets(driver) == 100
    driver.ecn(after=RTT // 2)
    driver.ecn(after=RTT // 4)
    assert packets(driver) == 100
    # Of a packet that was sent after the reduction, a round trip later.
    driver.ecn(after=RTT, sent_time=driver.now + RTT // 2)
    assert packets(driver) == pytest.approx(50)


def test_only_unmarked_packets_add_to_the_window_one_packet_per_window_of_them():
    driver = in_avoidance(100)
    one_round(driver, acked=100)
    assert packets(driver) == pytest.approx(101, abs=0.01)
    before = packets(driver)
    driver.ecn(40, after=RTT // 100)
    driver.ack(100 * DATAGRAM)
    assert packets(driver) - before == pytest.approx(60 / before, abs=0.002)
    driver = make()  # it grows while it is reduced, too
    driver.ack(190 * DATAGRAM)
    driver.ecn()
    driver.ack(51 * DATAGRAM)  # one of them is the marked one
    assert packets(driver) == pytest.approx(100.5, abs=0.001)


# With an RTT of 5 ms, a fifth of the virtual one, a 25th of a packet per round trip.
@pytest.mark.parametrize(
    "rtt_ms, arguments, growth",
    [
        (5, {"transition_rounds": 0}, 1 / 25),
        (5, {}, 1),
        (5, {"transition_rounds": 0, "virtual_rtt_ms": 0}, 1),
        (5, {"transition_rounds": 0, "virtual_rtt_ms": 10}, 1 / 4),
        (100, {"transition_rounds": 0}, 1),
    ],
)
def test_short_round_trips_grow_as_with_the_virtual_rtt_after_the_transition(
    rtt_ms, arguments, growth
):
    driver = make(rtt_ms * MILLISECOND, **arguments)
    driver.ack(190 * DATAGRAM)
    driver.ecn()
    driver.ack(101 * DATAGRAM)  # one of them is the marked one
    assert packets(driver) - 100 == pytest.approx(growth, abs=0.01 * growth)


def test_the_transition_comes_after_500_round_trips():
    driver = make(5 * MILLISECOND)
    driver.ack(190 * DATAGRAM)
    driver.ecn()
    for rounds, growth in [(490, 1), (20, 1 / 25)]:
        for _ in range(rounds):
            one_round(driver, acked=0)
        before = packets(driver)
        driver.ack(100 * DATAGRAM)
        assert packets(driver) - before == pytest.approx(growth, rel=0.02)


def test_marks_cut_once_per_virtual_rtt_on_short_round_trips():
    driver = make(5 * MILLISECOND, transition_rounds=0)
    driver.ack(10_000 * DATAGRAM)
    cuts = []
    for _ in range(30):
        before = driver.window
        driver.ecn(after=5 * MILLISECOND)
        if driver.window < before:
            cuts.append(driver.now)
    assert [after - before for before, after in pairwise(cuts)] == [25 * MILLISECOND] * 5


def test_a_loss_within_the_round_trip_of_a_mark_halves_both_taken_together():
    driver = in_avoidance(100)
    measure(driver, 0.5)
    driver.now += 2 * RTT
    assert reduction(driver) == pytest.approx(0.75, abs=0.01)
    driver.loss()
    assert packets(driver) == 50
    driver.ecn()  # of packets that were sent before the loss was noticed
    assert packets(driver) == 50


class MarkingQueue(AckRounds):
    """The bottleneck marks what waits for longer than a threshold, as an L4S queue does."""

    def __init__(self, controller, path, threshold):
        super().__init__(controller, path)
        self.threshold = threshold
        self.marks = 0

    def _ack(self):
        acked = [packet for packet in list(self._arriving)[:2] if packet.arrival <= self.now]
        marked = sum(
            packet.arrival - packet.sent_time - self.path.base_rtt > self.threshold
            for packet in acked
        )
        if marked:
            self.marks += marked
            event = _core.EcnEvent()
            event.now = self.now
            event.largest_acked_sent_time = acked[-1].sent_time
            event.newly_marked_packets = marked
            event.in_flight_bytes = self.in_flight
            self.controller.on_ecn(event)
        super()._ack()


def test_a_lone_flow_fills_the_path_with_a_queue_around_the_marking_threshold():
    path = Path(rate=5e6, base_rtt=20 * MILLISECOND)
    rounds = MarkingQueue(_core.make_controller("prague"), path, MILLISECOND).run(20 * SECOND)
    steady = [row.rtt - path.base_rtt for row in rounds.rows if row.now > 5 * SECOND]
    assert rounds.marks > 100
    assert sum(steady) / len(steady) < 2 * MILLISECOND
    assert rounds.throughput(5 * SECOND, 20 * SECOND) > 0.95 * path.rate
    assert rounds.lost == 0
