"""Reads the folders that `quicgym train` and `quicgym evaluate` have written.

A training run's folder has `run.json` (its configuration), `evaluations.jsonl` (a line for each
step, scenario and seed), `controllers.json` (the policies of `evaluation.controllers` on the same
networks) and, once it is done, `evaluation/`. An evaluation's folder has
`evaluation.json` (what was evaluated), `results.parquet` (a row for each policy, scenario and seed)
and `series/`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pandas as pd

from quicgym.agents.evaluation.training_summary import SUMMARY_FILE, Summary
from quicgym.agents.policies.by_name import policy_kind
from quicgym.console import say
from quicgym.envs.scenarios.fields import ScenarioError
from quicgym.envs.scenarios.mixtures import Mixture
from quicgym.envs.scenarios.suites import load_suite
from quicgym.envs.simulation.metrics import EVALUATED, evaluated_names
from quicgym.errors import RunError
from quicgym.output_folders import (
    RUN_FILE,
    file_name,
    read_json,
    read_json_lines,
    read_parquet,
)

RUN_FORMAT = "quicgym-run-1"
EVALUATIONS_FILE = "evaluations.jsonl"
CONTROLLERS_FILE = "controllers.json"
EVALUATION_FILE = "evaluation.json"
RESULTS_FILE = "results.parquet"


@dataclass(frozen=True)
class Run:
    """One policy's results, or those of one that is being trained.

    `results` has a row for each scenario and seed, with the columns "scenario", "seed" and
    EVALUATED; a training run also has "step", in environment steps. `origin` is "training",
    "learned" or "hand-coded". The suite, reward and window (in s) are None before training is done.
    `drawn` names the suite's distributions, whose paths the seeds draw. `series` has the file with
    the time series of an episode, by scenario.
    """

    name: str
    folder: Path
    origin: str
    policy: str
    results: pd.DataFrame
    suite: Any = None
    reward: Any = None
    drawn: frozenset[str] = frozenset()
    settings: Mapping[str, Any] = field(default_factory=dict)
    series: Mapping[str, Path] = field(default_factory=dict)
    summary: Summary | None = None
    window: Sequence[float | None] | None = None

    @property
    def scenarios(self) -> list[str]:
        """The names of the suite's scenarios."""
        return [str(name) for name in self.results["scenario"].unique()]


def series_path(folder: Path, policy: str, scenario: str) -> Path:
    """Returns where an evaluation keeps the time series of a policy's episode."""
    return folder / "series" / f"{file_name(policy)}--{file_name(scenario)}.parquet"


def read_runs(folder: Path) -> list[Run]:
    """Returns the runs of a folder: one for each policy of an evaluation.

    A training run's folder has one of the training, and one for each of the policies that were
    played on its networks.

    RunError where the folder is neither, or a file in it is not what it should be.
    """
    if (folder / RUN_FILE).is_file():
        training = _read_training(folder)
        return [training, *_read_controllers(training)]
    if (folder / EVALUATION_FILE).is_file():
        return _read_evaluation(folder)
    what = f"has neither {RUN_FILE} nor {EVALUATION_FILE}" if folder.is_dir() else "is no folder"
    raise RunError(
        f"{folder}: {what}; give the folder of a `quicgym train` or a `quicgym evaluate --out DIR`"
    )


