"""Quicgym's parts for aioquic: a congestion controller, a pacer, and counters.

aioquic lets an application register a congestion controller. It is not told of the ACK Delay, it
cannot say at which rate it wants to pace, and nobody can be asked what waits to be sent. So this
file, and no other, uses what is private in aioquic: `_loss`, `_loss._pacer`,
`_loss.on_ack_received`, `_loss._rtt_smoothed`, `_streams`, the certificate of a configuration, and
the events of a log.
tests/test_aioquic.py fails where a version of aioquic has something else there.

Events reach a controller as quicgym/controller.h asks for them: of an ACK frame first what it
acknowledges, then what it shows to be lost. aioquic forgets packets that it declares lost or that
a probe timeout sends again. The adapter remembers them, to tell of a late acknowledgement.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from typing import Any

from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.congestion.base import QuicCongestionControl, register_congestion_control
from aioquic.quic.congestion.cubic import CubicCongestionControl
from aioquic.quic.congestion.reno import RenoCongestionControl
from aioquic.quic.connection import QuicConnection
from aioquic.quic.logger import QuicLogger, QuicLoggerTrace
from aioquic.quic.packet_builder import QuicSentPacket
from aioquic.tls import Epoch
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from quicgym.real.hosted_controller import HostedController

SERVER_NAME = "quicgym.invalid"
NAME = "quicgym"
"""Under which the next connection finds its controller."""
OWN = {"aioquic-reno": RenoCongestionControl, "aioquic-cubic": CubicCongestionControl}
CREDIT = 2_000_000
"""A pacer that is asked too late lets this much time's packets leave at once, in ns."""
PACKET_THRESHOLD = 3  # RFC 9002 6.1.1
REMEMBERED = 1024
"""Packet numbers behind the largest acknowledged one, of which a late acknowledgement counts."""


def nanoseconds(seconds: float) -> int:
    """Returns a time of aioquic's in ns."""
    return round(seconds * 1e9)


class Counts:
    """Counts a sender's packets of the application data space so far.

    `rtt` has time and RTT of every sample, both in ns. `probe_timeouts` are those that sent data
    again.
    """

    def __init__(self) -> None:
        """Nothing has happened."""
        self.delivered_bytes = self.lost_bytes = self.lost_packets = 0
        self.rtt: list[tuple[int, int]] = []
        self.probe_timeouts = self.persistent_congestion = 0


class _Counting:
    """In front of a controller's class: fills `counts`."""

    counts: Counts

    def on_packet_acked(self, *, now: float, packet: QuicSentPacket) -> None:
        if packet.epoch == Epoch.ONE_RTT:
            self.counts.delivered_bytes += packet.sent_bytes
        super().on_packet_acked(now=now, packet=packet)  # type: ignore[misc]

    def on_packets_expired(self, *, packets: Iterable[QuicSentPacket]) -> None:
        expired = list(packets)
        if any(packet.epoch == Epoch.ONE_RTT for packet in expired):
            self.counts.probe_timeouts += 1
        super().on_packets_expired(packets=expired)  # type: ignore[misc]

    def on_packets_lost(self, *, now: float, packets: Iterable[QuicSentPacket]) -> None:
        lost = list(packets)
        for packet in lost:
            if packet.epoch == Epoch.ONE_RTT:
                self.counts.lost_bytes += packet.sent_bytes
                self.counts.lost_packets += 1
        super().on_packets_lost(now=now, packets=lost)  # type: ignore[misc]

    def on_persistent_congestion(self) -> None:
        self.counts.persistent_congestion += 1
        super().on_persistent_congestion()  # type: ignore[misc]

    def on_rtt_measurement(self, *, now: float, rtt: float) -> None:
        self.counts.rtt.append((nanoseconds(now), nanoseconds(rtt)))
        super().on_rtt_measurement(now=now, rtt=rtt)  # type: ignore[misc]


