"""A Ray cluster: joining one, and running jobs on its nodes. Importing this module takes seconds.

A job is a task of Ray, which chooses the node and tries again where a node or a process dies. The
nodes have the same quicgym, and a file system that all of them share for files and results. Each
task checks both.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import chdir, contextmanager
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any
from uuid import uuid4

# Ray reads both when it is imported. Nothing is sent to Ray's makers, and a job that fills the
# memory is not tried again for ever.
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
os.environ["RAY_task_oom_retries"] = "3"

from quicgym.errors import ClusterError, MissingExtraError

try:
    import ray
except ImportError as error:
    raise MissingExtraError("--address needs Ray", "sweep") from error

from quicgym import __version__, _core
from quicgym.jobs import PROCESS_DIED, AnyJob, Finish, Job, failure_text

RayError = ray.exceptions.RayError
"""Ray itself failed, not what it runs."""
QUIET: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.CRITICAL}
RETRIES = int(os.environ["RAY_task_oom_retries"])
"""How often a job runs again after its process, or the node, has died."""
_LOST = (
    ray.exceptions.WorkerCrashedError,
    ray.exceptions.NodeDiedError,
    ray.exceptions.OutOfMemoryError,
)
_CONNECT_S, _HEALTH_S = 5, 60  # importing Ray takes most of it on a busy machine
_PATIENCE_S = 30.0
_MOST_TASKS = 1000  # Ray keeps as many in its memory; it runs one for each core


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

    def connect(self) -> None:
        """Joins the cluster; this process leaves it when it ends.

        ClusterError where the cluster is not there, cannot be joined, or has no core.
        """
        if not ray.is_initialized():
            check_address(self._address)
            join(self._address)
        self._cores()

    @property
    def count(self) -> int:
        """How many jobs run at the same time."""
        self.connect()
        return min(self._cores(), self._most or sys.maxsize)

    def _cores(self) -> int:
        """Returns how many jobs the nodes can run now. Nodes come and go."""
        cores = int(ray.cluster_resources().get("CPU", 0))
        if cores < 1:
            raise ClusterError(
                f"--address {self._address}: the Ray cluster has no core to run jobs on; add a "
                "node with `ray start --address`, with --num-cpus above 0"
            )
        return cores

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
            if isinstance(error.cause, ClusterError):
                raise ClusterError(f"--address {self._address}: {error.cause}") from None
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
        waiting = iter(jobs)
        running: dict[Any, AnyJob] = {}
        try:
            while True:
                for job in islice(waiting, (self._most or _MOST_TASKS) - len(running)):
                    running[_run_job.remote(place, job)] = job
                if not running:
                    return
                ready, _ = ray.wait([*running], num_returns=1, timeout=_PATIENCE_S)
                if not ready:
                    self._cores()
                for reference in ready:
                    job = running.pop(reference)
                    try:
                        result = ray.get(reference)
                    except _LOST:
                        result = PROCESS_DIED
                    finish(job, result)
        finally:  # Ctrl-C, or an error
            for reference in running:
                ray.cancel(reference, force=True)


@dataclass(frozen=True)
class _Place:
    """Requirements on a node that runs jobs: this quicgym, and the `folder` of the command.

    `token` is a file in the folder of the results.
    """

    folder: Path
    token: Path
    version: str = __version__
    commit: str = _core.commit

    def check(self) -> None:
        """Raises ClusterError with what this node lacks, and what to do."""
        if (self.version, self.commit) != (__version__, _core.commit):
            raise ClusterError(
                f"the node {socket.gethostname()} has quicgym {__version__} ({_core.commit}), the "
                f"command has {self.version} ({self.commit}); install the same one on all nodes"
            )
        for folder in (self.folder, self.token.parent):
            if not folder.is_dir():
                raise _not_shared(f"no folder {folder}")
        if not self.token.exists():
            raise _not_shared(f"another folder {self.token.parent}")


def _not_shared(what: str) -> ClusterError:
    return ClusterError(
        f"the node {socket.gethostname()} has {what}; put it on a file system that all nodes share,"
        " or leave --address away to use this machine alone"
    )


@ray.remote(num_cpus=1, max_retries=RETRIES)
def _run_job(place: _Place, job: Job) -> dict[str, Any] | str:
    """On a node: returns a job's result, or the text of why it failed.

    ClusterError where the node lacks what the job needs.
    """
    place.check()
    os.chdir(place.folder)
    files = [path.absolute() for path in getattr(job, "files", ())]
    for path in files:
        if not path.exists():
            raise _not_shared(f"no {path}, which {job} needs")
    try:
        if _key_here(job) == job.key:
            return job.run()
    except (Exception, SystemExit) as error:
        return failure_text(error)
    content = ", ".join(map(str, files)) or "the packages"
    raise _not_shared(f"other content in {content}, on which {job} depends")


def _key_here(job: Job) -> str:
    """Returns the job's key by the files of this node: it came with that of the command."""
    if not isinstance(getattr(type(job), "key", None), cached_property):
        return job.key
    fresh = copy(job)
    vars(fresh).pop("key", None)
    return fresh.key
