"""The loop of a training: learn, evaluate, keep a checkpoint, and begin everything random anew.

At every checkpoint all random generators and all simulations begin anew from a seed that comes from
the run's seed and the number of steps so far. So a checkpoint needs no state of simulations, and a
run that was killed and resumed ends with the very same weights as one that was not.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from quicgym.agents.algorithms.trainer import Trainer
from quicgym.agents.evaluation.tensorboard import EvaluationWriter
from quicgym.agents.training.checkpoints import save_checkpoint
from quicgym.agents.training.configuration import TrainingConfig
from quicgym.agents.training.evaluation import Evaluations
from quicgym.agents.training.folder import RunFolder
from quicgym.agents.training.progress import TrainingProgress
from quicgym.errors import RunError, UserError


class TrainingError(UserError):
    """Training cannot go on; what was reached is kept. The text says where, and what to do."""


class Loop:
    """Trains from one checkpoint to the next; it is the trainer's `Watch`.

    `on_evaluation` is called with the step, the evaluation's reward and the checkpoint's path.
    """

    def __init__(
        self,
        config: TrainingConfig,
        trainer: Trainer,
        folder: RunFolder,
        evaluations: Evaluations,
        writer: EvaluationWriter,
        progress: TrainingProgress,
        on_evaluation: Callable[[int, float, Path], None] | None = None,
    ) -> None:
        """Takes what is trained; nothing has begun."""
        self._config, self._trainer, self._folder = config, trainer, folder
        self._evaluations, self._writer, self._progress = evaluations, writer, progress
        self._on_evaluation = on_evaluation
        self._threads = torch.get_num_threads()

    def run(self, state: Mapping[str, Any] | None) -> None:
        """Trains to the last step, from a checkpoint's state if there is one.

        TrainingError where a loss or a weight is not finite any more, OSError where a file cannot
        be written.
        """
        trainer, steps = self._trainer, self._config.steps
        try:
            if state is None:
                self.checkpoint()
            else:
                self._restore(state)
            while trainer.step < steps:
                self.reseed()
                until = min(trainer.step + self._config.evaluation.interval_steps, steps)
                trainer.learn(until, steps, self)
                self.checkpoint()
        except ValueError as error:
            # PyTorch's distributions refuse what a network gives that is no longer finite, and the
            # core refuses weights that are not finite, or may lead there.
            self.check_finite()
            is_pytorch = "Expected parameter" in str(error)
            if not is_pytorch and "may not be finite" not in str(error):
                raise
            what = "the network's output is not finite" if is_pytorch else str(error)
            raise self._not_finite(what) from error
        finally:
            torch.set_num_threads(self._threads)

    def _restore(self, state: Mapping[str, Any]) -> None:
        try:
            self._trainer.restore(state)
            self._evaluations.restore(state)
        except (AttributeError, IndexError, KeyError, RuntimeError, TypeError, ValueError) as error:
            raise RunError(
                f"{self._folder.directory}: its checkpoint of step {state['step']:,} is none of "
                f"this training ({' '.join(str(error).split())[:200]}); remove the file, and "
                "--resume continues from the one before"
            ) from error

    def checkpoint(self) -> None:
        """Measures the policy, publishes the best one, and writes a checkpoint."""
        self.check_finite()  # what is not finite is neither measured nor kept
        torch.set_num_threads(1)
        self._explore()
        self._evaluations.measure()
        state = {**self._trainer.state(), **self._evaluations.state()}
        path = save_checkpoint(self._folder, self._trainer.step, state)
        if self._on_evaluation is not None:
            self._on_evaluation(self._trainer.step, self._evaluations.last_reward, path)

    def reseed(self) -> None:
        """Begins everything random anew, from the run's seed and the step."""
        self._trainer.reseed(np.random.SeedSequence([self._config.seed, self._trainer.step]))

    def rollout_begins(self) -> None:
        """Checks the last losses; sets threads and exploration; moves the bar."""
        self._check_losses()
        # A rollout's small batches gain nothing by threads, which wait where simulations could run.
        torch.set_num_threads(1)
        self._explore()
        self._progress.at(self._trainer.step)

    def rollout_ended(self) -> None:
        """Gives the update all threads."""
        torch.set_num_threads(self._threads)

    def scalars(self, step: int, values: Mapping[str, float]) -> None:
        """Writes numbers, and the speed so far, into the run's event file."""
        speed = {"time/steps_per_second": self._progress.steps_per_second(step)}
        self._writer.scalars(step, {**values, **speed})

    def _explore(self) -> None:
        """Lets the standard deviation of exploration fall exponentially over the run."""
        first, last = self._config.start.std, self._config.start.final_std
        if first is None or last is None:
            return
        share = min(1.0, self._trainer.step / self._config.steps)
        self._trainer.set_exploration(math.log(first) + share * math.log(last / first))

    def _check_losses(self) -> None:
        if not all(map(math.isfinite, self._trainer.losses.values())):
            self.check_finite()

    def check_finite(self) -> None:
        """Raises TrainingError where the last update has left something that is no number."""
        broken = [
            f"{name} is {value}"
            for name, value in self._trainer.losses.items()
            if not math.isfinite(value)
        ]
        if not all(torch.isfinite(weight).all() for weight in self._trainer.network.parameters()):
            broken.append("the network's weights are not finite")
        if broken:
            raise self._not_finite("; ".join(broken))

    def _not_finite(self, what: str) -> TrainingError:
        return TrainingError(
            f"step {self._trainer.step:,}: {what}. Training stops; "
            f"{self._folder.last_checkpoint()}. Lower hyperparameters.learning_rate"
        )
