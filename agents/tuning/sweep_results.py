"""What a sweep has found: a table, Parquet and JSON files, TensorBoard's hparams, pictures.

Written into the output folder:

trials.parquet       a row per trial: parameters, objective, its deviation over the seeds, the mean
                     of each metric, the reward in each scenario (reward@<scenario>), or the error
sensitivity.parquet  what `quicgym.agents.tuning.sensitivity` says of each parameter
sweep.json           configuration, command, version, commit, the best and the published setting
figures/             `quicgym.agents.tuning.sweep_figures`
tensorboard/         a run per trial, with its row of the page HParams
"""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from rich.table import Table
from scipy import stats

from quicgym import __version__, _core
from quicgym.agents.evaluation.rollouts import METRICS
from quicgym.agents.evaluation.tensorboard import EvaluationWriter
from quicgym.agents.tuning.sensitivity import sensitivity
from quicgym.agents.tuning.sweep_config import Setting, SweepConfig, Value, label, policy_text
from quicgym.agents.tuning.sweep_figures import draw_sweep
from quicgym.agents.tuning.sweep_trial import FailedTrial, FinishedTrial
from quicgym.console import wide_console

RESULTS = ("trials.parquet", "sensitivity.parquet", "sweep.json", "figures", "tensorboard")
SHOWN_TRIALS = 10
SHOWN_METRICS = {
    "goodput_mbps": "goodput (Mbps)",
    "loss_percent": "loss (%)",
    "mean_rtt_ms": "mean RTT (ms)",
    "jain": "Jain's index",
}


@dataclass(frozen=True)
class Difference:
    """How much better the best setting is than the published one, on seeds that chose neither.

    The mean over the seeds of the objective's difference with each (positive: the best is better),
    and its 95% confidence interval by Student's t over these pairs; None with one seed.
    """

    mean: float
    low: float | None
    high: float | None
    seeds: tuple[int, ...]


@dataclass
class Results:
    """The trials of a sweep, in its order."""

    config: SweepConfig
    finished: tuple[FinishedTrial, ...]
    failed: tuple[FailedTrial, ...]
    difference: Difference | None = field(default=None, init=False)
    """None: the published trial failed, or nothing was confirmed yet."""

    @cached_property
    def ranked(self) -> list[FinishedTrial]:
        """The best trial first; of equal ones the published setting."""
        sign = -1 if self.config.mode == "max" else 1
        return sorted(
            self.finished,
            key=lambda trial: (sign * trial.objective, trial is not self.published),
        )

    @cached_property
    def published(self) -> FinishedTrial | None:
        """The trial of the published setting; None: it failed."""
        setting = self.config.published_setting()
        return next((trial for trial in self.finished if trial.setting == setting), None)

    def rank(self, trial: FinishedTrial) -> int:
        """Returns 1 and the number of trials that are better."""
        return 1 + sum(self.gain(other.objective, trial.objective) > 0 for other in self.finished)

    def gain(self, one: float, other: float) -> float:
        """Returns by how much one objective is better than another."""
        return one - other if self.config.mode == "max" else other - one

    def confirm(self, run: Callable[[Sequence[Setting]], list[tuple[float, ...]]]) -> None:
        """Compares the best with the published setting.

        Args:
            run: Gives the objectives of settings on as many seeds that the sweep has not used: on
                its own seeds, the best of many is ahead by luck too.
        """
        if self.published is None:
            return
        seeds = tuple(range(self.config.seeds, 2 * self.config.seeds))
        best, published = run([self.ranked[0].setting, self.published.setting])
        gains = [self.gain(one, other) for one, other in zip(best, published, strict=True)]
        mean = float(np.mean(gains))
        if len(gains) == 1:
            self.difference = Difference(mean, None, None, seeds)
            return
        half = float(stats.t.ppf(0.975, len(gains) - 1) * stats.sem(gains))
        self.difference = Difference(mean, mean - half, mean + half, seeds)

    @cached_property
    def searched(self) -> tuple[FinishedTrial, ...]:
        """All but a published setting that the search would not have tried."""
        listed = self.config.search != "optuna"
        if listed and self.config.published_setting() in self.config.listed_settings():
            return self.finished
        return tuple(trial for trial in self.finished if trial is not self.published)


def trials_frame(results: Results) -> pd.DataFrame:
    """Returns a row per trial, the best first, those that failed last."""
    published = results.config.published_setting()
    rows = []
    for trial in results.ranked:
        episodes = pd.DataFrame(trial.episodes)
        rows.append(
            {
                **_columns(trial.setting),
                "published": trial.setting == published,
                "objective": trial.objective,
                "objective_std": trial.deviation,
                **{metric: trial.mean(metric) for metric in METRICS},
                **{
                    f"reward@{scenario}": rewards.mean()
                    for scenario, rewards in episodes.groupby("scenario", sort=False)["reward"]
                },
                "error": None,
            }
        )
    rows += [
        {
            **_columns(failed.setting),
            "published": failed.setting == published,
            "error": failed.reason,
        }
        for failed in results.failed
    ]
    return pd.DataFrame(rows)


def _columns(setting: Setting) -> dict[str, float | str]:
    return {
        name: label(value) if isinstance(value, tuple) else value for name, value in setting.items()
    }


