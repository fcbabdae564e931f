"""The folder of a training run: what was run, what came of it, and from where it can go on.

| file | content |
|---|---|
| `run.json` | the commands, the whole configuration, seed, version and commit |
| `checkpoints/step-*.pt` | everything that training continues from; the newest two |
| `controllers.json` | metrics of `evaluation.controllers` on the evaluations' paths |
| `evaluations.jsonl` | a line per evaluation and scenario: step, scenario, seed, metrics |
| `policy/policy.json`, `.safetensors` | the best policy so far, as `quicgym.load_policy` takes it |
| `policy/start.json`, `policy/last.json` | the policies that training started and ended with |
| `evaluation/` | at the end: the best policy, as `quicgym evaluate` leaves it |
| `summary.json` | at the end: start, best and last policy compared on the same new paths |
| `tensorboard/` | curves of training and evaluation |

A file is written next to its place and then renamed, so it is there as a whole or not at all.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from quicgym.agents.evaluation.run_folders import CONTROLLERS_FILE, EVALUATIONS_FILE
from quicgym.agents.evaluation.statistics import interquartile_mean
from quicgym.agents.evaluation.training_summary import SUMMARY_FILE
from quicgym.errors import RunError
from quicgym.input_files import read_input_json
from quicgym.output_folders import (
    LOCK_FILE,
    RUN_FILE,
    beside,
    read_json_lines,
    write_atomically,
)


@dataclass(frozen=True)
class RunFolder:
    """The paths of a run, and how they are read and written."""

    directory: Path

    @property
    def start_path(self) -> Path:
        """Path of the description of the policy that training started with."""
        return self.policy_path.with_name("start.json")

    @property
    def last_path(self) -> Path:
        """Path of the description of the policy that training ended with."""
        return self.policy_path.with_name("last.json")

    @property
    def summary_path(self) -> Path:
        """Path of the comparison of start, best and last policy."""
        return self.directory / SUMMARY_FILE

    @property
    def description_path(self) -> Path:
        """Path of run.json."""
        return self.directory / RUN_FILE

    @property
    def is_new(self) -> bool:
        """Whether the folder is there, with no more than a kill before the run leaves."""
        left = {self.directory / LOCK_FILE, beside(self.description_path)}
        return self.directory.is_dir() and left.issuperset(self.directory.iterdir())

    @property
    def evaluations_path(self) -> Path:
        """Path of evaluations.jsonl."""
        return self.directory / EVALUATIONS_FILE

    @property
    def controllers_path(self) -> Path:
        """Path of controllers.json."""
        return self.directory / CONTROLLERS_FILE

    @property
    def policy_path(self) -> Path:
        """Path of the best policy's description."""
        return self.directory / "policy" / "policy.json"

    @property
    def evaluation(self) -> Path:
        """The folder with the best policy's evaluation, when training is done."""
        return self.directory / "evaluation"

    @property
    def tensorboard(self) -> Path:
        """The folder of event files."""
        return self.directory / "tensorboard"

    def checkpoint(self, step: int) -> Path:
        """Returns the path of the checkpoint at a step."""
        return self.directory / "checkpoints" / f"step-{step:012d}.pt"

    @staticmethod
    def step_of(checkpoint: Path) -> int:
        """Returns the step of a checkpoint."""
        return int(checkpoint.stem.removeprefix("step-"))

    def checkpoints(self) -> list[Path]:
        """Returns the checkpoints, oldest first."""
        return sorted((self.directory / "checkpoints").glob("step-*.pt"))

    def last_checkpoint(self) -> str:
        """Returns which one is the newest, in words."""
        checkpoints = self.checkpoints()
        return (
            f"the last checkpoint is {checkpoints[-1]}" if checkpoints else "there is no checkpoint"
        )

    def resuming_command(self) -> str:
        """Returns the command that continues the run; RunError if run.json is not a run's."""
        about = self.description()
        command = str([about.get("command", "quicgym train"), *about.get("resumed", ())][-1])
        return command if "--resume" in command.split() else f"{command} --resume"

    def describe(self, description: Mapping[str, Any]) -> None:
        """Writes run.json."""
        text = json.dumps(description, indent=1) + "\n"
        write_atomically({self.description_path: text})

    def description(self) -> dict[str, Any]:
        """Reads run.json; RunError where it is not there, or is something else."""
        try:
            data = read_input_json(self.description_path)
        except (OSError, ValueError) as error:
            raise RunError(
                f"{self.description_path}: cannot be read ({error}); give the folder of a run of "
                "`quicgym train`"
            ) from None
        known = isinstance(data, dict) and data.get("format") == "quicgym-run-1"
        if not known or not _is_description(data):
            raise RunError(f"{self.description_path}: describes no run of this quicgym")
        return data

    def evaluations(self) -> list[dict[str, Any]]:
        """Returns the lines of evaluations.jsonl; RunError where one is damaged."""
        if not self.evaluations_path.exists():
            return []
        records = read_json_lines(self.evaluations_path)
        for number, record in enumerate(records, 1):
            step, reward = record.get("step"), record.get("reward")
            if not isinstance(step, int) or not isinstance(reward, int | float):
                raise RunError(
                    f"{self.evaluations_path}:{number}: has no step or no reward; restore the "
                    "file, or train again"
                )
        return records

    def curve(self) -> dict[int, float]:
        """Returns the interquartile mean reward of each evaluation, by its step."""
        rewards: dict[int, list[float]] = {}
        for record in self.evaluations():
            rewards.setdefault(record["step"], []).append(record["reward"])
        return {step: float(interquartile_mean(np.array(of))) for step, of in rewards.items()}

    def write_evaluations(self, records: Iterable[Mapping[str, Any]]) -> None:
        """Writes evaluations.jsonl anew."""
        text = "".join(json.dumps(record) + "\n" for record in records)
        write_atomically({self.evaluations_path: text})


def _is_description(data: Mapping[str, Any]) -> bool:
    """Whether run.json has what a resumed run is compared with."""
    config, inputs, resumed = data.get("config"), data.get("inputs"), data.get("resumed", [])
    return (
        isinstance(config, dict)
        and isinstance(config.get("evaluation"), dict)
        and isinstance(config.get("steps"), int)
        and isinstance(inputs, dict)
        and isinstance(resumed, list)
        and isinstance(data.get("commit"), str)
    )
