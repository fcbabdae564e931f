"""Our networks inside Stable-Baselines3's algorithms, and out of them again."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import gymnasium
import numpy as np
import torch
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from torch import nn

from quicgym.agents.algorithms.registry import Algorithm
from quicgym.agents.policies.architecture import Architecture, Output
from quicgym.agents.policies.learned import LearnedPolicy
from quicgym.agents.policies.networks import ACTIVATIONS, Actor, make_features
from quicgym.agents.policies.policy import Decisions
from quicgym.envs.actions import choices
from quicgym.envs.sb3 import PRIVILEGED


class Features(BaseFeaturesExtractor):
    """quicgym.agents.policies.networks.make_features, as Stable-Baselines3 takes it.

    Args:
        observation_space: Of the environments.
        architecture: Of the policy.
        history_length: Frames in an observation.
        unseen: Elements at an observation's end that are left out.
    """

    def __init__(
        self,
        observation_space: gymnasium.spaces.Box,
        architecture: Architecture,
        history_length: int,
        unseen: int = 0,
    ) -> None:
        """Makes the extractor."""
        self._size = observation_space.shape[0] - unseen
        features = make_features(architecture, self._size, history_length)
        super().__init__(observation_space, features_dim=features.size)
        self.features = features

    def forward(self, observations: torch.Tensor) -> torch.Tensor:
        """Maps (rows, observation size) to (rows, features)."""
        result: torch.Tensor = self.features(observations[:, : self._size])
        return result


class PrivilegedCriticPolicy(ActorCriticPolicy):
    """An actor that sees observations, and a critic that sees all of them and PRIVILEGED.

    What a rollout earns depends more on the path and the other flows that were drawn than on the
    actions; a critic that knows them takes their part out of the gradient.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Makes features for the actor, then others for the critic."""
        self._unseen = [len(PRIVILEGED), 0]
        kwargs["share_features_extractor"] = False
        super().__init__(*args, **kwargs)

    def make_features_extractor(self) -> BaseFeaturesExtractor:
        """Returns the actor's at the first call, the critic's at the second."""
        space = self.observation_space
        assert isinstance(space, gymnasium.spaces.Box)
        return Features(space, **self.features_extractor_kwargs, unseen=self._unseen.pop(0))


def policy_arguments(
    algorithm: Algorithm, architecture: Architecture, history_length: int, initial_std: float | None
) -> dict[str, Any]:
    """Returns `policy_kwargs` that make Stable-Baselines3 train our network.

    The critics have networks of the same shape; PPO's shares the features with the policy.
    """
    sizes = list(architecture.hidden_sizes)
    arguments: dict[str, Any] = {
        "features_extractor_class": Features,
        "features_extractor_kwargs": {
            "architecture": architecture,
            "history_length": history_length,
        },
        "activation_fn": ACTIVATIONS[architecture.activation],
        "net_arch": dict.fromkeys(filter(None, ("pi", algorithm.critic)), sizes),
    }
    if initial_std is not None:
        arguments["log_std_init"] = float(np.log(initial_std))
    return arguments


def output_of(algorithm: Algorithm, environment: str) -> Output:
    """Returns what an algorithm's policy does to the last layer's values."""
    return "argmax" if choices(environment) else algorithm.output


def _parts(model: BaseAlgorithm) -> tuple[nn.Module, nn.Module, nn.Linear]:
    """The features, the hidden layers and the last one of the policy in an algorithm."""
    policy: Any = model.policy
    if hasattr(policy, "action_net"):  # PPO's, which those that compare replays have as well
        return (
            policy.features_extractor.features,
            policy.mlp_extractor.policy_net,
            policy.action_net,
        )
    actor = policy.actor
    if hasattr(actor, "latent_pi"):  # SAC
        return actor.features_extractor.features, actor.latent_pi, actor.mu
    layers = list(actor.mu)  # TD3: all layers in one, a Tanh at the end
    return actor.features_extractor.features, nn.Sequential(*layers[:-2]), layers[-2]


def _copy(sources: Iterable[nn.Module], targets: Iterable[nn.Module]) -> None:
    """Copies weights, whatever devices they are on."""
    for source, target in zip(sources, targets, strict=True):
        target.load_state_dict(source.state_dict())


_TANH_END = 0.9999


def begin_at(model: BaseAlgorithm, action: np.ndarray, output: Output) -> None:
    """Makes an untrained policy take the given action, whatever it observes.

    With the output "clip" the action is taken exactly. With "tanh" a coordinate is within 2e-7
    of it, and 0.9999 in place of 1: tanh reaches 1 only where its gradient is 0, which would hold
    the coordinate there for ever.
    """
    _, _, last = _parts(model)
    target = torch.as_tensor(action, dtype=torch.float64)
    if output == "clip":
        # What lies on the edge stays there under exploration, because actions are clipped.
        bias = torch.where(target.abs() >= 1, 1.3 * target, target)
    else:
        bias = target.clamp(-_TANH_END, _TANH_END).atanh()
    with torch.no_grad():
        last.weight.zero_()
        last.bias.copy_(bias)
    policy: Any = model.policy
    if hasattr(policy, "actor_target"):
        policy.actor_target.load_state_dict(policy.actor.state_dict())


def bias_towards(model: BaseAlgorithm, choice: int) -> None:
    """Makes an untrained policy of choices take one of them, and draw it nine times out of ten."""
    _, _, last = _parts(model)
    with torch.no_grad():
        last.weight.zero_()
        last.bias.zero_()
        last.bias[choice] = np.log(9.0 * (last.out_features - 1))


def begin_with(model: BaseAlgorithm, actor: Actor, temperature: float) -> None:
    """Gives an untrained policy the weights of another, of the same architecture."""
    parts = _parts(model)
    _copy((actor.features, actor.hidden, actor.action), parts)
    last = parts[2]
    with torch.no_grad():
        last.weight.div_(temperature)
        last.bias.div_(temperature)


def export_policy(
    model: BaseAlgorithm, name: str, architecture: Architecture, decisions: Decisions
) -> LearnedPolicy:
    """Returns a copy of what the algorithm has learned, without exploration, on the CPU."""
    actor = Actor(architecture, decisions)
    _copy(_parts(model), (actor.features, actor.hidden, actor.action))
    return LearnedPolicy(name, decisions, actor.eval())
