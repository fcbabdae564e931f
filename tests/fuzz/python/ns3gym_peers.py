"""Any bytes from the other end of ns3-gym's protocol: as the simulation or as the agent sends them.

The first byte says which; then each message is read, and a value of the space that it describes.
"""

from __future__ import annotations

from typing import Any

from quicgym.envs.ns3gym import messages
from quicgym.envs.ns3gym.codecs import SpaceCodec
from quicgym.envs.ns3gym.descriptions import codec_of_description
from quicgym.envs.ns3gym.errors import MessageError
from quicgym.envs.ns3gym.messages import parse
from quicgym.envs.ns3gym.zmtp import Channel, NotZmtpError, RefusedError


class Bytes:
    """A socket from which these bytes come, and which takes whatever is sent."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def recv(self, count: int) -> bytes:
        part, self._data = self._data[:count], self._data[count:]
        return part

    def send(self, data: bytes) -> int:
        return len(data)

    def getpeername(self) -> tuple[str, int]:
        return ("127.0.0.1", 5555)

    def ignore(self, *_: int) -> None: ...

    setblocking = setsockopt = close = ignore


def received(channel: Channel) -> list[bytes]:
    """All messages of the connection, up to its end or its first error."""
    found = []
    try:
        while channel.is_open:
            channel.read()
            channel.write()
            if channel.message is not None:
                found.append(channel.message)
                channel.message = None
    except (MessageError, NotZmtpError, RefusedError):
        channel.close()
    return found


def check(data: bytes) -> None:
    """Reads the messages: each is valid, or refused with the field's name."""
    is_agent = data[:1] == b"\0"
    channel: Any = Channel(Bytes(data[1:]), "REP" if is_agent else "REQ")  # type: ignore[arg-type]
    spaces: list[SpaceCodec] = []
    for message in received(channel):
        try:
            if not is_agent:
                parse(messages.SimInitAck, message, "ack")
                _decoded(parse(messages.EnvActMsg, message, "act").actData, spaces)
            if not spaces:
                described = parse(messages.SimInitMsg, message, "init")
                for description in (described.obsSpace, described.actSpace):
                    codec = codec_of_description(description, "space")
                    codec.space.seed(0)
                    # What the space has goes over the wire and comes back.
                    value = codec.space.sample()
                    codec.encode(value, "value")
                    spaces.append(codec)
            else:
                _decoded(parse(messages.EnvStateMsg, message, "state").obsData, spaces)
        except MessageError as error:
            assert str(error)


def _decoded(container: Any, spaces: list[SpaceCodec]) -> None:
    for codec in spaces:
        assert codec.space.contains(codec.decode(container, "data"))
