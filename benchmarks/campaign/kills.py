"""SIGKILL at a random moment, then `--resume`: the result is that of an uninterrupted run."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import numpy as np
import yaml

from quicgym.agents.algorithms import registry
from quicgym.benchmarks.campaign.part import Found, Part, one_line, packages_missing

MOST_S = 1800.0
"""No command takes longer, or it hangs."""


@dataclass(frozen=True)
class Command:
    """A command that resumes.

    Attributes:
        name: Of its count.
        arguments: Without `--out` and `--resume`.
        result: Of a folder that it has finished, without what tells of time.
        prepare: Writes what the arguments name into a folder.
    """

    name: str
    arguments: tuple[str, ...]
    result: Callable[[Path], Any]
    prepare: Callable[[Path], None]


def _scenario(name: str, controller: str | None, duration_s: float) -> dict[str, Any]:
    flow = {"name": "flow"} if controller is None else {"controller": controller}
    return {
        "name": name,
        "duration_s": duration_s,
        "bottleneck": {"rate_mbps": 3, "delay_ms": 5, "queue": {"limit": 20}},
        "access": {"rate_mbps": 50, "delay_ms": 1},
        "flows": [flow],
    }


def _write(folder: Path, name: str, content: Any) -> None:
    (folder / name).write_text(yaml.safe_dump(content))


def _write_suite(folder: Path) -> None:
    _write(folder, "suite.yaml", [_scenario(f"path-{n}", None, 5.0 + n) for n in range(4)])
    _write(folder, "path.yaml", _scenario("path", None, 20.0))


def _write_training(folder: Path) -> None:
    _write_suite(folder)
    _write(folder, "short.yaml", [_scenario("short", None, 0.5)])


def _write_sweep(folder: Path) -> None:
    _write_suite(folder)
    sweep = {
        "name": "gamma",
        "controller": "ebcc",
        "parameters": {"gamma": {"values": [5, 10, 20, 40]}, "beta": {"values": [0.2, 0.6]}},
        "search": "grid",
        "scenarios": ["./path.yaml"],
        "seeds": 1,
        "objective": "reward",
    }
    _write(folder, "sweep.yaml", sweep)


# What commands write of themselves and of the clock.
_OF_THE_RUN = {"command", "seconds", "created", "elapsed_s", "wall_time_s", "duration_s"}


def _without_time(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _without_time(v) for k, v in sorted(value.items()) if k not in _OF_THE_RUN}
    return [_without_time(entry) for entry in value] if isinstance(value, list) else value


def _document(name: str) -> Callable[[Path], Any]:
    return lambda folder: _without_time(json.loads((folder / name).read_text(encoding="utf-8")))


def _weights(folder: Path) -> Any:
    evaluations = (folder / "evaluations.jsonl").read_text(encoding="utf-8").splitlines()
    weights = (folder / "policy/policy.safetensors").read_bytes()
    return [sha256(weights).hexdigest(), [_without_time(json.loads(line)) for line in evaluations]]


def _table(folder: Path) -> Any:
    import pandas as pd

    frame = pd.read_parquet(folder / "trials.parquet")
    return frame.to_json(orient="records", double_precision=15)


def _training(algorithm: str) -> Command:
    from quicgym.benchmarks.campaign.tiny_training import tiny_training

    def prepare(folder: Path) -> None:
        _write_training(folder)
        _write(folder, "tiny.yaml", tiny_training(algorithm))

    return Command(f"train {algorithm}", ("train", "./tiny.yaml"), _weights, prepare)


def commands() -> list[Command]:
    """Returns the commands that are killed, in turn."""
    return [
        Command(
            "baselines",
            ("baselines", "--scenario", "./path.yaml", "--engine", "native", "--seeds", "4"),
            _document("results.json"),
            _write_suite,
        ),
        Command(
            "evaluate",
            ("evaluate", "--policy", "cubic", "--suite", "./suite.yaml", "--seeds", "4"),
            _document("evaluation.json"),
            _write_suite,
        ),
        Command("sweep", ("sweep", "./sweep.yaml", "--jobs", "1"), _table, _write_sweep),
        *map(_training, registry.names()),
    ]


def _start(command: Command, folder: Path, *more: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "quicgym.cli", *command.arguments, "--out", "out", *more],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def _finish(process: subprocess.Popen[str]) -> str:
    """Waits; returns what is wrong, or nothing."""
    try:
        _, errors = process.communicate(timeout=MOST_S)
    except subprocess.TimeoutExpired:
        _kill(process)
        return f"took more than {MOST_S:g} s"
    return (
        "" if process.returncode == 0 else f"status {process.returncode}: {one_line(errors[-400:])}"
    )


def _kill(process: subprocess.Popen[str]) -> None:
    """Kills the command alone, as the kernel does where memory runs out."""
    process.kill()
    process.wait()


class _Uninterrupted:
    """The result of each command, and how long it took, in s."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[Any, float]] = {}

    def of(self, command: Command) -> tuple[Any, float]:
        if command.name not in self._known:
            folder = Path(mkdtemp(prefix="quicgym-campaign-"))
            command.prepare(folder)
            began = time.monotonic()
            process = _start(command, folder)
            if problem := _finish(process):
                raise RuntimeError(f"{command.name} without a kill: {problem}")
            self._known[command.name] = command.result(folder / "out"), time.monotonic() - began
            shutil.rmtree(folder)
        return self._known[command.name]


def kill_once(command: Command, number: int, expected: Any, usual_s: float) -> list[str]:
    """Kills a command, resumes it until it is finished, and compares; returns what is wrong."""
    rng = np.random.default_rng([number, *b"kill"])
    folder = Path(mkdtemp(prefix="quicgym-campaign-"))
    command.prepare(folder)
    groups = []
    try:
        resume: tuple[str, ...] = ()
        for _ in range(int(rng.integers(1, 3))):  # now and then a resumed one is killed as well
            process = _start(command, folder, *resume)
            groups.append(process.pid)
            with suppress(subprocess.TimeoutExpired):
                process.wait(timeout=float(rng.uniform(0, usual_s)))
            _kill(process)
            resume = ("--resume",) if (folder / "out").exists() else ()
        process = _start(command, folder, *resume)
        groups.append(process.pid)
        if problem := _finish(process):
            return [f"{number}: {command.name}: {problem}"]
        if command.result(folder / "out") != expected:
            return [f"{number}: {command.name}: another result than without a kill"]
        return []
    finally:
        for group in groups:
            with suppress(ProcessLookupError):
                os.killpg(group, signal.SIGKILL)
        shutil.rmtree(folder, ignore_errors=True)


def _run(first: int, until: float, jobs: int) -> tuple[Found, int]:
    found, number = Found(), first
    uninterrupted, all_commands = _Uninterrupted(), commands()
    while number == first or time.monotonic() < until:
        command = all_commands[number % len(all_commands)]
        try:
            failures = kill_once(command, number, *uninterrupted.of(command))
            found.add(Found({f"kills of {command.name}": 1}, failures))
        except Exception as error:  # whatever it is, it is a failure of this number
            text = f"{number}: {command.name}: {type(error).__name__}: {one_line(error)}"
            found.add(Found(failures=[text]))
        number += 1
    return found, number


PART = Part(
    name="kills",
    title="SIGKILL at a random moment, then --resume: the result of an uninterrupted run",
    goals={
        f"kills of {name}": 200
        for name in ("baselines", "evaluate", "sweep", *(f"train {a}" for a in registry.names()))
    },
    share=2.0,
    run=_run,
    missing=lambda: packages_missing("ray", "stable_baselines3"),
)
