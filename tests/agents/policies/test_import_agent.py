"""Checkpoints of TensorFlow become agents, and damaged ones are refused with a reason."""

from __future__ import annotations

import json
import struct

import numpy as np
import pytest
from helpers.authors import (
    imported,
    masked_crc,
    random_agent,
    random_tensors,
    random_weights,
    write_bundle,
    write_index,
)

from quicgym import _core
from quicgym.agents.policies.import_agent import AGENTS, import_agent
from quicgym.agents.policies.tensor_bundle import TensorBundle
from quicgym.envs.scenarios.fields import ScenarioError
from quicgym.errors import PolicyError

SIZES = {"aurora": (30, 1), "orca": (70, 1), "indigo": (9, 5), "astraea": (50, 1)}


def network_of(agent, path):
    """Returns the network of a description."""
    inputs, outputs = SIZES[agent]
    return _core.PolicyNetwork(
        **json.loads(path.read_text())["architecture"],
        observation_size=inputs,
        outputs=outputs,
        tensors=_core.read_safetensors(path.with_suffix(".safetensors").read_bytes()),
    )


def sigmoid(values):
    return 1 / (1 + np.exp(-values))


def original(agent, weights, inputs):
    """The forward pass as the authors' graph has it, with batch normalisation and forget bias."""
    w = {name: values.astype(np.float64) for name, values in weights.items()}
    if agent == "indigo":
        c = h = np.zeros(32)
        scores = []
        for row in inputs:
            i, j, f, o = np.split(np.concatenate([row, h]) @ w["lstm_kernel"] + w["lstm_bias"], 4)
            c = c * sigmoid(f + 1) + sigmoid(i) * np.tanh(j)
            h = np.tanh(c) * sigmoid(o)
            scores.append(h @ w["out_w"] + w["out_b"])
        return np.array(scores)
    values = inputs
    for name in sorted(name[:-2] for name in w if name.startswith("fc") and name.endswith("_w")):
        values = values @ w[f"{name}_w"] + w[f"{name}_b"]
        if agent == "aurora":
            values = np.tanh(values)
            continue
        norm = f"bn{name[2:]}"
        values = (values - w[f"{norm}_mean"]) / np.sqrt(w[f"{norm}_var"] + 0.001)
        values = values + w[f"{norm}_beta"]
        values = np.where(values > 0, values, 0.2 * values)
    values = values @ w["out_w"] + w["out_b"]
    return values if agent == "aurora" else np.tanh(values)


@pytest.mark.parametrize("agent", sorted(AGENTS))
def test_network_computes_what_the_checkpoints_graph_does(agent, tmp_path):
    network = network_of(agent, random_agent(agent, tmp_path, seed=3))
    inputs = np.random.default_rng(4).normal(size=(20, SIZES[agent][0])).astype(np.float32)
    outputs, _ = network.unroll(inputs)
    expected = original(agent, random_weights(agent, 3), inputs)
    assert np.abs(outputs - expected).max() < 1e-4
    assert np.ptp(outputs) > 0.01


def test_recurrent_state_is_passed_on_by_its_owner(tmp_path):
    network = network_of("indigo", random_agent("indigo", tmp_path))
    inputs = np.random.default_rng(4).normal(size=(6, 9)).astype(np.float32)
    whole, _ = network.unroll(inputs)
    first, state = network.unroll(inputs[:3])
    rest, _ = network.unroll(inputs[3:], state.tolist())
    assert np.array_equal(np.concatenate([first, rest]), whole)
    with pytest.raises(ValueError, match="state for each flow"):
        network(inputs)


@pytest.mark.parametrize("place", ["index", "prefix", "folder", "saved model"])
def test_checkpoint_is_found(place, tmp_path):
    folder = tmp_path / "variables"
    folder.mkdir()
    write_bundle(folder / "variables", random_tensors("aurora"))
    given = {
        "index": folder / "variables.index",
        "prefix": folder / "variables",
        "folder": folder,
        "saved model": tmp_path,
    }[place]
    description, weights = import_agent("aurora", given, tmp_path / "aurora.json")
    assert description.is_file() and weights.is_file()


def test_bundle_has_its_tensors_by_name(tmp_path):
    tensors = {
        f"scope/layer-{number}/kernel": np.full((number + 1, 2), number, np.float32)
        for number in range(40)
    }
    write_bundle(tmp_path / "model", tensors)
    bundle = TensorBundle(tmp_path / "model.index")
    assert bundle.names == sorted(tensors)
    for name, tensor in tensors.items():
        assert np.array_equal(bundle.tensor(name, tensor.shape), tensor)


def test_checksum_is_crc_32c():
    """RFC 3720, appendix B.4: of 32 zeros."""
    masked = masked_crc(bytes(32))
    turned = (masked - 0xA282EAD8) & 0xFFFFFFFF
    assert (turned >> 17 | turned << 15) & 0xFFFFFFFF == 0x8A9136AA


