"""The figure of `quicgym coexist`: shares over time, adoption curves, and every cell's metrics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

from quicgym.benchmarks.coexistence.coexistence_summary import FACTORS, Results, factors
from quicgym.plot_style import (
    BLACK,
    DASHED,
    GREY,
    MARKERS,
    STYLE,
    TWO_COLUMNS,
    Look,
    display_name,
    looks_of,
    save,
    write_captions,
)

NAME = "coexist"
MOST_LINES = 6
"""Subjects whose curves are drawn; of more the first ones."""
MOST_WITH_OTHERS = 2
"""Up to so many subjects, the competing flows are drawn over time, too."""
SHOWN = {
    "fair_share": ("share of the\nfair share", "linear", 1.0),
    "convergence_s": ("convergence\n(s)", "linear", None),
    "extra_harm_rate": ("harm to rate\nbeyond the like's", "linear", 0.0),
    "rtt_unfairness": ("RTT\nunfairness", "log", 1.0),
    "fct_p99_ms": ("short flows'\nFCT p99 (ms)", "log", None),
}
"""Metrics of the lower panels: title, scale, and the value that is marked."""


def varying(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Returns the factors in which the rows differ."""
    return [name for name in FACTORS if len({row[name] for row in rows}) > 1]


def in_words(row: Mapping[str, Any], names: Iterable[str]) -> str:
    """Returns some factors of a row for a reader, such as "BBRv3 + 4 CUBIC, 1 BDP, fq-codel"."""
    words = {
        "rate_mbps": "{:g} Mbps",
        "rtt_ms": "{:g} ms",
        "queue_bdp": "{:g} BDP",
        "discipline": "{}",
    }
    flows = []
    if "subject" in names:
        flows = [f"{display_name(row['subject'])} + {others_in_words(row)}"]
    return ", ".join([*flows, *(words[name].format(row[name]) for name in words if name in names)])


def others_in_words(row: Mapping[str, Any]) -> str:
    """Returns the flows next to the subject for a reader, such as "4 CUBIC"."""
    return f"{row['count']} {display_name(row['beside'])}"


def draw(
    results: Results,
    rows: Sequence[Mapping[str, Any]],
    curves: Sequence[Mapping[str, Any]],
    seeds: int,
    folder: Path,
    formats: Iterable[str],
) -> list[Path]:
    """Draws the figure into a folder, and its caption into captions.md; returns the files.

    Args:
        results: Results of the runs.
        rows: Rows of `Results.rows`.
        curves: Rows of `Results.adoption`.
        seeds: Number of seeds.
        folder: Folder of the files.
        formats: Formats of the files, "png", "pdf" or "svg".
    """
    matplotlib.use("Agg")
    folder.mkdir(parents=True, exist_ok=True)
    looks = looks_of(row["subject"] for row in rows)
    disciplines = list(dict.fromkeys(row["discipline"] for row in rows))
    lines = drawn_lines(curves)
    kept = [name for name in FACTORS if name != "discipline"]
    groups = list(dict.fromkeys(tuple(row[name] for name in kept) for row in rows))
    with matplotlib.rc_context(STYLE):
        below = 0.9 + 0.15 * len(groups)
        above = 3.9 if lines else 0.0
        figure = Figure(figsize=(TWO_COLUMNS, above + below))
        parts = figure.subfigures(2 if lines else 1, 1, height_ratios=[above, below][not lines :],
                                  squeeze=False)[:, 0]  # fmt: skip
        if lines:
            upper = parts[0].subplots(2, len(disciplines), squeeze=False, sharey="row")
            for column, discipline in enumerate(disciplines):
                _over_time(upper[0, column], results, rows, lines, discipline, looks)
                _adoption(upper[1, column], rows, curves, lines, discipline, looks)
            upper[0, 0].set_ylabel("share of the\nfair share")
            upper[1, 0].set_ylabel("receiving rate\n(Mbps)")
            handles = [
                Line2D([], [], color=looks[name].colour, linestyle=looks[name].dashes,
                       label=display_name(name))
                for name in lines
            ]  # fmt: skip
            if len(lines) <= MOST_WITH_OTHERS:
                label = "the other flows, over time"
                handles.append(Line2D([], [], color=GREY, linestyle=DASHED, label=label))
            handles += [
                Line2D([], [], color=GREY, linestyle="none", marker=marker, label=label,
                       markersize=3.5)
                for marker, label in (("o", "flow with the subject"), ("x", "flow without"))
            ]  # fmt: skip
            parts[0].legend(handles=handles, loc="outside right upper")
        _cells(parts[-1], rows, groups, kept, disciplines, looks)
        files = [save(figure, folder / NAME, format) for format in dict.fromkeys(formats)]
    write_captions(folder, {file.name: caption(rows, curves, seeds) for file in files})
    return files


