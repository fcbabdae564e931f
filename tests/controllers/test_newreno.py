"""NewReno against RFC 9002 section 7 and appendix B."""

import pytest
from helpers.ack_rounds import DATAGRAM, MILLISECOND, SECOND, AckRounds, Driver, Path

from quicgym import _core

Mode = _core.ControllerMode
INITIAL_WINDOW = 10 * DATAGRAM


def make(**parameters):
    return Driver(_core.make_controller("newreno", parameters))


def after_loss(**parameters):
    """In congestion avoidance, the recovery period over, window half of 40 datagrams."""
    driver = make(**parameters)
    driver.ack(30 * DATAGRAM)
    driver.loss()
    driver.ack(0, after=driver.rtt + 1)
    assert driver.mode == Mode.congestion_avoidance
    return driver


def test_initial_window_is_ten_datagrams_but_at_most_14720_bytes():
    for size, window in ((1200, INITIAL_WINDOW), (1472, 14720), (9000, 18000)):
        assert _core.make_controller("newreno", {}, size).window_bytes == window


def test_loss_reduction_factor_and_pacing_gain_are_parameters():
    driver = make(loss_reduction_factor=0.8)
    driver.loss()
    assert driver.window == 0.8 * INITIAL_WINDOW
    driver.controller.set_parameters({"loss_reduction_factor": 0.5, "pacing_gain": 1.0})
    driver.loss(after=2 * driver.rtt)
    assert driver.window == 0.4 * INITIAL_WINDOW
    driver.ack(rtt=50 * MILLISECOND)
    assert driver.controller.pacing_rate == pytest.approx(driver.window / 0.05)


def test_congestion_avoidance_adds_one_datagram_for_each_window_acknowledged():
    driver = after_loss()
    for _ in range(5):
        window = driver.window
        for _ in range(window // DATAGRAM - 1):
            driver.ack(DATAGRAM)
        assert driver.window == window
        driver.ack(DATAGRAM)
        assert driver.window == window + DATAGRAM


def test_sawtooth_between_full_queue_and_half_of_it():
    path = Path(rate=1.25e6, base_rtt=40 * MILLISECOND, queue_packets=60)
    rounds = AckRounds(_core.make_controller("newreno"), path).run(30 * SECOND)
    steady = [row for row in rounds.rows if row.now > 10 * SECOND]
    full = path.bdp + 60 * DATAGRAM
    assert max(row.window for row in steady) == pytest.approx(full, rel=0.05)
    assert min(row.window for row in steady) == pytest.approx(full / 2, rel=0.06)
    assert rounds.throughput(10 * SECOND, 30 * SECOND) > 0.98 * path.rate


def test_persistent_congestion_begins_the_count_of_acknowledged_bytes_anew():
    driver = after_loss()
    driver.ack(19 * DATAGRAM)
    driver.controller.on_persistent_congestion(driver.now)
    driver.ack(18 * DATAGRAM, after=driver.rtt)
    assert (driver.window, driver.mode) == (20 * DATAGRAM, Mode.congestion_avoidance)
    driver.ack(19 * DATAGRAM)
    assert driver.window == 20 * DATAGRAM


def test_growth_per_ack_is_one_datagram_in_slow_start_and_one_in_a_windows_worth_of_acks_later():
    driver = make(growth_per_ack=1)
    driver.ack(5 * DATAGRAM)
    assert driver.window == 11 * DATAGRAM
    driver.loss()
    driver.ack(0, after=driver.rtt + 1)
    window = driver.window
    driver.ack(3 * DATAGRAM, after=1)
    assert driver.window == window + DATAGRAM * DATAGRAM // window


def test_reduction_per_ack_knows_no_recovery_period():
    driver = make(reduction_per_ack=1)
    driver.ack(70 * DATAGRAM)
    for halved in (40, 20, 10):
        driver.loss()
        assert driver.window == halved * DATAGRAM
    driver.ack(10 * DATAGRAM, after=1)
    assert driver.window > 10 * DATAGRAM  # and it grows again at once


def test_flight_size_halves_what_is_in_flight_with_the_lost():
    driver = make(flight_size=1)
    driver.ack(30 * DATAGRAM)
    driver.loss(in_flight=20 * DATAGRAM, lost=4 * DATAGRAM)
    assert driver.window == 12 * DATAGRAM
