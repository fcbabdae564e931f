"""Two runs side by side as a film: packets in the queue, the rate that arrives, and windows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.animation import FuncAnimation, PillowWriter
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from quicgym.console import count_of
from quicgym.envs.simulation.plots import RunTraces, per_hop
from quicgym.output_folders import write_atomically
from quicgym.plot_style import GREY, STYLE, Look, display_name, looks_of, shades

FRAMES = 90
FRAMES_PER_SECOND = 10
SIZE = (7.2, 4.0)
"""Inches."""
DOTS_PER_INCH = 100
RATE_WINDOWS = 60
"""A rate is the mean over this part of the film before each moment."""
ROWS, COLUMNS = 5, 40
"""Squares in the picture of the queue. Each stands for as many packets as the queue needs."""
SQUARE = 20
"""Points squared, the area of one."""
CAPACITY = "#e3e3e3"


@dataclass(frozen=True)
class Take:
    """One side of the animation."""

    name: str
    time_s: np.ndarray
    queue_packets: np.ndarray
    megabits: np.ndarray
    """Received by all flows since the start, in a chain the mean of what each hop carried of it."""
    capacity_megabits: np.ndarray
    """What the bottleneck could have sent since the start, in a chain the mean over the hops."""
    windows: Sequence[tuple[np.ndarray, np.ndarray]]
    """The times in s and the windows in kB of each flow."""

    @classmethod
    def of_run(cls, name: str, traces: RunTraces) -> Take:
        """Returns the take of a run, with the windows of all its flows."""
        time, hops = traces.queues[0]["time_s"].to_numpy(), len(traces.queues)
        capacity_mbps = np.mean([queue["capacity_mbps"] for queue in traces.queues], axis=0)
        return cls(
            name,
            time,
            np.sum([queue["packets"].to_numpy(float) for queue in traces.queues], axis=0),
            np.sum(
                [
                    np.interp(time, trace["time_s"], trace["received_bytes"] * 8e-6, left=0.0)
                    * (traces.hops.get(flow, hops) / hops)
                    for flow, trace in traces.flows.items()
                ],
                axis=0,
            ),
            np.cumsum(capacity_mbps * np.diff(time, prepend=0.0)),
            [
                (trace["time_s"].to_numpy(), trace["window_bytes"].to_numpy() / 1e3)
                for trace in traces.flows.values()
            ],
        )

    @classmethod
    def of_episode(cls, name: str, series: pd.DataFrame) -> Take:
        """Returns the take of an episode that an evaluation kept, with the first agent's window."""
        series = per_hop(series)
        time, lengths = series["time_s"].to_numpy(), series["step_s"].to_numpy()
        return cls(
            name,
            time,
            series["queue_packets"].to_numpy(),
            np.cumsum(series["throughput_mbps"].to_numpy() * lengths),
            np.cumsum(series["capacity_mbps"].to_numpy() * lengths),
            [(time, series["flow_window_bytes"].to_numpy() / 1e3)],
        )


def write_film(takes: Sequence[Take], path: Path, *, frames: int = FRAMES) -> None:
    """Writes the takes side by side as a GIF that starts again at its end."""
    end_s = max(float(take.time_s[-1]) for take in takes)
    moments = np.linspace(end_s / frames, end_s, frames)
    window_s = end_s / RATE_WINDOWS
    most_packets = max(1.0, *(float(np.nanmax(take.queue_packets)) for take in takes))
    packets_in_a_square = int(np.ceil(most_packets / (ROWS * COLUMNS)))
    looks = looks_of(take.name for take in takes)
    style = {**STYLE, "font.size": 9, "savefig.dpi": DOTS_PER_INCH}
    with matplotlib.rc_context(style):
        figure = Figure(figsize=SIZE, dpi=DOTS_PER_INCH)
        panels = figure.subplots(
            3, len(takes), sharex="row", sharey="row", height_ratios=(1.2, 3, 3), squeeze=False
        )
        sides = [
            _Side(take, looks[take.name], panels[:, column], packets_in_a_square, moments, window_s)
            for column, take in enumerate(takes)
        ]
        panels[1, 0].set_ylabel("rate (Mbps)")
        panels[2, 0].set_ylabel("window (kB)")
        for axes in panels[1:].flat:
            axes.set_xlim(0, end_s)
            axes.set_ylim(bottom=0)
            axes.locator_params(nbins=4)
        for axes in panels[1]:
            axes.tick_params(labelbottom=False)
        figure.align_ylabels()
        figure.draw_without_rendering()  # the layout of the last moment is that of all
        figure.set_layout_engine("none")

        def show(frame: int) -> list[Any]:
            return [artist for side in sides for artist in side.show(frame)]

        film = FuncAnimation(figure, show, frames=frames)

        def write(new: Path) -> None:
            gif = new.with_suffix(".gif")  # Pillow takes the format from the name
            film.save(gif, writer=PillowWriter(fps=FRAMES_PER_SECOND))
            gif.rename(new)

        write_atomically({path: write})


