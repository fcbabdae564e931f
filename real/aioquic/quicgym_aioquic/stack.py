"""The stack `aioquic`: QUIC and TLS 1.3 in Python, in virtual time or over UDP sockets."""

from __future__ import annotations

import contextlib
import heapq
import os
import select
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.connection import QuicConnection
from aioquic.quic.events import ConnectionTerminated, StreamDataReceived

from quicgym import _core
from quicgym.envs.scenarios.fields import LINK_HEADER_BYTES
from quicgym.envs.simulation.qlog import log_path, write_log
from quicgym.real.content import Comparison, content
from quicgym.real.hosted_controller import HostedController
from quicgym.real.relay import Relay
from quicgym.real.stacks import (
    NEVER,
    ROW_DTYPE,
    Clock,
    FlowPlan,
    FlowRecord,
    Progress,
    StackError,
)
from quicgym_aioquic.adapter import Log, SteeredSender, make_configurations

SECOND = 1_000_000_000
UNSENT_BYTES = 1 << 16
"""A sender's stream is filled up when it has less than this to send."""
ENDLESS_BYTES = 1 << 40
"""If there is always more to send, controllers are told that so many bytes wait."""
IDLE_S = 60.0
FORWARD, BACKWARD = _core.DataDirection.forward, _core.DataDirection.backward
PEER = ("127.0.0.1", 1)
"""The address that an endpoint thinks its peer has; there is one peer only."""


class Endpoint:
    """One end of a connection; times in ns."""

    def __init__(self, name: str, connection: QuicConnection) -> None:
        """Waits to be told something."""
        self.name = name
        self.connection = connection
        self.timeout = NEVER
        self.log: Log | None = connection.configuration.quic_logger  # type: ignore[assignment]

    def receive(self, now: int, datagram: bytes) -> None:
        """Reads a datagram."""
        self._note(now)
        self.connection.receive_datagram(datagram, PEER, now * 1e-9)
        self._read_events()

    def expire(self, now: int) -> None:
        """Handles the timer that is due."""
        self._note(now)
        seconds = now * 1e-9
        timer = self.connection.get_timer()
        if timer is not None and 0.0 < timer - seconds < 1e-9:
            seconds = timer  # not before it, whatever a float makes of the time
        self.connection.handle_timer(seconds)
        self._read_events()

    def datagrams(self, now: int) -> Iterator[bytes]:
        """Yields what is to be sent now, and sets the timer."""
        self._note(now)
        for datagram, _ in self.connection.datagrams_to_send(now * 1e-9):
            yield datagram
        timer = self.connection.get_timer()
        # A timer in the past is one that a float has rounded: it is due in a nanosecond.
        self.timeout = NEVER if timer is None else max(int(np.ceil(timer * 1e9)), now + 1)

    def _note(self, now: int) -> None:
        if self.log is not None:
            self.log.now_s = now * 1e-9

    def _read_events(self) -> None:
        while (event := self.connection.next_event()) is not None:
            if isinstance(event, ConnectionTerminated):
                reason = event.reason_phrase or f"error code {event.error_code:#x}"
                raise StackError(f"{self.name}: the connection has ended: {reason}")
            if isinstance(event, StreamDataReceived):
                self.on_data(event.data)

    def on_data(self, data: bytes) -> None:
        """Stream bytes have arrived, in order."""
        raise StackError(f"{self.name}: got {len(data)} bytes, and nothing was to be sent there")


