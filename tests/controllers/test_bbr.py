"""BBR version 1 against draft-cardwell-iccrg-bbr-congestion-control-00."""

from functools import partial

import pytest
from helpers import bbr_flows
from helpers.ack_rounds import DATAGRAM, MILLISECOND, SECOND, AckRounds, Driver, Path
from helpers.bbr_flows import gain

from quicgym import _core

Mode = _core.ControllerMode
RTT = 100 * MILLISECOND
RATE = 1.25e6  # bytes per second
BDP = RATE * RTT * 1e-9
QUANTA = 3 * DATAGRAM
STARTUP_GAIN = 2.885
CYCLE = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]


in_drain = partial(bbr_flows.in_drain, "bbr", RATE, RTT)
in_probe_bw = partial(bbr_flows.in_probe_bw, "bbr", RATE, RTT)


def make():
    return Driver(_core.make_controller("bbr"), RTT)


def one_round(driver, rate=RATE, **arguments):
    """One ACK that begins a round and acknowledges a whole BDP."""
    arguments.setdefault("in_flight", int(BDP))
    driver.ack(int(BDP), after=driver.rtt, rate=rate, round_start=True, **arguments)


def following_gains(driver, phases):
    gains = []
    for _ in range(phases):
        driver.ack(after=driver.rtt + 1, rate=RATE, in_flight=int(2 * BDP))
        gains.append(gain(driver))
    return gains


def at_gain(wanted):
    driver = in_probe_bw()
    while gain(driver) != wanted:
        following_gains(driver, 1)
    return driver


def test_first_pacing_rate_is_startup_gain_times_initial_window_over_initial_rtt():
    driver = make()
    assert driver.controller.pacing_rate == pytest.approx(STARTUP_GAIN * 10 * DATAGRAM / 0.333)
    driver.ack(0)
    assert driver.controller.pacing_rate == pytest.approx(STARTUP_GAIN * 10 * DATAGRAM / 0.1)


def test_startup_lowers_neither_rate_nor_window():
    driver = make()
    one_round(driver)
    rate, window = driver.controller.pacing_rate, driver.window
    assert rate == pytest.approx(0.99 * STARTUP_GAIN * RATE)
    driver.ack(rate=RATE / 10)
    assert driver.controller.pacing_rate == rate
    assert driver.window == window + 2 * DATAGRAM


def test_startup_window_stops_at_startup_gain_times_bdp():
    driver = make()
    for _ in range(3):
        one_round(driver)
    target = STARTUP_GAIN * BDP + QUANTA
    assert target <= driver.window < target + BDP


@pytest.mark.parametrize(
    "rates, last_round",
    [
        ([1e5 * 1.25001**number for number in range(20)], None),
        ([RATE] * 4, 3),
        ([RATE * 1.07**number for number in range(4)], 3),
        ([1e5, 1e5, 1e5, 2e5, 2e5, 2e5, 2e5], 6),  # three rounds that follow each other
    ],
)
def test_startup_ends_after_three_rounds_with_less_growth_than_a_quarter(rates, last_round):
    driver = make()
    for number, rate in enumerate(rates):
        one_round(driver, rate, in_flight=10**9)
        assert (driver.mode == Mode.drain) == (number == last_round)
        if number != last_round:
            driver.ack(rate=rate, in_flight=10**9)  # within a round: not a round without growth
            assert driver.mode == Mode.startup


def test_startup_does_not_count_rounds_that_the_application_limited():
    driver = make()
    for _ in range(10):
        one_round(driver, rate_limited=True)
    assert driver.mode == Mode.startup


def test_drain_paces_with_the_inverse_gain_until_one_bdp_is_in_flight():
    driver = in_drain()
    assert gain(driver) == pytest.approx(1 / STARTUP_GAIN)
    driver.ack(rate=RATE, in_flight=int(BDP + QUANTA) + 1)
    assert driver.mode == Mode.drain
    driver.ack(rate=RATE, in_flight=int(BDP + QUANTA))
    assert driver.mode == Mode.probe_bw


