"""The delayed window update, row by row: cubic+ and newreno+."""

import pytest
from helpers.ack_rounds import DATAGRAM, MILLISECOND, SECOND, AckRounds, Driver, Path

from quicgym import _core
from quicgym.controllers import find

Mode = _core.ControllerMode
RTT = 20 * MILLISECOND
PERIOD = 100 * MILLISECOND
STANDARD = find("cubic").numbers({"slow_start": "standard"})  # as in the paper's experiments
both = pytest.mark.parametrize("name", ["newreno+", "cubic+"])


def make(name="newreno+", **parameters):
    return Driver(_core.make_controller(name, parameters), RTT)


def ack(driver, rtt=RTT, **arguments):
    arguments.setdefault("min_rtt", RTT)
    driver.ack(rtt=rtt, **arguments)


def period(driver, rtt=RTT, uncongested=0, samples=10):
    """A period of ACKs with this RTT, `uncongested` of them with the minimum; ends with an ACK."""
    for number in range(1, samples + 1):
        ack(driver, RTT if number <= uncongested else rtt, after=PERIOD // samples)


def grows(driver, after=0):
    """Whether an ACK of a whole window makes it grow; without an RTT it counts in no period."""
    before = driver.window
    ack(driver, 0, acked=before, after=after)
    return driver.window > before


def settled(name="newreno+", high=100, **parameters):
    """Slow start, with a maximum RTT of `high` times the minimum behind it, and a calm period."""
    driver = make(name, **parameters)
    ack(driver, high * RTT)
    period(driver)
    period(driver)
    assert grows(driver)
    return driver


def congested(name="newreno+", uncongested=0, **parameters):
    """The period's end finds congestion; the mean is below the middle of the RTT's range."""
    driver = settled(name, **parameters)
    before = driver.window
    period(driver, 3 * RTT, uncongested)
    return driver, before


def test_the_published_parameters_are_the_defaults():
    parameters = _core.make_controller("cubic+").parameters
    published = {"period_ms": [100], "jitter_threshold_ms": [30], "theta": [0.9]}
    assert published.items() <= parameters.items()
    assert parameters["utilisation_threshold"] == [0.99]


@both
def test_the_parameters_are_the_underlying_controllers_and_its_own(name):
    parameters = _core.make_controller(name).parameters
    underlying = _core.make_controller(name[:-1]).parameters
    assert underlying.items() <= parameters.items()
    assert len(parameters) == len(underlying) + 8
    made = _core.make_controller(name, {"pacing_gain": 2, "theta": 0.8})
    assert made.parameters == parameters | {"pacing_gain": [2], "theta": [0.8]}


@both
def test_a_lone_flow_keeps_the_queue_short_and_the_path_full(name):
    # The paper's Scenario I with its large buffer.
    path = Path(rate=250e3, base_rtt=RTT, queue_packets=333)
    rounds, plain = (
        AckRounds(_core.make_controller(used, STANDARD), path).run(60 * SECOND)
        for used in (name, name[:-1])
    )
    assert rounds.throughput(5 * SECOND, 60 * SECOND) > 0.99 * path.rate
    assert rounds.lost == 0 < plain.lost

    def mean_rtt(run):
        late = [row.rtt for row in run.rows if row.now > 5 * SECOND]
        return sum(late) / len(late)

    assert mean_rtt(rounds) < 0.15 * mean_rtt(plain)


# Row 1: U > 0.99 and Jitter > 0.


@both
def test_row_1_holds_the_window(name):
    driver = settled(name)
    period(driver, 3 * RTT, uncongested=1, samples=200)  # U = 0.995: no cut
    before = driver.window
    for _ in range(3):
        assert not grows(driver)
    assert driver.window == before


def test_row_1_needs_a_rising_mean():
    driver, _ = congested()
    assert grows(driver, after=RTT)  # the timer has expired
    period(driver, 3 * RTT)  # U = 1, Jitter = 0
    assert grows(driver)


def test_row_1_needs_u_above_the_threshold_which_is_a_parameter():
    driver, before = congested(uncongested=1)
    assert driver.window > before and grows(driver)
    driver, _ = congested(uncongested=1, utilisation_threshold=0.8)
    assert not grows(driver)


@pytest.mark.parametrize("seed", range(5))
def test_the_timer_is_the_minimum_rtt_times_a_uniform_number(seed):
    driver = settled()
    driver.random = _core.Random(seed)
    share = 1 - _core.Random(seed).uniform()
    period(driver, 3 * RTT)
    assert not grows(driver, after=int(share * RTT) - 1)
    assert grows(driver, after=1)


# Row 2: U = 1 and Jitter > 0.


@both
def test_a_cut_ends_slow_start_unless_the_parameter_says_otherwise_and_begins_none(name):
    for ends, mode in ((1, Mode.congestion_avoidance), (0, Mode.slow_start)):
        assert congested(name, theta_ends_slow_start=ends)[0].mode == mode
    driver = settled(name)
    driver.loss()
    for _ in range(3):
        period(driver)
    assert driver.mode == Mode.congestion_avoidance
    window = driver.window
    period(driver, 3 * RTT)
    assert driver.window < window
    for _ in range(2):
        assert driver.mode == Mode.congestion_avoidance
        ack(driver, after=RTT + 1)


@pytest.mark.parametrize("theta", [0.9, 0.5])
@both
def test_row_2_cuts_the_window_by_theta_too(name, theta):
    driver = settled(name, theta=theta)
    for _ in range(9):
        ack(driver, 3 * RTT, after=PERIOD // 10)
    expected = driver.window * theta
    ack(driver, 3 * RTT, after=PERIOD // 10)
    assert driver.window == pytest.approx(expected, abs=1)
    assert not grows(driver)


def test_cubic_grows_slowly_after_a_cut_and_does_not_return_to_its_old_curve():
    driver = settled("cubic+")
    driver.loss()
    for _ in range(50):
        period(driver)
    period(driver, 3 * RTT)
    cut = driver.window
    ack(driver, after=RTT + 1)
    for _ in range(4):
        ack(driver, after=RTT)
    assert cut <= driver.window < cut * 1.05


# Row 3: U <= 0.99 and |Jitter| < threshold.


@pytest.mark.parametrize("change, released", [(0, True), (4, True), (6, False), (-6, False)])
def test_row_3_releases_the_window_before_the_timer_expires(change, released):
    # An RTT of 100 periods, so that the timer runs on.
    rtt = 10 * SECOND
    driver = make(jitter_threshold_ms=5_000)
    driver.random = next(
        _core.Random(seed) for seed in range(99) if _core.Random(seed).uniform() < 0.5
    )
    for first, second in ((100, 100), (1, 1), (3, 3)):
        ack(driver, first * rtt, min_rtt=rtt, after=1)
        ack(driver, second * rtt, min_rtt=rtt, after=PERIOD)
    assert not grows(driver)
    ack(driver, rtt, min_rtt=rtt, after=1)
    ack(driver, 5 * rtt + 2 * change * SECOND, min_rtt=rtt, after=PERIOD)  # U = 0.5
    assert grows(driver) == released


# The second flag.


@pytest.mark.parametrize("mean, held", [(2.8, False), (3.2, True), (3.7, True)])
def test_the_second_flag_holds_the_window_above_the_middle_of_the_range(mean, held):
    driver = settled(high=5)  # the middle is 3; U is too low for the first flag
    period(driver, round((mean * 10 - 1) / 9 * RTT), uncongested=1)
    for _ in range(3):
        assert grows(driver, after=RTT // 2) != held  # no timer ends it
    period(driver)
    assert grows(driver)


def test_a_mean_that_equals_the_minimum_is_low_however_small_the_range():
    driver = make(min_rtt_tolerance=0.01, min_rtt_tolerance_packets=0)
    ack(driver)
    for _ in range(5):
        period(driver, RTT + RTT // 200)  # the maximum, and within 1% of the minimum
        assert grows(driver)


# Loss and what follows.


@pytest.mark.parametrize("signal", [Driver.loss, Driver.ecn])
@both
def test_loss_and_marks_are_the_underlying_controllers_and_release_the_window(name, signal):
    driver, _ = congested(name)
    window = driver.window
    assert not grows(driver)
    signal(driver)
    factor = {"newreno+": 0.5, "cubic+": 0.7}[name]
    assert driver.window == pytest.approx(window * factor, abs=1)
    assert driver.mode == Mode.recovery
    assert grows(driver, after=1)  # the timer would still run, and recovery is over


@both
def test_persistent_congestion_releases_the_window(name):
    driver, _ = congested(name)
    driver.controller.on_persistent_congestion(driver.now)
    assert driver.window == 2 * DATAGRAM
    assert grows(driver)


def test_after_a_loss_there_is_no_last_mean_and_a_period_begins():
    driver = settled()
    for _ in range(5):
        ack(driver, 9 * RTT, after=PERIOD // 10)
    driver.loss()
    period(driver, 3 * RTT)  # U = 1, but no Jitter yet
    assert grows(driver)
    period(driver, 4 * RTT)
    assert not grows(driver)


# Readings.


@pytest.mark.parametrize(
    "parameters, rtt_ms, equal",
    [
        ({"min_rtt_tolerance_packets": 0}, 20.2, True),
        ({"min_rtt_tolerance_packets": 0}, 20.3, False),
        ({"min_rtt_tolerance_packets": 0, "min_rtt_tolerance": 0.02}, 20.4, True),
        ({}, 24.8, True),  # one packet takes 4.8 ms at 2 Mbps
        ({}, 24.9, False),
        ({"min_rtt_tolerance_packets": 2}, 29.6, True),
    ],
)
def test_what_equals_the_minimum(parameters, rtt_ms, equal):
    driver = settled(**parameters)
    ack(driver, after=1, rate=250e3)
    ack(driver, after=1, rate=100e3)  # not the highest
    period(driver)
    period(driver, round(rtt_ms * MILLISECOND))
    assert grows(driver) == equal


def in_a_hold(name, **parameters):
    """The second flag holds the window, after a loss and ten calm periods."""
    driver = settled(name, high=5, **parameters)
    driver.loss()
    for _ in range(10):
        period(driver)
    period(driver, 4 * RTT, uncongested=1)
    return driver


@both
def test_after_a_hold_the_window_grows_as_it_would_have_grown_before(name):
    held, free = in_a_hold(name), settled(name, high=5)
    free.loss()
    for _ in range(10):
        period(free)
    free.controller.set_parameters({"period_ms": 60_000})
    period(free, 4 * RTT, uncongested=1)
    window = held.window
    for _ in range(50):
        period(held, 4 * RTT, uncongested=1)
    assert held.window == window
    period(held)  # its last ACK finds the queue gone
    for _ in range(5):
        for driver in (held, free):
            period(driver)
        assert held.window == pytest.approx(free.window, rel=0.01)


def windows_after_a_hold(name, freezes):
    """The window that is held, and those at the ends of ten calm periods."""
    driver = in_a_hold(name, hold_freezes_epoch=freezes)
    windows = [driver.window]
    for _ in range(300):
        period(driver, 4 * RTT, uncongested=1)
        assert driver.window == windows[0]
    for _ in range(10):
        period(driver)
        windows.append(driver.window)
    return windows


def test_a_hold_may_leave_cubics_time_running_and_newreno_has_none():
    frozen, running = (windows_after_a_hold("cubic+", freezes) for freezes in (1, 0))
    assert frozen[-1] < 1.2 * frozen[0]
    assert running[-1] > 1.5 * running[0]
    frozen, running = (windows_after_a_hold("newreno+", freezes) for freezes in (1, 0))
    assert frozen[0] < frozen[-1]
    assert frozen == running


def test_the_application_stops_cubics_time_in_a_hold_all_the_same():
    windows = []
    for limited in (True, False):
        driver = in_a_hold("cubic+", hold_freezes_epoch=0)
        for number in range(1, 3001):
            rtt = RTT if number % 10 == 1 else 4 * RTT
            ack(driver, rtt, after=PERIOD // 10, app_limited=limited)
        for _ in range(10):
            period(driver)
        windows.append(driver.window)
    assert windows[0] * 1.3 < windows[1]
