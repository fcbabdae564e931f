"""Commands of quicgym that take seconds, and what of their results has to be the same each time."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import yaml

from campaign.part import Found, numbered, one_line
from campaign.tiny_training import tiny_training
from quicgym.agents.algorithms import registry

MOST_S = 1800.0
"""No command takes longer, or it hangs."""


@dataclass(frozen=True)
class Command:
    """A command that goes on after a kill.

    Attributes:
        name: Of its count.
        arguments: Without `--out` and `--resume`.
        result: Of a folder that it has finished, without what tells of time.
        prepare: Writes what the arguments name into a folder.
        resumes: Has `--resume`; otherwise it begins anew, beside what the killed one has left.
    """

    name: str
    arguments: tuple[str, ...]
    result: Callable[[Path], Any]
    prepare: Callable[[Path], None]
    resumes: bool = True


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


def _write_paper(folder: Path) -> None:
    _write_suite(folder)
    check = {"metric": "mean_rtt_ms", "of": "bbr", "to": "newreno", "in": "ebcc-single", "below": 1}
    claim = {
        "id": "rtt",
        "statement": "Lower RTT.",
        "source": "1",
        "tables": "1",
        "checks": [check],
    }
    row = {"label": "path", "scenario": "ebcc-single", "values": {"newreno": "3.0/-"}}
    paper = {
        "name": "small",
        "title": "A small paper",
        "reference": "Nowhere, 2026",
        "doi": "10.1000/1",
        "algorithms": {"newreno": "Reno", "bbr": "BBR"},
        "tables": [
            {
                "number": "1",
                "caption": "Rates",
                "row_header": "Path",
                "metrics": {"rate": "receive_rate_mbps", "first": "goodput_mbps@1"},
                "rows": [row],
            }
        ],
        "claims": [claim],
    }
    _write(folder, "paper.yaml", paper)


def _write_checklist(folder: Path) -> None:
    path = {**_scenario("path", None, 20.0), "flows": [{"name": "agent"}]}
    del path["name"]
    check = {
        "question": "Is the link used?",
        "scenarios": ["path"],
        "number": "utilisation",
        "at_least": 0.5,
        "source": "ours",
    }
    checklist = {
        "name": "small",
        "title": "A small checklist",
        "scenarios": {"path": path},
        "items": [{"section": "1", "title": "Use", "checks": [check]}],
    }
    _write(folder, "checklist.yaml", checklist)


def _write_search(folder: Path) -> None:
    _write_training(folder)
    _write(folder, "tiny.yaml", tiny_training("ppo"))
    search = {
        "name": "gamma",
        "training": "./tiny.yaml",
        "scheduler": "asha",
        "search": "random",
        "hyperparameters": {"hyperparameters.gamma": {"minimum": 0.9, "maximum": 0.99}},
        "samples": 3,
        "seed": 9,
        "grace_steps": 479,  # so that no trial ends early, whichever of them is the first
        "reduction_factor": 2,
    }
    _write(folder, "search.yaml", search)


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
    def prepare(folder: Path) -> None:
        _write_training(folder)
        _write(folder, "tiny.yaml", tiny_training(algorithm))

    return Command(f"train {algorithm}", ("train", "./tiny.yaml"), _weights, prepare)


EVALUATE = Command(
    "evaluate",
    ("evaluate", "--policy", "cubic", "--suite", "./suite.yaml", "--seeds", "4"),
    _document("evaluation.json"),
    _write_suite,
)
SWEEP = Command("sweep", ("sweep", "./sweep.yaml"), _table, _write_sweep)
SEARCH = Command("search", ("search", "./search.yaml"), _searched, _write_search)


def commands() -> list[Command]:
    """Returns the commands that are killed, in turn."""
    one_job = ("--jobs", "1")
    return [
        Command(
            "baselines",
            ("baselines", "--scenario", "./path.yaml", "--engine", "native", "--seeds", "4"),
            _document("results.json"),
            _write_suite,
        ),
        Command(
            "papers",
            ("papers", "--paper", "./paper.yaml", "--seeds", "2"),
            _document("papers.json"),
            _write_paper,
        ),
        EVALUATE,
        Command(
            "checklist",
            ("checklist", "cubic", "--checklist", "./checklist.yaml", "--seeds", "8"),
            _document("checklist.json"),
            _write_checklist,
        ),
        replace(SWEEP, arguments=(*SWEEP.arguments, *one_job)),
        replace(SEARCH, arguments=(*SEARCH.arguments, *one_job)),
        Command(
            "real",
            ("real", "--scenario", "./path.yaml", "--controller", "cubic", "--stack", "aioquic"),
            _document("aioquic-virtual/evaluation.json"),
            _write_suite,
            resumes=False,
        ),
        *map(_training, registry.names()),
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


def start(command: Command, folder: Path, *more: str) -> subprocess.Popen[str]:
    """Starts a command in a folder, in a process group of its own; results go to out/ there."""
    return subprocess.Popen(
        [sys.executable, "-m", "quicgym.cli", *command.arguments, "--out", "out", *more],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
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
    """Commands that nothing happens to, each run once.

    Args:
        more: Arguments of all of them.
    """

    def __init__(self, *more: str) -> None:
        """Runs none yet."""
        self._more = more
        self._known: dict[str, tuple[Any, float]] = {}

    def of(self, command: Command) -> tuple[Any, float]:
        """Returns the result of a command, and how long it took, in s."""
        if command.name not in self._known:
            folder = Path(mkdtemp(prefix="quicgym-campaign-"))
            command.prepare(folder)
            began = time.monotonic()
            process = start(command, folder, *self._more)
            if problem := finish(process):
                raise RuntimeError(f"{command.name} without a kill: {problem}")
            self._known[command.name] = command.result(folder / "out"), time.monotonic() - began
            shutil.rmtree(folder)
        return self._known[command.name]


def in_turn(
    those: Sequence[Command],
    check: Callable[[Command, int], Found],
    first: int,
    until: float,
) -> tuple[Found, int]:
    """Checks commands one after another, over and over, until the time is over.

    Args:
        those: The commands.
        check: Of a command, with the number.
        first: As `numbered` takes it.
        until: The same.

    Returns:
        As `numbered`.
    """

    def check_number(number: int) -> Found:
        command = those[number % len(those)]
        try:
            return check(command, number)
        except Exception as error:  # whatever it is, it is a failure of this number
            text = f"{number}: {command.name}: {type(error).__name__}: {one_line(error)}"
            return Found(failures=[text])

    return numbered(check_number, first, until, jobs=1)
