"""One ZeroMQ connection between an agent and a simulation, with deadlines and bounded memory."""

from __future__ import annotations

import errno
import socket
import time
import warnings
import weakref
from collections.abc import Callable
from typing import Any

import zmq
from zmq.utils.monitor import recv_monitor_message

from quicgym.envs.ns3gym.errors import MessageError, Ns3GymError, PeerError, PeerGoneError
from quicgym.envs.ns3gym.messages import SimInitAck, parse

MAXIMUM_MESSAGE_BYTES = 2**24
"""libzmq ends a connection on which a larger frame is announced, without reading it."""

_LOOK_ROUND_MS = 100
_FAREWELL_MS = 1000
_ARRIVED = zmq.EVENT_ACCEPTED | zmq.EVENT_CONNECTED
_STRANGE = zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL | zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL


class Connection:
    """One end: the agent's, which listens, or the simulation's, which connects.

    ns3-gym has a REP socket at the agent's end and a REQ socket at the simulation's. A ROUTER
    socket takes the place of REP here, because it knows who sent a message: the simulation whose
    message an agent took with `await_peer` is the only one it talks to until the next
    `await_peer`. Another one that begins meanwhile is refused.

    Attributes:
        endpoint: The address, as `tcp://host:port`.
    """

    def __init__(self, host: str, port: int, *, listens: bool) -> None:
        """Binds the agent's end, or begins to connect the simulation's.

        Args:
            host: The address to listen on or to connect to.
            port: TCP port; 0 with `listens` takes a free one.
            listens: Whether this is the agent's end.

        Raises:
            Ns3GymError: The address cannot be used.
        """
        smallest = 0 if listens else 1
        if not smallest <= port <= 65535:
            raise Ns3GymError(f"port = {port}: is not in {smallest} to 65535")
        self.endpoint = f"tcp://{host}:{port or '*'}"
        self._listens = listens
        self._peer = "simulation" if listens else "agent"
        self._tied: bytes | None = None
        self._connected = 0
        self._is_lost = self._is_strange = self._warned = False
        # The port is free only when the context has ended, so each connection has its own.
        context = zmq.Context()
        self.close = weakref.finalize(self, context.destroy)
        self._socket = context.socket(zmq.ROUTER if listens else zmq.REQ)
        self._socket.linger = _FAREWELL_MS if listens else 0
        self._socket.maxmsgsize = MAXIMUM_MESSAGE_BYTES
        # What a peer sends without waiting for answers stays in the kernel, which stops the peer.
        self._socket.rcvhwm = 1
        self._events = self._socket.get_monitor_socket(_ARRIVED | _STRANGE | zmq.EVENT_DISCONNECTED)
        self._poller = zmq.Poller()
        self._poller.register(self._socket, zmq.POLLIN)
        self._poller.register(self._events, zmq.POLLIN)
        try:
            # libzmq does not bind to names, and tries forever to connect to one that is unknown.
            address = f"tcp://{host if host == '*' else socket.gethostbyname(host)}:{port}"
            if listens:
                self._socket.router_mandatory = 1
                self._socket.bind(address)
                self.endpoint = self._socket.get_string(zmq.LAST_ENDPOINT)
            else:
                self._socket.connect(address)
        except (OSError, ValueError, zmq.ZMQError) as error:  # ValueError: no name at all
            self.close()
            if isinstance(error, zmq.ZMQError):
                reason = zmq.strerror(error.errno or 0)
            else:
                reason = getattr(error, "strerror", None) or str(error)
            verb, remedy = ("listen on", ", or 0 for a free one") if listens else ("connect to", "")
            raise Ns3GymError(
                f"cannot {verb} {self.endpoint}: {reason}; give another host or port{remedy}"
            ) from None

    @property
    def port(self) -> int:
        """The TCP port."""
        return int(self.endpoint.rpartition(":")[2])

    @property
    def has_peer(self) -> bool:
        """Whether somebody was connected when `receive` last looked."""
        return self._connected > 0

    def send(self, message: Any) -> None:
        """Sends a message; it may still be under way when this returns.

        Raises:
            MessageError: The message is too large.
        """
        frame = message.SerializeToString()
        if len(frame) > MAXIMUM_MESSAGE_BYTES:
            raise MessageError(
                f"{message.DESCRIPTOR.name}: message too large: is {len(frame)} bytes; "
                f"at most {MAXIMUM_MESSAGE_BYTES} are allowed"
            )
        if not self._listens:
            self._socket.send(frame)
        elif self._tied is not None and not self._answer(self._tied, frame):
            self._is_lost = True  # `receive` says so

    def _answer(self, peer: bytes, frame: bytes) -> bool:
        """Sends to one of the simulations; whether it is there to take it."""
        try:
            self._socket.send_multipart([peer, b"", frame], zmq.NOBLOCK)
        except zmq.ZMQError as error:
            if error.errno not in (errno.EHOSTUNREACH, errno.EAGAIN):
                raise
            return False
        return True

    def receive(
        self,
        message_class: Any,
        timeout_s: float,
        *,
        began: float | None = None,
        await_peer: bool = False,
        look_round: Callable[[], None] = lambda: None,
    ) -> Any:
        """Returns the next message.

        Args:
            message_class: Class that the message has to be of.
            timeout_s: Longest time that the message may take, in s.
            began: Time from which `timeout_s` counts, as time.monotonic() told it; None: now.
            await_peer: Whether to take the message from whoever sends one first, and listen to
                nobody else from then.
            look_round: Function that is called now and then meanwhile; may raise.

        Raises:
            MessageError: The message is something else, or in several parts.
            PeerGoneError: The connection ended instead.
            PeerError: No message came in time.
        """
        name = message_class.DESCRIPTOR.name
        deadline = (time.monotonic() if began is None else began) + timeout_s
        if await_peer:
            self._tied, self._is_lost, self._warned = None, False, False
        while True:
            left = deadline - time.monotonic()
            there = dict(self._poller.poll(max(0, min(int(1e3 * left), _LOOK_ROUND_MS))))
            # The events first: a message that came before the end of the connection is read.
            if self._events in there:
                self._look_at_events()
            message = self._take(name)
            if message is not None:
                return parse(message_class, message, f"{self.endpoint}: {name}")
            if self._is_lost:
                raise self._loss(name)
            if left <= 0:
                raise self._silence(name, timeout_s)
            look_round()

    def _look_at_events(self) -> None:
        while self._events.poll(0):
            event = recv_monitor_message(self._events)["event"]
            if event & _ARRIVED:
                self._connected += 1
            elif event & _STRANGE:
                self._is_strange = True
            else:
                self._connected -= 1
                # A simulation that goes while others are connected is noticed by its silence.
                if self._connected == 0 and (self._tied is not None or not self._listens):
                    self._is_lost = True

    def _take(self, name: str) -> bytes | None:
        """The message that is there, if it is from the simulation of this episode."""
        try:
            parts = self._socket.recv_multipart(zmq.NOBLOCK)
        except zmq.Again:
            return None
        if self._listens:
            sender, *parts = parts
            if self._tied is None:
                self._tied = sender
                self._look_at_events()
                self._is_lost = self._connected == 0
            elif sender != self._tied:
                self._refuse(sender)
                return None
            if parts[:1] == [b""]:
                del parts[0]
        if len(parts) != 1:
            raise MessageError(
                f"{self.endpoint}: {name} has {len(parts)} parts; it is a single frame"
            )
        return parts[0]

    def _refuse(self, second: bytes) -> None:
        self._answer(second, SimInitAck(stopSimReq=True).SerializeToString())
        if not self._warned:
            self._warned = True
            warnings.warn(
                f"{self.endpoint}: a second simulation sent a message in the episode of another "
                "one and was refused; give each simulation its own port",
                RuntimeWarning,
                stacklevel=2,
            )

    def _loss(self, name: str) -> PeerGoneError:
        cause = f"it ended, or sent a message of more than {MAXIMUM_MESSAGE_BYTES} bytes"
        if self._is_strange and not self._listens:
            cause = "it is no ZeroMQ socket of an ns3-gym agent"
        return PeerGoneError(
            f"{self.endpoint}: the {self._peer} closed the connection where {name} was expected: "
            f"{cause}"
        )

    def _silence(self, name: str, timeout_s: float) -> PeerError:
        state = "is connected and silent" if self._connected else "is not there"
        strange = " (somebody else connected, without ZeroMQ's protocol)" * self._is_strange
        return PeerError(
            f"{self.endpoint}: no {name} within {timeout_s:g} s: the {self._peer} {state}{strange}"
            "; start it, or raise timeout_s"
        )
