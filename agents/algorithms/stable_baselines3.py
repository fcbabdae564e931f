"""Algorithms of Stable-Baselines3 as `Trainer`s: PPO, SAC, TD3, DQN, and classes of its users.

They see a stream of steps from episodes that the environments draw. The policy's network is
quicgym's, inside a policy of theirs.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Generator, Iterable, Mapping
from typing import Annotated, Any

import gymnasium
import numpy as np
import torch
from pydantic import BaseModel, ConfigDict, Field, create_model
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.buffers import RolloutBuffer
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import KVWriter, Logger
from stable_baselines3.common.noise import NormalActionNoise
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from stable_baselines3.common.type_aliases import RolloutBufferSamples
from stable_baselines3.common.vec_env import VecEnv
from stable_baselines3.dqn.policies import DQNPolicy
from stable_baselines3.sac.policies import SACPolicy
from stable_baselines3.td3.policies import TD3Policy
from torch import nn

from quicgym.agents.algorithms.registry import Algorithm
from quicgym.agents.algorithms.trainer import (
    Schedule,
    Watch,
    schedule_between,
    seed_everything,
)
from quicgym.agents.policies.architecture import Architecture
from quicgym.agents.policies.networks import (
    ACTIVATIONS,
    Actor,
    Extractor,
    begin_at,
    begin_with,
)
from quicgym.envs.decisions import Decisions
from quicgym.envs.sb3 import PRIVILEGED

# Arguments that the configuration sets by other fields, or that have no meaning here.
_TAKEN = frozenset(
    ("policy", "env", "policy_kwargs", "tensorboard_log", "verbose", "seed", "device")
    + ("stats_window_size", "_init_setup_model", "self", "action_noise", "replay_buffer_class")
    + ("replay_buffer_kwargs", "rollout_buffer_class", "rollout_buffer_kwargs", "use_sde")
)
_SCHEDULES = frozenset(("learning_rate", "clip_range"))
"""Arguments that Stable-Baselines3 takes as functions of the steps that are left, too."""


def settings_of(model_class: type, limits: Mapping[str, tuple[float, float]]) -> type[BaseModel]:
    """Returns the hyperparameters of a class: its arguments, those that it hands on by ** included.

    `limits` has the lowest and highest value of some of the numbers.
    """
    defaults: dict[str, Any] = {}
    for base in model_class.__mro__:
        if "__init__" not in vars(base):
            continue
        parameters = inspect.signature(base).parameters.values()
        variable = {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}
        defaults = {
            parameter.name: parameter.default
            for parameter in parameters
            if parameter.name not in _TAKEN and parameter.kind not in variable
        } | defaults
        if all(parameter.kind != inspect.Parameter.VAR_KEYWORD for parameter in parameters):
            break
    fields: dict[str, Any] = {
        name: (_type_of(name, default, limits.get(name)), default)
        for name, default in defaults.items()
    }
    forbid = ConfigDict(extra="forbid")
    return create_model(model_class.__name__, __config__=forbid, **fields)


def _type_of(name: str, default: Any, limits: tuple[float, float] | None) -> Any:
    """Returns what an argument takes, as far as its default says it."""
    least, most = limits or (-math.inf, math.inf)
    if isinstance(default, bool):
        return Annotated[bool, Field(strict=True)]
    if isinstance(default, int):
        return Annotated[int, Field(strict=True, ge=least if limits else None)]
    bounds: Any = {"ge": least, "le": most}
    bounds = {name: bound for name, bound in bounds.items() if math.isfinite(bound)}
    number = Annotated[float, Field(strict=True, allow_inf_nan=False, **bounds)]
    if isinstance(default, float):
        falls = Annotated[Schedule, schedule_between(least, most)]
        return falls if name in _SCHEDULES else number
    if isinstance(default, tuple):
        return tuple[float, ...]
    if limits and (default is None or isinstance(default, str)):
        return number | type(default)
    return Any


class Features(BaseFeaturesExtractor):
    """quicgym.agents.policies.networks.Extractor, as Stable-Baselines3 takes it.

    `unseen` elements at an observation's end are left out.
    """

    def __init__(
        self,
        observation_space: gymnasium.spaces.Box,
        architecture: Architecture,
        unseen: int = 0,
    ) -> None:
        """Makes the extractor."""
        self._size = observation_space.shape[0] - unseen
        features = Extractor(self._size, architecture)
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

    def forward(
        self, obs: torch.Tensor, deterministic: bool = False
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Returns actions, values and logarithms of densities; 0 for a row without an agent."""
        has_agent = _has_agent(obs, obs.shape[1] - len(PRIVILEGED))
        if has_agent.all():
            return super().forward(obs, deterministic)
        results = []
        for found in super().forward(obs[has_agent], deterministic):
            result = found.new_zeros(len(obs), *found.shape[1:])
            result[has_agent] = found
            results.append(result)
        actions, values, densities = results
        return actions, values, densities


