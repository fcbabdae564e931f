"""Trials on Ray Tune: how Ray is started, how trials are run, and their progress.

A trial keeps what it has reached in the folder of the sweep. So nothing depends on Ray's own state:
after a kill Ray Tune starts anew, and the trials themselves continue where they were.
"""

from __future__ import annotations

import logging
import math
import os
import re
import shutil
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import chdir, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# Ray reads them when it is imported. Nothing is sent to Ray's makers, and there are no tables and
# files but ours.
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
os.environ["RAY_AIR_NEW_OUTPUT"] = "0"
os.environ["TUNE_DISABLE_AUTO_CALLBACK_LOGGERS"] = "1"

from quicgym.console import progress_bar
from quicgym.errors import ClusterError, MissingExtraError

try:
    import optuna
    import ray
    from ray import tune
    from ray.tune.search.optuna import OptunaSearch
except ImportError as error:
    raise MissingExtraError("sweeps need Ray Tune and Optuna", "sweep") from error

from rich.progress import TextColumn

from quicgym.agents.tuning.space import Setting, Space, ValueRange, decode, encode, trial_name
from quicgym.ray_cluster import QUIET, interrupted_afterwards, join

RETRIES = 2
_OBJECT_STORE_BYTES = 80 * 2**20  # Ray takes no less than 75 MiB; trials hand over a few kB


@contextmanager
def running_ray(address: str | None, jobs: int | None) -> Iterator[None]:
    """Starts Ray on this machine, or joins a cluster; leaves it at the end.

    ClusterError where the cluster cannot be joined from here, or where Ray here would ask for no
    token.
    """
    mode = os.environ.get("RAY_AUTH_MODE", "token")
    if address is None and mode.lower() != "token":
        raise ClusterError(
            f"RAY_AUTH_MODE = {mode}: Ray listens on all interfaces of this machine, and without "
            "a token everybody there could run code; unset RAY_AUTH_MODE, or set it to token"
        )
    logging.getLogger("ray").setLevel(logging.CRITICAL)
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        if address is not None:
            join(address)
        else:
            # Ray puts the current folder before Python's own modules, in all of its processes.
            with interrupted_afterwards(), chdir("/"):
                try:
                    ray.init(
                        "local",
                        num_cpus=jobs or os.cpu_count() or 1,
                        include_dashboard=False,
                        object_store_memory=_OBJECT_STORE_BYTES,
                        **QUIET,
                    )
                except Exception as error:  # Ray has no type for a start that takes too long
                    reason = (str(error) or type(error).__name__).splitlines()[0]
                    raise ClusterError(
                        f"Ray has not started on this machine ({reason}); run the command again "
                        "when the machine is less busy"
                    ) from error
        yield
    finally:
        ray.shutdown()


@dataclass(frozen=True)
class Plan:
    """The trials of a sweep.

    Attributes:
        title: Words of the progress bar.
        metric: Metric by which trials are compared.
        mode: Whether it is to be high or low: "max" or "min".
        settings: Settings of the trials by their numbers. Those that Optuna chose before a kill are
            among them.
        numbers: Numbers of all trials where Optuna chooses the settings of the others.
        space: Space that Optuna chooses from; None: it does not choose.
        seed: Seed of Optuna's choice.
        steps: Number of steps of a trial, so that one under way counts in part; None: it does not.
    """

    title: str
    metric: str
    mode: str
    settings: Mapping[int, Setting]
    numbers: Sequence[int] = ()
    space: Space | None = None
    seed: int = 0
    steps: int | None = None


