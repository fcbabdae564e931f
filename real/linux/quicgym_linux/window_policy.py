"""A learned policy of Window-v1 for the kernel: its network in 16 bits, or what is too large."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from quicgym.agents.policies.learned import load_policy
from quicgym.agents.policies.stored_network import StoredNetwork
from quicgym.errors import UserError

FIXED_SHIFT = 16
"""Values are whole numbers over 2^16: bpf/logarithm.h."""
MOST_LAYERS, MOST_WIDTH, MOST_WEIGHTS, MOST_BIASES = 4, 256, 131072, 1024
"""Layout of the struct network in bpf/network.h."""
HISTORY_LENGTH = 128
LARGEST_WEIGHT = 2**15 - 1
LARGEST_SHIFT = 30
LAYOUTS = {"recent": 1, "spans": 0}


@dataclass(frozen=True)
class KernelPolicy:
    """The part of a policy that the program window_policy needs.

    Attributes:
        name: Name of the policy.
        constants: Values for the constants of the program.
        network: Bytes of the struct network in bpf/network.h.
    """

    name: str
    constants: dict[str, list[int]]
    network: bytes

    @property
    def layers(self) -> list[list[int]]:
        """The layers as the function `compute` of the loader takes them."""
        members = ("inputs", "outputs", "weights", "biases", "shift", "rectifies")
        columns = [self.constants[f"layer_{member}"] for member in members]
        return [list(layer) for layer in zip(*columns, strict=True)]


def for_kernel(path: Path) -> KernelPolicy:
    """Returns a policy for the kernel.

    Args:
        path: Path of the policy's description (.json).

    Raises:
        UserError: The kernel's program does not have such policies; the text names the limit.
    """
    policy = load_policy(path)
    description = policy.description
    assert description is not None, "a policy that is read from a file has its description"
    decisions, architecture = description.decisions, description.architecture
    layout = decisions.observations or "spans"
    required = (
        ("environment", decisions.environment, ("window", "easy")),
        ("observations", layout, tuple(LAYOUTS)),
        ("history_length", decisions.history_length, (HISTORY_LENGTH,)),
        ("architecture.activation", architecture.activation, ("relu",)),
        ("architecture.output", architecture.output, ("argmax",)),
    )
    for field, value, choices in required:
        if value not in choices:
            known = " or ".join(map(repr, choices))
            raise UserError(
                f"{path}: {field} = {value!r}: policies in the kernel have {known}; without "
                "`kernel:` before its name the agent drives the connection with any policy"
            )
    assert isinstance(policy.network, StoredNetwork), "so is that of a policy from files"
    layers = list(_layers(policy.network.tensors))
    weights = sum(matrix.size for matrix, _ in layers)
    biases = sum(bias.size for _, bias in layers)
    width = max(max(matrix.shape) for matrix, _ in layers)
    for what, number, most in (
        ("layers", len(layers), MOST_LAYERS),
        ("inputs or outputs of a layer", width, MOST_WIDTH),
        ("weights", weights, MOST_WEIGHTS),
        ("biases", biases, MOST_BIASES),
    ):
        if number > most:
            raise UserError(
                f"{path}: {number} {what}, and the kernel's program takes {most}; train a smaller "
                "network, or let the agent drive the connection, without `kernel:`"
            )
    rtts = decisions.decision_interval_rtts
    constants = {
        "layers": [len(layers)],
        "is_recent": [LAYOUTS[layout]],
        "decision_us": [round(1000 * decisions.decision_interval_ms)],
        "decision_rtts_permille": [0 if rtts is None else round(1000 * rtts)],
        **{
            f"layer_{member}": []
            for member in ("inputs", "outputs", "weights", "biases", "shift", "rectifies")
        },
    }
    all_weights = np.zeros(MOST_WEIGHTS + MOST_WIDTH, np.int16)
    all_biases = np.zeros(MOST_BIASES, np.int64)
    weight = bias_place = 0
    for number, (matrix, bias) in enumerate(layers):
        shift = _shift(matrix)
        for member, value in (
            ("inputs", matrix.shape[1]),
            ("outputs", matrix.shape[0]),
            ("weights", weight),
            ("biases", bias_place),
            ("shift", shift),
            ("rectifies", int(number < len(layers) - 1)),
        ):
            constants[f"layer_{member}"].append(value)
        scaled = np.rint(matrix.astype(float) * 2.0**shift).astype(np.int16)
        all_weights[weight : weight + matrix.size] = scaled.ravel()
        scale = 2.0 ** (FIXED_SHIFT + shift)
        all_biases[bias_place : bias_place + bias.size] = np.rint(bias.astype(float) * scale)
        weight += matrix.size
        bias_place += bias.size
    network = all_biases.tobytes() + all_weights.tobytes()
    return KernelPolicy(description.name, constants, network)


def _layers(tensors: Mapping[str, np.ndarray]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yields weights and biases, from the observation to the choices."""
    for stem in ("features.layers", "hidden"):
        for number in range(0, 2 * MOST_LAYERS + 2, 2):
            if f"{stem}.{number}.weight" in tensors:
                yield tensors[f"{stem}.{number}.weight"], tensors[f"{stem}.{number}.bias"]
    yield tensors["action.weight"], tensors["action.bias"]


def _shift(matrix: np.ndarray[Any, Any]) -> int:
    """Returns the largest shift with which all weights fit into 16 bits."""
    largest = float(np.abs(matrix).max())
    if largest == 0.0:
        return LARGEST_SHIFT
    return max(1, min(LARGEST_SHIFT, math.floor(math.log2(LARGEST_WEIGHT / largest))))
