"""A search on Ray Tune: schedulers, trials, and the way back from a kill."""

from __future__ import annotations

import json
import random
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from ray.tune.schedulers import ASHAScheduler, PopulationBasedTraining

from quicgym.agents.tuning.ranges import rounded
from quicgym.agents.tuning.ray_tune import RETRIES, Bar, OptunaSearch, fit, reason_of, tune
from quicgym.agents.tuning.search_config import Search, SearchConfig, SearchedField, Setting
from quicgym.agents.tuning.search_trial import (
    POLICY,
    Progress,
    decode,
    encode,
    run_trial,
    trial_name,
)

METRIC = "reward"
_RESAMPLED = 0.25
_FACTORS = (0.8, 1.2)


@dataclass(frozen=True)
class SearchTrial:
    """What became of a trial.

    Attributes:
        name: Of the trial, as its folder's.
        setting: What it trained with; of population-based training at its end.
        progress: How far it came.
        policy: The folder with the best policy of its lineage; None: it was never evaluated.
        finished: It made all steps; otherwise the scheduler stopped it.
        error: Why it failed.
    """

    name: str
    setting: Setting
    progress: Progress
    policy: Path | None
    finished: bool
    error: str | None


@dataclass
class Outcome:
    """All trials in the order in which they began."""

    trials: list[SearchTrial] = field(default_factory=list)
    interrupted: bool = False


class RaySearch:
    """The trials of a search on Ray Tune.

    Args:
        search: What is searched.
        trials: The folder of the trials' run folders.
        folder: For Ray Tune's state. What is there is gone on with.
        jobs: Trials at the same time; None: what Ray has room for.
        command: The command line, to be kept with the runs.
    """

    def __init__(
        self, search: Search, trials: Path, folder: Path, jobs: int | None, command: str
    ) -> None:
        """Does not run anything yet."""
        self._search, self._config = search, search.config
        self._trials, self._folder = trials, folder
        self._jobs, self._command = jobs, command

    def run(self) -> Outcome:
        """Runs all trials."""
        config = self._config
        trainable = tune.with_resources(
            tune.with_parameters(
                run_trial,
                search=self._search,
                trials=self._trials,
                working=Path.cwd(),
                command=self._command,
            ),
            {"cpu": 1},
        )
        random.seed(config.seed)  # with it, Ray's PBT chooses whom to go on from
        folder = self._folder / config.scheduler
        if tune.Tuner.can_restore(str(folder)):
            tuner = tune.Tuner.restore(str(folder), trainable, restart_errored=True)
        else:
            shutil.rmtree(folder, ignore_errors=True)  # killed before there was anything to keep
            steps = self._search.training.steps
            bar = Bar(config.name, config.samples, "best_reward", "max", steps)
            tuner = tune.Tuner(
                trainable,
                param_space=self._space(),
                tune_config=self._tune_config(steps),
                run_config=tune.RunConfig(
                    name=folder.name,
                    storage_path=str(self._folder),
                    verbose=0,
                    stop={"step": steps},
                    failure_config=tune.FailureConfig(max_failures=RETRIES),
                    checkpoint_config=tune.CheckpointConfig(num_to_keep=self._kept()),
                    callbacks=[bar],
                ),
            )
        return self._collect(fit(tuner))

    def _space(self) -> dict[str, Any]:
        config = self._config
        if config.search == "optuna":
            fields = config.hyperparameters.items()
            return {"setting": {name: _domain(field) for name, field in fields}}
        settings = [encode(config, setting) for setting in config.draws()]
        return {"setting": tune.grid_search(settings)}

    def _tune_config(self, steps: int) -> tune.TuneConfig:
        config = self._config
        scheduler: Any
        if config.scheduler == "asha":
            assert config.grace_steps is not None
            scheduler = Asha(
                self._folder / "milestones.jsonl",
                time_attr="step",
                max_t=steps,
                grace_period=config.grace_steps,
                reduction_factor=config.reduction_factor,
            )
        else:
            assert config.perturbation_steps is not None
            scheduler = PopulationBasedTraining(
                time_attr="step",
                perturbation_interval=config.perturbation_steps,
                custom_explore_fn=Explore(config),
                log_config=False,
            )
        optuna = config.search == "optuna"
        return tune.TuneConfig(
            metric=METRIC,
            mode="max",
            scheduler=scheduler,
            search_alg=OptunaSearch(seed=config.seed) if optuna else None,
            num_samples=config.samples if optuna else 1,
            # A population is under way as a whole: what Ray has no room for waits, paused.
            max_concurrent_trials=self._jobs if config.scheduler == "asha" else None,
            reuse_actors=True,
            trial_dirname_creator=_short_name,  # Ray's has all values in it
        )

    def _kept(self) -> int:
        """Checkpoints of a trial: PBT goes on from that of the last perturbation."""
        if self._config.perturbation_steps is None:
            return 2
        interval = self._search.training.evaluation.interval_steps
        return self._config.perturbation_steps // interval + 3

    def _collect(self, results: tune.ResultGrid) -> Outcome:
        outcome = Outcome(interrupted=len(results) < self._config.samples)
        for index in range(len(results)):
            result = results[index]
            if result.config is None:  # interrupted before it began
                outcome.interrupted = True
                continue
            metrics = result.metrics or {}
            error = metrics.get("error")
            if result.error is not None:
                error = f"{reason_of(result.error)} (tried {RETRIES + 1} times)"
            elif not metrics.get("done"):
                outcome.interrupted = True
                continue
            kept = None if result.checkpoint is None else Path(result.checkpoint.path)
            progress = Progress() if kept is None else Progress.read(kept)
            outcome.trials.append(
                SearchTrial(
                    trial_name(Path(result.path).name),
                    decode(self._config, result.config["setting"]),
                    progress,
                    None if kept is None else kept / POLICY,
                    progress.step >= self._search.training.steps,
                    error,
                )
            )
        return outcome


