"""ZeroMQ's protocol on one TCP connection: ZMTP 3.0 with NULL security.

The protocol is specified in https://rfc.zeromq.org/spec/23/. libzmq bounds a frame, but neither the
number of a message's frames nor of its bytes. Here no more is read from the network than one
message of a single frame needs. So memory is bounded, and the rest waits in the kernel, which stops
the sender.
"""

from __future__ import annotations

import errno
import socket
import time
from collections.abc import Generator
from contextlib import suppress
from typing import Any

from quicgym.envs.ns3gym.errors import MessageError, Ns3GymError, PeerError

MAXIMUM_MESSAGE_BYTES = 2**24
"""Nothing of a message that announces more is read."""

MAXIMUM_INTRODUCTION_BYTES = 2**20
"""The limit of a simulation's first message, which the agent reads from several peers at once."""

# Section "Grammar": signature, version 3.0, mechanism, as-server, filler.
_GREETING = b"\xff" + bytes(8) + b"\x7f\x03\x00" + b"NULL".ljust(20, b"\0") + bytes(32)
_MORE, _LONG, _COMMAND = 1, 2, 4
_MAXIMUM_COMMAND_BYTES = 2**12
# Both ends' sockets put this before a message (https://rfc.zeromq.org/spec/28/).
_DELIMITER = bytes((_MORE, 0))
_READ_BYTES = 2**18
_READS_OF_A_TURN = 16

_PARTNERS = {"REP": ("REQ", "DEALER"), "REQ": ("REP", "ROUTER")}


class NotZmtpError(Ns3GymError):
    """The other end is no ZeroMQ socket that fits ours; the text says what it did."""


class RefusedError(PeerError):
    """The other end refused the connection; the text is its reason."""


class Channel:
    """One peer: what came from it, and what is still to be sent to it.

    Attributes:
        name: The peer's address, as `host:port`.
        message: Message that is complete and was not taken yet, without its delimiter.
        connected_at: When the connection was made, as time.monotonic() told it.
        is_introduced: Whether the peer turned out to be a ZeroMQ socket that fits ours.
        is_open: Whether the connection stands; False once the peer has closed it.
    """

    def __init__(self, connected: socket.socket, kind: str) -> None:
        """Begins with the greeting.

        Args:
            connected: A TCP connection; becomes non-blocking.
            kind: Kind of our socket: "REP" or "REQ".
        """
        connected.setblocking(False)
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.name = name_of_peer(connected)
        self.connected_at = time.monotonic()
        self.message: bytes | None = None
        self.is_open = True
        self._socket = connected
        self.is_introduced = False
        self._first_limit = MAXIMUM_INTRODUCTION_BYTES if kind == "REP" else MAXIMUM_MESSAGE_BYTES
        self._outgoing = bytearray(_GREETING + _ready(kind))
        self._early = bytearray()
        self._conversation: Generator[int, bytes, bytes | None] = _handshake(kind)
        self._wanted = next(self._conversation)
        self._parts = bytearray()

    def fileno(self) -> int:
        """Returns the file descriptor, for select."""
        return self._socket.fileno()

    @property
    def must_write(self) -> bool:
        """Whether something is still to be sent."""
        return self.is_open and bool(self._outgoing)

    def send(self, message: bytes) -> None:
        """Appends a message of one frame to what is sent."""
        # Messages wait for the end of the handshake: libzmq closes a connection where they do not.
        queue = self._outgoing if self.is_introduced else self._early
        queue += _DELIMITER
        queue += _frame(0, message)
        self.write()

    def write(self) -> None:
        """Sends what the network takes now."""
        try:
            while self._outgoing:
                del self._outgoing[: self._socket.send(self._outgoing)]
        except BlockingIOError:
            pass
        except OSError:  # `read` finds the end, behind what the peer said before it
            self._outgoing.clear()

    def read(self) -> None:
        """Reads until a message is complete, nothing is there, or others have their turn.

        A peer that sends without a pause thus delays neither the others nor a deadline.

        Raises:
            MessageError: The message is too large, or has several parts.
            NotZmtpError: The other end does not speak ZMTP.
            RefusedError: The other end sent us away.
        """
        for _ in range(_READS_OF_A_TURN):
            if self.message is not None or not self.is_open:
                return
            try:
                part = self._socket.recv(min(_READ_BYTES, self._wanted - len(self._parts)))
            except BlockingIOError:
                return
            except OSError:
                part = b""
            if not part:
                self.close()
            else:
                self._take(part)

    def _take(self, part: bytes) -> None:
        self._parts += part
        while len(self._parts) == self._wanted and self.message is None:
            data, self._parts = bytes(self._parts), bytearray()
            try:
                self._wanted = self._conversation.send(data)
                while self._wanted == 0:
                    self._wanted = self._conversation.send(b"")
            except StopIteration as ended:
                self.message = ended.value
                limit = MAXIMUM_MESSAGE_BYTES
                if not self.is_introduced:
                    self.is_introduced = True
                    limit = self._first_limit
                    self._outgoing += self._early
                    self._early.clear()
                    self.write()
                self._conversation = _message(limit)
                self._wanted = next(self._conversation)

    def close(self) -> None:
        """Ends the connection; what was not sent is lost."""
        self.is_open = False
        self._socket.close()


