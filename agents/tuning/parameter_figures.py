"""Pictures of a sweep: a heat map per pair of parameters, or the objective over the only one.

A grid's heat map has a cell per pair of values, the mean over the other parameters; of random and
optuna each trial is a dot. A frame is the published setting, a star the best one. captions.md says
of each file what it shows.
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
from matplotlib.ticker import FixedLocator, MaxNLocator, NullLocator, ScalarFormatter

from quicgym.agents.tuning.parameter_config import SweptParameter, Value, label
from quicgym.agents.tuning.parameter_trial import ParameterTrial
from quicgym.controllers import without_folder
from quicgym.envs.simulation.controller_choice import find_controller
from quicgym.plot_style import (
    HEAT_MAP,
    ONE_COLUMN,
    STYLE,
    TWO_COLUMNS,
    VERMILION,
    looks_of,
    save,
    write_captions,
)

if TYPE_CHECKING:
    from quicgym.agents.tuning.parameter_sweep import ParameterStudy

MOST_WRITTEN_CELLS = 150
MOST_CELLS_IN_ONE_COLUMN = 6
"""A column more, and the numbers of neighbouring cells would touch."""
_BARS: dict[str, Any] = {"capsize": 2, "markersize": 3, "elinewidth": 0.7}
_MARKS = "Frame: the published setting; star: the best one."


def draw_sweep(study: ParameterStudy, folder: Path, format: str = "png") -> list[Path]:
    """Draws a sweep into files of the folder, "png", "pdf" or "svg"; returns them."""
    folder.mkdir(parents=True, exist_ok=True)
    names = list(study.config.parameters)
    shown: list[tuple[str, ...]] = [(names[0],)] if len(names) == 1 else [*combinations(names, 2)]
    captions: dict[str, str] = {}
    files = []
    with matplotlib.rc_context(STYLE):
        for chosen in shown:
            figure = _single(study, *chosen) if len(chosen) == 1 else _pair(study, *chosen)
            files.append(save(figure, folder / "-".join(chosen), format))
            captions[files[-1].name] = _caption(study, chosen)
    write_captions(folder, captions)
    return files


def _caption(study: ParameterStudy, names: tuple[str, ...]) -> str:
    config = study.config
    text = f"{config.name}: {_objective_label(study)} of {without_folder(config.controller)}"
    others = [name for name in config.parameters if name not in names]
    if config.search == "grid" and others:
        text += f", mean over {', '.join(others)}"
    text += f". {_MARKS}"
    if len(names) == 1 and config.seeds > 1:
        text += f" Error bars: ± 1 standard deviation, n = {config.seeds} seeds."
    return text


def _pair(study: ParameterStudy, x: str, y: str) -> Figure:
    exact = study.config.search == "grid"
    columns, rows = (len(study.config.parameters[name].grid()) if exact else 0 for name in (x, y))
    width = ONE_COLUMN if columns <= MOST_CELLS_IN_ONE_COLUMN else TWO_COLUMNS
    figure = Figure(figsize=(width, max(2.2, 0.9 + 0.34 * rows) if exact else 3.0))
    axes = figure.subplots()
    drawn = (_cells if exact else _dots)(axes, study, x, y)
    figure.colorbar(drawn, ax=axes, label=_objective_label(study))
    axes.set_xlabel(_parameter_label(study, x))
    axes.set_ylabel(_parameter_label(study, y))
    figure.legend(loc="outside lower center", ncols=2)
    return figure


def _cells(axes: Axes, study: ParameterStudy, x: str, y: str) -> Any:
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
    axes.grid(visible=False)
    for trial, mark in _marked(study):
        if trial.setting[x] in columns and trial.setting[y] in rows:
            # In the upper half of the cell: its number is in the lower one.
            column, row = columns.index(trial.setting[x]), rows.index(trial.setting[y])
            _mark(axes, column, row + 0.25, mark)
    if means.size <= MOST_WRITTEN_CELLS:
        is_bright = image.to_rgba(means)[..., :3].mean(axis=-1) > 0.5
        for (row, column), mean in np.ndenumerate(means):
            if not math.isnan(mean):
                colour = "black" if is_bright[row, column] else "white"
                centred: dict[str, Any] = {"ha": "center", "va": "center"}
                axes.text(column, row - 0.2, f"{mean:.3f}", fontsize=6, color=colour, **centred)
    return image


def _colours(study: ParameterStudy) -> str:
    """The better, the brighter."""
    return HEAT_MAP if study.config.mode == "max" else f"{HEAT_MAP}_r"


def _dots(axes: Axes, study: ParameterStudy, x: str, y: str) -> Any:
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
        s=14,
        edgecolors="none",
    )
    for trial, mark in _marked(study):
        _mark(axes, places[x](trial.setting[x]), places[y](trial.setting[y]), mark)
    return dots


def _axis(axes: Axes, study: ParameterStudy, name: str, along: str) -> Any:
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
        if swept.maximum is not None and swept.minimum and swept.maximum / swept.minimum < 100:
            # 20 and 50 are read more easily than 2 x 10^1 and 5 x 10^1, which also touch.
            ticks = [n * 10.0**k for k in range(-9, 10) for n in (1, 2, 5)]
            inside = [tick for tick in ticks if swept.minimum <= tick <= swept.maximum]
            axis.set_major_locator(FixedLocator(inside) if len(inside) > 2 else MaxNLocator(4))
            axis.set_major_formatter(ScalarFormatter())
            axis.set_minor_locator(NullLocator())
    return lambda value: _inside(swept, value)


def _inside(swept: SweptParameter, value: Value) -> float:
    """A published value outside the range is drawn at its edge."""
    assert swept.minimum is not None and swept.maximum is not None and isinstance(value, float)
    return min(swept.maximum, max(swept.minimum, value))


def _single(study: ParameterStudy, name: str) -> Figure:
    order = study.config.parameters[name].values
    known = [*(order or ()), study.config.published_setting()[name]]
    trials = sorted(
        study.finished,
        key=lambda trial: known.index(trial.setting[name]) if order else trial.setting[name],
    )
    of_lists = any(isinstance(trial.setting[name], tuple) for trial in trials)
    height = 1.0 + 0.2 * len(trials) if of_lists else 2.6
    width = ONE_COLUMN if len(trials) <= 8 and not of_lists else TWO_COLUMNS
    figure = Figure(figsize=(width, max(2.2, height)))
    axes = figure.subplots()
    controller = study.config.controller
    colour = looks_of([controller])[controller].colour
    objectives = [trial.objective for trial in trials]
    deviations = [trial.deviation or 0.0 for trial in trials]
    places = range(len(trials))
    texts = [label(trial.setting[name]) for trial in trials]
    if of_lists:
        axes.errorbar(objectives, places, xerr=deviations, fmt="o", color=colour, **_BARS)
        axes.set_yticks(places, texts)
        axes.invert_yaxis()
        axes.set_xlabel(_objective_label(study))
    else:
        axes.errorbar(places, objectives, yerr=deviations, fmt="o-", color=colour, **_BARS)
        axes.set_xticks(places, texts, rotation=60 if len(trials) > 12 else 0)
        axes.set_xlabel(_parameter_label(study, name))
        axes.set_ylabel(_objective_label(study))
    for trial, mark in _marked(study):
        place = trials.index(trial)
        x, y = (trial.objective, place) if of_lists else (place, trial.objective)
        _mark(axes, x, y, mark)
    figure.legend(loc="outside lower center", ncols=2)
    return figure


def _marked(study: ParameterStudy) -> list[tuple[ParameterTrial, str]]:
    marked = [(study.ranked[0], "best")]
    if study.published is not None:
        marked.append((study.published, "published"))
    return marked


def _mark(axes: Axes, x: float, y: float, mark: str) -> None:
    """A frame for the published setting, a star for the best one."""
    published = mark == "published"
    style: dict[str, Any] = {"marker": "s", "markerfacecolor": "none"} if published else {
        "marker": "*", "markerfacecolor": VERMILION,
    }  # fmt: skip
    style |= {"markersize": 10 if published else 7, "markeredgecolor": VERMILION}
    axes.plot(x, y, label=mark, linestyle="none", clip_on=False, zorder=3, **style)


def _objective_label(study: ParameterStudy) -> str:
    config = study.config
    name = f"reward, {config.reward}" if config.objective == "reward" else config.objective
    return name.replace("_", " ")


def _parameter_label(study: ParameterStudy, name: str) -> str:
    unit = find_controller(study.config.controller).parameter(name).unit
    return f"{name} ({unit})" if unit else name
