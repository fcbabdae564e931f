"""Pictures of a sweep: a heat map per pair of parameters, or the objective over the only one.

A grid's heat map has a cell per pair of values, the mean over the other parameters; of random and
optuna each trial is a dot. A frame is the published setting, a star the best one.
"""

from __future__ import annotations

import math
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from quicgym.agents.tuning.sweep_config import SweptParameter, Value, label
from quicgym.agents.tuning.sweep_trial import SweepTrial
from quicgym.envs.simulation.controller_choice import find_controller

if TYPE_CHECKING:
    from quicgym.agents.tuning.sweep import SweepStudy

MOST_WRITTEN_CELLS = 150
STYLE: dict[Any, Any] = {
    "figure.dpi": 150,
    "savefig.dpi": 150,
    "figure.constrained_layout.use": True,
    "font.size": 9,
}
COLOURS = "viridis"


def draw_sweep(study: SweepStudy, folder: Path) -> list[Path]:
    """Draws PNG files in the folder; returns them."""
    folder.mkdir(parents=True, exist_ok=True)
    names = list(study.config.parameters)
    with matplotlib.rc_context(STYLE):
        if len(names) == 1:
            return [_single(study, names[0], folder / f"{names[0]}.png")]
        return [_pair(study, (x, y), folder / f"{x}-{y}.png") for x, y in combinations(names, 2)]


def _pair(study: SweepStudy, names: tuple[str, str], file: Path) -> Path:
    exact = study.config.search == "grid"
    figure = Figure(figsize=(7.5, 5.2))
    axes = figure.subplots()
    drawn = (_cells if exact else _dots)(axes, study, *names)
    figure.colorbar(drawn, ax=axes, label=_objective_label(study))
    axes.set_xlabel(_parameter_label(study, names[0]))
    axes.set_ylabel(_parameter_label(study, names[1]))
    others = [name for name in study.config.parameters if name not in names]
    text = f", mean over {', '.join(others)}" if exact and others else ""
    axes.set_title(f"{study.config.name}: {study.config.controller}{text}", loc="left")
    figure.savefig(file)
    return file


def _cells(axes: Axes, study: SweepStudy, x: str, y: str) -> Any:
    columns, rows = (study.config.parameters[name].grid() for name in (x, y))
    found: dict[tuple[int, int], list[float]] = {}
    for trial in study.searched:
        place = rows.index(trial.setting[y]), columns.index(trial.setting[x])
        found.setdefault(place, []).append(trial.objective)
    means = np.full((len(rows), len(columns)), math.nan)  # a cell whose trials failed stays empty
    for place, objectives in found.items():
        means[place] = np.mean(objectives)
    image = axes.imshow(means, origin="lower", aspect="auto", cmap=_colours(study))
    axes.set_xticks(range(len(columns)), map(label, columns))
    axes.set_yticks(range(len(rows)), map(label, rows))
    if any(isinstance(value, tuple) for value in columns):
        axes.tick_params(axis="x", rotation=30)
    for trial, mark in _marked(study):
        if trial.setting[x] in columns and trial.setting[y] in rows:
            place_x, place_y = columns.index(trial.setting[x]), rows.index(trial.setting[y])
            if mark == "published":
                corner = (place_x - 0.46, place_y - 0.46)
                axes.add_patch(
                    Rectangle(corner, 0.92, 0.92, fill=False, edgecolor="red", linewidth=2.5)
                )
            else:
                axes.plot(place_x, place_y + 0.27, marker="*", markersize=10, color="red")
    if means.size <= MOST_WRITTEN_CELLS:
        is_bright = image.to_rgba(means)[..., :3].mean(axis=-1) > 0.5
        for (row, column), mean in np.ndenumerate(means):
            if not math.isnan(mean):
                colour = "black" if is_bright[row, column] else "white"
                centred: dict[str, Any] = {"ha": "center", "va": "center"}
                axes.text(column, row - 0.08, f"{mean:.3f}", fontsize=7, color=colour, **centred)
    return image


def _colours(study: SweepStudy) -> str:
    """The better, the brighter."""
    return COLOURS if study.config.mode == "max" else f"{COLOURS}_r"