def run_trials(
    trainable: Callable[..., Any],
    plan: Plan,
    folder: Path,
    jobs: int | None,
    *,
    given: Mapping[str, Any],
    scheduler: Any = None,
    running: Mapping[str, Any] | None = None,
) -> dict[str, tuple[Setting, str]]:
    """Runs trials; returns the setting and the error of each that failed by its name.

    `trainable` runs a trial on one core: the "trial" of its first argument has number and setting,
    the other arguments are `given`. A metric "error" says that it failed. `jobs` is how many trials
    run at the same time at most; None: as many as there are cores. `running` are other settings of
    Ray's RunConfig. Ray's own files go into `folder`, which is removed.

    KeyboardInterrupt where some trials have not ended: Ray Tune takes Ctrl-C, and ends.
    """
    listed = [{"number": number, "setting": plan.settings[number]} for number in plan.settings]
    count = len(plan.numbers or listed)
    if count == 0:
        return {}
    shutil.rmtree(folder, ignore_errors=True)  # of a sweep that was killed
    if plan.space is None:
        space, search, samples = {"trial": tune.grid_search(listed)}, None, 1
    else:
        space, search, samples = {}, _Optuna(plan, listed), count
    tuner = tune.Tuner(
        tune.with_resources(tune.with_parameters(trainable, **given), {"cpu": 1}),
        param_space=space,
        tune_config=tune.TuneConfig(
            search_alg=search,
            scheduler=scheduler,
            num_samples=samples,
            max_concurrent_trials=jobs,
            reuse_actors=True,
            # Ray's own names have all values in them.
            trial_name_creator=_name_of,
            trial_dirname_creator=_name_of,
        ),
        run_config=tune.RunConfig(
            name=folder.name,
            storage_path=str(folder.parent),
            verbose=0,
            failure_config=tune.FailureConfig(max_failures=RETRIES),
            callbacks=[Bar(plan, count)],
            **(running or {}),
        ),
    )
    handler = signal.getsignal(signal.SIGINT)
    try:
        results = tuner.fit()
    finally:
        signal.signal(signal.SIGINT, handler)  # Ray Tune's own way of taking Ctrl-C ends with it
    failed = {}
    for result in (results[index] for index in range(len(results))):
        metrics = result.metrics or {}
        if result.error is None and not metrics.get("done"):
            raise KeyboardInterrupt
        error = metrics.get("error")
        if result.error is not None:
            error = f"{reason_of(result.error)} (tried {RETRIES + 1} times)"
        if error is not None and result.config is not None:
            failed[Path(result.path).name] = result.config["trial"]["setting"], error
    if len(results) < count:
        raise KeyboardInterrupt
    shutil.rmtree(folder)
    return failed


def _name_of(trial: Any) -> str:
    return trial_name(trial.config["trial"]["number"])


def _domain(field: ValueRange) -> Any:
    if field.values is not None:
        return tune.choice(list(range(len(field.values))))
    minimum, maximum = field.ends
    if field.scale == "whole":
        return tune.randint(int(minimum), int(maximum) + 1)
    return (tune.loguniform if field.scale == "log" else tune.uniform)(minimum, maximum)


def domains(space: Space) -> dict[str, Any]:
    """Returns what Optuna draws settings from, as `space.encode` has them."""
    return {name: _domain(field) for name, field in space.items()}


class _Optuna(OptunaSearch):
    """Settings that Optuna chooses; it first learns again from those that it chose before."""

    def __init__(self, plan: Plan, listed: Sequence[Mapping[str, Any]]) -> None:
        assert plan.space is not None
        super().__init__(
            self.convert_search_space(domains(plan.space)),
            metric=plan.metric,
            mode=plan.mode,
            seed=plan.seed,
            points_to_evaluate=[encode(plan.space, trial["setting"]) for trial in listed],
        )
        self._fields = plan.space
        others = [number for number in plan.numbers if number not in plan.settings]
        self._numbers = [*plan.settings, *others]

    def suggest(self, trial_id: str) -> Any:
        """Called by Ray Tune."""
        chosen: Any = super().suggest(trial_id)
        setting = decode(self._fields, chosen)
        return {"trial": {"number": self._numbers.pop(0), "setting": setting}}


def reason_of(error: Exception) -> str:
    """Returns the end of a traceback: the exception's own text, and the notes added to it."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    named = [index for index, line in enumerate(lines) if re.match(r"[A-Za-z_][\w.]*: ", line)]
    return "; ".join(lines[named[-1] :] if named else lines[:1])


class Bar(tune.Callback):
    """Trials done and the best so far by a metric, on a terminal's standard error."""

    def __init__(self, plan: Plan, count: int) -> None:
        """Shows nothing yet."""
        self._plan, self._count = plan, count

    def setup(self, *arguments: Any, **info: Any) -> None:
        """Called by Ray Tune at the beginning."""
        self._progress = progress_bar(TextColumn("{task.fields[best]}"))
        self._progress.add_task(self._plan.title, total=self._count, best="")
        self._progress.start()

    def on_step_end(self, iteration: int, trials: list[Any], **info: Any) -> None:
        """Called by Ray Tune again and again."""
        if self._progress.disable:
            return
        results = [trial.last_result for trial in trials if self._share(trial)]
        found = [result.get(self._plan.metric, math.nan) for result in results]
        found = [value for value in found if not math.isnan(value)]
        best = f"best {(max if self._plan.mode == 'max' else min)(found):.4g}" if found else ""
        done = sum(map(self._share, trials))
        self._progress.update(self._progress.task_ids[0], completed=done, best=best)

    def _share(self, trial: Any) -> float:
        if trial.is_finished():
            return 1.0
        if self._plan.steps is None:
            return 0.0
        return min(1.0, trial.last_result.get("step", 0) / self._plan.steps)

    def on_experiment_end(self, trials: list[Any], **info: Any) -> None:
        """Called by Ray Tune at the end."""
        self._progress.stop()
