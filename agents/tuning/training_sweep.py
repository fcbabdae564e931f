"""Sweeps of a training's hyperparameters: ASHA or population-based training.

Beside the files of every sweep there are:

trials/         a run folder of `quicgym train` for every start of a trial
trials.parquet  a row per trial: state, fields, best and last reward, steps, or the error
policy/         the best trial's best policy, as `quicgym.load_policy` takes it
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from ray.tune.schedulers import ASHAScheduler, PopulationBasedTraining

from quicgym.agents.evaluation.tensorboard import SETTING_TYPES
from quicgym.agents.training.configuration import ConfigError
from quicgym.agents.training.folder import RunFolder
from quicgym.agents.training.model import check_hyperparameters
from quicgym.agents.tuning.space import Setting, place_in, trial_name
from quicgym.agents.tuning.study import (
    RAY_FOLDER,
    TRIALS_FOLDER,
    Curve,
    Study,
    short,
    text_table,
)
from quicgym.agents.tuning.training_config import HyperparameterSweep, SweptField, TrainingSweep
from quicgym.agents.tuning.training_trial import POLICY, Progress, reached, run_trial, starts
from quicgym.agents.tuning.trials import Plan, run_trials, tune
from quicgym.console import print_whole, wide_console
from quicgym.envs.rewards import find_reward
from quicgym.envs.scenarios.fields import errors_at
from quicgym.envs.scenarios.suites import load_entry, load_suite, refuse_held_out
from quicgym.output_folders import Identity

RESAMPLED = 0.25
FACTORS = (0.8, 1.2)
POLICY_FOLDER = "policy"
METRIC = "reward"
"""Metric by which ASHA and population-based training compare trials."""


@dataclass(frozen=True)
class TrainingTrial:
    """The outcome of a trial.

    With population-based training `setting` is the last one. `policy` is the folder with the best
    policy of its lineage. A trial that has not `finished` was stopped by the scheduler.
    """

    name: str
    setting: Setting
    progress: Progress
    policy: Path | None
    finished: bool
    error: str | None

    @property
    def state(self) -> str:
        """State of the trial, in words."""
        if self.error is not None:
            return "failed"
        return "finished" if self.finished else "stopped early"

    @property
    def schedule(self) -> list[dict[str, Any]]:
        """Settings that the best policy was trained with, each with its first step.

        With population-based training the first ones may be other trials'.
        """
        first, *others = self.progress.lineage
        return [first, *(entry for entry in others if entry["step"] < self.progress.best_step)]


class TrainingStudy(Study[TrainingTrial]):
    """A sweep of hyperparameters."""

    files = (POLICY_FOLDER,)
    summary = (
        "(trials.parquet, sweep.json), the best policy (policy), runs (trials) and hparams "
        "(tensorboard)"
    )

    def __init__(self, sweep: TrainingSweep) -> None:
        """Does not run anything yet."""
        super().__init__(sweep.config.name)
        self.sweep, self.config = sweep, sweep.config

    def check(self, jobs: int | None, address: str | None) -> Identity:
        """See `Study.check`."""
        if address is not None and jobs is not None and self.config.scheduler == "pbt":
            raise ConfigError(
                f"--jobs {jobs}: a population of pbt in a cluster is limited by its cores "
                "alone; leave --jobs away"
            )
        training = self.sweep.training
        for name, field in self.config.hyperparameters.items():
            for value in field.limits:
                check_hyperparameters(self.sweep.trial({name: value}))
        with errors_at("training: environment.scenario"):
            load_entry(training.environment.scenario)
        with errors_at("training: evaluation.suite"):
            suite = load_suite(training.evaluation.suite)
        refuse_held_out("evaluation.suite", training.evaluation.suite, ConfigError, suite)
        reward = asdict(find_reward(training.environment.reward))
        return self.identity([self.config.model_dump(), training.model_dump(), reward], suite)

    def run(self, directory: Path, jobs: int | None, command: str) -> None:
        """See `Study.run`."""
        config, folder = self.config, directory / TRIALS_FOLDER
        numbers = range(config.samples)
        before = {
            number: Progress.read(path).lineage[-1]["setting"]
            for number in numbers
            if (path := reached(folder / trial_name(number)))
        }
        plan = Plan(self.name, METRIC, "max", before, steps=self.sweep.training.steps)
        if config.search == "optuna":
            plan = replace(plan, numbers=numbers, space=config.hyperparameters, seed=config.seed)
        else:
            plan = replace(plan, settings={**dict(enumerate(config.draws())), **before})
        random.seed(config.seed)  # with it, Ray's PBT chooses whom to go on from
        failed = run_trials(
            run_trial,
            plan,
            directory / RAY_FOLDER,
            # A population is under way as a whole: what Ray has no room for waits, paused.
            jobs if config.scheduler == "asha" else None,
            scheduler=self._scheduler(),
            running={
                "stop": {"step": self.sweep.training.steps},
                "checkpoint_config": tune.CheckpointConfig(num_to_keep=self.kept_checkpoints),
            },
            given={
                "sweep": self.sweep,
                "trials": folder,
                "working": Path.cwd(),
                "command": command,
            },
        )
        self.trials = [self._trial(folder / trial_name(number), failed) for number in numbers]

    def _scheduler(self) -> Any:
        config = self.config
        if config.scheduler == "asha":
            assert config.grace_steps is not None
            return ASHAScheduler(
                time_attr="step",
                metric=METRIC,
                mode="max",
                max_t=self.sweep.training.steps,
                grace_period=config.grace_steps,
                reduction_factor=config.reduction_factor,
            )
        assert config.perturbation_steps is not None
        return PopulationBasedTraining(
            time_attr="step",
            metric=METRIC,
            mode="max",
            perturbation_interval=config.perturbation_steps,
            custom_explore_fn=Explore(config),
            log_config=False,
        )

    @property
    def kept_checkpoints(self) -> int:
        """Checkpoints that Ray keeps of a trial: PBT continues from the last perturbation's."""
        if self.config.perturbation_steps is None:
            return 1
        interval = self.sweep.training.evaluation.interval_steps
        return self.config.perturbation_steps // interval + 3

    def _trial(self, folder: Path, failed: Mapping[str, tuple[Setting, str]]) -> TrainingTrial:
        kept = reached(folder)
        progress = Progress() if kept is None else Progress.read(kept)
        setting, error = failed.get(folder.name, (None, None))
        return TrainingTrial(
            folder.name,
            setting or progress.lineage[-1]["setting"],
            progress,
            None if kept is None else kept / POLICY,
            progress.step >= self.sweep.training.steps,
            error,
        )

    def failure(self, trial: TrainingTrial) -> str:
        """See `Study.failure`."""
        return f"{self.sweep.train_command(trial.setting)}: {trial.error}"

    @cached_property
    def ranked(self) -> list[TrainingTrial]:
        """The best trial first; those that failed are left out.

        Of trials that share their best policy, the one that found it is ahead of those that went
        on from there. Others with the same reward are in the order of their names, so that the
        table is the same in whichever order Ray names them.
        """
        return sorted(
            (trial for trial in self.trials if trial.error is None),
            key=lambda trial: (
                -trial.progress.best_reward,
                trial.schedule[-1]["trial"] != trial.name,
                trial.name,
            ),
        )

    @property
    def best_setting(self) -> Setting:
        """Setting that the best policy was trained with at last."""
        setting: Setting = self.ranked[0].schedule[-1]["setting"]
        return setting

    def write(self, directory: Path) -> None:
        """See `Study.write`."""
        best = self.ranked[0].policy
        assert best is not None
        shutil.rmtree(directory / POLICY_FOLDER, ignore_errors=True)
        shutil.copytree(best, directory / POLICY_FOLDER)

    def curves(self, directory: Path) -> list[Curve]:
        """See `Study.curves`."""
        return [
            Curve(
                f"trial-{trial.name}",
                {
                    name: value if isinstance(value, SETTING_TYPES) else SweptField.text(value)
                    for name, value in trial.setting.items()
                },
                evaluations(directory / TRIALS_FOLDER / trial.name),
                {},
            )
            for trial in self.ranked
        ]

    def frame(self) -> pd.DataFrame:
        """See `Study.frame`."""
        rows = [
            {
                "trial": trial.name,
                "state": trial.state,
                **trial.setting,
                **trial.progress.metrics(),
                "error": trial.error,
            }
            for trial in (*self.ranked, *self.failed)
        ]
        frame = pd.DataFrame(rows)
        for name, field in self.config.hyperparameters.items():
            if not _is_number(field):
                frame[name] = frame[name].map(field.text)
        return frame

    def document(self) -> dict[str, Any]:
        """See `Study.document`."""
        trial = self.ranked[0]
        best: dict[str, Any] = {
            "trial": trial.name,
            "hyperparameters": self.best_setting,
            "reward": trial.progress.best_reward,
            "step": trial.progress.best_step,
            "train": self.sweep.train_command(self.best_setting),
        }
        if self.config.scheduler == "pbt":
            best["schedule"] = [
                {
                    "step": entry["step"],
                    "trial": entry["trial"],
                    "hyperparameters": entry["setting"],
                }
                for entry in trial.schedule
            ]
        return {
            "config": self.config.model_dump(mode="json", exclude_unset=True),
            "training": self.sweep.training.model_dump(mode="json"),
            "failed": [
                {"trial": failed.name, "hyperparameters": failed.setting, "error": failed.error}
                for failed in self.failed
            ],
            "best": best,
        }

    def print(self) -> None:
        """Prints the trials, and how to train with the best hyperparameters."""
        config, training, console = self.config, self.sweep.training, wide_console()
        names = list(config.hyperparameters)
        console.print(
            f"{config.name}: reward ({training.environment.reward}), interquartile mean over "
            f"{training.evaluation.suite}, {len(self.trials)} trials of {config.training} with "
            f"{config.scheduler}\n",
            highlight=False,
        )
        rows = [
            (
                "-" if trial.error else str(rank),
                trial.name,
                *(SweptField.text(trial.setting[name]) for name in names),
                f"{trial.progress.best_reward:.4f}",
                f"{trial.progress.best_step:,}",
                f"{trial.progress.step:,}",
                trial.state,
            )
            for rank, trial in enumerate((*self.ranked, *self.failed), 1)
        ]
        headings = ("rank", "trial", *map(short, names), "best reward", "at step", "steps", "state")
        print_whole(text_table(headings, rows, left=("state",)))
        console.print()
        lines = ["To train with the best hyperparameters:"]
        if config.scheduler == "pbt":
            lines = [
                "The best policy was trained with",
                *map(_in_words, self.ranked[0].schedule),
                "and a training with the last of them from its beginning is",
            ]
        for line in (*lines, f"  {self.sweep.train_command(self.best_setting)}"):
            console.print(line, highlight=False, soft_wrap=True, markup=False)


