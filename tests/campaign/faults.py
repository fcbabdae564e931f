"""A kill before each write, rename and start of a program, one after another, then `--resume`."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from contextlib import suppress
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from campaign.commands import Command, Uninterrupted, commands, difference, finish, start
from campaign.part import Found, Part, one_line, packages_missing

MOST_STEPS = 10**6
"""The number of a fault is its command's place times this, and its step in the command."""


@cache
def library() -> Path:
    """Returns the library that counts the steps, compiled."""
    path = Path(mkdtemp(prefix="quicgym-faults-")) / "faults.so"
    source = Path(__file__).with_suffix(".c")
    subprocess.run(["cc", "-shared", "-fPIC", "-Wall", "-o", path, source], check=True)
    return path


def fault(command: Command, step: int, expected: Any) -> tuple[list[str], bool]:
    """Kills a command before a step, resumes it, and compares the result.

    Args:
        command: The command.
        step: The step, counted from 1.
        expected: The result of an undisturbed run.

    Returns:
        Failures, and whether the command was killed: it was not where it has fewer steps.
    """
    folder = command.prepare()
    counter = folder / "steps"
    counter.write_bytes(bytes(8))
    process = start(
        command,
        folder,
        environment={
            "LD_PRELOAD": str(library()),
            "QUICGYM_FAULTS_COUNTER": str(counter),
            "QUICGYM_FAULTS_FOLDER": str(folder / "out"),
            "QUICGYM_FAULTS_STEP": str(step),
        },
    )
    groups = [process.pid]
    try:
        problem = finish(process)
        is_killed = process.returncode == -signal.SIGKILL
        if is_killed:
            resumes = command.resumes and (folder / "out").exists()
            process = start(command, folder, *(("--resume",) if resumes else ()))
            groups.append(process.pid)
            problem = finish(process)
        problem = problem or difference(expected, command.result(folder / "out"))
        return [f"{command.name}, step {step}: {problem}"] if problem else [], is_killed
    finally:
        for group in groups:
            with suppress(ProcessLookupError):
                os.killpg(group, signal.SIGKILL)
        shutil.rmtree(folder, ignore_errors=True)


def _run(first: int, until: float, jobs: int) -> tuple[Found, int]:
    uninterrupted, those, found = Uninterrupted(), commands(), Found()
    number = first if first < len(those) * MOST_STEPS else 0
    begun = False
    while number < len(those) * MOST_STEPS and not (begun and time.monotonic() > until):
        begun = True
        place, step = divmod(number, MOST_STEPS)
        command = those[place]
        try:
            failures, is_killed = fault(command, step + 1, uninterrupted.of(command)[0])
        except Exception as error:  # whatever it is, it is a failure of this number
            failures, is_killed = [f"{type(error).__name__}: {one_line(error)}"], True
        found.failures += [f"{number}: {text}" for text in failures]
        name = "faults" if is_killed else "commands with every fault"
        found.add(Found({name: 1}))
        number = number + 1 if is_killed else (place + 1) * MOST_STEPS
    return found, number


PART = Part(
    name="faults",
    title="a kill before each write, rename and start of a program, then `--resume`",
    goals={"commands with every fault": len(commands())},
    share=2.0,
    run=_run,
    missing=lambda: (
        packages_missing("ray", "stable_baselines3", "aioquic")
        or (None if shutil.which("cc") else "cc is not installed")
    ),
)
