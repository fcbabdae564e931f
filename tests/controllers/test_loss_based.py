"""What every controller that cuts its window on a loss has in common (RFC 9002 section 7)."""

import pytest
from helpers.ack_rounds import DATAGRAM, MILLISECOND, Driver

from quicgym import _core

Mode = _core.ControllerMode
INITIAL_WINDOW = 10 * DATAGRAM
LEFT_BY_LOSS = {
    **{"newreno": 0.5, "newreno+": 0.5, "cubic": 0.7, "cubic+": 0.7, "vegas": 0.5, "prague": 0.5},
}
"""The share of the window that is left after a loss, and after the first mark."""
pytestmark = pytest.mark.parametrize("name", LEFT_BY_LOSS)


def grown(name, datagrams=100):
    """A driver in slow start with this window."""
    parameters = {"period_ms": 60_000} if name.endswith("+") else {}  # its own rule stays away
    driver = Driver(_core.make_controller(name, parameters))
    driver.ack(0, round_start=True)  # the handshake
    driver.ack((datagrams - 10) * DATAGRAM)
    assert (driver.window, driver.mode) == (datagrams * DATAGRAM, Mode.slow_start)
    return driver


def avoiding(name):
    """A driver in congestion avoidance, after a loss."""
    driver = grown(name)
    driver.loss()
    driver.ack(0, after=2 * driver.rtt)
    assert driver.mode == Mode.congestion_avoidance
    return driver


def test_one_recovery_period_reacts_once(name):
    driver = grown(name)
    left = LEFT_BY_LOSS[name] * driver.window
    driver.loss()
    assert (driver.window, driver.mode) == (pytest.approx(left), Mode.recovery)
    driver.loss(after=driver.rtt // 2)  # sent before the period began
    driver.loss(after=driver.rtt // 2)  # sent at the moment at which it began
    assert driver.window == pytest.approx(left)
    driver.loss(after=1)  # sent after
    assert driver.window == pytest.approx(LEFT_BY_LOSS[name] * left)


def test_a_mark_is_a_loss_event(name):
    driver = grown(name)
    driver.ecn(0)
    assert driver.window == 100 * DATAGRAM
    driver.ecn(3)
    driver.loss()  # of the same period
    assert driver.window == pytest.approx(LEFT_BY_LOSS[name] * 100 * DATAGRAM)


def test_no_growth_from_packets_sent_before_the_recovery_period(name):
    driver = grown(name)
    driver.loss()
    window = driver.window
    driver.ack(after=driver.rtt, round_start=True)
    assert (driver.window, driver.mode) == (window, Mode.recovery)
    driver.ack(after=1)
    assert driver.mode == Mode.congestion_avoidance


@pytest.mark.parametrize("begin", [grown, avoiding])
def test_no_growth_while_the_application_limits(name, begin):
    driver = begin(name)
    window = driver.window
    for _ in range(100):
        driver.ack(3 * window, after=driver.rtt, app_limited=True, round_start=True)
    assert driver.window == window


def test_persistent_congestion_leaves_two_datagrams_and_slow_start_up_to_the_threshold(name):
    driver = avoiding(name)
    driver.controller.on_persistent_congestion(driver.now)
    assert (driver.window, driver.mode) == (2 * DATAGRAM, Mode.slow_start)
    for _ in range(12):
        driver.ack(driver.window, after=driver.rtt, min_rtt=driver.rtt, round_start=True)
    assert driver.mode == Mode.congestion_avoidance


def test_the_window_never_falls_below_two_datagrams(name):
    driver = grown(name)
    for _ in range(20):
        driver.loss(after=2 * driver.rtt)
    assert driver.window == 2 * DATAGRAM


def test_the_pacing_rate_is_gain_times_window_over_smoothed_rtt(name):
    driver = Driver(_core.make_controller(name))
    assert driver.controller.pacing_rate == pytest.approx(2 * INITIAL_WINDOW / 0.333)
    driver.ack(rtt=50 * MILLISECOND)
    assert driver.controller.pacing_rate == pytest.approx(2 * driver.window / 0.05)
    driver.loss()
    gain = 1 if name == "prague" else 1.25
    assert driver.controller.pacing_rate == pytest.approx(gain * driver.window / 0.05, rel=1e-3)
