"""A sweep on Ray Tune: its trials, and the way back from a kill."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from quicgym.agents.tuning.ray_tune import RETRIES, Bar, OptunaSearch, fit, ray, reason_of, tune
from quicgym.agents.tuning.sweep_config import Setting, SweepConfig, SweptParameter, Value, label
from quicgym.agents.tuning.sweep_trial import (
    Encoded,
    FailedTrial,
    FinishedTrial,
    Trials,
    decode,
    run_trial,
    tune_trial,
)


@dataclass
class Outcome:
    """What became of the trials, in the order of the sweep."""

    finished: list[FinishedTrial] = field(default_factory=list)
    failed: list[FailedTrial] = field(default_factory=list)
    interrupted: bool = False


class RaySearch:
    """The trials of a sweep on Ray Tune.

    Args:
        config: The sweep.
        trials: Runs one.
        folder: For Ray Tune's state. What is there is gone on with.
        jobs: Trials at the same time; None: what Ray has room for.
    """

    def __init__(self, config: SweepConfig, trials: Trials, folder: Path, jobs: int | None) -> None:
        """Does not run anything yet."""
        self._config = config
        self._trials = trials
        self._folder = folder
        self._jobs = jobs
        self._published = config.published_setting()
        self._values: dict[str, dict[str, Value]] = {
            name: {label(value): value for value in (*(swept.values or ()), self._published[name])}
            for name, swept in config.parameters.items()
        }
        self._outcome = Outcome()

    def run(self) -> Outcome:
        """Runs the listed settings and the published one, or the published one and Optuna's."""
        config = self._config
        if config.search != "optuna":
            settings = config.listed_settings()
            if self._published not in settings:
                settings.append(self._published)
            self._fit(config.search, len(settings), self._listed(settings))
            return self._outcome
        self._fit("published", 1, self._listed([self._published]))
        if not self._outcome.interrupted:
            space = {name: self._domain(name, swept) for name, swept in config.parameters.items()}
            self._fit(
                "optuna",
                config.trials,
                {"trial": {"setting": space}},
                search_alg=OptunaSearch(seed=config.seed),
                metric="objective",
                mode=config.mode,
                num_samples=config.trials,
            )
        return self._outcome

    def confirm(self, settings: Sequence[Setting]) -> list[tuple[float, ...]]:
        """Returns the objective of each setting on each of as many other seeds.

        Raises:
            ray.exceptions.RayError: A run failed that had succeeded with the sweep's own seeds.
        """
        seeds = range(self._config.seeds, 2 * self._config.seeds)
        task = ray.remote(num_cpus=1, max_retries=RETRIES)(run_trial)
        found = ray.get([task.remote(self._trials, setting, seeds) for setting in settings])
        return [tuple(entry["per_seed"]) for entry in found]

    def _listed(self, settings: Sequence[Setting]) -> dict[str, Any]:
        return {
            "trial": tune.grid_search(
                [
                    {"number": number, "setting": self._encode(setting)}
                    for number, setting in enumerate(settings)
                ]
            )
        }

    def _domain(self, name: str, swept: SweptParameter) -> Any:
        if swept.values is not None:
            return tune.choice([label(value) for value in swept.values])
        minimum, maximum = map(float, (swept.minimum or 0, swept.maximum or 0))
        if swept.scale == "whole":
            return tune.randint(int(minimum), int(maximum) + 1)
        return (tune.loguniform if swept.scale == "log" else tune.uniform)(minimum, maximum)

    def _encode(self, setting: Setting) -> Encoded:
        return {
            name: label(value) if label(value) in self._values[name] else float(value)  # type: ignore[arg-type]
            for name, value in setting.items()
        }

    def _fit(self, name: str, count: int, space: dict[str, Any], **search: Any) -> None:
        trainable = tune.with_resources(
            tune.with_parameters(
                tune_trial, trials=self._trials, values=self._values, seeds=self._config.seeds
            ),
            {"cpu": 1},
        )
        folder = self._folder / name
        if tune.Tuner.can_restore(str(folder)):
            tuner = tune.Tuner.restore(str(folder), trainable, restart_errored=True)
        else:
            shutil.rmtree(folder, ignore_errors=True)  # killed before there was anything to keep
            tuner = tune.Tuner(
                trainable,
                param_space=space,
                tune_config=tune.TuneConfig(
                    max_concurrent_trials=self._jobs, reuse_actors=True, **search
                ),
                run_config=tune.RunConfig(
                    name=name,
                    storage_path=str(self._folder),
                    verbose=0,
                    failure_config=tune.FailureConfig(max_failures=RETRIES),
                    callbacks=[
                        Bar(f"{self._config.name}, {name}", count, "objective", self._config.mode)
                    ],
                ),
            )
        self._collect(fit(tuner), count)

    def _collect(self, results: tune.ResultGrid, count: int) -> None:
        self._outcome.interrupted |= len(results) < count
        found = []
        for index in range(len(results)):
            result = results[index]
            if result.config is None:  # interrupted before it began
                self._outcome.interrupted = True
            else:
                found.append((result.config["trial"], result))
        for trial, result in sorted(found, key=lambda entry: entry[0].get("number", 0)):
            setting = decode(trial["setting"], self._values)
            metrics = result.metrics or {}
            if result.error is not None:
                self._outcome.failed.append(FailedTrial(setting, reason_of(result.error)))
            elif "objective" in metrics:
                self._outcome.finished.append(
                    FinishedTrial(
                        setting,
                        metrics["objective"],
                        tuple(metrics["per_seed"]),
                        metrics["episodes"],
                    )
                )
            else:
                self._outcome.interrupted = True