class _Told(QuicCongestionControl):
    """Collects what aioquic says until the ACK frame is read, then tells the hosted controller."""

    def __init__(self, *, max_datagram_size: int) -> None:
        super().__init__(max_datagram_size=max_datagram_size)
        self._max_datagram_bytes = max_datagram_size
        self._handshake_rtt: int | None = None
        self._has_sent = False
        self._reading = False
        self._acked: list[int] = []
        self._lost: list[int] = []
        self._is_persistent = False
        self._gone: dict[int, int] = {}
        """Packets that aioquic has forgotten: number -> bytes that are in flight still, or 0."""
        self._largest = -1

    def host(self, controller: HostedController) -> None:
        self._controller = controller

    @property
    def congestion_window(self) -> int:
        """Room for whole datagrams only: aioquic would fill the rest with a small one."""
        room = self._controller.window_bytes - self.bytes_in_flight
        whole = max(room, 0) // self._max_datagram_bytes * self._max_datagram_bytes
        return self.bytes_in_flight + whole

    @congestion_window.setter
    def congestion_window(self, value: int) -> None:
        pass  # the base class's

    # aioquic calls the following methods.

    def on_packet_sent(self, *, packet: QuicSentPacket) -> None:
        self.bytes_in_flight += packet.sent_bytes
        if packet.epoch != Epoch.ONE_RTT or not packet.is_ack_eliciting:
            return
        now = nanoseconds(packet.sent_time or 0.0)
        if not self._has_sent and self._handshake_rtt is not None:
            self._controller.on_handshake(now, self._handshake_rtt)
        self._has_sent = True
        self._controller.on_sent(now, packet.packet_number, packet.sent_bytes)

    def on_packet_acked(self, *, now: float, packet: QuicSentPacket) -> None:
        self.bytes_in_flight -= packet.sent_bytes
        if packet.epoch == Epoch.ONE_RTT and packet.is_ack_eliciting:
            self._acked.append(packet.packet_number)

    def on_packets_expired(self, *, packets: Iterable[QuicSentPacket]) -> None:
        # RFC 9002 6.2.4: a probe timeout declares nothing lost, so they stay in flight.
        for packet in packets:
            if packet.epoch == Epoch.ONE_RTT and packet.is_ack_eliciting:
                self._gone[packet.packet_number] = packet.sent_bytes
            else:
                self.bytes_in_flight -= packet.sent_bytes

    def on_packets_lost(self, *, now: float, packets: Iterable[QuicSentPacket]) -> None:
        for packet in packets:
            self.bytes_in_flight -= packet.sent_bytes
            if packet.epoch == Epoch.ONE_RTT and packet.is_ack_eliciting:
                self._lost.append(packet.packet_number)
                self._gone[packet.packet_number] = 0
        if not self._reading:
            self._tell(nanoseconds(now), 0)

    def on_persistent_congestion(self) -> None:
        self._is_persistent = True

    def on_rtt_measurement(self, *, now: float, rtt: float) -> None:
        if self._handshake_rtt is None:
            self._handshake_rtt = nanoseconds(rtt)

    # Around an ACK frame of the application data space.

    def begin_ack(self, ranges: Any) -> None:
        self._reading = True
        if not self._gone:
            return
        self._largest = max(self._largest, ranges.bounds().stop - 1)
        for number in list(self._gone):
            if number in ranges:
                self._acked.append(number)
                self.bytes_in_flight -= self._gone.pop(number)
            elif self._gone[number] > 0 and number <= self._largest - PACKET_THRESHOLD:
                self._lost.append(number)
                self.bytes_in_flight -= self._gone[number]
                self._gone[number] = 0
            elif number < self._largest - REMEMBERED:
                self.bytes_in_flight -= self._gone.pop(number)

    def end_ack(self, now: float, ack_delay: float) -> None:
        self._reading = False
        self._tell(nanoseconds(now), nanoseconds(ack_delay))

    def _tell(self, now: int, ack_delay: int) -> None:
        if self._acked:
            self._controller.on_ack(now, ack_delay, sorted(self._acked))
            self._acked.clear()
        if self._lost:
            self._controller.on_loss(now, sorted(self._lost))
            self._lost.clear()
        if self._is_persistent:
            self._controller.on_persistent_congestion(now)
            self._is_persistent = False


class Pacer:
    """In place of aioquic's: leaves the time between packets that the controller asks for.

    Who waited for the pacer and was woken late gets up to CREDIT of the time back; who waited for
    the window does not.
    """

    def __init__(self, controller: HostedController, max_datagram_bytes: int) -> None:
        """The first packet may leave at once."""
        self._controller = controller
        self._max_datagram_bytes = max_datagram_bytes
        self._next = 0
        self._has_credit = False
        self._may_send = False

    def next_send_time(self, now: float) -> float | None:
        """Returns when the next packet may leave; None: now."""
        if nanoseconds(now) < self._next:
            self._has_credit = True
            self._may_send = False
            return self._next * 1e-9
        if self._may_send:  # it might have, and something else held it back
            self._has_credit = False
        self._may_send = True
        return None

    def update_after_send(self, now: float) -> None:
        """A packet was put together."""
        sent = nanoseconds(now)
        earliest = sent - CREDIT if self._has_credit else sent
        rate = self._controller.pacing_rate
        gap = round(self._max_datagram_bytes / rate * 1e9) if rate > 0 else 0
        self._next = max(self._next, earliest) + gap
        self._may_send = False

    def update_rate(self, congestion_window: int, smoothed_rtt: float) -> None:
        """Aioquic's own idea of the rate, which does not matter."""


class Log(QuicLogger):
    """The qlog of one end, with the run's clock, `now_s` in s, in place of the time of day."""

    def __init__(self) -> None:
        """Nothing has happened."""
        super().__init__()
        self.now_s = 0.0

    def start_trace(self, is_client: bool, odcid: bytes) -> QuicLoggerTrace:
        """Returns what the connection writes to."""
        trace = _Trace(self, is_client=is_client, odcid=odcid)
        self._traces.append(trace)
        return trace

    def events(self) -> list[dict[str, Any]]:
        """Returns the connection's events, as quicgym.envs.simulation.qlog writes them."""
        events: list[dict[str, Any]] = self.to_dict()["traces"][0]["events"]
        for event in events:
            if "cwnd" in event["data"]:  # aioquic's name of an earlier draft
                event["data"]["congestion_window"] = event["data"].pop("cwnd")
        return events


