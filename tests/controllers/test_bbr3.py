"""BBR version 3 against draft-ietf-ccwg-bbr-06; each test names the section of its rule."""

import itertools

import numpy as np
import pytest
from helpers.ack_rounds import DATAGRAM, MILLISECOND, SECOND, Driver

import quicgym
from quicgym import Scenario, _core

Mode, Phase = _core.ControllerMode, _core.ProbeBwPhase
RTT = 100 * MILLISECOND
RATE = 1.2e6
"""Bytes per second."""
BDP = 100 * DATAGRAM
ACKED = 2 * DATAGRAM
"""By each ACK."""
MARGIN = 0.99
TOO_MANY = range(0, 10, 2)
"""Packets: with twice a BDP in flight, losing them all is just above 2%."""


class Flow(Driver):
    """A flow that keeps `flight` bytes in flight on a path of RATE and RTT, ACK by ACK."""

    def __init__(self, seed=1, **parameters):
        parameters.setdefault("probe_rtt_interval_s", 1000)  # only where it is asked for
        super().__init__(_core.make_controller("bbr3", parameters), RTT, seed)
        self.ack(0)  # the handshake's

    def step(self, rate=RATE, flight=BDP, **arguments):
        """One ACK of two datagrams, a `flight` after its packet left."""
        usual = {
            "after": int(ACKED / rate * 1e9),
            "in_flight": flight,
            "in_flight_at_send": flight,
            "since_sent": min(flight, self.delivered + ACKED),
        }
        self.ack(ACKED, rate=rate, **usual | arguments)

    def rounds(self, count=1, **arguments):
        """`count` rounds of a flight of a BDP."""
        for _ in range(int(count * BDP / ACKED)):
            self.step(**arguments)

    def until(self, state, rounds=80, **arguments):
        """Goes on until the mode or phase is reached, and fails if it is not."""
        for _ in range(int(rounds * BDP / ACKED)):
            if state in (self.mode, self.phase):
                return self
            self.step(**arguments)
        raise AssertionError(f"{state} not within {rounds} rounds, but {self.mode} {self.phase}")

    def lose(self, *numbers, flight=BDP, **arguments):
        """Packets lost that left with `flight` in flight; each is the last of the loss so far."""
        for count, number in enumerate(numbers, start=1):
            self.packet_lost(
                number, in_flight_at_send=flight, lost_since_sent=count * DATAGRAM, **arguments
            )

    @property
    def snapshot(self):
        return self.controller.snapshot

    @property
    def phase(self):
        return self.snapshot.probe_bw_phase

    @property
    def longterm(self):
        return self.snapshot.inflight_longterm_bytes

    @property
    def shortterm(self):
        return self.snapshot.inflight_shortterm_bytes

    @property
    def gain(self):
        """The pacing gain in force, where no short-term bound holds the bandwidth."""
        return self.controller.pacing_rate / self.snapshot.bandwidth_estimate / MARGIN

    @property
    def paced_at(self):
        """The bandwidth in force where the pacing gain is 1."""
        return self.controller.pacing_rate / MARGIN


def in_drain(**parameters):
    return Flow(**parameters).until(Mode.drain, flight=2 * BDP)


def in_cruise(**parameters):
    return in_drain(**parameters).until(Phase.cruise)


def in_refill(**parameters):
    return in_cruise(**parameters).until(Phase.refill)


def in_up(**parameters):
    return in_refill(**parameters).until(Phase.up)


def with_longterm(flow):
    """The flow in the next ProbeBW_CRUISE, after a probe for bandwidth that lost too much."""
    flow.until(Phase.up)
    flow.lose(*TOO_MANY, flight=2 * BDP)
    assert flow.phase == Phase.down
    return flow.until(Phase.cruise)


