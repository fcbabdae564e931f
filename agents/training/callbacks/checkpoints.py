"""A checkpoint after each evaluation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from quicgym.agents.algorithms.registry import Algorithm
from quicgym.agents.training.callbacks.base import PeriodicCallback
from quicgym.agents.training.callbacks.evaluation import EvaluationCallback
from quicgym.agents.training.checkpoints import restore, save_checkpoint, state_of
from quicgym.agents.training.folder import RunFolder


class CheckpointCallback(PeriodicCallback):
    """Writes a checkpoint after each evaluation.

    Args:
        algorithm: That is trained.
        folder: Of the run.
        evaluation: Whose best policy a checkpoint has too.
        interval_steps: Between two checkpoints; that of the evaluations.
        on_evaluation: Called with the step, the evaluation's reward and the checkpoint's path.
    """

    def __init__(
        self,
        algorithm: Algorithm,
        folder: RunFolder,
        evaluation: EvaluationCallback,
        interval_steps: int,
        on_evaluation: Callable[[int, float, Path], None] | None,
    ) -> None:
        """Takes what is written, and where."""
        super().__init__(interval_steps)
        self._algorithm = algorithm
        self._folder = folder
        self._evaluation = evaluation
        self._on_evaluation = on_evaluation

    def resume(self, state: Mapping[str, Any]) -> None:
        """Puts the model where the checkpoint was taken."""
        super().resume(state)
        restore(self.model, self._algorithm, state)

    def act(self, step: int) -> None:
        """Writes a checkpoint."""
        state = {**state_of(self.model, self._algorithm), **self._evaluation.state()}
        path = save_checkpoint(self._folder, step, {"step": step, **state})
        if self._on_evaluation is not None:
            self._on_evaluation(step, self._evaluation.last_reward, path)
