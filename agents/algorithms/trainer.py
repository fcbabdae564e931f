"""The interface of a training algorithm for `quicgym train`, and the base of quicgym's own.

An algorithm of quicgym collects episodes of its own choice, and then updates its weights. It
subclasses `EpisodeTrainer` and writes two methods: `collect` and `update`. Its hyperparameters are
a subclass of `Settings`. `Sb3Trainer` has the same protocol for algorithms of Stable-Baselines3.
"""

from __future__ import annotations

import copy
import math
import random
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Generic, Protocol, TypeVar

import numpy as np
import torch
from pydantic import BeforeValidator, Field

from quicgym.agents.algorithms.episodes import Decide, Episodes, Trajectories
from quicgym.agents.algorithms.registry import LEARNING_RATES
from quicgym.agents.policies.networks import Actor, begin_at, begin_with
from quicgym.envs.batch import EpisodeBatch
from quicgym.envs.episodes import EpisodeChoice
from quicgym.validation import StrictModel


@dataclass(frozen=True)
class Schedule:
    """A number that stays at `first`, or falls to 0 in proportion to the steps of a run."""

    first: float
    falls: bool = False

    def at(self, left: float) -> float:
        """Returns the number when a share `left` of the run's steps is left, from 1 to 0.

        A run may go on past its steps to the end of a rollout; the number is 0 then.
        """
        return self.first - (1.0 - max(left, 0.0)) * self.first if self.falls else self.first


def schedule_between(least: float, most: float) -> BeforeValidator:
    """Returns a validator that makes a number, or `linear_` and a number, a Schedule."""
    words = "a number"
    if least > -math.inf:
        words += f" of {least:g} or more" if most == math.inf else f" from {least:g} to {most:g}"

    def check(value: Any) -> Schedule:
        if isinstance(value, Schedule):
            return value
        falls = isinstance(value, str) and value.startswith("linear_")
        try:
            first = float(value.removeprefix("linear_")) if falls else value
            is_number = isinstance(first, int | float) and not isinstance(first, bool)
            if not is_number or not least <= first <= most or math.isinf(first):
                raise ValueError
        except ValueError:
            raise ValueError(f"give {words}, or linear_ and one, such as linear_3e-4") from None
        return Schedule(float(first), falls)

    return BeforeValidator(check)


Rate = Annotated[Schedule, schedule_between(*LEARNING_RATES)]
Count = Annotated[int, Field(strict=True, ge=1)]
Share = Annotated[float, Field(ge=0, le=1)]
NotNegative = Annotated[float, Field(ge=0)]
Positive = Annotated[float, Field(gt=0)]


class Settings(StrictModel):
    """Hyperparameters of an algorithm: a field for each, with its default and its range.

    Attributes:
        learning_rate: Learning rate of the optimizer; `linear_1e-3` falls from 1e-3 to 0 over the
            run.
    """

    learning_rate: Rate = Schedule(1e-3)


class Watch(Protocol):
    """Statistics of the rollouts, which a training reports while it runs."""

    def rollout_begins(self) -> None:
        """Is called before a rollout."""

    def rollout_ended(self) -> None:
        """Is called after a rollout, before the weights are updated."""

    def scalars(self, step: int, values: Mapping[str, float]) -> None:
        """Takes numbers by TensorBoard's tag, such as "train/loss"."""


