"""Progress on standard error: a bar in a terminal, and a line for each evaluation."""

from __future__ import annotations

import sys
import time
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn


class TrainingProgress:
    """Shows how far a training is; a context manager, which shows the bar."""

    def __init__(self, name: str, steps: int, begin_step: int) -> None:
        """Makes the bar."""
        self._steps = steps
        self._begin_s, self._begin_step = time.monotonic(), begin_step
        self._console = Console(stderr=True)
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.completed:,} of {task.total:,} steps"),
            TextColumn("{task.fields[rate]}"),
            TimeRemainingColumn(),
            console=self._console,
            disable=not sys.stderr.isatty(),
        )
        self._task = self._bar.add_task(name, total=steps, rate="")

    def __enter__(self) -> TrainingProgress:
        """Shows the bar."""
        self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Ends the bar: full where nothing has failed, else as far as it came."""
        if error is None:
            self._bar.update(self._task, completed=self._steps, rate="")
        self._bar.stop()

    def evaluating(self, what: str) -> None:
        """Says in the bar that episodes are played, and on what."""
        self._bar.update(self._task, rate=f"evaluating on {what}", refresh=True)

    def evaluated(self, step: int, text: str) -> None:
        """Prints the result of an evaluation."""
        line = f"step {step:>12,}  {text}  {self._speed(step)}"
        self._console.print(line, highlight=False, soft_wrap=True)
        self._bar.update(self._task, rate=self._speed(step))

    def at(self, step: int) -> None:
        """Moves the bar to a step."""
        self._bar.update(self._task, completed=step, rate=self._speed(step))

    def steps_per_second(self, step: int) -> float:
        """Returns the mean rate from the beginning until now, at a step."""
        elapsed_s = time.monotonic() - self._begin_s
        return (step - self._begin_step) / max(elapsed_s, 1e-9)

    def _speed(self, step: int) -> str:
        rate = self.steps_per_second(step)
        return f"{rate:,.0f} steps/s" if rate > 0 else ""
