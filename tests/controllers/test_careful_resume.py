"""Careful Resume, RFC 9959, around CUBIC; each test is of one phase."""

import pytest
from helpers.ack_rounds import DATAGRAM, MILLISECOND, SECOND, AckRounds, Driver, Path

from quicgym import _core

Mode = _core.ControllerMode
RTT = 100 * MILLISECOND


def make(**parameters):
    return _core.make_controller("cubic-resume", parameters)


def begun(saved=200, acked=10, rtt=RTT, **parameters):
    """The flow after its first `acked` packets are acknowledged."""
    driver = Driver(make(saved_window_packets=saved, **parameters), rtt=rtt)
    driver.ack(0, round_start=True)
    driver.ack(acked * DATAGRAM, after=RTT, in_flight=20 * DATAGRAM)
    return driver


def jumped():
    driver = begun()
    assert driver.window == 100 * DATAGRAM
    return driver


def validating():
    driver = jumped()
    driver.controller.on_packet_sent(driver.now, DATAGRAM, 100 * DATAGRAM)
    return driver


def test_the_jump_is_half_of_the_saved_window_after_the_initial_data():
    assert begun(acked=9).window < 20 * DATAGRAM
    assert jumped().window == 100 * DATAGRAM


@pytest.mark.parametrize("saved_rtt_ms, jumps", [(0, True), (190, True), (200, False), (9, False)])
def test_another_rtt_is_another_path(saved_rtt_ms, jumps):
    assert (begun(saved_rtt_ms=saved_rtt_ms).window == 100 * DATAGRAM) == jumps


def test_congestion_before_the_jump_ends_it():
    driver = Driver(make(saved_window_packets=200), rtt=RTT)
    driver.ack(0)
    driver.loss()
    driver.ack(10 * DATAGRAM, after=2 * RTT)
    assert driver.window < 20 * DATAGRAM


def test_without_a_saved_window_it_is_cubic():
    assert begun(saved=0).window == 20 * DATAGRAM


def test_the_jump_is_paced_over_a_round_trip_and_the_window_stands():
    driver = jumped()
    assert driver.controller.pacing_rate == pytest.approx(100 * DATAGRAM / 0.1)
    driver.ack(after=MILLISECOND, sent_time=driver.now - RTT, in_flight=50 * DATAGRAM)
    assert driver.window == 100 * DATAGRAM


def test_what_was_not_sent_of_the_jump_is_taken_back():
    driver = jumped()
    driver.ack(after=RTT + 1, sent_time=driver.now + 1, in_flight=60 * DATAGRAM)
    assert driver.window == 60 * DATAGRAM  # flight_size
    few = jumped()
    few.ack(after=RTT + 1, sent_time=few.now + 1, in_flight=15 * DATAGRAM)
    assert few.window == 22 * DATAGRAM  # PipeSize: 20 in flight at the jump, and two since


def test_validating_grows_as_slow_start_until_the_jump_is_acknowledged():
    driver = validating()
    driver.ack(after=RTT, sent_time=driver.now - 1)
    assert driver.window == 102 * DATAGRAM
    driver.ack(after=1, sent_time=driver.now)
    driver.loss()
    assert driver.window == pytest.approx(0.7 * 104 * DATAGRAM)  # CUBIC's own reaction


@pytest.mark.parametrize("signal", [Driver.loss, Driver.ecn])
def test_congestion_in_validating_leaves_half_of_the_pipe_size(signal):
    driver = validating()
    driver.ack(10 * DATAGRAM, after=RTT, sent_time=driver.now - 1)
    signal(driver)
    assert driver.window == 15 * DATAGRAM  # (20 + 10) / 2
    driver.ack(10 * DATAGRAM, after=1, sent_time=driver.now - 2)
    driver.loss()  # of the same jump
    assert driver.window == 15 * DATAGRAM
    driver.ack(after=RTT, sent_time=driver.now + 1)
    driver.loss(after=RTT, sent_time=driver.now)
    assert driver.window == pytest.approx(0.7 * 15 * DATAGRAM, rel=0.05)


def test_after_a_retreat_slow_start_goes_on_to_beta_of_the_pipe_size():
    driver = validating()
    driver.ack(30 * DATAGRAM, after=RTT, sent_time=driver.now - 1)
    driver.loss()
    assert driver.window == 25 * DATAGRAM  # (20 + 30) / 2
    driver.ack(10 * DATAGRAM, after=RTT, sent_time=driver.now)
    assert (driver.window, driver.mode) == (25 * DATAGRAM, Mode.slow_start)
    driver.ack(20 * DATAGRAM, after=RTT)
    assert driver.window == 45 * DATAGRAM  # above 0.7 * 60
    assert driver.mode == Mode.congestion_avoidance


def test_it_is_at_the_bandwidth_earlier_and_retreats_where_the_path_is_smaller():
    path = Path(rate=5e6, base_rtt=200 * MILLISECOND, queue_packets=800)

    def run(saved, over=path):
        return AckRounds(make(saved_window_packets=saved), over).run(4 * SECOND)

    known, unknown = run(path.bdp / DATAGRAM), run(0)
    assert known.delivered > 1.1 * unknown.delivered and known.lost <= unknown.lost
    small = Path(rate=2.5e5, base_rtt=200 * MILLISECOND, queue_packets=40)
    rounds = run(path.bdp / DATAGRAM, small)
    rounds.run(12 * SECOND)
    assert rounds.throughput(4 * SECOND, 12 * SECOND) > 0.9 * small.rate
    assert rounds.lost < 500 * DATAGRAM
