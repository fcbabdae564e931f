"""TensorFlow's checkpoints, read without TensorFlow.

A checkpoint of version 2 is a "tensor bundle": `PREFIX.index` says which tensors there are, and
`PREFIX.data-00000-of-0000N` hold their numbers. The index is a table in LevelDB's format
(github.com/google/leveldb, doc/table_format.md). Its values are protocol buffers, see
tensorflow/core/protobuf/tensor_bundle.proto.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from quicgym.errors import PolicyError
from quicgym.input_files import read_input

MOST_INDEX_BYTES = 2**20
MOST_DATA_BYTES = 2**31
MOST_EXPANSION = 64
"""Bytes of names from a byte of the file: three bytes can repeat the whole name before them."""
_FOOTER_BYTES = 48
_MAGIC = 0xDB4775248B80FB57
_TRAILER_BYTES = 5
"""Behind a block: the kind of compression and a checksum."""
_FLOAT = 1
"""tensorflow.DT_FLOAT."""
_VARINT, _FIXED_64, _BYTES, _FIXED_32 = 0, 1, 2, 5
"""Wire types of protocol buffers."""


class _Damaged(Exception):
    """Raised for a damaged index; the text says what is wrong."""


@dataclass(frozen=True)
class _Entry:
    """Place of a tensor: a BundleEntryProto."""

    dtype: int
    shape: tuple[int, ...]
    shard: int
    offset: int
    size: int
    checksum: int
    is_sliced: bool


class TensorBundle:
    """The tensors of one checkpoint.

    Attributes:
        index: The file with the names.
    """

    def __init__(self, index: Path) -> None:
        """Reads the names.

        Args:
            index: The checkpoint's file whose name ends with .index.

        Raises:
            PolicyError: The file cannot be read, or is no index of a checkpoint.
        """
        self.index = index
        data = _read(index, MOST_INDEX_BYTES, "give the .index file of a TensorFlow checkpoint")
        try:
            values = dict(_table(data))
            header = _message(values.pop(b"", None))
            self._shards = _integer(header, 1)
            if _integer(header, 2) != 0:
                raise _Damaged("its numbers are big-endian, which is not supported")
            self._entries = {
                key.decode(errors="replace"): _entry(value) for key, value in values.items()
            }
        except _Damaged as problem:
            raise PolicyError(f"{index}: {problem}; fetch the checkpoint again") from None

    @property
    def names(self) -> list[str]:
        """The names of the tensors."""
        return sorted(self._entries)

    def tensor(self, name: str, shape: tuple[int, ...]) -> np.ndarray:
        """Returns a tensor of float32.

        Args:
            name: The tensor's name in the checkpoint.
            shape: The shape that it must have.

        Raises:
            PolicyError: The tensor is missing, or has another shape or type, or its file is
                damaged.
        """
        entry = self._entries.get(name)
        if entry is None:
            known = ", ".join(self.names[:8]) + (", …" if len(self._entries) > 8 else "")
            raise PolicyError(
                f"{self.index}: has no tensor {name!r}; it has {known or 'none'}; give the "
                "checkpoint of the agent that you name"
            )
        if entry.shape != shape:
            raise PolicyError(
                f"{self.index}: tensor {name!r} has the shape {entry.shape}, and the agent's is "
                f"{shape}; give the checkpoint of the agent that you name"
            )
        if entry.dtype != _FLOAT or entry.is_sliced:
            what = "is stored in slices" if entry.is_sliced else f"has the type {entry.dtype}"
            raise PolicyError(f"{self.index}: tensor {name!r} {what}; only whole float32 is read")
        file = self.index.with_suffix(f".data-{entry.shard:05d}-of-{self._shards:05d}")
        data = _read(file, MOST_DATA_BYTES, f"put it next to {self.index.name}")
        numbers = data[entry.offset : entry.offset + entry.size]
        if len(numbers) != entry.size or entry.size != 4 * int(np.prod(shape)):
            raise PolicyError(
                f"{file}: has {len(numbers)} of the {4 * int(np.prod(shape))} bytes of tensor "
                f"{name!r}; fetch the checkpoint again"
            )
        if _masked_crc(numbers) != entry.checksum:
            raise PolicyError(
                f"{file}: the checksum of tensor {name!r} is wrong; fetch the checkpoint again"
            )
        return np.frombuffer(numbers, dtype="<f4").reshape(shape).astype(np.float32)


def _read(path: Path, most_bytes: int, remedy: str) -> bytes:
    try:
        return read_input(path, most_bytes)
    except OSError as error:
        raise PolicyError(f"{path}: {error.strerror}; {remedy}") from None


# ---- LevelDB's table ----------------------------------------------------------------------------


def _table(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yields the keys and values of a table."""
    footer = data[-_FOOTER_BYTES:]
    if len(footer) < _FOOTER_BYTES or struct.unpack("<Q", footer[-8:])[0] != _MAGIC:
        raise _Damaged("is no index of a TensorFlow checkpoint (version 2), or is cut off")
    position = 0
    handle = []
    for _ in range(4):  # offset and size of the metaindex block and of the index block
        value, position = _varint(footer, position)
        handle.append(value)
    end = 0
    for _, place in _block(data, handle[2], handle[3]):
        offset, position = _varint(place, 0)
        size, _ = _varint(place, position)
        if offset < end:  # writers put one behind the other; else one could be read for ever
            raise _Damaged("a block is listed twice, or two overlap")
        end = offset + size
        yield from _block(data, offset, size)


