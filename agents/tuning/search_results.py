"""What a search has found: a table, Parquet and JSON files, TensorBoard's hparams, the best policy.

Written into the output folder:

trials.parquet  a row per trial: state, fields, best and last reward, steps, or the error
search.json     configuration, command, version, commit, the best setting and how to train with it
tensorboard/    a run per trial: its evaluations, and its row of the page HParams
policy/         the best trial's best policy, as `quicgym.load_policy` takes it
"""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd
from rich.table import Table

from quicgym import __version__, _core
from quicgym.agents.evaluation.tensorboard import SETTING_TYPES, EvaluationWriter
from quicgym.agents.training.folder import RunFolder
from quicgym.agents.tuning.search_config import Search, SearchedField, Setting
from quicgym.agents.tuning.search_ray import SearchTrial
from quicgym.agents.tuning.search_trial import starts
from quicgym.console import wide_console

RESULTS = ("trials.parquet", "search.json", "tensorboard", "policy")


@dataclass
class Results:
    """The trials of a search, one at least without an error."""

    search: Search
    trials: list[SearchTrial]

    @cached_property
    def ranked(self) -> list[SearchTrial]:
        """The best trial first; those that failed are left out.

        Of trials that share their best policy, the one that found it is ahead of those that went
        on from there.
        """
        done = [trial for trial in self.trials if trial.error is None]
        return sorted(
            done,
            key=lambda trial: (
                -trial.progress.best_reward,
                schedule(trial)[-1]["trial"] != trial.name,
            ),
        )

    @cached_property
    def failed(self) -> list[SearchTrial]:
        """Those that failed."""
        return [trial for trial in self.trials if trial.error is not None]

    @property
    def best_setting(self) -> Setting:
        """What the best policy was trained with, in the end."""
        setting: Setting = schedule(self.ranked[0])[-1]["setting"]
        return setting


def schedule(trial: SearchTrial) -> list[dict[str, Any]]:
    """Returns which settings a trial's best policy was trained with, from which step on.

    With population-based training the first ones may be other trials'.
    """
    first, *others = trial.progress.lineage
    return [first, *(entry for entry in others if entry["step"] < trial.progress.best_step)]


def state(trial: SearchTrial) -> str:
    """Returns what became of a trial."""
    if trial.error is not None:
        return "failed"
    return "finished" if trial.finished else "stopped early"


def trials_frame(results: Results) -> pd.DataFrame:
    """Returns a row per trial, the best first, those that failed last."""
    rows = [
        {
            "trial": trial.name,
            "state": state(trial),
            **trial.setting,
            **trial.progress.metrics(),
            "error": trial.error,
        }
        for trial in (*results.ranked, *results.failed)
    ]
    frame = pd.DataFrame(rows)
    for name, field in results.search.config.hyperparameters.items():
        if not _is_number(field):
            frame[name] = frame[name].map(field.text)
    return frame


def _is_number(field: SearchedField) -> bool:
    """Whether all its values are numbers, so that a column can be of one type."""
    return field.values is None or all(
        isinstance(value, int | float) and not isinstance(value, bool) for value in field.values
    )


def write_results(results: Results, directory: Path, trials: Path, command: str) -> None:
    """Writes all files; those of an earlier run of the same search are replaced.

    Args:
        results: To be written.
        directory: The output folder.
        trials: The folder of the trials' run folders.
        command: The command line.

    Raises:
        OSError: They cannot be written.
    """
    about = {"version": __version__, "commit": _core.commit, "command": command}
    for folder in ("tensorboard", "policy"):
        shutil.rmtree(directory / folder, ignore_errors=True)
    frame = trials_frame(results)
    frame.attrs.update(about)
    frame.to_parquet(directory / "trials.parquet")
    text = json.dumps({**about, **_document(results)}, indent=1)
    (directory / "search.json").write_text(text + "\n", encoding="utf-8")
    _write_hparams(results, directory / "tensorboard", trials)
    best = results.ranked[0].policy
    assert best is not None
    shutil.copytree(best, directory / "policy")


