"""Any messages from the other end of ns3-gym's protocol: the simulation's or the agent's.

The first byte says which. Each message begins with its length in two bytes; it is read, and so is a
value of the space that it describes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from quicgym.envs.ns3gym import messages
from quicgym.envs.ns3gym.codecs import SpaceCodec
from quicgym.envs.ns3gym.descriptions import codec_of_description
from quicgym.envs.ns3gym.errors import MessageError
from quicgym.envs.ns3gym.messages import parse


def split(data: bytes) -> Iterator[bytes]:
    while data:
        end = 2 + int.from_bytes(data[:2], "big")
        yield data[2:end]
        data = data[end:]


def check(data: bytes) -> None:
    """Reads the messages: each is valid, or refused with the field's name."""
    is_agent = data[:1] == b"\0"
    spaces: list[SpaceCodec] = []
    for message in split(data[1:]):
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