class _Side:
    """One take in its column of panels: the queue, the rate, the windows."""

    def __init__(
        self,
        take: Take,
        look: Look,
        panels: Iterable[Axes],
        packets_in_a_square: int,
        moments: np.ndarray,
        window_s: float,
    ) -> None:
        self._moments = moments
        self._packets = np.interp(moments, take.time_s, np.nan_to_num(take.queue_packets))
        self._in_a_square = packets_in_a_square
        queue, rate, window = panels
        queue.set_title(
            display_name(take.name), color=look.colour, weight="bold", fontsize=11, loc="left"
        )
        queue.set_axis_off()
        queue.set_xlim(-0.7, COLUMNS - 0.3)
        queue.set_ylim(-0.7, ROWS - 0.3)
        places = np.arange(ROWS * COLUMNS)
        # The first packet in the queue is at the right, where the link begins.
        x, y = COLUMNS - 1 - places // ROWS, places % ROWS
        self._places = np.column_stack([x, y])
        queue.scatter(x, y, s=SQUARE, marker="s", color="#f0f0f0", linewidths=0)
        self._squares = queue.scatter(x, y, s=SQUARE, marker="s", color=look.colour, linewidths=0)
        self._count = queue.set_title("0 packets in the queue", loc="right", color=GREY, fontsize=9)
        rates = _rates(take.time_s, take.megabits, moments, window_s)
        capacity = _rates(take.time_s, take.capacity_megabits, moments, window_s)
        rate.fill_between(moments, capacity, color=CAPACITY, linewidth=0)
        rate.text(moments[-1], 0, "capacity ", ha="right", va="bottom", color=GREY)
        (line,) = rate.plot(moments, rates, color=look.colour, linewidth=1.4)
        self._lines = [(line, rates)]
        for of_flow, shade in zip(take.windows, shades(look, len(take.windows)), strict=True):
            values = np.interp(moments, *of_flow, left=np.nan)
            (line,) = window.plot(moments, values, color=shade.colour)
            self._lines.append((line, values))
        window.set_xlabel("time (s)")

    def show(self, frame: int) -> list[Any]:
        """Shows the moment of a frame; returns what has changed."""
        packets = round(float(self._packets[frame]))
        self._squares.set_offsets(self._places[: -(-packets // self._in_a_square)])
        self._count.set_text(f"{count_of(packets, 'packet')} in the queue")
        for line, values in self._lines:
            line.set_data(self._moments[: frame + 1], values[: frame + 1])
        return [self._squares, self._count, *(line for line, _ in self._lines)]


def _rates(
    time_s: np.ndarray, total: np.ndarray, moments: np.ndarray, window_s: float
) -> np.ndarray:
    """Returns the mean increase of a total per second in the window before each moment."""
    times, totals = np.insert(time_s, 0, 0.0), np.insert(total, 0, 0.0)
    before = np.interp(moments - window_s, times, totals)
    return (np.interp(moments, times, totals) - before) / np.minimum(moments, window_s)
