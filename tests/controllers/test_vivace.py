"""Vivace, rule by rule: sections 3 and 4 of Dong et al.'s paper (NSDI 2018)."""

import heapq
import math
from collections.abc import Callable
from itertools import pairwise

import pytest
from helpers.ack_rounds import DATAGRAM, MILLISECOND, SECOND

from quicgym import _core

Mode = _core.ControllerMode
RTT = 100 * MILLISECOND
MBPS = 125_000.0


class Response:
    """A path of which a test says what it does at each rate; every packet has an ACK of its own.

    `gradient` is d RTT / d T of what is sent at a rate, `loss_period` loses every n-th packet.
    """

    def __init__(
        self,
        *,
        gradient: Callable[[float], float] = lambda mbps: 0.0,
        loss_period: Callable[[float], int] = lambda mbps: 0,
        share_of_rate: float = 1.0,
        seed: int = 1,
        **parameters: float,
    ):
        self.controller = _core.make_controller("vivace", parameters)
        self.gradient = gradient
        self.loss_period = loss_period
        self.share_of_rate = share_of_rate
        self.random = _core.Random(seed)
        self.now = SECOND
        self.acks: list[tuple[int, int, int]] = []
        self.next_send = self.now
        self.queueing = 0.0
        self.sent = 0
        self.rates: list[float] = []  # each pacing rate that was in force, in Mbps
        self._ack(0, RTT, 0)

    def run(self, until: int) -> "Response":
        while self.now < until:
            if self.acks and self.acks[0][0] <= self.next_send:
                self.now, sent_time, lost = heapq.heappop(self.acks)
                self._ack(sent_time, self.now - sent_time, lost)
            else:
                self.now = self.next_send
                self._send()
        return self

    def _send(self) -> None:
        mbps = self.controller.pacing_rate / MBPS
        if not self.rates or self.rates[-1] != mbps:
            self.rates.append(mbps)
        gap = DATAGRAM / self.controller.pacing_rate / self.share_of_rate * SECOND
        self.sent += 1
        period = self.loss_period(mbps)
        lost = period > 0 and self.sent % period == 0
        self.queueing = max(self.queueing + self.gradient(mbps) * gap, 0.0)
        heapq.heappush(self.acks, (self.now + RTT + round(self.queueing), self.now, lost))
        self.controller.on_packet_sent(self.now, DATAGRAM, DATAGRAM)
        self.next_send = self.now + round(gap)

    def _ack(self, sent_time: int, rtt: int, lost: int) -> None:
        if lost:
            packet = _core.LostPacket()
            packet.now, packet.sent_time, packet.size_bytes = self.now, sent_time, DATAGRAM
            self.controller.on_packet_lost(packet)
            return
        event = _core.AckEvent()
        event.now = self.now
        event.rtt, event.smoothed_rtt, event.min_rtt = rtt, RTT, RTT
        event.largest_acked_sent_time = sent_time
        event.newly_acked_bytes = DATAGRAM
        event.random = self.random
        self.controller.on_ack(event)

    @property
    def mode(self) -> _core.ControllerMode:
        return self.controller.snapshot.mode

    def centres(self) -> list[float]:
        """The rates around which pairs were measured, in Mbps: each is between its two."""
        found: list[float] = []
        for one, other in pairwise(self.rates):
            centre = (one + other) / 2
            if math.isclose(abs(one - other), 0.1 * centre, rel_tol=1e-6):
                if not found or not math.isclose(found[-1], centre, rel_tol=1e-9):
                    found.append(centre)
        return found


def probing(mbps: float = 100.0, **arguments) -> Response:
    """After the starting phase, at about this rate."""
    response = Response(**arguments)
    gradient, response.gradient = response.gradient, lambda rate: 1.0 if rate > mbps else 0.0
    while response.mode == Mode.slow_start:
        response.run(response.now + 1)
    response.queueing = 0.0
    response.gradient = gradient
    response.rates.clear()
    return response


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


def test_pairs_of_intervals_have_the_rates_r_times_1_plus_and_minus_epsilon():
    response = probing().run(4 * SECOND)
    centre = response.centres()[0]
    first = response.rates[:5]
    planned = {centre * 1.05, centre * 0.95}
    assert all(any(math.isclose(rate, one) for one in planned) for rate in first[:4])


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
        response = probing(swing_buffer=100)
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
    centre = response.centres()[-1]
    response.controller.on_persistent_congestion(response.now)
    assert response.controller.pacing_rate == pytest.approx(centre * MBPS / 2)


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
