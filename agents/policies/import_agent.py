"""Agents of other authors: their TensorFlow checkpoints as quicgym's policy files.

The files are those of a learned policy (quicgym.agents.policies.learned): a description, and the
weights next to it. The description has `agent` in place of an environment. A controller in C++
(sim/policy/authors) reads both, and has the agent's clock and rules.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from quicgym import _core
from quicgym.agents.policies.learned import FORMAT
from quicgym.agents.policies.tensor_bundle import TensorBundle
from quicgym.envs.scenarios.fields import ScenarioError
from quicgym.errors import PolicyError
from quicgym.output_folders import write_atomically
from quicgym.yaml_files import closest

Tensors = dict[str, np.ndarray]
_EPSILON = 0.001
"""TensorFlow's batch normalisation adds this to a variance."""
_FORGET_BIAS = 1.0
"""TensorFlow's BasicLSTMCell adds this to the bias of the forget gate."""


@dataclass(frozen=True)
class _Agent:
    """Describes the checkpoint of an agent."""

    description: str
    source: str
    architecture: Mapping[str, Any]
    read: Callable[[TensorBundle], Tensors]


def import_agent(agent: str, checkpoint: Path, out: Path) -> list[Path]:
    """Writes an agent's checkpoint as a description and weights, and returns both files.

    Args:
        agent: "aurora", "orca", "indigo" or "astraea".
        checkpoint: The .index file of a checkpoint, its path without .index, the folder of a
            checkpoint, or that of a saved model.
        out: The file of the description, whose name ends with .json; the weights go next to it.

    Raises:
        ScenarioError: There is no such agent, or `out` is no .json.
        PolicyError: The checkpoint cannot be read, is damaged, or is another network's.
    """
    if agent not in AGENTS:
        raise ScenarioError(f"unknown agent {agent!r}; {closest(agent, AGENTS)}")
    if out.suffix != ".json":
        raise ScenarioError(f"--out {out}: give a name that ends with .json")
    known = AGENTS[agent]
    weights = _safetensors(known.read(TensorBundle(_index_of(checkpoint))))
    description = {
        "format": FORMAT,
        "name": agent,
        "description": known.description,
        "agent": agent,
        "architecture": known.architecture,
        "sha256": sha256(weights).hexdigest(),
        "training": {"source": known.source},
    }
    text = json.dumps(description, indent=1, ensure_ascii=False) + "\n"
    _core.check_policy_description(text.encode())
    beside = out.with_suffix(".safetensors")
    write_atomically({beside: lambda new: new.write_bytes(weights), out: text})
    return [out, beside]


def _index_of(checkpoint: Path) -> Path:
    if not checkpoint.is_dir():
        is_index = checkpoint.suffix == ".index"
        return checkpoint if is_index else checkpoint.with_name(f"{checkpoint.name}.index")
    folder = checkpoint / "variables" if (checkpoint / "variables").is_dir() else checkpoint
    found = sorted(folder.glob("*.index"))
    if len(found) != 1:
        names = ", ".join(path.name for path in found) or "none"
        raise PolicyError(
            f"{folder}: has {len(found)} files .index ({names}); give the path of one"
        )
    return found[0]


def _dense(
    bundle: TensorBundle, layers: Mapping[str, tuple[str, str]], sizes: tuple[int, ...]
) -> Tensors:
    """Returns dense layers.

    Args:
        bundle: The checkpoint.
        layers: Names of kernel and bias in the checkpoint, by the layer's name in quicgym.
        sizes: Numbers of inputs, and of outputs of each layer.
    """
    result: Tensors = {}
    for place, (own_name, (kernel, bias)) in enumerate(layers.items()):
        inputs, outputs = sizes[place : place + 2]
        result[f"{own_name}.weight"] = bundle.tensor(kernel, (inputs, outputs)).T
        result[f"{own_name}.bias"] = bundle.tensor(bias, (outputs,))
    return result


