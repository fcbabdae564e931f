"""Describes a learned policy's network; needs no PyTorch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from quicgym.envs.actions import find_action_space
from quicgym.envs.decisions import Decisions

Activation = Literal["tanh", "relu"]
Output = Literal["clip", "tanh", "argmax"]


@dataclass(frozen=True)
class Architecture:
    """Describes a policy's network.

    Attributes:
        extractor_sizes: Outputs of the dense layers that read the observation.
        hidden_sizes: Outputs of the dense layers from the features to the actions.
        activation: Function between layers: "tanh" or "relu".
        output: Function of the last layer's outputs. "clip": limits them to [-1, 1]; "tanh": maps
            them into it; "argmax": takes the place of the largest.
    """

    extractor_sizes: tuple[int, ...] = (64,)
    hidden_sizes: tuple[int, ...] = (64,)
    activation: Activation = "tanh"
    output: Output = "clip"

    def arguments(self, decisions: Decisions) -> dict[str, Any]:
        """Returns the arguments of `_core.PolicyNetwork`, but for the tensors."""
        space = find_action_space(decisions.interface.action_space)
        return {
            **vars(self),
            "observation_size": decisions.observation_space.shape[0],
            "outputs": len(space.choices or space.coordinates),
        }
