"""The papers' report: one HTML file with tables, claims and interactive plots, nothing loaded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import jinja2
import numpy as np
import plotly.graph_objects as go
from plotly.offline import get_plotlyjs
from plotly.subplots import make_subplots

from quicgym.benchmarks.papers.drawings import Bars, Drawing, Line
from quicgym.benchmarks.papers.measurements import in_words
from quicgym.benchmarks.papers.model import Paper
from quicgym.benchmarks.papers.needs import scenarios_of
from quicgym.benchmarks.papers.tables import title_of
from quicgym.benchmarks.papers.verdicts import VERDICTS
from quicgym.output_folders import write_atomically

DASHES = ("solid", "dash", "dot", "dashdot")
HATCHES = ("", "/", ".", "x")
"""What plotly calls the styles of plot_style.DASHES and HATCHES."""
LARGEST_LINE = 2000
"""Points of a curve; more than a screen has would only make the file large."""


def write(
    file: Path,
    document: dict[str, Any],
    papers: Sequence[Paper],
    drawn: dict[str, list[Drawing]],
    networks: Mapping[str, str],
) -> None:
    """Writes the report as an HTML file.

    `document` is the content of papers.json, `drawn` has the figures of each paper, and `networks`
    each scenario's network in words.
    """
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(
            lambda name: (files(__package__) / name).read_text(encoding="utf-8")
        ),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    sections = [
        {
            "paper": paper,
            "networks": _networks(paper, networks),
            "claims": [claim for claim in document["claims"] if claim["paper"] == paper.name],
            "tables": _tables(paper, document["tables"]),
            "plots": [
                {
                    "title": drawing.caption,
                    "error_bars": drawing.error_bars,
                    "html": plot(drawing),
                }
                for drawing in drawn[paper.name]
            ],
        }
        for paper in papers
    ]
    sections = [
        section
        for section in sections
        if section["claims"] or section["tables"] or section["plots"]
    ]
    page = environment.get_template("report.html.jinja").render(
        document=document,
        sections=sections,
        # A verdict that no claim has needs no column.
        verdicts={
            verdict: words
            for verdict, words in VERDICTS.items()
            if any(claim["verdict"] == verdict for claim in document["claims"])
        },
        in_words=in_words,
        plotly=get_plotlyjs(),
    )
    write_atomically({file: page})


def _networks(paper: Paper, networks: Mapping[str, str]) -> dict[str, str]:
    """The networks of a paper's tables and figures, in the order of these."""
    return {name: networks[name] for name in scenarios_of(paper) if name in networks}


def _tables(paper: Paper, cells: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """One entry per printed table: its rows, with a cell per algorithm."""
    found = []
    of_paper = [cell for cell in cells if cell["paper"] == paper.name]
    for table in paper.tables:
        of_table = [cell for cell in of_paper if cell["table"] == table.number]
        names = [
            name
            for name in table.algorithms or paper.algorithms
            if any(cell["algorithm"] == name for cell in of_table)
        ]
        words = {metric: word for word, metric in table.metrics.items()}
        rows: dict[tuple[str, str], dict[str, Any]] = {}
        for cell in of_table:
            row = rows.setdefault((cell["row"], cell["metric"]), {})
            row[cell["algorithm"]] = cell
        if rows:
            found.append(
                {
                    "title": f"{title_of(table.number)}: {table.caption}",
                    "header": table.row_header,
                    "columns": {name: paper.algorithms.get(name, name) for name in names},
                    "rows": [
                        {"label": label, "quantity": words[metric], "cells": entry}
                        for (label, metric), entry in rows.items()
                    ],
                }
            )
    return found


def plot(drawing: Drawing) -> str:
    """Returns an interactive plot as a piece of HTML that needs plotly.js on its page."""
    columns = max(map(len, drawing.panels))
    figure = make_subplots(
        rows=len(drawing.panels),
        cols=columns,
        shared_yaxes=drawing.share_y,
        subplot_titles=[panel.title for panels in drawing.panels for panel in panels],
        horizontal_spacing=0.25 / columns,
    )
    shown: set[str] = set()
    for row, panels in enumerate(drawing.panels, start=1):
        for column, panel in enumerate(panels, start=1):
            traces: list[Any] = [
                *(_line(line, shown) for line in panel.lines),
                *(entry for bars in panel.bars for entry in _bars(panel.groups, bars, shown)),
            ]
            for trace in traces:
                figure.add_trace(trace, row, column)
            extent = [0, panel.duration_s] if panel.lines else None
            last = row == len(drawing.panels)
            figure.update_xaxes(
                title_text=panel.x_label if last else "", range=extent, row=row, col=column
            )
            if column == 1 or not drawing.share_y:
                text = panel.y_label.replace("\n", "<br>")
                figure.update_yaxes(title_text=text, row=row, col=column)
            if panel.lowest_y is not None and panel.lines:
                highest = max(
                    (line.values.max() for line in panel.lines if len(line.values)), default=1
                )
                extent = [panel.lowest_y, panel.lowest_y + 1.05 * (highest - panel.lowest_y)]
                figure.update_yaxes(range=extent, row=row, col=column)
    height = 420 if len(drawing.panels) == 1 else 260 * len(drawing.panels)
    figure.update_layout(
        template="plotly_white",
        height=height,
        margin={"l": 70, "r": 20, "t": 40, "b": 110},
        # Below the labels of the last row, however high the figure is.
        legend={"orientation": "h", "yref": "container", "yanchor": "bottom", "y": 0.0},
        barmode="group",
    )
    return figure.to_html(full_html=False, include_plotlyjs=False, div_id=f"plot-{drawing.file}")


def _once(label: str | None, shown: set[str]) -> dict[str, Any]:
    """Name and legend entry: a label has one entry however many traces it has."""
    first = label is not None and label not in shown
    if label is not None:
        shown.add(label)
    return {"name": label, "legendgroup": label, "showlegend": first}


def _line(line: Line, shown: set[str]) -> go.Scatter:
    step = max(1, len(line.time_s) // LARGEST_LINE)
    return go.Scatter(
        x=line.time_s[::step].round(4),
        y=line.values[::step].round(4),
        mode="lines",
        line={
            "color": line.look.colour,
            "dash": DASHES[line.look.style],
            "width": 1.5,
        },
        **_once(line.label, shown),
    )


def _bars(groups: Sequence[str], bars: Bars, shown: set[str]) -> Iterable[Any]:
    yield go.Bar(
        x=groups,
        y=bars.means,
        error_y={"type": "data", "array": bars.deviations},
        marker={"color": bars.look.colour, "pattern": {"shape": HATCHES[bars.look.style]}},
        offsetgroup=bars.label,
        **_once(bars.label, shown),
    )
    if not np.all(np.isnan(bars.printed)):
        # A bar without a body, because only bars are placed beside one another.
        yield go.Bar(
            x=groups,
            y=bars.printed,
            marker={"color": "rgba(0,0,0,0)", "line": {"color": "black", "width": 1.5}},
            offsetgroup=bars.label,
            customdata=[bars.label] * len(groups),
            hovertemplate="%{customdata}, printed: %{y}<extra></extra>",
            **_once("printed in the paper", shown),
        )
