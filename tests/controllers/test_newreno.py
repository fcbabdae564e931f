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
    assert make().window == INITIAL_WINDOW
    assert _core.make_controller("newreno", {}, 1472).window_bytes == 14720
    assert _core.make_controller("newreno", {}, 9000).window_bytes == 18000


def test_slow_start_grows_by_what_is_acknowledged():
    driver = make()
    driver.ack(5 * DATAGRAM)
    assert driver.window == INITIAL_WINDOW + 5 * DATAGRAM
    assert driver.mode == Mode.slow_start


def test_loss_halves_the_window():
    driver = make()
    driver.ack(10 * DATAGRAM)
    driver.loss()
    assert driver.window == INITIAL_WINDOW
    assert driver.mode == Mode.recovery


def test_loss_reduction_factor_is_a_parameter():
    driver = make(loss_reduction_factor=0.8)
    driver.loss()
    assert driver.window == 0.8 * INITIAL_WINDOW
    driver.controller.set_parameters({"loss_reduction_factor": 0.5})
    driver.loss(after=2 * driver.rtt)
    assert driver.window == 0.4 * INITIAL_WINDOW


def test_one_recovery_period_reacts_once():
    driver = make()
    driver.ack(30 * DATAGRAM)
    driver.loss()
    driver.loss(after=driver.rtt // 2)  # sent before the period began
    driver.loss(after=driver.rtt // 2)  # sent at the moment at which it began
    assert driver.window == 20 * DATAGRAM
    driver.loss(after=1)  # sent after
    assert driver.window == 10 * DATAGRAM


def test_no_growth_from_packets_sent_before_the_recovery_period():
    driver = make()
    driver.loss()
    window = driver.window
    driver.ack(after=driver.rtt)
    assert (driver.window, driver.mode) == (window, Mode.recovery)
    driver.ack(window, after=1)
    assert (driver.window, driver.mode) == (window + DATAGRAM, Mode.congestion_avoidance)


def test_congestion_avoidance_adds_one_datagram_for_each_window_acknowledged():
    driver = after_loss()
    for _ in range(5):
        window = driver.window
        for _ in range(window // DATAGRAM - 1):
            driver.ack(DATAGRAM)
        assert driver.window == window
        driver.ack(DATAGRAM)
        assert driver.window == window + DATAGRAM


@pytest.mark.parametrize("begin", [make, after_loss], ids=["slow start", "avoidance"])
def test_no_growth_while_the_application_limits(begin):
    driver = begin()
    window = driver.window
    driver.ack(3 * window, app_limited=True)
    assert driver.window == window


def test_persistent_congestion_falls_to_two_datagrams_and_returns_by_slow_start():
    driver = after_loss()
    threshold = driver.window
    driver.controller.on_persistent_congestion(driver.now)
    assert (driver.window, driver.mode) == (2 * DATAGRAM, Mode.slow_start)
    while driver.window < threshold:
        driver.ack(DATAGRAM)
    assert (driver.window, driver.mode) == (threshold, Mode.congestion_avoidance)


def test_ecn_marks_are_a_loss_event():
    driver = make()
    driver.ecn(0)
    assert driver.window == INITIAL_WINDOW
    driver.ecn(3)
    driver.loss()  # of the same period
    assert driver.window == INITIAL_WINDOW // 2


def test_window_never_falls_below_two_datagrams():
    driver = make()
    for _ in range(10):
        driver.loss(after=2 * driver.rtt)
    assert driver.window == 2 * DATAGRAM


def test_pacing_rate_is_gain_times_window_over_smoothed_rtt():
    driver = make()
    assert driver.controller.pacing_rate == pytest.approx(2 * INITIAL_WINDOW / 0.333)
    driver.ack(rtt=50 * MILLISECOND)
    assert driver.controller.pacing_rate == pytest.approx(2 * driver.window / 0.05)
    driver.loss()
    assert driver.controller.pacing_rate == pytest.approx(1.25 * driver.window / 0.05)
    driver.controller.set_parameters({"pacing_gain": 1.0})
    assert driver.controller.pacing_rate == pytest.approx(driver.window / 0.05)


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
