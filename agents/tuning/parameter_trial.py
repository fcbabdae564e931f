"""A trial of a sweep: a controller with one setting of its parameters, all scenarios and seeds.

Imports nothing that the extra `train` brings, so that Ray's workers start fast.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from quicgym.agents.evaluation.rollouts import play
from quicgym.agents.evaluation.statistics import interquartile_mean
from quicgym.agents.policies.hand_coded import controller_policy
from quicgym.agents.tuning.parameter_config import ParameterSweep
from quicgym.agents.tuning.space import Setting, trial_name
from quicgym.envs import Reward
from quicgym.envs.actions import action_space
from quicgym.envs.scenarios.suites import SuiteEntry, scenario_of
from quicgym.envs.simulation.metrics import evaluated_names
from quicgym.output_folders import write_atomically


@dataclass(frozen=True)
class ParameterTrial:
    """The outcome of a trial; `error` is the reason why it failed."""

    setting: Setting
    objective: float = math.nan
    per_seed: Sequence[float] = ()
    episodes: Sequence[Mapping[str, Any]] = ()
    error: str | None = None

    @property
    def deviation(self) -> float | None:
        """The standard deviation over the seeds; None with one seed."""
        return float(np.std(self.per_seed, ddof=1)) if len(self.per_seed) > 1 else None

    def mean(self, metric: str) -> float:
        """Returns the mean of a metric over the runs that have it; NaN where none has."""
        values = [run[metric] for run in self.episodes if run.get(metric) is not None]
        return float(np.mean(values)) if values else math.nan

    @property
    def metrics(self) -> list[str]:
        """The names of the metrics that its runs have."""
        return evaluated_names(name for run in self.episodes for name in run)


def measure(
    config: ParameterSweep, scenarios: Sequence[SuiteEntry], setting: Setting, seeds: Iterable[int]
) -> ParameterTrial:
    """Runs a trial: each scenario with each seed; ValueError where a run has no objective."""
    parameters = {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in {**config.fixed, **setting}.items()
    }
    policy = controller_policy(config.controller, action_space("tuning"), **parameters)
    reward = Reward(config.reward)
    episodes, rows = [], []
    for seed in seeds:
        row = []
        for scenario in scenarios:
            drawn = scenario_of(scenario, seed)
            metrics = play(policy, drawn, config.engine, seed, reward=reward).evaluation
            value = metrics.get(config.objective)
            if value is None:
                raise ValueError(
                    f"scenario {scenario.name}, seed {seed}: nothing to measure "
                    f"{config.objective} by; leave the scenario out or choose another objective"
                )
            row.append(value)
            episodes.append({"scenario": scenario.name, "seed": seed, **metrics})
        rows.append(row)
    mean: Callable[[Any], Any] = np.mean if config.suite is None else interquartile_mean
    return ParameterTrial(
        setting, float(mean(np.ravel(rows))), tuple(float(mean(np.array(row))) for row in rows),
        episodes,
    )  # fmt: skip


def read_trial(file: Path) -> ParameterTrial | None:
    """Returns a trial that has finished; None: it has not."""
    if not file.exists():
        return None
    kept = json.loads(file.read_text(encoding="utf-8"))
    setting = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in kept.pop("setting").items()
    }
    return ParameterTrial(setting, **kept)


def run_trial(
    chosen: Mapping[str, Any],
    config: ParameterSweep,
    scenarios: Sequence[SuiteEntry],
    trials: Path,
) -> dict[str, float]:
    """Runs the setting that Ray Tune has chosen, with the sweep's seeds; keeps it in a file."""
    number, setting = chosen["trial"]["number"], chosen["trial"]["setting"]
    file = trials / f"{trial_name(number)}.json"
    trial = read_trial(file)  # of an earlier start, from which Optuna learns again
    if trial is None:
        trial = measure(config, scenarios, setting, config.seed_range)
        kept = {
            "setting": setting,
            "objective": trial.objective,
            "per_seed": trial.per_seed,
            "episodes": trial.episodes,
        }
        write_atomically({file: json.dumps(kept) + "\n"})
    return {"objective": trial.objective}
