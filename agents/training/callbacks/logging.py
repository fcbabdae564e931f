"""Curves of the training itself in TensorBoard's event file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from stable_baselines3.common.logger import KVWriter, Logger

from quicgym.agents.evaluation.tensorboard import EvaluationWriter
from quicgym.agents.training.callbacks.base import RunCallback
from quicgym.agents.training.callbacks.progress import StepRate

_SPEED = "time/steps_per_second"


class LoggingCallback(RunCallback):
    """Records rollouts, and has the algorithm's own records written to the run's event file.

    Args:
        writer: Of the event file.
        begin_step: Where the run goes on from.
    """

    def __init__(self, writer: EvaluationWriter, begin_step: int) -> None:
        """Takes the writer."""
        super().__init__()
        self._writer = writer
        self._rate = StepRate(begin_step)
        self._rewards: list[float] = []

    def finish(self) -> None:
        """Writes what the last update has recorded."""
        if self.num_timesteps:
            self.logger.dump(self.num_timesteps)

    def _init_callback(self) -> None:
        self.model.set_logger(Logger(folder=None, output_formats=[_ScalarWriter(self._writer)]))

    def _on_step(self) -> bool:
        # The rollout's buffer has more: PPO adds to an episode's end the value of what follows.
        self._rewards.append(float(self.locals["rewards"].mean()))
        return True

    def _on_rollout_end(self) -> None:
        if self._rewards:
            self.logger.record("rollout/reward", float(np.mean(self._rewards)))
            self._rewards.clear()
        self.logger.record(_SPEED, self._rate.at(self.num_timesteps))


class _ScalarWriter(KVWriter):
    """Stable-Baselines3's records into our event file."""

    def __init__(self, writer: EvaluationWriter) -> None:
        self._writer = writer

    def write(
        self, key_values: Mapping[str, Any], key_excluded: Mapping[str, Any], step: int = 0
    ) -> None:
        self._writer.scalars(
            step,
            {
                name: float(value)
                for name, value in key_values.items()
                if name == _SPEED or not name.startswith("time/")
            },
        )

    def close(self) -> None:
        pass
