"""The papers' tables with our values next to theirs, and one table of everything measured."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from rich import box
from rich.table import Table

from quicgym.benchmarks.papers.measurements import (
    Measurements,
    Run,
    mean_and_deviation,
    split,
)
from quicgym.benchmarks.papers.paper import Paper, PrintedTable, TableRow, Variation
from quicgym.envs.simulation.metrics import METRICS
from quicgym.plot_style import display_name


def _cell(numbers: Sequence[float], metric: str) -> str:
    if not numbers:
        return "–"
    mean, deviation = mean_and_deviation(numbers)
    digits = 3 if metric in ("jain", "reward") else 2
    if 0 < abs(mean) < 0.1:
        digits = 4  # of a loss of 0.0284% two decimals would say nothing
    if len(numbers) == 1:
        return f"{mean:.{digits}f}"
    return f"{mean:.{digits}f}±{deviation:.{digits}f}"


def _range(numbers: Sequence[float]) -> str:
    if not numbers:
        return "–"
    return f"{min(numbers):.2f}–{max(numbers):.2f}"


def _table(title: str) -> Table:
    return Table(
        title=title,
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        show_edge=False,
        padding=(0, 1, 0, 0),
    )


def paper_table(
    table: PrintedTable,
    paper: Paper,
    measured: Measurements,
    engine_of: Callable[[str], str],
    *,
    ratio: bool = False,
    variations: Sequence[Variation] = (),
) -> Table | None:
    """Returns one table of a paper, the paper's values below ours.

    Where no run belongs to it only the paper's are shown; None where it prints none either.

    `engine_of` returns the engine that counts, by scenario, and `ratio` adds ours divided by the
    printed value. Each of `variations` has a line, and one for the range of its alternatives, whose
    scenarios are those of `variations.comparable` and `variations.alternatives`.
    """
    columns = table.algorithms or tuple(paper.algorithms)

    def there(row: TableRow, name: str) -> bool:
        return bool(measured.runs(row.scenario, name, engine_of(row.scenario)))

    shown = [name for name in columns if any(there(row, name) for row in table.rows)]
    rows = [row for row in table.rows if any(there(row, name) for name in shown)]
    if not rows:
        rows = [row for row in table.rows if row.values]
        shown = [name for name in columns if any(name in row.values for row in rows)]
    if not rows:
        return None
    output = _table(f"{title_of(table.number)}: {table.caption}")
    several = len(table.metrics) > 1  # of a single one the caption says what it is
    output.add_column(table.row_header.replace(" (", "\n("))
    for _ in ("quantity", "source") if several else ("source",):
        output.add_column("")
    for name in shown:
        output.add_column(paper.algorithms.get(name, name), justify="right")
    for row in rows:
        label_lines = row.label.replace(", ", ",\n").splitlines()
        for word, metric in table.metrics.items():
            for source, cells in _sources(
                table, row, metric, shown, measured, engine_of(row.scenario), ratio, variations
            ):
                label = label_lines.pop(0) if label_lines else ""
                output.add_row(label, *([word] if several else []), source, *cells)
                word = ""
        output.add_section()
    return output


def title_of(number: str) -> str:
    """Returns "Table 2"; what is not printed as a table has its own word, such as "Figure 7"."""
    return number if " " in number else f"Table {number}"


def _sources(
    table: PrintedTable,
    row: TableRow,
    metric: str,
    shown: Sequence[str],
    measured: Measurements,
    engine: str,
    ratio: bool,
    variations: Sequence[Variation],
) -> Iterable[tuple[str, list[str]]]:
    lines = [("ours", row.scenario)]
    lines += [
        (str(variation.source), f"{row.scenario}--{variation.source}") for variation in variations
    ]
    for source, scenario in lines:
        cells = [measured.values(scenario, name, engine, metric) for name in shown]
        if any(cells):
            yield source, [_cell(numbers, split(metric)[0]) for numbers in cells]
    for variation in variations:
        if variation.alternatives is None:
            continue
        scenarios = [
            f"{row.scenario}--{variation.source}-{number}"
            for number in range(len(variation.alternatives.fields))
        ]
        ranges = [
            [
                number
                for scenario in scenarios
                for number in measured.values(scenario, name, engine, metric)
            ]
            for name in shown
        ]
        if any(ranges):
            yield "range", [_range(numbers) for numbers in ranges]
            yield "mean", [_cell([float(np.mean(n))] if n else [], metric) for n in ranges]
    printed = [table.printed(row, name, metric) for name in shown]
    if not any(printed):
        return
    yield "paper", [number or "–" for number in printed]
    if ratio and any(measured.values(row.scenario, name, engine, metric) for name in shown):
        yield (
            "ratio",
            [
                f"{mean_and_deviation(numbers)[0] / float(number):.2f}"
                if number and float(number) != 0 and numbers
                else "–"
                for number, numbers in zip(
                    printed,
                    (measured.values(row.scenario, name, engine, metric) for name in shown),
                    strict=True,
                )
            ],
        )


def measurement_tables(runs: Sequence[Run], mixed: Container[str] = ()) -> Iterator[Table]:
    """Yields, per scenario and engine, every metric of every controller.

    A cell is mean±standard deviation over the seeds. Flows have columns of their own where their
    controllers differ, and in the scenarios `mixed`.
    """
    shown = [entry for entry in METRICS.values() if entry.scope in ("flow", "run") or entry.traffic]
    for scenario, engine in dict.fromkeys((run["scenario"], run["engine"]) for run in runs):
        here = [run for run in runs if (run["scenario"], run["engine"]) == (scenario, engine)]
        output = _table(f"{scenario} ({'ns-3' if engine == 'ns3' else engine})")
        output.add_column("all flows" if len(here[0]["flows"]) > 1 else "", min_width=24)
        columns = list(_columns(here, by_flow=scenario in mixed))
        for heading, _ in columns:
            output.add_column(heading, justify="right", min_width=10)
        for metric in (entry for entry in shown if entry.name in here[0]):
            cells = (
                [entry[metric.name] for entry in entries if entry.get(metric.name) is not None]
                for _, entries in columns
            )
            output.add_row(metric.title, *(_cell(numbers, metric.name) for numbers in cells))
        yield output


def _columns(
    runs: Sequence[Run], *, by_flow: bool
) -> Iterator[tuple[str, list[Mapping[str, Any]]]]:
    """Yields heading and one entry per seed: a controller's runs; mixed flows one by one, too."""
    for controller in dict.fromkeys(run["controller"] for run in runs):
        seeds = [run for run in runs if run["controller"] == controller]
        flows = seeds[0]["flows"]
        alike = len({flow["controller"] for flow in flows}) == 1
        yield display_name(controller) if alike else "all", list(seeds)
        if alike and not by_flow:
            continue
        for index, flow in enumerate(flows):
            entries = [run["flows"][index] for run in seeds]
            yield f"{flow['name']}\n{flow['controller']}", entries