def test_window_in_probe_bw_is_two_bdp_and_three_quanta_and_a_margin_applies_to_the_rate():
    driver = in_probe_bw(gain_cycle=[1.0])
    for _ in range(5):
        one_round(driver)
    assert driver.window == int(2 * BDP + QUANTA)
    assert driver.controller.pacing_rate == pytest.approx(0.99 * RATE)
    changed = {"cwnd_gain": 1.5, "send_quantum_packets": 0, "pacing_margin": 1.0}
    driver.controller.set_parameters(changed)
    one_round(driver)
    assert driver.window == int(1.5 * BDP)
    assert driver.controller.pacing_rate == pytest.approx(RATE)


EXTENDED = {"gain_cycle": [1.25, 1, 1, 0.75, 1, 1], "entry_gain_minimum": 0}  # bbr-extended's


@pytest.mark.parametrize(
    "parameters, expected", [({}, {0, 2, 3, 4, 5, 6, 7}), (EXTENDED, set(range(6)))]
)
def test_probe_bw_begins_in_any_phase_but_the_one_that_drains_unless_it_may(parameters, expected):
    starts = set()
    for seed in range(100):
        driver = in_probe_bw(seed, **parameters)
        cycle = driver.controller.parameters["gain_cycle"]
        gains = [gain(driver), *following_gains(driver, len(cycle) - 1)]
        start = -gains.index(1.25) % len(cycle)
        assert gains == cycle[start:] + cycle[:start]
        starts.add(start)
    assert starts == expected


@pytest.mark.parametrize(
    "parameters, entries",
    [
        ({"gain_cycle": [1.0]}, {1.0}),
        ({"gain_cycle": [0.8]}, {0.8}),
        ({"gain_cycle": [0.9, 0.8, 0.7]}, {0.9, 0.8, 0.7}),
        ({"gain_cycle": [0.75, 1.5]}, {1.5}),
        ({"gain_cycle": [1.25, 1, 1, 0.75, 1.1, 1]}, {1.25, 1.0, 1.1}),
        ({"entry_gain_minimum": 0.0}, {0.75, 1.0, 1.25}),
    ],
)
def test_entry_phase_of_any_cycle_has_gain_of_one_or_more_unless_none_has(parameters, entries):
    assert {gain(in_probe_bw(seed, **parameters)) for seed in range(60)} == entries


def test_phases_follow_each_other_once_per_rtprop():
    gains = following_gains(in_probe_bw(), 24)
    start = gains.index(1.25)
    assert gains[start : start + 16] == CYCLE + CYCLE


def test_probing_phase_lasts_until_its_share_is_in_flight_or_lost():
    driver = at_gain(1.25)
    for _ in range(5):
        driver.ack(after=RTT + 1, rate=RATE, prior_in_flight=int(1.25 * BDP + QUANTA) - 1)
        assert gain(driver) == 1.25
    driver.ack(rate=RATE, prior_in_flight=int(BDP), lost=DATAGRAM)
    assert gain(driver) == 0.75


def test_draining_phase_ends_early_at_one_bdp():
    driver = at_gain(0.75)
    driver.ack(after=1, rate=RATE, prior_in_flight=int(BDP + QUANTA) + 1)
    assert gain(driver) == 0.75
    driver.ack(after=1, rate=RATE, prior_in_flight=int(BDP))
    assert gain(driver) == 1.0


@pytest.mark.parametrize(
    "parameters, window_rounds",
    [({}, 10), ({"gain_cycle": [1.25, 1, 1, 0.75, 1, 1]}, 8), ({"bandwidth_window_rounds": 4}, 4)],
)
def test_bandwidth_is_the_maximum_over_the_window_of_rounds(parameters, window_rounds):
    driver = in_probe_bw(**parameters)
    one_round(driver, 2 * RATE)
    for _ in range(window_rounds):
        one_round(driver)
        assert driver.controller.snapshot.bandwidth_estimate == 2 * RATE
    one_round(driver)
    assert driver.controller.snapshot.bandwidth_estimate == RATE


