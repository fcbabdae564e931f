"""The papers' figures as data: what to draw, before figures.py draws it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

import numpy as np
import pandas as pd

from quicgym.agents.evaluation.jobs import RunJob
from quicgym.benchmarks.papers.measurements import Measurements, mean_and_deviation
from quicgym.benchmarks.papers.paper import Figure, Paper
from quicgym.envs.scenarios.flows import Flow
from quicgym.envs.scenarios.words import network_in_words
from quicgym.envs.simulation.run import flow_traces
from quicgym.output_folders import read_parquet
from quicgym.plot_style import Look, display_name, looks_of, looks_of_flows, shades

THROUGHPUT_WINDOW_S = 0.5
PANELS_IN_A_ROW = 2
MOST_FLOWS = 100
"""In a panel with a line for each flow."""


@dataclass(frozen=True)
class Line:
    """A quantity over time."""

    label: str | None
    """None: another line of the same label has it."""
    look: Look
    time_s: np.ndarray
    values: np.ndarray


@dataclass(frozen=True)
class Bars:
    """One algorithm's bars, one per group; nan where nothing was measured or printed."""

    label: str
    look: Look
    means: list[float]
    deviations: list[float]
    printed: list[float]
    seeds: int
    """Over which mean and standard deviation are taken."""


@dataclass(frozen=True)
class Panel:
    """One pair of axes: lines over time, or bars in groups."""

    title: str
    x_label: str
    y_label: str
    lines: list[Line] = field(default_factory=list)
    duration_s: float = 0.0
    lowest_y: float | None = 0.0
    """Where the y axis begins; None: where the lines do."""
    base_rtt_ms: float | None = None
    """Is drawn as a line in a panel of RTTs."""
    groups: list[str] = field(default_factory=list)
    bars: list[Bars] = field(default_factory=list)


@dataclass(frozen=True)
class Drawing:
    """A figure: rows of panels. The panels of a row have one y axis where `share_y` says so."""

    file: str
    caption: str
    """Text that stands next to the figure, not in it."""
    panels: list[list[Panel]]
    share_y: bool = False
    networks: str = ""
    """The network and runs behind a figure of a paper, as a sentence."""

    @property
    def error_bars(self) -> str | None:
        """The meaning of the error bars; None if there are none."""
        seeds = {bars.seeds for panels in self.panels for panel in panels for bars in panel.bars}
        if not seeds or max(seeds) == 1:
            return None
        count = f"{min(seeds)}" if len(seeds) == 1 else f"{min(seeds)} to {max(seeds)}"
        return f"± 1 standard deviation, n = {count} seeds"


@dataclass(frozen=True)
class _Series:
    title: str
    label: str
    of_trace: Callable[[pd.DataFrame, int], tuple[np.ndarray, np.ndarray]]
    """From a flow's trace and its datagram size to times in s and values."""

    @property
    def mean_label(self) -> str:
        """The label of the mean over the flows, with the unit at the end."""
        return "mean " + self.label.replace(" (", " of the flows (")


def _window(trace: pd.DataFrame, datagram_bytes: int) -> tuple[np.ndarray, np.ndarray]:
    return trace["time_s"].to_numpy(), trace["window_bytes"].to_numpy() / datagram_bytes


def _rtt(trace: pd.DataFrame, datagram_bytes: int) -> tuple[np.ndarray, np.ndarray]:
    known = trace[trace["rtt_ms"] > 0]
    return known["time_s"].to_numpy(), known["rtt_ms"].to_numpy()


