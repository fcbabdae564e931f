"""The papers' report: one HTML file with tables, claims and figures, nothing loaded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from quicgym import html_pages
from quicgym.benchmarks.papers.drawings import Drawing
from quicgym.benchmarks.papers.measurements import in_words
from quicgym.benchmarks.papers.needs import scenarios_of
from quicgym.benchmarks.papers.paper import Paper
from quicgym.benchmarks.papers.paper_tables import title_of
from quicgym.benchmarks.papers.verdicts import VERDICTS


def render(
    document: dict[str, Any],
    papers: Sequence[Paper],
    drawn: dict[str, list[Drawing]],
    figures: Mapping[str, Path],
    networks: Mapping[str, str],
) -> str:
    """Returns the report as an HTML file has it.

    `document` is the content of papers.json, `drawn` has the drawings of each paper, `figures` the
    file of each drawing by its name, and `networks` each scenario's network in words.
    """
    sections = [
        {
            "paper": paper,
            "networks": _networks(paper, networks),
            "claims": [claim for claim in document["claims"] if claim["paper"] == paper.name],
            "tables": _tables(paper, document["tables"]),
            "figures": [
                {
                    "title": drawing.caption,
                    "error_bars": drawing.error_bars,
                    **html_pages.embedded(figures[drawing.file]),
                }
                for drawing in drawn[paper.name]
            ],
        }
        for paper in papers
    ]
    sections = [
        section
        for section in sections
        if section["claims"] or section["tables"] or section["figures"]
    ]
    return html_pages.render(
        "quicgym.benchmarks.papers",
        "report.html.jinja",
        document=document,
        sections=sections,
        # A verdict that no claim has needs no column.
        verdicts={
            verdict: words
            for verdict, words in VERDICTS.items()
            if any(claim["verdict"] == verdict for claim in document["claims"])
        },
        in_words=in_words,
    )


def _networks(paper: Paper, networks: Mapping[str, str]) -> dict[str, str]:
    """The networks of a paper's tables and figures, in the order of these."""
    return {name: networks[name] for name in scenarios_of(paper) if name in networks}


def _tables(paper: Paper, cells: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """One entry per printed table: its rows, with a cell per algorithm."""
    found = []
    of_paper = [cell for cell in cells if cell["paper"] == paper.name and cell["variation"] is None]
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
