"""Runs many jobs over cores or a Ray cluster; every finished one is on disk at once.

runs.jsonl holds one line per finished job: its key, its result, and the digest of both. A later
call with `resume` skips what is there under the same key.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from io import BufferedIOBase, BytesIO
from itertools import islice
from multiprocessing.context import SpawnContext
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, Protocol, TypeVar

from quicgym.console import progress_bar, say
from quicgym.errors import ClusterError, RunError
from quicgym.output_folders import digest, naming

RUNS_FILE = "runs.jsonl"
_SAFE_PATH = "PYTHONSAFEPATH"
PROCESS_DIED = "its process died (killed, or out of memory)"
_SUBMITTED = 2
"""How many jobs a pool has at a time for each process, so that 100,000 jobs take little memory."""


class Job(Protocol):
    """A unit of work. It is pickled for another process, and its result must be valid JSON.

    A job that reads files of the user's names them in `files`, a sequence of paths. So the error
    can say which one a node of a cluster lacks.
    """

    @property
    def key(self) -> str:
        """The identity of the job: equal keys give equal results."""

    def __str__(self) -> str:
        """Returns what identifies the job for a reader."""

    def run(self) -> dict[str, Any]:
        """Does the work."""


AnyJob = TypeVar("AnyJob", bound=Job)
Finish = Callable[[AnyJob, dict[str, Any] | str], None]
"""Takes a job that is over with its result, or with the text of why it failed."""


class Workers(Protocol):
    """Runs jobs, on processes of this machine or on a Ray cluster."""

    def connect(self) -> None:
        """Raises ClusterError, before anything is written, where there are no workers."""

    @property
    def count(self) -> int:
        """How many jobs run at the same time."""

    def run(self, jobs: Sequence[AnyJob], directory: Path, finish: Finish[AnyJob]) -> None:
        """Runs jobs; `finish` is called once for each, in this thread.

        Results go into the directory. ClusterError where the workers are gone, not a job alone.
        """


def workers_of(count: int | None, address: str | None = None) -> Workers:
    """Returns the workers that a command line names.

    `count` jobs run at the same time; None: one per core, here or in the cluster. `address` is
    HOST:PORT of a Ray cluster, or ClusterError; None: processes of this machine.
    """
    if address is None:
        return LocalProcesses(count or os.cpu_count() or 1)
    from quicgym.ray_cluster import RayCluster  # Ray takes seconds to import

    return RayCluster(address, count)


@dataclass(frozen=True)
class LocalProcesses:
    """Processes of this machine."""

    count: int

    def connect(self) -> None:
        """Does nothing: they start with the jobs."""

    def run(self, jobs: Sequence[AnyJob], directory: Path, finish: Finish[AnyJob]) -> None:
        """Runs jobs, in new processes each time."""
        waiting = iter(jobs)
        while lost := _run_pool(waiting, self.count, finish):
            # A worker died and took the pool with it: one process each finds out whose fault.
            for job in lost:
                if _run_pool(iter([job]), 1, finish):
                    finish(job, PROCESS_DIED)


@dataclass
class Outcome:
    """The outcome of a list of jobs."""

    finished: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Key -> the job's result."""
    failures: list[str] = field(default_factory=list)
    """One text per job that failed: which one, and why."""
    interrupted: bool = False


def read_finished(directory: Path) -> dict[str, dict[str, Any]]:
    """Returns key -> metrics of the runs kept in a directory; a damaged line is left out.

    Raises:
        RunError: The file cannot be read.
    """
    finished = {}
    with _open_runs(directory / RUNS_FILE) as file:
        for line in file:  # by bytes: a line that is not UTF-8 spoils no other
            try:
                record = json.loads(line)
                if record == _record(record["key"], record["run"]):
                    finished[record["key"]] = record["run"]
            except (ValueError, KeyError, TypeError):
                continue
    return finished


def _open_runs(path: Path) -> BufferedIOBase:
    try:
        return path.open("rb")
    except FileNotFoundError:
        return BytesIO()
    except OSError as error:
        raise RunError(
            f"{path}: cannot be read: {error.strerror}; move it away to begin anew"
        ) from None


def _record(key: str, result: dict[str, Any]) -> dict[str, Any]:
    return {"key": key, "run": result, "digest": digest([key, result])}


def _end_torn_line(path: Path) -> None:
    with _open_runs(path) as file:
        if file.seek(0, os.SEEK_END) == 0:
            return
        file.seek(-1, os.SEEK_END)
        is_torn = file.read() != b"\n"
    if is_torn:
        with path.open("a") as end:
            end.write("\n")


def as_workers(workers: int | Workers) -> Workers:
    """Returns the workers; of a number that many processes of this machine."""
    return LocalProcesses(workers) if isinstance(workers, int) else workers


