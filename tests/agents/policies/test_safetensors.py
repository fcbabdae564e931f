"""The reader of weights in C++: what safetensors writes is read, and anything else is refused."""

from __future__ import annotations

import json
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import load

from quicgym import _core
from quicgym.agents.policies.by_name import PRETRAINED, pretrained_names


def file(header, data=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def entry(shape=(2,), offsets=(0, 8), dtype="F32"):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)}


VALUES = struct.pack("<2f", 1.5, -2.0)


def test_tensors_have_their_names_shapes_and_values():
    header = {
        "__metadata__": {"format": "pt"}, "b": entry(), "empty": entry((0, 3), (8, 8)),
        "a": entry((1, 2), (8, 16)), "scalar": entry((), (16, 20)),
    }  # fmt: skip
    tensors = _core.read_safetensors(file(header, VALUES * 2 + struct.pack("<f", 3.0)))
    assert {name: tensor.shape for name, tensor in tensors.items()} == {
        "a": (1, 2), "b": (2,), "empty": (0, 3), "scalar": (),
    }  # fmt: skip
    assert tensors["a"].tolist() == [[1.5, -2.0]] and tensors["scalar"] == 3.0


@pytest.mark.parametrize("name", pretrained_names())
def test_published_weights_are_read_as_safetensors_reads_them(name):
    data = (PRETRAINED / f"{name}.safetensors").read_bytes()
    expected, tensors = load(data), _core.read_safetensors(data)
    assert tensors.keys() == expected.keys()
    assert all(np.array_equal(tensors[key], expected[key]) for key in expected)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "it has 0 bytes"),
        (b"\0" * 8, "does not begin with '{'"),
        (struct.pack("<Q", 2**64 - 1) + b"{}", "its header is longer than the file"),
        (file(b"[]"), "does not begin with '{'"),
        (file(b"{"), "its header, line 1, byte 1: a name in quotes is missing"),
        (file(b'{"a":' * 32 + b"[]" + b"}" * 32), "more than 32 levels"),
        (file(b'{"a":1,"a":2}'), "an object has 'a' twice"),
        (file(b'{"\xff":1}'), "not UTF-8"),
        (file(b'{"\xed\xa0\x80":1}'), "not UTF-8"),
        (file(b'{"\\ud800":1}'), "half of a surrogate pair"),
        (file(b'{"a":NaN}'), "no value"),
        (file(b'{"a":01}'), "',' or '}' is missing"),
        (file(b'{"a":1e999}'), "beyond a double's range"),
        (file({"a": 1}), "tensor 'a' needs dtype, shape and data_offsets"),
        (file({"a": entry(dtype="F64")}, VALUES), "'a' is of F64; the architecture needs F32"),
        (file({"a": entry(dtype=None)}, VALUES), "tensor 'a' has no dtype"),
        (file({"a": entry((-2,))}, VALUES), "tensor 'a' has no valid shape"),
        (file({"a": entry((3,))}, VALUES), "bytes that are not its shape's"),
        (file({"a": entry((2**62, 2**62, 4))}, VALUES), "bytes that are not its shape's"),
        (file({"a": entry((2**63,))}, VALUES), "tensor 'a' has no valid shape"),
        (file({"a": entry(offsets=(0, 16))}, VALUES), "tensor 'a' has no valid data_offsets"),
        (file({"a": entry(), "b": entry()}, VALUES), "overlap, or leave a gap"),
        (file({"a": entry()}, VALUES + b"\0"), "bytes follow its last tensor"),
    ],
)
def test_a_file_that_is_not_right_is_refused(data, message):
    with pytest.raises(ValueError) as caught:
        _core.read_safetensors(data)
    assert message in str(caught.value)


@given(place=st.integers(0, 400), bytes_=st.binary(max_size=8), length=st.integers(0, 500))
def test_no_damage_crashes_the_reader(place, bytes_, length):
    header = {"a": entry(), "b": entry((2, 1), (8, 16))}
    data = bytearray(file(header, VALUES * 2))
    data[place : place + len(bytes_)] = bytes_
    try:
        tensors = _core.read_safetensors(bytes(data[: length or None]))
    except ValueError as error:
        assert str(error)
    else:
        assert all(4 * tensor.size <= len(data) for tensor in tensors.values())
