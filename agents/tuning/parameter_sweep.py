"""Sweeps of a controller's parameters.

Each trial is one setting of the swept parameters, over all scenarios and seeds. The published
setting is always one of them. Beside the files of every sweep there are:

trials.parquet       a row per trial: parameters, objective, its deviation over the seeds, the mean
                     of each metric, the reward in each scenario (reward@<scenario>), or the error
sensitivity.parquet  what `quicgym.agents.tuning.sensitivity` says of each parameter
figures/             `quicgym.agents.tuning.parameter_figures`
"""

from __future__ import annotations

import math
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd
from rich.table import Table

from quicgym.agents.evaluation.statistics import Estimate, mean_interval
from quicgym.agents.tuning.parameter_config import ParameterSweep, Value, label, policy_text
from quicgym.agents.tuning.parameter_figures import draw_sweep
from quicgym.agents.tuning.parameter_trial import ParameterTrial, measure, read_trial, run_trial
from quicgym.agents.tuning.sensitivity import sensitivity
from quicgym.agents.tuning.space import Setting, trial_name
from quicgym.agents.tuning.study import RAY_FOLDER, TRIALS_FOLDER, Curve, Study, text_table
from quicgym.agents.tuning.trials import RETRIES, Plan, ray, run_trials
from quicgym.console import count_of, print_whole, wide_console
from quicgym.controllers import without_folder
from quicgym.envs.simulation.controller_choice import find_controller
from quicgym.envs.simulation.simulation import check_engine
from quicgym.output_folders import Identity, write_atomically

SENSITIVITY_FILE, FIGURES_FOLDER = "sensitivity.parquet", "figures"
SHOWN_TRIALS = 10
SHOWN_METRICS = {
    "goodput_mbps": "goodput (Mbps)",
    "loss_percent": "loss (%)",
    "mean_rtt_ms": "mean RTT (ms)",
    "jain": "Jain's index",
}


