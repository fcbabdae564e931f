"""A path of which a test says what it does at each rate, for controllers with monitor intervals."""

import heapq
from collections.abc import Callable

from helpers.ack_rounds import DATAGRAM, MILLISECOND, SECOND
from quicgym import _core

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
        name: str = "vivace",
        **parameters: float,
    ):
        self.controller = _core.make_controller(name, parameters)
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
        event.measured_rtt = rtt
        event.largest_acked_sent_time = sent_time
        event.newly_acked_bytes = DATAGRAM
        event.random = self.random
        self.controller.on_ack(event)

    @property
    def mode(self) -> _core.ControllerMode:
        return self.controller.snapshot.mode


def probing(mbps: float = 100.0, **arguments) -> Response:
    """After the starting phase, at about this rate."""
    response = Response(**arguments)
    gradient, response.gradient = response.gradient, lambda rate: 1.0 if rate > mbps else 0.0
    while response.mode == _core.ControllerMode.slow_start:
        response.run(response.now + 1)
    response.queueing = 0.0
    response.gradient = gradient
    response.rates.clear()
    return response
