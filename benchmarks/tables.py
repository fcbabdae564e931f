"""The papers' tables with our values beside them, and one table of everything measured."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from rich import box
from rich.table import Table

from quicgym.configs import PaperTables, PrintedTable, TableRow
from quicgym.envs.result import METRICS

Run = dict[str, Any]

ROW_LABELS = {
    "send_rate_mbps": "sending rate (Mbps)",
    "receive_rate_mbps": "receiving rate (Mbps)",
    "goodput_mbps": "goodput (Mbps)",
    "loss_percent": "loss (%)",
    "mean_rtt_ms": "mean RTT (ms)",
    "p95_rtt_ms": "95th percentile RTT (ms)",
    "mean_queue_delay_ms": "queueing delay (ms)",
    "jain": "Jain's index",
}


def values(
    runs: Iterable[Run], scenario: str, controller: str, engine: str, metric: str
) -> list[float]:
    """Returns a metric of all seeds that have it."""
    wanted = (scenario, controller, engine)
    return [
        run[metric]
        for run in runs
        if (run["scenario"], run["controller"], run["engine"]) == wanted and run[metric] is not None
    ]


def mean_and_deviation(numbers: Sequence[float]) -> tuple[float, float]:
    """Returns mean and sample standard deviation; the deviation of a single number is 0."""
    return float(np.mean(numbers)), float(np.std(numbers, ddof=1)) if len(numbers) > 1 else 0.0


def _cell(numbers: Sequence[float], metric: str) -> str:
    if not numbers:
        return "–"
    digits = 3 if metric == "jain" else 2
    mean, deviation = mean_and_deviation(numbers)
    if len(numbers) == 1:
        return f"{mean:.{digits}f}"
    return f"{mean:.{digits}f}±{deviation:.{digits}f}"


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
    table: PrintedTable, paper: PaperTables, runs: Sequence[Run], engine: str
) -> Table | None:
    """Returns one table of a paper: ours, the paper's and ns-3's values under one another.

    Args:
        table: The printed table.
        paper: The paper that it is in.
        runs: Everything measured.
        engine: The engine of the rows called "ours"; ns-3's row is added where there are runs.

    Returns:
        None where no run belongs to the table.
    """
    shown = [name for name in paper.controllers if any(run["controller"] == name for run in runs)]
    rows = [
        row
        for row in table.rows
        if any(run["scenario"] == row.scenario and run["controller"] in shown for run in runs)
    ]
    if not rows or not shown:
        return None
    output = _table(f"Table {table.number}: {table.caption}")
    several = len(table.metrics) > 1  # of a single one the caption says what it is
    output.add_column(table.row_header.replace(" (", "\n("))
    for _ in ("quantity", "source") if several else ("source",):
        output.add_column("")
    for name in shown:
        output.add_column(paper.controllers[name], justify="right")
    for row in rows:
        label_lines = row.label.replace(", ", ",\n").splitlines()
        for word, metric in table.metrics.items():
            for source, cells in _sources(table, row, metric, shown, runs, engine):
                label = label_lines.pop(0) if label_lines else ""
                output.add_row(label, *([word] if several else []), source, *cells)
                word = ""
        output.add_section()
    return output


def _sources(
    table: PrintedTable,
    row: TableRow,
    metric: str,
    shown: Sequence[str],
    runs: Sequence[Run],
    engine: str,
) -> Iterable[tuple[str, list[str]]]:
    def cells(of_engine: str) -> list[str]:
        return [
            _cell(values(runs, row.scenario, name, of_engine, metric), metric) for name in shown
        ]

    yield ("ours" if engine == "native" else "ns-3"), cells(engine)
    cross_check = engine == "native" and row.scenario == table.cross_check
    if cross_check and any(run["engine"] == "ns3" for run in runs):
        yield "ns-3", cells("ns3")
    yield "paper", [table.printed(row, name, metric) or "–" for name in shown]


def measurement_tables(runs: Sequence[Run], names: Mapping[str, str]) -> Iterator[Table]:
    """Yields, per scenario and engine, every metric of every controller.

    Args:
        runs: Everything measured; a cell is mean±standard deviation over the seeds.
        names: Column headings of controllers that have another than their own name.
    """
    for scenario, engine in dict.fromkeys((run["scenario"], run["engine"]) for run in runs):
        here = [run for run in runs if (run["scenario"], run["engine"]) == (scenario, engine)]
        output = _table(f"{scenario} ({'ns-3' if engine == 'ns3' else engine})")
        output.add_column("mean of the flows" if len(here[0]["flows"]) > 1 else "", min_width=24)
        columns = list(_columns(here, names))
        for heading, _ in columns:
            output.add_column(heading, justify="right", min_width=10)
        for metric in METRICS:
            cells = (
                [entry[metric] for entry in entries if entry.get(metric) is not None]
                for _, entries in columns
            )
            output.add_row(ROW_LABELS[metric], *(_cell(numbers, metric) for numbers in cells))
        yield output


def _columns(
    runs: Sequence[Run], names: Mapping[str, str]
) -> Iterator[tuple[str, list[Mapping[str, Any]]]]:
    """Yields heading and one entry per seed: a controller's runs; mixed flows one by one, too."""
    for controller in dict.fromkeys(run["controller"] for run in runs):
        seeds = [run for run in runs if run["controller"] == controller]
        flows = seeds[0]["flows"]
        if len({flow["controller"] for flow in flows}) == 1:
            yield names.get(controller, controller), list(seeds)
            continue
        yield "all", list(seeds)
        for index, flow in enumerate(flows):
            entries = [run["flows"][index] for run in seeds]
            yield f"{flow['name']}\n{flow['controller']}", entries
