"""IBCCA, row by row: Algorithm 1, equations 2 and 3, and the readings of what they leave open."""

from functools import partial

import pytest
from helpers import bbr_flows
from helpers.ack_rounds import DATAGRAM, MILLISECOND, Driver
from helpers.bbr_flows import gain
from helpers.endpoints import SECOND, application, make_flow, make_link, make_scenario

from quicgym import _core

Mode = _core.ControllerMode
RTT = 100 * MILLISECOND
RATE = 1.25e6  # bytes per second
BDP = RATE * RTT * 1e-9
CYCLE = [0.75, 1, 1, 1, 1, 1, 1, 1.25]
BBR_CYCLE = [1.25, 0.75, 1, 1, 1, 1, 1, 1]
MARKS = [1.31, 1.32, 1.33, 1.34, 1.35, 1.36, 1.37, 1.38]  # gains that tell the phases apart


def in_probe_bw(**parameters):
    driver = bbr_flows.in_probe_bw("ibcca", RATE, RTT, **parameters)
    end_round(driver)
    return driver


RISE = (110, 120, 130, 140)
"""Delays in ms of tests of which each is above the one before."""


def end_round(driver, *, blocked=0, in_flight=int(BDP), after=1):
    """The ACK that ends the round; it has no RTT, so none goes into the next test."""
    driver.ack(after=after, rate=RATE, rtt=0, round_start=True, blocked=blocked,
               in_flight=in_flight)  # fmt: skip


def measure(driver, *delays_ms, blocked=0, in_flight=int(BDP)):
    """One test, that is one round, with each of these delays; the last one ends blocked."""
    for index, delay in enumerate(delays_ms, start=1):
        driver.ack(after=1, rate=RATE, rtt=round(delay * MILLISECOND), in_flight=in_flight)
        events = blocked if index == len(delays_ms) else 0
        end_round(driver, blocked=events, in_flight=in_flight)


FOUR = 4 * DATAGRAM


def in_probe_rtt(events=1, **parameters):
    """In ProbeRTT because of congestion, with four packets in flight; its 200 ms begin now."""
    driver = in_probe_bw(**parameters)
    measure(driver, *RISE, blocked=events)
    assert (driver.mode, driver.window) == (Mode.probe_rtt, FOUR)
    driver.ack(rate=RATE, rtt=0, in_flight=FOUR)
    return driver


