"""Hyperparameters of the policy that follow a schedule."""

from __future__ import annotations

import math
from typing import Any

from quicgym.agents.training.callbacks.base import RunCallback


class ExplorationSchedule(RunCallback):
    """Lets the standard deviation of a Gaussian policy fall exponentially over a run.

    Args:
        first: At step 0, in units of the action space.
        last: From step `steps` on.
        steps: Of the run.
    """

    def __init__(self, first: float, last: float, steps: int) -> None:
        """Takes the two ends."""
        super().__init__()
        self._first, self._last, self._steps = first, last, steps

    def _on_rollout_start(self) -> None:
        share = min(1.0, self.num_timesteps / self._steps)
        policy: Any = self.model.policy
        policy.log_std.requires_grad_(False)
        policy.log_std.fill_(math.log(self._first) + share * math.log(self._last / self._first))