def name_of_peer(connected: socket.socket) -> str:
    """Returns the address of the other end, as `host:port`.

    Raises:
        OSError: The other end has gone.
    """
    host, port = connected.getpeername()[:2]
    return f"{host}:{port}"


def refuse(connected: socket.socket, reason: str) -> None:
    """Sends the peer away and closes the connection, without waiting for anything.

    Args:
        connected: A TCP connection; is closed.
        reason: Why the peer is refused.
    """
    with connected, suppress(OSError):
        connected.setblocking(False)
        connected.send(_GREETING + _error(reason))
        # A connection that closes with unread bytes is reset, which may overtake the reason.
        connected.recv(_MAXIMUM_COMMAND_BYTES)


# These ask for numbers of bytes and get them, one number after the other.
def _handshake(kind: str) -> Generator[int, bytes, None]:
    signature = yield 10
    if signature[0] != 0xFF or signature[9] & 1 == 0:
        raise NotZmtpError("does not begin as ZeroMQ does")
    major = (yield 1)[0]
    if major < 3:
        raise NotZmtpError(f"speaks ZMTP {major}: libzmq 4 or newer is needed")
    rest = yield 53
    mechanism = rest[1:21].rstrip(b"\0")
    if mechanism != b"NULL":
        raise NotZmtpError(f"wants the security mechanism {mechanism.decode('ascii', 'replace')}")
    flags, size = yield from _header()
    if not flags & _COMMAND or size > _MAXIMUM_COMMAND_BYTES:
        raise NotZmtpError("sends no READY after the greeting")
    command = yield size
    if command.startswith(b"\x05ERROR"):
        raise RefusedError(command[7:].decode("utf-8", "replace"))
    partner = _properties(command).get("socket-type", "none")
    if partner not in _PARTNERS[kind]:
        raise NotZmtpError(f"is a socket of type {partner}, not {' or '.join(_PARTNERS[kind])}")


def _message(limit: int) -> Generator[int, bytes, bytes]:
    flags, size = yield from _header()
    while flags & _COMMAND:  # none of version 3.0 asks for anything
        if size > _MAXIMUM_COMMAND_BYTES:
            raise NotZmtpError(f"sends a command of {size} bytes")
        yield size
        flags, size = yield from _header()
    if not flags & _MORE or size:
        raise NotZmtpError("sends a message without the empty frame that REQ and REP begin with")
    flags, size = yield from _header()
    if flags & _COMMAND:
        raise NotZmtpError("sends a command in the middle of a message")
    if flags & _MORE:
        raise MessageError("has several parts; it is a single frame")
    # Before a byte of it is read, and before memory is reserved.
    if size > limit:
        raise MessageError(f"message too large: is {size} bytes; at most {limit} are allowed")
    return (yield size)


def _header() -> Generator[int, bytes, tuple[int, int]]:
    flags = (yield 1)[0]
    if flags & ~(_MORE | _LONG | _COMMAND):
        raise NotZmtpError(f"sends a frame with the flags {flags:#04x}")
    return flags, int.from_bytes((yield 8 if flags & _LONG else 1), "big")


def _properties(command: bytes) -> dict[str, str]:
    """The names, in lower case, and values of READY."""
    if not command.startswith(b"\x05READY"):
        raise NotZmtpError("sends no READY after the greeting")
    found, rest = {}, command[6:]
    while rest:
        name, rest = rest[1 : 1 + rest[0]], rest[1 + rest[0] :]
        size, rest = int.from_bytes(rest[:4], "big"), rest[4:]
        found[name.decode("ascii", "replace").lower()] = rest[:size].decode("ascii", "replace")
        rest = rest[size:]
    return found


def _ready(kind: str) -> bytes:
    name, value = b"Socket-Type", kind.encode()
    property_ = bytes((len(name),)) + name + len(value).to_bytes(4, "big") + value
    return _frame(_COMMAND, b"\x05READY" + property_)


def _error(reason: str) -> bytes:
    text = reason.encode()[:255]
    return _frame(_COMMAND, b"\x05ERROR" + bytes((len(text),)) + text)


def _frame(flags: int, body: bytes) -> bytes:
    if len(body) < 256:
        return bytes((flags, len(body))) + body
    return bytes((flags | _LONG,)) + len(body).to_bytes(8, "big") + body


_NOBODY_THERE = (errno.EADDRNOTAVAIL, errno.EHOSTUNREACH, errno.ENETUNREACH, errno.ENOTCONN)
"""Errors of a lost connection that are no ConnectionError."""


def connect(address: tuple[Any, ...]) -> socket.socket | None:
    """Returns a TCP connection, or None where nobody listens or the listener is gone again.

    Raises:
        OSError: The address cannot be reached for another reason.
    """
    end = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        end.settimeout(1.0)
        end.connect(address)
        # Where nobody listens, a port of the ephemeral range can be connected to itself.
        if end.getsockname() != end.getpeername():
            return end
    except (ConnectionError, TimeoutError):
        pass
    except OSError as error:
        if error.errno not in _NOBODY_THERE:
            end.close()
            raise
    end.close()
    return None
