"""A deterministic sender, path and receiver around one controller, with scripted losses.

Two tools for tests of controllers, neither of which needs an engine: `Driver` hands a controller
single events whose every field the test chooses; `AckRounds` lets a controller send packets over
one bottleneck and does what a QUIC sender does around it: pacing, in-flight accounting, rounds,
delivery-rate samples and packet-threshold loss detection. Times are ns, sizes bytes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from quicgym import _core

MILLISECOND = 1_000_000
SECOND = 1_000_000_000
DATAGRAM = 1200


def filled(event: Any, **fields: Any) -> Any:
    """Returns the event with these fields."""
    for name, value in fields.items():
        setattr(event, name, value)
    return event


class Driver:
    """Feeds a controller single events and keeps the running totals that they carry."""

    def __init__(self, controller: _core.Controller, rtt: int = 100 * MILLISECOND, seed: int = 1):
        self.controller = controller
        self.random = _core.Random(seed)
        self.rtt = rtt
        self.now = SECOND
        self.delivered = 0
        self.blocked = 0

    def ack(
        self,
        acked: int = 2 * DATAGRAM,
        *,
        after: int = 0,
        rtt: int | None = None,
        measured_rtt: int | None = None,
        min_rtt: int | None = None,
        rate: float = 0.0,
        rate_limited: bool = False,
        since_sent: int | None = None,
        lost_since_sent: int = 0,
        in_flight_at_send: int = 0,
        sent_time: int | None = None,
        in_flight: int = 0,
        prior_in_flight: int | None = None,
        lost: int = 0,
        app_limited: bool = False,
        round_start: bool = False,
        blocked: int = 0,
        unsent: int = 0,
    ) -> None:
        """One ACK frame, `after` ns later than the event before it.

        `since_sent`, `lost_since_sent` and `in_flight_at_send` are of the rate sample's packet,
        which by default left just before this frame's bytes were delivered.
        """
        self.now += after
        self.delivered += acked
        rtt = self.rtt if rtt is None else rtt
        self.blocked += blocked
        before = in_flight + acked + lost if prior_in_flight is None else prior_in_flight
        event = filled(
            _core.AckEvent(), now=self.now, rtt=rtt, smoothed_rtt=rtt,
            measured_rtt=rtt if measured_rtt is None else measured_rtt,
            min_rtt=rtt if min_rtt is None else min_rtt,
            largest_acked_sent_time=self.now - rtt if sent_time is None else sent_time,
            delivered_bytes=self.delivered, newly_acked_bytes=acked,
            newly_acked_packets=-(-acked // DATAGRAM), newly_lost_bytes=lost,
            in_flight_bytes=in_flight, prior_in_flight_bytes=before, app_limited=app_limited,
            no_unsent_data=app_limited, round_start=round_start, blocked_events=self.blocked,
            unsent_bytes=unsent,
            random=self.random,
        )  # fmt: skip
        filled(
            event.sample, delivery_rate=rate, interval=rtt, app_limited=rate_limited,
            delivered_bytes=acked if since_sent is None else since_sent,
            lost_bytes=lost_since_sent, in_flight_at_send_bytes=in_flight_at_send,
        )  # fmt: skip
        self.controller.on_ack(event)

    def loss(
        self,
        lost: int = DATAGRAM,
        *,
        after: int = 0,
        sent_time: int | None = None,
        in_flight: int = 0,
    ) -> None:
        """Packets declared lost; by default they left one round-trip time ago."""
        self.now += after
        sent = self.now - self.rtt if sent_time is None else sent_time
        event = filled(
            _core.LossEvent(), now=self.now, largest_lost_sent_time=sent, lost_bytes=lost,
            lost_packets=max(1, lost // DATAGRAM), in_flight_bytes=in_flight,
        )  # fmt: skip
        self.controller.on_loss(event)

    def packet_lost(
        self,
        number: int,
        *,
        after: int = 0,
        size: int = DATAGRAM,
        sent_time: int | None = None,
        in_flight_at_send: int = 0,
        lost_since_sent: int | None = None,
        app_limited: bool = False,
    ) -> None:
        """One packet declared lost, as it comes before the loss event of all of them."""
        self.now += after
        packet = filled(
            _core.LostPacket(), now=self.now, packet_number=number, size_bytes=size,
            sent_time=self.now - self.rtt if sent_time is None else sent_time,
            in_flight_at_send_bytes=in_flight_at_send, delivered_bytes=self.delivered,
            lost_since_sent_bytes=size if lost_since_sent is None else lost_since_sent,
            app_limited=app_limited,
        )  # fmt: skip
        self.controller.on_packet_lost(packet)

    def ecn(self, marked: int = 1, *, after: int = 0, sent_time: int | None = None) -> None:
        """An increase of the peer's ECN-CE count."""
        self.now += after
        sent = self.now - self.rtt if sent_time is None else sent_time
        fields = {"largest_acked_sent_time": sent, "newly_marked_packets": marked}
        self.controller.on_ecn(filled(_core.EcnEvent(), now=self.now, **fields))

    @property
    def window(self) -> int:
        return self.controller.window_bytes

    @property
    def mode(self) -> _core.ControllerMode:
        return self.controller.snapshot.mode


@dataclass(frozen=True)
class Path:
    """One bottleneck: bytes per second, round-trip time without queue, queue length."""

    rate: float
    base_rtt: int
    queue_packets: int = 10_000

    @property
    def bdp(self) -> float:
        return self.rate * self.base_rtt * 1e-9


@dataclass
class _Packet:
    number: int
    sent_time: int
    delivered: int
    delivered_time: int
    first_sent_time: int
    app_limited: bool
    lost: int
    in_flight: int
    arrival: int | None  # None: the path loses it


@dataclass(frozen=True)
class Row:
    """The state after one ACK frame."""

    now: int
    rtt: int
    round: int
    in_flight: int
    delivered: int
    lost: int
    snapshot: _core.ControllerSnapshot

    @property
    def window(self) -> int:
        return self.snapshot.window_bytes


class AckRounds:
    """One flow over one bottleneck; the receiver acknowledges every second packet.

    Args:
        controller: The controller under test.
        path: The bottleneck.
        lose: Says of each packet number whether the path loses it, besides a full queue.
        application_rate: Bytes per second that the application writes; None: always more.
    """

    ACK_DELAY = 25 * MILLISECOND
    PACKET_THRESHOLD = 3

    def __init__(
        self,
        controller: _core.Controller,
        path: Path,
        *,
        lose: Callable[[int], bool] = lambda number: False,
        application_rate: float | None = None,
        seed: int = 1,
    ):
        self.controller = controller
        self.path = path
        self.lose = lose
        self.application_rate = application_rate
        self.random = _core.Random(seed)
        self.now = 0
        self.rows: list[Row] = []
        self.sent = 0
        self.delivered = 0
        self.lost = 0
        self.in_flight = 0
        self._outstanding: deque[_Packet] = deque()
        self._arriving: deque[_Packet] = deque()
        self._departures: deque[int] = deque()  # of what is in the queue or on the wire
        self._link_free = 0
        self._next_send = 0
        self._smoothed_rtt = 0
        self._min_rtt = 0
        self._delivered_time = 0
        self._first_sent_time = 0
        self._app_limited_until = 0
        self._next_round_delivered = 0
        self._round = 0

    def run(self, until: int) -> AckRounds:
        """Runs up to `until`."""
        while True:
            send, ack = self._send_time(), self._ack_time()
            if min(send, ack) > until:
                self.now = until
                return self
            if send <= ack:
                self.now = send
                self._send()
            elif self._arriving:
                self.now = ack
                self._ack()
            else:  # everything in flight is lost: the probe timeout finds out
                self.now = ack
                self._declare_lost(list(self._outstanding))

    def _has_data(self) -> bool:
        rate = self.application_rate
        return rate is None or self.sent * DATAGRAM + DATAGRAM <= rate * self.now * 1e-9

    def _send_time(self) -> int:
        if self.in_flight + DATAGRAM > self.controller.window_bytes:
            return 1 << 62
        time = max(self.now, self._next_send)
        if self.application_rate is not None:
            due = int((self.sent + 1) * DATAGRAM / self.application_rate * 1e9) + 1
            time = max(time, due)
        return time

    def _ack_time(self) -> int:
        if len(self._arriving) >= 2:
            return self._arriving[1].arrival
        if self._arriving:
            return self._arriving[0].arrival + self.ACK_DELAY
        return self.now + 3 * self.path.base_rtt if self._outstanding else 1 << 62

    def _send(self) -> None:
        if self.in_flight == 0:
            self._first_sent_time = self._delivered_time = self.now
        while self._departures and self._departures[0] <= self.now:
            self._departures.popleft()
        arrival = None
        if len(self._departures) <= self.path.queue_packets and not self.lose(self.sent):
            self._link_free = max(self.now, self._link_free) + round(
                DATAGRAM / self.path.rate * 1e9
            )
            self._departures.append(self._link_free)
            arrival = self._link_free + self.path.base_rtt
        packet = _Packet(
            self.sent, self.now, self.delivered, self._delivered_time, self._first_sent_time,
            self._app_limited_until > 0, self.lost, self.in_flight + DATAGRAM, arrival,
        )  # fmt: skip
        self._outstanding.append(packet)
        if arrival is not None:
            self._arriving.append(packet)
        self.sent += 1
        self.in_flight += DATAGRAM
        self._next_send = max(self.now, self._next_send) + int(
            DATAGRAM / self.controller.pacing_rate * 1e9
        )
        self.controller.on_packet_sent(self.now, DATAGRAM, self.in_flight)
        if self.application_rate is not None and not self._has_data():
            if self.in_flight + DATAGRAM <= self.controller.window_bytes:
                self._app_limited_until = self.delivered + self.in_flight

    def _declare_lost(self, packets: list[_Packet]) -> int:
        if not packets:
            return 0
        for packet in packets:
            self._outstanding.remove(packet)
            self.lost += DATAGRAM
            self.in_flight -= DATAGRAM
            self._tell_lost(packet)
        lost = len(packets) * DATAGRAM
        event = filled(
            _core.LossEvent(), now=self.now, largest_lost_sent_time=packets[-1].sent_time,
            lost_bytes=lost, lost_packets=len(packets), in_flight_bytes=self.in_flight,
        )  # fmt: skip
        self.controller.on_loss(event)
        return lost

    def _tell_lost(self, packet: _Packet) -> None:
        event = filled(
            _core.LostPacket(), now=self.now, sent_time=packet.sent_time,
            packet_number=packet.number, size_bytes=DATAGRAM,
            in_flight_at_send_bytes=packet.in_flight, delivered_bytes=self.delivered,
            lost_since_sent_bytes=self.lost - packet.lost, app_limited=packet.app_limited,
        )  # fmt: skip
        self.controller.on_packet_lost(event)

    def _ack(self) -> None:
        packets = [self._arriving.popleft() for _ in range(min(2, len(self._arriving)))]
        packets = [packet for packet in packets if packet.arrival <= self.now]
        largest = packets[-1]
        prior_in_flight = self.in_flight
        for packet in packets:
            self._outstanding.remove(packet)
            self.in_flight -= DATAGRAM
            self.delivered += DATAGRAM
        self._delivered_time = self.now
        self._first_sent_time = largest.sent_time
        lost = self._declare_lost(
            [
                packet
                for packet in self._outstanding
                if packet.number + self.PACKET_THRESHOLD <= largest.number
            ]
        )
        if self._app_limited_until and self.delivered > self._app_limited_until:
            self._app_limited_until = 0
        rtt = largest.arrival - largest.sent_time
        self._min_rtt = min(self._min_rtt or rtt, rtt)
        self._smoothed_rtt = (7 * self._smoothed_rtt + rtt) // 8 if self._smoothed_rtt else rtt

        event = filled(
            _core.AckEvent(), now=self.now, rtt=rtt, measured_rtt=rtt,
            smoothed_rtt=self._smoothed_rtt, min_rtt=self._min_rtt,
            largest_acked_sent_time=largest.sent_time,
            delivered_bytes=self.delivered, newly_acked_bytes=len(packets) * DATAGRAM,
            newly_acked_packets=len(packets), newly_lost_bytes=lost,
            prior_in_flight_bytes=prior_in_flight, in_flight_bytes=self.in_flight,
            app_limited=not self._has_data(), random=self.random,
            round_start=largest.delivered >= self._next_round_delivered,
        )  # fmt: skip
        interval = max(
            largest.sent_time - largest.first_sent_time, self.now - largest.delivered_time
        )
        delivered = self.delivered - largest.delivered
        filled(
            event.sample, delivered_bytes=delivered, lost_bytes=self.lost - largest.lost,
            in_flight_at_send_bytes=largest.in_flight,
        )  # fmt: skip
        if interval >= self._min_rtt:
            rate = delivered / (interval * 1e-9)
            limited = largest.app_limited
            filled(event.sample, delivery_rate=rate, interval=interval, app_limited=limited)
        if event.round_start:
            self._next_round_delivered = self.delivered
            self._round += 1
        self.controller.on_ack(event)
        assert self.in_flight == DATAGRAM * len(self._outstanding)
        totals = (self.in_flight, self.delivered, self.lost)
        self.rows.append(Row(self.now, rtt, self._round, *totals, self.controller.snapshot))

    def throughput(self, start: int, end: int) -> float:
        """Delivered bytes per second between two times."""
        inside = [row for row in self.rows if start <= row.now <= end]
        return (inside[-1].delivered - inside[0].delivered) / (
            (inside[-1].now - inside[0].now) * 1e-9
        )
