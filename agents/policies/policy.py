"""The interface of policies, and the two simplest: always the same action, or a random one.

A policy is called with observations, of one row or of many, and returns as many actions.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
from gymnasium.spaces import Space
from gymnasium.vector.utils import batch_space

from quicgym.envs.decisions import Decisions
from quicgym.envs.registration import find_environment
from quicgym.errors import PolicyError

if TYPE_CHECKING:
    from quicgym.envs.batch import EpisodeBatch


class Policy(Protocol):
    """The interface of a policy in an evaluation."""

    @property
    def name(self) -> str:
        """The policy's name in tables."""

    @property
    def decisions(self) -> Decisions:
        """The environment in which the policy acts, and how often it decides."""

    @property
    def options(self) -> dict[str, Any] | None:
        """The options with which environments are reset."""

    def __call__(self, observations: np.ndarray) -> np.ndarray:
        """Returns an action for each row of observations, or the action for one."""


def in_one_line(policy: Policy) -> str:
    """Returns a policy's name and environment, without its weights: a `__repr__`."""
    decisions = policy.decisions
    environment = find_environment(decisions.environment).id
    every = f"{decisions.decision_interval_ms:g} ms"
    return f"<{type(policy).__name__} {policy.name} in {environment}, every {every}>"


@runtime_checkable
class StatefulPolicy(Policy, Protocol):
    """A policy that keeps a state for each row, or that draws random numbers.

    After `reset` row i is the same flow in every call until the next `reset`. A policy that draws
    random numbers takes the argument `seed`, and starts its draws again with it; otherwise its
    episodes depend on those that its process has played before.
    """

    def reset(self) -> None:
        """Forgets all flows; the next call is the first decision of others."""


@runtime_checkable
class KnowingPolicy(Policy, Protocol):
    """A policy that knows the network, so no sender can have it; evaluations alone play it."""

    def steer(self, batch: EpisodeBatch) -> None:
        """Sets what its flows do until the next decision, before each step of the batch."""


def check_observations(policy: Policy, observations: np.ndarray, numbers: int) -> None:
    """Checks that observations have as many numbers as a policy's.

    Raises:
        PolicyError: They are of another environment; the text says how to make the policy's.
    """
    if observations.shape[-1] == numbers:
        return
    environment = find_environment(policy.decisions.environment).id
    raise PolicyError(
        f"{policy.name}: an observation has {numbers} numbers, not {observations.shape[-1]}; make "
        "the environment with the policy's arguments, as in "
        f"gymnasium.make({environment!r}, **policy.decisions.arguments)"
    )


def call_reset(reset: Callable[..., Any], seed: int) -> None:
    """Calls a policy's `reset`, with the seed of the episode where it takes one."""
    try:
        takes_seed = "seed" in inspect.signature(reset).parameters
    except ValueError:  # a function of C without a signature
        takes_seed = False
    reset(**({"seed": seed} if takes_seed else {}))


@dataclass(frozen=True, repr=False)
class ConstantPolicy:
    """The same action for every observation."""

    name: str
    action: np.ndarray
    options: dict[str, Any] | None = None
    decisions: Decisions = Decisions()

    __repr__ = in_one_line

    def __call__(self, observations: np.ndarray) -> np.ndarray:
        """Returns the action, once per row."""
        return np.tile(self.action, (*observations.shape[:-1], *[1] * self.action.ndim))


class Sb3Model:
    """A model of Stable-Baselines3 as a function of observations, without exploration.

    It keeps the state of a recurrent model, such as one of RecurrentPPO, from call to call.
    """

    def __init__(self, model: Any) -> None:
        """Begins without a state."""
        self._model, self._state = model, None

    def reset(self) -> None:
        """Forgets all flows."""
        self._state = None

    def __call__(self, observations: np.ndarray) -> Any:
        """Returns the likeliest action for each row, or for one."""
        actions, self._state = self._model.predict(
            observations, state=self._state, deterministic=True
        )
        return actions


class RandomPolicy:
    """Uniform over the action space of a single environment."""

    name = "random"
    options: dict[str, Any] | None = None
    __repr__ = in_one_line

    def __init__(
        self, action_space: Space, seed: int = 0, decisions: Decisions | None = None
    ) -> None:
        """Starts the stream of draws."""
        self.decisions = decisions or Decisions()
        self._action_space = action_space
        self._seed = seed
        self.reset()

    def reset(self, seed: int = 0) -> None:
        """Starts the stream of draws again.

        Args:
            seed: Seed of the episode, which is added to the policy's own.
        """
        self._drawn_from = self._seed + seed
        self._spaces: dict[int, Space] = {}

    def __call__(self, observations: np.ndarray) -> np.ndarray:
        """Draws an action for each row; each number of rows has its own random stream."""
        rows = 0 if observations.ndim == 1 else len(observations)
        if rows not in self._spaces:
            space = batch_space(self._action_space, rows) if rows else self._action_space
            space.seed(self._drawn_from)
            self._spaces[rows] = space
        return np.asarray(self._spaces[rows].sample())