def write_results(results: Results, directory: Path, command: str) -> None:
    """Writes all files; those of an earlier run of the same sweep are replaced.

    Raises:
        OSError: They cannot be written.
    """
    about = {"version": __version__, "commit": _core.commit, "command": command}
    for folder in ("figures", "tensorboard"):
        shutil.rmtree(directory / folder, ignore_errors=True)
    frame = trials_frame(results)
    frame.attrs.update(about)
    frame.to_parquet(directory / "trials.parquet")
    sensitivity(results.config, results.searched).to_parquet(directory / "sensitivity.parquet")
    document = _json(_document(results, about))
    text = json.dumps(document, indent=1, allow_nan=False)
    (directory / "sweep.json").write_text(text + "\n", encoding="utf-8")
    draw_sweep(results, directory / "figures")
    _write_hparams(results, directory / "tensorboard")


def _document(results: Results, about: Mapping[str, Any]) -> dict[str, Any]:
    best, published = results.ranked[0], results.published
    return {
        **about,
        "config": results.config.model_dump(mode="python"),
        "seeds": list(range(results.config.seeds)),
        "trials": len(results.finished),
        "failed": [
            {"parameters": failed.setting, "error": failed.reason} for failed in results.failed
        ],
        "best": _summary(results, best),
        "published": None if published is None else _summary(results, published),
        "difference": None if results.difference is None else results.difference.__dict__,
    }


def _summary(results: Results, trial: FinishedTrial) -> dict[str, Any]:
    setting = {**results.config.fixed, **trial.setting}
    return {
        "parameters": setting,
        "policy": policy_text(results.config.controller, setting),
        "objective": trial.objective,
        "objective_std": trial.deviation,
        "rank": results.rank(trial),
    }


def _json(value: Any) -> Any:
    """JSON has no infinity: "inf", as `--policy` takes it."""
    if isinstance(value, dict):
        return {key: _json(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_json(entry) for entry in value]
    return label(value) if isinstance(value, float) and not math.isfinite(value) else value


def _write_hparams(results: Results, folder: Path) -> None:
    settings = [_columns(trial.setting) for trial in results.ranked]
    for name in results.config.parameters:
        if not all(_is_plain(trial.setting[name]) for trial in results.ranked):
            # A column of TensorBoard's table is of one type, and has no infinity.
            for row, trial in zip(settings, results.ranked, strict=True):
                row[name] = label(trial.setting[name])
    width = len(str(len(results.ranked)))
    for rank, (row, trial) in enumerate(zip(settings, results.ranked, strict=True), 1):
        writer = EvaluationWriter(folder / f"{rank:0{width}}")
        writer.hparams(row, settings)
        writer.evaluation(0, trial.episodes)
        writer.scalars(0, {"sweep/objective": trial.objective})
        writer.close()


def _is_plain(value: Value) -> bool:
    return not isinstance(value, tuple) and math.isfinite(value)


def print_results(results: Results) -> None:
    """Prints the best trials with the published one, the comparison, and the sensitivity."""
    config, console = results.config, wide_console()
    scale = f"{config.objective}" + (f" ({config.reward})" if config.objective == "reward" else "")
    how = "interquartile mean" if config.suite else "mean"
    where = config.suite or f"{len(config.scenarios)} scenarios"
    console.print(
        f"{config.name}: {scale}, {how} over {where}, seeds 0 to {config.seeds - 1}, "
        f"{len(results.finished)} trials of {config.controller}\n",
        highlight=False,
    )
    console.print(_trials_table(results), "")
    console.print(_comparison(results), "", highlight=False)
    console.print(_sensitivity_table(results))


def _trials_table(results: Results) -> Table:
    table = Table(box=None, pad_edge=False)
    names = list(results.config.parameters)
    for heading in ("rank", *names, "objective", *SHOWN_METRICS.values(), ""):
        table.add_column(heading, justify="left" if not heading else "right")
    for place, trial in enumerate(results.ranked):
        published = trial is results.published
        if place >= SHOWN_TRIALS and not published:
            continue
        deviation = "" if trial.deviation is None else f"±{trial.deviation:.4f}"
        table.add_row(
            str(results.rank(trial)),
            *(label(trial.setting[name]) for name in names),
            f"{trial.objective:.4f}{deviation}",
            *(f"{trial.mean(metric):.4g}" for metric in SHOWN_METRICS),
            "published" if published else "",
        )
    return table


def _comparison(results: Results) -> str:
    best, published, difference = results.ranked[0], results.published, results.difference
    if published is None or difference is None:
        return "The published setting failed, so there is nothing to compare the best with."
    text = f"best {policy_text(results.config.controller, best.setting)}"
    if best is published:
        return f"{text}: the published setting, which no other is better than"
    gain = f"{difference.mean:+.4f}"
    if difference.low is not None and difference.high is not None:
        gain += f" (95% interval {difference.low:+.4f} to {difference.high:+.4f})"
    order = "better than" if difference.mean > 0 else "behind"
    return (
        f"{text}\n{order} the published setting, rank {results.rank(published)} of "
        f"{len(results.finished)}, by {gain} on the seeds {difference.seeds[0]} to "
        f"{difference.seeds[-1]}, which chose neither"
    )


def _sensitivity_table(results: Results) -> Table:
    table = Table(box=None, pad_edge=False)
    headings = ("parameter", "range of marginal mean", "share of variance", "rank correlation")
    for heading in headings:
        table.add_column(heading, justify="left" if heading == "parameter" else "right")
    for row in sensitivity(results.config, results.searched).itertuples():
        table.add_row(
            str(row.parameter),
            f"{row.marginal_range:.4f}",
            _shown(row.variance_share, ".0%"),
            _shown(row.rank_correlation, "+.2f"),
        )
    return table


def _shown(number: Any, form: str) -> str:
    return "-" if pd.isna(number) else format(number, form)
