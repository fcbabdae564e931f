"""A trial of a sweep: a controller with one setting of its parameters, all scenarios and seeds.

Imports nothing that the extra `train` brings, so that Ray's workers start fast.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from quicgym.agents.evaluation.rollouts import play
from quicgym.agents.evaluation.statistics import interquartile_mean
from quicgym.agents.policies.hand_coded import controller_policy
from quicgym.agents.tuning.ranges import rounded
from quicgym.agents.tuning.sweep_config import Setting, SweepConfig, Value
from quicgym.envs import Reward, Scenario
from quicgym.envs.actions import action_space
from quicgym.envs.scenarios.engines import EngineName


@dataclass(frozen=True)
class FinishedTrial:
    """A trial's setting, objective, the objective of each seed, and the metrics of each run."""

    setting: Setting
    objective: float
    per_seed: tuple[float, ...]
    episodes: Sequence[Mapping[str, Any]]

    @property
    def deviation(self) -> float | None:
        """The standard deviation over the seeds; None with one seed."""
        return float(np.std(self.per_seed, ddof=1)) if len(self.per_seed) > 1 else None

    def mean(self, metric: str) -> float:
        """Returns the mean of a metric over the runs that have it; NaN where none has."""
        measured = [run[metric] for run in self.episodes if run[metric] is not None]
        return float(np.mean(measured)) if measured else math.nan


@dataclass(frozen=True)
class FailedTrial:
    """A trial's setting, and why it failed."""

    setting: Setting
    reason: str


@dataclass(frozen=True)
class Trials:
    """What all trials of a sweep have in common.

    Attributes:
        controller: Of every flow that names none.
        fixed: Parameters that are not swept.
        scenarios: What is run.
        engine: "native" or "ns3".
        reward: What is earned.
        objective: The metric that counts.
        interquartile: Whether the objective is the interquartile mean of the runs, or their mean.
    """

    controller: str
    fixed: Setting
    scenarios: Sequence[Scenario]
    engine: EngineName
    reward: str
    objective: str
    interquartile: bool

    @classmethod
    def of(cls, config: SweepConfig, scenarios: Sequence[Scenario]) -> Trials:
        """Returns the trials of a sweep over the scenarios that it names."""
        return cls(
            config.controller,
            dict(config.fixed),
            scenarios,
            config.engine,
            config.reward,
            config.objective,
            config.suite is not None,
        )

    def run(self, setting: Setting, seeds: Iterable[int]) -> dict[str, Any]:
        """Runs one.

        Args:
            setting: The swept parameters.
            seeds: Of the simulations; each scenario runs with each of them.

        Returns:
            `objective`; `per_seed`, the objective of each seed alone; `episodes`, the metrics of
            each run with its scenario and seed.

        Raises:
            ValueError: A run has no value of the objective.
        """
        parameters = {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in {**self.fixed, **setting}.items()
        }
        policy = controller_policy(self.controller, action_space("tuning"), **parameters)
        episodes, rows = [], []
        for seed in seeds:
            row = []
            for scenario in self.scenarios:
                metrics = play(
                    policy, scenario, self.engine, seed, reward=Reward(self.reward)
                ).metrics
                value = metrics[self.objective]
                if value is None:
                    raise ValueError(
                        f"scenario {scenario.name}, seed {seed}: nothing to measure "
                        f"{self.objective} by; leave the scenario out or choose another objective"
                    )
                row.append(value)
                episodes.append({"scenario": scenario.name, "seed": seed, **metrics})
            rows.append(row)
        return {
            "objective": self._mean(np.ravel(rows)),
            "per_seed": [self._mean(np.array(row)) for row in rows],
            "episodes": episodes,
        }

    def _mean(self, values: np.ndarray) -> float:
        return float(interquartile_mean(values) if self.interquartile else values.mean())


Encoded = Mapping[str, float | str]
"""A setting as Ray keeps it: what comes from a list of values by its label, which Optuna takes."""


def decode(encoded: Encoded, values: Mapping[str, Mapping[str, Value]]) -> Setting:
    """Returns a setting as the trials take it.

    Args:
        encoded: As Ray keeps it.
        values: Label -> value of each parameter.
    """
    return {
        name: values[name][value] if isinstance(value, str) else rounded(value)
        for name, value in encoded.items()
    }


def tune_trial(
    config: Mapping[str, Any],
    trials: Trials,
    values: Mapping[str, Mapping[str, Value]],
    seeds: int,
) -> dict[str, Any]:
    """Runs what Ray Tune has chosen, with the seeds 0 to `seeds` - 1."""
    return trials.run(decode(config["trial"]["setting"], values), range(seeds))


def run_trial(trials: Trials, setting: Setting, seeds: Iterable[int]) -> dict[str, Any]:
    """Runs a trial as a task of Ray."""
    return trials.run(setting, seeds)
