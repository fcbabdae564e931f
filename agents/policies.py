"""Hand-coded policies: what learned ones are measured against, in the same environments.

A policy is called with observations, of one row or of many, and returns as many actions.
Controllers that are no point of the action space run by `options`, which the episode is reset with;
their actions are ignored.

    policy = controller_policy("cubic", environment.action_space)
    observation, info = environment.reset(seed=1, options=policy.options)
    environment.step(policy(observation))
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from gymnasium.spaces import Space
from gymnasium.vector.utils import batch_space

from quicgym.controllers import switching_members
from quicgym.envs.actions import preset_action
from quicgym.envs.conversion import ControllerChoice
from quicgym.envs.scenario import closest


class Policy(Protocol):
    """What evaluation and training ask of a policy."""

    @property
    def name(self) -> str:
        """As tables show it."""

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

    def __call__(self, observations: np.ndarray) -> np.ndarray:
        """Returns the action, once per row."""
        return np.tile(self.action, (*observations.shape[:-1], *[1] * self.action.ndim))


class RandomPolicy:
    """Uniform over the action space.

    Args:
        action_space: Of a single environment.
        seed: Of its draws.
    """

    name = "random"
    options: dict[str, Any] | None = None

    def __init__(self, action_space: Space, seed: int = 0) -> None:
        """Starts the stream of draws."""
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


def preset_policy(controller: str, **parameters: Any) -> ConstantPolicy:
    """Returns a controller of the BBR family as a policy of Tuning-v0; see `preset_action`."""
    return ConstantPolicy(controller, preset_action(controller, **parameters))


def switch_policy(controller: str) -> ConstantPolicy:
    """Returns the policy of Switch-v0 that always chooses one controller.

    Raises:
        ValueError: It is not one of `quicgym.controllers.switching_members()`.
    """
    members = switching_members()
    if controller not in members:
        raise ValueError(f"no choice {controller!r}; {closest(controller, members)}")
    return ConstantPolicy(controller, np.array(members.index(controller)))


def controller_policy(controller: ControllerChoice, action_space: Space) -> ConstantPolicy:
    """Returns any controller as a policy of any environment, by the options of reset.

    Args:
        controller: A name, or a subclass of quicgym.Controller.
        action_space: Of the single environment; what its actions are does not matter.
    """
    name = controller if isinstance(controller, str) else controller.__name__
    rest = np.zeros(action_space.shape or (), dtype=action_space.dtype)
    return ConstantPolicy(name, rest, {"controller": controller})
