"""Several policies as one: a network with a block for each of them.

Its choice is the one with the highest sum of the members' log-probabilities. The normalizer of a
softmax is the same for all choices, so the sum of the logits has the same maximum. In a Box the
value of the last layer is the mean of the members'.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from quicgym.agents.policies.architecture import Architecture
from quicgym.agents.policies.stored_network import StoredNetwork
from quicgym.envs.decisions import DECISION_ARGUMENTS


def joined(members: Sequence[StoredNetwork]) -> StoredNetwork:
    """Returns the network whose outputs are the sum, or in a Box the mean, of the members'.

    Args:
        members: Networks with the same decisions and numbers of layers.

    Raises:
        ValueError: The members do not fit one another; the text names the field.
    """
    first = members[0]
    for member in members[1:]:
        _check_fit(first, member)
    tensors: dict[str, np.ndarray] = {}
    for name in first.tensors:
        parts = [np.asarray(member.tensors[name], dtype=np.float32) for member in members]
        if name == "action.weight":
            tensors[name] = np.concatenate(parts, axis=1)
        elif name == "action.bias":
            tensors[name] = np.stack(parts).sum(axis=0)
        elif name.endswith("bias") or name == "features.layers.0.weight":
            tensors[name] = np.concatenate(parts)  # all members read the observation
        else:
            tensors[name] = _blocks(parts)
    if first.architecture.output != "argmax":
        for name in ("action.weight", "action.bias"):
            tensors[name] = np.asarray(tensors[name] / len(members), dtype=np.float32)
    return StoredNetwork(_sizes_of(members), first.decisions, tensors)


def _check_fit(first: StoredNetwork, other: StoredNetwork) -> None:
    if first.tensors.keys() != other.tensors.keys():
        raise ValueError("architecture: other numbers of layers than the first member's")
    fields = ("environment", *DECISION_ARGUMENTS, "activation", "output")
    for name in fields:
        here, value = (
            getattr(member.decisions, name, getattr(member.architecture, name, None))
            for member in (other, first)
        )
        if here != value:
            raise ValueError(f"{name} = {here!r}, of the first member {value!r}; train them alike")


def _sizes_of(members: Sequence[StoredNetwork]) -> Architecture:
    architectures = [member.architecture for member in members]
    return replace(
        architectures[0],
        extractor_sizes=_sums([of.extractor_sizes for of in architectures]),
        hidden_sizes=_sums([of.hidden_sizes for of in architectures]),
    )


def _sums(sizes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    return tuple(sum(layer) for layer in zip(*sizes, strict=True))


def _blocks(parts: Sequence[np.ndarray]) -> np.ndarray:
    """A matrix with the parts on its diagonal."""
    rows, columns = np.sum([part.shape for part in parts], axis=0)
    result = np.zeros((rows, columns), dtype=np.float32)
    row = column = 0
    for part in parts:
        result[row : row + part.shape[0], column : column + part.shape[1]] = part
        row, column = row + part.shape[0], column + part.shape[1]
    return result
