"""Training stops where losses or weights are no numbers any more."""

from __future__ import annotations

import numpy as np
import torch

from quicgym.agents.training.callbacks.base import PeriodicCallback
from quicgym.agents.training.folder import RunFolder
from quicgym.errors import UserError


class TrainingError(UserError):
    """Training cannot go on; what was reached is kept. The text says where, and what to do."""


class FiniteCallback(PeriodicCallback):
    """Raises TrainingError for losses that are not finite, and with each evaluation for weights.

    Args:
        folder: Whose last checkpoint the error names.
        interval_steps: Between two looks at all weights.
    """

    def __init__(self, folder: RunFolder, interval_steps: int) -> None:
        """Takes the run's folder."""
        super().__init__(interval_steps)
        self._folder = folder

    def act(self, step: int) -> None:
        """Raises TrainingError where the last update has left something that is no number."""
        broken = self._broken_losses()
        if not all(torch.isfinite(weight).all() for weight in self.model.policy.parameters()):
            broken.append("the network's weights are not finite")
        if broken:
            raise self.error("; ".join(broken))

    def error(self, what: str) -> TrainingError:
        """Returns the error for numbers that are none."""
        return TrainingError(
            f"step {self.model.num_timesteps:,}: {what}. Training stops; "
            f"{self._folder.last_checkpoint()}. Lower hyperparameters.learning_rate"
        )

    def _on_rollout_start(self) -> None:
        if self._broken_losses():
            self.act(self.num_timesteps)
        super()._on_rollout_start()

    def _broken_losses(self) -> list[str]:
        return [
            f"{name} is {value}"
            for name, value in self.logger.name_to_value.items()
            if name.startswith("train/") and "loss" in name and not np.isfinite(value)
        ]
