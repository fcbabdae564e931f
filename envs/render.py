"""Pictures of a running episode: throughput, RTT, queue, window and reward over time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from quicgym.errors import MissingExtraError
from quicgym.plot_style import BLUE, GREEN, GREY, ORANGE, STYLE, VERMILION

try:
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
except ImportError as error:
    raise MissingExtraError("pictures of episodes need Matplotlib", "reports") from error

RENDER_MODES = ("rgb_array", "human")
REWARD = "reward"
"""Key of the decision interval's reward, next to the columns of `info`."""
_PANELS: tuple[tuple[str, tuple[tuple[str, str, str], ...]], ...] = (
    ("rate (Mbps)", (("capacity_mbps", "capacity", GREY),
                     ("flow_throughput_mbps", "throughput", BLUE),
                     ("flow_pacing_rate_mbps", "pacing rate", ORANGE))),
    ("RTT (ms)", (("flow_rtt_ms", "RTT", VERMILION),)),
    ("queue (kB)", (("queue_bytes", "bottleneck", GREEN),
                    ("flow_access_queue_bytes", "access link", ORANGE))),
    ("window (kB)", (("flow_window_bytes", "window", BLUE),
                     ("flow_in_flight_bytes", "in flight", ORANGE))),
    ("reward", ((REWARD, "reward", GREEN),)),
)  # fmt: skip
_PICTURE_STYLE: dict[Any, Any] = {
    "figure.constrained_layout.use": False,
    "axes.autolimit_mode": "round_numbers",
    "axes.xmargin": 0.0,
    "axes.ymargin": 0.0,
}


class EpisodePlot:
    """Draws what `info` said at each decision of an episode.

    Axes end at round numbers, so they stay the same over many decisions. An array then takes them
    from the picture before, and only the curves are drawn. "human" shows a window; RuntimeError
    where there is no display.
    """

    def __init__(self, render_mode: str) -> None:
        """Prepares an empty picture."""
        if render_mode not in RENDER_MODES:
            raise ValueError(
                f"render_mode = {render_mode!r}: give {', '.join(RENDER_MODES)}, or None"
            )
        self._window = render_mode == "human"
        if self._window:
            import matplotlib.pyplot as plt

            if matplotlib.get_backend().lower() == "agg":
                raise RuntimeError(
                    "render_mode = 'human': matplotlib finds no display (backend agg); "
                    "use render_mode='rgb_array', or set MPLBACKEND where there is a display"
                )
            self.figure = plt.figure(figsize=(6.4, 7.2))
        else:
            self.figure = Figure(figsize=(6.4, 7.2), dpi=80)
            FigureCanvasAgg(self.figure)
        with matplotlib.rc_context({**STYLE, **_PICTURE_STYLE}):
            self._axes = list(self.figure.subplots(len(_PANELS), sharex=True))
            # A curve on the edge of its axes, such as an empty queue, is seen in full.
            drawn: dict[str, Any] = {} if self._window else {"animated": True, "clip_on": False}
            self._lines = []
            for axes, (label, curves) in zip(self._axes, _PANELS, strict=True):
                axes.set_ylabel(label)
                for key, name, colour in curves:
                    scale = 1e-3 if "(kB)" in label else 1.0
                    (line,) = axes.plot([], [], label=name, linewidth=1, color=colour, **drawn)
                    self._lines.append((line, key, scale))
                if len(curves) > 1:
                    axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0))
            self._axes[-1].set_xlabel("time (s)")
        # Where labels and legends are does not depend on the numbers, and so neither do the axes.
        self.figure.subplots_adjust(left=0.11, right=0.82, top=0.95, bottom=0.07, hspace=0.15)
        self.figure.align_ylabels()
        self._rows: list[dict[str, Any]] = []
        self._hops = 1
        self._without_curves: tuple[Any, Any] | None = None  # title and limits, and the pixels

    def begin(self, info: dict[str, Any], title: str = "", hops: int = 1) -> None:
        """Starts over with the first info of an episode, its title, and the number of its hops.

        The capacity is drawn as the mean over the hops.
        """
        self._hops = hops
        self._rows = [{REWARD: math.nan, **info}]
        self._axes[0].set_title(title, loc="left", fontsize=9)
        for axes in self._axes:
            axes.set_ylim(0.0, 1.0, auto=True)  # of a panel without a number yet

    def go_on(self, rows: Sequence[dict[str, Any]], title: str = "", hops: int = 1) -> None:
        """Starts over with all rows of an episode so far, one at least."""
        self.begin(rows[0], title, hops)
        self._rows += rows[1:]

    def add(self, info: dict[str, Any], reward: float = math.nan) -> None:
        """Adds what a step returned."""
        self._rows.append({REWARD: reward, **info})

    @property
    def rows(self) -> tuple[dict[str, Any], ...]:
        """The rows of the episode that it was given so far."""
        return tuple(self._rows)

    def draw(self) -> np.ndarray | None:
        """Returns the picture, shape (height, width, 3) of uint8; a window is updated instead."""
        times = [row["time_s"] for row in self._rows]
        for line, key, unit in self._lines:
            scale = unit / self._hops if key == "capacity_mbps" else unit
            line.set_data(times, [row[key] * scale for row in self._rows])
        with matplotlib.rc_context(_PICTURE_STYLE):
            for axes in self._axes:
                axes.relim()
                axes.autoscale_view()
        if self._window:
            import matplotlib.pyplot as plt

            plt.pause(0.001)
            return None
        canvas = self.figure.canvas
        assert isinstance(canvas, FigureCanvasAgg)
        shown = (self._axes[0].get_title(loc="left"), [axes.viewLim.bounds for axes in self._axes])
        if self._without_curves is None or self._without_curves[0] != shown:
            canvas.draw()  # leaves out the curves, which are animated
            self._without_curves = (shown, canvas.copy_from_bbox(self.figure.bbox))
        canvas.restore_region(self._without_curves[1])
        for axes in self._axes:
            for line in axes.lines:
                axes.draw_artist(line)
        return np.asarray(canvas.buffer_rgba())[..., :3].copy()

    def close(self) -> None:
        """Closes the window."""
        if self._window:
            import matplotlib.pyplot as plt

            plt.close(self.figure)
