"""Commands of quicgym that take seconds, and what of their results has to be the same each time."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from tempfile import mkdtemp
from typing import IO, Any

from helpers.commands import command as command_line
from helpers.inputs import write_inputs

from campaign.part import Found, numbered, one_line
from quicgym.agents.algorithms import registry

MOST_S = 1800.0
"""No command takes longer, or it hangs."""


@dataclass(frozen=True)
class Command:
    """A command that goes on after a kill.

    Attributes:
        name: Name of the command's count.
        arguments: Arguments of quicgym without `--out` and `--resume`.
        result: Reads the results of a finished folder, without what tells of time.
        algorithm: The training algorithm of tiny.yaml.
        resumes: Whether the command has `--resume`. Otherwise it begins anew.
    """

    name: str
    arguments: tuple[str, ...]
    result: Callable[[Path], Any]
    algorithm: str = "ppo"
    resumes: bool = True

    def prepare(self) -> Path:
        """Returns a new folder with what the arguments name."""
        folder = Path(mkdtemp(prefix="quicgym-campaign-"))
        return write_inputs(folder, self.algorithm, duration_s=20.0)


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
    return json.loads(frame.to_json(orient="records", double_precision=15))


def _searched(folder: Path) -> Any:
    return [_table(folder), sha256((folder / "policy/policy.safetensors").read_bytes()).hexdigest()]


def _training(algorithm: str) -> Command:
    return Command(f"train {algorithm}", ("train", "./tiny.yaml"), _weights, algorithm)


EVALUATE = Command(
    "evaluate",
    ("evaluate", "--policy", "cubic", "--suite", "./suite.yaml", "--seeds", "4"),
    _document("evaluation.json"),
)
SWEEP = Command("sweep", ("sweep", "./sweep.yaml"), _table)
SEARCH = Command("search", ("search", "./search.yaml"), _searched)


def commands() -> list[Command]:
    """Returns the commands that are killed, in turn; those with the most steps are the last."""
    one_job = ("--jobs", "1")
    return [
        Command(
            "baselines",
            ("baselines", "--scenario", "./path.yaml", "--engine", "native", "--seeds", "4"),
            _document("results.json"),
        ),
        Command(
            "papers",
            ("papers", "--paper", "./paper.yaml", "--seeds", "2"),
            _document("papers.json"),
        ),
        EVALUATE,
        Command(
            "coexist",
            ("coexist", "cubic", "--rates", "2", "--duration-s", "18", "--seeds", "2"),
            _document("coexist.json"),
        ),
        Command(
            "league",
            ("league", "./league.yaml", "--policies", "baselines"),
            _document("league.json"),
        ),
        Command(
            "checklist",
            ("checklist", "cubic", "--checklist", "./checks.yaml", "--seeds", "8"),
            _document("checklist.json"),
        ),
        replace(SWEEP, arguments=(*SWEEP.arguments, *one_job)),
        Command(
            "real",
            ("real", "--scenario", "./path.yaml", "--controller", "cubic", "--stack", "aioquic"),
            _document("aioquic-virtual/evaluation.json"),
            resumes=False,
        ),
        *map(_training, registry.names()),
        replace(SEARCH, arguments=(*SEARCH.arguments, *one_job)),
        Command(
            "attack",
            (
                "attack",
                "copa",
                "--against",
                "cubic",
                "--distribution",
                "training-50",
                "--trials",
                "16",
            ),
            _document("attack.json"),
        ),
    ]


def difference(expected: Any, found: Any, where: str = "result") -> str:
    """Returns where two results differ first, and how; nothing where they are the same."""
    if isinstance(expected, dict) and isinstance(found, dict):
        pairs = [(key, expected.get(key), found.get(key)) for key in {**expected, **found}]
    elif isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        pairs = [(n, *both) for n, both in enumerate(zip(expected, found, strict=True))]
    else:
        return "" if expected == found else f"{where} = {found!s:.80} in place of {expected!s:.80}"
    texts = (difference(one, other, f"{where}.{key}") for key, one, other in pairs)
    return next(filter(None, texts), "")


def start(
    command: Command,
    folder: Path,
    *more: str,
    environment: Mapping[str, str] | None = None,
    stderr: int | IO[str] = subprocess.PIPE,
) -> subprocess.Popen[str]:
    """Starts a command in a folder, in a process group of its own; results go to out/ there.

    Args:
        command: The command.
        folder: The folder.
        more: Further arguments.
        environment: Variables beside those of this process.
        stderr: Where its messages go.
    """
    return subprocess.Popen(
        command_line(*command.arguments, "--out", "out", *more),
        cwd=folder,
        env={**os.environ, **(environment or {})},
        stdout=subprocess.DEVNULL,
        stderr=stderr,
        text=True,
        start_new_session=True,
    )


def finish(process: subprocess.Popen[str]) -> str:
    """Waits; returns what is wrong, or nothing."""
    try:
        _, errors = process.communicate(timeout=MOST_S)
    except subprocess.TimeoutExpired:
        kill(process)
        return f"took more than {MOST_S:g} s"
    return (
        "" if process.returncode == 0 else f"status {process.returncode}: {one_line(errors[-400:])}"
    )


def kill(process: subprocess.Popen[str]) -> None:
    """Kills the command alone, as the kernel does where memory runs out."""
    process.kill()
    process.wait()


class Uninterrupted:
    """Commands that nothing happens to, each run once, with further arguments."""

    def __init__(self, *more: str) -> None:
        self._more = more
        self._known: dict[str, tuple[Any, float]] = {}

    def of(self, command: Command) -> tuple[Any, float]:
        """Returns the result of a command, and how long it took, in s."""
        if command.name not in self._known:
            folder = command.prepare()
            began = time.monotonic()
            process = start(command, folder, *self._more)
            if problem := finish(process):
                raise RuntimeError(f"{command.name} without a kill: {problem}")
            self._known[command.name] = command.result(folder / "out"), time.monotonic() - began
            shutil.rmtree(folder)
        return self._known[command.name]


def in_turn(
    those: Sequence[Command], check: Callable[[Command, int], Found], first: int, until: float
) -> tuple[Found, int]:
    """Checks commands one after another, over and over, as `numbered` does with numbers."""

    def check_number(number: int) -> Found:
        command = those[number % len(those)]
        try:
            return check(command, number)
        except Exception as error:  # whatever it is, it is a failure of this number
            text = f"{number}: {command.name}: {type(error).__name__}: {one_line(error)}"
            return Found(failures=[text])

    return numbered(check_number, first, until, jobs=1)