class AgentsRollout(RolloutBuffer):
    """A rollout of which only the rows with an agent are learned from.

    The observations of the others are 0 in their first `observation_size` elements; an agent's have
    a 1 in the place of its controller's mode.
    """

    def __init__(self, *arguments: Any, observation_size: int, **keywords: Any) -> None:
        """Takes `observation_size` and the arguments of RolloutBuffer."""
        self._observation_size = observation_size
        super().__init__(*arguments, **keywords)

    def reset(self) -> None:
        """Begins a rollout."""
        self._of_agents: RolloutBufferSamples | None = None
        super().reset()

    def get(self, batch_size: int | None = None) -> Generator[RolloutBufferSamples, None, None]:
        """Yields the rows with an agent once, in random order, `batch_size` at a time."""
        if self._of_agents is None:
            (samples,) = super().get()
            has_agent = _has_agent(samples.observations, self._observation_size)
            self._of_agents = RolloutBufferSamples(*(column[has_agent] for column in samples))
            # The share of the variance that values explain is of these, after the last epoch.
            self.values = self._of_agents.old_values.numpy(force=True)
            self.returns = self._of_agents.returns.numpy(force=True)
        count = len(self._of_agents.observations)
        order = torch.from_numpy(np.random.permutation(count))
        for rows in order.split(batch_size or max(count, 1)):
            if len(rows):
                yield RolloutBufferSamples(*(column[rows] for column in self._of_agents))


def _has_agent(observations: Any, size: int) -> Any:
    """Returns which rows of an array or a tensor have an agent, see AgentsRollout."""
    return observations[:, :size].any(1)


def policy_arguments(
    algorithm: Algorithm, architecture: Architecture, initial_std: float | None
) -> dict[str, Any]:
    """Returns `policy_kwargs` that make Stable-Baselines3 train our network.

    The critics have networks of the same shape; PPO's shares the features with the policy.
    """
    sizes, critic = list(architecture.hidden_sizes), algorithm.critic
    arguments: dict[str, Any] = {
        "features_extractor_class": Features,
        "features_extractor_kwargs": {"architecture": architecture},
        "activation_fn": ACTIVATIONS[architecture.activation],
        "net_arch": sizes if critic is None else dict.fromkeys(("pi", critic), sizes),
    }
    if initial_std is not None:
        arguments["log_std_init"] = float(np.log(initial_std))
    return arguments