def drawn_lines(curves: Sequence[Mapping[str, Any]]) -> list[str]:
    """Returns the subjects whose curves are drawn."""
    return list(dict.fromkeys(row["subject"] for row in curves))[:MOST_LINES]


def _first(rows: Sequence[Mapping[str, Any]], discipline: str) -> dict[str, Any]:
    """Returns the factors of the cells whose curves are drawn: the first path, most flows."""
    first = next(row for row in rows if row["discipline"] == discipline)
    named = {name: first[name] for name in FACTORS if name not in ("subject", "count")}
    return {**named, "count": max(row["count"] for row in rows)}


def _over_time(
    axes: Axes,
    results: Results,
    rows: Sequence[Mapping[str, Any]],
    lines: Sequence[str],
    discipline: str,
    looks: Mapping[str, Look],
) -> None:
    wanted = _first(rows, discipline)
    for cell in results.cells:
        about = factors(cell)
        subject = about.pop("subject")
        if about != wanted or subject not in lines:
            continue
        runs = [result for result in results.of(cell, "beside") if result is not None]
        for is_subject in (True, False)[: 2 if len(lines) <= MOST_WITH_OTHERS else 1]:
            series = [
                np.array(flow["share_by_second"], float)
                for run in runs
                for flow in run["flows"]
                if flow["is_subject"] == is_subject
            ]
            length = min(map(len, series), default=0)
            if length == 0:
                continue
            mean = np.mean([one[:length] for one in series], axis=0)
            time_s = min(run["begin_s"] for run in runs) + np.arange(length) + 0.5
            axes.plot(
                time_s,
                mean,
                color=looks[subject].colour,
                linestyle=looks[subject].dashes if is_subject else DASHED,
                alpha=1.0 if is_subject else 0.6,
            )
    axes.axhline(1, color=GREY, linewidth=0.6)
    axes.set_title(f"{others_in_words(wanted)},\n{in_words(wanted, FACTORS[1:])}")
    axes.set_xlabel("time (s)")


def _adoption(
    axes: Axes,
    rows: Sequence[Mapping[str, Any]],
    curves: Sequence[Mapping[str, Any]],
    lines: Sequence[str],
    discipline: str,
    looks: Mapping[str, Look],
) -> None:
    wanted = _first(rows, discipline)
    del wanted["count"]
    for subject in lines:
        points = [
            row
            for row in curves
            if row["subject"] == subject and all(row[name] == wanted[name] for name in wanted)
        ]
        users = [row["users"] for row in points]
        for side, marker in (("users", "o"), ("others", "x")):
            name = f"{side}_receive_rate_mbps"
            mean, low, high = (
                np.array([row[f"{name}{end}"] for row in points], float)
                for end in ("", "_low", "_high")
            )
            axes.plot(
                users, mean, color=looks[subject].colour, markersize=3.5, marker=marker,
                linestyle=looks[subject].dashes if side == "users" else "none",
            )  # fmt: skip
            axes.fill_between(
                users, low, high, color=looks[subject].colour, alpha=0.15, linewidth=0
            )
        axes.set_xlabel(f"flows with the subject, of {points[0]['flows']}")
        axes.set_xticks(users)