def run_jobs(
    jobs: Sequence[AnyJob],
    directory: Path,
    workers: int | Workers,
    *,
    resume: bool = False,
    title: str = "simulations",
) -> Outcome:
    """Runs the jobs, with a progress bar on standard error; runs.jsonl of the directory gets them.

    A job that fails is noted and the others go on. Ctrl-C ends the workers; what was finished is
    kept. So it is where a cluster goes away. A number of workers is one of processes of this
    machine. `resume` skips what runs.jsonl has.

    Raises:
        RunError: runs.jsonl cannot be read.
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

        def finish(job: AnyJob, result: dict[str, Any] | str) -> None:
            if isinstance(result, str):
                outcome.failures.append(f"{job}: {result}")
            else:
                outcome.finished[job.key] = result
                file.write(json.dumps(_record(job.key, result)) + "\n")
                file.flush()
            progress.advance(task)

        try:
            if remaining:
                as_workers(workers).run(remaining, directory, finish)
        except KeyboardInterrupt:
            outcome.interrupted = True
        except ClusterError as error:
            say(f"quicgym: {error}")
            outcome.interrupted = True
    return outcome


def _run_pool(jobs: Iterator[AnyJob], workers: int, finish: Finish[AnyJob]) -> list[AnyJob]:
    """Runs the jobs in a new pool; returns those that were lost when one of its workers died.

    Jobs that come after the lost ones are still to be taken.
    """
    context = _Context()
    with _passed_on_to_workers():
        executor = ProcessPoolExecutor(workers, mp_context=context, initializer=_begin_worker)
    running: dict[Future[dict[str, Any]], AnyJob] = {}
    lost: list[AnyJob] = []
    try:
        while True:
            may_start = len(context.processes) < workers
            with _passed_on_to_workers() if may_start else nullcontext():
                for job in islice(jobs, 0 if lost else _SUBMITTED * workers - len(running)):
                    try:
                        running[executor.submit(job.run)] = job
                    except BrokenProcessPool:
                        lost.append(job)
                        break
            if not running:
                break
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                job = running.pop(future)
                try:
                    result: dict[str, Any] | str = future.result()
                except BrokenProcessPool:
                    lost.append(job)
                    continue
                except (Exception, SystemExit) as error:
                    result = failure_text(error)
                finish(job, result)
    except BaseException:  # Ctrl-C, or a result that cannot be written
        for process in context.processes:
            process.terminate()
        # Waits for the pool's thread, which would close pipes that Python uses at exit.
        executor.shutdown(cancel_futures=True)
        raise
    executor.shutdown()
    return lost


def failure_text(error: BaseException) -> str:
    """Returns why a job failed, the same wherever it ran."""
    return f"{type(error).__name__}: {error}"


class _Context(SpawnContext):
    """New processes for one pool.

    Attributes:
        processes: The pool's processes. The program may have others.
    """

    def __init__(self) -> None:
        super().__init__()
        self.processes: list[BaseProcess] = []

    def Process(self, *args: Any, **kwargs: Any) -> Any:  # type: ignore[override]  # noqa: N802
        self.processes.append(super().Process(*args, **kwargs))
        return self.processes[-1]


@contextmanager
def _passed_on_to_workers() -> Iterator[None]:
    """Starts Python without the current folder's modules, and with Ctrl-C ignored.

    Otherwise a file such as signal.py next to your scenario would replace Python's module. Only
    this process reacts to Ctrl-C; outside of the main thread Python cannot change that, and workers
    ignore it once they run.
    """
    in_main_thread = threading.current_thread() is threading.main_thread()
    handler = signal.signal(signal.SIGINT, signal.SIG_IGN) if in_main_thread else None
    given = os.environ.get(_SAFE_PATH)
    os.environ[_SAFE_PATH] = "1"
    try:
        yield
    finally:
        if given is None:
            del os.environ[_SAFE_PATH]
        else:
            os.environ[_SAFE_PATH] = given
        if in_main_thread:
            signal.signal(signal.SIGINT, handler)


def _begin_worker() -> None:
    """In a worker: ends it where the process that gives it work was killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.environ.pop(_SAFE_PATH)  # programs that a job starts are the user's
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


def report_outcome(
    outcome: Outcome, jobs: Sequence[Job], directory: Path, command: str, *, resumed: bool
) -> bool:
    """Prints the failed jobs to standard error; returns whether the jobs were interrupted.

    If so, it also prints what is kept, and the command that continues. `jobs` are all, finished or
    not. `resumed` says whether they were resumed, so that the command has --resume already.
    """
    report_failures(outcome.failures)
    if outcome.interrupted:
        again = command if resumed or "--resume" in command.split() else f"{command} --resume"
        say(
            f"interrupted: {len(outcome.finished)} of {len(jobs)} runs are kept in "
            f"{directory}; continue with\n  {again}"
        )
    return outcome.interrupted