def _read_training(folder: Path) -> Run:
    path = folder / RUN_FILE
    about = read_json(path, ("format", "kind", "name", "config", "seed"))
    for key, expected in (("format", RUN_FORMAT), ("kind", "training")):
        if about[key] != expected:
            raise RunError(
                f"{path}: {key} = {about[key]!r}: compare reads runs with {expected!r} only"
            )
    if not isinstance(about["config"], dict):
        raise RunError(f"{path}: config = {about['config']!r}: has to be a JSON object")
    name = str(about["name"])
    results = _read_curve(folder / EVALUATIONS_FILE)
    settings = {**about["config"], "seed": about["seed"]}
    evaluation = folder / "evaluation"
    if not (evaluation / EVALUATION_FILE).is_file():
        say(
            f"note: {folder} has no {evaluation.name}/, its training is not finished: its curve "
            "ends where it is now, and there is no episode of it"
        )
        return Run(name, folder, "training", name, results, settings=settings)
    evaluated = _read_evaluation(evaluation)
    if len(evaluated) > 1:
        raise RunError(
            f"{evaluation}: has the policies {', '.join(run.policy for run in evaluated)}: it may "
            "have only the one that was trained; evaluate others into another folder"
        )
    final = evaluated[0]
    if set(final.scenarios) != set(results["scenario"]):
        raise RunError(
            f"{folder / EVALUATIONS_FILE}: its scenarios are not those of "
            f"{evaluation / RESULTS_FILE}: {_difference(results['scenario'], final.scenarios)}; "
            "both have to be of one suite"
        )
    settings = {**final.settings, **settings}
    return Run(
        name,
        folder,
        "training",
        name,
        results,
        final.suite,
        final.reward,
        final.drawn,
        settings,
        final.series,
        Summary.read(folder / SUMMARY_FILE),
        final.window,
    )


def _read_controllers(training: Run) -> list[Run]:
    path = training.folder / CONTROLLERS_FILE
    if not path.is_file():
        return []
    runs = read_json(path, ("runs",))["runs"]
    frame = _checked(path, pd.DataFrame(runs), ("controller", "scenario", "seed"))
    return [
        replace(
            training,
            name=str(controller),
            origin="learned" if policy_kind(str(controller)) == "learned" else "hand-coded",
            policy=str(controller),
            results=rows,
            settings={},
            series={},
            summary=None,
        )
        for controller, rows in frame.groupby("controller", sort=False)
    ]


def _read_curve(path: Path) -> pd.DataFrame:
    records = read_json_lines(path)
    if not records:
        raise RunError(f"{path}: no evaluation is finished yet; compare later")
    frame = _checked(path, pd.DataFrame(records), ("step", "scenario", "seed"))
    if not pd.api.types.is_integer_dtype(frame["step"]) or (frame["step"] < 0).any():
        raise RunError(f"{path}: step has values that are not environment steps (0, 1, ...)")
    wanted = frozenset(zip(frame["scenario"], frame["seed"], strict=True))
    for step, rows in frame.groupby("step"):
        missing = wanted - set(zip(rows["scenario"], rows["seed"], strict=True))
        if missing:
            scenario, seed = min(missing)
            raise RunError(
                f"{path}: step {step} has no line for scenario {scenario!r}, seed {seed}, which "
                "other steps have; the evaluations of a run have to be of one suite"
            )
    return frame


def _read_evaluation(folder: Path) -> list[Run]:
    path = folder / RESULTS_FILE
    about = read_json(folder / EVALUATION_FILE, ("suite", "reward", "policies"))
    learned = [entry["policy"] for entry in about["policies"] if entry.get("kind") == "learned"]
    frame = read_parquet(path)
    if frame.empty:
        raise RunError(f"{path}: has no results; evaluate again")
    _checked(path, frame, ("policy", "scenario", "engine", "seed"))
    engines = sorted(frame["engine"].unique())
    if len(engines) > 1:
        raise RunError(
            f"{path}: engine has the values {', '.join(engines)}: evaluate each into its own folder"
        )
    incomplete = {cell["policy"] for cell in about.get("missing", ())}
    runs = []
    for policy, rows in frame.groupby("policy", sort=False):
        name = str(policy)
        if name in incomplete:
            say(f"note: {folder}: runs of {name} are missing, so it is left out; evaluate again")
            continue
        paths = {scenario: series_path(folder, name, scenario) for scenario in rows["scenario"]}
        series = {scenario: file for scenario, file in paths.items() if file.is_file()}
        if len(series) < len(paths):
            say(f"note: {folder}/series has {len(series)} of {len(paths)} episodes of {name}")
        runs.append(
            Run(
                name,
                folder,
                "learned" if name in learned else "hand-coded",
                name,
                rows,
                about["suite"],
                about["reward"],
                frozenset(about.get("distributions", ())),
                {"engine": engines[0]},
                series,
                window=[about.get("from_s"), about.get("until_s")],
            )
        )
    if not runs:
        raise RunError(f"{path}: runs of every policy are missing; evaluate again")
    return runs


