"""Trials on Ray Tune: how Ray is started, how trials are run and resumed, and their progress."""

from __future__ import annotations

import json
import logging
import math
import os
import re
import shutil
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import chdir, contextmanager
from pathlib import Path
from pickle import UnpicklingError
from types import SimpleNamespace
from typing import Any

# Ray reads them when it is imported. Nothing is sent to Ray's makers, there are no tables and
# files but ours, and a trial that has finished is on disk within a second.
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
os.environ["RAY_AIR_NEW_OUTPUT"] = "0"
os.environ["TUNE_DISABLE_AUTO_CALLBACK_LOGGERS"] = "1"
os.environ["TUNE_GLOBAL_CHECKPOINT_S"] = "1"

from quicgym.console import progress_bar, say
from quicgym.errors import ClusterError, MissingExtraError

try:
    import optuna
    import ray
    from ray import tune
    from ray.tune.schedulers import ASHAScheduler
    from ray.tune.search.basic_variant import BasicVariantGenerator
    from ray.tune.search.optuna import OptunaSearch
except ImportError as error:
    raise MissingExtraError("sweeps and searches need Ray Tune and Optuna") from error

from rich.progress import Progress, TextColumn

from quicgym.agents.tuning.space import Space, ValueRange
from quicgym.ray_cluster import QUIET, interrupted_afterwards, join

RETRIES = 2
METRIC = "reward"
"""Metric by which ASHA and population-based training compare the trials of a search."""
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
                ray.init(
                    "local",
                    num_cpus=jobs or os.cpu_count() or 1,
                    include_dashboard=False,
                    object_store_memory=_OBJECT_STORE_BYTES,
                    **QUIET,
                )
        yield
    finally:
        ray.shutdown()


def fit(
    trainable: Callable[..., Any],
    folder: Path,
    space: Mapping[str, Any],
    *,
    bar: Bar,
    complete: str,
    jobs: int | None,
    optuna_seed: int | None = None,
    tuning: Mapping[str, Any] | None = None,
    running: Mapping[str, Any] | None = None,
    **given: Any,
) -> list[tune.Result]:
    """Runs trials, or continues those that the folder holds; returns the outcome of all.

    `trainable` runs a trial on one core; its first argument comes from `space`, the others are
    `given`. `complete` is a key of the metrics that only a trial which came to its end has. `jobs`
    is how many trials are under way at most; None: as many as there are cores. With `optuna_seed`
    Optuna draws from the space. `tuning` and `running` are other settings of Ray's TuneConfig and
    RunConfig.

    KeyboardInterrupt where some trials are not complete: Ray Tune takes Ctrl-C, and ends.
    """
    whole = tune.with_resources(tune.with_parameters(trainable, **given), {"cpu": 1})
    tuner = _restored(folder, whole)
    restored = tuner is not None
    if tuner is None:
        shutil.rmtree(folder, ignore_errors=True)  # killed before there was anything to keep
        most = math.inf if jobs is None else jobs
        search = Grid(most=most) if optuna_seed is None else Optuna(most=most, seed=optuna_seed)
        bar.search = search
        tuner = tune.Tuner(
            whole,
            param_space=dict(space),
            # Ray's own folder names have all values in them.
            tune_config=tune.TuneConfig(
                search_alg=search,
                reuse_actors=True,
                trial_dirname_creator=_short_name,
                **(tuning or {}),
            ),
            run_config=tune.RunConfig(
                name=folder.name,
                storage_path=str(folder.parent),
                verbose=0,
                failure_config=tune.FailureConfig(max_failures=RETRIES),
                callbacks=[bar],
                **(running or {}),
            ),
        )
    handler = signal.getsignal(signal.SIGINT)
    try:
        found = tuner.fit()
    finally:
        signal.signal(signal.SIGINT, handler)  # Ray Tune's own way of taking Ctrl-C ends with it
    results = [found[index] for index in range(len(found))]
    if not all(_is_complete(result, complete) for result in results):
        raise KeyboardInterrupt
    if len(results) != bar.total:
        if not restored:
            raise KeyboardInterrupt
        say(f"{folder}: a kill left Ray's files at odds with one another: all trials begin again")
        shutil.rmtree(folder)
        return fit(
            trainable, folder, space, bar=bar, complete=complete, jobs=jobs,
            optuna_seed=optuna_seed, tuning=tuning, running=running, **given,
        )  # fmt: skip
    return results