class Sender(Endpoint):
    """The client, which has a file or endless data to send."""

    def __init__(self, name: str, plan: FlowPlan, client: object) -> None:
        """Makes connection and controller; the first decision is due at once."""
        assert isinstance(client, QuicConfiguration)
        self.plan = plan
        steering = plan.steering
        self.controller = None
        if steering.kind != "own":
            self.controller = HostedController(
                steering, plan.max_datagram_bytes, plan.seed, plan.start
            )
        self.steered = SteeredSender(client, steering.name, self.controller)
        super().__init__(name, self.steered.connection)
        self.timeout = min(plan.start, plan.stop)
        self.has_started = self.is_done = False
        self.written_bytes = 0
        self.next_decision = plan.start if steering.kind == "policy" else NEVER
        self.decision_lateness: list[int] = []
        self.rows: list[tuple[float, ...]] = []

    def expire(self, now: int) -> None:
        """Connects at the start; sends nothing more after the stop."""
        if not self.has_started:
            self.has_started = True
            self._note(now)
            self.connection.connect(PEER, now * 1e-9)
            self.stream = self.connection.get_next_available_stream_id(is_unidirectional=True)
            self._write()
        else:
            super().expire(now)

    def datagrams(self, now: int) -> Iterator[bytes]:
        """Fills the stream up and sends what may leave."""
        if not self.has_started:
            return
        if now >= self.plan.stop:
            self.timeout = NEVER
            return
        while True:
            self._write()
            sent = False
            for datagram in super().datagrams(now):
                sent = True
                yield datagram
            # All that had been written has left: there may be room for more at once.
            if not sent or self.is_done or self._unsent_bytes() > 0:
                break
        self._tell_application(now)

    def decide(self, due: int, now: int) -> None:
        """Lets the policy decide, which should have been at `due`."""
        assert self.controller is not None
        self.decision_lateness.append(now - due)
        self.next_decision = self.controller.decide(now)
        self.timeout = min(self.timeout, now)  # window and rate are others

    def _unsent_bytes(self) -> int:
        return self.steered.unsent_bytes(self.stream)

    def _write(self) -> None:
        size = self.plan.size_bytes
        while not self.is_done and (not self.written_bytes or self._unsent_bytes() < UNSENT_BYTES):
            part = UNSENT_BYTES if size is None else min(UNSENT_BYTES, size - self.written_bytes)
            data = bytes(content(self.written_bytes, part))
            self.written_bytes += part
            self.is_done = self.written_bytes == size
            self.connection.send_stream_data(self.stream, data, end_stream=self.is_done)

    def _tell_application(self, now: int) -> None:
        if self.controller is None:
            return
        size = self.plan.size_bytes
        unsent = ENDLESS_BYTES if size is None else size - self.written_bytes + self._unsent_bytes()
        self.controller.set_application(unsent, 0)
        room = self.controller.window_bytes - self.steered.in_flight_bytes
        if room < self.plan.max_datagram_bytes:
            return
        if unsent == 0:
            self.controller.on_app_limited(now)
        elif self.steered.is_flow_blocked(self.stream):
            self.controller.on_window_unused(now)

    def take_row(self, time_ns: int, goodput_bytes: int) -> None:
        """Adds a row to the series."""
        steered, counts = self.steered, self.steered.counts
        mode = 0 if self.controller is None else self.controller.snapshot().mode
        self.rows.append(
            (
                time_ns,
                steered.window_bytes,
                steered.pacing_rate,
                steered.smoothed_rtt,
                steered.in_flight_bytes,
                counts.delivered_bytes,
                counts.lost_bytes,
                counts.lost_packets,
                goodput_bytes,
                mode,
            )
        )


class Receiver(Endpoint):
    """The server, which compares what it gets."""

    def __init__(self, name: str, plan: FlowPlan, connection: QuicConnection) -> None:
        """Waits for the client."""
        super().__init__(name, connection)
        self.plan = plan
        self.comparison = Comparison()
        self.completion = NEVER
        self._now = 0

    def receive(self, now: int, datagram: bytes) -> None:
        """Reads a datagram."""
        self._now = now
        super().receive(now, datagram)

    def on_data(self, data: bytes) -> None:
        """Compares."""
        if not self.comparison.add(data):
            raise StackError(
                f"{self.name}: a byte after the first {self.comparison.compared_bytes} differs "
                "from what was sent"
            )
        if self.comparison.compared_bytes == self.plan.size_bytes:
            self.completion = self._now


class Pair:
    """Both ends of a flow."""

    def __init__(self, path: int, plan: FlowPlan, has_logs: bool) -> None:
        """Makes the connections with keys of their own."""
        client, server = make_configurations(
            plan.max_datagram_bytes, plan.flow_control_window_bytes, IDLE_S
        )
        if has_logs:
            client.quic_logger, server.quic_logger = Log(), Log()
        self.plan = plan
        self.sender = Sender(f"the sender of flow {path + 1}", plan, client)
        identity = self.sender.connection.original_destination_connection_id
        self.receiver = Receiver(
            f"the receiver of flow {path + 1}",
            plan,
            QuicConnection(configuration=server, original_destination_connection_id=identity),
        )

    @property
    def ends(self) -> tuple[tuple[Endpoint, _core.DataDirection], ...]:
        """The two endpoints, each with the way that its datagrams take; the receiver first."""
        return (self.receiver, BACKWARD), (self.sender, FORWARD)

    def record(self) -> FlowRecord:
        """Returns what was measured."""
        counts = self.sender.steered.counts
        return FlowRecord(
            rows=np.array(self.sender.rows, ROW_DTYPE),
            rtt=np.array(counts.rtt, np.int64).reshape(-1, 2),
            completion=self.receiver.completion,
            compared_bytes=self.receiver.comparison.compared_bytes,
            decision_lateness=np.array(self.sender.decision_lateness, np.int64),
            probe_timeouts=counts.probe_timeouts,
            persistent_congestion=counts.persistent_congestion,
        )


