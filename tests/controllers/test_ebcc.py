"""eBCC's table (section 3.3, Algorithm 1), row by row, and the readings of what it leaves open."""

import math
from functools import partial

import pytest
from helpers import bbr_flows
from helpers.ack_rounds import DATAGRAM, MILLISECOND, SECOND, AckRounds, Path

from quicgym import _core

Mode = _core.ControllerMode
RTT = 100 * MILLISECOND
RATE = 2.4e6  # bytes per second
BDP = RATE * RTT * 1e-9  # 200 packets
TARGET = 2 * BDP  # the quanta are switched off below
SHORT = RTT + MILLISECOND  # RTT with a queue below gamma
LONG = 2 * RTT  # and far above


# Without quanta, targetCwnd is two BDP.
in_drain = partial(bbr_flows.in_drain, "ebcc", RATE, RTT, send_quantum_packets=0)
begin_probe_bw = partial(bbr_flows.in_probe_bw, "ebcc", RATE, RTT, send_quantum_packets=0)


def ack(driver, rtt=SHORT, in_flight=int(BDP), **arguments):
    driver.ack(rate=RATE, rtt=rtt, in_flight=in_flight, **arguments)


def decide(driver, rtt=SHORT, **arguments):
    """One round later: the ACK that begins the round, with this RTT."""
    ack(driver, rtt, after=rtt, round_start=True, **arguments)


def in_probe_bw(**parameters):
    """In ProbeBW, one decision after its beginning."""
    driver = begin_probe_bw(**parameters)
    decide(driver)
    return driver


def below_target(share=0.5, **parameters):
    """In ProbeBW with a window below targetCwnd, and no loss pending.

    targetCwnd rises under a window that only decisions move.
    """
    driver = in_probe_bw(cwnd_gain=2 * share, **parameters)
    while abs(driver.window - share * TARGET) > 2:
        decide(driver)
    driver.controller.set_parameters({"cwnd_gain": 2})
    return driver


def test_published_parameters_are_the_defaults():
    parameters = _core.make_controller("ebcc").parameters
    assert parameters["gamma"] == [30] and parameters["beta"] == [0.5]


# Row 1: ProbeBW, diff < gamma, no loss.


def test_row_1_halves_the_distance_to_the_target():
    driver = below_target(0.5)
    window = driver.window
    for _ in range(6):
        decide(driver)
        window = (window + TARGET) / 2
        assert driver.window == pytest.approx(window, abs=2)
        window = driver.window
    assert driver.mode == Mode.probe_bw


# Row 2: ProbeBW, diff >= gamma, no loss.


def test_row_2_steps_back_from_the_target():
    driver = below_target(0.75)
    window = driver.window
    for _ in range(3):
        decide(driver, LONG)
        previous = 2 * window - TARGET
        assert driver.window == pytest.approx((previous + window) / 2, abs=1)
        window = driver.window
    assert driver.mode == Mode.probe_bw


def test_row_2_may_go_half_way_to_the_window_before_the_last_row_1():
    driver = below_target(0.5, stored_window=1)
    before = driver.window
    decide(driver)
    window = driver.window
    decide(driver, LONG)
    assert driver.window == pytest.approx((before + window) / 2, abs=1)
    decide(driver, LONG)
    assert driver.window == pytest.approx((3 * before + window) / 4, abs=1)


def test_row_2_stops_at_the_floor():
    driver = below_target(0.75)
    for _ in range(20):
        decide(driver, LONG, in_flight=0)
        # A window this small holds little queue: gamma 0 keeps row 2 in force.
        driver.controller.set_parameters({"gamma": 0})
    assert driver.window == 4 * DATAGRAM


def above_target(rounds, **parameters):
    """In ProbeBW with a window above targetCwnd."""
    driver = in_probe_bw(cwnd_gain=3, **parameters)
    for _ in range(rounds):
        decide(driver)
    driver.controller.set_parameters({"cwnd_gain": 2})
    assert driver.window > TARGET
    return driver


def test_row_2_does_not_pass_the_target_from_above_unless_the_window_cap_lets_it():
    driver = above_target(3)
    decide(driver, LONG)
    assert driver.window == pytest.approx(TARGET, abs=1)
    driver = above_target(10, window_cap_targets=1.9)
    above = driver.window - TARGET
    decide(driver, LONG)
    assert driver.window == pytest.approx(TARGET + 1.5 * above, abs=2)
    for _ in range(5):
        decide(driver, LONG)
    assert driver.window == pytest.approx(1.9 * TARGET, abs=1)


@pytest.mark.parametrize("gamma, row", [(1e-6, 2), (25.0, 2), (35.0, 1)])
def test_gamma_is_compared_with_diff_in_packets(gamma, row):
    driver = below_target(0.5)
    rtt = 118 * MILLISECOND
    diff = 200 * (1 - 100 / 118)  # 30.5 packets
    driver.controller.set_parameters({"gamma": gamma})
    window = driver.window
    decide(driver, rtt)
    assert (diff >= gamma) == (row == 2)
    assert (driver.window > window) == (row == 1)


# Row 3: ProbeBW, diff >= gamma, loss.


