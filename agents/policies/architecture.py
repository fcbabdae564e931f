"""What a learned policy's network is made of; needs no PyTorch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from quicgym.envs.actions import find_action_space
from quicgym.envs.decisions import Decisions

Extractor = Literal["mlp", "gru", "multi-scale"]
Activation = Literal["tanh", "relu"]
Output = Literal["clip", "tanh", "argmax"]


@dataclass(frozen=True)
class Architecture:
    """What a policy's network is made of.

    Attributes:
        extractor: Layers that read an observation. "mlp": the whole observation through dense
            layers. "gru": the frames, oldest first, through a gated recurrent unit, whose last
            state is joined with the rest. "multi-scale": means over the last frame, the one before,
            the two, four, eight … before that, and the rest, through dense layers.
        extractor_sizes: Outputs of the dense layers, or the one size of the unit's state.
        hidden_sizes: Outputs of the dense layers from the features to the actions.
        activation: Function between layers: "tanh" or "relu".
        output: Function of the last layer's outputs. "clip": limits them to [-1, 1]; "tanh": maps
            them into it; "argmax": takes the place of the largest.
    """

    extractor: Extractor = "mlp"
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
            "history_length": decisions.history_length,
            "outputs": len(space.choices or space.coordinates),
        }
