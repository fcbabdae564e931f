"""SEARCH (draft-chung-ccwg-search-09) and Rapid Start (draft-kazuho-ccwg-rapid-start)."""

import pytest
from helpers.ack_rounds import DATAGRAM, MILLISECOND, SECOND, AckRounds, Driver, Path

from quicgym import _core
from quicgym.controllers import find

Mode = _core.ControllerMode
BETA = {"cubic": 0.7, "newreno": 0.5}
PATH = Path(rate=2.5e6, base_rtt=60 * MILLISECOND, queue_packets=2000)
BDP = PATH.bdp
pytestmark = pytest.mark.parametrize("name", BETA)


def make(name, slow_start):
    return _core.make_controller(name, find(name).numbers({"slow_start": slow_start}))


def slow_start_of(name, slow_start, path=PATH, until=3 * SECOND):
    rounds = AckRounds(make(name, slow_start), path).run(until)
    first = next((row for row in rounds.rows if row.snapshot.mode != Mode.slow_start), None)
    return rounds, first


def test_search_ends_slow_start_when_less_is_delivered_than_was_sent_a_round_before(name):
    rounds, exit_row = slow_start_of(name, "search")
    assert exit_row is not None and exit_row.lost == 0
    assert 1.2 * BDP < exit_row.window < 6 * BDP
    _, standard = slow_start_of(name, "standard")
    assert standard is None or standard.window > exit_row.window


def test_search_goes_on_while_the_path_delivers_what_is_sent(name):
    fast = Path(rate=1e9, base_rtt=60 * MILLISECOND)
    _, exit_row = slow_start_of(name, "search", fast, 500 * MILLISECOND)
    assert exit_row is None


def test_search_forgets_bins_that_an_idle_sender_left_empty(name):
    driver = Driver(make(name, "search"), rtt=60 * MILLISECOND)
    for _ in range(60):
        driver.ack(after=20 * MILLISECOND, in_flight=20 * DATAGRAM)
    driver.ack(after=SECOND)  # fewer bytes than before, after a pause
    for _ in range(10):
        driver.ack(after=20 * MILLISECOND)
    assert driver.mode == Mode.slow_start


def growth_of_round(driver, rtt_ms):
    before = driver.window
    for place in range(10):
        driver.ack(rtt=int(rtt_ms * MILLISECOND), min_rtt=50 * MILLISECOND, round_start=place == 0,
                   after=5 * MILLISECOND)  # fmt: skip
    return (driver.window - before) / (20 * DATAGRAM)


@pytest.mark.parametrize("rtt_ms, expected", [(53.9, 2), (54.1, 1)])
def test_rapid_start_triples_the_window_while_no_sample_round_has_a_queue(name, rtt_ms, expected):
    driver = Driver(make(name, "rapid-start"))
    driver.ack(0, rtt=50 * MILLISECOND, round_start=True)
    assert growth_of_round(driver, rtt_ms) == pytest.approx(2)  # the round before had none
    after = growth_of_round(driver, rtt_ms)
    assert expected <= after <= expected + 0.11
    assert growth_of_round(driver, rtt_ms) == pytest.approx(expected, rel=0.06)


def in_recovery(name, packets=300):
    driver = Driver(make(name, "rapid-start"))
    driver.ack(0, round_start=True)
    driver.ack((packets - 10) // 2 * DATAGRAM)
    driver.start = driver.window
    driver.loss(0, in_flight=driver.window)
    return driver


def test_rapid_start_keeps_the_silence_factor_at_the_first_loss(name):
    driver, beta = in_recovery(name), BETA[name]
    assert driver.window / driver.start == pytest.approx(beta + 11 / 18 * (1 - beta), rel=0.001)


def test_rapid_start_shrinks_by_what_is_delivered_and_lost_in_recovery(name):
    driver, beta = in_recovery(name), BETA[name]
    before = driver.window
    driver.ack(20 * DATAGRAM)
    kept = 11 / 18 * (1 - beta)
    assert before - driver.window == pytest.approx(20 * kept * DATAGRAM, rel=0.01)
    before = driver.window
    driver.loss(10 * DATAGRAM)
    assert before - driver.window == pytest.approx(10 * (beta + kept) * DATAGRAM, rel=0.01)


def test_rapid_start_keeps_a_third_of_beta_whatever_is_lost(name):
    driver, beta = in_recovery(name), BETA[name]
    driver.loss(10_000 * DATAGRAM)
    assert driver.window / driver.start == pytest.approx(beta / 3, rel=0.02)


def test_rapid_start_ends_with_recovery_and_reacts_as_usual_then(name):
    driver, beta = in_recovery(name), BETA[name]
    driver.ack(10 * DATAGRAM, after=2 * driver.rtt)
    window = driver.window
    assert driver.mode == Mode.congestion_avoidance
    driver.loss(50 * DATAGRAM)
    assert driver.window == pytest.approx(beta * window, rel=0.01)


def test_rapid_start_lands_near_beta_times_what_the_path_holds(name):
    path = Path(rate=2.5e6, base_rtt=60 * MILLISECOND, queue_packets=125)
    full = path.bdp + 125 * DATAGRAM
    rows = AckRounds(make(name, "rapid-start"), path).run(2 * SECOND).rows
    recovery = [row for row in rows if row.snapshot.mode == Mode.recovery]
    end = next(row for row in rows if row.now > recovery[0].now
               and row.snapshot.mode == Mode.congestion_avoidance)  # fmt: skip
    assert end.window == pytest.approx(BETA[name] * full, rel=0.25)


def test_rapid_start_is_at_the_bandwidth_earlier(name):
    long = Path(rate=2.5e6, base_rtt=200 * MILLISECOND, queue_packets=500)

    def time_to(slow_start):
        rows = AckRounds(make(name, slow_start), long).run(3 * SECOND).rows
        return next(row.now for row in rows if row.window > long.bdp)

    assert time_to("rapid-start") < time_to("standard") - 300 * MILLISECOND
