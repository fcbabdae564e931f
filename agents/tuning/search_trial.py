"""A trial of a search: a training run that Ray Tune stops, sends on or starts again.

Each start is a run folder of its own, DIR/trials/<trial>/<start>, as `quicgym train` leaves it. It
begins with the checkpoint that Ray Tune hands over: the trial's own after a failure or a kill,
another trial's where population-based training has replaced it.
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
from quicgym.agents.tuning.search_config import Search
from quicgym.agents.tuning.space import Setting, decode
from quicgym.agents.tuning.trials import tune
from quicgym.errors import UserError

CHECKPOINT, PROGRESS, POLICY = "checkpoint.pt", "progress.json", "policy"
"""Values that Ray Tune keeps of a trial at each evaluation."""
COPY = "copy"
"""A file in a checkpoint that stands for one that Ray Tune removed."""


@dataclass(frozen=True)
class Progress:
    """How far a trial is: step and interquartile mean reward of the last evaluation.

    The best policy of the lineage does not count at step 0: it is the same in all trials but for
    random weights. `lineage` has the trials and settings that the weights were trained with, each
    with its first step.
    """

    step: int = 0
    reward: float = math.nan
    best_reward: float = math.nan
    best_step: int = 0
    lineage: list[dict[str, Any]] = field(default_factory=list)

    @classmethod
    def read(cls, folder: Path) -> Progress:
        """Reads what a checkpoint of Ray Tune says."""
        return cls(**json.loads((folder / PROGRESS).read_text(encoding="utf-8")))

    def write(self, folder: Path) -> None:
        """Writes it into a checkpoint of Ray Tune."""
        (folder / PROGRESS).write_text(json.dumps(asdict(self)) + "\n", encoding="utf-8")

    def metrics(self) -> dict[str, Any]:
        """Returns what schedulers and results see."""
        values = asdict(self)
        del values["lineage"]
        return values

    def begins(self, trial: str, setting: Setting) -> Progress:
        """Returns the progress with the trial and the setting that continue from its step."""
        last = self.lineage[-1] if self.lineage else None
        if last is not None and (last["trial"], last["setting"]) == (trial, setting):
            return self
        entry = {"step": self.step, "trial": trial, "setting": setting}
        return replace(self, lineage=[*self.lineage, entry])


def trial_name(trial_id: str) -> str:
    """Returns 00003 for Ray Tune's d1f2a_00003, and all of what Optuna calls a trial."""
    return trial_id.rpartition("_")[2]


def starts(folder: Path) -> list[Path]:
    """Returns the run folders of a trial, the first one first."""
    return sorted(folder.glob("[0-9]*"), key=lambda path: int(path.name))


def bring_back_removed(trial: Path) -> None:
    """Puts a copy of a trial's first whole checkpoint where the one before it is not whole.

    Ray removes a trial's old checkpoint before its own file names a later one, and would fail
    after a kill in between. The copy is that later one.
    """
    for mark in trial.glob(f"checkpoint_*/{COPY}"):
        shutil.rmtree(mark.parent)  # of an earlier --resume
    whole = sorted(
        path
        for path in trial.glob("checkpoint_*")
        if all((path / name).exists() for name in (CHECKPOINT, PROGRESS, POLICY))
    )
    number = int(whole[0].name.removeprefix("checkpoint_")) if whole else 0
    if number > 0:
        removed = trial / f"checkpoint_{number - 1:06}"
        shutil.rmtree(removed, ignore_errors=True)
        removed.mkdir()
        (removed / COPY).touch()
        shutil.copytree(whole[0], removed, dirs_exist_ok=True)


def run_trial(
    config: Mapping[str, Any], search: Search, trials: Path, working: Path, command: str
) -> None:
    """Trains with the setting that Ray Tune has chosen, and tells it of every evaluation.

    Paths in configurations start from the folder `working`.
    """
    os.chdir(working)  # Ray has its own
    torch.set_num_threads(1)  # trials run beside one another
    name = trial_name(tune.get_context().get_trial_id())
    setting = decode(search.config.hyperparameters, config["setting"])
    before = starts(trials / name)
    folder = trials / name / str(int(before[-1].name) + 1 if before else 1)
    handed = tune.get_checkpoint()
    with handed.as_directory() if handed is not None else nullcontext() as path:
        start = Progress() if path is None else Progress.read(Path(path))
        reporter = _Reporter(RunFolder(folder), start.begins(name, setting))
        try:
            train(
                search.trial(setting),
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
    """Hands each evaluation to Ray Tune."""

    def __init__(self, folder: RunFolder, progress: Progress) -> None:
        self.progress = progress
        self._folder = folder

    def __call__(self, step: int, reward: float, checkpoint: Path) -> None:
        policy = self._folder.policy_path
        best = json.loads(policy.read_text(encoding="utf-8"))["training"]
        self.progress = replace(self.progress, step=step, reward=reward)
        if best["step"] > 0:
            found = {"best_reward": best["reward"], "best_step": best["step"]}
            self.progress = replace(self.progress, **found)
        handed = self._folder.directory / "reported"
        shutil.rmtree(handed, ignore_errors=True)
        handed.mkdir()
        shutil.copy(checkpoint, handed / CHECKPOINT)
        shutil.copytree(policy.parent, handed / POLICY)
        self.progress.write(handed)
        tune.report(self.progress.metrics(), checkpoint=tune.Checkpoint.from_directory(str(handed)))
        shutil.rmtree(handed)
