"""Defines the rewards, which are the same for learned agents and for hand-coded controllers.

All rewards are computed from what happened since the last decision over all flows of the
environment. Rates count bytes on the wire, headers included.

| name              | reward                                                                  |
|-------------------|-------------------------------------------------------------------------|
| `fair-throughput` | throughput share - 5 · loss rate - 1 · (1 - Jain)                       |
| `delay`           | throughput share - 5 · loss rate - 1 · (RTT ratio - 1)                  |
| `power`           | throughput share / RTT ratio                                            |

Throughput share is what reached the receivers over what the bottleneck could have sent, the loss
rate what the network dropped over what it dropped or delivered, the RTT ratio the mean of each RTT
sample over its flow's minimum.

With a reward per flow, a flow's throughput share is its throughput over an equal part of the
bottleneck's capacity, Jain's index stays the common one, and all else is the flow's own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from quicgym import _core
from quicgym.envs.info import INFO_COLUMNS
from quicgym.errors import RewardError
from quicgym.python_files import PythonFile, is_python_object
from quicgym.yaml_files import closest

REWARDS: tuple[str, ...] = tuple(_core.REWARDS)

RewardFunction = Callable[[Mapping[str, np.ndarray]], np.ndarray]
"""From the columns of `info`, each of shape (rows,), to the rewards, of shape (rows,).

The rows are those of the agents whose episode has moved on. One more column, "row", has their
numbers among all rows of the environment, by which a function can keep what it saw in a row's last
step; a `time_s` that is not later than before begins a new episode.
"""


@dataclass(frozen=True)
class Reward:
    """A reward by name, with your choice of weights.

    Attributes:
        name: One of REWARDS.
        loss_weight: Weight of the loss rate, in fair-throughput and delay.
        fairness_weight: Weight of 1 - Jain's index, in fair-throughput.
        delay_weight: Weight of the RTT ratio - 1, in delay.
    """

    name: str = "fair-throughput"
    loss_weight: float = 5.0
    fairness_weight: float = 1.0
    delay_weight: float = 1.0

    def __post_init__(self) -> None:
        """Raises ValueError for an unknown name or a weight that is not a finite number."""
        if self.name not in REWARDS:
            raise ValueError(f"unknown reward {self.name!r}; {closest(self.name, REWARDS)}")
        for field in ("loss_weight", "fairness_weight", "delay_weight"):
            weight = getattr(self, field)
            if not isinstance(weight, int | float | np.number) or not np.isfinite(weight):
                raise ValueError(f"{field} = {weight!r}: give a finite number")

    def to_core(self) -> _core.RewardSettings:
        """Fills the C++ structure."""
        settings = _core.RewardSettings()
        settings.kind = _core.REWARDS[self.name]
        settings.loss_weight = self.loss_weight
        settings.fairness_weight = self.fairness_weight
        settings.delay_weight = self.delay_weight
        return settings


@dataclass(frozen=True)
class FileReward:
    """A reward function of a user's file.

    A process that is handed the reward runs the file at the first call.

    Attributes:
        name: The function as the user names it, `file.py:function`.
        sha256: The SHA-256 of the file and of the modules in its folder that it imports.
    """

    name: str
    sha256: str

    def __call__(self, columns: Mapping[str, np.ndarray]) -> np.ndarray:
        """Returns the reward of each row.

        Raises:
            RewardError: The function fails or returns something else, or its file has changed.
        """
        rewards = _earned(self.name, *_load(self.name, self.sha256), columns)
        if not np.isfinite(rewards).all():
            row = int(np.flatnonzero(~np.isfinite(rewards))[0])
            unknown = [name for name, column in columns.items() if np.isnan(column[row])]
            raise RewardError(
                f"{self.name}: returned {rewards[row]}; return finite numbers. Columns that are "
                f"NaN there because nothing was measured: {', '.join(unknown) or 'none'}; "
                "np.nan_to_num gives them a value"
            )
        return rewards

    @property
    def file(self) -> Path:
        """The path of the file."""
        return Path(self.name.rpartition(":")[0])


AnyReward = Reward | FileReward


def find_reward(choice: str) -> AnyReward:
    """Returns a reward by its name, or a function of a Python file, which is run.

    Args:
        choice: One of REWARDS, or `file.py:function`.

    Raises:
        RewardError: There is no such file or function, or it fails on two rows of ones.
        ValueError: There is no reward of this name.
    """
    if not is_python_object(choice):
        return Reward(choice)
    file, function = _run(choice)
    tried = {**dict.fromkeys(INFO_COLUMNS, np.ones(2)), "row": np.arange(2)}
    _earned(choice, file, function, tried)
    return FileReward(choice, file.sha256)


@cache
def _load(choice: str, sha256: str) -> tuple[PythonFile, Any]:
    file, function = _run(choice)
    if file.sha256 != sha256:
        raise RewardError(f"{choice}: its file has changed meanwhile; run the command again")
    return file, function


def _run(choice: str) -> tuple[PythonFile, Any]:
    path, colon, name = choice.rpartition(":")
    if not colon or not name:
        raise RewardError(f"{choice}: name the function as well, such as {choice}:reward")
    file = PythonFile(Path(path), RewardError)
    function = file.find(name)
    if not callable(function):
        raise RewardError(
            f"{choice}: is {type(function).__name__}; give a function that takes the columns of "
            "info and returns an array"
        )
    return file, function


def _earned(
    choice: str, file: PythonFile, function: Any, columns: Mapping[str, np.ndarray]
) -> np.ndarray:
    """Calls a function of a file; returns what has the right shape."""
    rows = len(columns["time_s"])
    try:
        returned = function(columns)
    except (Exception, SystemExit) as error:
        raise RewardError(f"{choice}: {file.describe(error)}; it was given {rows} rows") from error
    try:
        if returned is None:  # numpy would make NaN of it
            raise TypeError
        rewards = np.asarray(returned, dtype=np.float64)
    except (TypeError, ValueError):
        raise RewardError(
            f"{choice}: returned {None if returned is None else type(returned).__name__}; return "
            f"an array of {rows} numbers"
        ) from None
    if rewards.shape != (rows,):
        raise RewardError(
            f"{choice}: returned the shape {rewards.shape} for {rows} rows; return one number for "
            f"each, of the shape ({rows},)"
        )
    return rewards