def test_every_byte_of_an_index_counts(tmp_path):
    write_bundle(tmp_path / "model", {"a": np.zeros((2, 2), np.float32)})
    path = tmp_path / "model.index"
    whole = path.read_bytes()
    padding = range(len(whole) - 48, len(whole) - 8)  # in part unused
    for place in range(len(whole)):
        if place in padding:
            continue
        damaged = bytearray(whole)
        damaged[place] ^= 0x10
        path.write_bytes(damaged)
        try:
            names = TensorBundle(path).names
        except PolicyError:
            continue
        assert names == ["a"]  # in a block that nothing reads
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(PolicyError, match="index"):
            TensorBundle(path)


def test_an_index_that_grows_when_it_is_read_is_refused(tmp_path):
    name = b"n" * 2**14
    write_index(tmp_path / "long", [[(name + bytes([number]), b"") for number in range(200)]])
    with pytest.raises(PolicyError, match="names are far longer than the file"):
        TensorBundle(tmp_path / "long.index")
    write_index(tmp_path / "often", [[(b"a", b"")]], listed=2)
    with pytest.raises(PolicyError, match="a block is listed twice"):
        TensorBundle(tmp_path / "often.index")


def cut_data(prefix):
    path = prefix.with_name(f"{prefix.name}.data-00000-of-00001")
    path.write_bytes(path.read_bytes()[:-400])


def turn_bit(prefix):
    path = prefix.with_name(f"{prefix.name}.data-00000-of-00001")
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)


def remove_data(prefix):
    prefix.with_name(f"{prefix.name}.data-00000-of-00001").unlink()


@pytest.mark.parametrize(
    "damage, reason",
    [
        (cut_data, "bytes of tensor"),
        (turn_bit, "checksum of tensor"),
        (remove_data, "No such file or directory; put it next to"),
    ],
)
def test_damaged_data_is_refused(damage, reason, tmp_path):
    tensors = {name: values for name, values in random_tensors("aurora").items() if "pi" in name}
    write_bundle(tmp_path / "model", {k: v for k, v in tensors.items() if "Adam" not in k})
    damage(tmp_path / "model")
    with pytest.raises(PolicyError, match=reason):
        import_agent("aurora", tmp_path / "model", tmp_path / "aurora.json")
    assert not (tmp_path / "aurora.json").exists()


@pytest.mark.parametrize(
    "tensors, reason",
    [
        (random_tensors("orca"), r"has no tensor 'model/pi_fc0/w'; it has actor/"),
        (
            random_tensors("aurora") | {"model/pi/w": np.zeros((16, 2), np.float32)},
            r"'model/pi/w' has the shape \(16, 2\), and the agent's is \(16, 1\)",
        ),
        (
            random_tensors("aurora") | {"model/pi/w": np.zeros((16, 1), np.float64)},
            "has the type 2; only whole float32 is read",
        ),
    ],
)
def test_other_networks_are_refused(tensors, reason, tmp_path):
    with pytest.raises(PolicyError, match=reason):
        imported("aurora", tensors, tmp_path / "aurora.json")


def test_weights_that_are_no_numbers_are_refused(tmp_path):
    tensors = random_tensors("aurora") | {"model/pi/w": np.full((16, 1), np.nan, np.float32)}
    path = imported("aurora", tensors, tmp_path / "aurora.json")
    with pytest.raises(ValueError, match="not finite"):
        _core.load_agent(str(path))


def test_file_that_is_no_checkpoint_is_refused(tmp_path):
    (tmp_path / "a.index").write_bytes(b"x" * 100 + struct.pack("<Q", 1))
    with pytest.raises(PolicyError, match="is no index of a TensorFlow checkpoint"):
        import_agent("orca", tmp_path / "a", tmp_path / "orca.json")
    with pytest.raises(PolicyError, match="No such file"):
        import_agent("orca", tmp_path / "b", tmp_path / "orca.json")
    (tmp_path / "b.index").touch()
    with pytest.raises(PolicyError, match=r"has 2 files .index \(a.index, b.index\)"):
        import_agent("orca", tmp_path, tmp_path / "orca.json")


def test_names_are_checked(tmp_path):
    with pytest.raises(ScenarioError, match="unknown agent 'orcas'"):
        import_agent("orcas", tmp_path, tmp_path / "orca.json")
    with pytest.raises(ScenarioError, match=r"ends with \.json"):
        import_agent("orca", tmp_path, tmp_path / "orca.yaml")


def test_command_imports_once(quicgym, tmp_path):
    write_bundle(tmp_path / "model", random_tensors("aurora"))
    arguments = ["import-agent", "aurora", tmp_path / "model", "--out", tmp_path / "aurora.json"]
    assert "aurora.safetensors are written" in quicgym(*arguments).stdout
    again = quicgym(*arguments, status=2)
    assert "exists; give another name, or --force" in " ".join(again.stderr.split())
    quicgym(*arguments, "--force")
