"""What a policy is, and the two simplest: always the same action, or a random one.

A policy is called with observations, of one row or of many, and returns as many actions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from gymnasium.spaces import Box, Space
from gymnasium.vector.utils import batch_space

from quicgym.envs.interface import Interface
from quicgym.envs.observations import observation_space
from quicgym.envs.preferences import Preference
from quicgym.envs.registration import find_environment


@dataclass(frozen=True)
class Decisions:
    """What a policy decides, how often, and on what: arguments of the environments.

    Attributes:
        environment: Name of the environment, such as "tuning".
        decision_interval_ms: Between two decisions, unless the next is given.
        decision_interval_rtts: Time between two decisions, in smoothed RTTs.
        history_length: Decisions that an observation looks back on; 0: as the environment says.
        controller: The controller that actions tune or scale; None: the environment's own.
        preference: That observations end with, or weights by name; None: with none.
    """

    environment: str = "tuning"
    decision_interval_ms: float = 100.0
    decision_interval_rtts: float | None = None
    history_length: int = 0
    controller: str | None = None
    preference: Preference | None = None

    def __post_init__(self) -> None:
        """Makes an id the name.

        Raises:
            ValueError: There is no such environment, it does not take the controller, or a weight
                of the preference is not valid.
        """
        environment = find_environment(self.environment)
        environment.for_controller(self.controller)
        object.__setattr__(self, "environment", environment.environment)
        if self.history_length == 0:
            object.__setattr__(self, "history_length", environment.default_history_length)
        if self.preference is not None:
            object.__setattr__(self, "preference", Preference.of(self.preference))

    @property
    def interface(self) -> Interface:
        """What its actions do to which controller, and what it observes."""
        return find_environment(self.environment).for_controller(self.controller).interface()

    @property
    def observation_space(self) -> Box:
        """What it is called with, one row."""
        interface = self.interface
        return observation_space(
            self.history_length,
            interface.action_space,
            interface.observations,
            self.preference is not None,
        )

    @property
    def arguments(self) -> dict[str, Any]:
        """What the environment is to be made with."""
        return {
            "decision_interval_ms": self.decision_interval_ms,
            "decision_interval_rtts": self.decision_interval_rtts,
            "history_length": self.history_length,
            "preference": self.preference,
        }


class Policy(Protocol):
    """What evaluation asks of a policy."""

    @property
    def name(self) -> str:
        """As tables show it."""

    @property
    def decisions(self) -> Decisions:
        """In which environment it acts."""

    @property
    def options(self) -> dict[str, Any] | None:
        """What an environment is to be reset with."""

    def __call__(self, observations: np.ndarray) -> np.ndarray:
        """Returns an action for each row of observations, or the action for one."""


@dataclass(frozen=True)
class ConstantPolicy:
    """The same action for every observation."""

    name: str
    action: np.ndarray
    options: dict[str, Any] | None = None
    decisions: Decisions = Decisions()

    def __call__(self, observations: np.ndarray) -> np.ndarray:
        """Returns the action, once per row."""
        return np.tile(self.action, (*observations.shape[:-1], *[1] * self.action.ndim))


class RandomPolicy:
    """Uniform over the action space.

    Args:
        action_space: Action space of a single environment.
        seed: Seed of the draws.
    """

    name = "random"
    options: dict[str, Any] | None = None

    def __init__(
        self, action_space: Space, seed: int = 0, decisions: Decisions = Decisions()
    ) -> None:
        """Starts the stream of draws."""
        self.decisions = decisions
        self._spaces: dict[int, Space] = {}
        self._action_space = action_space
        self._seed = seed

    def __call__(self, observations: np.ndarray) -> np.ndarray:
        """Draws an action for each row; each number of rows has a stream of its own."""
        rows = 0 if observations.ndim == 1 else len(observations)
        if rows not in self._spaces:
            space = batch_space(self._action_space, rows) if rows else self._action_space
            space.seed(self._seed)
            self._spaces[rows] = space
        return np.asarray(self._spaces[rows].sample())
