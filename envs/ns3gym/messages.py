"""The messages of ns3-gym's protocol as classes, made from messages.proto at import.

The classes live in a descriptor pool of their own: ns3-gym's package defines the same names in the
default one, and both may be imported in one process.
"""

from __future__ import annotations

import re
from enum import IntEnum
from importlib.resources import files
from reprlib import repr as show
from typing import Any

from google.protobuf import any_pb2
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError, Message
from google.protobuf.message_factory import GetMessageClass

from quicgym.envs.ns3gym.errors import MessageError

PACKAGE = "ns3opengym"
TYPE_URL_PREFIX = f"type.googleapis.com/{PACKAGE}."

_ANY = "google.protobuf.Any"
_SCALARS = {
    name: FieldDescriptorProto.Type.Value(f"TYPE_{name.upper()}")
    for name in ("bool", "double", "float", "int32", "string", "uint32", "uint64")
}
_BLOCK = re.compile(r"\b(message|enum)\s+(\w+)\s*\{([^}]*)\}")
_FIELD = re.compile(r"(repeated\s+)?([\w.]+)\s+(\w+)\s*=\s*(\d+)")
_VALUE = re.compile(r"(\w+)\s*=\s*(\d+)")


def _read_schema(text: str) -> FileDescriptorProto:
    """Reads what messages.proto uses of the language: flat messages and enums."""
    text = re.sub(r"//[^\n]*", "", text)
    schema = FileDescriptorProto(
        name="quicgym/ns3gym/messages.proto",
        package=PACKAGE,
        syntax="proto3",
        dependency=[any_pb2.DESCRIPTOR.name],
    )
    blocks = _BLOCK.findall(text)
    enums = {name for kind, name, _ in blocks if kind == "enum"}
    for kind, name, body in blocks:
        statements = [statement.strip() for statement in body.split(";")][:-1]
        if kind == "enum":
            enum = schema.enum_type.add(name=name)
            for statement in statements:
                value, number = _match(_VALUE, statement)
                enum.value.add(name=value, number=int(number))
            continue
        message = schema.message_type.add(name=name)
        for statement in statements:
            repeated, type_name, field_name, number = _match(_FIELD, statement)
            field = message.field.add(name=field_name, number=int(number))
            field.label = field.LABEL_REPEATED if repeated else field.LABEL_OPTIONAL
            if type_name in _SCALARS:
                field.type = _SCALARS[type_name]
            else:
                field.type = field.TYPE_ENUM if type_name in enums else field.TYPE_MESSAGE
                field.type_name = f".{_ANY}" if type_name == _ANY else f".{PACKAGE}.{type_name}"
    return schema


def _match(pattern: re.Pattern[str], statement: str) -> tuple[str, ...]:
    match = pattern.fullmatch(statement)
    if match is None:
        raise SyntaxError(f"messages.proto: {statement!r} is beyond what messages.py reads")
    return match.groups(default="")


_pool = DescriptorPool()
_pool.AddSerializedFile(any_pb2.DESCRIPTOR.serialized_pb)
_pool.Add(_read_schema(files(__package__).joinpath("messages.proto").read_text(encoding="utf-8")))


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
    """Returns the message that the bytes hold.

    Raises:
        MessageError: They hold none of this class; the text begins with `where`.
    """
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
    """Returns the message in a field of type Any.

    Raises:
        MessageError: It holds something else; the text begins with `where`.
    """
    expected = TYPE_URL_PREFIX + message_class.DESCRIPTOR.name
    if field.type_url != expected:
        raise MessageError(f"{where}.type_url = {show(field.type_url)}: is not {expected!r}")
    return parse(message_class, field.value, f"{where}.value")
