"""Checkpoints in TensorFlow's format, and the published agents where their files are."""

from __future__ import annotations

import os
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest

from quicgym.agents.policies.import_agent import import_agent

_FOLDER = Path(os.environ.get("QUICGYM_AUTHORS", Path(__file__).parents[3] / "shared" / "authors"))
_DENSE = {
    "orca": (70, 256, 256, 1),
    "astraea": (50, 256, 128, 64, 1),
}
_NORMALIZATION = {"beta": "beta", "moving_mean": "mean", "moving_variance": "var"}


def authors_file(name: str) -> Mapping[str, np.ndarray]:
    """Returns the arrays of a file of the authors' agents; skips the test where it is missing."""
    path = _FOLDER / f"{name}.npz"
    if not path.is_file():
        pytest.skip(f"the authors' files are not in {_FOLDER}; QUICGYM_AUTHORS names their folder")
    with np.load(path) as arrays:
        return dict(arrays)


def published_agent(agent: str, folder: Path) -> Path:
    """Imports an agent from the authors' weights, by way of a checkpoint; skips without them."""
    weights = authors_file(agent)
    names = checkpoint_names(agent)
    return imported(agent, {names[key]: weights[key] for key in names}, folder / f"{agent}.json")


def random_agent(agent: str, folder: Path, seed: int = 0) -> Path:
    """Imports an agent with drawn weights, which needs no file."""
    return imported(agent, random_tensors(agent, seed), folder / f"{agent}.json")


def imported(agent: str, tensors: Mapping[str, np.ndarray], out: Path) -> Path:
    """Writes the tensors as a checkpoint beside `out`, and imports it."""
    checkpoint = out.with_name(f"{agent}-checkpoint")
    write_bundle(checkpoint, tensors)
    import_agent(agent, checkpoint, out)
    return out


def checkpoint_names(agent: str) -> dict[str, str]:
    """Returns the names of an agent's tensors in its checkpoint, by those in the authors' files."""
    if agent == "aurora":
        scopes = {"fc0": "model/pi_fc0", "fc1": "model/pi_fc1", "out": "model/pi"}
        return {
            f"{key}_{part}": f"{scope}/{part}" for key, scope in scopes.items() for part in "wb"
        }
    if agent == "indigo":
        cell = "global/rnn/multi_rnn_cell/cell_0/basic_lstm_cell"
        output = "global/fully_connected"
        return {
            "lstm_kernel": f"{cell}/kernel",
            "lstm_bias": f"{cell}/bias",
            "out_w": f"{output}/weights",
            "out_b": f"{output}/biases",
        }
    names = {"out_w": "actor/dense/kernel", "out_b": "actor/dense/bias"}
    for layer in range(1, len(_DENSE[agent]) - 1):
        names |= {
            f"fc{layer}_w": f"actor/fc{layer}/kernel",
            f"fc{layer}_b": f"actor/fc{layer}/bias",
        }
        scope = "actor/batch_normalization" + (f"_{layer - 1}" if layer > 1 else "")
        names |= {f"bn{layer}_{key}": f"{scope}/{part}" for part, key in _NORMALIZATION.items()}
    return names


def random_weights(agent: str, seed: int) -> dict[str, np.ndarray]:
    """Draws weights by the names in the authors' files."""
    draws = np.random.default_rng(seed)
    if agent == "indigo":
        shapes = {"lstm_kernel": (41, 128), "lstm_bias": (128,), "out_w": (32, 5), "out_b": (5,)}
    else:
        sizes = _DENSE.get(agent, (30, 32, 16, 1))
        first = 0 if agent == "aurora" else 1
        layers = [*(f"fc{first + place}" for place in range(len(sizes) - 2)), "out"]
        shapes = {}
        for place, layer in enumerate(layers):
            shapes |= {f"{layer}_w": sizes[place : place + 2], f"{layer}_b": (sizes[place + 1],)}
            if agent in _DENSE and layer != "out":
                shapes |= {
                    f"bn{layer[2:]}_{key}": (sizes[place + 1],) for key in _NORMALIZATION.values()
                }
    scales = {name: shape[0] ** -0.5 if len(shape) == 2 else 0.1 for name, shape in shapes.items()}
    drawn = {name: scales[name] * draws.standard_normal(shape) for name, shape in shapes.items()}
    for name in drawn:
        if name.endswith("_var"):
            drawn[name] = np.square(drawn[name]) + 0.01
    return {name: values.astype(np.float32) for name, values in drawn.items()}