class _Trace(QuicLoggerTrace):
    def __init__(self, log: Log, *, is_client: bool, odcid: bytes) -> None:
        super().__init__(is_client=is_client, odcid=odcid)
        self._log = log

    def log_event(self, *, category: str, event: str, data: dict[str, Any]) -> None:
        super().log_event(category=category, event=event, data=data)
        self._events[-1]["time"] = self.encode_time(self._log.now_s)


class SteeredSender:
    """The client's connection of a flow, with what steers it and what it has counted."""

    def __init__(
        self,
        configuration: QuicConfiguration,
        steering_name: str,
        controller: HostedController | None,
    ) -> None:
        """Makes the connection; without a controller one of OWN, aioquic's, steers it."""
        self.counts = Counts()
        self._controller = controller
        kind = _Told if controller is not None else OWN[steering_name]
        made: list[Any] = []

        def factory(*, max_datagram_size: int) -> QuicCongestionControl:
            algorithm: Any = type("Counting", (_Counting, kind), {})(
                max_datagram_size=max_datagram_size
            )
            algorithm.counts = self.counts
            if controller is not None:
                algorithm.host(controller)
            made.append(algorithm)
            return algorithm

        register_congestion_control(NAME, factory)
        configuration.congestion_control_algorithm = NAME
        self.connection = QuicConnection(configuration=configuration)
        (self._algorithm,) = made
        if controller is not None:
            loss = self.connection._loss
            loss._pacer = Pacer(  # type: ignore[assignment]
                controller, configuration.max_datagram_size
            )
            self._wrap_ack(loss)

    def _wrap_ack(self, loss: Any) -> None:
        """Shows the controller where an ACK frame begins and ends, and its ACK Delay."""
        original, algorithm = loss.on_ack_received, self._algorithm

        def on_ack_received(*, ack_rangeset: Any, ack_delay: float, now: float, space: Any) -> None:
            told: dict[str, Any] = {
                "ack_rangeset": ack_rangeset,
                "ack_delay": ack_delay,
                "now": now,
                "space": space,
            }
            if not space.is_application_data:
                original(**told)
                return
            algorithm.begin_ack(ack_rangeset)
            try:
                original(**told)
            finally:
                algorithm.end_ack(now, ack_delay)

        loss.on_ack_received = on_ack_received

    def unsent_bytes(self, stream: int) -> int:
        """Returns what a stream was given and has not sent for the first time yet."""
        entry = self.connection._streams.get(stream)
        if entry is None:  # the peer has all of it
            return 0
        return int(entry.sender._buffer_stop - entry.sender.highest_offset)

    def is_flow_blocked(self, stream: int) -> bool:
        """Returns whether the peer's flow control lets no further byte of a stream leave."""
        connection, entry = self.connection, self.connection._streams.get(stream)
        if entry is None or not connection._handshake_complete:
            return False
        of_connection = connection._remote_max_data - connection._remote_max_data_used
        of_stream = entry.max_stream_data_remote - entry.sender.highest_offset
        return bool(min(of_connection, of_stream) <= 0)

    @property
    def in_flight_bytes(self) -> int:
        """Bytes in flight that count against the window."""
        return int(self._algorithm.bytes_in_flight)

    @property
    def window_bytes(self) -> int:
        """The controller's."""
        if self._controller is not None:
            return self._controller.window_bytes
        return int(self._algorithm.congestion_window)

    @property
    def pacing_rate(self) -> float:
        """In bytes per second; of aioquic's own controllers the window over the smoothed RTT."""
        if self._controller is not None:
            return self._controller.pacing_rate
        smoothed = self.connection._loss._rtt_smoothed
        return self.window_bytes / smoothed if smoothed > 0 else 0.0

    @property
    def smoothed_rtt(self) -> int:
        """In ns; 0 before the first sample."""
        return nanoseconds(self.connection._loss._rtt_smoothed)


def make_configurations(
    max_datagram_bytes: int, flow_control_window_bytes: int, idle_timeout_s: float
) -> tuple[QuicConfiguration, QuicConfiguration]:
    """Returns a client's and a server's configuration with a certificate of their own.

    Key and certificate are made in memory, for this connection alone. Of Ed25519 every signature
    has the same size, so that two runs have packets of the same sizes.
    """
    key = Ed25519PrivateKey.generate()
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, SERVER_NAME)])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(SERVER_NAME)]), critical=False)
        .sign(key, None)
    )
    common: dict[str, Any] = {
        "alpn_protocols": ["quicgym"],
        "max_datagram_size": max_datagram_bytes,
        "max_data": flow_control_window_bytes,
        "max_stream_data": flow_control_window_bytes,
        "idle_timeout": idle_timeout_s,
    }
    client = QuicConfiguration(is_client=True, server_name=SERVER_NAME, **common)
    client.load_verify_locations(cadata=certificate.public_bytes(Encoding.PEM))
    server = QuicConfiguration(is_client=False, **common)
    server.certificate, server.private_key = certificate, key
    return client, server