def _short_name(trial: Any) -> str:
    return str(trial.trial_id)


def _domain(field: SearchedField) -> Any:
    if field.values is not None:
        return tune.choice(list(range(len(field.values))))
    minimum, maximum = field.ends
    if field.scale == "whole":
        return tune.randint(int(minimum), int(maximum) + 1)
    return (tune.loguniform if field.scale == "log" else tune.uniform)(minimum, maximum)


class Asha(ASHAScheduler):
    """Successive halving that keeps its milestones on disk.

    Ray Tune brings trials back after a kill, but no scheduler: what is left of a search would be
    compared with nothing.

    Args:
        memory: The file with all results so far, a line each.
        settings: Of Ray's ASHAScheduler.
    """

    def __init__(self, memory: Path, **settings: Any) -> None:
        """Begins without results."""
        super().__init__(**settings)
        self._memory = memory
        self._recalled = False

    def on_trial_add(self, tune_controller: Any, trial: Any) -> None:
        """Called by Ray Tune, for restored trials too."""
        super().on_trial_add(tune_controller, trial)
        if self._recalled or not self._memory.exists():
            return
        self._recalled = True
        for line in self._memory.read_text(encoding="utf-8").splitlines():
            try:
                trial_id, step, reward = json.loads(line)
            except ValueError:
                continue  # torn by a kill
            known: Any = SimpleNamespace(trial_id=trial_id)  # all that a bracket looks at
            self._brackets[0].on_result(known, step, reward)

    def on_trial_result(self, tune_controller: Any, trial: Any, result: dict[str, Any]) -> str:
        """Called by Ray Tune."""
        self._recalled = True
        action: str = super().on_trial_result(tune_controller, trial, result)
        entry = [trial.trial_id, result["step"], result[METRIC]]
        with self._memory.open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")
        return action


class Explore:
    """Population-based training's next setting, near that of the trial it goes on from.

    As in Jaderberg et al., "Population Based Training of Neural Networks", 2017: each value is
    drawn anew with probability 1/4, or multiplied by 0.8 or 1.2; Ray's own would leave the ranges.
    Of a list the next or the last value is taken; a whole number changes by 1 at least.
    """

    def __init__(self, config: SearchConfig) -> None:
        """Begins with the search's seed."""
        self._config = config
        self._random = np.random.default_rng([config.seed, 1])

    def __call__(self, config: dict[str, Any]) -> dict[str, Any]:
        """Returns Ray Tune's configuration of a trial with the next setting."""
        fields = self._config.hyperparameters
        drawn = encode(
            self._config, {name: field.draw(self._random) for name, field in fields.items()}
        )
        setting = {
            name: drawn[name]
            if self._random.random() < _RESAMPLED
            else self._near(fields[name], value)
            for name, value in config["setting"].items()
        }
        return {**config, "setting": setting}

    def _near(self, field: SearchedField, value: float) -> float:
        up = bool(self._random.integers(2))
        step = 1 if up else -1
        if field.values is not None:
            return min(max(int(value) + step, 0), len(field.values) - 1)
        minimum, maximum = field.ends
        other = value * _FACTORS[up]
        if field.scale == "whole":
            other = max(round(other), int(value) + 1) if up else min(round(other), int(value) - 1)
        else:
            other = rounded(other)
        return min(max(other, minimum), maximum)
