"""The messages byte for byte, as the protocol has them."""

from __future__ import annotations

import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import descriptor_pool, message_factory
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet

from quicgym.envs.ns3gym import messages
from quicgym.envs.ns3gym.messages import Dtype, Reason, SpaceType

# Wire types of protobuf's encoding: a field begins with number << 3 | wire type.
VARINT, FIXED64, LENGTH, FIXED32 = 0, 1, 2, 5


def tag(number: int, wire_type: int) -> bytes:
    return bytes([number << 3 | wire_type])


def sized(number: int, payload: bytes) -> bytes:
    length = len(payload)
    varint = bytes([length]) if length < 128 else bytes([length % 128 + 128, length // 128])
    return tag(number, LENGTH) + varint + payload


def any_of(name: bytes, payload: bytes) -> bytes:
    return sized(1, b"type.googleapis.com/ns3opengym." + name) + sized(2, payload)


def small(number: int, value: int) -> bytes:
    assert 0 < value < 128
    return tag(number, VARINT) + bytes([value])


DISCRETE_SPACE = small(1, 5)
BOX_SPACE = (
    tag(1, FIXED32)
    + struct.pack("<f", -1.5)
    + tag(2, FIXED32)
    + struct.pack("<f", 2.0)
    + small(3, 3)
    + sized(4, b"\x02\x03")
)
DISCRETE = small(1, 1) + sized(2, any_of(b"DiscreteSpace", DISCRETE_SPACE)) + sized(3, b"port")
BOX = small(1, 2) + sized(2, any_of(b"BoxSpace", BOX_SPACE))
DISCRETE_DATA = small(1, 4)
BOX_DATA = (
    small(1, 4)
    + sized(2, b"\x01\x02")
    + sized(3, b"\x07" + b"\xff" * 9 + b"\x01")  # 7, -1
    + sized(4, b"\xff\xff\xff\xff\x0f")  # 2^32 - 1
    + sized(5, struct.pack("<ff", 0.5, -0.25))
    + sized(6, struct.pack("<dd", 0.1, 1e300))
)
DISCRETE_CONTAINER = (
    small(1, 1) + sized(2, any_of(b"DiscreteDataContainer", DISCRETE_DATA)) + sized(3, b"port")
)
BOX_CONTAINER = small(1, 2) + sized(2, any_of(b"BoxDataContainer", BOX_DATA))


def described(kind: int, space: Any, name: str = "") -> Any:
    result = messages.SpaceDescription(type=kind, name=name)
    messages.pack(result.space, space)
    return result


def contained(kind: int, data: Any, name: str = "") -> Any:
    result = messages.DataContainer(type=kind, name=name)
    messages.pack(result.data, data)
    return result


discrete_space = messages.DiscreteSpace(n=5)
box_space = messages.BoxSpace(low=-1.5, high=2, dtype=Dtype.FLOAT, shape=[2, 3])
discrete = described(SpaceType.Discrete, discrete_space, "port")
box = described(SpaceType.Box, box_space)
discrete_data = messages.DiscreteDataContainer(data=4)
box_data = messages.BoxDataContainer(
    dtype=Dtype.DOUBLE,
    shape=[1, 2],
    intData=[7, -1],
    uintData=[2**32 - 1],
    floatData=[0.5, -0.25],
    doubleData=[0.1, 1e300],
)
discrete_container = contained(SpaceType.Discrete, discrete_data, "port")
box_container = contained(SpaceType.Box, box_data)

GOLDEN = [
    (discrete_space, DISCRETE_SPACE),
    (box_space, BOX_SPACE),
    (discrete, DISCRETE),
    (messages.TupleSpace(element=[discrete, box]), sized(1, DISCRETE) + sized(1, BOX)),
    (messages.DictSpace(element=[discrete]), sized(1, DISCRETE)),
    (discrete_data, DISCRETE_DATA),
    (box_data, BOX_DATA),
    (discrete_container, DISCRETE_CONTAINER),
    (
        messages.TupleDataContainer(element=[discrete_container, box_container]),
        sized(1, DISCRETE_CONTAINER) + sized(1, BOX_CONTAINER),
    ),
    (messages.DictDataContainer(element=[discrete_container]), sized(1, DISCRETE_CONTAINER)),
    (
        messages.SimInitMsg(
            simProcessId=300, wafShellProcessId=2**64 - 1, obsSpace=box, actSpace=discrete
        ),
        b"\x08\xac\x02" + b"\x10" + b"\xff" * 9 + b"\x01" + sized(3, BOX) + sized(4, DISCRETE),
    ),
    (messages.SimInitAck(done=True, stopSimReq=True), b"\x08\x01\x10\x01"),
    (
        messages.EnvStateMsg(
            obsData=box_container, reward=-0.5, isGameOver=True, reason=Reason.GameOver, info="x=1"
        ),
        sized(1, BOX_CONTAINER)
        + tag(2, FIXED32)
        + struct.pack("<f", -0.5)
        + b"\x18\x01"
        + b"\x20\x01"
        + sized(5, b"x=1"),
    ),
    (
        messages.EnvActMsg(actData=discrete_container, stopSimReq=True),
        sized(1, DISCRETE_CONTAINER) + b"\x10\x01",
    ),
]


@pytest.mark.parametrize(
    ("message", "data"), GOLDEN, ids=[message.DESCRIPTOR.name for message, _ in GOLDEN]
)
def test_bytes_of_each_message_are_the_protocol_s(message: Any, data: bytes) -> None:
    assert message.SerializeToString() == data
    assert messages.parse(type(message), data, "test") == message


def test_every_message_has_its_bytes_above_with_every_field() -> None:
    file = messages.SimInitMsg.DESCRIPTOR.file
    golden = {message.DESCRIPTOR.name: message for message, _ in GOLDEN}
    assert set(golden) == set(file.message_types_by_name)
    for name, descriptor in file.message_types_by_name.items():
        assert {field.name for field, _ in golden[name].ListFields()} == set(
            descriptor.fields_by_name
        )


def test_numbers_of_the_enums() -> None:
    assert {kind.name: int(kind) for kind in SpaceType} == {
        "NoSpaceType": 0, "Discrete": 1, "Box": 2, "Tuple": 3, "Dict": 4,
    }  # fmt: skip
    assert {dtype.name: int(dtype) for dtype in Dtype} == {
        "NoDType": 0, "INT": 1, "UINT": 2, "FLOAT": 3, "DOUBLE": 4,
    }  # fmt: skip
    assert {reason.name: int(reason) for reason in Reason} == {"SimulationEnd": 0, "GameOver": 1}


def test_another_package_may_define_the_same_names_in_the_same_process() -> None:
    pool = descriptor_pool.Default()
    other = FileDescriptorProto(name="somebody_s.proto", package="ns3opengym", syntax="proto3")
    other.message_type.add(name="SimInitMsg").field.add(name="other", number=1, type=9, label=1)
    pool.Add(other)
    theirs = message_factory.GetMessageClass(pool.FindMessageTypeByName("ns3opengym.SimInitMsg"))
    assert theirs(other="x").SerializeToString() == b"\x0a\x01x"
    assert messages.SimInitMsg(simProcessId=1).SerializeToString() == b"\x08\x01"


def test_the_compiled_messages_are_those_of_the_proto_file(tmp_path: Path) -> None:
    pytest.importorskip("grpc_tools")
    folder = Path(__file__).parents[3] / "envs" / "ns3gym"
    fresh = tmp_path / "messages.binpb"
    protoc = [sys.executable, "-m", "grpc_tools.protoc", f"--proto_path={folder}"]
    subprocess.run([*protoc, f"--descriptor_set_out={fresh}", "messages.proto"], check=True)
    expected = FileDescriptorSet.FromString(fresh.read_bytes())
    committed = FileDescriptorSet.FromString((folder / "messages.binpb").read_bytes())
    assert committed == expected, "messages.binpb is stale: run the command in messages.py"
