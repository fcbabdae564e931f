"""The papers' figures as PNG files, and the time series of every scenario."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from quicgym import controllers
from quicgym.benchmarks.runner import Job
from quicgym.benchmarks.tables import Run, mean_and_deviation, values
from quicgym.configs import PaperTables

# Okabe and Ito's palette, which colour-blind readers can tell apart too.
PALETTE = (
    "#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#000000", "#F0E442",
)  # fmt: skip
HATCHES = ("", "///", "...", "xxx", "\\\\\\", "|||", "---", "+++")
THROUGHPUT_WINDOW_S = 0.5

STYLE: dict[Any, Any] = {
    "figure.dpi": 150,
    "savefig.dpi": 150,
    "figure.constrained_layout.use": True,
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "lines.linewidth": 1.2,
    "legend.frameon": False,
    "hatch.linewidth": 0.5,
}


@dataclass(frozen=True)
class Series:
    """A quantity over time."""

    file: str
    title: str
    label: str
    of_trace: Callable[[pd.DataFrame, int], tuple[np.ndarray, np.ndarray]]
    """From a flow's trace and its datagram size to times in s and values."""


def _window(trace: pd.DataFrame, datagram_bytes: int) -> tuple[np.ndarray, np.ndarray]:
    return trace["time_s"].to_numpy(), trace["window_bytes"].to_numpy() / datagram_bytes


def _rtt(trace: pd.DataFrame, datagram_bytes: int) -> tuple[np.ndarray, np.ndarray]:
    known = trace[trace["rtt_ms"] > 0]
    return known["time_s"].to_numpy(), known["rtt_ms"].to_numpy()


def _throughput(trace: pd.DataFrame, datagram_bytes: int) -> tuple[np.ndarray, np.ndarray]:
    """What reached the receiver in the THROUGHPUT_WINDOW_S before each moment, in Mbps."""
    time = trace["time_s"].to_numpy()
    received = trace["received_bytes"].to_numpy().astype(float)
    if len(time) < 2:
        return time, np.zeros_like(time)
    before = np.interp(time - THROUGHPUT_WINDOW_S, time, received, left=0.0)
    return time, (received - before) * 8e-6 / THROUGHPUT_WINDOW_S


WINDOW = Series("figure-2-window", "window", "congestion window (packets)", _window)
RTT = Series("figure-3-rtt", "RTT", "RTT (ms)", _rtt)
THROUGHPUT = Series("figure-4-throughput", "throughput", "receiving rate (Mbps)", _throughput)
ALL_SERIES = (WINDOW, RTT, THROUGHPUT)
BARS = (
    (5, 2, 3, "figure-5-bandwidth"),
    (6, 4, 5, "figure-6-delay"),
    (8, 6, 7, "figure-8-flows"),
)
"""Figure, its table of rates, its table of loss, its file."""


def colour(controller: str) -> str:
    """Returns the same colour for a controller in every figure."""
    return PALETTE[_place(controller) % len(PALETTE)]


def line_style(controller: str) -> Any:
    """Returns solid and dashed in turn: a curve on top of an equal one does not hide it."""
    return ("-", (0, (4, 2)))[_place(controller) % 2]


def _place(controller: str) -> int:
    names = [entry.name for entry in controllers.catalogue()]
    return names.index(controller) if controller in names else len(names)


