"""Runs many simulations over the cores; every finished one is on disk at once.

runs.jsonl holds one line per finished run: its key (scenario content, controller, engine, seed,
version) and its metrics. A later call with `resume` skips what is there under the same key.
"""

from __future__ import annotations

import json
import multiprocessing
import signal
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from quicgym import __version__, _core, run
from quicgym.console import say
from quicgym.envs import Scenario
from quicgym.envs.conversion import resolve_controllers
from quicgym.envs.scenario import EngineName, read_mahimahi

RUNS_FILE = "runs.jsonl"
TRACES_FOLDER = "traces"


@dataclass(frozen=True, eq=False)
class Job:
    """One simulation to run."""

    scenario: Scenario
    controller: str | None
    """For the flows that name none; None where all of them do."""
    engine: EngineName
    seed: int
    trace_folder: Path | None = None
    """Where to keep the flows' time series; None: nowhere."""

    def __str__(self) -> str:
        """Returns what identifies the run for a reader."""
        return (
            f"scenario {self.scenario.name}, controller {self.controller or 'of each flow'}, "
            f"engine {self.engine}, seed {self.seed}"
        )

    @cached_property
    def key(self) -> str:
        """What identifies the run for --resume: equal keys give equal results."""
        traces = [
            read_mahimahi(link.trace)
            for link in self.scenario.links.values()
            if link.trace is not None
        ]
        parts = [
            self.scenario.model_dump(mode="python", exclude={"description", "source"}),
            traces,
            self.controller,
            self.engine,
            self.seed,
            __version__,
            _core.commit,
        ]
        return sha256(json.dumps(parts, default=str, sort_keys=True).encode()).hexdigest()[:32]

    def trace_path(self, flow: str) -> Path | None:
        """Returns the file of a flow's time series."""
        if self.trace_folder is None:
            return None
        name = f"{self.scenario.name}--{self.controller or 'own'}--{self.engine}--{self.seed}"
        return self.trace_folder / f"{name}--{flow}.parquet"


@dataclass
class Outcome:
    """What became of a list of jobs."""

    finished: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Key -> the run's metrics."""
    failures: list[str] = field(default_factory=list)
    """One text per job that failed: which one, and why."""
    interrupted: bool = False


def execute(job: Job) -> dict[str, Any]:
    """Runs one job and returns its metrics; writes the time series where the job wants them."""
    open_flows = any(flow.controller is None for flow in job.scenario.flows)
    result = run(
        job.scenario,
        job.controller if open_flows else None,
        job.engine,
        job.seed,
        trace_interval_ms=None if job.trace_folder is None else 10.0,
    )
    for flow in result.flows:
        path = job.trace_path(flow.name)
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            result.trace(flow.name).to_parquet(path)
    return result.to_dict()


def make_jobs(
    scenarios: Iterable[Scenario],
    controllers: Sequence[str],
    engine: EngineName,
    seeds: int,
    trace_folder: Path | None = None,
) -> list[Job]:
    """Returns every combination; only the first seed keeps its time series.

    Raises:
        ScenarioError: A scenario does not fit the engine, or a controller does not exist.
    """
    jobs = []
    for scenario in scenarios:
        scenario.check_engine(engine)
        has_open_flow = any(flow.controller is None for flow in scenario.flows)
        for controller in controllers if has_open_flow else [None]:
            resolve_controllers(scenario, controller)
            jobs += [
                Job(scenario, controller, engine, seed, trace_folder if seed == 0 else None)
                for seed in range(seeds)
            ]
    return jobs


def read_finished(directory: Path) -> dict[str, dict[str, Any]]:
    """Returns key -> metrics of the runs kept in a directory; a torn last line is left out."""
    path = directory / RUNS_FILE
    finished = {}
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
        try:
            record = json.loads(line)
            finished[record["key"]] = record["run"]
        except (json.JSONDecodeError, KeyError, TypeError):
            continue
    return finished


def _end_torn_line(path: Path) -> None:
    if path.exists() and path.stat().st_size > 0 and not path.read_bytes().endswith(b"\n"):
        with path.open("ab") as file:
            file.write(b"\n")


def run_jobs(
    jobs: Sequence[Job],
    directory: Path,
    workers: int,
    *,
    resume: bool = False,
    title: str = "simulations",
) -> Outcome:
    """Runs the jobs in worker processes, with a progress bar on standard error.

    A job that fails is noted and the others go on. Ctrl-C ends the workers; what was finished is
    kept.
    """
    outcome = Outcome()
    kept = read_finished(directory) if resume else {}
    remaining = []
    for job in jobs:
        if job.key in kept:
            outcome.finished[job.key] = kept[job.key]
        else:
            remaining.append(job)
    directory.mkdir(parents=True, exist_ok=True)
    _end_torn_line(directory / RUNS_FILE)
    console = Console(stderr=True)
    progress = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=console,
        disable=not console.is_terminal,
    )
    with (directory / RUNS_FILE).open("a", encoding="utf-8") as file, progress:
        task = progress.add_task(title, total=len(jobs), completed=len(outcome.finished))

        def finish(job: Job, future: Future[dict[str, Any]]) -> None:
            try:
                run_metrics = future.result()
            except BrokenProcessPool:
                raise
            except Exception as error:
                outcome.failures.append(f"{job}: {type(error).__name__}: {error}")
            else:
                outcome.finished[job.key] = run_metrics
                file.write(json.dumps({"key": job.key, "run": run_metrics}) + "\n")
                file.flush()
            progress.advance(task)

        try:
            crashed = _run_pool(remaining, workers, finish)
            # A worker died and took the pool with it: one process each finds out whose fault.
            for job in crashed:
                if _run_pool([job], 1, finish):
                    outcome.failures.append(f"{job}: its process died (killed, or out of memory)")
                    progress.advance(task)
        except KeyboardInterrupt:
            outcome.interrupted = True
    return outcome


def _run_pool(
    jobs: Sequence[Job], workers: int, finish: Callable[[Job, Future[dict[str, Any]]], None]
) -> list[Job]:
    """Runs the jobs in a new pool; returns those that were lost when one of its workers died."""
    if not jobs:
        return []
    executor = ProcessPoolExecutor(
        min(workers, len(jobs)), mp_context=multiprocessing.get_context("spawn")
    )
    lost = []
    try:
        # Workers inherit that Ctrl-C is ignored; only this process reacts to it.
        handler = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            futures = {executor.submit(execute, job): job for job in jobs}
        finally:
            signal.signal(signal.SIGINT, handler)
        for future in as_completed(futures):
            try:
                finish(futures[future], future)
            except BrokenProcessPool:
                lost.append(futures[future])
    except KeyboardInterrupt:
        executor.shutdown(wait=False, cancel_futures=True)
        for process in multiprocessing.active_children():
            process.terminate()
        raise
    executor.shutdown()
    return lost


def report_failures(failures: Sequence[str]) -> None:
    """Prints the failed jobs to standard error."""
    for failure in failures:
        say(f"failed: {failure}")


def report_interruption(
    outcome: Outcome, jobs: Sequence[Job], directory: Path, command: str, *, resumed: bool
) -> None:
    """Says on standard error what is kept, and the command that goes on with it.

    Args:
        outcome: What became of the jobs.
        jobs: All of them.
        directory: Where the finished runs are.
        command: The command line that was interrupted.
        resumed: It has --resume already.
    """
    again = command if resumed else f"{command} --resume"
    say(
        f"interrupted: {len(outcome.finished)} of {len(jobs)} runs are kept in "
        f"{directory}; continue with\n  {again}"
    )