class Sb3Trainer:
    """An algorithm of Stable-Baselines3, the entry of the registry, with quicgym's network.

    `close` closes the environments. `std` is the standard deviation of exploration at first; None:
    the class's own. `losses` has those of the last update, by TensorBoard's tag; `total` is the
    number of steps of the whole run.
    """

    def __init__(
        self,
        algorithm: Algorithm,
        environments: VecEnv,
        architecture: Architecture,
        decisions: Decisions,
        settings: Mapping[str, Any],
        *,
        std: float | None = None,
        privileged_critic: bool = False,
        seed: int = 0,
        device: str = "auto",
    ) -> None:
        """Makes the model with an untrained policy."""
        self._algorithm, self._environments = algorithm, environments
        self._architecture, self._decisions = architecture, decisions
        self.total = 0
        self._left = 1.0
        arguments = dict(settings)
        for name, value in arguments.items():
            if isinstance(value, Schedule):
                arguments[name] = self._over_the_run(value) if value.falls else value.first
        if algorithm.action_noise and std is not None:
            mean = np.zeros(environments.action_space.shape or ())
            arguments["action_noise"] = NormalActionNoise(mean, mean + std)
        if issubclass(algorithm.implementation_class, OnPolicyAlgorithm):
            size = decisions.observation_space.shape[0]
            arguments["rollout_buffer_class"] = AgentsRollout
            arguments["rollout_buffer_kwargs"] = {"observation_size": size}
        self.model: BaseAlgorithm = algorithm.implementation_class(
            PrivilegedCriticPolicy if privileged_critic else "MlpPolicy",
            environments,
            policy_kwargs=policy_arguments(
                algorithm, architecture, std if algorithm.stochastic else None
            ),
            seed=seed,
            device=device,
            **arguments,
        )
        self.losses: Mapping[str, float] = {}

    def _over_the_run(self, schedule: Schedule) -> Any:
        """Returns a schedule of Stable-Baselines3 that falls over the run, not over a `learn`.

        An update learns with the number of the time at which its rollout began, so that the first
        one has all of it and the last one more than nothing.
        """
        return lambda _: schedule.at(self._left)

    @property
    def step(self) -> int:
        """The number of decisions so far, of all agents."""
        return int(self.model.num_timesteps)

    def rollout_begins(self) -> None:
        """Moves the schedules on, and takes the losses of the last update."""
        self._left = 1.0 - self.step / self.total
        self.note_losses()

    def count_agents(self) -> np.ndarray:
        """Returns which rows had an agent before the last step; no step of the others counts."""
        observations: Any = self.model._last_obs
        size = self._decisions.observation_space.shape[0]
        has_agent = np.asarray(_has_agent(observations, size))
        self.model.num_timesteps -= int(np.count_nonzero(~has_agent))
        return has_agent

    @property
    def reward_weights(self) -> np.ndarray:
        """How often each row's last reward counts."""
        return np.asarray(self._environments_as_made.reward_weights)

    @property
    def _environments_as_made(self) -> Any:
        """The environments without their wrappers."""
        return self._environments.unwrapped

    @property
    def network(self) -> nn.Module:
        """The policy, critics included."""
        return self.model.policy

    @property
    def rollout_steps(self) -> int | None:
        """The number of decisions of a rollout; None: off policy, or rows may have no agent."""
        model, environments = self.model, self._environments_as_made
        if not isinstance(model, OnPolicyAlgorithm) or environments.empty_rows:
            return None
        return int(model.n_steps * model.n_envs)

    def export(self) -> Actor:
        """Returns a copy of the policy on the CPU, without exploration."""
        actor = Actor(self._architecture, self._decisions)
        _copy(parts_of(self.model.policy), (actor.features, actor.hidden, actor.action))
        return actor.eval()

    def _import(self, actor: Actor) -> None:
        give_weights(self.model.policy, actor)

    def begin_at(self, action: np.ndarray) -> None:
        """Makes the untrained policy take an action, whatever it observes."""
        actor = self.export()
        begin_at(actor, action)
        self._import(actor)

    def begin_with(self, actor: Actor, temperature: float) -> None:
        """Gives the untrained policy the weights of another, outputs divided by `temperature`."""
        own = self.export()
        begin_with(own, actor, temperature)
        self._import(own)

    def set_exploration(self, log_std: float) -> None:
        """Sets the logarithm of exploration's standard deviation, which is learned no more."""
        policy: Any = self.model.policy
        policy.log_std.requires_grad_(False)
        policy.log_std.fill_(log_std)

    def reseed(self, seeds: np.random.SeedSequence) -> None:
        """Begins everything random, and all episodes, anew."""
        words = seed_everything(seeds)
        self.model.action_space.seed(words[2])
        self._environments.seed(words[3])
        self.model.set_env(self._environments, force_reset=True)
        buffer: Any = getattr(self.model, "replay_buffer", None)
        if buffer is not None and buffer.size():  # targets of several steps end where episodes do
            last = buffer.pos - 1
            buffer.timeouts[last] = np.logical_not(buffer.dones[last]) | (buffer.timeouts[last] > 0)

    def learn(self, until: int, total: int, watch: Watch) -> None:
        """Trains until so many steps; see `Trainer.learn`."""
        self.total = total
        model = self.model
        model.set_logger(Logger(folder=None, output_formats=[_Scalars(watch)]))
        model.learn(until - self.step, _Rollouts(self, watch), reset_num_timesteps=False)
        self.note_losses()
        model.logger.dump(self.step)  # what the last update has recorded

    def note_losses(self) -> None:
        """Takes the losses of the last update from the logger."""
        self.losses = {
            name: float(value)
            for name, value in self.model.logger.name_to_value.items()
            if name.startswith("train/") and "loss" in name
        }

    def state(self) -> dict[str, Any]:
        """Returns what a checkpoint needs."""
        model: Any = self.model
        state = {
            "step": self.step,
            "updates": int(model._n_updates),
            "parameters": model.get_parameters(),
            "others": {
                name: value.detach() if isinstance(value, torch.Tensor) else value
                for name, value in self._other_state().items()
            },
        }
        if isinstance(model, OffPolicyAlgorithm):
            state["replay"] = _replay(model.replay_buffer)
        return state

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restores what `state` has returned."""
        model: Any = self.model
        model.set_parameters(state["parameters"], exact_match=True, device=model.device)
        for name, value in self._other_state().items():
            if isinstance(value, torch.Tensor) and value.requires_grad:  # an optimizer has it too
                with torch.no_grad():
                    value.copy_(state["others"][name])
            else:
                setattr(model, name, state["others"][name])
        model.num_timesteps = state["step"]
        # TD3 delays its policy's updates by this count, which has no public name.
        model._n_updates = state["updates"]
        if isinstance(model, OffPolicyAlgorithm):
            _restore_replay(model.replay_buffer, state["replay"])

    def _other_state(self) -> dict[str, Any]:
        """Returns what changes outside of networks; SAC's entropy coefficient may be fixed."""
        values = {name: getattr(self.model, name) for name in self._algorithm.state}
        return {name: value for name, value in values.items() if value is not None}

    def close(self) -> None:
        """Closes the environments."""
        self._environments.close()


