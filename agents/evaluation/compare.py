"""Baselines and agents in one TensorBoard: the curves of training, and level lines next to them.

Into the log directory goes a folder for each run, with its event file, and comparison.json, which
says where the runs come from. It is written next to its place and then renamed, so that it is there
as a whole or not at all.
"""

from __future__ import annotations

import json
import re
import shlex
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pandas as pd
from rich.table import Table

from quicgym import __version__, _core
from quicgym.agents.evaluation.run_folders import (
    Run,
    RunError,
    check_comparable,
    read_runs,
    read_series,
)
from quicgym.agents.evaluation.tensorboard import (
    EvaluationWriter,
    evaluation_values,
    flatten,
    run_folder,
)
from quicgym.agents.evaluation.training_summary import difference_in_words
from quicgym.console import progress_bar, say, wide_console
from quicgym.input_files import read_input_json

_WITHOUT_EFFECT = ("environment.threads", "device", "evaluation.comparison_paths")
"""Settings that do not make another policy."""
START_PAGE = "http://localhost:6006/?smoothing=0&tagFilter=%5Eevaluation%2F#timeseries"
"""Other metrics come back when the filter of tags is cleared."""
COMPARISON_FORMAT = "quicgym-comparison-1"
COMPARISON_FILE = "comparison.json"


def run_compare(
    folders: Sequence[Path], directory: Path, *, force: bool = False, command: str = ""
) -> int:
    """Reads, writes and prints everything; returns the exit status.

    `folders` are outputs of `quicgym train`, `evaluate` or `baselines`, and `directory` is
    TensorBoard's log directory. `force` moves what is there aside, whatever it is.
    """
    try:
        # One folder twice is one; messages have it as the user wrote it.
        given = {folder.resolve(): folder for folder in reversed(folders)}
        sources = sorted(given)
        aside = _has_to_move(directory, sources, force=force)
        found = [run for folder in sources for run in read_runs(given[folder])]
        runs = _named(_without_repeats(found))
        check_comparable(list(runs.values()))
        try:
            _write_and_rename(directory, runs, command, aside=aside)
        except OSError as error:
            raise RunError(
                f"{directory}: cannot be written ({error.strerror}), nothing has changed "
                "there; make room, or give another folder with --logdir"
            ) from None
    except RunError as error:
        say(f"quicgym: {error}")
        return 2
    except KeyboardInterrupt:
        say(f"interrupted: nothing was written to {directory}")
        return 130
    _print(runs)
    print(
        f"\nto look at it:\n  tensorboard --logdir {shlex.quote(str(directory))}\n"
        f"and open, without smoothing and with the metrics of the suite alone:\n  {START_PAGE}"
    )
    return 0


def write_logs(folder: Path, directory: Path, *, command: str = "") -> None:
    """Writes the policies of an evaluation's folder for TensorBoard, in place of earlier logs.

    The tags are those of `quicgym compare`, but without the episodes over time, which take a
    hundred times as long. MissingExtraError without TensorBoard.
    """
    runs = [replace(run, series={}) for run in read_runs(folder)]
    _write_and_rename(directory, _named(runs), command, aside=False)


def _without_repeats(runs: Sequence[Run]) -> list[Run]:
    """Returns the runs, without a training's line of a controller that another run has, too."""
    trainings = {run.folder for run in runs if run.origin == "training"}
    kept = [run for run in runs if run.origin == "training" or run.folder not in trainings]
    for run in runs:
        is_line = run.origin != "training" and run.folder in trainings
        if is_line and not any(_is_same_line(run, other) for other in kept):
            kept.append(run)
    return kept


def _is_same_line(run: Run, other: Run) -> bool:
    """Whether both are of one controller, with the same rewards on the same networks."""
    ours, theirs = (
        each.results.set_index(["scenario", "seed"])["reward"].sort_index() for each in (run, other)
    )
    return (run.origin, run.policy) == (other.origin, other.policy) and ours.equals(theirs)


