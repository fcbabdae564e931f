"""A Ray cluster: joining one, and running jobs on its nodes. Importing this module takes seconds.

Jobs go to the nodes in batches of about a second, because a task of Ray costs milliseconds. The
nodes have the same quicgym, and a file system that all of them share for files and results. Each
task checks both.
"""

from __future__ import annotations

import logging
import math
import os
import signal
import socket
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import chdir, contextmanager
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any
from uuid import uuid4

# Ray reads it when it is imported: nothing is sent to Ray's makers.
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"

from quicgym.errors import ClusterError, MissingExtraError

try:
    import ray
except ImportError as error:
    raise MissingExtraError("--address needs Ray") from error

from quicgym import __version__, _core
from quicgym.jobs import PROCESS_DIED, AnyJob, Finish, Job, failure_text

RayError = ray.exceptions.RayError
"""Ray itself failed, not what it runs."""
QUIET: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.CRITICAL}
BATCH_S = 1.0
"""After this long a batch ends, and what it has not begun goes back."""
MOST_JOBS = 256
"""The most jobs of a batch."""
ATTEMPTS = 3
"""How often a job is tried alone after the batch that it was in was lost."""
_LOST = (
    ray.exceptions.WorkerCrashedError,
    ray.exceptions.NodeDiedError,
    ray.exceptions.LocalRayletDiedError,
    ray.exceptions.OutOfMemoryError,
    ray.exceptions.ObjectLostError,
)
_CONNECT_S, _HEALTH_S = 5, 60  # importing Ray takes most of it on a busy machine
_ASK_S, _PATIENCE_S = 1.0, 30.0