def test_2_the_constants_are_those_of_the_draft():
    drafts = {
        **{"startup_pacing_gain": 2.77, "drain_pacing_gain": 0.5, "probe_down_pacing_gain": 0.9},
        **{"probe_up_pacing_gain": 1.25, "cwnd_gain": 2, "probe_up_cwnd_gain": 2.25},
        **{"probe_rtt_cwnd_gain": 0.5, "pacing_margin": 0.99, "loss_threshold": 0.02},
        **{"beta": 0.7, "headroom": 0.15, "full_bandwidth_growth": 1.25},
        **{"full_bandwidth_rounds": 3, "startup_loss_ranges": 6, "probe_wait_s": 2},
        **{"probe_wait_spread_s": 1, "reno_rounds": 63, "extra_acked_window_rounds": 10},
        **{"min_rtt_window_s": 10, "probe_rtt_interval_s": 5, "probe_rtt_duration_ms": 200},
        "min_window_packets": 4,
    }
    expected = {name: [value] for name, value in drafts.items()}
    assert _core.make_controller("bbr3").parameters == expected


# ---- control parameters, 5.6 -------------------------------------------------------------------


def test_5_6_2_the_first_pacing_rate_is_startup_gain_times_initial_window_over_rtt():
    controller = _core.make_controller("bbr3")
    assert controller.pacing_rate == pytest.approx(2.77 * 10 * DATAGRAM / 0.001)
    assert Flow().controller.pacing_rate == pytest.approx(2.77 * 10 * DATAGRAM / 0.1)


def test_5_6_2_until_the_pipe_was_full_the_pacing_rate_only_rises():
    flow = Flow()
    flow.step()
    assert flow.controller.pacing_rate == pytest.approx(MARGIN * 2.77 * RATE)
    rate = flow.controller.pacing_rate
    flow.controller.set_parameters({"startup_pacing_gain": 2})
    flow.step()
    assert flow.controller.pacing_rate == rate


def test_5_6_1_the_gains_of_each_state():
    flow = Flow()
    flow.rounds()
    seen = {"startup": flow.gain}
    flow = in_drain()
    seen["drain"] = flow.gain
    for phase in ("down", "cruise", "refill", "up"):
        in_flight = 2 * BDP if phase == "down" else BDP
        flow.until(getattr(Phase, phase), in_flight=in_flight)
        flow.step(in_flight=in_flight)
        seen[phase] = flow.gain
    assert seen == pytest.approx(
        {"startup": 2.77, "drain": 0.5, "down": 0.9, "cruise": 1, "refill": 1, "up": 1.25}
    )


@pytest.mark.parametrize("phase, bdps, datagrams", [("cruise", 2, 0), ("up", 2.25, 2)])
def test_5_6_4_2_the_window_is_its_gain_times_the_bdp_and_what_acks_aggregate(
    phase, bdps, datagrams
):
    flow = in_cruise().until(getattr(Phase, phase))
    flow.rounds(0.9, flight=2 * BDP)  # the window grows by no more than what is acknowledged
    expected = bdps * BDP + ACKED + datagrams * DATAGRAM
    assert flow.window == pytest.approx(expected, abs=ACKED)


def test_5_6_4_3_the_window_has_a_floor_of_four_datagrams():
    flow = Flow()
    flow.rtt = 1000  # ns: a BDP of a thousandth of a datagram
    for _ in range(20):
        flow.step(flight=4 * DATAGRAM)
    assert flow.window >= 4 * DATAGRAM
    flow = Flow(min_window_packets=500)
    assert flow.window == 500 * DATAGRAM


def test_5_6_3_the_send_quantum_is_a_millisecond_of_the_rate_and_room_for_it_is_left():
    # 125 MB/s and 0.2 ms: the BDP is 21 datagrams, what is sent in 1 ms is bounded by 64 KiB.
    flow = Flow(cwnd_gain=1)
    flow.rtt = 200_000
    for _ in range(200):
        flow.step(rate=125e6, flight=20 * DATAGRAM)
    assert flow.mode == Mode.probe_bw
    assert flow.window == 64 * 1024


