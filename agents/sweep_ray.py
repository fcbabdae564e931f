"""Sweeps on Ray Tune: starting Ray, the trials, their progress, and the way back from a kill."""

from __future__ import annotations

import logging
import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

# Ray reads them when it is imported. Nothing is sent to Ray's makers, there are no tables and
# files but ours, and a trial that has finished is on disk within a second.
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
os.environ["RAY_AIR_NEW_OUTPUT"] = "0"
os.environ["TUNE_DISABLE_AUTO_CALLBACK_LOGGERS"] = "1"
os.environ["TUNE_GLOBAL_CHECKPOINT_S"] = "1"

from quicgym.errors import MissingExtraError

try:
    import optuna
    import ray
    from ray import tune
    from ray.tune.search.optuna import OptunaSearch
except ImportError as error:
    raise MissingExtraError("sweeps need Ray Tune and Optuna") from error

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from quicgym.agents.sweep_config import Setting, SweepConfig, SweptParameter, Value, label
from quicgym.agents.sweep_trial import (
    Encoded,
    FailedTrial,
    FinishedTrial,
    Trials,
    decode,
    run_trial,
    tune_trial,
)
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
    if address is None:
        ray.init(
            "local",
            num_cpus=jobs or os.cpu_count() or 1,
            include_dashboard=False,
            object_store_memory=_OBJECT_STORE_BYTES,
            **quiet,
        )
    else:
        try:
            ray.init(address, **quiet)
        except (ConnectionError, RuntimeError, ValueError) as error:
            raise ScenarioError(
                f"--address {address}: cannot join the Ray cluster "
                f"({str(error).strip().splitlines()[0]}); run the command on one of its machines, "
                "or leave --address away to use this machine alone"
            ) from None
    try:
        yield
    finally:
        ray.shutdown()


@dataclass
class Outcome:
    """What became of the trials, in the order of the sweep."""

    finished: list[FinishedTrial] = field(default_factory=list)
    failed: list[FailedTrial] = field(default_factory=list)
    interrupted: bool = False