def _dots(axes: Axes, study: SweepStudy, x: str, y: str) -> Any:
    trials = sorted(study.searched, key=lambda trial: study.gain(trial.objective, 0.0))
    objectives = np.array([trial.objective for trial in trials])
    # A few settings that fail badly would leave one colour for all the others.
    low, high = np.percentile(objectives, [10, 100] if study.config.mode == "max" else [0, 90])
    places = {name: _axis(axes, study, name, along) for name, along in ((x, "x"), (y, "y"))}
    dots = axes.scatter(
        [places[x](trial.setting[x]) for trial in trials],
        [places[y](trial.setting[y]) for trial in trials],
        c=objectives,
        vmin=low,
        vmax=high,
        cmap=_colours(study),
        s=32,
        edgecolors="none",
    )
    for trial, mark in _marked(study):
        _mark(axes, places[x](trial.setting[x]), places[y](trial.setting[y]), mark)
    axes.grid(color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.figure.legend(loc="outside lower center", ncols=2, frameon=False)
    return dots


def _axis(axes: Axes, study: SweepStudy, name: str, along: str) -> Any:
    """Prepares an axis; returns what gives a value's place on it."""
    swept = study.config.parameters[name]
    axis = axes.xaxis if along == "x" else axes.yaxis
    if swept.values is not None:
        options = [*swept.values]
        published = study.config.published_setting()[name]
        if published not in options:
            options.append(published)
        axis.set_ticks(range(len(options)), list(map(label, options)))
        if along == "x":
            axes.tick_params(axis="x", rotation=30)
        return options.index
    if swept.scale == "log":
        (axes.set_xscale if along == "x" else axes.set_yscale)("log")
    return lambda value: _inside(swept, value)


def _inside(swept: SweptParameter, value: Value) -> float:
    """A published value outside the range is drawn at its edge."""
    assert swept.minimum is not None and swept.maximum is not None and isinstance(value, float)
    return min(swept.maximum, max(swept.minimum, value))


def _single(study: SweepStudy, name: str, file: Path) -> Path:
    order = study.config.parameters[name].values
    known = [*(order or ()), study.config.published_setting()[name]]
    trials = sorted(
        study.finished,
        key=lambda trial: known.index(trial.setting[name]) if order else trial.setting[name],
    )
    of_lists = any(isinstance(trial.setting[name], tuple) for trial in trials)
    height = 1.2 + 0.3 * len(trials) if of_lists else 4.0
    figure = Figure(figsize=(7.5, max(3.0, height)))
    axes = figure.subplots()
    objectives = [trial.objective for trial in trials]
    deviations = [trial.deviation or 0.0 for trial in trials]
    places = range(len(trials))
    texts = [label(trial.setting[name]) for trial in trials]
    if of_lists:
        axes.errorbar(objectives, places, xerr=deviations, fmt="o", capsize=3)
        axes.set_yticks(places, texts)
        axes.invert_yaxis()
        axes.set_xlabel(_objective_label(study))
    else:
        axes.errorbar(places, objectives, yerr=deviations, fmt="o-", capsize=3)
        axes.set_xticks(places, texts, rotation=60 if len(trials) > 12 else 0)
        axes.set_xlabel(_parameter_label(study, name))
        axes.set_ylabel(_objective_label(study))
    for trial, mark in _marked(study):
        place = trials.index(trial)
        x, y = (trial.objective, place) if of_lists else (place, trial.objective)
        _mark(axes, x, y, mark)
    axes.grid(color="#dddddd", linewidth=0.6)
    axes.legend(frameon=False)
    axes.set_title(f"{study.config.name}: {study.config.controller}", loc="left")
    figure.savefig(file)
    return file


def _marked(study: SweepStudy) -> list[tuple[SweepTrial, str]]:
    marked = [(study.ranked[0], "best")]
    if study.published is not None:
        marked.append((study.published, "published"))
    return marked


def _mark(axes: Axes, x: float, y: float, mark: str) -> None:
    """A frame for the published setting, a star for the best one."""
    published = mark == "published"
    style: dict[str, Any] = {"marker": "s", "markerfacecolor": "none"} if published else {
        "marker": "*", "markerfacecolor": "red",
    }  # fmt: skip
    style |= {"markersize": 13, "markeredgecolor": "red", "linestyle": "none", "clip_on": False}
    axes.plot(x, y, label=mark, **style)


def _objective_label(study: SweepStudy) -> str:
    config = study.config
    name = f"reward, {config.reward}" if config.objective == "reward" else config.objective
    return name.replace("_", " ")


def _parameter_label(study: SweepStudy, name: str) -> str:
    unit = find_controller(study.config.controller).parameter(name).unit
    return f"{name} ({unit})" if unit else name