def _restored(folder: Path, trainable: Any) -> tune.Tuner | None:
    if not tune.Tuner.can_restore(str(folder)):
        return None
    try:
        return tune.Tuner.restore(str(folder), trainable, restart_errored=True)
    except (EOFError, UnpicklingError):  # torn by a kill, before the first trial
        return None


def _is_complete(result: tune.Result, key: str) -> bool:
    if result.config is None:  # interrupted before it began
        return False
    return result.error is not None or bool((result.metrics or {}).get(key))


def _short_name(trial: Any) -> str:
    return str(trial.trial_id)


def domains(space: Space) -> dict[str, Any]:
    """Returns what Optuna draws settings from, as `space.encode` has them."""
    return {name: _domain(field) for name, field in space.items()}


def _domain(field: ValueRange) -> Any:
    if field.values is not None:
        return tune.choice(list(range(len(field.values))))
    minimum, maximum = field.ends
    if field.scale == "whole":
        return tune.randint(int(minimum), int(maximum) + 1)
    return (tune.loguniform if field.scale == "log" else tune.uniform)(minimum, maximum)


def reason_of(error: Exception) -> str:
    """Returns the end of a traceback: the exception's own text, and the notes added to it."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    named = [index for index, line in enumerate(lines) if re.match(r"[A-Za-z_][\w.]*: ", line)]
    return "; ".join(lines[named[-1] :] if named else lines[:1])


class Limited:
    """Chooses what is tried next by Ray's own list of trials, as long as few enough are under way.

    Ray writes its trials and the state of what chose them into two files, and a kill may leave one
    of them older. Ray would then wait for a trial that has finished, or run one twice.
    """

    def __init__(self, *arguments: Any, most: float, **settings: Any) -> None:
        """Allows `most` trials under way."""
        super().__init__(*arguments, **settings)
        self.most, self.under_way = most, 0
        self.known: set[str] = set()

    def see(self, trials: list[Any]) -> None:
        """Takes the trials that Ray has before it asks for others."""
        self.known = {trial.trial_id for trial in trials}
        self.under_way = sum(not trial.is_finished() for trial in trials)


class Grid(Limited, BasicVariantGenerator):
    """The trials of a grid."""

    def add_configurations(self, experiments: Any) -> None:
        """Called by Ray Tune at the beginning."""
        self.experiments = experiments
        super().add_configurations(experiments)

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Called by Ray Tune after a kill: begins with the first trial, whatever the file says."""
        self.add_configurations(state["experiments"])

    def next_trial(self) -> Any:
        """Called by Ray Tune."""
        if self.under_way >= self.most:
            return None
        trial = super().next_trial()
        while trial is not None and trial.trial_id in self.known:
            trial = super().next_trial()
        self.under_way += trial is not None
        return trial


class Optuna(Limited, OptunaSearch):
    """Settings that Optuna draws."""

    def __init__(self, **settings: Any) -> None:
        """Has drawn nothing yet."""
        super().__init__(**settings)
        self.unfinished: set[str] = set()

    def suggest(self, trial_id: str) -> Any:
        """Called by Ray Tune."""
        if self.under_way >= self.most:
            return None
        setting = super().suggest(trial_id)
        if isinstance(setting, dict):
            self.under_way += 1
            self.unfinished.add(trial_id)
        return setting

    def see(self, trials: list[Any]) -> None:
        """Also tells Optuna of trials that finished just before a kill."""
        super().see(trials)
        for trial in trials:
            if trial.trial_id in self.unfinished and trial.is_finished():
                failed = trial.status == trial.ERROR
                self.on_trial_complete(trial.trial_id, trial.last_result, error=failed)

    def on_trial_complete(
        self, trial_id: str, result: dict[str, Any] | None = None, error: bool = False
    ) -> None:
        """Called by Ray Tune."""
        self.unfinished.discard(trial_id)
        super().on_trial_complete(trial_id, result=result, error=error)


