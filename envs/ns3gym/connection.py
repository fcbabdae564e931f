"""One ZeroMQ connection between an agent and a simulation, with deadlines and bounded memory."""

from __future__ import annotations

import select
import socket
import time
import warnings
from collections.abc import Callable
from typing import Any

from quicgym.envs.ns3gym.errors import MessageError, Ns3GymError, PeerError, PeerGoneError
from quicgym.envs.ns3gym.messages import parse
from quicgym.envs.ns3gym.zmtp import (
    MAXIMUM_MESSAGE_BYTES,
    Channel,
    NotZmtpError,
    RefusedError,
    connect,
    name_of_peer,
    refuse,
)

_LOOK_ROUND_S = 0.1
_RECONNECT_S = 0.01
_FAREWELL_S = 1.0
_MOST_CHANNELS = 16
"""Whoever connects beyond these waits in the kernel's queue."""

_INTRODUCTION_S = 1.0
"""After this time a peer that has not sent its message makes place for one that waits."""

_REFUSAL = "the agent is in an episode with another simulation; give each simulation its own port"


class Connection:
    """One end: a REP socket of ZeroMQ, the agent's, or a REQ socket, the simulation's.

    The simulation whose message an agent took with `await_peer` is the only one it listens and
    talks to until the next `await_peer`. Whoever connects meanwhile is sent away.

    Attributes:
        endpoint: The address, as `tcp://host:port`.
    """

    def __init__(self, host: str, port: int, *, listens: bool) -> None:
        """Binds the agent's end; the simulation's connects in `receive`.

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
        self._peer = "simulation" if listens else "agent"
        self._channels: list[Channel] = []
        self._tied: Channel | None = None
        self._listener: socket.socket | None = None
        self._warned = False
        self._unsent = b""
        self._next_attempt = 0.0
        self._said: set[str] = set()
        self.endpoint = f"tcp://{host}:{port or '*'}"
        try:
            self._address = socket.getaddrinfo(
                "0.0.0.0" if host == "*" else host, port, socket.AF_INET, socket.SOCK_STREAM
            )[0][4]
            if listens:
                self._listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
                self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                self._listener.bind(self._address)
                self._listener.listen(_MOST_CHANNELS)
                self._listener.setblocking(False)
                self.endpoint = "tcp://{}:{}".format(*self._listener.getsockname())
        except (OSError, ValueError) as error:  # ValueError: no name at all
            self.close()
            raise self._unusable(error) from None

    def _unusable(self, error: Exception) -> Ns3GymError:
        verb, remedy = ("connect to", "")
        if self._peer == "simulation":
            verb, remedy = ("listen on", ", or 0 for a free one")
        reason = getattr(error, "strerror", None) or str(error)
        return Ns3GymError(
            f"cannot {verb} {self.endpoint}: {reason}; give another host or port{remedy}"
        )

    @property
    def port(self) -> int:
        """The TCP port."""
        return int(self.endpoint.rpartition(":")[2])

    @property
    def has_peer(self) -> bool:
        """Whether somebody was connected when `receive` last looked."""
        return bool(self._channels)

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
        if self._tied is not None:
            # To one that has gone nothing is sent; `receive` says so.
            if self._tied.is_open:
                self._tied.send(frame)
        else:
            self._unsent = frame  # until we are connected

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
            MessageError: The message is something else, too large, or in several parts.
            PeerGoneError: The other end closed the connection instead.
            PeerError: No message came in time, or we are refused.
            Ns3GymError: The other end does not speak ZeroMQ's protocol.
        """
        name = message_class.DESCRIPTOR.name
        deadline = (time.monotonic() if began is None else began) + timeout_s
        if await_peer:
            self._tied, self._warned = None, False
        while True:
            message = self._advance(name)
            if message is not None:
                return parse(message_class, message, f"{self.endpoint}: {name}")
            # Messages that came before the end of a connection were read above.
            if self._tied is not None and not self._tied.is_open:
                raise PeerGoneError(
                    f"{self.endpoint}: the {self._peer} closed the connection "
                    f"where {name} was expected"
                )
            left = deadline - time.monotonic()
            if left <= 0:
                raise self._silence(name, timeout_s)
            look_round()
            self._wait(min(left, _LOOK_ROUND_S))

    def _silence(self, name: str, timeout_s: float) -> PeerError:
        state = "is connected and silent" if self._channels else "is not there"
        wrong = f" ({'; '.join(sorted(self._said))})" if self._said else ""
        return PeerError(
            f"{self.endpoint}: no {name} within {timeout_s:g} s: the {self._peer} {state}{wrong}; "
            "start it, or raise timeout_s"
        )

    def _advance(self, name: str) -> bytes | None:
        """Sends and reads what is possible now; a message that is complete."""
        if self._listener is None and self._tied is None:
            self._try_to_connect()
        for channel in list(self._channels):
            channel.write()
            try:
                channel.read()
            except MessageError as error:
                channel.close()
                self._forget_closed()
                raise MessageError(f"{self.endpoint}: {name} {error}") from None
            except RefusedError as refused:
                channel.close()
                raise PeerError(
                    f"{self.endpoint}: the {self._peer} refuses us: {refused}"
                ) from None
            except NotZmtpError as error:
                channel.close()
                if self._listener is None:
                    raise Ns3GymError(f"{self.endpoint}: what listens there {error}") from None
                self._said.add(f"{channel.name.rpartition(':')[0]} {error}")
            if channel.message is not None:
                message, channel.message = channel.message, None
                self._tie(channel)
                return message
        self._forget_closed()
        self._accept()
        return None

    def _tie(self, channel: Channel) -> None:
        self._tied = channel
        for other in self._channels:
            if other is not channel:
                other.close()
                if other.is_introduced:
                    self._warn(other.name)
        self._forget_closed()

    def _warn(self, second: str) -> None:
        if self._warned:  # ZeroMQ connects again and again
            return
        self._warned = True
        warnings.warn(
            f"{self.endpoint}: a second simulation, {second}, connected in the episode of "
            "another one and was refused; give each simulation its own port",
            RuntimeWarning,
            stacklevel=2,
        )

    def _forget_closed(self) -> None:
        self._channels = [channel for channel in self._channels if channel.is_open]

    def _try_to_connect(self) -> None:
        if time.monotonic() < self._next_attempt:
            return
        try:
            connected = connect(self._address)
        except OSError as error:
            raise self._unusable(error) from None
        self._tied = None
        if connected is not None:
            try:
                self._tied = Channel(connected, "REQ")
            except OSError:  # gone again
                connected.close()
        if self._tied is None:
            self._next_attempt = time.monotonic() + _RECONNECT_S
            return
        self._channels = [self._tied]
        if self._unsent:
            self._tied.send(self._unsent)
            self._unsent = b""

    @property
    def _accepts(self) -> bool:
        """Whether somebody who connects gets a place, or is refused, now."""
        if self._listener is None:
            return False
        oldest = self._channels[0].connected_at if self._channels else 0.0
        return (
            self._tied is not None
            or len(self._channels) < _MOST_CHANNELS
            or time.monotonic() - oldest > _INTRODUCTION_S
        )

    def _accept(self) -> None:
        for _ in range(_MOST_CHANNELS):  # then the deadline is looked at
            if self._listener is None or not self._accepts:
                break
            try:
                accepted, _ = self._listener.accept()
            except OSError:  # nobody there
                break
            try:
                if self._tied is not None:
                    self._warn(name_of_peer(accepted))
                    refuse(accepted, _REFUSAL)
                    continue
                channel = Channel(accepted, "REP")
            except OSError:  # gone again
                accepted.close()
                continue
            if len(self._channels) == _MOST_CHANNELS:
                self._channels.pop(0).close()
            self._channels.append(channel)
            channel.write()

    def _wait(self, timeout_s: float) -> None:
        """Until something can be read or written."""
        writing = [channel for channel in self._channels if channel.must_write]
        reading: list[Any] = list(self._channels)
        if self._accepts:
            reading.append(self._listener)
        elif self._tied is None:
            timeout_s = min(timeout_s, _RECONNECT_S)
        poller = select.poll()
        for end in reading:
            poller.register(end, select.POLLIN)
        for end in writing:
            poller.register(end, select.POLLIN | select.POLLOUT)
        poller.poll(max(0.0, timeout_s) * 1e3)

    def close(self) -> None:
        """Ends the connection and frees the port; an agent's message under way gets a second."""
        if self._listener is not None:
            self._listener.close()
            last = self._tied
            deadline = time.monotonic() + _FAREWELL_S
            while last is not None and last.must_write and time.monotonic() < deadline:
                last.write()
                select.select([], [last] if last.must_write else [], [], 0.01)
        self._listener = self._tied = None
        for channel in self._channels:
            channel.close()
        self._channels = []