def _cells(
    part: Any,
    rows: Sequence[Mapping[str, Any]],
    groups: Sequence[tuple[Any, ...]],
    kept: Sequence[str],
    disciplines: Sequence[str],
    looks: Mapping[str, Look],
) -> None:
    """Draws each row of the table: a line for each group, a marker for each discipline."""
    panels = part.subplots(1, len(SHOWN), sharey=True)
    places = {group: place for place, group in enumerate(groups)}
    for axes, (name, (title, scale, marked)) in zip(panels, SHOWN.items(), strict=True):
        for row in rows:
            if row[name] is None:
                continue
            place = places[tuple(row[factor] for factor in kept)]
            number = disciplines.index(row["discipline"])
            colour = looks[row["subject"]].colour
            if row[f"{name}_low"] is not None:
                ends = [row[f"{name}_low"], row[f"{name}_high"]]
                axes.plot(ends, [place, place], color=colour, linewidth=2.5, alpha=0.3)
            axes.plot(
                row[name], place, linestyle="none", color=colour, markersize=4,
                marker=MARKERS[number % len(MARKERS)],
                markerfacecolor=colour if number == 0 else "white",
            )  # fmt: skip
        if marked is not None:
            axes.axvline(marked, color=GREY, linewidth=0.6)
        values = [row[name] for row in rows if row[name] is not None]
        axes.set_xscale(scale)
        if scale == "log":  # at the ends of each decade, or more often within a single one
            wide = bool(values) and max(values) > 20 * min(values)
            axes.xaxis.set_major_locator(LogLocator(subs=(1,) if wide else (1, 2, 5)))
            axes.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
            axes.xaxis.set_minor_formatter(NullFormatter())
        else:
            axes.locator_params(axis="x", nbins=3)
        if values and scale == "log":
            axes.set_xlim(min(values) / 1.4, max(values) * 1.4)
        elif values:  # few seeds have intervals that would take most of the width
            span = max(values) - min(values) or abs(values[0]) or 1.0
            axes.set_xlim(min(values) - 0.2 * span, max(values) + 0.2 * span)
        axes.set_xlabel(title)
    names = ["subject", *(name for name in varying(rows) if name != "discipline")]
    labels = [in_words(dict(zip(kept, group, strict=True)), names) for group in groups]
    panels[0].set_yticks(range(len(groups)), labels, fontsize=6, color=BLACK)
    panels[0].set_ylim(len(groups) - 0.5, -0.5)
    if len(disciplines) > 1:
        handles = [
            Line2D(
                [], [], linestyle="none", color=GREY, marker=MARKERS[number % len(MARKERS)],
                markersize=4, markerfacecolor=GREY if number == 0 else "white", label=discipline,
            )
            for number, discipline in enumerate(disciplines)
        ]  # fmt: skip
        part.legend(handles=handles, loc="outside upper center", ncols=len(handles))


def caption(
    rows: Sequence[Mapping[str, Any]], curves: Sequence[Mapping[str, Any]], seeds: int
) -> str:
    """Returns what the figure shows; the arguments are those of `draw`."""
    lines, first = drawn_lines(curves), rows[0]
    fixed = [name for name in FACTORS if name not in varying(rows)]
    path = in_words(first, [name for name in fixed if name != "subject"])
    shown = "seed 0" if seeds == 1 else f"means and 95% intervals over seeds 0 to {seeds - 1}"
    parts = [f"{path or 'A grid of paths'}; {shown}."]
    if lines:
        parts.append(
            "Top: the subject's share of the fair share after its arrival. Middle: the rate of a "
            "flow with the subject (line), and of one without (crosses), by the number of flows "
            "that have the subject. Both show the first path of "
            f"each discipline with the most flows, for {', '.join(map(display_name, lines))}."
        )
    parts.append(
        "Bottom: each cell of the table. A cell without a mark in a panel has no value, as where "
        "flows do not converge. Intervals end at the panel's edge."
    )
    return " ".join(parts)