def _throughput(trace: pd.DataFrame, datagram_bytes: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns the rate at the receiver in the THROUGHPUT_WINDOW_S before each moment, in Mbps."""
    time = trace["time_s"].to_numpy()
    received = trace["received_bytes"].to_numpy().astype(float)
    if len(time) < 2:
        return time, np.zeros_like(time)
    before = np.interp(time - THROUGHPUT_WINDOW_S, time, received, left=0.0)
    return time, (received - before) * 8e-6 / THROUGHPUT_WINDOW_S


SERIES = {
    "window": _Series("window", "congestion window (packets)", _window),
    "rtt": _Series("RTT", "RTT (ms)", _rtt),
    "throughput": _Series("throughput", "receiving rate (Mbps)", _throughput),
}


def figure_drawing(
    figure: Figure,
    paper: Paper,
    measured: Measurements,
    traced: dict[str, list[RunJob]],
    engine_of: Callable[[str], str],
) -> Drawing | None:
    """Returns a figure of a paper; None where there is no data for it.

    `traced` has by scenario the jobs that kept their time series, and `engine_of` returns the
    engine whose values are drawn.
    """
    algorithms = figure.algorithms or tuple(paper.algorithms)
    if figure.over_time:
        rows = _rows_over_time(figure, paper, traced, algorithms)
    else:
        panels = [
            _bar_panel(figure, label, metric, algorithms, paper, measured, engine_of)
            for label, metric in figure.bars.items()
        ]
        rows = [panels] if any(panel.bars for panel in panels) else []
    if not rows:
        return None
    return Drawing(
        f"{paper.name}-figure-{figure.number}-{figure.name}",
        f"Figure {figure.number}: {figure.caption}",
        rows,
        share_y=bool(figure.over_time),
        networks=_networks(figure, traced),
    )


def _networks(figure: Figure, traced: Mapping[str, Sequence[RunJob]]) -> str:
    """Returns the sentence of the paths; bars are means over seeds, which `error_bars` says."""
    if not figure.over_time:
        return f"Paths: {', '.join(dict.fromkeys(row.scenario for row in figure.rows))}."
    paths = [
        f"{name} ({network_in_words(traced[name][0].scenario)})"
        for name in figure.scenarios
        if name in traced
    ]
    return f"Paths: {', '.join(paths)}, seed 0."


def _rows_over_time(
    figure: Figure, paper: Paper, traced: dict[str, list[RunJob]], algorithms: Sequence[str]
) -> list[list[Panel]]:
    """A panel per scenario where it has a line per algorithm; otherwise a panel per algorithm."""
    assert figure.over_time is not None
    series = SERIES[figure.over_time]
    panels = []
    for name in figure.scenarios:
        jobs = [job for job in traced.get(name, ()) if job.steering in (None, *algorithms)]
        if not jobs:
            continue
        if figure.mean_of_flows or figure.difference_to:
            title = jobs[0].scenario.description if len(figure.scenarios) > 1 else ""
            panel = _time_panel(
                {job: read_traces(job) for job in jobs},
                series,
                paper,
                mean=figure.mean_of_flows,
                title=title,
                all_jobs=jobs,
            )
            if figure.difference_to:
                panel = _differences(panel, paper.algorithms[figure.difference_to])
            panels.append(panel)
            continue
        for job in jobs:
            heading = _label(job, paper)
            if len(figure.scenarios) > 1:
                heading = f"{heading}, {job.scenario.description}"
            traces = {job: read_traces(job, MOST_FLOWS)}
            panels.append(
                _time_panel(traces, series, paper, mean=False, title=heading, all_jobs=jobs)
            )
    starts = range(0, len(panels), PANELS_IN_A_ROW)
    return [panels[start : start + PANELS_IN_A_ROW] for start in starts]


def _differences(panel: Panel, reference: str) -> Panel:
    """Returns the panel with each line minus the reference's, which is left out."""
    lines = {line.label: line for line in panel.lines}
    if reference not in lines:
        return panel
    base = lines.pop(reference)
    differing = [
        replace(line, values=line.values - np.interp(line.time_s, base.time_s, base.values))
        for line in lines.values()
    ]
    label = f"{panel.y_label}\nminus that of {reference}"
    return replace(panel, lines=differing, y_label=label, lowest_y=None, base_rtt_ms=None)


def scenario_drawing(jobs: Sequence[RunJob]) -> Drawing:
    """Returns window, RTT and throughput under one another, one column per controller."""
    traces = {job: read_traces(job, MOST_FLOWS) for job in jobs}
    rows = [
        [
            _time_panel(
                {job: flows},
                series,
                None,
                mean=False,
                title="" if number else _label(job, None),
                all_jobs=jobs,
            )
            for job, flows in traces.items()
        ]
        for number, series in enumerate(SERIES.values())
    ]
    scenario, flows = jobs[0].scenario, sum(flow.count for flow in jobs[0].scenario.flows)
    caption = (
        f"Congestion window, RTT and receiving rate of each flow on {scenario.name} "
        f"({network_in_words(scenario)}), a column for each controller, seed {jobs[0].seed}"
    )
    if flows > MOST_FLOWS:
        caption += f", the first {MOST_FLOWS} of {flows:,} flows"
    return Drawing(scenario.name, caption, rows, share_y=True)


def with_traces(jobs: Sequence[RunJob], engine_of: Callable[[str], str]) -> dict[str, list[RunJob]]:
    """Returns, by scenario, the jobs whose time series are on disk."""
    traced: dict[str, list[RunJob]] = {}
    for job in jobs:
        path = job.trace_file
        if path is None or not path.exists():
            continue
        if job.engine == engine_of(job.scenario.name):
            traced.setdefault(job.scenario.name, []).append(job)
    return traced


def _label(job: RunJob, paper: Paper | None) -> str:
    """Returns the heading of a job's controller, in a paper's figure as the paper calls it."""
    if job.shown is None:
        return "flows' own controllers"
    if paper is not None and job.shown in paper.algorithms:
        return paper.algorithms[job.shown]
    return display_name(job.shown)


def read_traces(job: RunJob, most: int | None = None) -> list[pd.DataFrame]:
    """Returns the time series of a job's first `most` flows, or of all, that are on disk."""
    assert job.trace_file is not None
    return [*flow_traces(read_parquet(job.trace_file), most).values()]


def _time_panel(
    traces: Mapping[RunJob, Sequence[pd.DataFrame]],
    series: _Series,
    paper: Paper | None,
    *,
    mean: bool,
    title: str,
    all_jobs: Sequence[RunJob],
) -> Panel:
    """Returns a panel with the lines of some runs; `all_jobs` are those of the figure."""
    lines = []
    looks = looks_of(job.shown or "" for job in traces)
    for job, of_flows in traces.items():
        label, look = _label(job, paper), looks[job.shown or ""]
        models = [*islice(job.scenario.single_flows(), len(of_flows))]
        flows = [
            series.of_trace(
                trace if mean else _until_its_end(trace, flow),
                flow.max_datagram_bytes or job.scenario.max_datagram_bytes,
            )
            for trace, (_, flow) in zip(of_flows, models, strict=True)
        ]
        if mean:
            times = max((time for time, _ in flows), key=len)  # a flow's begin with the flow
            values = [np.interp(times, time, value, left=0) for time, value in flows]
            flows = [(times, np.mean(values, axis=0))]
            names, drawn = [label], [look]
        elif any(flow.controller for _, flow in models):
            # By the label, which one entry of the legend has for all panels.
            labelled = {name: of for each in all_jobs for name, of in _labelled(each).items()}
            looks_of_labels = looks_of_flows(labelled)
            names = [*islice(_labelled(job), len(flows))]
            drawn = [looks_of_labels[name] for name in names]
        else:
            names, drawn = [label] * len(flows), shades(look, len(flows))
        shown: set[str] = set()
        for (time, value), name, one in zip(flows, names, drawn, strict=True):
            lines.append(Line(None if name in shown else name, one, time, value))
            shown.add(name)
    scenario = next(iter(traces)).scenario
    return Panel(
        title,
        "time (s)",
        series.mean_label if mean else series.label,
        lines,
        scenario.duration_s,
        lowest_y=None if series is SERIES["rtt"] else 0.0,
        base_rtt_ms=scenario.base_rtt_ms if series is SERIES["rtt"] else None,
    )


def _labelled(job: RunJob) -> dict[str, str]:
    """Returns the controller of each flow of a run, by the label that names both."""
    own = {name: flow.controller or job.shown or "" for name, flow in job.scenario.single_flows()}
    return {f"{name}: {display_name(controller)}": controller for name, controller in own.items()}


def _until_its_end(trace: pd.DataFrame, flow: Flow) -> pd.DataFrame:
    """Returns a flow's time series without what stays as it was after the flow has stopped."""
    return trace if flow.stop_s is None else trace[trace["time_s"] <= flow.stop_s]


def _bar_panel(
    figure: Figure,
    label: str,
    metric: str,
    algorithms: Sequence[str],
    paper: Paper,
    measured: Measurements,
    engine_of: Callable[[str], str],
) -> Panel:
    bars = []
    looks = looks_of(algorithms)
    for name in algorithms:
        numbers = [
            measured.values(row.scenario, name, engine_of(row.scenario), metric)
            for row in figure.rows
        ]
        if not any(numbers):
            continue
        statistics = [mean_and_deviation(entry) if entry else (np.nan, 0.0) for entry in numbers]
        printed = (paper.printed(row.scenario, name, metric) for row in figure.rows)
        bars.append(
            Bars(
                paper.algorithms.get(name, name),
                looks[name],
                [mean for mean, _ in statistics],
                [deviation for _, deviation in statistics],
                [np.nan if number is None else number for number in printed],
                max(map(len, numbers)),
            )
        )
    return Panel("", "", label, groups=[row.label for row in figure.rows], bars=bars)
