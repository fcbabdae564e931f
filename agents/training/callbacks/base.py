"""What the callbacks of a training have in common."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

from stable_baselines3.common.callbacks import BaseCallback, CallbackList


class RunCallback(BaseCallback):
    """A callback that can go on from a checkpoint, and has something to do at the end of a run."""

    def resume(self, state: Mapping[str, Any]) -> None:
        """Takes over from a checkpoint."""

    def finish(self) -> None:
        """Does what is left to do after the last update; not called where training has failed."""

    def _on_step(self) -> bool:
        return True


class PeriodicCallback(RunCallback):
    """Acts at the first rollout, at the first one after each interval of steps, and at the end.

    Args:
        interval_steps: Between two times.
    """

    def __init__(self, interval_steps: int) -> None:
        """Is due at once."""
        super().__init__()
        self._interval_steps = interval_steps
        self._next_step = 0
        self._last_step = -1

    @abstractmethod
    def act(self, step: int) -> None:
        """Does what is due after so many steps."""

    def resume(self, state: Mapping[str, Any]) -> None:
        """Counts from the checkpoint's step, at which everything due has been done."""
        self._last_step = state["step"]
        self._next_step = self._last_step + self._interval_steps

    def finish(self) -> None:
        """Acts once more if there were steps since the last time."""
        if self.num_timesteps > self._last_step:
            self.act(self.num_timesteps)

    def _on_rollout_start(self) -> None:
        if self.num_timesteps >= self._next_step:
            self._last_step = self.num_timesteps
            self._next_step = self._last_step + self._interval_steps
            self.act(self._last_step)


class RunCallbacks(CallbackList):
    """Callbacks of a run, in the order in which they act."""

    def __init__(self, callbacks: list[RunCallback]) -> None:
        """Takes the callbacks."""
        super().__init__(list(callbacks))
        self._parts = callbacks

    def resume(self, state: Mapping[str, Any]) -> None:
        """Takes over from a checkpoint."""
        for callback in self._parts:
            callback.resume(state)

    def finish(self) -> None:
        """Does what is left to do after the last update."""
        for callback in self._parts:
            callback.finish()