class ParameterStudy(Study[ParameterTrial]):
    """A sweep of parameters.

    Attributes:
        difference: By how much the best setting is better than the published one, on seeds that
            the sweep did not use; None where the published one failed.
    """

    files = (SENSITIVITY_FILE, FIGURES_FOLDER)
    summary = (
        "(trials.parquet, sensitivity.parquet, sweep.json), pictures (figures) and hparams "
        "(tensorboard)"
    )

    def __init__(self, config: ParameterSweep, figures: str = "png") -> None:
        """Does not run anything yet."""
        super().__init__(config.name)
        self.config = config
        self._figures = figures
        self.difference: Estimate | None = None

    def check(self, jobs: int | None, address: str | None) -> Identity:
        """See `Study.check`."""
        check_engine(self.config.engine)
        asked = self.config.model_dump()
        if code := find_controller(self.config.controller).fingerprint:
            asked["code"] = code
        return self.identity(asked, self.config.load_scenarios())

    def run(self, directory: Path, jobs: int | None, command: str) -> None:
        """Runs the listed settings and the published one, or the published one and Optuna's."""
        config, folder = self.config, directory / TRIALS_FOLDER
        settings = config.listed_settings() if config.search != "optuna" else []
        if (published := config.published_setting()) not in settings:
            settings.append(published)
        kept = _read(folder, range(len(settings)))
        remaining = {
            number: setting for number, setting in enumerate(settings) if number not in kept
        }
        plan = Plan(self.name, "objective", config.mode, remaining)
        failed = self._run(plan, directory, jobs)
        numbers = range(len(settings))
        if config.search == "optuna":
            numbers = range(len(settings) + config.trials)
            chosen = numbers[len(settings) :]
            before = {number: trial.setting for number, trial in _read(folder, chosen).items()}
            plan = replace(
                plan, settings=before, numbers=chosen, space=config.parameters, seed=config.seed
            )
            failed |= self._run(plan, directory, jobs)
        self.trials = [
            *_read(folder, numbers).values(),
            *(ParameterTrial(setting, error=error) for setting, error in failed.values()),
        ]
        if self.ranked:
            self.confirm()

    def _run(self, plan: Plan, directory: Path, jobs: int | None) -> dict[str, tuple[Setting, str]]:
        return run_trials(
            run_trial,
            plan,
            directory / RAY_FOLDER,
            jobs,
            given={
                "config": self.config,
                "scenarios": self.config.load_scenarios(),
                "trials": directory / TRIALS_FOLDER,
            },
        )

    def confirm(self) -> None:
        """Compares the best with the published setting, on as many new seeds as the sweep used.

        On the sweep's own seeds, the best of many is ahead by luck too.
        """
        if self.published is None:
            return
        settings = [self.ranked[0].setting, self.published.setting]
        best, published = self.measure(settings, self.config.new_seeds)
        gains = [
            self.gain(one, other)
            for one, other in zip(best.per_seed, published.per_seed, strict=True)
        ]
        self.difference = mean_interval(gains)

    def measure(self, settings: Sequence[Setting], seeds: Sequence[int]) -> list[ParameterTrial]:
        """Runs settings as tasks of Ray, beside Ray Tune."""
        task = ray.remote(num_cpus=1, max_retries=RETRIES)(measure)
        scenarios = self.config.load_scenarios()
        trials: list[ParameterTrial] = ray.get(
            [task.remote(self.config, scenarios, setting, seeds) for setting in settings]
        )
        return trials

    def failure(self, trial: ParameterTrial) -> str:
        """See `Study.failure`."""
        policy = policy_text(self.config.controller, trial.setting)
        return f"{without_folder(policy)}: {trial.error}"

    @cached_property
    def finished(self) -> list[ParameterTrial]:
        """The trials that did not fail."""
        return [trial for trial in self.trials if trial.error is None]

    @cached_property
    def ranked(self) -> list[ParameterTrial]:
        """The best trial first; of equal ones the published setting."""
        sign = -1 if self.config.mode == "max" else 1
        return sorted(
            self.finished, key=lambda trial: (sign * trial.objective, trial is not self.published)
        )

    @cached_property
    def published(self) -> ParameterTrial | None:
        """The trial of the published setting; None: it failed."""
        setting = self.config.published_setting()
        return next((trial for trial in self.finished if trial.setting == setting), None)

    @cached_property
    def searched(self) -> list[ParameterTrial]:
        """All but a published setting that the search would not have tried."""
        listed = self.config.search != "optuna"
        if listed and self.config.published_setting() in self.config.listed_settings():
            return self.finished
        return [trial for trial in self.finished if trial is not self.published]

    def rank(self, trial: ParameterTrial) -> int:
        """Returns 1 and the number of trials that are better."""
        return 1 + sum(self.gain(other.objective, trial.objective) > 0 for other in self.finished)

    def gain(self, one: float, other: float) -> float:
        """Returns by how much one objective is better than another."""
        return one - other if self.config.mode == "max" else other - one

    def write(self, directory: Path) -> None:
        """See `Study.write`."""
        frame = sensitivity(self.config, self.searched)
        write_atomically({directory / SENSITIVITY_FILE: frame.to_parquet})
        shutil.rmtree(directory / FIGURES_FOLDER, ignore_errors=True)
        draw_sweep(self, directory / FIGURES_FOLDER, self._figures)

    def frame(self) -> pd.DataFrame:
        """See `Study.frame`."""
        published = self.config.published_setting()
        rows = []
        for trial in (*self.ranked, *self.failed):
            row = {**_columns(trial.setting), "published": trial.setting == published}
            if trial.error is None:
                row |= {"objective": trial.objective, "objective_std": trial.deviation}
                row |= {name: trial.mean(name) for name in trial.metrics}
                of_scenarios = pd.DataFrame(trial.episodes).groupby("scenario", sort=False)
                for scenario, rewards in of_scenarios["reward"]:
                    row[f"reward@{scenario}"] = rewards.mean()
            rows.append({**row, "error": trial.error})
        return pd.DataFrame(rows)

    def document(self) -> dict[str, Any]:
        """See `Study.document`."""
        published, difference = self.published, self.difference
        return {
            "config": self.config.model_dump(mode="python"),
            "seeds": list(self.config.seed_range),
            "failed": [
                {"parameters": failed.setting, "error": failed.error} for failed in self.failed
            ],
            "best": self._summary(self.ranked[0]),
            "published": None if published is None else self._summary(published),
            "difference": None
            if difference is None
            else {
                "mean": difference.value,
                "low": difference.low,
                "high": difference.high,
                "seeds": list(self.config.new_seeds),
            },
        }

    def _summary(self, trial: ParameterTrial) -> dict[str, Any]:
        setting = {**self.config.fixed, **trial.setting}
        return {
            "parameters": setting,
            "policy": policy_text(self.config.controller, setting),
            "objective": trial.objective,
            "objective_std": trial.deviation,
            "rank": self.rank(trial),
        }

    def curves(self, directory: Path) -> list[Curve]:
        """See `Study.curves`."""
        # A column of TensorBoard's table is of one type, and has no infinity.
        plain = {
            name: all(_is_plain(trial.setting[name]) for trial in self.ranked)
            for name in self.config.parameters
        }
        return [
            Curve(
                "",
                {
                    name: value if plain[name] else label(value)
                    for name, value in trial.setting.items()
                },
                {0: trial.episodes},
                {"sweep/objective": trial.objective},
            )
            for trial in self.ranked
        ]

    def print(self) -> None:
        """Prints the best trials with the published one, the comparison, and the sensitivity."""
        config, console = self.config, wide_console()
        scale = config.objective + (f" ({config.reward})" if config.objective == "reward" else "")
        how = "interquartile mean" if config.suite else "mean"
        where = config.suite or count_of(len(config.scenarios), "scenario")
        first, last = config.seed_range[0], config.seed_range[-1]
        console.print(
            f"{config.name}: {scale}, {how} over {where}, seeds {first:,} to {last:,}, "
            f"{len(self.finished)} trials of {without_folder(config.controller)}\n",
            highlight=False,
        )
        print_whole(self._trials_table())
        console.print()
        console.print(self._comparison(), "", highlight=False)
        console.print(self._sensitivity_table())

    def _trials_table(self) -> Table:
        names = list(self.config.parameters)
        rows = []
        for place, trial in enumerate(self.ranked):
            if place >= SHOWN_TRIALS and trial is not self.published:
                continue
            deviation = "" if trial.deviation is None else f"±{trial.deviation:.4f}"
            rows.append(
                (
                    str(self.rank(trial)),
                    *(label(trial.setting[name]) for name in names),
                    f"{trial.objective:.4f}{deviation}",
                    *(f"{trial.mean(metric):.4g}" for metric in SHOWN_METRICS),
                    "published" if trial is self.published else "",
                )
            )
        headings = ("rank", *names, "objective", *SHOWN_METRICS.values(), "")
        return text_table(headings, rows, left=("",))

    def _comparison(self) -> str:
        best, published, difference = self.ranked[0], self.published, self.difference
        if published is None or difference is None:
            return "The published setting failed, so there is nothing to compare the best with."
        text = f"best {without_folder(policy_text(self.config.controller, best.setting))}"
        if best is published:
            return f"{text}: the published setting, which no other is better than"
        rank = f"rank {self.rank(published)} of {len(self.finished)}"
        first, *others = self.config.new_seeds
        where = f"on the seeds {first} to {others[-1]}" if others else f"on seed {first}"
        if difference.low is None or difference.high is None:
            return (
                f"{text}\ndiffers from the published setting, {rank}, by {difference.value:+.4f} "
                f"{where}; one seed has no interval, so it is open which is better"
            )
        if difference.low > 0:
            order = "better than"
        else:
            order = "behind" if difference.high < 0 else "not shown to be better than"
        return (
            f"{text}\n{order} the published setting, {rank}: {difference.value:+.4f} (95% interval "
            f"{difference.low:+.4f} to {difference.high:+.4f}) {where}, which were not used for "
            "the selection"
        )

    def _sensitivity_table(self) -> Table:
        rows = [
            (
                str(row.parameter),
                f"{row.marginal_range:.4f}",
                _shown(row.variance_share, ".0%"),
                _shown(row.rank_correlation, "+.2f"),
            )
            for row in sensitivity(self.config, self.searched).itertuples()
        ]
        headings = ("parameter", "range of marginal mean", "share of variance", "rank correlation")
        return text_table(headings, rows, left=("parameter",))


def _read(folder: Path, numbers: Iterable[int]) -> dict[int, ParameterTrial]:
    """Returns the trials that have finished, by their numbers."""
    return {
        number: trial
        for number in numbers
        if (trial := read_trial(folder / f"{trial_name(number)}.json"))
    }


def _columns(setting: Setting) -> dict[str, Any]:
    return {
        name: label(value) if isinstance(value, tuple) else value for name, value in setting.items()
    }


def _is_plain(value: Value) -> bool:
    return not isinstance(value, tuple) and math.isfinite(value)


def _shown(number: Any, form: str) -> str:
    return "-" if pd.isna(number) else format(number, form)
