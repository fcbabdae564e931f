"""Draws figures as files: PNG, PDF or SVG, as wide as one or two columns of a page."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from quicgym.benchmarks.papers.drawings import Drawing, Panel
from quicgym.plot_style import BLACK, GREY, ONE_COLUMN, STYLE, TWO_COLUMNS, save, write_captions

LETTERS_OF_A_TITLE = 42
"""The longest title above a panel that is one column wide, or half of two."""
MOST_GROUPS_IN_ONE_COLUMN = 4
"""The most groups of bars whose labels fit next to one another."""
BASE_RTT = "base RTT"
MOST_COLUMNS_OF_A_LEGEND = 6
"""Fewer where the figure is too narrow for them."""


def draw_all(drawings: Iterable[Drawing], folder: Path, format: str = "png") -> list[Path]:
    """Draws into files of the folder, and captions into captions.md; returns the figures' files."""
    matplotlib.use("Agg")
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    captions: dict[str, str] = {}
    with matplotlib.rc_context(STYLE):
        for drawing in drawings:
            files.append(save(_draw(drawing), folder / drawing.file, format))
            bars = f"Error bars: {drawing.error_bars}." if drawing.error_bars else ""
            sentences = (f"{drawing.caption}.", drawing.networks, bars)
            captions[files[-1].name] = " ".join(filter(None, sentences))
    write_captions(folder, captions)
    return files


def _draw(drawing: Drawing) -> Figure:
    rows, columns = len(drawing.panels), max(map(len, drawing.panels))
    of_bars = bool(drawing.panels[0][0].bars)
    y_labels = {panel.y_label for panels in drawing.panels for panel in panels}
    groups = max(len(panel.groups) for panels in drawing.panels for panel in panels)
    # Beyond four columns, as with --controller for many, no page is wide enough anyway.
    narrow = columns == 1 and groups <= MOST_GROUPS_IN_ONE_COLUMN
    width = ONE_COLUMN if narrow else max(TWO_COLUMNS, 1.75 * columns)
    figure = Figure(figsize=(width, 2.6 if of_bars or rows == 1 else 1.65 * rows + 0.2))
    all_axes = figure.subplots(
        rows,
        columns,
        squeeze=False,
        sharex=not of_bars and rows > 1,
        sharey="row" if drawing.share_y else False,
    )
    drawn = []
    for row, panels in enumerate(drawing.panels):
        for column in range(columns):
            axes = all_axes[row, column]
            if column >= len(panels):
                axes.set_visible(False)
                continue
            panel = panels[column]
            drawn.append((axes, panel))
            (_draw_bars if of_bars else _draw_lines)(axes, panel)
            lines = textwrap.wrap(panel.title.rstrip("."), LETTERS_OF_A_TITLE)
            axes.set_title("\n".join(lines), loc="left")
            below = row + 1 < rows and column < len(drawing.panels[row + 1])
            axes.set_xlabel("" if below else panel.x_label)
            axes.xaxis.set_tick_params(labelbottom=not below)
            if len(y_labels) > 1 and (column == 0 or not drawing.share_y):
                axes.set_ylabel(panel.y_label.replace(" (", "\n(") if rows > 1 else panel.y_label)
    for axes, panel in drawn:  # not before all are drawn: a row has one y axis, as high as its data
        if panel.lowest_y is not None:
            axes.set_ylim(bottom=panel.lowest_y)
    if len(y_labels) == 1:
        figure.supylabel(y_labels.pop(), fontsize=STYLE["font.size"])
    _legend(figure, [axes for axes in all_axes.flat if axes.get_visible()], drawing)
    return figure


def _legend(figure: Figure, all_axes: list[Axes], drawing: Drawing) -> None:
    """Names what is drawn, outside the data; a panel's heading does that for its only line."""
    entries: dict[str, Any] = {}
    for axes in all_axes:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            entries.setdefault(label, handle)
    names = [bars.label for panels in drawing.panels for panel in panels for bars in panel.bars]
    entries = dict(sorted(entries.items(), key=lambda entry: entry[0] not in names))
    headed = [panel.title for panels in drawing.panels for panel in panels]
    unnamed = {
        label: handle
        for label, handle in entries.items()
        if not any(label in title for title in headed)
    }
    if set(unnamed) <= {BASE_RTT}:
        entries = unnamed
    if not entries:
        return
    for columns in range(min(len(entries), MOST_COLUMNS_OF_A_LEGEND), 0, -1):
        legend = figure.legend(
            entries.values(), entries.keys(), loc="outside lower center", ncols=columns
        )
        if legend.get_window_extent().width <= figure.bbox.width:
            return
        if columns > 1:
            legend.remove()


def _draw_lines(axes: Axes, panel: Panel) -> None:
    several = sum(line.label is None for line in panel.lines) > 0
    for line in panel.lines:
        axes.plot(
            line.time_s,
            line.values,
            color=line.look.colour,
            linestyle=line.look.dashes,
            linewidth=0.8 if len(line.time_s) > 2000 else 1.1,
            alpha=0.85 if several else 1.0,
            label=line.label,
        )
    axes.set_xlim(0, panel.duration_s)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=6))
    if panel.base_rtt_ms is not None:
        axes.axhline(panel.base_rtt_ms, color=GREY, linewidth=0.8, label=BASE_RTT)
    elif panel.lowest_y is None:
        axes.axhline(0, color=BLACK, linewidth=0.6)


def _draw_bars(axes: Axes, panel: Panel) -> None:
    """Ours as bars, and the paper's values as marks."""
    width = 0.8 / max(1, len(panel.bars))
    last = len(panel.bars) - 1
    for index, bars in enumerate(panel.bars):
        places = np.arange(len(panel.groups)) + (index - last / 2) * width
        axes.bar(
            places,
            bars.means,
            0.92 * width,
            color=bars.look.colour,
            edgecolor="white",
            linewidth=0.4,
            hatch=bars.look.hatch,
            label=bars.label,
        )
        if bars.seeds > 1:
            axes.errorbar(
                places,
                bars.means,
                bars.deviations,
                linestyle="none",
                color=BLACK,
                elinewidth=0.7,
                capsize=1.5,
                label=f"± 1 standard deviation, n = {bars.seeds} seeds" if index == last else None,
            )
        if np.all(np.isnan(bars.printed)):
            continue
        axes.plot(
            places,
            bars.printed,
            linestyle="none",
            marker="D",
            markersize=3,
            markerfacecolor="white",
            markeredgecolor=BLACK,
            markeredgewidth=0.7,
            label="printed in the paper",
        )
    labels = [group.replace(", ", "\n") for group in panel.groups]
    axes.set_xticks(range(len(panel.groups)), labels)
    axes.grid(visible=False, axis="x")