def _check_form(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    if not host or "/" in host or not port.isdecimal() or not 0 < int(port) < 65536:
        # Not "auto" either: it would join any Ray of this machine, another sweep's too.
        raise ClusterError(f"--address {address}: write HOST:PORT, as `ray start --head` prints it")
    return host, int(port)


def check_address(address: str) -> None:
    """Raises ClusterError where no Ray cluster is: Ray itself would wait for minutes."""
    host, port = _check_form(address)
    remedy = "start one with `ray start --head`, or leave --address away to use this machine alone"
    try:
        socket.create_connection((host, port), timeout=_CONNECT_S).close()
    except OSError as error:
        raise ClusterError(
            f"--address {address}: no Ray cluster is there ({error.strerror or error}); {remedy}"
        ) from None
    command = [
        sys.executable,
        "-P",
        "-m",
        "ray.scripts.scripts",
        "health-check",
        "--address",
        address,
    ]
    try:
        # If another kind of server answers, Ray's client hangs, so it runs in a separate process
        # that can be ended.
        done = subprocess.run(command, capture_output=True, text=True, timeout=_HEALTH_S)
    except subprocess.TimeoutExpired:
        raise ClusterError(
            f"--address {address}: what is there does not answer as a Ray cluster; {remedy}"
        ) from None
    if "AuthenticationError" in done.stderr:
        raise ClusterError(
            f"--address {address}: the Ray cluster asks for a token; set RAY_AUTH_MODE=token, and "
            "RAY_AUTH_TOKEN or RAY_AUTH_TOKEN_PATH as whoever runs the cluster says"
        )
    if done.returncode:
        raise ClusterError(f"--address {address}: what is there is no Ray cluster; {remedy}")


def join(address: str) -> None:
    """Makes this process a part of a cluster; ClusterError where it cannot join from here."""
    logging.getLogger("ray").setLevel(logging.CRITICAL)
    try:
        # Ray puts the current folder before Python's own modules, in the processes of the nodes.
        with interrupted_afterwards(), chdir("/"):
            ray.init(address, **QUIET)
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise ClusterError(
            f"--address {address}: cannot join the Ray cluster "
            f"({str(error).strip().splitlines()[0]}); run the command on one of its machines, "
            "or leave --address away to use this machine alone"
        ) from None


@contextmanager
def interrupted_afterwards() -> Iterator[None]:
    """Keeps Ctrl-C for the end: Ray crashes where it comes while Ray starts."""
    came = []
    handler = signal.signal(signal.SIGINT, lambda *_: came.append(True))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
    if came:
        raise KeyboardInterrupt


class RayCluster:
    """The nodes of a Ray cluster at HOST:PORT, as `Workers` of `quicgym.jobs`.

    `most` jobs run at the same time; None: one per core of the cluster.
    """

    def __init__(self, address: str, most: int | None = None) -> None:
        """Does not join the cluster yet."""
        _check_form(address)
        self._address, self._most = address, most
        self._asked_s, self._known_cores = -math.inf, 0

    def connect(self) -> None:
        """Joins the cluster; this process leaves it when it ends.

        ClusterError where the cluster is not there, cannot be joined, or has no core.
        """
        if not ray.is_initialized():
            check_address(self._address)
            join(self._address)
        self._check_cores()

    @property
    def count(self) -> int:
        """How many jobs run at the same time."""
        self.connect()
        return self._slots()

    def _check_cores(self) -> None:
        if self._cores() < 1:
            raise ClusterError(
                f"--address {self._address}: the Ray cluster has no core to run jobs on; add a "
                "node with `ray start --address`, with --num-cpus above 0"
            )

    def _slots(self) -> int:
        """Returns how many jobs fit now: one for each core. Nodes come and go."""
        return max(1, min(self._cores(), self._most or sys.maxsize))

    def _cores(self) -> int:
        now = time.monotonic()
        if now - self._asked_s >= _ASK_S:
            self._asked_s = now
            self._known_cores = int(ray.cluster_resources().get("CPU", 0))
        return self._known_cores

    def run(self, jobs: Sequence[AnyJob], directory: Path, finish: Finish[AnyJob]) -> None:
        """Runs jobs; those of a node that dies run again on others.

        ClusterError where the cluster is gone, or a node lacks what the jobs need.
        """
        self.connect()
        # A new name, so that a node that sees the file must share this folder.
        token = (directory / f".cluster-{uuid4().hex}").absolute()
        token.touch()
        try:
            self._run(jobs, _Place(Path.cwd(), token), finish)
        except ray.exceptions.RayTaskError as error:  # a job's error is a result, so it is no job's
            raise ClusterError(
                f"--address {self._address}: a node cannot run jobs "
                f"({str(error).strip().splitlines()[-1]}); install the same quicgym, with the same "
                "packages, on all nodes"
            ) from None
        except RayError as error:
            raise ClusterError(
                f"--address {self._address}: Ray failed: {str(error).strip().splitlines()[0]}"
            ) from None
        finally:
            token.unlink(missing_ok=True)

    def _run(self, jobs: Sequence[AnyJob], place: _Place, finish: Finish[AnyJob]) -> None:
        waiting, size = deque(jobs), 1
        lost: deque[AnyJob] = deque()
        attempts: dict[str, int] = {}
        running: dict[Any, list[AnyJob]] = {}
        try:
            while waiting or lost or running:
                slots = self._slots()
                while (waiting or lost) and len(running) < slots:
                    if lost:
                        batch = [lost.popleft()]
                    else:
                        # Small ones at the end, so that no core waits long for another one's.
                        few = min(size, math.ceil(len(waiting) / (2 * slots)))
                        batch = [waiting.popleft() for _ in range(few)]
                    running[_run_batch.remote(place, batch)] = batch
                ready, _ = ray.wait([*running], num_returns=1, timeout=_PATIENCE_S)
                if not ready:
                    self._check_cores()
                    continue
                batch = running.pop(ready[0])
                try:
                    results = ray.get(ready[0])
                except _LOST:
                    for job in batch:
                        attempts[job.key] = attempts.get(job.key, -1) + 1
                        if attempts[job.key] < ATTEMPTS:
                            lost.append(job)  # alone: others need not die with it again
                        else:
                            finish(job, PROCESS_DIED)
                    continue
                if isinstance(results, str):
                    raise ClusterError(f"--address {self._address}: {results}")
                for job, result in zip(batch, results, strict=False):
                    finish(job, result)
                waiting.extendleft(reversed(batch[len(results) :]))
                whole = len(results) == len(batch)
                size = min(2 * len(results), MOST_JOBS) if whole else len(results)
        except (KeyboardInterrupt, ClusterError):
            for reference in running:
                ray.cancel(reference, force=True)
            raise


@dataclass(frozen=True)
class _Place:
    """Requirements on a node that runs jobs: this quicgym, and the `folder` of the command.

    `token` is a file in the folder of the results.
    """

    folder: Path
    token: Path
    version: str = __version__
    commit: str = _core.commit

    def problem(self) -> str | None:
        """Says what this node lacks, and what to do; None where it lacks nothing."""
        if (self.version, self.commit) != (__version__, _core.commit):
            return (
                f"{_node()} has quicgym {__version__} ({_core.commit}), the command has "
                f"{self.version} ({self.commit}); install the same one on all nodes"
            )
        for folder in (self.folder, self.token.parent):
            if not folder.is_dir():
                return f"{_node()} has no folder {folder}; {_SHARE}"
        if not self.token.exists():
            return f"{_node()} has another folder {self.token.parent}; {_SHARE}"
        return None


_SHARE = (
    "put it on a file system that all nodes share, or leave --address away to use this machine "
    "alone"
)


def _node() -> str:
    return f"the node {socket.gethostname()}"


@ray.remote(num_cpus=1, max_retries=0)
def _run_batch(place: _Place, jobs: Sequence[Job]) -> list[dict[str, Any] | str] | str:
    """On a node: runs jobs until the time of a batch is over, one at least.

    Returns for each job that was run its result, or the text of why it failed; one text where the
    node lacks what they need.
    """
    if lacking := place.problem():
        return lacking
    os.chdir(place.folder)
    results: list[dict[str, Any] | str] = []
    began = time.monotonic()
    for job in jobs:
        try:
            if _key_here(job) != job.key:
                files = ", ".join(map(str, _files_of(job))) or "the packages"
                return f"{_node()} has other content in {files}, on which {job} depends; {_SHARE}"
            results.append(job.run())
        except (Exception, SystemExit) as error:
            for path in _files_of(job):
                if not path.exists():
                    return f"{_node()} has no {path}, which {job} needs; {_SHARE}"
            results.append(failure_text(error))
        if time.monotonic() - began > BATCH_S:
            break
    return results


def _files_of(job: Job) -> list[Path]:
    return [path.absolute() for path in getattr(job, "files", ())]


def _key_here(job: Job) -> str:
    """Returns the job's key by the files of this node: it came with that of the command."""
    if not isinstance(getattr(type(job), "key", None), cached_property):
        return job.key
    fresh = copy(job)
    vars(fresh).pop("key", None)
    return fresh.key
