"""`guided`: what ends its slow start, and that its window is somebody else's from then on."""

import pytest
from helpers.ack_rounds import DATAGRAM, MILLISECOND, SECOND, AckRounds, Driver, Path

from quicgym import _core

Mode = _core.ControllerMode
INITIAL_WINDOW = 10 * DATAGRAM
RTT = 100 * MILLISECOND


def make(**parameters):
    return Driver(_core.make_controller("guided", parameters), RTT)


def play_round(driver, rate, acked=10 * DATAGRAM, lost=0, **arguments):
    """One round in one ACK; the next call's judges it."""
    driver.ack(acked, after=RTT, rate=rate, lost=lost, round_start=True, **arguments)


def judge(driver, rate=1e9):
    """Begins a round that is not full itself."""
    play_round(driver, rate)
    return driver.mode


def grown(rounds=3):
    """A driver in slow start whose delivery rate has doubled in every round, up to 1 MB/s."""
    driver = make()
    for age in reversed(range(rounds)):
        play_round(driver, 1e6 / 2**age)
    assert driver.mode == Mode.slow_start
    return driver


def end_by_rtt(driver):
    play_round(driver, 1e9, rtt=RTT * 2, min_rtt=RTT)
    play_round(driver, 1e9)


def end_by_loss(driver):
    play_round(driver, 1e9, lost=driver.window // 10 + 1)


def end_by_rate(driver):
    for _ in range(5):
        play_round(driver, 1e6)


def end_by_persistent_congestion(driver):
    driver.controller.on_persistent_congestion(driver.now)


ENDS = (end_by_rtt, end_by_loss, end_by_rate, Driver.ecn, end_by_persistent_congestion)


def test_slow_start_grows_by_what_is_acknowledged_unless_the_application_limits():
    driver = make()
    for acked, lost, limited, window in (
        (0, 0, False, INITIAL_WINDOW),
        (5 * DATAGRAM, 0, False, INITIAL_WINDOW + 5 * DATAGRAM),
        (DATAGRAM, DATAGRAM, False, INITIAL_WINDOW + 6 * DATAGRAM),
        (30 * DATAGRAM, 0, True, INITIAL_WINDOW + 6 * DATAGRAM),
    ):
        driver.ack(acked, lost=lost, app_limited=limited)
        assert (driver.window, driver.mode) == (window, Mode.slow_start)


def test_a_tenth_of_the_window_lost_in_a_round_does_not_end_slow_start_and_more_does():
    driver = grown()
    for doubling in range(1, 5):
        driver.loss()
        window = driver.window
        play_round(driver, 1e6 * 2**doubling, lost=window // 10)
        assert driver.mode == Mode.slow_start
        assert driver.window == window + 10 * DATAGRAM
    window = driver.window
    play_round(driver, 32e6, lost=window // 10 + 1)
    assert (driver.mode, driver.window) == (Mode.congestion_avoidance, window)


def test_losses_of_a_round_count_together_and_with_the_next_they_do_not():
    driver = grown()
    window = driver.window
    for rate in (2e6, 4e6):
        play_round(driver, rate, lost=window // 10)
    driver.ack(0, lost=DATAGRAM // 2)
    assert driver.mode == Mode.slow_start
    driver.ack(0, lost=DATAGRAM)
    assert driver.mode == Mode.congestion_avoidance


@pytest.mark.parametrize(
    ("rtts", "mode"),
    [
        ((151, 152), Mode.congestion_avoidance),
        ((151, 150), Mode.slow_start),
        ((150, 151), Mode.slow_start),
        ((300, 100, 300), Mode.slow_start),
        ((0, 151), Mode.congestion_avoidance),  # 0: an ACK without a sample
    ],
)
def test_a_round_ends_slow_start_if_all_its_rtts_are_long(rtts, mode):
    driver = grown()
    first, *others = (rtt * MILLISECOND for rtt in rtts)
    play_round(driver, 2e6, rtt=first, min_rtt=RTT)
    for rtt in others:
        driver.ack(rtt=rtt, min_rtt=RTT)
    assert driver.mode == Mode.slow_start
    assert judge(driver) == mode


def test_eight_long_rtts_in_a_row_end_slow_start_within_a_round():
    driver = grown()
    for rtt in (*[2 * RTT] * 7, RTT, *[2 * RTT] * 5, 0, *[2 * RTT] * 2):  # 0: no sample
        driver.ack(rtt=rtt, min_rtt=RTT)
    assert driver.mode == Mode.slow_start
    window = driver.window
    driver.ack(rtt=2 * RTT, min_rtt=RTT)
    assert (driver.mode, driver.window) == (Mode.congestion_avoidance, window)


@pytest.mark.parametrize(
    ("rate", "window"),
    [
        (1e5, 12_500),  # 1.25 · 100 kB/s · 100 ms
        (1e3, 2 * DATAGRAM),
        (1e9, INITIAL_WINDOW + 30 * DATAGRAM),  # never more than it was
    ],
)
def test_on_a_full_path_the_window_becomes_a_quarter_more_than_the_bdp(rate, window):
    driver = make()
    for age in (2, 1, 0):
        play_round(driver, rate / 2**age)
    for _ in range(8):
        assert driver.mode == Mode.slow_start
        driver.ack(0, rtt=2 * RTT, min_rtt=RTT)
    assert (driver.mode, driver.window) == (Mode.congestion_avoidance, window)


def assert_ended_by_three_rounds_at(driver, rate):
    for _ in range(3):
        assert driver.mode == Mode.slow_start
        play_round(driver, rate)
    assert driver.mode == Mode.slow_start
    assert judge(driver) == Mode.congestion_avoidance


def test_the_third_round_without_growth_of_a_quarter_ends_slow_start():
    driver = grown()
    for rate in (1.1e6, 1.2e6, 1.25e6):  # the third has grown by a quarter since the last growth
        play_round(driver, rate)
    assert_ended_by_three_rounds_at(driver, 1.5e6)


def test_rounds_that_the_application_limits_say_nothing_of_the_path():
    driver = grown()
    for _ in range(10):
        play_round(driver, 1e6)
        driver.ack(rate=1e6, rate_limited=True)
        driver.ack(rate=1e6)
    assert_ended_by_three_rounds_at(driver, 1e6)


def test_the_highest_rate_of_a_round_counts():
    driver = grown()
    for doubling in range(1, 6):
        play_round(driver, 1.0)
        driver.ack(rate=1e6 * 2**doubling)
        driver.ack(rate=1.0)
    assert judge(driver) == Mode.slow_start


@pytest.mark.parametrize("end", [Driver.ecn, end_by_persistent_congestion])
def test_ecn_ce_and_persistent_congestion_end_slow_start_where_the_window_is(end):
    driver = grown()
    window = driver.window
    driver.ecn(0)
    assert driver.mode == Mode.slow_start
    end(driver)
    assert (driver.mode, driver.window) == (Mode.congestion_avoidance, window)


def test_setting_the_window_ends_slow_start():
    driver = grown()
    for nothing in ({}, {"window_bytes": 0}):
        driver.controller.set_parameters(nothing)
        assert driver.mode == Mode.slow_start
    driver.controller.set_parameters({"window_bytes": 50_000})
    for each in (driver, make(window_bytes=50_000)):
        assert (each.mode, each.window) == (Mode.congestion_avoidance, 50_000)


@pytest.mark.parametrize("end", ENDS)
def test_after_slow_start_nothing_but_set_parameters_moves_the_window(end):
    driver = grown()
    end(driver)
    assert driver.mode == Mode.congestion_avoidance

    def whatever_happens():
        play_round(driver, 1e12)
        for finish in ENDS:
            driver.ack(100 * DATAGRAM)
            driver.loss(20 * DATAGRAM, after=2 * RTT)
            finish(driver)
        driver.controller.on_packet_sent(driver.now, DATAGRAM, DATAGRAM)
        driver.ack(after=60 * SECOND, app_limited=True, round_start=True)
        return driver.window

    window = driver.window
    assert whatever_happens() == window
    driver.controller.set_parameters({"window_bytes": 123_456})
    assert whatever_happens() == 123_456
    driver.controller.set_parameters({"window_bytes": 0})
    assert whatever_happens() == 123_456
    assert driver.mode == Mode.congestion_avoidance


@pytest.mark.parametrize("end", ENDS)
def test_pacing_rate_is_gain_times_window_over_smoothed_rtt(end):
    driver = make()

    def gain(rtt_s):
        return pytest.approx(driver.controller.pacing_rate * rtt_s / driver.window)

    assert gain(0.333) == 2
    driver.ack(rtt=50 * MILLISECOND)
    assert gain(0.05) == 2
    driver.ack()
    assert gain(0.1) == 2
    end(driver)
    assert gain(0.1) == 1.25
    driver.controller.set_parameters({"window_bytes": 30_000})
    assert (driver.window, gain(0.1)) == (30_000, 1.25)
    driver.ack(rtt=50 * MILLISECOND)
    assert gain(0.05) == 1.25


def test_an_application_that_writes_little_does_not_end_slow_start():
    path = Path(rate=1.25e6, base_rtt=40 * MILLISECOND)
    controller = _core.make_controller("guided")
    rounds = AckRounds(controller, path, application_rate=path.rate / 20).run(5 * SECOND)
    assert rounds.rows[-1].round > 50
    assert rounds.rows[-1].snapshot.mode == Mode.slow_start


@pytest.mark.parametrize("loss_period", [0, 50])
def test_slow_start_fills_a_path_despite_random_losses(loss_period):
    path = Path(rate=1.25e6, base_rtt=40 * MILLISECOND)
    lose = lambda number: loss_period > 0 and number % loss_period == loss_period - 1  # noqa: E731

    def run(name):
        rounds = AckRounds(_core.make_controller(name), path, lose=lose).run(5 * SECOND)
        return next(row for row in rounds.rows if row.snapshot.mode != Mode.slow_start), rounds

    end, rounds = run("guided")
    assert path.bdp < end.window < 1.5 * path.bdp
    assert {row.window for row in rounds.rows if row.now > end.now} == {end.window}
    assert rounds.throughput(SECOND, 5 * SECOND) > 0.95 * path.rate
    if loss_period:  # which stop others long before
        assert run("newreno")[0].window < path.bdp
