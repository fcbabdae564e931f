"""Pictures of a running episode: throughput, RTT, queue and window over time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from quicgym.errors import MissingExtraError

try:
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
except ImportError as error:
    raise MissingExtraError("pictures of episodes need Matplotlib", "reports") from error

RENDER_MODES = ("rgb_array", "human")
_PANELS: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = (
    ("Mbps", (("flow_throughput_mbps", "throughput"), ("flow_pacing_rate_mbps", "pacing rate"),
              ("capacity_mbps", "capacity"))),
    ("RTT, ms", (("flow_rtt_ms", "RTT"),)),
    ("queue, packets", (("queue_packets", "all flows"),)),
    ("kB", (("flow_window_bytes", "window"), ("flow_in_flight_bytes", "in flight"))),
)  # fmt: skip


class EpisodePlot:
    """Draws what `info` said at each decision of an episode; a line is drawn, not a picture anew.

    Args:
        render_mode: "rgb_array" or "human", which shows a window.

    Attributes:
        figure: Matplotlib's.

    Raises:
        ValueError: Another mode.
        RuntimeError: "human" without a display.
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
        self._axes = list(self.figure.subplots(len(_PANELS), sharex=True))
        self._lines = []
        for axes, (unit, curves) in zip(self._axes, _PANELS, strict=True):
            axes.set_ylabel(unit)
            for key, label in curves:
                scale = 1e-3 if unit == "kB" else 1.0
                self._lines.append((axes.plot([], [], label=label, linewidth=1)[0], key, scale))
            axes.legend(loc="lower right", fontsize="small")
        self._axes[-1].set_xlabel("time, s")
        self.figure.tight_layout()
        self._rows: list[dict[str, Any]] = []

    def begin(self, info: dict[str, Any]) -> None:
        """Starts over with the first info of an episode."""
        self._rows = [info]
        for axes in self._axes:
            axes.set_ylim(0.0, 1.0, auto=True)  # of a panel without a number yet

    def go_on(self, rows: Sequence[dict[str, Any]]) -> None:
        """Starts over with all rows of an episode so far, one at least."""
        self.begin(rows[0])
        self._rows += rows[1:]

    def add(self, info: dict[str, Any]) -> None:
        """Adds what a step returned."""
        self._rows.append(info)

    @property
    def rows(self) -> tuple[dict[str, Any], ...]:
        """What it was told of the episode so far."""
        return tuple(self._rows)

    def draw(self) -> np.ndarray | None:
        """Returns the picture, shape (height, width, 3) of uint8; a window is updated instead."""
        times = [row["time_s"] for row in self._rows]
        for line, key, scale in self._lines:
            line.set_data(times, [row[key] * scale for row in self._rows])
        for axes in self._axes:
            axes.relim()
            axes.autoscale_view()
        if self._window:
            import matplotlib.pyplot as plt

            plt.pause(0.001)
            return None
        canvas = self.figure.canvas
        assert isinstance(canvas, FigureCanvasAgg)
        canvas.draw()
        return np.asarray(canvas.buffer_rgba())[..., :3].copy()

    def close(self) -> None:
        """Closes the window."""
        if self._window:
            import matplotlib.pyplot as plt

            plt.close(self.figure)
