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
from quicgym.envs.observations import FRAME_FEATURES

ACTIVATIONS: dict[str, type[nn.Module]] = {"tanh": nn.Tanh, "relu": nn.ReLU}


def dense(inputs: int, sizes: Sequence[int], activation: str) -> nn.Sequential:
    """Returns dense layers, each followed by the activation."""
    layers: list[nn.Module] = []
    for size in sizes:
        layers += [nn.Linear(inputs, size), ACTIVATIONS[activation]()]
        inputs = size
    return nn.Sequential(*layers)


class _Features(nn.Module):
    """What becomes of an observation; `preprocess` has no weights, so what it gives can be kept."""

    size: int

    def preprocess(self, observations: torch.Tensor) -> torch.Tensor:
        """Maps (rows, observation_size) to (rows, what is left of it)."""
        return observations

    def encode(self, preprocessed: torch.Tensor) -> torch.Tensor:
        """Maps what `preprocess` returns to (rows, size)."""
        raise NotImplementedError

    def forward(self, observations: torch.Tensor) -> torch.Tensor:
        """Maps (rows, observation_size) to (rows, size)."""
        return self.encode(self.preprocess(observations))


class MlpFeatures(_Features):
    """The whole observation through dense layers."""

    def __init__(self, observation_size: int, architecture: Architecture) -> None:
        """Makes the layers."""
        super().__init__()
        self.layers = dense(observation_size, architecture.extractor_sizes, architecture.activation)
        self.size = architecture.extractor_sizes[-1]

    def encode(self, preprocessed: torch.Tensor) -> torch.Tensor:
        """Maps (rows, observation_size) to (rows, size)."""
        features: torch.Tensor = self.layers(preprocessed)
        return features


class GruFeatures(_Features):
    """The frames of the history through a gated recurrent unit, beside the rest as it is."""

    def __init__(
        self, observation_size: int, history_length: int, architecture: Architecture
    ) -> None:
        """Makes the unit."""
        super().__init__()
        frame = len(FRAME_FEATURES)
        self.frames = (history_length, frame)
        self.unit = nn.GRU(frame, architecture.extractor_sizes[0], batch_first=True)
        self.size = architecture.extractor_sizes[0] + observation_size - history_length * frame

    def encode(self, preprocessed: torch.Tensor) -> torch.Tensor:
        """Maps (rows, observation_size) to (rows, size)."""
        history, rest = _split(preprocessed, self.frames)
        _, last = self.unit(history)
        return torch.cat([last[0], rest], dim=1)


class MultiScaleFeatures(_Features):
    """Means of frames over spans that double with their age, and the rest, through dense layers.

    A long history in few numbers: what was seen lately in detail, what was seen long ago, slow
    start for one, as a mean. Ratios are taken as their logarithms, losses as their roots.
    """

    def __init__(
        self, observation_size: int, history_length: int, architecture: Architecture
    ) -> None:
        """Makes the layers."""
        super().__init__()
        names = [name for name, _, _ in FRAME_FEATURES]
        self.frames = (history_length, len(names))
        self.ratios = [names.index(name) for name in _RATIOS]
        self.loss = names.index("loss")
        self.spans = _core.doubling_spans(history_length)
        rest = observation_size - history_length * len(names)
        inputs = len(self.spans) * len(names) + rest
        self.layers = dense(inputs, architecture.extractor_sizes, architecture.activation)
        self.size = architecture.extractor_sizes[-1]

    def preprocess(self, observations: torch.Tensor) -> torch.Tensor:
        """Maps (rows, observation_size) to (rows, means and the rest)."""
        history, rest = _split(observations, self.frames)
        means = torch.stack(
            [history[:, first:last].mean(dim=1) for first, last in self.spans], dim=1
        )
        means[..., self.ratios] = (means[..., self.ratios] + 2.0**-5).log2()
        means[..., self.loss] = 3.0 * means[..., self.loss].sqrt()
        return torch.cat([means.flatten(1), rest], dim=1)

    def encode(self, preprocessed: torch.Tensor) -> torch.Tensor:
        """Maps (rows, means and the rest) to (rows, size)."""
        features: torch.Tensor = self.layers(preprocessed)
        return features


_RATIOS = ("send_rate", "pacing_rate", "rtt", "in_flight", "window")


def _split(
    observations: torch.Tensor, frames: tuple[int, int]
) -> tuple[torch.Tensor, torch.Tensor]:
    """The frames of the history, of shape (rows, frames, features), and the rest."""
    length, features = frames
    end = length * features
    return observations[:, :end].reshape(-1, length, features), observations[:, end:]


def make_features(
    architecture: Architecture, observation_size: int, history_length: int
) -> MlpFeatures | GruFeatures | MultiScaleFeatures:
    """Returns the feature extractor."""
    if architecture.extractor == "gru":
        return GruFeatures(observation_size, history_length, architecture)
    if architecture.extractor == "multi-scale":
        return MultiScaleFeatures(observation_size, history_length, architecture)
    return MlpFeatures(observation_size, architecture)


class Actor(nn.Module):
    """Maps observations to actions, without exploration."""

    def __init__(self, architecture: Architecture, decisions: Decisions) -> None:
        """Makes the layers; their weights are random."""
        super().__init__()
        self._arguments = architecture.arguments(decisions)
        self.features = make_features(
            architecture, self._arguments["observation_size"], decisions.history_length
        )
        self.hidden = dense(self.features.size, architecture.hidden_sizes, architecture.activation)
        width = (architecture.hidden_sizes or (self.features.size,))[-1]
        self.action = nn.Linear(width, self._arguments["outputs"])
        self.output = architecture.output

    def outputs(self, preprocessed: torch.Tensor) -> torch.Tensor:
        """Maps what `features.preprocess` returns to the values of the last layer."""
        result: torch.Tensor = self.action(self.hidden(self.features.encode(preprocessed)))
        return result

    def forward(self, observations: torch.Tensor) -> torch.Tensor:
        """Maps (rows, observation size) to (rows, actions), or to (rows,) choices."""
        result = self.outputs(self.features.preprocess(observations))
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
        # What lies on the edge stays there under exploration, because actions are clipped.
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
