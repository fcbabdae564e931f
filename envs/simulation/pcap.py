"""pcap files, as https://www.ietf.org/archive/id/draft-ietf-opsawg-pcap-06.html describes them."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

from quicgym.errors import UserError

FILE_HEADER = struct.Struct("<I20x")
PACKET_HEADER = struct.Struct("<8xI4x")
"""The captured length is between the time and the length on the wire."""
MAGIC_NUMBERS = (0xA1B2C3D4, 0xA1B23C4D)
"""Magic numbers of files with microseconds and nanoseconds, in the byte order of ns-3's machine."""


def thinned(path: Path, every: int = 1) -> Iterator[bytes]:
    """Yields the header of a pcap file, and then every so manieth packet from the first on.

    Args:
        path: The file.
        every: N, to yield every Nth packet.

    Raises:
        UserError: The file is no pcap file, or ends within a packet.
    """
    with path.open("rb") as file:
        header = file.read(FILE_HEADER.size)
        if len(header) < FILE_HEADER.size or FILE_HEADER.unpack(header)[0] not in MAGIC_NUMBERS:
            raise UserError(f"{path}: is no pcap file in little-endian order")
        yield header
        count = 0
        while about := file.read(PACKET_HEADER.size):
            if len(about) < PACKET_HEADER.size:
                raise UserError(f"{path}: ends within the header of packet {count}")
            (size,) = PACKET_HEADER.unpack(about)
            packet = file.read(size)
            if len(packet) < size:
                raise UserError(f"{path}: ends within packet {count}")
            if count % every == 0:
                yield about + packet
            count += 1
