"""The tables of docs/papers, from what `quicgym papers` wrote.

python benchmarks/studies/paper_reports.py verdicts DIR prints the verdicts,
python benchmarks/studies/paper_reports.py tables DIR PAPER prints a paper's tables.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer
from reproduction import markdown

from quicgym.benchmarks.papers.measurements import in_words, quantity_in_words
from quicgym.benchmarks.papers.paper import load_paper
from quicgym.benchmarks.papers.verdicts import VERDICTS

Folder = Annotated[
    Path, typer.Argument(metavar="DIR", help="The folder that `quicgym papers` has written.")
]
app = typer.Typer()


def decisive(claim: dict[str, Any]) -> str:
    """Returns the first comparison that came out otherwise than claimed, in words."""
    row = next(row for row in claim["measured"] if row["outcome"] != "yes")
    first, second = row["quantity"], row["against"]
    claimed = row["claimed"].partition(", which is")[0]
    if second is None:
        compared = f"{quantity_in_words(first['metric'])}: {_named_value(first)}"
    elif first["metric"] == second["metric"]:
        title = quantity_in_words(first["metric"])
        compared = f"{title}: {_named_value(first)}, {_named_value(second)}"
    else:
        titles = [quantity_in_words(quantity["metric"]) for quantity in (first, second)]
        compared = f"{titles[0]}: {_named_value(first)}, {titles[1]}: {_named_value(second)}"
    ratio = "" if row["ratio"] is None else f", ratio {row['ratio']:.3g}"
    return f"{compared}{ratio}; claimed {claimed}".replace("|", "\\|")


def _named_value(quantity: dict[str, Any]) -> str:
    mean = quantity["mean"]
    value = "none" if mean is None else in_words(mean, quantity["deviation"])
    return f"{quantity['heading'] or quantity['algorithm']} {value}"


def lines_of_verdicts(document: dict[str, Any]) -> Iterator[str]:
    """Yields the totals of each paper, and then its claims."""
    claims: dict[str, list[dict[str, Any]]] = {}
    for claim in document["claims"]:
        claims.setdefault(claim["paper"], []).append(claim)
    totals = [
        [
            load_paper(name).title,
            *(str(sum(claim["verdict"] == verdict for claim in of_paper)) for verdict in VERDICTS),
        ]
        for name, of_paper in claims.items()
    ]
    yield from markdown(["source", *VERDICTS.values()], totals)
    for name, of_paper in claims.items():
        yield f"\n## {load_paper(name).title}\n"
        held = [f"`{claim['id']}`" for claim in of_paper if claim["verdict"] == "holds"]
        if held:
            yield f"These claims hold: {', '.join(held)}.\n"
        rows = [
            [f"`{claim['id']}`: {claim['statement']}", VERDICTS[claim["verdict"]], decisive(claim)]
            for claim in of_paper
            if claim["verdict"] != "holds"
        ]
        if rows:
            yield from markdown(["claim", "verdict", "what decides first"], rows)


def lines_of_tables(document: dict[str, Any], name: str) -> Iterator[str]:
    """Yields the tables of a paper: a line for each row and quantity, a column per algorithm."""
    paper = load_paper(name)
    cells = {
        (cell["table"], cell["row"], cell["metric"], cell["algorithm"]): cell
        for cell in document["tables"]
        if cell["paper"] == paper.name
    }
    for table in paper.tables:
        algorithms = table.algorithms or tuple(paper.algorithms)
        lines = []
        for row in table.rows:
            for quantity, metric in table.metrics.items():
                places = [(table.number, row.label, metric, name) for name in algorithms]
                if any(place in cells for place in places):
                    values = [_value(cells.get(place)) for place in places]
                    lines.append([row.label, quantity, *values])
        if lines:
            yield f"\n**Table {table.number}. {table.caption}**\n"
            headings = [paper.algorithms[algorithm] for algorithm in algorithms]
            yield from markdown([table.row_header, "", *headings], lines)


def _value(cell: dict[str, Any] | None) -> str:
    return "–" if cell is None else in_words(cell["measured_mean"], cell["measured_std"])


def _document(folder: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((folder / "papers.json").read_text())
    return document


@app.command()
def verdicts(folder: Folder) -> None:
    """Print how many claims of each paper hold, and each claim with what decides."""
    for line in lines_of_verdicts(_document(folder)):
        print(line)


@app.command()
def tables(
    folder: Folder,
    paper: Annotated[
        str, typer.Argument(metavar="PAPER", help="The paper: a name or the path of a YAML file.")
    ],
) -> None:
    """Print the measured values of a paper's tables."""
    for line in lines_of_tables(_document(folder), paper):
        print(line)


if __name__ == "__main__":
    app()
