"""CUBIC against RFC 9438."""

import pytest
from helpers.ack_rounds import DATAGRAM, MILLISECOND, SECOND, AckRounds, Driver, Path

from quicgym import _core
from quicgym.controllers import find

Mode = _core.ControllerMode
C, BETA = 0.4, 0.7
ALPHA = 3 * (1 - BETA) / (1 + BETA)


def make(rtt=100 * MILLISECOND, **parameters):
    return Driver(_core.make_controller("cubic", parameters), rtt)


def segments(driver):
    return driver.window / DATAGRAM


def grown_to(window_segments, **arguments):
    driver = make(**arguments)
    driver.ack((window_segments - 10) * DATAGRAM)
    assert segments(driver) == window_segments
    return driver


def one_round(driver, **arguments):
    """Acknowledges about one window, in ACKs of two datagrams spread over one RTT."""
    acks = max(1, driver.window // (2 * DATAGRAM))
    for _ in range(acks):
        driver.ack(2 * DATAGRAM, after=driver.rtt // acks, **arguments)


def lose(driver):
    """One congestion event; returns at the first moment of the epoch that follows."""
    driver.loss()
    driver.ack(0, after=driver.rtt + 1)
    return driver.now


def rounds_until(driver, time):
    while driver.now < time:
        one_round(driver)


def w_cubic(seconds, w_max, epoch_window):
    k = ((w_max - epoch_window) / C) ** (1 / 3)
    return C * (seconds - k) ** 3 + w_max


def test_window_follows_the_closed_form():
    # Large window, long RTT: the cubic region, where Reno would be far below.
    driver = grown_to(1000)
    start = lose(driver)
    largest_gap = 0.0
    for _ in range(150):
        one_round(driver)
        seconds = (driver.now - start) * 1e-9
        behind, ahead = (
            w_cubic(seconds + lag, w_max=1000, epoch_window=700) for lag in (-0.1, 0.1)
        )
        assert behind - 1 <= segments(driver) <= ahead + 1
        largest_gap = max(largest_gap, abs(segments(driver) - 1000))
    assert largest_gap > 200  # it went through the plateau and beyond


def test_window_is_back_at_w_max_after_k_seconds():
    driver = grown_to(1000)
    start = lose(driver)
    k = (300 / C) ** (1 / 3)
    for seconds in (k - 0.5, k + 0.5):
        rounds_until(driver, start + int(seconds * SECOND))
        assert segments(driver) == pytest.approx(1000, abs=1)


def test_growth_is_at_most_half_a_window_per_round():
    driver = grown_to(100)
    lose(driver)
    driver.now += 60 * SECOND  # W_cubic is by now far away
    for _ in range(4):
        window = driver.window
        one_round(driver)
        # 1.5 is the target; approaching it ACK by ACK compounds to e^0.5 at most.
        assert 1.3 * window < driver.window < 1.65 * window


def test_reno_friendly_region_follows_w_est():
    # Small window, short RTT: W_cubic stays below what Reno would have.
    driver = grown_to(20, rtt=10 * MILLISECOND)
    lose(driver)
    expected, prior = 14.0, 20.0
    for _ in range(60):
        for _ in range(7):
            alpha = 1.0 if expected >= prior else ALPHA
            expected += alpha * 2 / segments(driver)
            driver.ack(2 * DATAGRAM, after=driver.rtt // 7)
            assert segments(driver) == pytest.approx(expected, rel=1e-3)
    assert expected > prior  # alpha changed to 1 on the way


def test_a_beta_set_within_an_epoch_waits_for_the_next_loss():
    changed, same = drivers = [grown_to(20, rtt=10 * MILLISECOND) for _ in range(2)]
    for driver in drivers:
        lose(driver)
        driver.ack(2 * DATAGRAM, after=driver.rtt // 7)
    changed.controller.set_parameters({"beta": 0.3})
    for _ in range(100):
        for driver in drivers:
            driver.ack(2 * DATAGRAM, after=driver.rtt // 7)
        assert changed.window == same.window
    for driver in drivers:
        lose(driver)
    assert changed.window < 0.5 * same.window


@pytest.mark.parametrize("fast, w_max", [(1, 700 * (1 + BETA) / 2), (0, 700)])
def test_fast_convergence_lowers_w_max_when_the_window_shrank(fast, w_max):
    driver = grown_to(1000, fast_convergence=fast)
    driver.loss()
    driver.now += driver.rtt + 1
    start = lose(driver)  # at 700, below the W_max of 1000
    k = ((w_max - 490) / C) ** (1 / 3)
    rounds_until(driver, start + int(k * SECOND))
    assert segments(driver) == pytest.approx(w_max, abs=1)


def test_application_limited_time_does_not_count():
    steady, paused = grown_to(1000), grown_to(1000)
    for driver in (steady, paused):
        lose(driver)
        for _ in range(10):
            one_round(driver)
    window = paused.window
    paused.ack(app_limited=True)
    paused.ack(after=30 * SECOND)  # the first one after the silence
    steady.ack()
    for driver in (steady, paused):
        one_round(driver)
    assert paused.window > window
    assert paused.window == pytest.approx(steady.window, abs=1)


def test_a_spurious_loss_changes_nothing_in_the_end():
    """RFC 9438 4.9.2."""
    reordered, undisturbed = grown_to(1000), grown_to(1000)
    for driver in (reordered, undisturbed):
        lose(driver)
        rounds_until(driver, driver.now + 3 * SECOND)
    window = reordered.window
    reordered.loss()
    assert reordered.window < window
    reordered.controller.on_spurious_loss(reordered.now)
    assert reordered.window == window
    for driver in (reordered, undisturbed):
        driver.ack(0, after=driver.rtt + 1)
        rounds_until(driver, driver.now + 3 * SECOND)
    assert reordered.window == undisturbed.window


def test_a_spurious_loss_undoes_nothing_once_the_window_is_beyond_what_it_was():
    """RFC 9438 4.9.2."""
    late, without = grown_to(1000), grown_to(1000)
    for driver in (late, without):
        window = driver.window
        driver.loss()
        driver.ack(0, after=driver.rtt + 1)
        while driver.window <= window:
            one_round(driver)
    late.controller.on_spurious_loss(late.now)
    for driver in (late, without):
        rounds_until(driver, driver.now + 3 * SECOND)
    assert late.window == without.window


def test_the_reduction_for_a_mark_is_not_undone():
    driver = grown_to(1000)
    driver.loss()
    driver.ack(0, after=driver.rtt + 1)
    driver.ecn()
    window = driver.window
    driver.controller.on_spurious_loss(driver.now)
    assert driver.window == window


def after_persistent_congestion(window_segments, **arguments):
    """At the end of the slow start that follows a loss and persistent congestion."""
    driver = grown_to(window_segments, **arguments)
    driver.loss()
    driver.controller.on_persistent_congestion(driver.now)
    assert (segments(driver), driver.mode) == (2, Mode.slow_start)
    driver.now += 2 * driver.rtt
    while driver.mode == Mode.slow_start:
        driver.ack()
    return driver


def test_after_persistent_congestion_slow_start_then_a_convex_epoch():
    driver = after_persistent_congestion(1000)
    base, start = segments(driver), driver.now
    assert base == pytest.approx(700, abs=2)
    for _ in range(80):
        one_round(driver)
    seconds = (driver.now - start) * 1e-9
    # K is 0 and W_max the window at which the epoch began.
    least, most = (base + C * (seconds + lag) ** 3 for lag in (-0.1, 0.1))
    assert least - 2 <= segments(driver) <= most + 2


def test_after_persistent_congestion_reno_has_nothing_to_catch_up_with():
    # Alpha is 1 from cwnd_prior on, and the new epoch begins there (RFC 9438 4.3 and 4.8).
    driver = after_persistent_congestion(20, rtt=10 * MILLISECOND)
    expected = segments(driver)
    assert expected == 14
    for _ in range(28):
        expected += 2 / segments(driver)
        driver.ack(after=driver.rtt // 7)
        assert segments(driver) == pytest.approx(expected, rel=1e-3)


def test_fills_a_long_fat_path():
    path = Path(rate=2.5e6, base_rtt=200 * MILLISECOND, queue_packets=200)
    rounds = AckRounds(_core.make_controller("cubic"), path).run(20 * SECOND)
    assert rounds.throughput(5 * SECOND, 20 * SECOND) > 0.95 * path.rate


def test_one_ack_goes_its_share_of_the_way_to_the_cubic_one_round_trip_from_now():
    driver = grown_to(1000)
    start = lose(driver)
    k = (300 / C) ** (1 / 3)
    driver.now = start + SECOND
    target = C * (1 + 0.1 - k) ** 3 + 1000
    driver.ack(70 * DATAGRAM)
    assert segments(driver) == pytest.approx(700 + (target - 700) * 70 / 700, abs=0.01)


def left_slow_start(slow_start):
    """A flow of 1000 segments whose slow start Linux's HyStart ended; then `slow_start` is set."""
    numbers = find("cubic").numbers
    driver = grown_to(1000, **numbers({"slow_start": "hystart-linux"}))
    for number in range(9):
        driver.ack(0, after=3 * MILLISECOND, rtt=2 * driver.rtt, round_start=number == 0)
    assert (segments(driver), driver.mode) == (1000, Mode.congestion_avoidance)
    driver.controller.set_parameters(numbers({"slow_start": slow_start}))
    return driver


@pytest.mark.parametrize(
    ("slow_start", "added"), [("hystart-linux", 1 / 20), ("standard", 1 / 1000)]
)
def test_after_linuxs_hystart_each_segment_adds_a_twentieth_until_the_first_loss(slow_start, added):
    # Linux, net/ipv4/tcp_cubic.c, bictcp_update: cnt is at most 20 while last_max_cwnd is 0.
    driver = left_slow_start(slow_start)
    expected = 1000
    for _ in range(5 * 500):
        driver.ack(after=driver.rtt // 500)
        expected += 2 * added
        # Without the rule, Reno's estimate leads in these five round trips: a segment in each.
        assert segments(driver) == pytest.approx(expected, abs=1)
    lose(driver)
    before = segments(driver)
    one_round(driver)  # K is above 9 s, so the cubic is steep, but adds less than 5% per round trip
    assert before < segments(driver) < 1.03 * before


def test_after_a_timeout_linuxs_cubic_has_no_maximum_either():
    driver = left_slow_start("hystart-linux")
    lose(driver)
    driver.controller.on_persistent_congestion(driver.now)
    driver.now += 2 * driver.rtt
    driver.ack(698 * DATAGRAM)
    assert (segments(driver), driver.mode) == (700, Mode.congestion_avoidance)
    driver.ack(20 * DATAGRAM)
    assert segments(driver) == pytest.approx(701, abs=0.01)