class Asha(ASHAScheduler):
    """Successive halving that keeps its milestones on disk.

    Ray Tune brings trials back after a kill, but no scheduler: what is left of a search would be
    compared with nothing. The file `memory` has all results so far, a line each.
    """

    def __init__(self, memory: Path, *, max_t: int, **settings: Any) -> None:
        """Begins without results."""
        super().__init__(max_t=max_t, **settings)
        self._memory, self._end = memory, max_t
        self._recalled = False

    def on_trial_add(self, tune_controller: Any, trial: Any) -> None:
        """Called by Ray Tune, for restored trials too."""
        if not self._recalled and self._memory.exists():
            self._recall(tune_controller)
        super().on_trial_add(tune_controller, trial)

    def _recall(self, tune_controller: Any) -> None:
        """Tells Ray's scheduler of the results so far, as Ray Tune did before the kill."""
        self._recalled = True
        known: dict[str, Any] = {}
        for line in self._memory.read_text(encoding="utf-8").splitlines():
            try:
                trial_id, step, reward = json.loads(line)
            except ValueError:
                continue  # torn by a kill
            result = {"step": step, METRIC: reward}
            if trial_id not in known:  # their names are all that the scheduler looks at
                known[trial_id] = SimpleNamespace(trial_id=trial_id)
                super().on_trial_add(tune_controller, known[trial_id])
            super().on_trial_result(tune_controller, known[trial_id], result)
            if step >= self._end:
                super().on_trial_complete(tune_controller, known.pop(trial_id), result)

    def on_trial_result(self, tune_controller: Any, trial: Any, result: dict[str, Any]) -> str:
        """Called by Ray Tune."""
        self._recalled = True
        action: str = super().on_trial_result(tune_controller, trial, result)
        entry = [trial.trial_id, result["step"], result[METRIC]]
        with self._memory.open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")
        return action


class Bar(tune.Callback):
    """Trials done and the best so far by a metric, on a terminal's standard error.

    Ray Tune keeps its callbacks on disk and brings them back after a kill, so what is on the screen
    is no part of it. With the number of `steps` of a trial, one under way counts in part.
    """

    def __init__(
        self, title: str, total: int, metric: str, mode: str, steps: int | None = None
    ) -> None:
        """Shows nothing yet."""
        self._title, self.total = title, total
        self._metric, self._mode, self._steps = metric, mode, steps
        self._progress: Progress | None = None
        self.search: Limited | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Leaves the screen out."""
        return {**self.__dict__, "_progress": None}

    def setup(self, *arguments: Any, **info: Any) -> None:
        """Called by Ray Tune at the beginning."""
        self._progress = progress_bar(TextColumn("{task.fields[best]}"))
        self._progress.add_task(self._title, total=self.total, best="")
        self._progress.start()

    def on_step_begin(self, iteration: int, trials: list[Any], **info: Any) -> None:
        """Called by Ray Tune before it asks for trials."""
        if self.search is not None:
            self.search.see(trials)

    def on_step_end(self, iteration: int, trials: list[Any], **info: Any) -> None:
        """Called by Ray Tune again and again."""
        if self._progress is None or self._progress.disable:
            return
        results = [trial.last_result for trial in trials if self._share(trial)]
        found = [result.get(self._metric, math.nan) for result in results]
        found = [value for value in found if not math.isnan(value)]
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