def parts_of(policy: Any) -> tuple[nn.Module, nn.Module, nn.Linear]:
    """Returns features, hidden layers and last layer of a policy with `policy_arguments`."""
    if isinstance(policy, ActorCriticPolicy):
        actor: Any = policy  # whose layers mypy takes for any module
        return (
            actor.features_extractor.features,
            actor.mlp_extractor.policy_net,
            actor.action_net,
        )
    if isinstance(policy, DQNPolicy):
        network: Any = policy.q_net
        *hidden, last = network.q_net
        return network.features_extractor.features, nn.Sequential(*hidden), last
    actor = policy.actor
    if isinstance(policy, SACPolicy):
        return actor.features_extractor.features, actor.latent_pi, actor.mu
    layers = list(actor.mu)  # TD3: all layers in one, a Tanh at the end
    return actor.features_extractor.features, nn.Sequential(*layers[:-2]), layers[-2]


def give_weights(policy: Any, actor: Actor) -> None:
    """Gives a policy with `policy_arguments` the weights of an actor of the same architecture."""
    _copy((actor.features, actor.hidden, actor.action), parts_of(policy))
    if isinstance(policy, TD3Policy):  # it learns by a target network that follows
        policy.actor_target.load_state_dict(policy.actor.state_dict())
    elif isinstance(policy, DQNPolicy):
        policy.q_net_target.load_state_dict(policy.q_net.state_dict())


class _Rollouts(BaseCallback):
    """Tells a `Watch` of rollouts, and records their rewards."""

    def __init__(self, trainer: Sb3Trainer, watch: Watch) -> None:
        super().__init__()
        self._trainer, self._watch = trainer, watch
        self._earned = self._counted = 0.0

    def _on_training_start(self) -> None:
        # DQN explores less over the run, not over a `learn`, which is only a part of it.
        self.model._total_timesteps = self._trainer.total

    def _on_rollout_start(self) -> None:
        self._trainer.rollout_begins()
        self._watch.rollout_begins()

    def _on_step(self) -> bool:
        # The rollout's buffer has more: PPO adds to an episode's end the value of what follows.
        has_agent = self._trainer.count_agents()
        self._earned += float(self.locals["rewards"][has_agent].sum())
        self._counted += float(self._trainer.reward_weights[has_agent].sum())
        return True

    def _on_rollout_end(self) -> None:
        self._watch.rollout_ended()
        if self._counted > 0:
            self.logger.record("rollout/reward", self._earned / self._counted)
            self._earned = self._counted = 0.0


class _Scalars(KVWriter):
    """Stable-Baselines3's records for a `Watch`."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch

    def write(
        self, key_values: Mapping[str, Any], key_excluded: Mapping[str, Any], step: int = 0
    ) -> None:
        kept = {name: value for name, value in key_values.items() if not name.startswith("time/")}
        self._watch.scalars(step, {name: float(value) for name, value in kept.items()})

    def close(self) -> None:
        pass


def _copy(sources: Iterable[nn.Module], targets: Iterable[nn.Module]) -> None:
    """Copies weights, whatever devices they are on."""
    for source, target in zip(sources, targets, strict=True):
        target.load_state_dict(source.state_dict())


_REPLAY = ("observations", "next_observations", "actions", "rewards", "dones", "timeouts")


def _replay(buffer: Any) -> dict[str, Any]:
    filled = buffer.buffer_size if buffer.full else buffer.pos
    arrays = {name: torch.from_numpy(getattr(buffer, name)[:filled]) for name in _REPLAY}
    return {**arrays, "position": buffer.pos, "full": buffer.full}


def _restore_replay(buffer: Any, state: Mapping[str, Any]) -> None:
    for name in _REPLAY:
        array = state[name].numpy()
        getattr(buffer, name)[: len(array)] = array
    buffer.pos, buffer.full = state["position"], state["full"]