def test_row_3_goes_to_probe_rtt_and_holds_what_packet_conservation_left():
    driver = below_target(0.75)
    driver.loss(in_flight=250 * DATAGRAM)
    ack(driver, LONG, in_flight=248 * DATAGRAM)
    assert driver.mode == Mode.probe_bw  # the decision waits for the round
    assert driver.window == 251 * DATAGRAM
    decide(driver, LONG, in_flight=240 * DATAGRAM, sent_time=driver.now - 1)
    assert (driver.mode, driver.window) == (Mode.probe_rtt, 251 * DATAGRAM)
    ack(driver, LONG, in_flight=240 * DATAGRAM)
    assert driver.window == 251 * DATAGRAM


def in_probe_rtt_by_loss(rtt=LONG, **parameters):
    driver = below_target(0.75, **parameters)
    driver.loss(in_flight=250 * DATAGRAM)
    decide(driver, rtt, in_flight=240 * DATAGRAM, sent_time=driver.now - 1)
    assert driver.mode == Mode.probe_rtt
    return driver


@pytest.mark.parametrize("cut", [False, True])
def test_loss_entered_probe_rtt_ends_after_200_ms_and_keeps_the_window(cut):
    driver = in_probe_rtt_by_loss()
    start = driver.now
    if cut:  # by row 4
        driver.loss()
        decide(driver, LONG, sent_time=driver.now)
    window = driver.window
    ack(driver, SHORT, after=start + 200 * MILLISECOND - driver.now)
    assert driver.mode == Mode.probe_rtt
    ack(driver, SHORT, after=1)
    assert (driver.mode, driver.window) == (Mode.probe_bw, window)
    for _ in range(5):
        ack(driver, SHORT)
    assert driver.window == window  # until row 1 moves it
    decide(driver)
    assert driver.window == pytest.approx((window + TARGET) / 2, abs=1)


def test_loss_entered_probe_rtt_lasts_one_round_at_least():
    driver = in_probe_rtt_by_loss(probe_rtt_duration_ms=10)
    start = driver.now
    ack(driver, SHORT, after=90 * MILLISECOND, sent_time=start)
    assert driver.mode == Mode.probe_rtt
    ack(driver, SHORT, after=1, sent_time=start + 1)
    assert driver.mode == Mode.probe_bw


@pytest.mark.parametrize("left", [True, False])
def test_a_loss_entered_probe_rtt_does_not_postpone_the_next_measurement_of_rtprop(left):
    driver = in_probe_rtt_by_loss()
    window = driver.window
    if left:
        ack(driver, SHORT, after=201 * MILLISECOND)
        assert driver.mode == Mode.probe_bw
    ack(driver, SHORT, after=10 * SECOND, sent_time=0)
    assert (driver.mode, driver.window) == (Mode.probe_rtt, 4 * DATAGRAM)
    ack(driver, SHORT, in_flight=0)
    ack(driver, SHORT, after=201 * MILLISECOND)
    assert (driver.mode, driver.window) == (Mode.probe_bw, window)


# Row 4: ProbeRTT, diff >= gamma, loss.


@pytest.mark.parametrize("beta", [0.0, 0.3, 0.5, 1.0])
def test_row_4_cuts_the_window_by_beta_down_to_the_floor(beta):
    driver = in_probe_rtt_by_loss(beta=beta, probe_rtt_duration_ms=10_000)
    window = driver.window
    for _ in range(3):
        driver.controller.set_parameters({"gamma": 1})
        driver.loss()
        decide(driver, LONG)
        window = max(4 * DATAGRAM, int(window * (1 - beta)))
        assert driver.window == window
    assert driver.mode == Mode.probe_rtt


def test_row_4_needs_both_loss_and_queue():
    driver = in_probe_rtt_by_loss(probe_rtt_duration_ms=10_000)
    window = driver.window
    decide(driver, LONG)  # no loss
    assert driver.window == window
    driver.loss()
    decide(driver, SHORT)  # no queue
    assert driver.window == window
    decide(driver, LONG)  # that loss is spent
    assert driver.window == window