def draw_all(
    jobs: Sequence[Job], runs: Sequence[Run], paper: PaperTables, engine: str, folder: Path
) -> list[Path]:
    """Draws every figure that the runs have data for; returns the files.

    Args:
        jobs: What was run on `engine`; the time series come from those that kept a trace.
        runs: All metrics, for the bar charts.
        paper: The paper whose figures are drawn.
        engine: The engine to draw.
        folder: Where the PNG files go.
    """
    matplotlib.use("Agg")
    folder.mkdir(parents=True, exist_ok=True)
    traced: dict[str, list[Job]] = {}
    for job in jobs:
        paths = _trace_paths(job)
        if job.engine == engine and paths and all(path.exists() for path in paths):
            traced.setdefault(job.scenario.name, []).append(job)
    files = []
    with matplotlib.rc_context(STYLE):
        for scenario, scenario_jobs in traced.items():
            files.append(_draw_scenario(scenario_jobs, paper, folder / f"{scenario}.png"))
        if "ebcc-single" in traced:
            for series in ALL_SERIES:
                file = folder / f"{series.file}.png"
                files.append(_draw_series(traced["ebcc-single"], series, paper, file))
        several = [name for name in ("ebcc-flows-3", "ebcc-flows-5") if name in traced]
        if several:
            file = folder / "figure-9-throughput.png"
            files.append(_draw_mean_throughput([traced[name] for name in several], paper, file))
        for number, rates, loss, name in BARS:
            file = folder / f"{name}.png"
            if _draw_bars(number, rates, loss, runs, paper, engine, file):
                files.append(file)
    return files


def _trace_paths(job: Job) -> list[Path]:
    paths = [job.trace_path(name) for name, _ in job.scenario.single_flows()]
    return [path for path in paths if path is not None]


def _label(controller: str | None, paper: PaperTables) -> str:
    return paper.controllers.get(controller or "", controller or "flows' own controllers")


def _save(figure: Figure, file: Path) -> Path:
    figure.savefig(file)
    return file


def _flow_series(job: Job, series: Series) -> list[tuple[np.ndarray, np.ndarray]]:
    sizes = [
        flow.max_datagram_bytes or job.scenario.max_datagram_bytes
        for _, flow in job.scenario.single_flows()
    ]
    return [
        series.of_trace(pd.read_parquet(path), size)
        for path, size in zip(_trace_paths(job), sizes, strict=True)
    ]


def _plot(axes: Axes, job: Job, series: Series, paper: PaperTables, style: Any = "-") -> None:
    flows = _flow_series(job, series)
    own_names = job.controller is None
    for index, ((name, flow), (time, value)) in enumerate(
        zip(job.scenario.single_flows(), flows, strict=True)
    ):
        label = f"{name}: {flow.controller}" if own_names else _label(job.controller, paper)
        axes.plot(
            time,
            value,
            color=PALETTE[index % len(PALETTE)] if own_names else colour(job.controller or ""),
            linestyle=style,
            alpha=1.0 if len(flows) == 1 else 0.65,
            label=label if own_names or index == 0 else None,
        )


def _time_axis(axes: Axes, job: Job, series: Series) -> None:
    axes.set_xlabel("time (s)")
    axes.set_ylabel(series.label)
    axes.set_xlim(0, job.scenario.duration_s)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_ylim(bottom=0)


def _draw_series(jobs: Sequence[Job], series: Series, paper: PaperTables, file: Path) -> Path:
    figure = Figure(figsize=(6.4, 3.4))
    axes = figure.add_subplot()
    for job in jobs:
        _plot(axes, job, series, paper, style=line_style(job.controller or ""))
    _time_axis(axes, jobs[0], series)
    number = re.findall(r"\d+", series.file)[0]
    axes.set_title(f"As the eBCC paper's Figure {number}: {series.title} of one stream", loc="left")
    axes.legend(ncols=2)
    return _save(figure, file)


def _draw_scenario(jobs: Sequence[Job], paper: PaperTables, file: Path) -> Path:
    """Window, RTT and throughput under one another, one column per controller."""
    figure = Figure(figsize=(max(6.4, 2.6 * len(jobs)), 6.0))
    axes = figure.subplots(len(ALL_SERIES), len(jobs), sharex=True, sharey="row", squeeze=False)
    for column, job in enumerate(jobs):
        for row, series in enumerate(ALL_SERIES):
            _plot(axes[row, column], job, series, paper)
            axes[row, column].set_xlim(0, job.scenario.duration_s)
            axes[row, column].set_ylim(bottom=0)
        axes[0, column].set_title(_label(job.controller, paper))
        axes[-1, column].set_xlabel("time (s)")
        if job.controller is None:
            axes[0, column].legend()
    for row, series in enumerate(ALL_SERIES):
        axes[row, 0].set_ylabel(series.label)
    figure.suptitle(f"{jobs[0].scenario.name}, seed {jobs[0].seed}")
    return _save(figure, file)