def _normalized(bundle: TensorBundle, sizes: tuple[int, ...]) -> Tensors:
    """Returns dense layers whose batch normalisation has become part of weights and biases."""
    hidden = len(sizes) - 2
    own_names = ["features.layers.0", *(f"hidden.{2 * place}" for place in range(hidden - 1))]
    scope = [*(f"actor/fc{place + 1}" for place in range(hidden)), "actor/dense"]
    layers = {
        own_name: (f"{name}/kernel", f"{name}/bias")
        for own_name, name in zip([*own_names, "action"], scope, strict=True)
    }
    tensors = _dense(bundle, layers, sizes)
    for place, own_name in enumerate(own_names):
        name = "actor/batch_normalization" + (f"_{place}" if place else "")
        beta, mean, variance = (
            bundle.tensor(f"{name}/{part}", (sizes[place + 1],)).astype(np.float64)
            for part in ("beta", "moving_mean", "moving_variance")
        )
        scale = 1.0 / np.sqrt(variance + _EPSILON)
        weight, bias = tensors[f"{own_name}.weight"], tensors[f"{own_name}.bias"]
        tensors[f"{own_name}.weight"] = weight * scale[:, np.newaxis]
        tensors[f"{own_name}.bias"] = (bias - mean) * scale + beta
    return tensors


def _aurora(bundle: TensorBundle) -> Tensors:
    names = {"features.layers.0": "model/pi_fc0", "hidden.0": "model/pi_fc1", "action": "model/pi"}
    layers = {own_name: (f"{name}/w", f"{name}/b") for own_name, name in names.items()}
    return _dense(bundle, layers, (30, 32, 16, 1))


def _indigo(bundle: TensorBundle) -> Tensors:
    inputs, size = 9, 32
    cell = "global/rnn/multi_rnn_cell/cell_0/basic_lstm_cell"
    kernel = bundle.tensor(f"{cell}/kernel", (inputs + size, 4 * size))
    bias = bundle.tensor(f"{cell}/bias", (4 * size,))
    # TensorFlow's gates are input, cell, forget, output; PyTorch's input, forget, cell, output.
    order = np.concatenate([np.arange(size) + gate * size for gate in (0, 2, 1, 3)])
    bias = bias + np.repeat([0.0, 0.0, _FORGET_BIAS, 0.0], size)
    output = "global/fully_connected"
    return {
        "lstm.weight_ih_l0": kernel[:inputs, order].T,
        "lstm.weight_hh_l0": kernel[inputs:, order].T,
        "lstm.bias_ih_l0": bias[order],
        "lstm.bias_hh_l0": np.zeros(4 * size),
        **_dense(bundle, {"action": (f"{output}/weights", f"{output}/biases")}, (size, 5)),
    }


def _architecture(
    sizes: list[int], hidden: list[int], activation: str, output: str
) -> dict[str, Any]:
    return {
        "extractor_sizes": sizes,
        "hidden_sizes": hidden,
        "activation": activation,
        "output": output,
    }


AGENTS = {
    "aurora": _Agent(
        "Aurora: the published model of Jay et al., ICML 2019",
        "github.com/giacomoni/mininettestbed, saved_models/icml_paper_model",
        _architecture([32], [16], "tanh", "linear"),
        _aurora,
    ),
    "orca": _Agent(
        "Orca: the published model of Abbasloo et al., SIGCOMM 2020",
        "github.com/Soheil-ab/Orca, models/model.ckpt-1283529",
        _architecture([256], [256], "leaky-relu", "tanh"),
        lambda bundle: _normalized(bundle, (70, 256, 256, 1)),
    ),
    "indigo": _Agent(
        "Indigo: the published model of Yan et al., USENIX ATC 2018",
        "github.com/StanfordSNR/indigo, dagger/model/model",
        {"lstm_size": 32, **_architecture([], [], "tanh", "argmax")},
        _indigo,
    ),
    "astraea": _Agent(
        "Astraea: the published model of Liao et al., EuroSys 2024",
        "github.com/xudongliao/astraea-open-source, models/py/model-299",
        _architecture([256], [128, 64], "leaky-relu", "tanh"),
        lambda bundle: _normalized(bundle, (50, 256, 128, 64, 1)),
    ),
}


def _safetensors(tensors: Tensors) -> bytes:
    """Returns tensors in the format of safetensors, which needs no package to be written."""
    header: dict[str, Any] = {}
    parts: list[bytes] = []
    position = 0
    for name, tensor in sorted(tensors.items()):
        parts.append(np.ascontiguousarray(tensor, dtype="<f4").tobytes())
        end = position + len(parts[-1])
        header[name] = {
            "dtype": "F32",
            "shape": list(tensor.shape),
            "data_offsets": [position, end],
        }
        position = end
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + b"".join(parts)