def _named(runs: Sequence[Run]) -> dict[str, Run]:
    """Returns the runs by names that are distinct and can be folders."""
    named: dict[str, Run] = {}
    for run, label in zip(runs, _labels(runs), strict=True):
        name = stem = run_folder(label)[:100]
        number = 1
        while name in named:
            number += 1
            name = f"{stem}-{number}"
        named[name] = run
    return named


def _labels(runs: Sequence[Run]) -> list[str]:
    """Returns each run's name, and with it the settings in which runs of that name differ."""
    flat = [flatten(run.settings) for run in runs]
    labels = []
    for run, settings in zip(runs, flat, strict=True):
        alike = [other for each, other in zip(runs, flat, strict=True) if each.name == run.name]
        differing = [
            key
            for key in settings
            if key not in _WITHOUT_EFFECT
            and len({repr(other.get(key, settings[key])) for other in alike}) > 1
        ]
        lasts = Counter(key.rpartition(".")[2] for key in settings)
        parts = []
        for key in differing:  # two fields are called gamma: these have their whole names
            last = key.rpartition(".")[2]
            parts.append(f"{last if lasts[last] == 1 else key}={_in_label(settings[key])}")
        labels.append(",".join([run.name, *parts]))
    return labels


def _in_label(value: Any) -> str:
    """Returns a setting as a part of a label: [64, 64] as 64x64, an empty list as none."""
    return re.sub(r"[\[\]\"{}]", "", str(value)).replace(", ", "x").replace(": ", "=") or "none"


def _has_to_move(directory: Path, folders: Sequence[Path], *, force: bool) -> bool:
    """Whether --force has to move aside what is in the log directory.

    A comparison of the same runs is replaced. RunError where content would be lost, or shown as
    runs of this comparison.
    """
    target = directory.resolve()
    for place, what in [*((folder, "run") for folder in folders), (Path.cwd(), "current folder")]:
        if place.is_relative_to(target):
            raise RunError(f"--logdir {directory} holds the {what} {place}; give another folder")
    reason = _what_is_there(target, folders)
    if reason and not force:
        raise RunError(
            f"--logdir {directory} {reason}: give another folder, or --force to move what is there "
            "aside"
        )
    return bool(reason)


def _what_is_there(target: Path, folders: Sequence[Path]) -> str:
    """Returns why the log directory cannot be replaced; an empty text if it can."""
    if not target.exists():
        return ""
    if not target.is_dir():
        return "is a file"
    present = sorted(path.relative_to(target) for path in target.rglob("*"))
    earlier = _read_comparison(target / COMPARISON_FILE)
    foreign = [path for path in present if not _is_ours(path, earlier)]
    if foreign:
        return (
            f"holds {foreign[0]}, which `quicgym compare` did not write, and TensorBoard shows all "
            "that is in it"
        )
    if present and set(earlier.values()) != set(map(str, folders)):
        return f"holds another comparison, of {', '.join(earlier)}"
    return ""


def _read_comparison(path: Path) -> dict[str, str]:
    """Returns the runs of an earlier comparison and where they come from; nothing without one."""
    try:
        data = read_input_json(path)
        if data["format"] == COMPARISON_FORMAT:
            return {run["name"]: run["folder"] for run in data["runs"]}
    except (OSError, ValueError, KeyError, TypeError):
        pass
    return {}


def _is_ours(path: Path, earlier: Mapping[str, str]) -> bool:
    if len(path.parts) == 1:
        return path.name in earlier or (path.name == COMPARISON_FILE and bool(earlier))
    return path.parts[0] in earlier and path.name.startswith("events.out.tfevents.")


def _write_and_rename(
    directory: Path, runs: Mapping[str, Run], command: str, *, aside: bool
) -> None:
    target = directory.resolve()
    target.parent.mkdir(parents=True, exist_ok=True)
    # Next to its place, because a file can be renamed only within its file system.
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}-") as temporary:
        new = Path(temporary) / "new"
        new.mkdir()
        _write(new, runs, command)
        if not target.exists():
            new.rename(target)
            return
        # Not below the log directory: TensorBoard would show it.
        kept = f"{target.name}-previous-{datetime.now():%Y%m%d-%H%M%S-%f}"
        old = target.with_name(kept) if aside else Path(temporary) / "old"
        target.rename(old)
        try:
            new.rename(target)
        except BaseException:
            old.rename(target)
            raise
        if aside:
            say(f"what was in {directory} is now in {directory.with_name(kept)}")


