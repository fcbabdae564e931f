"""The messages of ns3-gym's protocol as classes, made from messages.binpb at import.

The classes live in a descriptor pool of their own: ns3-gym's package defines the same names in the
default one, and both may be imported in one process. In envs/ns3gym this command makes the file:

    python -m grpc_tools.protoc -I. --descriptor_set_out=messages.binpb messages.proto
"""

from __future__ import annotations

from enum import IntEnum
from importlib.resources import files
from reprlib import repr as show
from typing import Any

from google.protobuf import any_pb2
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError, Message
from google.protobuf.message_factory import GetMessageClass

from quicgym.envs.ns3gym.errors import MessageError

PACKAGE = "ns3opengym"
TYPE_URL_PREFIX = f"type.googleapis.com/{PACKAGE}."


def _read_descriptors() -> DescriptorPool:
    pool = DescriptorPool()
    pool.AddSerializedFile(any_pb2.DESCRIPTOR.serialized_pb)
    compiled = files(__package__).joinpath("messages.binpb").read_bytes()
    for schema in FileDescriptorSet.FromString(compiled).file:
        pool.Add(schema)
    return pool


_pool = _read_descriptors()


def _message(name: str) -> Any:
    return GetMessageClass(_pool.FindMessageTypeByName(f"{PACKAGE}.{name}"))


def _enum(name: str) -> Any:
    values = _pool.FindEnumTypeByName(f"{PACKAGE}.{name}").values
    return IntEnum(name, {value.name: value.number for value in values})


SpaceType = _enum("SpaceType")
Dtype = _enum("Dtype")
Reason = _enum("Reason")

SpaceDescription = _message("SpaceDescription")
DiscreteSpace = _message("DiscreteSpace")
BoxSpace = _message("BoxSpace")
TupleSpace = _message("TupleSpace")
DictSpace = _message("DictSpace")

DataContainer = _message("DataContainer")
DiscreteDataContainer = _message("DiscreteDataContainer")
BoxDataContainer = _message("BoxDataContainer")
TupleDataContainer = _message("TupleDataContainer")
DictDataContainer = _message("DictDataContainer")

SimInitMsg = _message("SimInitMsg")
SimInitAck = _message("SimInitAck")
EnvStateMsg = _message("EnvStateMsg")
EnvActMsg = _message("EnvActMsg")


def parse(message_class: Any, data: bytes, where: str) -> Any:
    """Returns the message that the bytes hold; MessageError begins with `where`."""
    message = message_class()
    try:
        message.ParseFromString(data)
    except DecodeError:
        name = message.DESCRIPTOR.name
        raise MessageError(f"{where}: {len(data)} bytes are not a valid {name}") from None
    return message


def pack(field: Any, message: Message) -> None:
    """Writes a message into a field of type Any."""
    field.type_url = TYPE_URL_PREFIX + message.DESCRIPTOR.name
    field.value = message.SerializeToString()


def unpack(field: Any, message_class: Any, where: str) -> Any:
    """Returns the message in a field of type Any; MessageError begins with `where`."""
    expected = TYPE_URL_PREFIX + message_class.DESCRIPTOR.name
    if field.type_url != expected:
        raise MessageError(f"{where}.type_url = {show(field.type_url)}: is not {expected!r}")
    return parse(message_class, field.value, f"{where}.value")
