"""A policy of Stable-Baselines3 with a state, in a module that its file can name."""

from __future__ import annotations

from typing import Any

import numpy as np
from stable_baselines3.common.policies import ActorCriticPolicy

import quicgym


class CountsDecisions(ActorCriticPolicy):
    """Takes the choice 1, 2, 3, … up to 6, by the decisions that its state has counted."""

    def predict(
        self,
        observation: Any,
        state: Any = None,
        episode_start: np.ndarray | None = None,
        deterministic: bool = False,
    ) -> tuple[np.ndarray, Any]:
        rows = len(np.atleast_2d(observation))
        counted = (np.zeros(rows, int) if state is None else state[0]) + 1
        return np.minimum(counted, 6), (counted,)


class Counts:
    """The same as a policy of Window in plain Python."""

    name, options, decisions = "counts", None, quicgym.Decisions("window")
    counted = 0

    def reset(self) -> None:
        self.counted = 0

    def __call__(self, observations: np.ndarray) -> np.ndarray:
        self.counted += 1
        return np.full(len(observations), min(self.counted, 6))
