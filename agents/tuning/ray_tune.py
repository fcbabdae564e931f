"""Ray Tune, for sweeps and searches: how Ray is started, what failed, and progress."""

from __future__ import annotations

import logging
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

# Ray reads them when it is imported. Nothing is sent to Ray's makers, there are no tables and
# files but ours, and a trial that has finished is on disk within a second.
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
os.environ["RAY_AIR_NEW_OUTPUT"] = "0"
os.environ["TUNE_DISABLE_AUTO_CALLBACK_LOGGERS"] = "1"
os.environ["TUNE_GLOBAL_CHECKPOINT_S"] = "1"

from quicgym.console import progress_bar
from quicgym.errors import MissingExtraError

try:
    import optuna
    import ray
    from ray import tune
    from ray.tune.search.optuna import OptunaSearch as OptunaSearch
except ImportError as error:
    raise MissingExtraError("sweeps and searches need Ray Tune and Optuna") from error

from rich.progress import Progress, TextColumn

from quicgym.envs import ScenarioError

RayError = ray.exceptions.RayError
"""Ray itself failed, not a trial."""
RETRIES = 2
_CONNECT_S, _HEALTH_S = 5, 15
_OBJECT_STORE_BYTES = 80 * 2**20  # Ray takes no less than 75 MiB; trials hand over a few kB


def check_address(address: str) -> None:
    """Asks a Ray cluster whether it is there: Ray itself would wait for minutes.

    Raises:
        ScenarioError: It is not.
    """
    host, _, port = address.rpartition(":")
    if not host or "/" in host or not port.isdecimal() or not 0 < int(port) < 65536:
        # Not "auto" either: it would join any Ray of this machine, another sweep's too.
        raise ScenarioError(
            f"--address {address}: write HOST:PORT, as `ray start --head` prints it"
        )
    remedy = "start one with `ray start --head`, or leave --address away to use this machine alone"
    try:
        socket.create_connection((host, int(port)), timeout=_CONNECT_S).close()
    except OSError as error:
        raise ScenarioError(
            f"--address {address}: no Ray cluster is there ({error.strerror or error}); {remedy}"
        ) from None
    command = [sys.executable, "-m", "ray.scripts.scripts", "health-check", "--address", address]
    try:
        # In a process of its own, which can be ended: against another server Ray's client hangs.
        done = subprocess.run(command, capture_output=True, text=True, timeout=_HEALTH_S)
    except subprocess.TimeoutExpired:
        raise ScenarioError(
            f"--address {address}: what is there does not answer as a Ray cluster; {remedy}"
        ) from None
    if "AuthenticationError" in done.stderr:
        raise ScenarioError(
            f"--address {address}: the Ray cluster asks for a token; set RAY_AUTH_MODE=token, and "
            "RAY_AUTH_TOKEN or RAY_AUTH_TOKEN_PATH as whoever runs the cluster says"
        )
    if done.returncode:
        raise ScenarioError(f"--address {address}: what is there is no Ray cluster; {remedy}")


@contextmanager
def running_ray(address: str | None, jobs: int | None) -> Iterator[None]:
    """Starts Ray on this machine, or joins a cluster; leaves it at the end.

    Raises:
        ScenarioError: The cluster cannot be joined from here.
    """
    logging.getLogger("ray").setLevel(logging.CRITICAL)
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.CRITICAL}
    try:
        with _interrupted_afterwards():
            if address is None:
                ray.init(
                    "local",
                    num_cpus=jobs or os.cpu_count() or 1,
                    include_dashboard=False,
                    object_store_memory=_OBJECT_STORE_BYTES,
                    **quiet,
                )
            else:
                _join(address, quiet)
        yield
    finally:
        ray.shutdown()


def _join(address: str, quiet: dict[str, Any]) -> None:
    try:
        ray.init(address, **quiet)
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise ScenarioError(
            f"--address {address}: cannot join the Ray cluster "
            f"({str(error).strip().splitlines()[0]}); run the command on one of its machines, "
            "or leave --address away to use this machine alone"
        ) from None


@contextmanager
def _interrupted_afterwards() -> Iterator[None]:
    """Keeps Ctrl-C for the end: Ray crashes where it comes while Ray starts."""
    came = []
    handler = signal.signal(signal.SIGINT, lambda *_: came.append(True))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
    if came:
        raise KeyboardInterrupt


def fit(tuner: tune.Tuner) -> tune.ResultGrid:
    """Runs the trials; Ray Tune's own way of taking Ctrl-C ends with it."""
    handler = signal.getsignal(signal.SIGINT)
    try:
        return tuner.fit()
    finally:
        signal.signal(signal.SIGINT, handler)


def reason_of(error: Exception) -> str:
    """Returns the end of a traceback: the exception's own text, and the notes added to it."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    named = [index for index, line in enumerate(lines) if re.match(r"[A-Za-z_][\w.]*: ", line)]
    return "; ".join(lines[named[-1] :] if named else lines[:1])


class Bar(tune.Callback):
    """Trials done and the best so far, on a terminal's standard error.

    Ray Tune keeps its callbacks on disk and brings them back after a kill, so what is on the screen
    is no part of it.

    Args:
        title: Before the bar.
        total: How many trials there will be.
        metric: Of which the best is shown.
        mode: Whether the best is the "max" or the "min".
        steps: What a trial's `step` ends at: one under way counts in part. None: it does not count.
    """

    def __init__(
        self, title: str, total: int, metric: str, mode: str, steps: int | None = None
    ) -> None:
        """Shows nothing yet."""
        self._title, self._total = title, total
        self._metric, self._mode, self._steps = metric, mode, steps
        self._progress: Progress | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Leaves the screen out."""
        return {**self.__dict__, "_progress": None}

    def setup(self, *arguments: Any, **info: Any) -> None:
        """Called by Ray Tune at the beginning."""
        self._progress = progress_bar(TextColumn("{task.fields[best]}"))
        self._progress.add_task(self._title, total=self._total, best="")
        self._progress.start()

    def on_step_end(self, iteration: int, trials: list[Any], **info: Any) -> None:
        """Called by Ray Tune again and again."""
        if self._progress is None or self._progress.disable:
            return
        results = [trial.last_result for trial in trials if self._share(trial)]
        found = [result[self._metric] for result in results if self._metric in result]
        best = f"best {(max if self._mode == 'max' else min)(found):.4g}" if found else ""
        done = sum(map(self._share, trials))
        self._progress.update(self._progress.task_ids[0], completed=done, best=best)

    def _share(self, trial: Any) -> float:
        if trial.is_finished():
            return 1.0
        if self._steps is None:
            return 0.0
        return min(1.0, trial.last_result.get("step", 0) / self._steps)

    def on_experiment_end(self, trials: list[Any], **info: Any) -> None:
        """Called by Ray Tune at the end."""
        if self._progress is not None:
            self._progress.stop()
