"""A trial of a sweep of hyperparameters: a training run that Ray Tune stops or starts again.

Each start is a run folder, DIR/trials/<trial>/<start>, as `quicgym train` leaves it, and has the
checkpoint of its last evaluation. The next start begins there, unless Ray Tune hands over another
one: of another trial, which population-based training continues in place of this one.
"""

from __future__ import annotations

import json
import math
import os
import shutil
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from quicgym.agents.training.folder import RunFolder
from quicgym.agents.training.run import train
from quicgym.agents.tuning.space import Setting
from quicgym.agents.tuning.training_config import TrainingSweep
from quicgym.agents.tuning.trials import tune
from quicgym.errors import UserError

CHECKPOINT, PROGRESS, POLICY = "checkpoint.pt", "progress.json", "policy"
"""Files that are kept of a trial at each evaluation, in a folder `reached-<step>` of its start."""


@dataclass(frozen=True)
class Progress:
    """How far a trial is: step and interquartile mean reward of the last evaluation.

    The best policy of the lineage does not count at step 0: it is the same in all trials but for
    random weights. `lineage` has the trials and settings that the weights were trained with, each
    with its first step. `history` has the metrics of all evaluations.
    """

    step: int = 0
    reward: float = math.nan
    best_reward: float = math.nan
    best_step: int = 0
    lineage: list[dict[str, Any]] = field(default_factory=list)
    history: list[dict[str, Any]] = field(default_factory=list)

    @classmethod
    def read(cls, folder: Path) -> Progress:
        """Reads what a checkpoint says."""
        return cls(**json.loads((folder / PROGRESS).read_text(encoding="utf-8")))

    def metrics(self) -> dict[str, Any]:
        """Returns what schedulers and results see."""
        names = ("step", "reward", "best_reward", "best_step")
        return {name: getattr(self, name) for name in names}

    def begins(self, trial: str, setting: Setting) -> Progress:
        """Returns the progress with the trial and the setting that continue from its step."""
        last = self.lineage[-1] if self.lineage else None
        if last is not None and (last["trial"], last["setting"]) == (trial, setting):
            return self
        entry = {"step": self.step, "trial": trial, "setting": setting}
        return replace(self, lineage=[*self.lineage, entry])


def starts(folder: Path) -> list[Path]:
    """Returns the run folders of a trial, the first one first."""
    return sorted(folder.glob("[0-9]*"), key=lambda path: int(path.name))


def reached(folder: Path) -> Path | None:
    """Returns the last checkpoint of a trial, of all its starts; None: it has none."""
    for start in reversed(starts(folder)):
        if found := sorted(start.glob("reached-*")):
            return found[-1]
    return None


def run_trial(
    chosen: Mapping[str, Any], sweep: TrainingSweep, trials: Path, working: Path, command: str
) -> None:
    """Trains with the setting that Ray Tune has chosen, and tells it of every evaluation.

    Paths in configurations start from the folder `working`.
    """
    os.chdir(working)  # Ray has its own
    torch.set_num_threads(1)  # trials run beside one another
    name = tune.get_context().get_trial_name()
    setting = chosen["trial"]["setting"]
    before = starts(trials / name)
    folder = trials / name / str(int(before[-1].name) + 1 if before else 1)
    handed = tune.get_checkpoint()
    with nullcontext(reached(trials / name)) if handed is None else handed.as_directory() as path:
        start = Progress() if path is None else Progress.read(Path(path))
        if handed is None:  # Ray Tune begins anew, and asha compares by all evaluations
            asha = sweep.config.scheduler == "asha"
            for metrics in start.history if asha else start.history[-1:]:
                tune.report(metrics)
        if start.step >= sweep.training.steps:
            return
        reporter = _Reporter(RunFolder(folder), start.begins(name, setting))
        try:
            train(
                sweep.trial(setting),
                folder,
                command,
                checkpoint=None if path is None else Path(path) / CHECKPOINT,
                on_evaluation=reporter,
                trial=True,
            )
        except UserError as error:
            if isinstance(error.__cause__, OSError):
                raise  # a disk may be mended; what is no number stays so
            tune.report({**reporter.progress.metrics(), "error": str(error)})


class _Reporter:
    """Keeps what each evaluation has reached, and hands it to Ray Tune."""

    def __init__(self, folder: RunFolder, progress: Progress) -> None:
        self.progress = progress
        self._folder = folder

    def __call__(self, step: int, reward: float, checkpoint: Path) -> None:
        policy = self._folder.policy_path
        best = json.loads(policy.read_text(encoding="utf-8"))["training"]
        progress = replace(self.progress, step=step, reward=reward)
        if best["step"] > 0:
            progress = replace(progress, best_reward=best["reward"], best_step=best["step"])
        metrics = progress.metrics()
        self.progress = replace(progress, history=[*progress.history, metrics])
        directory = self._folder.directory
        before = list(directory.parent.glob("*/reached-*"))
        new, kept = directory / "new", directory / f"reached-{step:012}"
        shutil.rmtree(new, ignore_errors=True)
        new.mkdir()
        shutil.copy(checkpoint, new / CHECKPOINT)
        shutil.copytree(policy.parent, new / POLICY)
        text = json.dumps(asdict(self.progress)) + "\n"
        (new / PROGRESS).write_text(text, encoding="utf-8")
        new.rename(kept)
        for other in before:
            shutil.rmtree(other)
        tune.report(metrics, checkpoint=tune.Checkpoint.from_directory(str(kept)))
