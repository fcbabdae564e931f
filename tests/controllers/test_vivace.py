"""Vivace, rule by rule: sections 3 and 4 of Dong et al.'s paper (NSDI 2018)."""

from itertools import pairwise

import pytest
from helpers.ack_rounds import DATAGRAM, SECOND
from helpers.responding_path import MBPS, RTT, Response, probing

from quicgym import _core

Mode = _core.ControllerMode


def slope(response: Response) -> list[float]:
    """Changes of the rate in Mbps, in the order in which they were made."""
    return [after - before for before, after in pairwise(response.centres())]


def marginal_throughput(mbps: float) -> float:
    """d x^0.9 / d x."""
    return 0.9 * mbps**-0.1


def first_steps(**arguments) -> list[float]:
    """The first five changes of the rate, in units of the marginal throughput."""
    response = probing(**arguments).run(10 * SECOND)
    changes = zip(slope(response), response.centres(), strict=False)
    return [change / marginal_throughput(centre) for change, centre in changes][:5]


def test_the_starting_phase_doubles_the_rate_from_the_initial_window_per_rtt():
    response = Response().run(3 * SECOND)
    assert response.rates[0] == pytest.approx(12000 / 0.1 / MBPS)
    assert len(response.rates) > 5
    for before, after in pairwise(response.rates):
        assert after == 2 * before


def test_the_starting_phase_ends_with_half_the_rate_when_the_utility_falls():
    response = Response(gradient=lambda mbps: 1.0 if mbps > 20 else 0.0)
    while response.mode == Mode.slow_start:
        response.run(response.now + 1)
    assert response.rates == pytest.approx([0.96 * 2**power for power in range(6)])  # to 30.7
    response.run(response.now + SECOND // 10)
    assert response.rates[-1] in (pytest.approx(15.36 * 1.05), pytest.approx(15.36 * 0.95))


def test_a_pair_of_intervals_has_the_rates_r_times_1_plus_and_minus_epsilon():
    response = probing().run(4 * SECOND)
    centre = response.centres()[0]
    assert sorted(response.rates[:2]) == pytest.approx([centre * 0.95, centre * 1.05])


# At 61 Mbps d x^0.9 / d x is 0.6. With b = 10 an RTT gradient of 0.02 takes 0.2 from it, and 2% of
# losses with c = 11.35 take 0.227.
@pytest.mark.parametrize(
    "arguments, change",
    [
        ({}, 0.0),
        ({"latency_coefficient": 10, "gradient": lambda mbps: 0.02}, -0.2),
        ({"latency_coefficient": 20, "gradient": lambda mbps: 0.02}, -0.4),
        ({"loss_period": lambda mbps: 50}, -0.227),
        ({"loss_period": lambda mbps: 50, "loss_coefficient": 0}, 0.0),
    ],
)
def test_the_rate_moves_by_the_gradient_of_equation_1(arguments, change):
    response = probing(**arguments, swing_buffer=100).run(8 * SECOND)
    centre = response.centres()[0]
    assert slope(response)[0] == pytest.approx(marginal_throughput(centre) + change, abs=0.06)


def test_a_small_rtt_gradient_counts_as_none():
    def first(gradient):
        return slope(probing(gradient=lambda mbps: gradient, swing_buffer=100).run(8 * SECOND))[0]

    assert first(0.009) == pytest.approx(first(0), rel=0.01)
    assert first(0.011) < 0


def test_the_confidence_amplifier_is_tau_up_to_3_and_then_2_tau_minus_3():
    steps = first_steps(swing_buffer=0, first_boundary=1)
    assert steps == pytest.approx([1, 2, 3, 5, 7], rel=0.02)


def test_the_swing_buffer_delays_the_amplifier_after_a_turn():
    assert first_steps(swing_buffer=2) == pytest.approx([1, 1, 2, 3, 5], rel=0.02)


def test_the_change_boundary_widens_by_each_change_beyond_it_and_narrows_on_a_turn():
    response = probing(rate_change_factor=100, swing_buffer=0).run(5 * SECOND)
    response.gradient = lambda mbps: 0.02  # from here on, less is better
    response.run(response.now + 6 * SECOND)
    shares = [
        change / centre for change, centre in zip(slope(response), response.centres(), strict=False)
    ]
    turn = next(i for i, share in enumerate(shares) if share < 0)
    assert turn >= 3
    assert shares[:3] == pytest.approx([0.05, 0.15, 0.25], rel=1e-3)
    assert shares[turn : turn + 2] == pytest.approx([-0.05, -0.15], rel=1e-3)


def test_pairs_that_contradict_one_another_change_nothing():
    def centres(contradict):
        response = probing(swing_buffer=100, probing_pairs=2)
        response.run(response.now + RTT // 2)
        begin, centre = response.now, response.controller.pacing_rate / MBPS

        # In the first pair more is worse, in the second one less is; an interval lasts an RTT.
        def gradient(mbps):
            first_pair = response.now - begin < 2 * RTT
            return 0.02 if (mbps > centre) == first_pair else 0.0

        if contradict:
            response.gradient = gradient
        return response.run(begin + 7 * RTT).centres()

    assert len(centres(contradict=False)) == 2
    assert len(centres(contradict=True)) == 1


def test_the_order_within_pairs_comes_from_the_flows_random_stream():
    def rates(seed):
        return probing(seed=seed).run(8 * SECOND).rates

    assert rates(1) == rates(1)
    assert len({tuple(rates(seed)) for seed in range(5)}) > 1


def test_a_sender_that_does_not_use_its_rate_keeps_it():
    response = probing()
    response.share_of_rate = 0.8
    response.run(response.now + SECOND)
    response.rates.clear()
    response.run(response.now + 5 * SECOND)
    assert len(response.centres()) == 1


def test_persistent_congestion_halves_the_rate():
    response = probing()
    response.run(response.now + SECOND)
    rate = (response.controller.window_bytes - 10 * DATAGRAM) / 2 / 0.1
    response.controller.on_persistent_congestion(response.now)
    assert response.controller.pacing_rate == pytest.approx(rate / 2, rel=1e-3)


def test_less_loss_at_the_higher_rate_is_measured_again_and_averaged():
    def after(rounds, lossy=8, **arguments):
        """The centres when the faster intervals have lost a fiftieth, and the slower ones more."""
        response = probing(**arguments)
        response.loss_period = lambda mbps: 50 if mbps > 61.44 else lossy
        return response.run(response.now + rounds * RTT).centres()

    assert len(after(5, double_check=0)) == 2
    assert len(after(5)) == 1
    assert after(8)[1] > after(8)[0]
    assert len(after(5, lossy=40)) == 2  # 5% are not lost in all


def test_the_window_leaves_room_for_twice_the_rate():
    response = probing().run(3 * SECOND)
    centre = response.centres()[-1]
    expected = 2 * centre * MBPS * 0.1 + 10 * DATAGRAM
    assert response.controller.window_bytes == pytest.approx(expected, rel=0.01)


def test_marks_count_as_losses():
    response = probing(swing_buffer=100)
    while len(response.centres()) < 2:
        response.run(response.now + RTT // 20)
        if response.controller.pacing_rate > 61.5 * MBPS:  # of each pair, only the faster one
            event = _core.EcnEvent()
            event.now = event.largest_acked_sent_time = response.now
            event.newly_marked_packets = 2
            response.controller.on_ecn(event)
    assert slope(response)[0] < 0