class RaySearch:
    """The trials of a sweep on Ray Tune.

    Args:
        config: The sweep.
        trials: Runs one.
        folder: For Ray Tune's state. What is there is gone on with.
        jobs: Trials at the same time; None: what Ray has room for.
    """

    def __init__(self, config: SweepConfig, trials: Trials, folder: Path, jobs: int | None) -> None:
        """Does not run anything yet."""
        self._config = config
        self._trials = trials
        self._folder = folder
        self._jobs = jobs
        self._published = config.published_setting()
        self._values: dict[str, dict[str, Value]] = {
            name: {label(value): value for value in (*(swept.values or ()), self._published[name])}
            for name, swept in config.parameters.items()
        }
        self._outcome = Outcome()

    def run(self) -> Outcome:
        """Runs the listed settings and the published one, or the published one and Optuna's."""
        config = self._config
        if config.search != "optuna":
            settings = config.listed_settings()
            if self._published not in settings:
                settings.append(self._published)
            self._fit(config.search, len(settings), self._listed(settings))
            return self._outcome
        self._fit("published", 1, self._listed([self._published]))
        if not self._outcome.interrupted:
            space = {name: self._domain(name, swept) for name, swept in config.parameters.items()}
            self._fit(
                "optuna",
                config.trials,
                {"trial": {"setting": space}},
                search_alg=OptunaSearch(seed=config.seed),
                metric="objective",
                mode=config.mode,
                num_samples=config.trials,
            )
        return self._outcome

    def confirm(self, settings: Sequence[Setting]) -> list[tuple[float, ...]]:
        """Returns the objective of each setting on each of as many other seeds.

        Raises:
            ray.exceptions.RayError: A run failed that had succeeded with the sweep's own seeds.
        """
        seeds = range(self._config.seeds, 2 * self._config.seeds)
        task = ray.remote(num_cpus=1, max_retries=RETRIES)(run_trial)
        found = ray.get([task.remote(self._trials, setting, seeds) for setting in settings])
        return [tuple(entry["per_seed"]) for entry in found]

    def _listed(self, settings: Sequence[Setting]) -> dict[str, Any]:
        return {
            "trial": tune.grid_search(
                [
                    {"number": number, "setting": self._encode(setting)}
                    for number, setting in enumerate(settings)
                ]
            )
        }

    def _domain(self, name: str, swept: SweptParameter) -> Any:
        if swept.values is not None:
            return tune.choice([label(value) for value in swept.values])
        minimum, maximum = map(float, (swept.minimum or 0, swept.maximum or 0))
        if swept.scale == "whole":
            return tune.randint(int(minimum), int(maximum) + 1)
        return (tune.loguniform if swept.scale == "log" else tune.uniform)(minimum, maximum)

    def _encode(self, setting: Setting) -> Encoded:
        return {
            name: label(value) if label(value) in self._values[name] else float(value)  # type: ignore[arg-type]
            for name, value in setting.items()
        }

    def _fit(self, name: str, count: int, space: dict[str, Any], **search: Any) -> None:
        trainable = tune.with_resources(
            tune.with_parameters(
                tune_trial, trials=self._trials, values=self._values, seeds=self._config.seeds
            ),
            {"cpu": 1},
        )
        folder = self._folder / name
        if tune.Tuner.can_restore(str(folder)):
            tuner = tune.Tuner.restore(str(folder), trainable, restart_errored=True)
        else:
            shutil.rmtree(folder, ignore_errors=True)  # killed before there was anything to keep
            tuner = tune.Tuner(
                trainable,
                param_space=space,
                tune_config=tune.TuneConfig(
                    max_concurrent_trials=self._jobs, reuse_actors=True, **search
                ),
                run_config=tune.RunConfig(
                    name=name,
                    storage_path=str(self._folder),
                    verbose=0,
                    failure_config=tune.FailureConfig(max_failures=RETRIES),
                    callbacks=[_Bar(f"{self._config.name}, {name}", count, self._config.mode)],
                ),
            )
        self._collect(tuner.fit(), count)

    def _collect(self, results: tune.ResultGrid, count: int) -> None:
        self._outcome.interrupted |= len(results) < count
        found = []
        for index in range(len(results)):
            result = results[index]
            assert result.config is not None
            found.append((result.config["trial"], result))
        for trial, result in sorted(found, key=lambda entry: entry[0].get("number", 0)):
            setting = decode(trial["setting"], self._values)
            metrics = result.metrics or {}
            if result.error is not None:
                self._outcome.failed.append(FailedTrial(setting, _reason(result.error)))
            elif "objective" in metrics:
                self._outcome.finished.append(
                    FinishedTrial(
                        setting,
                        metrics["objective"],
                        tuple(metrics["per_seed"]),
                        metrics["episodes"],
                    )
                )
            else:
                self._outcome.interrupted = True


def _reason(error: Exception) -> str:
    """The end of a traceback: the exception's own text, with the notes that were added to it."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    named = [index for index, line in enumerate(lines) if re.match(r"[A-Za-z_][\w.]*: ", line)]
    return "; ".join(lines[named[-1] :] if named else lines[:1])


class _Bar(tune.Callback):
    """Trials done and the best so far, on a terminal's standard error.

    Ray Tune keeps its callbacks on disk and brings them back after a kill, so what is on the screen
    is no part of it.
    """

    def __init__(self, title: str, total: int, mode: str) -> None:
        self._title, self._total, self._mode = title, total, mode
        self._progress: Progress | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_progress": None}

    def setup(self, *arguments: Any, **info: Any) -> None:
        console = Console(stderr=True)
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[best]}"),
            console=console,
            disable=not console.is_terminal,
        )
        self._progress.add_task(self._title, total=self._total, best="")
        self._progress.start()

    def on_step_end(self, iteration: int, trials: list[Any], **info: Any) -> None:
        if self._progress is None or self._progress.disable:
            return
        done = [trial for trial in trials if trial.is_finished()]
        objectives = [
            trial.last_result["objective"] for trial in done if "objective" in trial.last_result
        ]
        best = ""
        if objectives:
            best = f"best {(max if self._mode == 'max' else min)(objectives):.4g}"
        self._progress.update(self._progress.task_ids[0], completed=len(done), best=best)

    def on_experiment_end(self, trials: list[Any], **info: Any) -> None:
        if self._progress is not None:
            self._progress.stop()
