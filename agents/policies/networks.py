"""The networks of learned policies, in PyTorch: features of the history, then layers, then actions.

The same modules are trained by quicgym's algorithms, trained inside Stable-Baselines3
(quicgym.agents.algorithms.stable_baselines3), and run alone from published weights
(quicgym.agents.policies.learned).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import nn

from quicgym import _core
from quicgym.agents.policies.architecture import Architecture
from quicgym.envs.decisions import Decisions

ACTIVATIONS: dict[str, type[nn.Module]] = {"tanh": nn.Tanh, "relu": nn.ReLU}


def dense(inputs: int, sizes: Sequence[int], activation: str) -> nn.Sequential:
    """Returns dense layers, each followed by the activation."""
    layers: list[nn.Module] = []
    for size in sizes:
        layers += [nn.Linear(inputs, size), ACTIVATIONS[activation]()]
        inputs = size
    return nn.Sequential(*layers)


class Extractor(nn.Module):
    """An observation through dense layers."""

    def __init__(self, observation_size: int, architecture: Architecture) -> None:
        """Makes the layers."""
        super().__init__()
        self.layers = dense(observation_size, architecture.extractor_sizes, architecture.activation)
        self.size = architecture.extractor_sizes[-1]

    def forward(self, observations: torch.Tensor) -> torch.Tensor:
        """Maps (rows, observation_size) to (rows, size)."""
        features: torch.Tensor = self.layers(observations)
        return features


class Actor(nn.Module):
    """Maps observations to actions, without exploration."""

    def __init__(self, architecture: Architecture, decisions: Decisions) -> None:
        """Makes the layers; their weights are random."""
        super().__init__()
        self._arguments = architecture.arguments(decisions)
        self.features = Extractor(self._arguments["observation_size"], architecture)
        self.hidden = dense(self.features.size, architecture.hidden_sizes, architecture.activation)
        width = (architecture.hidden_sizes or (self.features.size,))[-1]
        self.action = nn.Linear(width, self._arguments["outputs"])
        self.output = architecture.output

    def outputs(self, observations: torch.Tensor) -> torch.Tensor:
        """Maps (rows, observation size) to the values of the last layer."""
        result: torch.Tensor = self.action(self.hidden(self.features(observations)))
        return result

    def forward(self, observations: torch.Tensor) -> torch.Tensor:
        """Maps (rows, observation size) to (rows, actions), or to (rows,) choices."""
        result = self.outputs(observations)
        if self.output == "argmax":
            return result.argmax(dim=1)
        return result.tanh() if self.output == "tanh" else result.clamp(-1.0, 1.0)

    @property
    def in_cpp(self) -> _core.PolicyNetwork:
        """The network in C++ with a copy of these weights; its outputs are within 1e-5."""
        tensors = {
            name: tensor.numpy(force=True).astype(np.float32)
            for name, tensor in self.state_dict().items()
        }
        return _core.PolicyNetwork(**self._arguments, tensors=tensors)


def draw_weights(actor: Actor) -> Actor:
    """Draws orthogonal weights, small ones for the last layer; returns the actor.

    A critic's last layer is drawn as well and dropped, so that a seed gives the weights that
    Stable-Baselines3's ActorCriticPolicy gives it.
    """
    nn.Linear(actor.features.size, 1)
    for part, gain in ((actor.features, 2**0.5), (actor.hidden, 2**0.5), (actor.action, 0.01)):
        for layer in part.modules():
            if isinstance(layer, nn.Linear):
                nn.init.orthogonal_(layer.weight, gain)
                nn.init.zeros_(layer.bias)
    return actor


_TANH_END = 0.9999


def begin_at(actor: Actor, action: np.ndarray) -> None:
    """Makes an untrained policy take the given action, whatever it observes.

    A choice is taken, and drawn nine times out of ten where the outputs are logits. With the output
    "clip" an action is taken exactly. With "tanh" a coordinate is within 2e-7 of it, and 0.9999 in
    place of 1: tanh reaches 1 only where its gradient is 0, which would hold the coordinate there
    for ever.
    """
    last = actor.action
    target = torch.as_tensor(action, dtype=torch.float64)
    if actor.output == "argmax":
        bias = torch.zeros(last.out_features)
        bias[int(action)] = np.log(9.0 * (last.out_features - 1))
    elif actor.output == "clip":
        # Actions on the edge stay there under exploration, because actions are clipped.
        bias = torch.where(target.abs() >= 1, 1.3 * target, target)
    else:
        bias = target.clamp(-_TANH_END, _TANH_END).atanh()
    with torch.no_grad():
        last.weight.zero_()
        last.bias.copy_(bias)


def begin_with(actor: Actor, other: Actor, temperature: float) -> None:
    """Gives an untrained policy the weights of another, of the same architecture."""
    actor.load_state_dict(other.state_dict())
    with torch.no_grad():
        actor.action.weight.div_(temperature)
        actor.action.bias.div_(temperature)