def probe_rtt_left(driver):
    """How long ProbeRTT lasts from now on, in ms, found by ACKs within one round."""
    start = driver.now
    while driver.mode == Mode.probe_rtt:
        driver.ack(after=MILLISECOND // 4, rate=RATE, rtt=0, in_flight=FOUR)
        assert driver.now < start + 20 * SECOND
    return (driver.now - start) / MILLISECOND


# Lines 4 and 5: stay in ProbeBW.


@pytest.mark.parametrize(
    "delays, blocked, parameters, mode",
    [
        ((140, 130, 120, 140), 3, {}, Mode.probe_bw),  # no rise
        (RISE, 0, {}, Mode.probe_bw),  # not blocked
        (RISE, 1, {}, Mode.probe_rtt),
        ((150, 110, 120, 149), 1, {}, Mode.probe_bw),  # two of three steps rise, the sum does not
        ((120, 160, 140, 121), 1, {}, Mode.probe_rtt),  # two of three fall, the sum rises
        ((110, 150, 120, 110), 1, {}, Mode.probe_bw),  # no change
        ((150, 140, 170, 160), 1, {"derate_tests": 1}, Mode.probe_bw),
        ((150, 140, 170, 160), 1, {"derate_tests": 2}, Mode.probe_rtt),
        (RISE, 1, {"test_rounds": 10}, Mode.probe_bw),
    ],
)
def test_a_sum_of_three_differences_above_0_while_blocked_begins_probe_rtt(
    delays, blocked, parameters, mode
):
    driver = in_probe_bw(**parameters)
    measure(driver, *delays, blocked=blocked)
    assert driver.mode == mode


@pytest.mark.parametrize("follows", [0, 1])
def test_stays_when_rtprop_is_older_than_its_window(follows):
    driver = in_probe_bw(expired_rtprop_follows=follows)
    driver.ack(after=11 * SECOND, rate=RATE, rtt=2 * RTT)
    assert driver.mode == Mode.probe_bw
    assert driver.controller.snapshot.round_trip_estimate == (2 * RTT if follows else RTT)


@pytest.mark.parametrize(
    "delays, blocked, mode",
    [
        ((140, 130, 120, 110), 0, Mode.probe_bw),  # both
        ((140, 130, 120, 110), 1, Mode.probe_rtt),  # blocked
        (RISE, 0, Mode.probe_rtt),  # the delay rises
    ],
)
def test_probe_bw_may_outlast_rtprop_only_while_nothing_is_blocked_and_no_delay_rises(
    delays, blocked, mode
):
    for needs_both in (0, 1):
        driver = in_probe_bw(stay_needs_both=needs_both)
        measure(driver, *delays, blocked=blocked)
        assert driver.mode == Mode.probe_bw
        driver.ack(after=11 * SECOND, rate=RATE, rtt=2 * RTT)
        assert driver.mode == (mode if needs_both else Mode.probe_bw)


def test_bbrs_other_reasons_for_probe_rtt_stay():
    driver = Driver(_core.make_controller("ibcca"), RTT)
    driver.ack(rate=RATE)
    driver.ack(after=11 * SECOND, rate=RATE, rtt=2 * RTT)
    assert driver.mode == Mode.probe_rtt


# Lines 6 and 7: the gain cycle.


def phases(driver, count, after=RTT + 1, in_flight=10**7):
    """ACKs without an RTT; the queue makes a gain of 0.75 last. Returns the gains before them."""
    gains = []
    for _ in range(count):
        gains.append(gain(driver))
        driver.ack(after=after, rate=RATE, rtt=0, in_flight=in_flight)
    return gains


def go_to(driver, phase):
    """ProbeBW, without a rise, at this phase of BBR's cycle."""
    driver.controller.set_parameters({"gain_cycle_without_rise": MARKS})
    for _ in MARKS:
        if gain(driver) != MARKS[phase]:
            phases(driver, 1)
    driver.controller.set_parameters({"gain_cycle_without_rise": BBR_CYCLE})
    assert gain(driver) == BBR_CYCLE[phase]


gains_of_a_cycle = partial(phases, count=8)


def test_the_cycles_are_the_papers():
    parameters = _core.make_controller("ibcca").parameters
    assert parameters["gain_cycle"] == CYCLE
    assert parameters["gain_cycle_without_rise"] == BBR_CYCLE


def turned(cycle, phase):
    return cycle[phase:] + cycle[:phase]


@pytest.mark.parametrize(
    "delays, cycle", [([121], CYCLE), ([121, 121], BBR_CYCLE), ([121, 120], BBR_CYCLE)]
)
@pytest.mark.parametrize("phase", range(8))
def test_a_rise_selects_the_cycle_of_line_7_and_the_next_test_bbrs_in_the_same_phase(
    phase, delays, cycle
):
    driver = in_probe_bw()
    measure(driver, 120, 120)
    go_to(driver, phase)
    measure(driver, *delays, in_flight=10**7)
    assert gains_of_a_cycle(driver) == turned(cycle, phase)


def test_a_rise_neither_lengthens_nor_shortens_its_phase():
    driver = in_probe_bw()
    measure(driver, 120, 120)
    go_to(driver, 3)
    for delay, rest, phase in ((121, -2, 3), (123, 2, 4)):
        phases(driver, 1, after=RTT // 2)
        measure(driver, delay, in_flight=10**7)
        phases(driver, 1, after=RTT // 2 + rest)
        assert gains_of_a_cycle(driver) == turned(CYCLE, phase)
        measure(driver, 122, in_flight=10**7)


def test_probe_bw_begins_in_bbrs_cycle_whatever_the_last_test_was():
    driver = in_probe_bw()
    go_to(driver, 7)
    measure(driver, *RISE, in_flight=10**7)
    assert gain(driver) == 1.25
    driver.ack(rate=RATE, blocked=1, in_flight=FOUR)
    driver.controller.set_parameters({"gain_cycle_without_rise": [1.1]})
    probe_rtt_left(driver)
    assert gain(driver) == 1.1


def test_cycles_of_different_lengths_take_the_last_phase_of_the_shorter():
    driver = in_probe_bw(gain_cycle=[0.75, 1.25])
    go_to(driver, 5)
    measure(driver, 110, 120, in_flight=10**7)
    assert gain(driver) == 1.25


def test_a_rise_can_begin_the_cycle_anew_which_then_is_that_of_line_7():
    driver = in_probe_bw(rise_restarts_cycle=1)
    in_flight = int(2 * BDP)
    while gain(driver) != 1.0:
        driver.ack(after=RTT + 1, rate=RATE, in_flight=in_flight)
    measure(driver, 120, in_flight=in_flight)
    measure(driver, 120, 110, in_flight=in_flight)
    while gain(driver) != 1.0:
        phases(driver, 1, in_flight=in_flight)
    measure(driver, 110, 105, in_flight=in_flight)
    assert gain(driver) == 1.0
    measure(driver, 106, in_flight=in_flight)
    assert gain(driver) == 0.75
    gains = phases(in_probe_bw(rise_restarts_cycle=1), 16)
    start = gains.index(0.75)
    assert gains[start : start + 8] == CYCLE


# Lines 9 and 10: to ProbeRTT at once.


@pytest.mark.parametrize("visited", [False, True])
def test_it_begins_at_once_when_the_block_comes_after_the_rise(visited):
    driver = in_probe_bw()
    if visited:  # blocked counts from the entry into ProbeBW
        driver = in_probe_rtt()
        probe_rtt_left(driver)
    measure(driver, *RISE)
    driver.ack(after=1, rate=RATE)
    assert driver.mode == Mode.probe_bw
    driver.ack(after=1, rate=RATE, blocked=1)
    assert driver.mode == Mode.probe_rtt


def test_the_delay_of_a_test_is_its_lowest():
    driver = in_probe_bw()
    for high in (110, 120, 130, 140):
        driver.ack(after=1, rate=RATE, rtt=high * MILLISECOND)
        driver.ack(after=1, rate=RATE, rtt=RTT)
        end_round(driver)
    end_round(driver, blocked=1)
    assert driver.mode == Mode.probe_bw


# Blocked by the congestion window.


def full_round(driver, delay_ms=None, unsent=1, room=0):
    """A round in which an ACK finds no room in the window, or so much."""
    delay = RTT if delay_ms is None else round(delay_ms * MILLISECOND)
    driver.ack(after=1, rate=RATE, rtt=delay, prior_in_flight=driver.window - room, unsent=unsent,
               in_flight=int(BDP))  # fmt: skip
    end_round(driver)


@pytest.mark.parametrize(
    "by_window, unsent, room, mode",
    [
        (0, 1, 0, Mode.probe_bw),
        (1, 1, 0, Mode.probe_rtt),
        (1, 0, 0, Mode.probe_bw),  # no data waits
        (1, 1, DATAGRAM, Mode.probe_bw),  # there is room for a datagram
    ],
)
def test_a_full_window_may_count_as_blocked(by_window, unsent, room, mode):
    driver = in_probe_bw(blocked_by_window=by_window)
    measure(driver, *RISE)
    assert driver.mode == Mode.probe_bw
    full_round(driver, 150, unsent, room)
    assert driver.mode == mode


@pytest.mark.parametrize("rounds, events", [("f", 1), ("ff", 1), ("f.f", 2), ("ff.f.ff", 3)])
def test_a_full_window_is_an_event_when_the_round_before_had_room(rounds, events):
    driver = in_probe_bw(blocked_by_window=1, first_extension_ms=4)
    for round_ in rounds:
        full_round(driver, room=0 if round_ == "f" else DATAGRAM)
    measure(driver, 110)
    assert driver.mode == Mode.probe_rtt
    driver.ack(rate=RATE, rtt=0, in_flight=FOUR)
    # The four packets of ProbeRTT fill its window, which is no event.
    for _ in range(2):
        driver.ack(after=1, rate=RATE, rtt=165 * MILLISECOND, in_flight=FOUR, unsent=1)
        end_round(driver, in_flight=FOUR)
    tin = 4 * 1.5**events
    assert probe_rtt_left(driver) == pytest.approx(200 + 2 * tin, abs=0.5)


def test_a_window_that_is_full_in_each_visit_to_probe_bw_is_an_event_in_each():
    driver = in_probe_bw(blocked_by_window=1)
    for _ in range(2):
        for delay in (110, 120, 130, 140):
            full_round(driver, delay)
        assert driver.mode == Mode.probe_rtt
        driver.ack(rate=RATE, rtt=0, in_flight=FOUR)
        measure(driver, 100, 100, 100, 100, in_flight=FOUR)
        probe_rtt_left(driver)
        assert driver.mode == Mode.probe_bw


def modes_of(scenario, tenths):
    """The modes of the first flow at these times, in tenths of a second, and its statistics."""
    simulation = _core.NativeSimulation(scenario, 1)
    modes = set()
    for tenth in tenths:
        simulation.run_until(tenth * SECOND // 10)
        modes.add(Mode(simulation.snapshot(0)["mode"]))
    return modes, simulation.statistics(0)


@pytest.mark.parametrize("by_window", [0, 1])
def test_a_bulk_flow_in_a_shared_queue_is_blocked_by_its_window_alone(by_window):
    parameters = {"blocked_by_window": [by_window]}
    flows = [make_flow(controller="ibcca", parameters=parameters) for _ in range(3)]
    scenario = make_scenario(flows, make_link(queue_limit=400))
    assert (Mode.probe_rtt in modes_of(scenario, range(20, 101))[0]) == bool(by_window)


# Lines 11 to 13: ProbeRTT is extended.


@pytest.mark.parametrize(
    "events, first, delays, more, extension_ms",
    [
        (1, 1, [110, 100], 0, 0),  # no further rise; derate is above 0
        *((events, 1, [210], 0, 1.5**events) for events in (1, 2, 5)),
        (2, 8, [210], 0, 8 * 1.5**2),
        (1, 4, [210], 2, 4 * 1.5**3),  # events of ProbeRTT count too
        # From test to test it is multiplied; the last step falls, derate is 0.
        (1, 4, [150, 180, 240, 150], 0, 4 * (150 + 180 + 240) / 140),
    ],
)
def test_equation_2_extends_the_200_ms_of_probe_rtt_by_tin(
    events, first, delays, more, extension_ms
):
    driver = in_probe_rtt(events, first_extension_ms=first)
    measure(driver, *delays, blocked=more, in_flight=FOUR)
    assert probe_rtt_left(driver) == pytest.approx(200 + extension_ms, abs=0.5)


def test_the_extension_ends_with_its_probe_rtt():
    driver = in_probe_rtt(first_extension_ms=500)
    measure(driver, 150, in_flight=FOUR)
    assert probe_rtt_left(driver) > 700
    measure(driver, 160, 170, 180, 190, blocked=1)
    assert driver.mode == Mode.probe_rtt
    driver.ack(rate=RATE, rtt=0, in_flight=FOUR)
    assert probe_rtt_left(driver) == pytest.approx(200, abs=0.5)


# The restart.


def test_a_calculated_time_above_the_longest_restarts():
    driver = in_probe_bw()
    window = driver.window
    measure(driver, 110, 120, 130, 140, blocked=5)
    assert driver.window == FOUR
    measure(driver, 140 * 6, in_flight=FOUR)  # 6^5 ms are 7.8 s
    assert driver.mode == Mode.probe_rtt
    measure(driver, 140 * 6, in_flight=FOUR)  # and as much again
    assert driver.mode == Mode.startup
    assert driver.window >= window
    assert driver.controller.snapshot.bandwidth_estimate == RATE
    # A Startup like the first: three rounds without growth end it. One comes before, for its
    # bandwidth, and two more that still deliver what ProbeRTT had sent.
    rounds = 0
    while driver.mode == Mode.startup:
        driver.ack(int(BDP), after=RTT, rate=RATE, round_start=True, in_flight=10**8)
        rounds += 1
    assert driver.mode == Mode.drain
    assert rounds == 6


def test_the_longest_time_is_a_parameter():
    driver = in_probe_rtt(restart_after_s=0.205, first_extension_ms=6)
    assert driver.mode == Mode.probe_rtt
    measure(driver, 140, in_flight=FOUR)
    assert driver.mode == Mode.startup


@pytest.mark.parametrize("events", [10**3, 10**6, 2**63])
@pytest.mark.parametrize("delays", [(150, 400), (400, 150)])
def test_any_number_of_blocked_events_is_survived(events, delays):
    driver = in_probe_rtt(events, restart_after_s=10_000)
    for _ in range(5):
        measure(driver, *delays, in_flight=FOUR)
    assert driver.window >= FOUR


# The sender's signal.


def run_bursts(**fields):
    """15 Mbps for a flow of 10, with half a second of 20 Mbps more every five seconds."""
    bursts = application(
        "bursts",
        rate_bits_per_second=10_000_000,
        burst_rate_bits_per_second=20_000_000,
        burst_duration=SECOND // 2,
        burst_period=5 * SECOND,
        burst_count=4,
    )
    flow = make_flow(controller="ibcca", application=bursts, **fields)
    return modes_of(make_scenario([flow], make_link(queue_limit=400)), range(1, 201))


def test_the_send_buffer_is_full_once_per_burst_and_once_for_a_bulk_flow():
    _, statistics = run_bursts(send_buffer_bytes=200_000)
    assert statistics["send_buffer_events"] == 4
    assert statistics["blocked_events"] == 0
    assert run_bursts(send_buffer_bytes=10_000_000)[1]["send_buffer_events"] == 0
    _, statistics = modes_of(make_scenario([make_flow()]), [50])
    assert statistics["send_buffer_events"] == 1


@pytest.mark.parametrize("limit", ["send_buffer_bytes", "flow_control_window_bytes"])
def test_a_full_buffer_and_closed_flow_control_reach_the_controller(limit):
    limits = {"send_buffer_bytes": 10**9, "flow_control_window_bytes": 10**9}
    assert Mode.probe_rtt not in run_bursts(**limits)[0]
    assert Mode.probe_rtt in run_bursts(**limits | {limit: 200_000})[0]
