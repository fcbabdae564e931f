"""The messages, as the protocol has them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from google.protobuf import descriptor_pool, message_factory
from google.protobuf.descriptor_pb2 import (
    FieldDescriptorProto,
    FileDescriptorProto,
    FileDescriptorSet,
)

from quicgym.envs.ns3gym import messages
from quicgym.envs.ns3gym.messages import Dtype, Reason, SpaceType

FIELDS = {
    "SpaceDescription": ["1 type SpaceType", "2 space Any", "3 name string"],
    "DiscreteSpace": ["1 n int32"],
    "BoxSpace": ["1 low float", "2 high float", "3 dtype Dtype", "4 shape repeated uint32"],
    "TupleSpace": ["1 element repeated SpaceDescription"],
    "DictSpace": ["1 element repeated SpaceDescription"],
    "DataContainer": ["1 type SpaceType", "2 data Any", "3 name string"],
    "DiscreteDataContainer": ["1 data int32"],
    "BoxDataContainer": [
        "1 dtype Dtype", "2 shape repeated uint32", "3 intData repeated int32",
        "4 uintData repeated uint32", "5 floatData repeated float", "6 doubleData repeated double",
    ],
    "TupleDataContainer": ["1 element repeated DataContainer"],
    "DictDataContainer": ["1 element repeated DataContainer"],
    "SimInitMsg": [
        "1 simProcessId uint64", "2 wafShellProcessId uint64", "3 obsSpace SpaceDescription",
        "4 actSpace SpaceDescription",
    ],
    "SimInitAck": ["1 done bool", "2 stopSimReq bool"],
    "EnvStateMsg": [
        "1 obsData DataContainer", "2 reward float", "3 isGameOver bool", "4 reason Reason",
        "5 info string",
    ],
    "EnvActMsg": ["1 actData DataContainer", "2 stopSimReq bool"],
}  # fmt: skip


def test_fields_of_each_message_are_the_protocol_s() -> None:
    schema = FileDescriptorProto()
    messages.SimInitMsg.DESCRIPTOR.file.CopyToProto(schema)
    assert (schema.package, schema.syntax) == ("ns3opengym", "proto3")
    assert {message.name: [written(field) for field in message.field] for message in
            schema.message_type} == FIELDS  # fmt: skip


def written(field: FieldDescriptorProto) -> str:
    repeated = "repeated " * (field.label == FieldDescriptorProto.LABEL_REPEATED)
    scalar = FieldDescriptorProto.Type.Name(field.type).removeprefix("TYPE_").lower()
    return f"{field.number} {field.name} {repeated}{field.type_name.rpartition('.')[2] or scalar}"


def test_a_message_s_bytes_are_the_protocol_s() -> None:
    description = messages.SpaceDescription(type=SpaceType.Discrete, name="port")
    messages.pack(description.space, messages.DiscreteSpace(n=5))
    url = b"type.googleapis.com/ns3opengym.DiscreteSpace"
    data = b"\x0a" + bytes([len(url)]) + url + b"\x12\x02\x08\x05"
    data = b"\x08\x01\x12" + bytes([len(data)]) + data + b"\x1a\x04port"
    assert description.SerializeToString() == data
    assert messages.parse(messages.SpaceDescription, data, "test") == description


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