def _write(directory: Path, runs: Mapping[str, Run], command: str) -> None:
    trainings = [run for run in runs.values() if run.origin == "training"]
    steps = sorted({0, *(int(step) for run in trainings for step in run.results["step"])})
    settings = _settings(runs)
    progress = progress_bar()
    with progress:
        total = sum(1 + len(run.series) for run in runs.values())
        task = progress.add_task("curves and episodes", total=total)
        for name, run in runs.items():
            writer = EvaluationWriter(directory / name)
            try:
                writer.layout(run.scenarios, run.series)
                writer.hparams(settings[name], list(settings.values()))
                for step, rows in _curve(run, steps):
                    writer.evaluation(step, rows)
                progress.advance(task)
                for number, (scenario, path) in enumerate(run.series.items()):
                    series = read_series(path)
                    writer.episode(scenario, series)
                    if number == 0:
                        writer.picture(scenario, series)
                    progress.advance(task)
            finally:
                writer.close()
    about = {
        "format": COMPARISON_FORMAT,
        "version": __version__,
        "commit": _core.commit,
        "command": command,
        "runs": [
            {
                "name": name,
                "kind": run.origin,
                "policy": run.policy,
                "folder": str(run.folder.resolve()),
            }
            for name, run in runs.items()
        ],
    }
    text = json.dumps(about, indent=1) + "\n"
    (directory / COMPARISON_FILE).write_text(text, encoding="utf-8")


def _curve(run: Run, steps: Sequence[int]) -> list[tuple[int, pd.DataFrame]]:
    """Returns the evaluations of a run by step; one that did not train has a level line.

    The line has all the steps, not only its two ends: TensorBoard scales charts to where most
    points are, and would leave it outside.
    """
    if run.origin == "training":
        return [(int(str(step)), rows) for step, rows in run.results.groupby("step")]
    return [(step, run.results) for step in steps]


def _settings(runs: Mapping[str, Run]) -> dict[str, dict[str, Any]]:
    """Returns each run's settings: policy, origin, and what differs between those that have it."""
    flat = {name: flatten(run.settings) for name, run in runs.items()}
    values: dict[str, set[str]] = {}
    for settings in flat.values():
        for key, value in settings.items():
            values.setdefault(key, set()).add(repr(value))
    return {
        name: {"policy": run.policy, "kind": run.origin}
        | {key: value for key, value in flat[name].items() if len(values[key]) > 1}
        for name, run in runs.items()
    }


def _print(runs: Mapping[str, Run]) -> None:
    table = Table(box=None, pad_edge=False)
    gains = {name: run.summary["best"] for name, run in runs.items() if run.summary is not None}
    for heading in ("run", "kind", "best reward", "at step", "last reward"):
        table.add_column(heading, justify="left" if heading in ("run", "kind") else "right")
    if gains:
        table.add_column("best − start on new paths", justify="right")
    table.add_column("from")
    for name, run in runs.items():
        curve = {
            step: evaluation_values(rows)["evaluation/reward"] for step, rows in _curve(run, [0])
        }
        # The policy that a training has chosen, which need not be the one of the highest mean. A
        # training that was resumed from an older checkpoint has the summary of its earlier end.
        is_chosen = name in gains and gains[name].step in curve
        best = gains[name].step if is_chosen else max(curve, key=curve.__getitem__)
        row = [name, run.origin, f"{curve[best]:.4f}", "", ""]
        if run.origin == "training":
            row[3:] = [f"{best:,}", f"{curve[max(curve)]:.4f}"]
        if gains:
            row.append(difference_in_words(gains[name]) if name in gains else "")
        table.add_row(*row, str(run.folder))
    console = wide_console()
    console.print(table, highlight=False)
    for name, gain in gains.items():
        if not gain.improved:  # names of runs that differ late in them look alike
            console.print(
                f"{runs[name].folder}: no gain is shown, the interval of best − start is not above "
                "0",
                highlight=False,
                markup=False,
            )