def test_5_6_4_4_the_window_returns_when_loss_recovery_ends():
    flow = Flow()
    flow.rounds(2)
    window = flow.window
    flow.lose(1)
    flow.controller.on_persistent_congestion(flow.now)
    assert flow.window == 4 * DATAGRAM
    flow.step(sent_time=flow.now)
    assert flow.window == 6 * DATAGRAM
    flow.step(after=RTT, sent_time=flow.now + 1)  # sent after the recovery began
    assert flow.window >= window


# ---- Startup and Drain, 5.3.1 and 5.3.2 --------------------------------------------------------


def test_5_3_1_2_startup_goes_on_while_the_rate_grows_or_the_application_limits_it():
    flow = Flow()
    for number in range(45):  # in three rounds by a quarter
        flow.rounds(rate=RATE / 100 * 1.2501 ** (number // 3))
    assert flow.mode == Mode.startup
    flow = Flow()
    flow.rounds(30, rate_limited=True)
    assert flow.mode == Mode.startup


def test_5_3_1_2_startup_ends_after_three_rounds_without_growth():
    flow = Flow()
    flow.rounds(3)
    assert flow.mode == Mode.startup
    flow.rounds(1.5, flight=2 * BDP)
    assert flow.mode == Mode.drain


@pytest.mark.parametrize(
    "numbers, flight, ends",
    [
        (range(0, 12, 2), 2 * BDP, True),  # 6 runs, 3% of the flight
        (range(0, 10, 2), 2 * BDP, False),  # 5 runs
        (range(0, 6), 2 * BDP, False),  # 6 packets in one run
        (range(0, 12, 2), 4 * BDP, False),  # 1.5%
    ],
)
def test_5_3_1_3_startup_ends_with_six_runs_of_loss_above_2_percent(numbers, flight, ends):
    flow = Flow()
    flow.rounds(2)
    flow.lose(*numbers)
    sample = {"in_flight_at_send": flight, "lost_since_sent": len(numbers) * DATAGRAM}
    flow.rounds(1.1, in_flight=3 * BDP, rate_limited=True, **sample)
    assert (flow.mode == Mode.drain) == ends
    # max(BDP, what a round has delivered)
    assert flow.longterm == (BDP if ends else 0)


def test_5_3_1_3_runs_of_loss_are_counted_within_a_round():
    flow = Flow()
    for start in (0, 1000):
        flow.lose(*range(start, start + 6, 2))
        flow.rounds(2, lost_since_sent=BDP, rate_limited=True)
    assert flow.mode == Mode.startup


def test_5_3_2_drain_ends_with_a_bdp_in_flight_or_after_three_rounds():
    flow = in_drain()
    flow.step(in_flight=BDP + 1)
    assert flow.mode == Mode.drain
    flow.step(in_flight=BDP)
    assert flow.mode == Mode.probe_bw
    flow = in_drain()
    flow.rounds(3, in_flight=3 * BDP)
    assert flow.mode == Mode.drain
    flow.rounds(2, in_flight=3 * BDP)
    assert flow.mode == Mode.probe_bw


# ---- ProbeBW, 5.3.3 ----------------------------------------------------------------------------


def test_5_3_3_1_down_ends_without_a_queue_and_with_headroom():
    flow = in_drain()
    flow.until(Phase.down, in_flight=3 * BDP, rounds=5)
    flow.step(in_flight=BDP + 1)
    assert flow.phase == Phase.down
    flow.step(in_flight=BDP)
    assert flow.phase == Phase.cruise
    flow.until(Phase.up)
    flow.lose(1, 3, 5, flight=110 * DATAGRAM)
    longterm = flow.longterm
    assert flow.phase == Phase.down and BDP < longterm < 110 * DATAGRAM
    headroom = int(0.85 * longterm)
    flow.step(in_flight=headroom + 2)
    assert flow.phase == Phase.down
    flow.step(in_flight=headroom)
    assert flow.phase == Phase.cruise


def test_5_3_3_2_cruise_leaves_headroom_and_refill_does_not():
    flow = with_longterm(in_cruise())
    longterm = flow.longterm
    flow.rounds(3)
    assert flow.window == pytest.approx(0.85 * longterm, abs=2)
    flow.until(Phase.refill)
    flow.rounds(0.9)
    assert flow.window == longterm


def test_5_3_3_8_a_probe_follows_after_2_to_3_seconds():
    waits = []
    for seed in range(20):
        flow = in_cruise(seed=seed, reno_rounds=10000)
        start = flow.now
        flow.until(Phase.refill, flight=4000 * DATAGRAM, in_flight=BDP)
        waits.append((flow.now - start) / SECOND)
    assert 1.9 < min(waits) < 2.2 and 2.8 < max(waits) < 3.1
    assert len(set(waits)) > 10


@pytest.mark.parametrize(
    "datagrams, reno_rounds, expected", [(100, 63, 63), (20, 63, 20), (100, 10, 10)]
)
def test_5_3_3_8_or_after_as_many_rounds_as_reno_would_need(datagrams, reno_rounds, expected):
    flow = Flow(reno_rounds=reno_rounds, probe_wait_s=1000)
    flow.rtt = RTT * datagrams // 100  # of a BDP of so many datagrams
    flow.ack(0)
    flight = datagrams * DATAGRAM
    flow.until(Mode.drain, flight=2 * flight)
    flow.until(Phase.cruise, flight=flight)
    start = flow.delivered
    flow.until(Phase.refill, flight=flight)
    assert (flow.delivered - start) / flight == pytest.approx(expected, abs=2)


def test_5_3_3_3_refill_lasts_a_round_and_forgets_the_short_term_model():
    flow = in_cruise()
    flow.lose(1)
    flow.rounds(2, rate=RATE / 2, flight=BDP // 2)
    assert 0 < flow.shortterm < 2 * BDP
    flow.until(Phase.refill)
    assert flow.shortterm == 0
    flow.rounds(0.9)
    assert flow.phase == Phase.refill
    flow.rounds(0.2)
    assert flow.phase == Phase.up


def test_5_3_3_5_up_raises_a_bound_that_holds_the_window_by_1_2_4_8_datagrams_in_a_round():
    flow = with_longterm(in_cruise()).until(Phase.up)
    flow.step(in_flight=3 * BDP)  # a cautious probe ends here, and a bold one follows
    flow.until(Phase.refill, rounds=2).until(Phase.up)
    bounds = []
    for _ in range(5):
        bounds.append(flow.longterm)
        begin = flow.delivered
        while flow.delivered < begin + flow.window:
            flow.controller.on_packet_sent(flow.now, DATAGRAM, flow.window)
            flow.step(flight=flow.window, in_flight=flow.window - DATAGRAM)
    steps = [(after - before) / DATAGRAM for before, after in itertools.pairwise(bounds)]
    assert steps == pytest.approx([1, 2, 4, 8], abs=1.5)
    assert flow.phase == Phase.up


def test_5_3_3_5_a_bound_that_does_not_hold_the_window_stays():
    flow = with_longterm(in_cruise()).until(Phase.up)
    longterm = flow.longterm
    flow.rounds(3)  # never with a full window
    assert flow.longterm == longterm


def test_5_3_3_6_after_too_much_loss_a_probe_stops_at_the_bound_and_a_bold_one_follows():
    flow = with_longterm(in_cruise()).until(Phase.up)
    longterm = flow.longterm
    flow.step(in_flight=longterm - 1)
    assert flow.phase == Phase.up
    flow.step(in_flight=longterm)
    assert flow.phase == Phase.down
    flow.until(Phase.refill, rounds=2, in_flight=2 * BDP)  # a round without loss, and no cruise
    flow.until(Phase.up)
    flow.step(in_flight=longterm)
    assert flow.phase == Phase.up


def test_5_3_3_7_up_ends_on_a_plateau_of_the_rate_unless_the_application_limits_it():
    flow = in_up()
    flow.rounds(2.9)
    assert flow.phase == Phase.up
    flow.rounds(1)
    assert flow.phase in (Phase.down, Phase.cruise)
    flow = in_up()
    for number in range(1, 6):
        flow.rounds(rate=RATE * 1.26**number)
    flow.rounds(8, rate_limited=True)
    assert flow.phase == Phase.up


@pytest.mark.parametrize("count, ends", [(4, False), (5, True)])
def test_5_3_3_7_and_3_7_up_ends_on_loss_or_marks_above_2_percent(count, ends):
    losing, marked = in_up(), in_up()
    losing.lose(*range(count), flight=2 * BDP)
    marked.ecn(count)
    marked.step(flight=2 * BDP)
    for flow in (losing, marked):
        assert (flow.phase == Phase.down) == ends
    assert (marked.longterm > 0) == ends


# ---- ProbeRTT, 5.3.4 ---------------------------------------------------------------------------


def in_probe_rtt(**parameters):
    return in_cruise(probe_rtt_interval_s=5, **parameters).until(Mode.probe_rtt)


def test_5_3_4_3_probe_rtt_follows_5_seconds_without_a_lower_rtt():
    flow = in_cruise(probe_rtt_interval_s=5)
    flow.rtt = RTT - 1
    flow.step()
    lowest = flow.now
    flow.until(Mode.probe_rtt)  # an equal RTT does not count
    assert 5 * SECOND < flow.now - lowest < 5.1 * SECOND


def test_5_3_4_3_probe_rtt_holds_half_a_bdp_for_200_ms_and_then_cruises():
    flow = in_probe_rtt()
    assert flow.window == BDP // 2
    assert flow.gain == pytest.approx(1)
    flow.rounds(3, in_flight=BDP // 2 + 1)  # not yet down: no time counts
    flow.step(in_flight=BDP // 2)
    start = flow.now
    flow.until(Phase.cruise, flight=BDP // 2)
    assert 200 * MILLISECOND < flow.now - start < 210 * MILLISECOND
    flow.step()
    assert flow.window > 1.5 * BDP  # what it was before


def test_5_3_4_3_probe_rtt_lasts_a_round_at_least():
    flow = in_probe_rtt(probe_rtt_duration_ms=1)
    flow.step(in_flight=BDP // 2)
    start = flow.delivered
    flow.until(Phase.cruise, flight=BDP // 2)
    assert BDP // 2 <= flow.delivered - start <= BDP // 2 + 2 * ACKED


def test_5_3_4_3_samples_of_probe_rtt_do_not_lower_the_bandwidth():
    flow = in_cruise()
    flow.controller.set_parameters({"probe_rtt_interval_s": 0.5})
    for _ in range(20):
        flow.until(Mode.probe_rtt).until(Phase.cruise, flight=BDP // 4, rate=RATE / 4)
    assert flow.snapshot.bandwidth_estimate == RATE


def test_5_3_4_3_the_rtt_is_the_lowest_of_10_seconds():
    flow = in_cruise(probe_rtt_interval_s=5)
    flow.step(rtt=RTT // 2)
    start = flow.now
    flow.rounds(40)
    while flow.now < start + 10 * SECOND:
        assert flow.snapshot.round_trip_estimate == RTT // 2
        flow.step(flight=BDP // 4)
    flow.rounds(10, flight=BDP // 4)
    assert flow.snapshot.round_trip_estimate == RTT


def test_5_3_4_4_probe_rtt_ends_with_the_short_term_model_forgotten():
    flow = in_cruise()
    flow.lose(1)
    flow.rounds(2, rate=RATE / 2, flight=BDP // 2)
    assert flow.shortterm > 0
    flow.controller.set_parameters({"probe_rtt_interval_s": 0.1})
    flow.until(Mode.probe_rtt).until(Phase.cruise, flight=BDP // 10)
    assert flow.shortterm == 0
    # Where the pipe was never full, it ends in Startup.
    flow = Flow(probe_rtt_interval_s=5).until(Mode.probe_rtt, rate_limited=True)
    flow.until(Mode.startup, flight=BDP // 4, rate_limited=True)


# ---- restart from idle, 5.4.1 ------------------------------------------------------------------


def idle(flow, seconds):
    """All is delivered, the application pauses, and then a packet leaves."""
    flow.step(in_flight=0, app_limited=True)
    flow.now += int(seconds * SECOND)
    flow.controller.on_packet_sent(flow.now, DATAGRAM, DATAGRAM)


def test_5_4_1_after_idleness_packets_leave_at_the_bandwidth():
    flow = in_up()
    flow.controller.on_packet_sent(flow.now, DATAGRAM, DATAGRAM)
    assert flow.gain == pytest.approx(1.25)  # nothing else in flight, but not idle
    idle(flow, 0.1)
    assert flow.gain == pytest.approx(1)


@pytest.mark.parametrize("idles", [True, False])
def test_5_4_1_idleness_replaces_probe_rtt(idles):
    flow = in_cruise(probe_rtt_interval_s=5)
    if idles:
        idle(flow, 6)
        flow.step(rtt=RTT + 1)
        assert flow.mode == Mode.probe_bw
        flow.rounds(30)
    else:
        flow.step(after=6 * SECOND, rtt=RTT + 1)
    assert (flow.mode == Mode.probe_bw) == idles


def test_5_4_1_a_probe_rtt_whose_time_is_over_ends_before_the_next_packet():
    flow = in_probe_rtt()
    flow.step(in_flight=BDP // 2)
    idle(flow, 1)
    assert flow.phase == Phase.cruise
    assert flow.window > BDP


# ---- the model, 5.5 ----------------------------------------------------------------------------


def next_probe(flow, rate=RATE):
    return flow.until(Phase.up, rate=rate).until(Phase.cruise, rate=rate)


def test_5_5_3_bandwidth_is_the_maximum_of_this_probing_cycle_and_the_one_before():
    flow = in_cruise()
    flow.rounds(2)  # the filter advances a round after ProbeBW_DOWN begins
    flow.step(rate=2 * RATE)
    next_probe(flow)
    flow.rounds(2)
    assert flow.snapshot.bandwidth_estimate == 2 * RATE
    next_probe(flow)
    flow.rounds(2)
    assert flow.snapshot.bandwidth_estimate == RATE


def test_5_5_4_samples_that_the_application_limits_count_only_when_higher():
    flow = in_cruise()
    for _ in range(3):
        flow.until(Phase.up, rate=RATE / 2, rate_limited=True)
        flow.until(Phase.cruise, in_flight=BDP)
    flow.rounds(3, rate=RATE / 2, rate_limited=True)
    assert flow.snapshot.bandwidth_estimate == RATE
    flow.step(rate=3 * RATE, rate_limited=True)
    assert flow.snapshot.bandwidth_estimate == 3 * RATE


def test_5_5_9_the_window_has_room_for_what_acks_aggregate_for_ten_rounds():
    flow = in_cruise(reno_rounds=1000)
    flow.rounds(12)
    plain = flow.window
    for _ in range(15):  # 30 datagrams at once, beyond what the rate explains
        flow.step(after=0)
    flow.step(after=RTT)
    flow.rounds(2)
    assert flow.window == pytest.approx(plain + 30 * DATAGRAM, abs=ACKED)
    flow.rounds(6)
    assert flow.window > plain + 25 * DATAGRAM
    flow.rounds(6)
    assert flow.window == pytest.approx(plain, abs=ACKED)


def test_5_5_10_2_the_bound_is_what_was_in_flight_when_losses_first_crossed_2_percent():
    flow = in_up()
    flow.lose(*TOO_MANY, flight=2 * BDP)
    before, lost_before = 2 * BDP - DATAGRAM, 4 * DATAGRAM
    longterm = int(before + (0.02 * before - lost_before) / 0.98)
    assert flow.longterm == longterm
    flow.lose(*range(20, 60), flight=BDP)
    assert flow.longterm == longterm


@pytest.mark.parametrize(
    "numbers, flight, limited, expected",
    [
        ([1], BDP // 4, False, int(0.7 * BDP)),  # beta of the target at least
        (TOO_MANY, 2 * BDP, True, 0),  # the probe ends
    ],
)
def test_5_5_10_2_the_bound_after_losses_of_a_small_flight_and_of_a_limited_one(
    numbers, flight, limited, expected
):
    flow = in_up()
    flow.lose(*numbers, flight=flight, app_limited=limited)
    assert (flow.phase, flow.longterm) == (Phase.down, expected)


def test_5_5_10_2_the_bound_rises_to_what_was_in_flight_without_much_loss():
    flow = with_longterm(in_cruise())
    flow.step(in_flight_at_send=3 * BDP, lost_since_sent=int(0.07 * BDP))
    assert flow.longterm < 2 * BDP
    flow.step(in_flight_at_send=3 * BDP)
    assert flow.longterm == 3 * BDP


def less(share):
    """What a round has in flight and delivers at this share of the rate."""
    return {"rate": share * RATE, "flight": int(share * BDP)}


@pytest.mark.parametrize("signal", [Flow.lose, Flow.ecn])
def test_5_5_10_3_and_3_7_loss_and_marks_lower_the_short_term_bounds_to_what_is_delivered(signal):
    flow = in_cruise()
    flow.rounds(1)
    signal(flow, 1)
    assert flow.paced_at == pytest.approx(RATE)  # at the end of the round
    flow.rounds(1.1, **less(0.9))
    assert flow.paced_at == pytest.approx(RATE)  # the highest sample of the round, its first
    signal(flow, 2)
    flow.rounds(1.1, **less(0.9))
    assert flow.paced_at == pytest.approx(0.9 * RATE)
    flow.rounds(1.1, **less(0.8))  # no loss and no mark
    assert flow.paced_at == pytest.approx(0.9 * RATE)


def test_5_5_10_3_a_round_leaves_beta_of_the_short_term_bounds_at_least():
    flow = in_cruise()
    flow.rounds(1)
    window = flow.window
    flow.rounds(1, **less(0.1))
    for number in range(1, 4):
        flow.lose(number)
        for _ in range(8):
            flow.step(**less(0.1))
        assert flow.paced_at == pytest.approx(0.7**number * RATE)
        assert flow.window == pytest.approx(0.7**number * window, rel=0.05)
    flow.rounds(1)  # no further loss: nothing falls
    assert flow.paced_at == pytest.approx(0.7**3 * RATE)


def test_5_5_10_3_probing_does_not_lower_the_short_term_bounds():
    for flow in (Flow(), in_refill()):
        flow.lose(1, app_limited=True)
        flow.rounds(0.9)
        assert flow.shortterm == 0


def test_5_5_11_2_a_spurious_loss_gives_window_and_short_term_bounds_back():
    flow = in_cruise()
    flow.rounds(2)
    window = flow.window
    flow.lose(1)
    flow.rounds(1, rate=RATE / 2, flight=BDP // 2)
    assert flow.window < window and flow.shortterm > 0
    flow.controller.on_spurious_loss(flow.now)
    assert flow.window == window
    assert flow.shortterm == 0


def test_5_5_11_1_a_spurious_recovery_of_two_rounds_is_undone_to_its_beginning():
    flow = in_up()
    flow.lose(*TOO_MANY, flight=2 * BDP)
    assert flow.longterm and flow.phase == Phase.down
    for _ in range(int(0.7 * BDP / ACKED)):
        flow.step(flight=BDP // 2)  # another round, with packets from before the first loss
    flow.lose(20)
    flow.controller.on_spurious_loss(flow.now)
    assert not flow.longterm and flow.phase == Phase.refill


def test_5_5_11_2_a_spurious_loss_returns_to_startup_or_refills_for_another_probe():
    flow = Flow()
    flow.rounds(2)
    flow.lose(*range(0, 12, 2))
    flow.until(Mode.drain, lost_since_sent=6 * DATAGRAM, in_flight=3 * BDP)
    flow.controller.on_spurious_loss(flow.now)
    assert (flow.mode, flow.longterm) == (Mode.startup, 0)
    flow.rounds(2, rate=2 * RATE)
    assert flow.mode == Mode.startup
    flow = in_up()
    flow.lose(*TOO_MANY, flight=2 * BDP)
    flow.controller.on_spurious_loss(flow.now)
    assert (flow.phase, flow.longterm) == (Phase.refill, 0)


# ---- ECN, 3.7 ----------------------------------------------------------------------------------


@pytest.mark.parametrize("marked", [6, 2**33])  # the peer reports the count, whatever it says
def test_3_7_marks_end_startup(marked):
    flow = Flow()
    flow.rounds(2)
    flow.ecn(marked)
    flow.rounds(1.1, in_flight=3 * BDP)
    assert flow.mode == Mode.drain


# ---- over a path -------------------------------------------------------------------------------


def rows_on_path(duration_s, reverse=None, **bottleneck):
    """Rows of a flow on 20 Mbps, an RTT of 50 ms and 400 packets, but for what is given."""
    link = {"rate_mbps": 20, "delay_ms": 25, "queue": {"limit": 400}}
    fields = {
        "name": "appendix",
        "duration_s": duration_s,
        "bottleneck": link | bottleneck,
        "access": {"rate_mbps": 1000, "delay_ms": 0},
        "flows": [{}],
    }
    if reverse:
        fields["reverse"] = link | reverse
    rows = quicgym.run(Scenario.model_validate(fields), "bbr3").trace(0).set_index("time_s")
    return rows.assign(delivered_mbits=rows["delivered_bytes"] * 8e-6)


def goodput_mbps(rows, from_s, until_s):
    delivered = rows.loc[from_s:until_s, "delivered_mbits"]
    return (delivered.iloc[-1] - delivered.iloc[0]) / (until_s - from_s)


def loss_rate(rows, from_s, until_s):
    part = rows.loc[from_s:until_s]
    lost, delivered = (np.ptp(part[f"{what}_bytes"]) for what in ("lost", "delivered"))
    return lost / (lost + delivered)


def test_a_12_and_13_acks_in_bursts_do_not_hold_the_flow_back():
    rows = rows_on_path(8, reverse={"opens_every_ms": 25})
    assert goodput_mbps(rows, 1, 8) > 18.5
    bdp = 20e6 / 8 * 0.05
    assert rows.loc[3:, "window_bytes"].median() > 2.05 * bdp  # room for what ACKs aggregate


def test_a_15_ten_times_the_rate_is_found_within_10_seconds():
    rows = rows_on_path(24, rate_mbps=4, rate_schedule=[{"at_s": 8, "rate_mbps": 40}])
    assert goodput_mbps(rows, 18, 23) > 35


def test_a_16_a_tenth_of_the_rate_is_found_within_20_seconds():
    changes = [{"at_s": 8, "rate_mbps": 2}]
    rows = rows_on_path(38, queue={"limit": 100}, rate_schedule=changes)
    assert rows.loc[8:14, "pacing_rate_mbps"].min() < 12
    assert rows.loc[28:, "pacing_rate_mbps"].median() == pytest.approx(2, rel=0.25)
    assert loss_rate(rows, 28, 38) < 0.02


def test_a_17_a_policer_is_used_without_much_loss():
    rows = rows_on_path(60, policer={"rate_mbps": 10, "burst_bytes": 100_000})
    assert goodput_mbps(rows, 40, 60) > 7.8
    assert loss_rate(rows, 40, 60) < 0.05


# ---- parameters, and in the engine -------------------------------------------------------------


def test_parameters_change_while_running():
    flow = in_cruise()
    flow.until(Phase.up)
    flow.controller.set_parameters({"probe_up_pacing_gain": 1.5, "pacing_margin": 1})
    assert flow.gain * MARGIN == pytest.approx(1.5)
    flow.controller.set_parameters({"min_window_packets": 1000})
    assert flow.window == 1000 * DATAGRAM


def test_it_loses_less_than_version_1_and_shares_evenly():
    version_1, version_3 = (
        quicgym.run("ebcc-flows-3", controller=name, seed=1).metrics for name in ("bbr", "bbr3")
    )
    assert version_3["loss_percent"] < 2 < version_1["loss_percent"]
    assert version_3["jain"] > 0.95
