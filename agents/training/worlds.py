"""Compares a policy with controllers, or other policies, on the same networks.

A world is an entry of the evaluation's suite: a distribution, or a part of a mixture. What a policy
is chosen by is its worst world: the least of its mean rewards minus that of the best single one of
the others there.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from quicgym.agents.evaluation.rollouts import play_all
from quicgym.agents.evaluation.statistics import Estimate, mean_difference
from quicgym.agents.policies.by_name import find_policy
from quicgym.console import progress_bar
from quicgym.envs.rewards import AnyReward
from quicgym.envs.scenarios.suites import SELECTION_SEED, SuiteEntry, content_of, episodes_of
from quicgym.output_folders import digest, read_json, write_atomically


@dataclass(frozen=True)
class World:
    """How a policy did in a world.

    Attributes:
        name: Name of the distribution or the scenario.
        reward: Mean reward of the policy.
        best: Name of the one among the others that has the highest mean reward.
        difference: Mean reward minus that one's, paired, with its 95% interval.
    """

    name: str
    reward: float
    best: str
    difference: Estimate


@dataclass(frozen=True)
class Worlds:
    """The rewards of controllers and policies on the paths of an evaluation.

    Attributes:
        names: Name of each world.
        rewards: Rewards by name, each of shape (worlds, seeds).
    """

    names: Sequence[str]
    rewards: Mapping[str, np.ndarray]

    def compare(self, rewards: np.ndarray) -> list[World]:
        """Returns how a policy did in each world.

        Args:
            rewards: The policy's rewards on the same paths, world by world.
        """
        own = rewards.reshape(len(self.names), -1)
        worlds = []
        for place, name in enumerate(self.names):
            best = max(self.rewards, key=lambda controller: self.rewards[controller][place].mean())
            other = self.rewards[best][place]
            difference = mean_difference(own[[place]], other[None])
            worlds.append(World(name, float(own[place].mean()), best, difference))
        return worlds


def measure_controllers(
    controllers: Sequence[str],
    entries: Sequence[SuiteEntry],
    seeds: int,
    path: Path,
    *,
    threads: int,
    reward: AnyReward,
) -> Worlds:
    """Measures controllers and policies, or reads what an earlier call measured.

    Args:
        controllers: Their names, as `quicgym evaluate --policy` takes them.
        entries: The worlds.
        seeds: Number of seeds of each world, from SELECTION_SEED on.
        path: File in which the runs are kept, for `quicgym compare` as well.
        threads: Number of threads that run episodes.
        reward: Reward of the episodes.
    """
    asked = [list(controllers), content_of(entries), SELECTION_SEED, seeds, asdict(reward)]
    identity = digest(asked)
    if path.exists():
        kept = read_json(path, ("identity", "runs"))
        if kept["identity"] == identity:
            return _worlds(entries, kept["runs"])
    cells = episodes_of(entries, seeds, SELECTION_SEED)
    runs: list[dict[str, Any]] = []
    with progress_bar() as progress:
        task = progress.add_task("evaluation.controllers", total=len(controllers) * len(entries))
        for name in controllers:
            for entry, begin in zip(entries, range(0, len(cells), seeds), strict=True):
                paths = cells[begin : begin + seeds]
                played = play_all(find_policy(name), paths, threads=threads, reward=reward)
                runs += [
                    {"controller": name, "scenario": entry.name, "seed": seed, **run.evaluation}
                    for (_, seed), run in zip(paths, played, strict=True)
                ]
                progress.advance(task)
    write_atomically({path: json.dumps({"identity": identity, "runs": runs}) + "\n"})
    return _worlds(entries, runs)


def _worlds(entries: Sequence[SuiteEntry], runs: Sequence[Mapping[str, Any]]) -> Worlds:
    """Returns the rewards of runs, which stand in the order in which they were played."""
    rewards: dict[str, list[float | None]] = {}
    for run in runs:
        rewards.setdefault(run["controller"], []).append(run["reward"])
    return Worlds(
        [entry.name for entry in entries],
        {name: np.array(of, dtype=float).reshape(len(entries), -1) for name, of in rewards.items()},
    )


def print_worlds(worlds: Sequence[World], step: int) -> None:
    """Prints a row for each world, the worst last."""
    table = Table(box=None, pad_edge=False)
    words = ("world", "best of the others")
    for heading in ("world", "reward", "best of the others", "minus its reward", "95% interval"):
        table.add_column(heading, justify="left" if heading in words else "right")
    for world in sorted(worlds, key=lambda world: -world.difference.value):
        low, high = world.difference.low, world.difference.high
        interval = "" if low is None or high is None else f"{low:+.4f} to {high:+.4f}"
        row = (world.name, f"{world.reward:.4f}", world.best, f"{world.difference.value:+.4f}")
        table.add_row(*row, interval)
    console = Console()
    console.print(f"\nThe chosen policy (step {step:,}) in each world, the worst last:\n")
    console.print(table)
