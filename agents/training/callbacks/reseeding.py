"""Randomness begins anew at every checkpoint, so that a checkpoint needs none of its state."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from quicgym.agents.training.callbacks.base import PeriodicCallback
from quicgym.agents.training.stable_baselines3_state import begin_episodes
from quicgym.envs.sb3 import Sb3VecEnv


class ReseedingCallback(PeriodicCallback):
    """Seeds everything random from the run's seed and the step, and begins all episodes anew.

    Args:
        seed: Of the run.
        environments: That are trained on.
        interval_steps: Between two times; that of the checkpoints.
    """

    def __init__(self, seed: int, environments: Sb3VecEnv, interval_steps: int) -> None:
        """Takes what is seeded."""
        super().__init__(interval_steps)
        self._seed = seed
        self._environments = environments

    def resume(self, state: Mapping[str, Any]) -> None:
        """Is due at the checkpoint's step, as it was when the checkpoint was written."""
        self._next_step = state["step"]

    def finish(self) -> None:
        """Nothing follows."""

    def act(self, step: int) -> None:
        """Begins anew."""
        words = np.random.SeedSequence([self._seed, step]).generate_state(4)
        seeds = [int(word) for word in words]
        random.seed(seeds[0])
        np.random.seed(seeds[1])
        torch.manual_seed(seeds[2])
        model: Any = self.model
        model.action_space.seed(seeds[2])
        self._environments.seed(seeds[3])
        begin_episodes(model, self._environments)
