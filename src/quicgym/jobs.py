"""Runs many jobs over the cores; every finished one is on disk at once.

runs.jsonl holds one line per finished job: its key and its result. A later call with `resume` skips
what is there under the same key.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeVar

from quicgym.console import progress_bar, say
from quicgym.output_folders import naming

RUNS_FILE = "runs.jsonl"


class Job(Protocol):
    """What can be run here: it is pickled for another process, and JSON takes its result."""

    @property
    def key(self) -> str:
        """What identifies the job: equal keys give equal results."""

    def __str__(self) -> str:
        """Returns what identifies the job for a reader."""

    def run(self) -> dict[str, Any]:
        """Does the work."""


AnyJob = TypeVar("AnyJob", bound=Job)


@dataclass
class Outcome:
    """What became of a list of jobs."""

    finished: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Key -> the job's result."""
    failures: list[str] = field(default_factory=list)
    """One text per job that failed: which one, and why."""
    interrupted: bool = False


def read_finished(directory: Path) -> dict[str, dict[str, Any]]:
    """Returns key -> metrics of the runs kept in a directory; a torn last line is left out."""
    path = directory / RUNS_FILE
    finished = {}
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
        try:
            record = json.loads(line)
            finished[record["key"]] = record["run"]
        except (ValueError, RecursionError, KeyError, TypeError):
            continue
    return finished


def _end_torn_line(path: Path) -> None:
    if path.exists() and path.stat().st_size > 0 and not path.read_bytes().endswith(b"\n"):
        with path.open("ab") as file:
            file.write(b"\n")


def run_jobs(
    jobs: Sequence[AnyJob],
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
    progress = progress_bar()
    path = directory / RUNS_FILE
    with naming(path), path.open("a", encoding="utf-8") as file, progress:
        task = progress.add_task(title, total=len(jobs), completed=len(outcome.finished))

        def finish(job: AnyJob, future: Future[dict[str, Any]]) -> None:
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
    jobs: Sequence[AnyJob],
    workers: int,
    finish: Callable[[AnyJob, Future[dict[str, Any]]], None],
) -> list[AnyJob]:
    """Runs the jobs in a new pool; returns those that were lost when one of its workers died."""
    if not jobs:
        return []
    executor = ProcessPoolExecutor(
        min(workers, len(jobs)),
        mp_context=multiprocessing.get_context("spawn"),
        initializer=_end_with_parent,
    )
    lost = []
    try:
        # Workers inherit that Ctrl-C is ignored; only this process reacts to it.
        handler = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            futures = {executor.submit(job.run): job for job in jobs}
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


def _end_with_parent() -> None:
    """In a worker: ends it where the process that gives it work was killed."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def wait() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


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
