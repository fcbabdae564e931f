"""Compares the policies that a training started with, chose and ended with, to show its worth.

All of them are played on the same paths with the same seeds, so that the differences are paired.
The evaluations on the way have chosen the best policy, so none of their paths is among these:

- Where the evaluation's suite is a distribution, the paths are other draws from it.
- Where the suite is a list of scenarios, they are draws from the distribution that is trained on.
- Where that is a scenario too, they are the suite's scenarios with other seeds.

The mean of the differences has a 95% interval by Student's t over paths. Something was learned
where the interval of best minus start is above 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from quicgym.agents.evaluation.rollouts import play_all
from quicgym.agents.evaluation.statistics import mean_difference
from quicgym.agents.evaluation.training_summary import Compared, Summary
from quicgym.agents.policies.learned import LearnedPolicy
from quicgym.agents.training.configuration import TrainingConfig
from quicgym.console import progress_bar, say
from quicgym.envs.rewards import AnyReward, find_reward
from quicgym.envs.scenarios.model import Scenario
from quicgym.envs.scenarios.suites import (
    SuiteEntry,
    content_of,
    scenario_of,
)
from quicgym.output_folders import digest

FIRST_SEED = 1_000_000
"""First seed of the paths; evaluations during training begin at `suites.SELECTION_SEED`."""
_AT_A_TIME = 128  # episodes side by side, after which the bar moves


@dataclass(frozen=True)
class _Paths:
    """The entries that paths are drawn from, and the seeds of each."""

    entries: Sequence[SuiteEntry]
    name: str
    seeds: int

    @property
    def count(self) -> int:
        return len(self.entries) * self.seeds


def _paths_of(config: TrainingConfig, suite: Sequence[SuiteEntry], scenario: SuiteEntry) -> _Paths:
    entries, name = suite, config.evaluation.suite
    if all(isinstance(entry, Scenario) for entry in suite):
        if not isinstance(scenario, Scenario):
            entries, name = [scenario], config.environment.scenario
    # An interval needs two.
    seeds = max(2, -(-config.evaluation.comparison_paths // len(entries)))
    return _Paths(entries, name, seeds)


def compare(
    config: TrainingConfig,
    policies: Mapping[str, tuple[int, LearnedPolicy]],
    suite: Sequence[SuiteEntry],
    scenario: SuiteEntry,
    threads: int,
    known: Summary | None = None,
) -> Summary:
    """Plays the policies on the same new paths, with a progress bar on standard error.

    `policies` has step and policy, as loaded, of "start", "best" and "last". `known` is an earlier
    summary, which is returned where nothing has changed.
    """
    paths = _paths_of(config, suite, scenario)
    reward = find_reward(config.environment.reward)
    weights = {name: _weights_of(policy) for name, (_, policy) in policies.items()}
    identity = digest([content_of(paths.entries), paths.seeds, FIRST_SEED, asdict(reward), weights])
    if known is not None and known.identity == identity:
        return known
    different = {weights[name]: policy for name, (_, policy) in policies.items()}
    say(f"comparing start, best and last policy on {paths.count:,} paths of {paths.name}")
    rewards = _rewards_of(different, paths, threads, reward)
    start = rewards[weights["start"]]
    compared = []
    for name, (step, _) in policies.items():
        own = rewards[weights[name]]
        gain = mean_difference(own, start)
        assert gain.low is not None and gain.high is not None  # there are two seeds or more
        reached = (float(own.mean()), gain.value, gain.low, gain.high)
        compared.append(Compared(name, step, weights[name], *reached))
    return Summary(paths.count, paths.name, FIRST_SEED, identity, tuple(compared))


def _rewards_of(
    policies: Mapping[Any, LearnedPolicy], paths: _Paths, threads: int, reward: AnyReward
) -> dict[Any, np.ndarray]:
    """The rewards of each policy, of shape (entries, seeds), with a progress bar."""
    cells = [
        (scenario_of(entry, seed), seed)
        for entry in paths.entries
        for seed in range(FIRST_SEED, FIRST_SEED + paths.seeds)
    ]
    rewards = {}
    with progress_bar() as progress:
        task = progress.add_task("episodes", total=len(policies) * len(cells))
        for name, policy in policies.items():
            earned: list[float | None] = []
            for begin in range(0, len(cells), _AT_A_TIME):
                chosen = cells[begin : begin + _AT_A_TIME]
                played = play_all(policy, chosen, threads=threads, reward=reward)
                earned += [run.metrics["reward"] for run in played]
                progress.advance(task, len(chosen))
            rewards[name] = np.array(earned, dtype=float).reshape(len(paths.entries), paths.seeds)
    return rewards


def _weights_of(policy: LearnedPolicy) -> str:
    assert policy.description is not None
    return policy.description.sha256