def _document(results: Results) -> dict[str, Any]:
    search, trial = results.search, results.ranked[0]
    best: dict[str, Any] = {
        "trial": trial.name,
        "hyperparameters": results.best_setting,
        "reward": trial.progress.best_reward,
        "step": trial.progress.best_step,
        "train": search.train_command(results.best_setting),
    }
    if search.config.scheduler == "pbt":
        best["schedule"] = [
            {"step": entry["step"], "trial": entry["trial"], "hyperparameters": entry["setting"]}
            for entry in schedule(trial)
        ]
    return {
        "config": search.config.model_dump(mode="json", exclude_unset=True),
        "training": search.training.model_dump(mode="json"),
        "trials": len(results.ranked),
        "failed": [
            {"trial": failed.name, "hyperparameters": failed.setting, "error": failed.error}
            for failed in results.failed
        ],
        "best": best,
    }


def _write_hparams(results: Results, folder: Path, trials: Path) -> None:
    settings = [
        {
            name: value if isinstance(value, SETTING_TYPES) else SearchedField.text(value)
            for name, value in trial.setting.items()
        }
        for trial in results.ranked
    ]
    width = len(str(len(results.ranked)))
    for rank, (row, trial) in enumerate(zip(settings, results.ranked, strict=True), 1):
        writer = EvaluationWriter(folder / f"{rank:0{width}}-trial-{trial.name}")
        writer.hparams(row, settings)
        for step, records in _evaluations(trials / trial.name).items():
            writer.evaluation(step, records)
        writer.close()


def _evaluations(folder: Path) -> dict[int, list[dict[str, Any]]]:
    """Step -> the records of a trial's evaluation; each start goes on where it began."""
    evaluations: dict[int, list[dict[str, Any]]] = {}
    for start in starts(folder):
        records = RunFolder(start).evaluations()
        if not records:
            continue
        begin = records[0]["step"]
        evaluations = {step: entry for step, entry in evaluations.items() if step < begin}
        for record in records:
            evaluations.setdefault(record["step"], []).append(record)
    return evaluations


def print_results(results: Results) -> None:
    """Prints the trials, and how to train with the best hyperparameters."""
    search, console = results.search, wide_console()
    config, training = search.config, search.training
    names = list(config.hyperparameters)
    console.print(
        f"{config.name}: reward ({training.environment.reward}), interquartile mean over "
        f"{training.evaluation.suite}, {len(results.trials)} trials of {config.training} with "
        f"{config.scheduler}\n",
        highlight=False,
    )
    table = Table(box=None, pad_edge=False)
    short = [name.removeprefix("hyperparameters.") for name in names]
    for heading in ("rank", "trial", *short, "best reward", "at step", "steps", "state"):
        table.add_column(heading, justify="left" if heading == "state" else "right")
    for rank, trial in enumerate((*results.ranked, *results.failed), 1):
        progress = trial.progress
        table.add_row(
            "-" if trial.error else str(rank),
            trial.name,
            *(SearchedField.text(trial.setting[name]) for name in names),
            f"{progress.best_reward:.4f}",
            f"{progress.best_step:,}",
            f"{progress.step:,}",
            state(trial),
        )
    console.print(table, "")
    if config.scheduler == "pbt":
        console.print("The best policy was trained with", highlight=False)
        for entry in schedule(results.ranked[0]):
            setting = ", ".join(
                f"{name}={SearchedField.text(value)}" for name, value in entry["setting"].items()
            )
            console.print(
                f"  {setting}  from step {entry['step']:,} on, trial {entry['trial']}",
                highlight=False,
                soft_wrap=True,
            )
        console.print("and a training with the last of them from its beginning is", highlight=False)
    else:
        console.print("To train with the best hyperparameters:", highlight=False)
    console.print(
        f"  {search.train_command(results.best_setting)}",
        highlight=False,
        soft_wrap=True,
        markup=False,
    )