def test_bandwidth_filter_falls_back_to_later_samples():
    driver = in_probe_bw()
    for step in range(40):
        one_round(driver, RATE * (3 - step / 20))
        # Never more than the window's true maximum, never less than what is newest.
        estimate = driver.controller.snapshot.bandwidth_estimate
        assert RATE * (3 - step / 20) <= estimate <= RATE * (3 - (step - 10) / 20) + 1


def test_application_limited_samples_count_only_when_higher():
    driver = in_probe_bw()
    for _ in range(30):
        one_round(driver, RATE / 2, rate_limited=True)
    assert driver.controller.snapshot.bandwidth_estimate == RATE
    one_round(driver, 2 * RATE, rate_limited=True)
    assert driver.controller.snapshot.bandwidth_estimate == 2 * RATE


def test_rtprop_is_the_minimum_and_an_equal_sample_renews_it():
    driver = in_probe_bw()
    driver.ack(rate=RATE, rtt=RTT // 2)
    assert driver.controller.snapshot.round_trip_estimate == RTT // 2
    driver.ack(after=9 * SECOND, rate=RATE)
    driver.ack(rate=RATE, rtt=RTT // 2)
    driver.ack(after=9 * SECOND, rate=RATE)
    assert driver.mode == Mode.probe_bw
    assert driver.controller.snapshot.round_trip_estimate == RTT // 2


def in_probe_rtt(**parameters):
    driver = in_probe_bw(**parameters)
    for _ in range(3):
        one_round(driver)
    driver.ack(after=10 * SECOND + 1, rate=RATE, rtt=RTT + 1, in_flight=int(BDP))
    assert driver.mode == Mode.probe_rtt
    assert driver.window == parameters.get("min_window_packets", 4) * DATAGRAM
    return driver


def test_probe_rtt_begins_when_rtprop_is_older_than_its_window():
    in_probe_rtt(min_window_packets=8)
    driver = in_probe_bw(rtprop_window_s=3)
    driver.ack(after=3 * SECOND, rate=RATE, rtt=RTT + 1)
    assert driver.mode == Mode.probe_bw
    driver.ack(after=1, rate=RATE, rtt=RTT + 1)
    assert driver.mode == Mode.probe_rtt


def test_probe_rtt_holds_four_packets_for_200_ms_and_then_restores_the_window():
    driver = in_probe_rtt()
    window = int(2 * BDP + QUANTA)
    assert driver.window == 4 * DATAGRAM
    assert gain(driver) == 1.0
    driver.ack(after=500 * MILLISECOND, in_flight=5 * DATAGRAM)  # not yet down: no time counts
    driver.ack(in_flight=4 * DATAGRAM)
    driver.ack(after=RTT + 1, in_flight=4 * DATAGRAM)  # the round is over, the 200 ms are not
    assert (driver.mode, driver.window) == (Mode.probe_rtt, 4 * DATAGRAM)
    driver.ack(after=RTT, in_flight=4 * DATAGRAM)
    assert (driver.mode, driver.window) == (Mode.probe_bw, window)


def test_probe_rtt_lasts_one_round_at_least():
    driver = in_probe_rtt(probe_rtt_duration_ms=1)
    driver.ack(in_flight=4 * DATAGRAM)
    start = driver.now
    driver.ack(after=SECOND, in_flight=4 * DATAGRAM, sent_time=start)
    assert driver.mode == Mode.probe_rtt
    driver.ack(after=1, in_flight=4 * DATAGRAM, sent_time=start + 1)
    assert driver.mode == Mode.probe_bw


def test_probe_rtt_returns_to_startup_when_the_pipe_was_never_full():
    driver = make()
    driver.ack(rate=1e5, rtt=RTT)
    driver.ack(after=11 * SECOND, rate=1e6, rtt=2 * RTT, in_flight=4 * DATAGRAM)
    assert driver.mode == Mode.probe_rtt
    driver.ack(after=2 * SECOND)
    assert driver.mode == Mode.startup


def test_samples_of_probe_rtt_do_not_lower_the_bandwidth():
    # 20 rounds of 10 ms at four packets would empty a window of 10 rounds.
    path = Path(rate=1.25e6, base_rtt=10 * MILLISECOND)
    controller = _core.make_controller("bbr", {"rtprop_window_s": 0.1, "gain_cycle": [1.25, 1.0]})
    rounds = AckRounds(controller, path).run(3 * SECOND)
    steady = [row for row in rounds.rows if row.now > SECOND]
    assert sum(row.snapshot.mode == Mode.probe_rtt for row in steady) > 100
    assert min(row.snapshot.bandwidth_estimate for row in steady) > 0.9 * path.rate


def in_recovery(**parameters):
    """The first loss has been declared, and an ACK has come."""
    driver = in_probe_bw(**parameters)
    one_round(driver)
    driver.loss(in_flight=int(BDP))
    driver.ack(in_flight=int(BDP) - 2 * DATAGRAM, lost=DATAGRAM)
    assert driver.window == int(BDP) + DATAGRAM
    return driver


def test_loss_begins_a_round_of_packet_conservation_then_the_window_returns():
    driver = in_recovery()
    driver.ack(after=RTT, in_flight=int(BDP), sent_time=driver.now)
    assert driver.window == int(BDP) + 2 * DATAGRAM
    driver.ack(after=1, in_flight=int(BDP))
    assert driver.window == int(2 * BDP + QUANTA)


def test_without_a_conservation_round_the_window_grows_from_the_second_ack_of_a_recovery_on():
    driver = in_recovery(conservation_round=0)
    window = driver.window
    driver.ack(2 * DATAGRAM, in_flight=int(BDP))
    assert driver.window == window + 2 * DATAGRAM


def test_recovery_without_a_clean_round_conserves_only_once():
    driver = in_probe_bw()
    one_round(driver)
    driver.loss(in_flight=int(BDP))
    for _ in range(5):
        driver.loss(after=RTT + 1, in_flight=int(BDP))
        driver.ack(int(BDP), lost=DATAGRAM, rate=RATE, in_flight=int(BDP))
        assert driver.window == int(2 * BDP + QUANTA)


def test_further_losses_of_a_recovery_leave_the_window():
    driver = in_probe_bw()
    one_round(driver)
    bdp = int(BDP)
    for lost, window in (
        (DATAGRAM, bdp + DATAGRAM),
        (3 * DATAGRAM, bdp - 2 * DATAGRAM),
        (10**6, 4 * DATAGRAM),
    ):
        driver.loss(lost, after=1, in_flight=bdp)
        assert driver.window == window


def test_persistent_congestion_falls_to_the_minimum_and_recovers_the_window():
    driver = in_probe_bw()
    one_round(driver)
    window = driver.window
    driver.loss(in_flight=int(BDP))
    driver.controller.on_persistent_congestion(driver.now)
    assert driver.window == 4 * DATAGRAM
    driver.ack(after=RTT, in_flight=20 * DATAGRAM)  # no packet conservation any more
    assert driver.window == 6 * DATAGRAM
    driver.ack(after=1, in_flight=DATAGRAM)
    assert driver.window == window
    assert driver.controller.snapshot.bandwidth_estimate == RATE


def test_ecn_marks_change_nothing():
    driver = in_probe_bw()
    window, rate = driver.window, driver.controller.pacing_rate
    driver.ecn(10)
    assert (driver.window, driver.controller.pacing_rate) == (window, rate)


def test_restart_from_idle_paces_at_the_bandwidth_and_does_not_probe_rtprop():
    driver = at_gain(1.25)
    for in_flight, paced in ((2, 1.25), (1, 1.0)):
        driver.controller.on_packet_sent(driver.now, DATAGRAM, in_flight * DATAGRAM)
        assert gain(driver) == paced
    driver = in_probe_bw()
    driver.now += 11 * SECOND
    driver.controller.on_packet_sent(driver.now, DATAGRAM, DATAGRAM)
    driver.ack(after=2 * RTT, rtt=2 * RTT)
    assert driver.mode == Mode.probe_bw
    assert driver.controller.snapshot.round_trip_estimate == 2 * RTT


def test_alpha_replaces_rtprop_by_the_average_of_rtt():
    driver = in_probe_bw(alpha=0.9)
    average = RTT
    for rtt in (150, 120, 180, 90, 200):
        driver.ack(int(3 * BDP), rtt=rtt * MILLISECOND, rate=RATE)
        average = 0.9 * average + 0.1 * rtt * MILLISECOND
        assert driver.controller.snapshot.round_trip_estimate == pytest.approx(average, abs=1)
        assert driver.window == pytest.approx(2 * RATE * average * 1e-9 + QUANTA, abs=1)


def test_alpha_zero_is_plain_rtprop_and_parameters_change_without_losing_the_model():
    driver = in_probe_bw()
    driver.ack(rtt=2 * RTT, rate=RATE)
    assert driver.controller.snapshot.round_trip_estimate == RTT
    for alpha, expected in ((0.5, 2 * RTT), (0, RTT)):
        driver.controller.set_parameters({"alpha": alpha})
        assert driver.controller.snapshot.round_trip_estimate == expected
    before = driver.controller.snapshot
    driver.controller.set_parameters({"gamma": 30, "beta": 0.5, "rtprop_window_s": 5})
    after = driver.controller.snapshot
    assert after.bandwidth_estimate == before.bandwidth_estimate
    assert after.round_trip_estimate == before.round_trip_estimate
    assert (after.mode, after.window_bytes) == (before.mode, before.window_bytes)


@pytest.mark.parametrize("updates, mode", [(1, Mode.probe_bw), (0, Mode.probe_rtt)])
def test_smoothing_may_leave_rtprop_at_its_first_sample(updates, mode):
    driver = in_probe_bw(alpha=0.9, smoothing_updates_rtprop=updates)
    modes = []
    for _ in range(12):
        driver.ack(after=SECOND, rate=RATE, in_flight=int(BDP))
        modes.append(driver.mode)
    assert (Mode.probe_rtt in modes) == (mode == Mode.probe_rtt)


def test_gain_cycle_and_its_length_change_while_running():
    driver = at_gain(0.75)
    driver.controller.set_parameters({"gain_cycle": [1.5, 0.5, 1.1]})
    assert gain(driver) == 0.5
    assert following_gains(driver, 6) == [1.1, 1.5, 0.5, 1.1, 1.5, 0.5]
    driver.controller.set_parameters({"gain_cycle": [1.2]})
    assert gain(driver) == 1.2


def test_queue_estimate_is_what_the_window_holds_beyond_the_path():
    driver = in_probe_bw()
    one_round(driver, rtt=125 * MILLISECOND)
    packets = driver.window / DATAGRAM
    expected = (packets / 0.1 - packets / 0.125) * 0.1
    assert driver.controller.snapshot.queue_estimate_packets == pytest.approx(expected)


def test_low_application_rate_does_not_lower_the_bandwidth():
    path = Path(rate=1.25e6, base_rtt=40 * MILLISECOND)
    rounds = AckRounds(_core.make_controller("bbr"), path, application_rate=1e5).run(10 * SECOND)
    assert rounds.rows[-1].delivered == pytest.approx(1e6, rel=0.05)
    assert rounds.rows[-1].snapshot.bandwidth_estimate >= 1e5


def test_window_grows_until_an_initial_window_is_delivered_whatever_the_target():
    driver = make()
    for acknowledged in range(2, 11, 2):  # a BDP of less than a packet
        window = driver.window
        driver.ack(rate=1e4)
        assert driver.window == window + (2 * DATAGRAM if acknowledged < 10 else 0)


def test_persistent_congestion_forgets_how_full_the_pipe_seemed():
    driver = make()
    one_round(driver, in_flight=10**9)
    driver.controller.on_persistent_congestion(driver.now)
    for _ in range(3):
        one_round(driver, in_flight=10**9)
        assert driver.mode == Mode.startup
    one_round(driver, in_flight=10**9)
    assert driver.mode == Mode.drain


def test_a_recovery_that_ends_in_probe_rtt_leaves_the_window_to_its_end():
    driver = in_probe_bw()
    one_round(driver)
    window = driver.window
    driver.now += 10 * SECOND - 1000
    driver.loss(in_flight=int(BDP))
    cut = driver.now
    driver.ack(after=1001, rtt=RTT + 1, lost=DATAGRAM, sent_time=cut, in_flight=int(BDP))
    assert driver.mode == Mode.probe_rtt
    # Conservation ends, then the recovery itself.
    driver.ack(after=RTT, rtt=RTT + 1, lost=DATAGRAM, sent_time=cut + 1, in_flight=4 * DATAGRAM)
    driver.ack(after=RTT, rtt=RTT + 1, sent_time=cut + 2, in_flight=4 * DATAGRAM)
    assert (driver.mode, driver.window) == (Mode.probe_rtt, 4 * DATAGRAM)
    driver.ack(after=RTT + 1, rtt=RTT + 1, in_flight=4 * DATAGRAM)
    assert (driver.mode, driver.window) == (Mode.probe_bw, window)


def test_the_bandwidth_filter_keeps_successors_of_different_age():
    driver = make()
    estimates = []
    for number in range(16):
        one_round(driver, RATE * (1 - number / 32), in_flight=10**9)
        estimates.append(round(32 * (1 - driver.controller.snapshot.bandwidth_estimate / RATE)))
    # The best of rounds 0 to 10, then what was seen a quarter and a half of the window later.
    assert estimates == [0] * 11 + [3] * 3 + [6] * 2


def test_a_bandwidth_whose_successor_has_expired_too_gives_way_to_the_third():
    driver = make()
    for number in range(7):
        one_round(driver, RATE * (1 - number / 32), in_flight=10**9)
    for _ in range(8):
        one_round(driver, 0.0, in_flight=10**9)
    one_round(driver, RATE / 4, in_flight=10**9)
    assert driver.controller.snapshot.bandwidth_estimate == RATE * (1 - 6 / 32)


def test_the_window_has_room_for_what_acks_run_ahead_of_the_bandwidth_by():
    """Linux bbr_ack_aggregation_cwnd, with its bound of 100 ms and its filter of ten rounds."""
    driver = in_probe_bw(gain_cycle=[1.0], extra_acked_gain=1)
    for _ in range(5):
        one_round(driver)  # one ACK for all of it
    assert driver.window == pytest.approx(3 * BDP + QUANTA, abs=1)
    for number in range(300):  # thirty rounds of ten ACKs, a little slower than the bandwidth
        driver.ack(
            int(BDP / 10),
            after=RTT // 9,
            rate=RATE,
            in_flight=int(BDP),
            round_start=number % 10 == 0,
        )
    assert driver.window == pytest.approx(2.1 * BDP + QUANTA, abs=1)
    driver.ack(int(BDP / 5), after=1, rate=RATE, in_flight=int(BDP))
    driver.ack(int(BDP), after=1, rate=RATE, in_flight=int(BDP))
    assert driver.window == pytest.approx(3 * BDP + QUANTA, abs=1)


def test_the_target_of_the_window_stays_within_64_bits():
    driver = in_recovery(cwnd_gain=10.0)
    # Ten times the bandwidth-delay product, 2**60 bytes, are above the largest whole number.
    driver.ack(rate=2**60 / 0.1, in_flight=3 * 2**61)
    assert driver.window > 3 * 2**61
    driver.ack(after=RTT, in_flight=int(BDP), sent_time=driver.now)
    driver.ack(after=1, in_flight=int(BDP))
    assert driver.window == 2**62
