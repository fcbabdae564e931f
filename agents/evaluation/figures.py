"""An evaluation as pictures: interquartile means, performance profiles, scenario by scenario."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from quicgym.agents.evaluation.statistics import performance_profiles
from quicgym.plot_style import PALETTE, STYLE

DASHES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (1, 1.2)))
COLOURS = {
    "baseline": PALETTE[0],
    "static": PALETTE[1],
    "learned": PALETTE[3],
    "random": PALETTE[6],
}
LONGEST_NAME = 36


def draw_evaluation(document: dict[str, Any], scores: np.ndarray, folder: Path) -> list[Path]:
    """Draws an evaluation into PNG files; returns them.

    Args:
        document: The content of evaluation.json.
        scores: Rewards, policies x scenarios x seeds, in the document's order of policies.
        folder: Where the files go.
    """
    matplotlib.use("Agg")
    folder.mkdir(parents=True, exist_ok=True)
    complete = [entry for entry in document["policies"] if entry["iqm_reward"] is not None]
    if not complete:
        return []
    with matplotlib.rc_context(STYLE):
        drawn = {
            "iqm": _intervals(document, complete),
            "profiles": _profiles(document, complete, scores[: len(complete)]),
            "scenarios": _scenarios(document, complete),
        }
        files = []
        for name, figure in drawn.items():
            files.append(folder / f"{name}.png")
            figure.savefig(files[-1])
        return files


def _names(entries: Sequence[dict[str, Any]]) -> list[str]:
    """The policies, long paths by their end."""
    names = [entry["policy"] for entry in entries]
    return [name if len(name) <= LONGEST_NAME else "…" + name[1 - LONGEST_NAME :] for name in names]


def _title(document: dict[str, Any]) -> str:
    seeds = len(document["seeds"])
    engine = {"native": "native engine", "ns3": "ns-3"}[document["engine"]]
    return f"{document['suite']}, {engine}, {seeds} {'seed' if seeds == 1 else 'seeds'}"


def _intervals(document: dict[str, Any], entries: Sequence[dict[str, Any]]) -> Figure:
    figure = Figure(figsize=(6.4, 1.3 + 0.3 * len(entries)))
    axes = figure.subplots()
    kinds = list(dict.fromkeys(entry["kind"] for entry in entries))
    for place, entry in enumerate(entries):
        value, low, high = (entry[key] for key in ("iqm_reward", "iqm_low", "iqm_high"))
        colour = COLOURS[entry["kind"]]
        if low is not None:
            axes.plot([low, high], [place, place], color=colour, linewidth=6, alpha=0.35)
        first = entry["kind"] in kinds
        axes.plot(
            value,
            place,
            linestyle="none",
            marker="|",
            markersize=11,
            markeredgewidth=2,
            color=colour,
            label=entry["kind"] if first else None,
        )
        if first:
            kinds.remove(entry["kind"])
    axes.set_yticks(range(len(entries)), _names(entries))
    axes.set_ylim(len(entries) - 0.5, -0.5)
    interval = ", 95% interval over seeds" if len(document["seeds"]) > 1 else ""
    axes.set_xlabel(f"interquartile mean reward{interval}")
    if len({entry["kind"] for entry in entries}) > 1:
        figure.legend(loc="outside lower center", ncols=len(COLOURS))
    figure.suptitle(_title(document))
    return figure


def _profiles(
    document: dict[str, Any], entries: Sequence[dict[str, Any]], scores: np.ndarray
) -> Figure:
    figure = Figure(figsize=(6.4, 3.8))
    axes = figure.subplots()
    # The worst twentieth may lie far out and would take most of the width.
    thresholds = np.linspace(np.percentile(scores, 5), scores.max(), 400)
    for place, (name, shares) in enumerate(
        zip(_names(entries), performance_profiles(scores, thresholds), strict=True)
    ):
        axes.plot(
            thresholds,
            shares,
            drawstyle="steps-post",
            color=PALETTE[place % len(PALETTE)],
            linestyle=DASHES[place // len(PALETTE) % len(DASHES)],
            label=name,
        )
    if thresholds[0] < thresholds[-1]:
        axes.set_xlim(thresholds[0], thresholds[-1])
    axes.set_ylim(0, 1)
    axes.set_xlabel(f"τ: reward of a run ({document['reward']['name']})")
    axes.set_ylabel("share of runs with reward > τ")
    figure.legend(loc="outside right center")
    figure.suptitle(_title(document))
    return figure


def _scenarios(document: dict[str, Any], entries: Sequence[dict[str, Any]]) -> Figure:
    """Reward below the best policy's: who is how far behind, and where."""
    names = [scenario["scenario"] for scenario in entries[0]["scenarios"]]
    rewards = np.array([[cell["reward"] for cell in entry["scenarios"]] for entry in entries])
    behind = rewards - rewards.max(axis=0)
    figure = Figure(figsize=(max(6.4, 3.0 + 0.17 * len(names)), 2.4 + 0.24 * len(entries)))
    axes = figure.subplots()
    lowest = min(float(np.percentile(behind, 5)), -1e-9)  # one collapse must not bleach the rest
    image = axes.imshow(behind, cmap="cividis", vmin=lowest, vmax=0, aspect="auto")
    axes.grid(visible=False)
    axes.set_yticks(range(len(entries)), _names(entries))
    axes.set_xticks(range(len(names)), names, rotation=90, fontsize=6)
    figure.colorbar(image, label="mean reward − the best one's", extend="min", pad=0.01)
    figure.suptitle(_title(document))
    return figure
