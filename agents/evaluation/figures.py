"""An evaluation as pictures: interquartile means, performance profiles, scenario by scenario."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from quicgym.agents.evaluation.statistics import performance_profiles
from quicgym.envs.scenarios.model import Scenario
from quicgym.envs.scenarios.suites import SuiteEntry
from quicgym.envs.scenarios.words import path_in_words
from quicgym.plot_style import (
    BLACK,
    GREY,
    HEAT_MAP,
    STYLE,
    TWO_COLUMNS,
    display_name,
    looks_of,
    save,
    write_captions,
)

KIND_MARKERS = {"baseline": "|", "static": "s", "learned": "D", "random": "x"}
LONGEST_NAME = 36
MOST_SCENARIOS = 40
"""In a figure with a row for each."""
MOST_TICKS = 5
"""The most ticks of an axis; with more their numbers would overlap."""


def draw_evaluation(
    document: dict[str, Any],
    scores: np.ndarray,
    scenarios: Sequence[SuiteEntry],
    folder: Path,
    format: str,
    names: Sequence[str],
) -> list[Path]:
    """Draws the figures of an evaluation into files of a folder; returns them.

    `document` is the content of evaluation.json. `scores` has rewards, policies x scenarios x
    seeds, in the document's order of policies. `names` are those that are drawn.
    """
    matplotlib.use("Agg")
    folder.mkdir(parents=True, exist_ok=True)
    complete = [entry for entry in document["policies"] if entry["iqm_reward"] is not None]
    if not complete:
        return []
    paths = {
        entry.name: path_in_words(entry) if isinstance(entry, Scenario) else "drawn for each seed"
        for entry in scenarios
    }
    with matplotlib.rc_context(STYLE):
        draw: dict[str, Callable[[], Figure]] = {
            "iqm": lambda: _intervals(document, complete),
            "profiles": lambda: _profiles(document, complete, scores[: len(complete)]),
            "scenarios": lambda: _scenarios(complete, paths),
        }
        files = [save(draw[name](), folder / name, format) for name in names]
    captions = _captions(document)
    write_captions(folder, {file.name: captions[file.stem] for file in files})
    return files


def _captions(document: dict[str, Any]) -> dict[str, str]:
    seeds = len(document["seeds"])
    over = f"over {seeds} seeds" if seeds > 1 else f"with seed {document['seeds'][0]}"
    where = f"on {document['suite']}, engine {document['engine']}, {over}"
    most = len(document["policies"][0]["scenarios"]) > MOST_SCENARIOS
    shown = f"; the {MOST_SCENARIOS} scenarios in which the policies differ most" if most else ""
    interval = ", and its 95% bootstrap interval (bar)" if seeds > 1 else ""
    return {
        "iqm": f"Interquartile mean reward of each policy{interval}, {where}.",
        "profiles": f"Share of the runs of each policy with a reward above τ, {where}.",
        "scenarios": f"Mean reward below that of the best policy in each scenario, {where}{shown}. "
        "The scenarios in which the policy at the left is worst come first.",
    }


def _names(entries: Sequence[dict[str, Any]]) -> list[str]:
    """The policies, long paths by their end."""
    names = [display_name(entry["policy"]) for entry in entries]
    return [name if len(name) <= LONGEST_NAME else "…" + name[1 - LONGEST_NAME :] for name in names]


def _colours(entries: Sequence[dict[str, Any]]) -> dict[str, Any]:
    return looks_of(entry["policy"] for entry in entries)


def _intervals(document: dict[str, Any], entries: Sequence[dict[str, Any]]) -> Figure:
    figure = Figure(figsize=(TWO_COLUMNS, 0.9 + 0.2 * len(entries)))
    axes, paired = figure.subplots(1, 2, sharey=True)
    looks = _colours(entries)
    best = entries[0]["policy"]
    behind = {
        pair["b"]: (-pair["iqm_difference"], pair["low"], pair["high"])
        for pair in document["differences"]
        if pair["a"] == best
    }
    for place, entry in enumerate(entries):
        look = {"color": looks[entry["policy"]].colour, **_marker(entry["kind"])}
        own = (entry[key] for key in ("iqm_reward", "iqm_low", "iqm_high"))
        _interval(axes, place, *own, **look)
        if entry["policy"] in behind:
            value, low, high = behind[entry["policy"]]
            ends = (None, None) if low is None else (-high, -low)
            _interval(paired, place, value, *ends, **look)
    for each in (axes, paired):
        each.locator_params(axis="x", nbins=MOST_TICKS)
    paired.axvline(0, color=GREY, linewidth=0.8)
    axes.set_yticks(range(len(entries)), _names(entries))
    axes.set_ylim(len(entries) - 0.5, -0.5)
    seeds = len(document["seeds"])
    interval = f", seed {document['seeds'][0]}"
    if seeds > 1:
        interval = f"\n(bar: 95% interval, n = {seeds} seeds)"
    axes.set_xlabel(f"interquartile mean reward{interval}")
    paired.set_xlabel("paired difference\nto the best")
    kinds = list(dict.fromkeys(entry["kind"] for entry in entries))
    if len(kinds) > 1:
        handles = [
            Line2D([], [], linestyle="none", color=GREY, label=kind, **_marker(kind))
            for kind in kinds
        ]
        figure.legend(handles=handles, loc="outside lower center", ncols=len(kinds))
    return figure


def _interval(
    axes: Axes, place: int, value: float, low: float | None, high: float | None, **look: Any
) -> None:
    if low is not None and high is not None:
        axes.plot([low, high], [place, place], color=look["color"], linewidth=5, alpha=0.35)
    axes.plot(value, place, linestyle="none", **look)


def _marker(kind: str) -> dict[str, Any]:
    if kind == "baseline":
        return {"marker": "|", "markersize": 8, "markeredgewidth": 1.6}
    return {"marker": KIND_MARKERS[kind], "markersize": 4, "markerfacecolor": "white"}


def _profiles(
    document: dict[str, Any], entries: Sequence[dict[str, Any]], scores: np.ndarray
) -> Figure:
    figure = Figure(figsize=(TWO_COLUMNS, max(2.8, 0.5 + 0.16 * len(entries))))
    axes = figure.subplots()
    looks = _colours(entries)
    # The worst twentieth may lie far out and would take most of the width.
    thresholds = np.linspace(np.percentile(scores, 5), scores.max(), 400)
    for name, entry, shares in zip(
        _names(entries), entries, performance_profiles(scores, thresholds), strict=True
    ):
        look = looks[entry["policy"]]
        axes.plot(
            thresholds,
            shares,
            drawstyle="steps-post",
            color=look.colour,
            linestyle=look.dashes,
            label=name,
        )
    if thresholds[0] < thresholds[-1]:
        axes.set_xlim(thresholds[0], thresholds[-1])
    axes.set_ylim(0, 1)
    axes.set_xlabel(f"τ: reward of a run ({document['reward']['name']})")
    axes.set_ylabel("share of runs with reward > τ")
    figure.legend(loc="outside right upper")
    return figure


def _scenarios(entries: Sequence[dict[str, Any]], paths: Mapping[str, str]) -> Figure:
    """Reward below the best policy's: who is how far behind, and where."""
    names = [scenario["scenario"] for scenario in entries[0]["scenarios"]]
    rewards = np.array([[cell["reward"] for cell in entry["scenarios"]] for entry in entries])
    behind = (rewards - rewards.max(axis=0)).T
    different = np.argsort(behind.min(axis=1), kind="stable")[:MOST_SCENARIOS]
    rows = different[np.argsort(behind[different, 0], kind="stable")]
    behind, names = behind[rows], [names[row] for row in rows]
    # The names below stand upright, and the title of the colour bar takes 1.4 inches.
    height = max(1.4, 0.7 + 0.13 * len(names)) + 0.075 * max(map(len, _names(entries)))
    figure = Figure(figsize=(max(TWO_COLUMNS, 4.6 + 0.2 * len(entries)), height))
    axes = figure.subplots()
    lowest = min(float(np.percentile(behind, 5)), -1e-9)  # one collapse must not bleach the rest
    image = axes.imshow(behind, cmap=HEAT_MAP, vmin=lowest, vmax=0, aspect="auto")
    axes.grid(visible=False)
    axes.set_xticks(range(len(entries)), _names(entries), rotation=90)
    labels = [f"{name}: {paths[name]}" if name in paths else name for name in names]
    axes.set_yticks(range(len(names)), labels, fontsize=6, color=BLACK)
    figure.colorbar(image, label="mean reward\n− the best one's", extend="min", pad=0.01, aspect=40)
    return figure