def test_row_4_has_a_turn_on_paths_longer_than_200_ms():
    driver = in_probe_rtt_by_loss(rtt=400 * MILLISECOND)
    window = driver.window
    driver.loss()
    decide(driver, 401 * MILLISECOND, sent_time=driver.now + 1)
    assert (driver.mode, driver.window) == (Mode.probe_bw, window // 2)


# Loss while diff < gamma, and everything else, is BBR's.


def test_loss_without_queue_is_left_to_bbr():
    driver = below_target(0.5)
    window = driver.window
    driver.loss(in_flight=100 * DATAGRAM)
    decide(driver, SHORT, in_flight=99 * DATAGRAM, sent_time=driver.now - 1)
    assert (driver.mode, driver.window) == (Mode.probe_bw, 101 * DATAGRAM)
    ack(driver, SHORT, after=SHORT)  # the round of conservation is over
    assert driver.window == window + 2 * DATAGRAM  # restored, and growing as BBR's does
    ack(driver, SHORT, acked=int(TARGET))
    assert driver.window == pytest.approx(TARGET, abs=1)


# The text of section 3.3: every loss counts.


@pytest.mark.parametrize(
    "needs_queue, row_3, row_4", [(1, Mode.probe_bw, 1), (0, Mode.probe_rtt, 0.5)]
)
def test_rows_3_and_4_may_take_every_loss_without_regard_to_the_queue(needs_queue, row_3, row_4):
    driver = below_target(0.5, loss_needs_queue=needs_queue)
    driver.loss(in_flight=100 * DATAGRAM)
    decide(driver, SHORT, in_flight=99 * DATAGRAM, sent_time=driver.now - 1)
    assert (driver.mode, driver.window) == (row_3, 101 * DATAGRAM)
    driver = in_probe_rtt_by_loss(probe_rtt_duration_ms=10_000)
    driver.controller.set_parameters({"loss_needs_queue": needs_queue})
    window = driver.window
    decide(driver, SHORT)  # no loss
    assert driver.window == window
    driver.loss()
    decide(driver, SHORT)
    assert (driver.mode, driver.window) == (Mode.probe_rtt, window * row_4)


def test_a_round_without_loss_follows_rows_1_and_2_when_every_loss_counts():
    driver = below_target(0.5, loss_needs_queue=0)
    for rtt, grows in ((LONG, False), (SHORT, True)):
        window = driver.window
        decide(driver, rtt)
        assert driver.mode == Mode.probe_bw
        assert (driver.window > window) == grows


def test_window_moves_once_per_round_only():
    driver = below_target(0.5)
    window = driver.window
    for _ in range(10):
        ack(driver, SHORT, acked=100 * DATAGRAM)
    assert driver.window == window
    decide(driver)
    assert driver.window > window


def test_decision_interval_is_counted_in_rounds_and_a_shorter_one_takes_effect_at_once():
    driver = below_target(0.5)
    driver.controller.set_parameters({"decision_interval_rounds": 3})
    decide(driver)  # had been due
    windows = []
    for _ in range(7):
        decide(driver)
        windows.append(driver.window)
    assert windows[0] == windows[1] < windows[2] == windows[3] == windows[4] < windows[5]
    assert windows[5] == windows[6]
    driver.controller.set_parameters({"decision_interval_rounds": 1})
    decide(driver)
    assert driver.window > windows[6]


def test_probe_rtt_after_ten_seconds_is_bbrs():
    driver = in_probe_bw()
    window = driver.window
    ack(driver, SHORT, after=10 * SECOND + 1)
    assert (driver.mode, driver.window) == (Mode.probe_rtt, 4 * DATAGRAM)
    ack(driver, SHORT, in_flight=4 * DATAGRAM)
    driver.loss(in_flight=3 * DATAGRAM)
    decide(driver, LONG, in_flight=0)
    ack(driver, SHORT, after=201 * MILLISECOND)
    assert (driver.mode, driver.window) == (Mode.probe_bw, window)


def test_short_queue_brings_visits_to_probe_rtt_that_cost_little_throughput():
    path = Path(rate=1.875e6, base_rtt=100 * MILLISECOND, queue_packets=20)
    visits = {}
    for name, parameters in (("bbr", {}), ("ebcc", {"gamma": 5})):
        rounds = AckRounds(_core.make_controller(name, parameters), path).run(9 * SECOND)
        visits[name] = sum(row.snapshot.mode == Mode.probe_rtt for row in rounds.rows)
        assert rounds.throughput(3 * SECOND, 9 * SECOND) > 0.95 * path.rate
    assert visits["bbr"] == 0 < visits["ebcc"]


def test_a_gamma_that_is_set_later_does_not_decide_on_old_losses():
    def after(lost):
        driver = in_probe_bw(gamma=math.inf)
        if lost:
            driver.loss(in_flight=int(BDP))
        for _ in range(5):
            decide(driver, LONG)
        driver.controller.set_parameters({"gamma": 1})
        decide(driver, LONG)
        return driver

    assert after(lost=False).mode == after(lost=True).mode == Mode.probe_bw
    driver = after(lost=True)
    driver.loss(in_flight=int(BDP))
    decide(driver, LONG)
    assert driver.mode == Mode.probe_rtt


def test_losses_from_before_probe_bw_are_not_decided_on():
    driver = in_drain()
    driver.loss(in_flight=int(BDP))
    driver.ack(rate=RATE, in_flight=0)
    assert driver.mode == Mode.probe_bw
    decide(driver, LONG)
    assert driver.mode == Mode.probe_bw


def test_the_first_decision_comes_an_interval_after_the_entry_into_probe_bw():
    driver = begin_probe_bw(decision_interval_rounds=3)
    windows = [driver.window]
    for _ in range(3):
        decide(driver)
        windows.append(driver.window)
    assert windows[0] == windows[1] == windows[2] != windows[3]


def test_the_window_grows_again_after_persistent_congestion_without_a_decision():
    driver = below_target(0.5)
    driver.controller.on_persistent_congestion(driver.now)
    assert driver.window == 4 * DATAGRAM
    ack(driver, acked=10 * DATAGRAM, after=1)
    assert driver.window == 14 * DATAGRAM