def random_tensors(agent: str, seed: int = 0) -> dict[str, np.ndarray]:
    """Draws the tensors of an agent's checkpoint, with an optimiser's beside them."""
    weights, names = random_weights(agent, seed), checkpoint_names(agent)
    tensors = {name: weights[key] for key, name in names.items()}
    return tensors | {f"{name}/Adam": np.zeros_like(values) for name, values in tensors.items()}


# ---- TensorFlow's format ------------------------------------------------------------------------


def write_bundle(prefix: Path, tensors: Mapping[str, np.ndarray], *, per_block: int = 5) -> None:
    """Writes a checkpoint: PREFIX.index and one file of data."""
    data = b""
    values: list[tuple[bytes, bytes]] = [(b"", _field(1, 1) + _field(2, 0))]
    for name, tensor in sorted(tensors.items()):
        numbers = np.ascontiguousarray(tensor).tobytes()
        values.append((name.encode(), bundle_entry(tensor, len(data), numbers)))
        data += numbers
    blocks = [values[start : start + per_block] for start in range(0, len(values), per_block)]
    write_index(prefix, blocks)
    prefix.with_name(f"{prefix.name}.data-00000-of-00001").write_bytes(data)


def write_index(
    prefix: Path, blocks: Sequence[list[tuple[bytes, bytes]]], *, listed: int = 1
) -> None:
    """Writes PREFIX.index with blocks of keys and values, each of them listed several times."""
    index, places = b"", []
    for entries in blocks:
        block = _block(entries)
        places += [(entries[-1][0], len(index), len(block))] * listed
        index += block + _trailer(block)
    meta = _block([])
    meta_place = _varint(len(index)) + _varint(len(meta))
    index += meta + _trailer(meta)
    top = _block([(key, _varint(offset) + _varint(size)) for key, offset, size in places])
    handles = meta_place + _varint(len(index)) + _varint(len(top))
    index += top + _trailer(top) + handles.ljust(40, b"\0") + struct.pack("<Q", 0xDB4775248B80FB57)
    prefix.with_name(f"{prefix.name}.index").write_bytes(index)


def bundle_entry(tensor: np.ndarray, offset: int, numbers: bytes) -> bytes:
    """Returns a BundleEntryProto."""
    kind = {"float32": 1, "float64": 2, "int32": 3}[tensor.dtype.name]
    sizes = b"".join(_field(2, _field(1, size)) for size in tensor.shape)
    checksum = b"\x35" + struct.pack("<I", masked_crc(numbers))
    places = _field(4, offset) + _field(5, len(numbers))
    return _field(1, kind) + _field(2, sizes) + places + checksum


def _block(entries: list[tuple[bytes, bytes]]) -> bytes:
    block, before = b"", b""
    for key, value in entries:
        shared = len(os.path.commonprefix([before, key]))
        block += _varint(shared) + _varint(len(key) - shared) + _varint(len(value))
        block += key[shared:] + value
        before = key
    return block + struct.pack("<II", 0, 1)


def _trailer(block: bytes) -> bytes:
    return b"\0" + struct.pack("<I", masked_crc(block + b"\0"))


def _field(number: int, value: int | bytes) -> bytes:
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    return _varint(number << 3 | 2) + _varint(len(value)) + value


def _varint(value: int) -> bytes:
    result = b""
    while value >= 0x80:
        result += bytes([value & 0x7F | 0x80])
        value >>= 7
    return result + bytes([value])


def masked_crc(data: bytes) -> int:
    """CRC-32C bit by bit, from its polynomial, and LevelDB's mask."""
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 * (byte & 1))
        table.append(byte)
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ table[(crc ^ byte) & 0xFF]
    crc = ~crc & 0xFFFFFFFF
    return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF
