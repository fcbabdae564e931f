"""A kill before each write, rename and removal of a file, one after another, then `--resume`.

A kill leaves the files as they are. So one run of a command, stopped before each step while its
folder is copied, gives what kills before all its steps leave.
"""

from __future__ import annotations

import os
import shutil
import signal
import struct
import subprocess
import time
from collections.abc import Iterable, Iterator, Set
from contextlib import contextmanager, suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from typing import Any

from helpers.commands import run_forked, run_jobs_here

from campaign.commands import MOST_S, Command, Uninterrupted, commands, difference, start
from campaign.part import Found, Part, one_line, packages_missing
from quicgym.jobs import LocalProcesses

MOST_STEPS = 10**6
"""The number of a fault is its command's place times this, and its step in the command."""
_COUNTS = struct.Struct("qq")
"""In faults.c: the steps, and how often the processes were let go on."""
COPIES = 64
"""Folders that one run of a command leaves at most: they fill the disk."""


@cache
def library() -> Path:
    """Returns the library that counts the steps and stops before them, compiled."""
    path = Path(mkdtemp(prefix="quicgym-faults-")) / "faults.so"
    source = Path(__file__).with_suffix(".c")
    subprocess.run(["cc", "-shared", "-fPIC", "-Wall", "-o", path, source], check=True)
    return path


@contextmanager
def copies(command: Command, first: int, count: int = COPIES) -> Iterator[tuple[Path, list[Path]]]:
    """Runs a command, and copies what kills before some of its steps would leave.

    Args:
        command: The command.
        first: The first of these steps, counted from 1.
        count: How many of the steps.

    Yields:
        The command's folder, without results; copies of the results, one for each step, and fewer
        than `count` where the command has no more steps.
    """
    folder = command.prepare()
    counter = folder / "steps"
    counter.write_bytes(_COUNTS.pack(0, 0))
    errors = folder / "errors"
    environment = {
        "LD_PRELOAD": str(library()),
        "QUICGYM_FAULTS_COUNTER": str(counter),
        "QUICGYM_FAULTS_FOLDER": str(folder / "out"),
        "QUICGYM_FAULTS_STEP": str(first),
    }
    with errors.open("w") as stderr:
        process = start(command, folder, environment=environment, stderr=stderr)
    made: list[Path] = []
    last = ""  # digest of the last copy
    try:
        with TemporaryDirectory(prefix="quicgym-faults-") as images:
            while len(made) < count and _is_stopped(process.pid):
                stop_session(process.pid)
                at, resumed = _COUNTS.unpack(counter.read_bytes())
                image = Path(images, str(resumed))
                if (folder / "out").exists():
                    shutil.copytree(folder / "out", image, symlinks=True)
                # Not all steps change what is in the files, and the same files give the same.
                content = _digest(image)
                image = made[-1] if made and content == last else image
                last = content
                # None or two steps, where processes came to theirs before all were stopped.
                made += [image] * (at - first + 1 - len(made))
                with counter.open("r+b") as counts:
                    counts.write(_COUNTS.pack(at, resumed + 1))
                _signal(session(process.pid), signal.SIGCONT)
            _kill(process)
            if len(made) < count and process.returncode != 0:
                problem = one_line(errors.read_text(encoding="utf-8")[-400:])
                raise RuntimeError(f"{command.name} without a kill: {problem}")
            shutil.rmtree(folder / "out", ignore_errors=True)
            yield folder, made
    finally:
        _kill(process)
        shutil.rmtree(folder, ignore_errors=True)


def _digest(folder: Path) -> str:
    """Returns a digest of the names and contents of all files in a folder, which need not exist."""
    total = sha256(str(folder.exists()).encode())
    for path in sorted(folder.rglob("*")):
        total.update(f"{path.relative_to(folder)}\0".encode())
        if path.is_file():
            total.update(sha256(path.read_bytes()).digest())
    return total.hexdigest()


def _is_stopped(process: int) -> bool:
    """Waits until a process is stopped, or has ended, which is left for `subprocess` to see."""
    change = os.waitid(os.P_PID, process, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
    if change is None or change.si_code != os.CLD_STOPPED:
        return False
    os.waitid(os.P_PID, process, os.WSTOPPED)
    return True


def session(leader: int) -> dict[int, str]:
    """Returns the state of each process of a session, a letter as in /proc/PID/stat.

    Ray's workers have process groups of their own, and their titles stand where their environment
    was: a command and its workers have the session in common.
    """
    states = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with suppress(OSError):
                state, _, _, session = (folder / "stat").read_text().rpartition(")")[2].split()[:4]
                if int(session) == leader:
                    states[int(folder.name)] = state
    return states


def stop_session(leader: int) -> None:
    """Stops all processes of a session, and waits until they are."""
    while running := [each for each, state in session(leader).items() if state not in "TZX"]:
        _signal(running, signal.SIGSTOP)
        time.sleep(0.001)


def _signal(processes: Iterable[int], number: int) -> None:
    for process in processes:
        with suppress(ProcessLookupError):
            os.kill(process, number)


def _kill(process: subprocess.Popen[str]) -> None:
    """Kills what a command has left of its session, and waits for the command."""
    if process.poll() is None or process.returncode == 0:
        _signal(session(process.pid), signal.SIGKILL)
    process.wait()


def resume(command: Command, folder: Path, image: Path, expected: Any) -> str:
    """Goes on with what a kill left; returns how that is not the expected result, or nothing.

    Args:
        command: The command.
        folder: The command's folder, without results.
        image: A copy of the results that the kill left. None are there after an early kill.
        expected: The result of an undisturbed run.
    """
    out = folder / "out"
    shutil.rmtree(out, ignore_errors=True)
    resumes: tuple[str, ...] = ()
    if image.exists():
        shutil.copytree(image, out, symlinks=True)
        resumes = ("--resume",) if command.resumes else ()
    done = run_forked(folder, *command.arguments, "--out", "out", *resumes, before=_begin_copy)
    if done.returncode != 0:
        return f"status {done.returncode}: {one_line(done.stderr[-400:])}"
    try:
        return difference(expected, command.result(out))
    except Exception as error:  # whatever it is, the result is not as expected
        return f"{type(error).__name__}: {one_line(error)}"


def _begin_copy() -> None:
    os.setsid()  # as `start` does
    LocalProcesses.run = run_jobs_here  # type: ignore[method-assign, assignment]
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.alarm(int(MOST_S))


def _run(first: int, until: float, jobs: int, wanted: Set[str]) -> tuple[Found, int]:
    uninterrupted, those, found = Uninterrupted(), commands(), Found()
    number = first if first < len(those) * MOST_STEPS else 0
    while number < len(those) * MOST_STEPS:
        place, step = divmod(number, MOST_STEPS)
        command = those[place]
        try:
            expected = uninterrupted.of(command)[0]
            with copies(command, step + 1) as (folder, made):
                resumed, problem = None, ""
                for image in made:
                    if image != resumed:
                        resumed, problem = image, resume(command, folder, image, expected)
                    if problem:
                        found.failures.append(f"{number}: {command.name}: {problem}")
                    found.add(Found({"faults": 1}))
                    number += 1
                    if time.monotonic() > until:
                        return found, number
        except Exception as error:  # the command fails without a kill
            found.failures.append(f"{number}: {type(error).__name__}: {one_line(error)}")
            number = (place + 1) * MOST_STEPS
            continue
        if len(made) < COPIES:
            found.add(Found({"commands with every fault": 1}))
            number = (place + 1) * MOST_STEPS
    return found, number


PART = Part(
    name="faults",
    title="a kill before each write, rename and removal of a file, then `--resume`",
    goals={"commands with every fault": len(commands())},
    share=2.0,
    run=_run,
    missing=lambda: (
        packages_missing("ray", "stable_baselines3", "aioquic")
        or (None if shutil.which("cc") else "cc is not installed")
    ),
)