class Run:
    """Common base of both clocks: rows, decisions, progress and the deadline."""

    def __init__(
        self,
        flows: Sequence[FlowPlan],
        duration: int,
        interval: int,
        progress: Progress,
        deadline_s: float,
        qlog: Path | None,
    ) -> None:
        """Makes the endpoints; nothing has been sent."""
        self.pairs = [Pair(path, plan, qlog is not None) for path, plan in enumerate(flows)]
        self._qlog = qlog
        self.duration, self.interval = duration, interval
        self._progress, self._deadline_s = progress, deadline_s
        self._deadline = time.monotonic() + deadline_s
        self.next_row = 0
        self._next_progress = SECOND

    def next_own(self) -> int:
        """Returns when a row or a decision is due."""
        return min(self.next_row, *(pair.sender.next_decision for pair in self.pairs))

    def do_own(self, now: int) -> None:
        """Takes rows and decisions that are due, and looks at the deadline."""
        for pair in self.pairs:
            if pair.sender.next_decision <= now:
                pair.sender.decide(pair.sender.next_decision, now)
        while self.next_row <= min(now, self.duration):
            for pair in self.pairs:
                pair.sender.take_row(self.next_row, pair.receiver.comparison.compared_bytes)
            self.next_row += self.interval
        if time.monotonic() > self._deadline:
            raise StackError(
                f"the deadline of {self._deadline_s:g} s has passed, {now / SECOND:.2f} s after "
                "the run's beginning"
            )
        if now >= self._next_progress:
            self._next_progress = now - now % SECOND + SECOND
            self._progress(
                now,
                [pair.receiver.comparison.compared_bytes for pair in self.pairs],
                [pair.sender.steered.smoothed_rtt for pair in self.pairs],
            )

    def write_logs(self, source: str) -> None:
        """Writes the qlog of each end where the user asks for it."""
        for path, pair in enumerate(self.pairs):
            for end, side in ((pair.sender, "sender"), (pair.receiver, "receiver")):
                if self._qlog is not None and end.log is not None:
                    write_log(log_path(self._qlog, path, side), end.log.events(), side, source)

    def records(self) -> list[FlowRecord]:
        """Returns what was measured of every flow."""
        return [pair.record() for pair in self.pairs]


def run_virtual(run: Run, network: _core.EmulatedNetwork) -> None:
    """Runs the endpoints over an emulated network: time jumps from event to event."""
    arriving: list[tuple[int, int, int, bool]] = []
    on_their_way: dict[int, bytes] = {}
    lookahead = network.lookahead
    number = 0
    while True:
        host = min(
            run.next_own(),
            *(end.timeout for pair in run.pairs for end, _ in pair.ends),
            *([arriving[0][0]] if arriving else []),
        )
        # Packets that are sent from then on reach no queue earlier.
        for packet, at, fate, path, way, _ in network.advance(min(host, run.duration) + lookahead):
            if fate == _core.Fate.delivered:
                heapq.heappush(arriving, (at, packet, path, way == FORWARD))
            else:
                del on_their_way[packet]
        now = min(host, arriving[0][0]) if arriving else host
        if now > run.duration:
            return
        if run.next_own() <= now:
            run.do_own(now)
        touched: dict[tuple[int, bool], None] = {}
        while arriving and arriving[0][0] <= now:
            _, packet, path, is_forward = heapq.heappop(arriving)
            pair = run.pairs[path]
            end: Endpoint = pair.receiver if is_forward else pair.sender
            end.receive(now, on_their_way.pop(packet))
            touched[path, is_forward] = None
        for path, pair in enumerate(run.pairs):
            for end, way in pair.ends:
                if end.timeout <= now:
                    end.expire(now)
                elif (path, way == BACKWARD) not in touched:
                    continue
                for datagram in end.datagrams(now):
                    on_their_way[number] = datagram
                    network.send(number, now, path, way, len(datagram) + LINK_HEADER_BYTES)
                    number += 1


