"""SIGKILL at a random moment, then the command again: the result is that of an undisturbed run."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Set
from contextlib import suppress
from typing import Any

import numpy as np

from campaign.commands import (
    Command,
    Uninterrupted,
    commands,
    difference,
    finish,
    in_turn,
    kill,
    start,
)
from campaign.part import Found, Part, cpu_s, packages_missing


def kill_once(command: Command, number: int, expected: Any, usual_s: float) -> list[str]:
    """Kills a command, resumes it until it is finished, and compares; returns what is wrong."""
    rng = np.random.default_rng([number, *b"kill"])
    folder = command.prepare()
    groups = []
    try:
        resume: tuple[str, ...] = ()
        for _ in range(int(rng.integers(1, 3))):  # now and then a resumed one is killed as well
            process = start(command, folder, *resume)
            groups.append(process.pid)
            with suppress(subprocess.TimeoutExpired):
                process.wait(timeout=float(rng.uniform(0, usual_s)))
            kill(process)
            resume = ("--resume",) if command.resumes and (folder / "out").exists() else ()
        process = start(command, folder, *resume)
        groups.append(process.pid)
        if problem := finish(process):
            return [f"{number}: {command.name}: {problem}"]
        if differs := difference(expected, command.result(folder / "out")):
            return [f"{number}: {command.name}: {differs}"]
        return []
    finally:
        for group in groups:
            with suppress(ProcessLookupError):
                os.killpg(group, signal.SIGKILL)
        shutil.rmtree(folder, ignore_errors=True)


def _run(first: int, until: float, jobs: int, wanted: Set[str]) -> tuple[Found, int]:
    uninterrupted = Uninterrupted()

    def check(command: Command, number: int) -> Found:
        kills = f"kills of {command.name}"
        if kills not in wanted:
            return Found()
        used_s = cpu_s()
        failures = kill_once(command, number, *uninterrupted.of(command))
        return Found({kills: 1}, failures, spent_s={kills: cpu_s() - used_s})

    return in_turn(commands(), check, first, until)


PART = Part(
    name="kills",
    title="SIGKILL at a random moment, then `--resume`: the result of an undisturbed run",
    goals={f"kills of {command.name}": 20 for command in commands()},
    share=2.0,
    run=_run,
    missing=lambda: packages_missing("ray", "stable_baselines3", "aioquic"),
)