def _in_words(entry: Mapping[str, Any]) -> str:
    """One entry of a trial's schedule."""
    setting = ", ".join(
        f"{name}={SweptField.text(value)}" for name, value in entry["setting"].items()
    )
    return f"  {setting}  from step {entry['step']:,} on, trial {entry['trial']}"


def _is_number(field: SweptField) -> bool:
    """Whether all its values are numbers, so that a column can be of one type."""
    return field.values is None or all(
        isinstance(value, int | float) and not isinstance(value, bool) for value in field.values
    )


def evaluations(folder: Path) -> dict[int, list[dict[str, Any]]]:
    """Returns step -> the records of a trial's evaluation; each start goes on where it began."""
    found: dict[int, list[dict[str, Any]]] = {}
    for start in starts(folder):
        records = RunFolder(start).evaluations()
        if not records:
            continue
        begin = records[0]["step"]
        found = {step: entry for step, entry in found.items() if step < begin}
        for record in records:
            found.setdefault(record["step"], []).append(record)
    return found


class Explore:
    """Population-based training's next setting, near that of the trial that it copies.

    As in Jaderberg et al., "Population Based Training of Neural Networks", 2017: each value is
    drawn anew with probability 1/4, or multiplied by 0.8 or 1.2; Ray's own would leave the ranges.
    Of a list the next or the last value is taken; a whole number changes by 1 at least.
    """

    def __init__(self, config: HyperparameterSweep) -> None:
        """Begins with the sweep's seed."""
        self._fields = config.hyperparameters
        self._rng = np.random.default_rng([config.seed, 1])

    def __call__(self, config: dict[str, Any]) -> dict[str, Any]:
        """Returns Ray Tune's configuration of a trial with the next setting."""
        setting = {
            name: field.draw(self._rng)
            if self._rng.random() < RESAMPLED
            else self._near(field, config["trial"]["setting"][name])
            for name, field in self._fields.items()
        }
        return {"trial": {**config["trial"], "setting": setting}}

    def _near(self, field: SweptField, value: Any) -> Any:
        up = bool(self._rng.integers(2))
        if field.values is not None:
            place = place_in(field.values, value) + (1 if up else -1)
            return field.values[min(max(place, 0), len(field.values) - 1)]
        minimum, maximum = field.ends
        other = value * FACTORS[up]
        if field.scale == "whole":
            other = max(round(other), value + 1) if up else min(round(other), value - 1)
        return field.number(min(max(other, minimum), maximum))
