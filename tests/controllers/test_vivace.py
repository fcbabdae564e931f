"""Vivace as PCC-Uspace, its authors' code, has it, rule by rule."""

from itertools import pairwise
from random import Random

import pytest
from helpers.ack_rounds import DATAGRAM, MILLISECOND, SECOND
from helpers.responding_path import MBPS, RTT, Response, probing

from quicgym import _core

Mode = _core.ControllerMode
MEBIBIT = 1.048576  # in 10^6 bits: what the code calls a Mbit


def vivace(mbps: float = 100.0, **arguments) -> Response:
    return probing(mbps, **arguments)


def moves(response: Response, count: int, before: int = 1) -> list[float]:
    """The rates after the first decision, in Mbps; the rate that was probed around comes first."""
    while len(response.rates) < 1 or not_probing(response) < count + before:
        response.run(response.now + RTT // 10)
    return response.rates[-not_probing(response) :][: count + before]


def not_probing(response: Response) -> int:
    """How many rates there were since the last one of a pair."""
    centre = (max(response.rates[:2]) + min(response.rates[:2])) / 2
    pair = {centre * 1.05, centre * 0.95}
    count = 0
    for rate in reversed(response.rates):
        if any(rate == pytest.approx(one, rel=1e-9) for one in pair):
            break
        count += 1
    return count


def test_the_starting_phase_doubles_the_rate_and_ends_with_half_of_it():
    response = Response(gradient=lambda mbps: 1.0 if mbps > 20 else 0.0)
    while response.mode == Mode.slow_start:
        response.run(response.now + 1)
    assert response.rates == pytest.approx([0.96 * 2**power for power in range(6)])  # to 30.7
    response.run(response.now + SECOND // 10)
    assert response.rates[-1] in (pytest.approx(15.36 * 1.05), pytest.approx(15.36 * 0.95))


@pytest.mark.parametrize("gradient, ends", [(0.005, False), (0.05, True)])  # 0.1 s: 0.5 and 5 ms
def test_the_starting_phase_ignores_a_rise_of_the_rtt_below_1_ms(gradient, ends):
    response = Response(gradient=lambda mbps: gradient if mbps > 20 else 0.0)
    response.run(response.now + 3 * SECOND)
    assert (response.mode == Mode.congestion_avoidance) == ends


def test_an_interval_lasts_until_four_of_its_packets_are_acknowledged():
    response = vivace(2)
    response.run(response.now + 1)
    changes = []
    while len(changes) < 2:
        before = len(response.rates)
        response.run(response.now + MILLISECOND)
        if len(response.rates) > before:
            changes.append(response.now)
    gap = DATAGRAM / (response.rates[1] * MBPS) * SECOND  # 5 ms
    intervals = round(
        (changes[1] - changes[0]) / (RTT + 4 * gap)
    )  # neighbours may have the same rate
    assert changes[1] - changes[0] == pytest.approx(intervals * (RTT + 4 * gap), abs=1.5 * gap)


def test_three_pairs_are_sent_before_a_decision():
    response = vivace()
    begin = response.now
    moves(response, 1)
    assert response.now - begin > 6 * RTT
    assert len({round(rate, 6) for rate in response.rates[:-2]}) == 2


def decided(votes: list[bool]) -> list[float]:
    """The next centre and move when each pair votes for a higher rate or for a lower one."""
    response = vivace()
    response.run(response.now + RTT // 2)
    begin, centre = response.now - RTT // 2, response.controller.pacing_rate / MBPS
    centre /= 1.05 if centre > 61.4 else 0.95

    def gradient(mbps: float) -> float:
        pair = (response.now - begin) // (2 * RTT + MILLISECOND)
        if pair >= len(votes):
            return 0.0
        return 0.1 if (mbps > centre) != votes[pair] else 0.0

    response.gradient = gradient
    response.run(begin + 8 * RTT)
    response.rates.clear()
    response.run(begin + 9 * RTT)
    return [rate / centre for rate in response.rates]


@pytest.mark.parametrize(
    "votes, direction",
    [
        ([True, True, True], 1),
        ([True, False, True], 1),
        ([False, True, False], 0),
        ([False, False, False], -1),
    ],
)
def test_most_pairs_raise_the_rate_and_all_of_them_lower_it(votes, direction):
    relative = decided(votes)[-1]
    if direction == 0:
        assert relative in (pytest.approx(1.05), pytest.approx(0.95))
    else:
        assert (relative - 1) * direction > 0.055


def test_moves_grow_with_the_rounds_in_one_direction():
    response = vivace()
    centre, *rates = moves(response, 5)
    steps = [rates[0] - 1.05 * centre, *(after - before for before, after in pairwise(rates))]
    # d x^0.9 / d x in the code's units, times ((rounds + 1) / 2)^1.2 in whole numbers.
    expected = [0.9 * centre**-0.1 * MEBIBIT**2 * factor**1.2 for factor in (1, 1, 2, 2, 3)]
    assert steps == pytest.approx(expected, rel=0.03)


def test_a_move_is_at_least_half_a_mbps():
    centre, *rates = moves(vivace(throughput_exponent=0.1), 4)
    assert [after - before for before, after in pairwise(rates)] == pytest.approx([0.5] * 3)


def test_a_move_is_at_most_a_share_of_the_rate_that_widens():
    response = vivace(gradient=lambda mbps: 0.001 * mbps)
    centre, *rates = moves(response, 3)
    assert rates[0] == pytest.approx(centre * 0.95 * 0.95)
    shares = [1 - after / before for before, after in pairwise(rates)]
    assert shares == pytest.approx([0.1, 0.15])


def test_when_the_utility_falls_the_rate_goes_back_and_is_probed_around():
    response = vivace()
    moves(response, 4)
    top = response.rates[-1]
    response.gradient = lambda mbps: 0.05 if mbps >= top else 0.0
    response.rates.clear()
    response.run(response.now + 8 * RTT)
    pair = sorted(response.rates[-2:])
    centre = sum(pair) / 2
    assert pair == pytest.approx([0.95 * centre, 1.05 * centre])
    assert centre < response.rates[0]


def test_a_falling_rtt_is_no_gain():
    def first(gradient):
        response = vivace()
        response.queueing = 2 * SECOND
        response.gradient = gradient
        centre, rate = moves(response, 1)
        return rate / centre

    assert first(lambda mbps: -0.05) == pytest.approx(first(lambda mbps: 0.0), rel=1e-3)


@pytest.mark.parametrize("jitter, counts", [(5, True), (300, False)])
def test_a_rise_of_the_rtt_below_the_noise_around_it_counts_as_none(jitter, counts):
    response = vivace()
    response.queueing = SECOND // 10
    sign = 1

    def gradient(mbps):
        nonlocal sign
        sign = -sign
        return (0.04 if mbps > 61.4 else 0.0) + sign * jitter

    response.gradient = gradient
    centre, rate = moves(response, 1)
    assert (rate < centre) == counts


def test_pairs_that_do_not_agree_at_the_lowest_rate_begin_the_starting_phase_anew():
    response = vivace(mbps=4, loss_period=lambda mbps: 5)
    response.run(response.now + 20 * SECOND)
    assert response.controller.pacing_rate == pytest.approx(0.5 * MBPS, rel=0.06)
    assert response.mode == Mode.congestion_avoidance
    draw = Random(1)
    response.loss_period = lambda mbps: draw.choice([2, 20])
    end = response.now + 30 * SECOND
    while response.mode == Mode.congestion_avoidance and response.now < end:
        response.run(response.now + RTT)
    assert response.mode == Mode.slow_start
    assert response.controller.pacing_rate == pytest.approx(0.5 * MBPS)
