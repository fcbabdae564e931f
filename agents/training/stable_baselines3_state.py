"""What training needs of Stable-Baselines3 that has no public name there; nothing else has any.

A run that is resumed ends with the same weights as one that was not, so episodes have to begin anew
while `learn` runs: Stable-Baselines3 resets its environments only when `learn` begins, and to call
it once for each part of a run would begin schedules anew as well. TD3 counts its updates to delay
those of its policy; `save` keeps that count, but in a pickle, which runs code when it is loaded.

pyproject.toml has an upper bound of stable-baselines3 for these three attributes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from stable_baselines3.common.vec_env import VecEnv


def begin_episodes(model: Any, environments: VecEnv) -> None:
    """Resets the environments, and lets the next rollout begin there."""
    model._last_obs = environments.reset()
    model._last_episode_starts = np.ones(environments.num_envs, dtype=bool)


def update_count(model: Any) -> int:
    """Returns how many updates an algorithm has made."""
    return int(model._n_updates)


def set_update_count(model: Any, count: int) -> None:
    """Lets an algorithm count its updates from there."""
    model._n_updates = count
