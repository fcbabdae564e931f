"""One ZeroMQ connection between an agent and a simulation, with deadlines."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

import zmq
from zmq.utils.monitor import recv_monitor_message

from quicgym.envs.ns3gym.errors import MessageError, Ns3GymError, PeerError, PeerGoneError
from quicgym.envs.ns3gym.messages import parse

MAXIMUM_FRAME_BYTES = 2**24
"""ZeroMQ drops a connection that announces a larger frame, before it reserves memory for it."""

_LOOK_ROUND_S = 0.1
_RECONNECT_MS = 10
_FAREWELL_S = 1.0

_EVENTS = zmq.Event.ACCEPTED | zmq.Event.CONNECTED | zmq.Event.DISCONNECTED


class Connection:
    """A socket and a ZeroMQ context of its own.

    So `close` returns when the port is free again, and no thread outlives it.

    Attributes:
        endpoint: The address, as `tcp://host:port`.
    """

    def __init__(self, host: str, port: int, *, listens: bool) -> None:
        """Binds a REP socket, the agent's end, or connects a REQ socket, the simulation's.

        Args:
            host: The address to listen on or to connect to.
            port: TCP port; 0 with `listens` takes a free one.
            listens: Whether it is the agent's end.

        Raises:
            Ns3GymError: The address cannot be used.
        """
        smallest = 0 if listens else 1
        if not smallest <= port <= 65535:
            raise Ns3GymError(f"port = {port}: is not in {smallest} to 65535")
        self._peer = "simulation" if listens else "agent"
        self._context = zmq.Context()
        self._socket = self._context.socket(zmq.REP if listens else zmq.REQ)
        # The agent's last word should still arrive; a simulation has none that matters.
        self._linger_ms = int(_FAREWELL_S * 1e3) if listens else 0
        self._socket.linger = self._linger_ms
        self._socket.reconnect_ivl = _RECONNECT_MS
        self._socket.maxmsgsize = MAXIMUM_FRAME_BYTES
        self._monitor = self._socket.get_monitor_socket(_EVENTS)
        self._peers: set[int] = set()
        self._had_peer = False
        self.endpoint = f"tcp://{host}:{port or '*'}"
        try:
            if listens:
                self._socket.bind(self.endpoint)
                self.endpoint = self._socket.get_string(zmq.LAST_ENDPOINT)
            else:
                self._socket.connect(self.endpoint)
        except zmq.ZMQError as error:
            self.close()
            verb, remedy = ("listen on", ", or 0 for a free one") if listens else ("connect to", "")
            raise Ns3GymError(
                f"cannot {verb} {self.endpoint}: {zmq.strerror(error.errno or 0)}; "
                f"give another host or port{remedy}"
            ) from None

    @property
    def port(self) -> int:
        """The TCP port."""
        return int(self.endpoint.rpartition(":")[2])

    @property
    def has_peer(self) -> bool:
        """Whether somebody was connected when `receive` last looked."""
        return bool(self._peers)

    def send(self, message: Any) -> None:
        """Sends a message; it may still be under way when this returns.

        Raises:
            MessageError: It is too large.
            PeerError: It cannot be sent.
        """
        frame = message.SerializeToString()
        if len(frame) > MAXIMUM_FRAME_BYTES:
            raise MessageError(
                f"{message.DESCRIPTOR.name}: is {len(frame)} bytes; "
                f"at most {MAXIMUM_FRAME_BYTES} are allowed"
            )
        try:
            self._socket.send(frame, zmq.DONTWAIT)
        except zmq.ZMQError as error:
            name = message.DESCRIPTOR.name
            reason = zmq.strerror(error.errno or 0)
            raise PeerError(f"{self.endpoint}: {name} cannot be sent: {reason}") from None

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
            message_class: What it has to be.
            timeout_s: How long it may take, in s.
            began: Since when, as time.monotonic() told it; None: since now.
            await_peer: Wait for whoever connects, also after another one has left.
            look_round: Called now and then meanwhile; may raise.

        Raises:
            MessageError: It is something else.
            PeerGoneError: The other end closed the connection instead.
            PeerError: Nothing came in time.
        """
        name = message_class.DESCRIPTOR.name
        deadline = (time.monotonic() if began is None else began) + timeout_s
        if not self._await_frame(name, deadline, await_peer, look_round):
            state = "is connected and silent" if self._peers else "is not there"
            raise PeerError(
                f"{self.endpoint}: no {name} within {timeout_s:g} s: the {self._peer} {state}; "
                "start it, or raise timeout_s"
            )
        frame = self._socket.recv()
        if self._socket.rcvmore:
            raise MessageError(f"{self.endpoint}: {name} has several parts; it is a single frame")
        return parse(message_class, frame, f"{self.endpoint}: {name}")

    def _await_frame(
        self, name: str, deadline: float, await_peer: bool, look_round: Callable[[], None]
    ) -> bool:
        poller = zmq.Poller()
        poller.register(self._socket, zmq.POLLIN)
        poller.register(self._monitor, zmq.POLLIN)
        while True:
            left = deadline - time.monotonic()
            ready = dict(poller.poll(math.ceil(max(0.0, min(left, _LOOK_ROUND_S)) * 1e3)))
            if self._socket in ready:
                return True
            if left <= 0:
                return False
            self._follow_peers()
            # What came before the end of a connection is in the socket by now.
            gone = self._had_peer and not self._peers and not await_peer
            if gone and not self._socket.poll(0):
                raise PeerGoneError(
                    f"{self.endpoint}: the {self._peer} closed the connection "
                    f"where {name} was expected"
                )
            if not self._socket.poll(0):
                look_round()

    def _follow_peers(self) -> None:
        while self._monitor.poll(0):
            event = recv_monitor_message(self._monitor)
            if event["event"] in (zmq.Event.ACCEPTED, zmq.Event.CONNECTED):
                self._peers.add(event["value"])
                self._had_peer = True
            else:
                self._peers.discard(event["value"])

    def close(self) -> None:
        """Ends the connection and frees the port; a message under way gets a second."""
        if not self._context.closed:
            self._socket.disable_monitor()
            self._context.destroy(linger=self._linger_ms)