def _draw_mean_throughput(
    scenarios: Sequence[Sequence[Job]], paper: PaperTables, file: Path
) -> Path:
    figure = Figure(figsize=(4.6 * len(scenarios), 3.4))
    all_axes = figure.subplots(1, len(scenarios), squeeze=False)[0]
    for axes, jobs in zip(all_axes, scenarios, strict=True):
        for job in jobs:
            flows = _flow_series(job, THROUGHPUT)
            times = max((time for time, _ in flows), key=len)  # a flow's begin with the flow
            axes.plot(
                times,
                np.mean([np.interp(times, time, value, left=0) for time, value in flows], axis=0),
                color=colour(job.controller or ""),
                linestyle=line_style(job.controller or ""),
                label=_label(job.controller, paper),
            )
        _time_axis(axes, jobs[0], THROUGHPUT)
        axes.set_ylabel("mean receiving rate of the flows (Mbps)")
        count = len(list(jobs[0].scenario.single_flows()))
        axes.set_title(f"As the eBCC paper's Figure 9: {count} streams", loc="left")
    all_axes[0].legend(ncols=2)
    return _save(figure, file)


def _draw_bars(
    number: int,
    rate_table: int,
    loss_table: int,
    runs: Sequence[Run],
    paper: PaperTables,
    engine: str,
    file: Path,
) -> bool:
    """Receiving rate and loss, ours as bars and the paper's values as marks; False: no data."""
    by_number = {table.number: table for table in paper.tables}
    panels: list[tuple[Any, str, str]] = [
        (by_number[rate_table], "receive_rate_mbps", "receiving rate (Mbps)"),
        (by_number[loss_table], "loss_percent", "packet loss (%)"),
    ]
    names = [name for name in paper.controllers if any(run["controller"] == name for run in runs)]
    figure = Figure(figsize=(9.2, 3.6))
    all_axes = figure.subplots(1, len(panels))
    for axes, (table, metric, label) in zip(all_axes, panels, strict=True):
        rows = [
            row
            for row in table.rows
            if all(values(runs, row.scenario, name, engine, metric) for name in names)
        ]
        if not rows or not names:
            return False
        width = 0.8 / len(names)
        for index, name in enumerate(names):
            places = np.arange(len(rows)) + (index - (len(names) - 1) / 2) * width
            statistics = [
                mean_and_deviation(values(runs, row.scenario, name, engine, metric)) for row in rows
            ]
            axes.bar(
                places,
                [mean for mean, _ in statistics],
                0.92 * width,
                yerr=[deviation for _, deviation in statistics],
                color=colour(name),
                edgecolor="white",
                hatch=HATCHES[_place(name) % len(HATCHES)],
                error_kw={"elinewidth": 0.8, "capsize": 2},
                label=paper.controllers[name],
            )
            axes.plot(
                places,
                [float(table.printed(row, name, metric) or "nan") for row in rows],
                linestyle="none",
                marker="D",
                markersize=4,
                markerfacecolor="white",
                markeredgecolor="black",
                markeredgewidth=0.8,
                label="printed in the paper" if index == len(names) - 1 else None,
            )
        axes.set_xticks(range(len(rows)), [row.label.replace(", ", "\n") for row in rows])
        axes.set_xlabel(table.row_header)
        axes.set_ylabel(label)
        axes.grid(visible=False, axis="x")
    all_axes[0].set_title(f"As the eBCC paper's Figure {number}: ours and printed", loc="left")
    handles, labels = all_axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels))
    _save(figure, file)
    return True
