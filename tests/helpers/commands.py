"""Commands of quicgym in processes of their own; the fixture `quicgym` runs them in the test's."""

from __future__ import annotations

import fcntl
import multiprocessing
import os
import pty
import re
import resource
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import MappingProxyType
from typing import Any

from quicgym.cli import main
from quicgym.jobs import LocalProcesses, failure_text

_COPIES = multiprocessing.get_context("fork")
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def command(*arguments: str | Path | float) -> list[str]:
    """Returns `quicgym` with arguments, as a program of this Python."""
    return [sys.executable, "-m", "quicgym_start", *map(str, arguments)]


def check_end(
    done: subprocess.CompletedProcess[str], status: int | None
) -> subprocess.CompletedProcess[str]:
    """Returns a command that has ended, after checks: no traceback, and the exit status if any."""
    assert status in (None, done.returncode), done.stdout[-2000:] + done.stderr[-4000:]
    assert "Traceback" not in done.stderr, done.stderr
    return done


def run_process(
    folder: Path, *arguments: str | Path | float, status: int | None = 0, **options: Any
) -> subprocess.CompletedProcess[str]:
    """Runs a command in a folder as a user does, until it ends with an exit status."""
    done = subprocess.run(
        command(*arguments), cwd=folder, capture_output=True, text=True, timeout=300, **options
    )
    return check_end(done, status)


def start_process(
    folder: Path, *arguments: str | Path | float, **options: Any
) -> subprocess.Popen[str]:
    """Starts a command in a folder, in a session of its own, where Ctrl-C interrupts it."""
    return subprocess.Popen(
        command(*arguments),
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # What a shell starts in the background ignores Ctrl-C, and so would the command.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        **options,
    )


def small_files(limit: int) -> Callable[[], None]:
    """Returns a function by which a process limits its files to so many bytes: a full disk."""
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))


def run_jobs_here(_: LocalProcesses, jobs: Sequence[Any], __: Path, finish: Any) -> None:
    """Runs jobs in this process, as `LocalProcesses.run` does in others."""
    for job in jobs:
        try:
            result = job.run()
        except Exception as error:
            result = failure_text(error)
        finish(job, result)


def start_forked(
    folder: Path,
    *arguments: str | Path | float,
    streams: Mapping[int, int] = MappingProxyType({}),
    before: Callable[[], object] = lambda: None,
) -> BaseProcess:
    """Starts a command in a copy of this process, which has imported everything already.

    Args:
        folder: The folder in which the command runs.
        arguments: The command's name and arguments.
        streams: File descriptors that stand for stdin, stdout and stderr, by their number.
        before: A function that the copy calls first, such as one that limits its files.
    """

    def run() -> None:
        for stream, ours in streams.items():
            os.dup2(ours, stream)
        sys.stdout, sys.stderr = open(1, "w"), open(2, "w")
        os.chdir(folder)
        before()
        sys.argv = command(*arguments)[2:]
        main()

    if arguments[0] == "train":
        import quicgym.agents.training.run  # noqa: F401 (with PyTorch, once for all copies)
    process = _COPIES.Process(target=run)
    process.start()
    return process


def run_forked(
    folder: Path, *arguments: str | Path | float, before: Callable[[], object] = lambda: None
) -> subprocess.CompletedProcess[str]:
    """Runs a command in a copy of this process until it ends; see `start_forked`."""
    pipes = [os.pipe(), os.pipe()]
    streams = {stream: ours for stream, (_, ours) in enumerate(pipes, 1)}
    process = start_forked(folder, *arguments, streams=streams, before=before)
    for _, ours in pipes:
        os.close(ours)
    with ThreadPoolExecutor() as threads:  # a pipe that nobody reads becomes full
        output, errors = threads.map(lambda pipe: open(pipe[0], encoding="utf-8").read(), pipes)
    process.join()
    status = process.exitcode or 0
    return subprocess.CompletedProcess(command(*arguments), status, output, errors)


def run_in_copy(folder: Path, *arguments: str | Path | float) -> subprocess.CompletedProcess[str]:
    """Runs a command and its jobs in a copy of this process, and checks that it ends well."""

    def before() -> None:
        LocalProcesses.run = run_jobs_here  # type: ignore[method-assign, assignment]

    return check_end(run_forked(folder, *arguments, before=before), 0)


def says(done: subprocess.CompletedProcess[str], *texts: str) -> None:
    """Checks that a command has written each text to stderr, and nothing to stdout.

    Args:
        done: The command that has ended.
        texts: Each may be several with `|` between them, of which one is enough.
    """
    assert done.stdout == ""
    for text in texts:
        assert any(one in done.stderr for one in text.split("|")), (text, done.stderr)


def in_terminal(
    arguments: Sequence[str | Path], folder: Path, width: int = 120
) -> tuple[int, list[str]]:
    """Runs a command in a terminal, in a copy of this process.

    Args:
        arguments: The command's name and arguments.
        folder: The folder in which the command runs.
        width: The terminal's width in characters.

    Returns:
        The exit status, and all lines, without escape sequences; a bar that was drawn again is
        there as often as it was drawn.
    """
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, width, 0, 0))

    def set_environment() -> None:
        for name in ("COLUMNS", "LINES", "NO_COLOR"):
            os.environ.pop(name, None)
        os.environ["TERM"] = "xterm"

    streams = dict.fromkeys(range(3), theirs)
    process = start_forked(folder, *arguments, streams=streams, before=set_environment)
    os.close(theirs)
    output = b""
    while True:
        try:
            read = os.read(ours, 1 << 16)
        except OSError:  # nobody has the other end any more
            break
        if not read:
            break
        output += read
    os.close(ours)
    lines = re.split(r"[\r\n]+", _ESCAPES.sub("", output.decode()))
    process.join()
    return process.exitcode or 0, [line.rstrip() for line in lines if line.strip()]
