"""Runs as pictures: throughput over capacity with the delay below, and the plane of both.

Matplotlib comes with the extra `reports`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from quicgym.errors import MissingExtraError
from quicgym.plot_style import (
    BLACK,
    GREY,
    ONE_COLUMN,
    STYLE,
    TWO_COLUMNS,
    Look,
    display_name,
    looks_of,
    looks_of_flows,
)

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SHORTEST_WINDOW_S = 0.1
WINDOWS = 150
"""A rate is the mean over this part of the run, but at least over SHORTEST_WINDOW_S."""
MOST_NAMES = 12
"""The most names in a legend."""
LETTERS_OF_THREE_COLUMNS = 16
"""The longest name with which a legend of three columns fits into one column of a page."""


@dataclass(frozen=True)
class RunTraces:
    """The time series of one run, as `Run.trace` and `Run.queue_trace` return them.

    `hops` is the number of hops that a flow passes forward; a flow that is not there passes all.
    """

    flows: Mapping[str, pd.DataFrame]
    controllers: Mapping[str, str]
    queues: Sequence[pd.DataFrame]
    duration_s: float
    hops: Mapping[str, int] = field(default_factory=dict)


def draw_run(traces: RunTraces) -> Figure:
    """Returns the receiving rate of each flow over the capacity, and the queueing delay with drops.

    Rates are means over the WINDOWS-th part of the run before each moment. The grey area is what
    the bottleneck could have sent. The queueing delay is the time in which the queues of all hops
    would be empty if nothing more arrived; with Wi-Fi, where the queue's rate is not known, it is
    each flow's RTT above its lowest. A cross is a moment with drops. ValueError where there are no
    traces.
    """
    matplotlib, figure_class = _matplotlib()
    if not traces.queues or traces.queues[0].empty:
        raise ValueError("this run has no traces to draw; run it with trace_interval_ms above 0")
    window_s = max(SHORTEST_WINDOW_S, traces.duration_s / WINDOWS)
    looks = looks_of_flows(traces.controllers)
    with matplotlib.rc_context(STYLE):
        figure = figure_class(figsize=(TWO_COLUMNS, 3.4))
        upper, lower = figure.subplots(2, sharex=True, height_ratios=(3, 2))
        _draw_capacity(upper, traces.queues[0], window_s)
        for name, trace in traces.flows.items():
            time, rate = _rate(trace["time_s"], trace["received_bytes"] * 8e-6, window_s)
            look = looks[name]
            controller = traces.controllers[name]
            label = name if controller == name else f"{name}: {display_name(controller)}"
            upper.plot(time, rate, color=look.colour, linestyle=look.dashes, label=label)
        has_drops = _draw_delay(lower, traces, looks)
        upper.set_ylabel("receiving rate (Mbps)")
        upper.set_ylim(bottom=0)
        lower.set_xlabel("time (s)")
        lower.set_xlim(0, traces.duration_s)
        figure.align_ylabels()
        _legend(figure, [upper], has_drops)
        figure.draw_without_rendering()  # while the style holds
    return figure


def draw_plane(runs: Iterable[Mapping[str, Any]]) -> Figure:
    """Returns goodput over queueing delay: a mark and an ellipse for each controller.

    Runs have the keys controller, goodput_mbps and mean_queue_delay_ms, in ms, and may have
    `next_to`, the other controllers on the network; ValueError where none has both numbers. The
    mark is the mean over the runs. The ellipse is the 1-σ contour of the normal distribution with
    the runs' mean and covariance, as Winstein and Balakrishnan (SIGCOMM 2013) draw it; a single run
    has none. The delay decreases to the right, so up and right is better. Both axes begin at 0, so
    that a difference of a percent looks like one.
    """
    matplotlib, figure_class = _matplotlib()
    points: dict[str, list[tuple[float, float]]] = {}
    labels: dict[str, str] = {}
    for run in runs:
        place = (run.get("mean_queue_delay_ms"), run.get("goodput_mbps"))
        if place[0] is None or place[1] is None:
            continue
        name, others = run["controller"], run.get("next_to", ())
        # Next to others a controller keeps its colour and gets another style, as by parameters.
        key = f"{name}:next to {', '.join(others)}" if others else name
        next_to = f" next to {', '.join(map(display_name, others))}" if others else ""
        labels[key] = display_name(name) + next_to
        points.setdefault(key, []).append((float(place[0]), float(place[1])))
    if not points:
        raise ValueError("no run has goodput_mbps and mean_queue_delay_ms, which the plane shows")
    looks = looks_of(points)
    with matplotlib.rc_context(STYLE):
        longest = max(map(len, labels.values()))
        columns = 3 if longest <= LETTERS_OF_THREE_COLUMNS else 2
        rows = -(-len(points) // columns)
        figure = figure_class(figsize=(ONE_COLUMN, 2.6 + 0.16 * rows))
        axes = figure.subplots()
        for key, places in points.items():
            _draw_ellipse(axes, np.array(places), looks[key], labels[key])
        axes.set_xlim(0, 1.05 * max(axes.get_xlim()[1], 1e-3))
        axes.set_ylim(0, 1.05 * max(axes.get_ylim()[1], 1e-3))
        axes.invert_xaxis()
        axes.set_xlabel("mean queueing delay (ms)")
        axes.set_ylabel("goodput (Mbps)")
        axes.annotate(
            "better", xy=(0.22, 0.2), xytext=(0.1, 0.1), xycoords="axes fraction",
            color=GREY, fontsize=7, ha="center", va="top",
            arrowprops={"arrowstyle": "->", "color": GREY, "linewidth": 0.8},
        )  # fmt: skip
        figure.legend(loc="outside lower center", ncols=columns)
        figure.draw_without_rendering()
    return figure


OVERVIEW = {
    "reward": "reward",
    "goodput_mbps": "goodput of\na flow (Mbps)",
    "mean_queue_delay_ms": "queueing\ndelay (ms)",
    "loss_percent": "loss (%)",
    "jain": "Jain's index",
}
"""Metrics of the overview, and the labels of their axes."""


def draw_overview(runs: Iterable[Mapping[str, Any]]) -> Figure:
    """Returns all networks at once: by controller a dot for each network in each metric.

    Runs have the keys controller and scenario, and some of OVERVIEW. A dot is the mean over the
    seeds. The bar is the median of the networks.
    """
    matplotlib, figure_class = _matplotlib()
    by_name: dict[str, list[Mapping[str, Any]]] = {}
    for run in runs:
        by_name.setdefault(run["controller"], []).append(run)
    looks = looks_of(by_name)
    with matplotlib.rc_context(STYLE):
        figure = figure_class(figsize=(TWO_COLUMNS, 0.8 + 0.24 * len(by_name)))
        panels = figure.subplots(1, len(OVERVIEW), sharey=True)
        for axes, (metric, label) in zip(panels, OVERVIEW.items(), strict=True):
            for place, (name, of_name) in enumerate(by_name.items()):
                by_network: dict[str, list[float]] = {}
                for run in of_name:
                    if run.get(metric) is not None:
                        by_network.setdefault(run["scenario"], []).append(run[metric])
                values = [np.mean(of_seeds) for of_seeds in by_network.values()]
                axes.plot(
                    values, [place] * len(values), linestyle="none", marker="o", markersize=3.5,
                    color=looks[name].colour, alpha=0.35, markeredgewidth=0,
                )  # fmt: skip
                if values:
                    axes.plot(np.median(values), place, marker="|", markersize=10,
                              markeredgewidth=1.6, color=looks[name].colour)  # fmt: skip
            axes.set_xlabel(label)
            axes.xaxis.set_major_locator(matplotlib.ticker.MaxNLocator(3))
        panels[0].set_yticks(range(len(by_name)), map(display_name, by_name))
        panels[0].set_ylim(len(by_name) - 0.5, -0.5)
        figure.draw_without_rendering()
    return figure


def draw_episodes(
    series: Mapping[str, pd.DataFrame], *, base_rtt_ms: float | None = None
) -> Figure:
    """Returns what several policies did on one path: throughput over capacity, RTT, and window.

    `series` has by policy a row for each decision, with the columns time_s, throughput_mbps,
    capacity_mbps, rtt_ms and flow_window_bytes of `info`; ValueError where it is empty. Throughput
    is that of all flows together, its mean over the WINDOWS-th part of the episode before each
    moment. In a chain it and the capacity are means over the hops, see `per_hop`. The RTT is that
    of all flows since the last decision, and the line under it is `base_rtt_ms`, the least that
    propagation takes. The window is that of the first agent's flow.
    """
    matplotlib, figure_class = _matplotlib()
    if not series:
        raise ValueError("no episode to draw")
    series = {name: per_hop(rows) for name, rows in series.items()}
    longest = max(series.values(), key=len)
    end_s = float(longest["time_s"].max())
    window_s = max(SHORTEST_WINDOW_S, end_s / WINDOWS)
    looks = looks_of(series)
    with matplotlib.rc_context(STYLE):
        figure = figure_class(figsize=(TWO_COLUMNS, 4.4))
        upper, middle, lower = figure.subplots(3, sharex=True, height_ratios=(3, 2, 2))
        _draw_capacity(upper, longest, window_s)
        for name, rows in series.items():
            time = rows["time_s"].to_numpy()
            style = {"color": looks[name].colour, "linestyle": looks[name].dashes}
            # An episode's first decision is as long as the second.
            lengths = np.diff(time, prepend=2 * time[0] - time[1] if len(time) > 1 else 0.0)
            megabits = np.cumsum(rows["throughput_mbps"].to_numpy() * lengths)
            upper.plot(*_rate(time, megabits, window_s), **style, label=display_name(name))
            middle.plot(time, rows["rtt_ms"].to_numpy(), **style)
            lower.plot(time, rows["flow_window_bytes"].to_numpy() / 1e3, **style)
        upper.set_ylabel("throughput (Mbps)")
        upper.set_ylim(bottom=0)
        middle.set_ylabel("RTT (ms)")
        if base_rtt_ms is not None:
            middle.axhline(base_rtt_ms, color=GREY, linewidth=0.8, label="base RTT")
        lower.set_ylabel("window (kB)")
        lower.set_ylim(bottom=0)
        lower.set_xlabel("time (s)")
        lower.set_xlim(0, end_s)
        figure.align_ylabels()
        _legend(figure, [upper, middle], False)
        figure.draw_without_rendering()
    return figure


def per_hop(series: pd.DataFrame) -> pd.DataFrame:
    """Returns the series of an episode with the means over the hops of throughput and capacity.

    `info` has the sum of the capacities of a chain, but the throughput of a flow once, however many
    hops it passes. Here a flow counts at each of them. Without `Run.series_table`'s attribute
    `hops` there is one hop.
    """
    hops = series.attrs.get("hops", 1)
    if hops == 1:
        return series
    capacity = series["capacity_mbps"] / hops
    carried = series["throughput_share"] * np.average(capacity, weights=series["step_s"])
    return series.assign(capacity_mbps=capacity, throughput_mbps=carried)


def _matplotlib() -> tuple[Any, type[Figure]]:
    try:
        import matplotlib.ticker
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtraError("pictures of runs need Matplotlib", "reports") from error
    return matplotlib, Figure


def _rate(time: Any, total: Any, window_s: float) -> tuple[np.ndarray, np.ndarray]:
    """Returns the mean increase of a total per second in the window before each moment."""
    times, totals = np.asarray(time, float), np.asarray(total, float)
    before = np.interp(times - window_s, times, totals, left=0.0)
    return times, (totals - before) / window_s


def _draw_capacity(axes: Axes, queue: pd.DataFrame, window_s: float) -> None:
    time = queue["time_s"].to_numpy()
    megabits = np.cumsum(queue["capacity_mbps"].to_numpy() * np.diff(time, prepend=0.0))
    # The mean over the first moments is not over a whole window.
    before = np.interp(time - window_s, np.insert(time, 0, 0.0), np.insert(megabits, 0, 0.0))
    rate = (megabits - before) / np.minimum(window_s, time)
    time, rate = np.insert(time, 0, 0.0), np.insert(rate, 0, rate[0])
    axes.fill_between(time, rate, color="#e3e3e3", linewidth=0, label="capacity", zorder=0)


def _draw_delay(axes: Axes, traces: RunTraces, looks: Mapping[str, Look]) -> bool:
    """Draws the delay and the drops; returns whether there are any."""
    time = traces.queues[0]["time_s"].to_numpy()
    delay = np.sum([queue["delay_ms"].to_numpy() for queue in traces.queues], axis=0)
    by_queue = not np.isnan(delay).all()
    if by_queue:
        axes.plot(time, delay, color=BLACK, linewidth=0.8)
        axes.set_ylabel("queueing\ndelay (ms)")
    else:
        axes.set_ylabel("RTT above the\nlowest (ms)")
    has_drops = False
    for name, trace in traces.flows.items():
        moments = trace["time_s"].to_numpy()
        look = looks[name]
        if by_queue:
            heights = np.interp(moments, time, delay)
        else:
            heights = (trace["rtt_ms"] - trace["rtt_ms"].min()).to_numpy()
            axes.plot(moments, heights, color=look.colour, linestyle=look.dashes)
        dropping = np.diff(trace["dropped_packets"].to_numpy(dtype=float), prepend=0.0) > 0
        has_drops |= bool(dropping.any())
        axes.plot(
            moments[dropping],
            heights[dropping],
            linestyle="none",
            marker="x",
            markersize=3.5,
            markeredgewidth=0.8,
            color=look.colour,
            clip_on=False,
        )
    axes.set_ylim(bottom=0)
    return has_drops


def _legend(figure: Figure, panels: Sequence[Axes], has_drops: bool) -> None:
    from matplotlib.lines import Line2D

    named = [axes.get_legend_handles_labels() for axes in panels]
    handles, labels = ([*chain.from_iterable(parts)] for parts in zip(*named, strict=True))
    if len(handles) > MOST_NAMES:
        more = len(handles) - MOST_NAMES
        handles, labels = handles[:MOST_NAMES], labels[:MOST_NAMES]
        handles.append(Line2D([], [], linestyle="none"))
        labels.append(f"and {more} more")
    if has_drops:
        handles.append(Line2D([], [], linestyle="none", marker="x", markersize=3.5, color=GREY))
        labels.append("drops")
    figure.legend(handles, labels, loc="outside right upper")


def _draw_ellipse(axes: Axes, places: np.ndarray, look: Look, name: str) -> None:
    from matplotlib.patches import Ellipse

    mean = places.mean(axis=0)
    axes.plot(
        *mean, linestyle="none", marker=look.marker, markersize=4, color=look.colour,
        markerfacecolor=look.colour if look.style == 0 else "white",
    )  # fmt: skip
    if len(places) > 1:
        lengths, directions = np.linalg.eigh(np.cov(places.T, ddof=0))
        width, height = 2.0 * np.sqrt(np.maximum(lengths, 0.0))
        angle = float(np.degrees(np.arctan2(directions[1, 0], directions[0, 0])))
        for fill in (True, False):
            axes.add_patch(
                Ellipse(
                    tuple(mean),
                    width,
                    height,
                    angle=angle,
                    fill=fill,
                    facecolor=look.colour,
                    edgecolor=look.colour,
                    linestyle="solid" if fill else look.dashes,
                    linewidth=0 if fill else 1.1,
                    alpha=0.15 if fill else 1.0,
                )  # fmt: skip
            )
    # A line as long as a legend needs to show the style.
    axes.plot([], [], color=look.colour, linestyle=look.dashes, marker=look.marker, markersize=4,
              markerfacecolor=look.colour if look.style == 0 else "white", label=name)  # fmt: skip