class Wires:
    """The sockets of a run, on loopback."""

    def __init__(self, run: Run, relay: Relay) -> None:
        """Opens and connects all of them."""
        self.sockets: dict[socket.socket, Endpoint] = {}
        self.of: dict[Endpoint, socket.socket] = {}
        for path, pair in enumerate(run.pairs):
            receiver = self._open(pair.receiver)
            to_receiver, to_sender = relay.connect(path, receiver=receiver.getsockname())
            receiver.connect(to_sender)
            self._open(pair.sender).connect(to_receiver)

    def _open(self, end: Endpoint) -> socket.socket:
        opened = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.sockets[opened] = end
        self.of[end] = opened
        opened.setblocking(False)
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        opened.bind(("127.0.0.1", 0))
        return opened

    def send(self, end: Endpoint, datagram: bytes) -> None:
        """Sends; a datagram for which there is no room is lost, as on any network."""
        try:
            self.of[end].send(datagram)
        except BlockingIOError:
            return
        except ConnectionRefusedError:
            raise StackError(f"{end.name}: the relay is gone") from None

    def close(self) -> None:
        """Closes all of them."""
        for opened in self.sockets:
            opened.close()


@contextlib.contextmanager
def real_time_priority() -> Iterator[None]:
    """Gives this thread SCHED_FIFO where that is permitted."""
    before = os.sched_getscheduler(0), os.sched_getparam(0)
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    except PermissionError:
        yield
        return
    try:
        yield
    finally:
        os.sched_setscheduler(0, *before)


def run_real(run: Run, relay: Relay) -> None:
    """Runs the endpoints over sockets."""
    wires = Wires(run, relay)
    try:
        relay.start()
        zero = relay.started_at_ns
        with real_time_priority():
            while run.next_row <= run.duration:
                due = min(
                    run.next_own(),
                    *(end.timeout for pair in run.pairs for end, _ in pair.ends),
                )
                wait_s = max(0, due - (time.monotonic_ns() - zero)) * 1e-9
                ready, _, _ = select.select(list(wires.sockets), [], [], wait_s)
                _step(run, wires, ready, zero)
    finally:
        wires.close()


def _step(run: Run, wires: Wires, ready: list[socket.socket], zero: int) -> None:
    touched = set()
    for opened in ready:
        end = wires.sockets[opened]
        touched.add(end)
        for _ in range(64):  # then the timers have their turn
            try:
                datagram = opened.recv(65535)
            except BlockingIOError:
                break
            except ConnectionRefusedError:
                raise StackError(f"{end.name}: the relay is gone") from None
            end.receive(time.monotonic_ns() - zero, datagram)
    now = time.monotonic_ns() - zero
    if run.next_own() <= now:
        run.do_own(now)
    for pair in run.pairs:
        for end, _ in pair.ends:
            now = time.monotonic_ns() - zero
            if end.timeout <= now:
                end.expire(now)
            elif end not in touched:
                continue
            for datagram in end.datagrams(now):
                wires.send(end, datagram)


class AioquicStack:
    """See quicgym.real.stacks.Stack."""

    name = "aioquic"
    clocks: Sequence[Clock] = ("virtual", "real")
    own_controllers = ("aioquic-reno", "aioquic-cubic")
    own_ways: Mapping[str, str] = {
        "flow_control_window_bytes": "doubles a window that is half used, so it limits the "
        "beginning only; the stack noq keeps it",
        "ack_frequency": "acknowledges after 1 ms; the stack noq follows it",
    }

    def run(
        self,
        flows: Sequence[FlowPlan],
        network: _core.EmulatedNetwork | Relay,
        *,
        clock: Clock,
        duration: int,
        interval: int,
        progress: Progress,
        deadline_s: float,
        qlog: Path | None = None,
    ) -> Sequence[FlowRecord]:
        """Carries out one run; see quicgym.real.stacks.Stack.run."""
        run = Run(flows, duration, interval, progress, deadline_s, qlog)
        try:
            if clock == "virtual":
                assert isinstance(network, _core.EmulatedNetwork)
                run_virtual(run, network)
            else:
                assert isinstance(network, Relay)
                run_real(run, network)
        finally:
            run.write_logs(f"{self.name}-{clock}")
        return run.records()


STACK = AioquicStack()
