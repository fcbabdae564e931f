"""A learned policy's network as its files have it: tensors by name, without PyTorch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from quicgym import _core
from quicgym.agents.policies.architecture import Architecture
from quicgym.envs.decisions import Decisions
from quicgym.errors import MissingExtraError

if TYPE_CHECKING:
    from quicgym.agents.policies.networks import Actor


@dataclass(frozen=True, eq=False)
class StoredNetwork:
    """The network in C++, and on demand the same in PyTorch; tensors have PyTorch's names."""

    architecture: Architecture
    decisions: Decisions
    tensors: Mapping[str, np.ndarray]

    def __getstate__(self) -> dict[str, Any]:
        """Leaves out the network in C++, which a copy makes again."""
        return {name: value for name, value in vars(self).items() if name != "in_cpp"}

    @cached_property
    def in_cpp(self) -> _core.PolicyNetwork:
        """The network in C++; ValueError where a tensor is missing, left over or does not fit."""
        return _core.PolicyNetwork(
            **self.architecture.arguments(self.decisions), tensors=dict(self.tensors)
        )

    @cached_property
    def actor(self) -> Actor:
        """A copy in PyTorch, to go on training with."""
        try:
            import torch
        except ImportError as error:
            raise MissingExtraError("to train a policy needs PyTorch") from error
        from quicgym.agents.policies.networks import Actor

        with torch.device("meta"):  # no weights that are replaced at once
            actor = Actor(self.architecture, self.decisions)
        copies = {name: torch.tensor(tensor) for name, tensor in self.tensors.items()}
        actor.load_state_dict(copies, assign=True)
        return actor.eval()
