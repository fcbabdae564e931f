"""Draws figures as PNG files."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from quicgym.benchmarks.papers.drawings import Drawing, Panel
from quicgym.plot_style import PALETTE, STYLE

HATCHES = ("", "///", "...", "xxx", "\\\\\\", "|||", "---", "+++")
DASHES: tuple[Any, ...] = ("-", (0, (4, 2)))
"""Solid and dashed in turn: a curve on top of an equal one does not hide it."""


def draw_all(drawings: Iterable[Drawing], folder: Path) -> list[Path]:
    """Draws each as a PNG file in the folder; returns the files."""
    matplotlib.use("Agg")
    folder.mkdir(parents=True, exist_ok=True)
    with matplotlib.rc_context(STYLE):
        return [_draw(drawing, folder / f"{drawing.file}.png") for drawing in drawings]


def _draw(drawing: Drawing, file: Path) -> Path:
    rows, columns = len(drawing.panels), max(map(len, drawing.panels))
    of_bars = bool(drawing.panels[0][0].bars)
    width = max(6.4, (4.6 if of_bars or rows == 1 else 2.6) * columns)
    figure = Figure(figsize=(width, 3.6 if rows == 1 else 2.0 * rows))
    all_axes = figure.subplots(
        rows, columns, squeeze=False, sharey="row" if drawing.share_y else False
    )
    for row, panels in enumerate(drawing.panels):
        for column, panel in enumerate(panels):
            axes = all_axes[row, column]
            (_draw_bars if of_bars else _draw_lines)(axes, panel)
            axes.set_title(panel.title, loc="left")
            axes.set_xlabel(panel.x_label if row == rows - 1 else "")
            axes.set_ylabel(panel.y_label if column == 0 or not drawing.share_y else "")
    figure.suptitle(drawing.title)
    handles, labels = all_axes[0, 0].get_legend_handles_labels()
    if of_bars:
        figure.legend(handles, labels, loc="outside lower center", ncols=len(labels))
    elif rows == 1 or len(labels) > 1:
        all_axes[0, 0].legend(ncols=2)
    figure.savefig(file)
    return file


def _draw_lines(axes: Axes, panel: Panel) -> None:
    several = sum(line.label is None for line in panel.lines) > 0
    for line in panel.lines:
        axes.plot(
            line.time_s,
            line.values,
            color=PALETTE[line.place % len(PALETTE)],
            linestyle=DASHES[line.place % 2],
            alpha=0.65 if several else 1.0,
            label=line.label,
        )
    axes.set_xlim(0, panel.duration_s)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_ylim(bottom=0)


def _draw_bars(axes: Axes, panel: Panel) -> None:
    """Ours as bars, and the paper's values as marks."""
    width = 0.8 / len(panel.bars)
    for index, bars in enumerate(panel.bars):
        places = np.arange(len(panel.groups)) + (index - (len(panel.bars) - 1) / 2) * width
        axes.bar(
            places,
            bars.means,
            0.92 * width,
            yerr=bars.deviations,
            color=PALETTE[bars.place % len(PALETTE)],
            edgecolor="white",
            hatch=HATCHES[bars.place % len(HATCHES)],
            error_kw={"elinewidth": 0.8, "capsize": 2},
            label=bars.label,
        )
        axes.plot(
            places,
            bars.printed,
            linestyle="none",
            marker="D",
            markersize=4,
            markerfacecolor="white",
            markeredgecolor="black",
            markeredgewidth=0.8,
            label="printed in the paper" if index == len(panel.bars) - 1 else None,
        )
    labels = [group.replace(", ", "\n") for group in panel.groups]
    axes.set_xticks(range(len(panel.groups)), labels)
    axes.grid(visible=False, axis="x")