def _block(data: bytes, offset: int, size: int) -> Iterator[tuple[bytes, bytes]]:
    """Yields the keys and values of a block, whose keys leave out what they share."""
    whole = data[offset : offset + size + _TRAILER_BYTES]
    if len(whole) != size + _TRAILER_BYTES or size < 4:
        raise _Damaged("a block lies outside of the file")
    kind, checksum = struct.unpack("<BI", whole[size:])
    if _masked_crc(whole[: size + 1]) != checksum:
        raise _Damaged("the checksum of a block is wrong")
    if kind != 0:
        raise _Damaged("is compressed, which TensorFlow's own writer does not do")
    (restarts,) = struct.unpack("<I", whole[size - 4 : size])
    end = size - 4 * (restarts + 1)
    position, key, expanded = 0, b"", 0
    while position < end:
        shared, position = _varint(whole, position)
        added, position = _varint(whole, position)
        length, position = _varint(whole, position)
        if shared > len(key) or position + added + length > end:
            raise _Damaged("an entry lies outside of its block")
        expanded += shared + added
        if expanded > MOST_EXPANSION * size:
            raise _Damaged("its names are far longer than the file")
        key = key[:shared] + whole[position : position + added]
        position += added
        yield key, whole[position : position + length]
        position += length


# ---- protocol buffers ---------------------------------------------------------------------------


def _varint(data: bytes, position: int) -> tuple[int, int]:
    """Returns a number of variable length, and the position behind it."""
    value = 0
    for shift in range(0, 70, 7):
        if position >= len(data):
            raise _Damaged("a number is cut off")
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
    raise _Damaged("a number has more than 64 bits")


def _message(data: bytes | None) -> dict[int, list[int | bytes]]:
    """Returns the values of a message by the number of their field."""
    if data is None:
        raise _Damaged("has no header")
    fields: dict[int, list[int | bytes]] = {}
    position = 0
    while position < len(data):
        tag, position = _varint(data, position)
        value: int | bytes
        if tag & 7 == _VARINT:
            value, position = _varint(data, position)
        else:
            length = {_FIXED_64: 8, _FIXED_32: 4}.get(tag & 7)
            if tag & 7 == _BYTES:
                length, position = _varint(data, position)
            if length is None or position + length > len(data):
                raise _Damaged("an entry's value is no protocol buffer")
            value = data[position : position + length]
            position += length
        fields.setdefault(tag >> 3, []).append(value)
    return fields


def _integer(fields: dict[int, list[int | bytes]], number: int) -> int:
    value = fields.get(number, [0])[-1]
    if isinstance(value, bytes):
        return int.from_bytes(value, "little")
    return value


def _entry(data: bytes) -> _Entry:
    fields = _message(data)
    shape = []
    for part in fields.get(2, []):
        for size in _message(_bytes(part)).get(2, []):
            shape.append(_integer(_message(_bytes(size)), 1))
    return _Entry(
        dtype=_integer(fields, 1),
        shape=tuple(shape),
        shard=_integer(fields, 3),
        offset=_integer(fields, 4),
        size=_integer(fields, 5),
        checksum=_integer(fields, 6),
        is_sliced=7 in fields,
    )


def _bytes(value: int | bytes) -> bytes:
    if isinstance(value, int):
        raise _Damaged("an entry's shape is no protocol buffer")
    return value


# ---- checksums ----------------------------------------------------------------------------------


@cache
def _crc_table() -> tuple[int, ...]:
    """CRC-32C, RFC 3720 appendix B.4, of each byte."""
    table = []
    for crc in range(256):
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
        table.append(crc)
    return tuple(table)


def _masked_crc(data: bytes) -> int:
    """CRC-32C as LevelDB stores it: turned by 15 bits, and a constant added."""
    table = _crc_table()
    crc = 0xFFFFFFFF
    for byte in data:
        crc = table[(crc ^ byte) & 0xFF] ^ crc >> 8
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