class Trainer(Protocol):
    """The interface of a training algorithm for `quicgym train`."""

    @property
    def step(self) -> int:
        """The number of decisions so far, of all agents."""

    @property
    def network(self) -> torch.nn.Module:
        """Everything whose weights are learned."""

    @property
    def losses(self) -> Mapping[str, float]:
        """The losses of the last update, by TensorBoard's tag."""

    @property
    def rollout_steps(self) -> int | None:
        """The number of decisions of a rollout; None: each has another number, or few."""

    def begin_at(self, action: np.ndarray) -> None:
        """Makes the untrained policy take an action, whatever it observes."""

    def begin_with(self, actor: Actor, temperature: float) -> None:
        """Gives the untrained policy the weights of another, outputs divided by `temperature`."""

    def set_exploration(self, log_std: float) -> None:
        """Sets the logarithm of exploration's standard deviation, which is learned no more."""

    def reseed(self, seeds: np.random.SeedSequence) -> None:
        """Begins everything random, and all episodes, anew."""

    def learn(self, until: int, total: int, watch: Watch) -> None:
        """Trains until a step, the last rollout finished; schedules fall over the `total` steps."""

    def export(self) -> Actor:
        """Returns a copy of the policy on the CPU, without exploration."""

    def state(self) -> dict[str, Any]:
        """Returns what a checkpoint needs, as torch.load takes it with weights_only."""

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restores what `state` has returned."""

    def close(self) -> None:
        """Frees the simulations."""


def seed_everything(seeds: np.random.SeedSequence) -> list[int]:
    """Seeds the generators of Python, numpy and PyTorch; returns four numbers for others."""
    words = [int(word) for word in seeds.generate_state(4)]
    random.seed(words[0])
    np.random.seed(words[1])
    torch.manual_seed(words[2])
    return words


AnySettings = TypeVar("AnySettings", bound=Settings)


class EpisodeTrainer(ABC, Generic[AnySettings]):
    """A training algorithm that draws and plays whole episodes.

    A subclass names in `kept` what a checkpoint keeps: tensors, modules, optimizers; it makes the
    `optimizer` of the policy's weights. `actor` is untrained. `std` is the standard deviation of
    exploration at first, in units of the action space. `device` "auto" is a GPU where there is one.
    ValueError where a setting does not fit the environment.
    """

    Settings: ClassVar[type[Settings]]
    kept: tuple[str, ...] = ("actor", "optimizer")
    optimizer: torch.optim.Optimizer

    def __init__(
        self,
        batch: EpisodeBatch,
        actor: Actor,
        settings: AnySettings,
        *,
        acts_in_slow_start: bool,
        std: float = 1.0,
        device: str = "auto",
    ) -> None:
        """Plays nothing yet; `reseed` comes before `learn`."""
        chosen = ("cuda" if torch.cuda.is_available() else "cpu") if device == "auto" else device
        self.device = torch.device(chosen)
        self.actor = actor.to(self.device)
        self.batch, self.settings, self.std = batch, settings, std
        self.episodes = Episodes(batch, acts_in_slow_start=acts_in_slow_start)
        self.step = 0
        self.losses: Mapping[str, float] = {}
        self._random = np.random.RandomState(0)

    @abstractmethod
    def collect(self, rng: np.random.Generator) -> np.ndarray:
        """Plays what is learned from; returns the mean rewards of the policy's own episodes."""

    @abstractmethod
    def update(self) -> dict[str, float]:
        """Learns from what was played; returns numbers for TensorBoard, losses among them."""

    def play(self, episodes: Sequence[EpisodeChoice], decide: Decide) -> Trajectories:
        """Plays episodes, and counts their decisions; see `Episodes.play`."""
        trajectories = self.episodes.play(episodes, decide)
        self.step += trajectories.decisions
        return trajectories

    def outputs(self, observations: torch.Tensor) -> torch.Tensor:
        """Returns the values of the network's last layer for observations."""
        return self.actor.outputs(observations.to(self.device))

    @property
    def network(self) -> torch.nn.Module:
        """The policy's network."""
        return self.actor

    @property
    def rollout_steps(self) -> None:
        """None: episodes differ in their decisions."""

    def begin_at(self, action: np.ndarray) -> None:
        """Makes the untrained policy take an action, whatever it observes."""
        begin_at(self.actor, action)

    def begin_with(self, actor: Actor, temperature: float) -> None:
        """Gives the untrained policy the weights of another, outputs divided by `temperature`."""
        begin_with(self.actor, actor, temperature)

    def set_exploration(self, log_std: float) -> None:
        """Refuses: the policy of this algorithm draws no actions."""
        raise NotImplementedError(f"{type(self).__name__} draws no actions")

    def reseed(self, seeds: np.random.SeedSequence) -> None:
        """Begins everything random anew."""
        self._random = np.random.RandomState(seed_everything(seeds)[1])

    def learn(self, until: int, total: int, watch: Watch) -> None:
        """Collects and updates until so many steps have been made."""
        while self.step < until:
            watch.rollout_begins()
            rate = self.settings.learning_rate.at(1.0 - self.step / total)
            rewards = self.collect(np.random.default_rng(self._random.randint(2**31, size=4)))
            watch.rollout_ended()
            for group in self.optimizer.param_groups:
                group["lr"] = rate
            numbers = {f"train/{name}": value for name, value in self.update().items()}
            self.losses = {name: value for name, value in numbers.items() if "loss" in name}
            watch.scalars(self.step, {"rollout/reward": float(rewards.mean()), **numbers})

    def export(self) -> Actor:
        """Returns a copy of the policy on the CPU, without exploration."""
        return copy.deepcopy(self.actor).cpu().eval()

    def state(self) -> dict[str, Any]:
        """Returns the step and everything in `kept`."""
        found = {name: getattr(self, name) for name in self.kept}
        return {
            "step": self.step,
            **{
                name: kept.detach() if isinstance(kept, torch.Tensor) else kept.state_dict()
                for name, kept in found.items()
            },
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restores what `state` has returned."""
        self.step = state["step"]
        for name in self.kept:
            kept = getattr(self, name)
            if isinstance(kept, torch.nn.Parameter):  # the optimizer has it, too
                kept.data.copy_(state[name])
            elif isinstance(kept, torch.Tensor):
                setattr(self, name, state[name].to(kept.device))
            else:
                kept.load_state_dict(state[name])

    def close(self) -> None:
        """Frees the simulations."""
        self.batch.close()