def read_series(path: Path) -> pd.DataFrame:
    """Returns the time series of an episode; RunError where the file is not what it should be."""
    frame = read_parquet(path)
    for column in ("time_s", "reward"):
        if column not in frame:
            raise RunError(f"{path}: has no column {column!r}; evaluate again")
    return frame


def check_comparable(runs: Sequence[Run]) -> None:
    """Raises RunError unless all were evaluated on one suite and window, for one reward."""
    for what in ("suite", "reward", "window"):
        known = [run for run in runs if getattr(run, what) is not None]
        for run in known:
            first, other = getattr(known[0], what), getattr(run, what)
            if first != other:
                remedy = f"evaluate the policies of one of them again, with the other's {what}"
                raise RunError(
                    f"{known[0].folder} has the {what} {_short(first)}, {run.folder} has "
                    f"{_short(other)}; curves of different {what}s do not compare: "
                    f"{_for_mixtures(runs) or remedy}"
                )
    for run in runs:
        if set(run.scenarios) != set(runs[0].scenarios):
            raise RunError(
                f"{run.name} of {run.folder} and {runs[0].name} of {runs[0].folder} were evaluated "
                f"on other scenarios: {_difference(run.scenarios, runs[0].scenarios)}; "
                f"{_for_mixtures(runs) or 'evaluate them on one suite'}"
            )
    drawn = frozenset[str]().union(*(run.drawn for run in runs))
    # Evaluating again is the remedy, so the other runs have to have the paths of a training.
    given = next((run for run in runs if run.origin == "training"), runs[0])
    for run in runs:
        for scenario in sorted(drawn):
            first, other = (_seeds(entry, scenario) for entry in (given, run))
            if first != other:
                again = f"--first-seed {min(first)} --seeds {len(first)}"
                raise RunError(
                    f"{given.folder} has {len(first)} paths of the distribution {scenario}, "
                    f"{run.folder} {len(other)}, not the same ones: each seed draws one; "
                    f"{_for_mixtures(runs) or f'evaluate the policies again with {again}'}"
                )


def _for_mixtures(runs: Sequence[Run]) -> str:
    """Returns the remedy where a training is evaluated on a mixture; empty: none is."""
    for run in runs:
        suite = run.settings.get("evaluation", {}).get("suite")
        if run.origin == "training" and suite is not None and _is_mixture(suite):
            return (
                f"{run.folder} was evaluated on each part of the mixture {suite}, which only a "
                "training does: train with the other policies in evaluation.controllers, or "
                f"evaluate all of them together: quicgym evaluate --policy {run.folder} ..."
            )
    return ""


def _is_mixture(suite: str) -> bool:
    try:
        return any(isinstance(entry, Mixture) for entry in load_suite(suite))
    except ScenarioError:  # its file has gone
        return False


def _seeds(run: Run, scenario: str) -> set[int]:
    return set(run.results.loc[run.results["scenario"] == scenario, "seed"])


def _checked(path: Path, frame: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
    """Returns the frame with the metrics of an evaluation as numbers."""
    for column in (*names, *EVALUATED):
        if column not in frame or (column in names and frame[column].isna().any()):
            raise RunError(f"{path}: has no {column!r}; it was not written by this quicgym")
    for metric in evaluated_names(frame):
        try:
            frame[metric] = frame[metric].astype(float)
        except (TypeError, ValueError) as error:
            raise RunError(f"{path}: {metric} has a value that is no number: {error}") from None
    return frame


def _difference(ours: Sequence[str] | pd.Series, theirs: Sequence[str]) -> str:
    only = [
        f"{name!r} is only in the {place}"
        for names, place in (
            (set(ours) - set(theirs), "first"),
            (set(theirs) - set(ours), "second"),
        )
        for name in sorted(names)
    ]
    return ", ".join(only[:3]) + (f" and {len(only) - 3} more" if len(only) > 3 else "")


def _short(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
