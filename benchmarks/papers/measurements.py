"""Measurements by scenario, controller and engine, and the quantities of a run by name."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from quicgym.agents.evaluation.jobs import PolicyChoice, RunJob
from quicgym.envs.simulation.metrics import METRICS

Run = dict[str, Any]
Place = tuple[str, str | None, str]
"""Scenario, controller of the flows that name none, engine."""


class Measurements:
    """The runs of many jobs, in the order of their seeds."""

    def __init__(self, jobs: Iterable[RunJob], finished: dict[str, Run]) -> None:
        """Takes the jobs and their metrics by key; a job without metrics is left out."""
        self._runs: dict[Place, dict[int, Run]] = defaultdict(dict)
        for job in sorted(jobs, key=lambda job: job.seed):
            if job.key in finished:
                assert not isinstance(job.steering, PolicyChoice)
                place = (job.scenario.name, job.steering, job.engine)
                self._runs[place][job.seed] = finished[job.key]

    def runs(self, scenario: str, controller: str | None, engine: str) -> Sequence[Run]:
        """Returns the runs of all seeds; empty where there are none."""
        return [*self._runs.get((scenario, controller, engine), {}).values()]

    def by_seed(
        self, scenario: str, controller: str | None, engine: str, quantity: str
    ) -> dict[int, float]:
        """Returns a quantity by seed, of the seeds that have it."""
        runs = self._runs.get((scenario, controller, engine), {})
        found = ((seed, value_of(run, quantity)) for seed, run in runs.items())
        return {seed: value for seed, value in found if value is not None}

    def values(
        self, scenario: str, controller: str | None, engine: str, quantity: str
    ) -> list[float]:
        """Returns a quantity of all seeds that have it."""
        return [*self.by_seed(scenario, controller, engine, quantity).values()]


def split(quantity: str) -> tuple[str, str]:
    """Returns metric and scope of "metric@scope"; the scope of a plain metric is empty."""
    metric, _, scope = quantity.partition("@")
    return metric, scope


def problem_with(quantity: str, flows: Sequence[str]) -> str | None:
    """Returns what is wrong with a quantity's name for runs with these flows; None: nothing."""
    metric, scope = split(quantity)
    known = [
        name
        for name, entry in METRICS.items()
        if not scope or (entry.scope == "flow" and not entry.traffic)
    ]
    if metric not in known:
        return f"no metric is named {metric!r}; there are: {', '.join(known)}"
    numbers = [str(number) for number in range(1, len(flows) + 1)]
    if scope not in ("", "sum", *numbers, *flows):
        return f"no flow is named {scope!r}; there are: {', '.join([*numbers, *flows, 'sum'])}"
    return None


def value_of(run: Run, quantity: str) -> float | None:
    """Returns a quantity of a run: "metric", "metric@flow" or "metric@sum"; None: no sample."""
    metric, scope = split(quantity)
    if not scope:
        return run.get(metric)
    if scope == "sum":
        parts = [flow[metric] for flow in run["flows"]]
        return None if None in parts else float(sum(parts))
    for number, flow in enumerate(run["flows"], start=1):
        if scope in (str(number), flow["name"]):
            return flow[metric]
    raise KeyError(quantity)


def quantity_in_words(quantity: str) -> str:
    """Returns a quantity as reports name it, with its unit: "receiving rate (Mbps) of flow 1"."""
    metric, scope = split(quantity)
    words = METRICS[metric].title
    if not scope:
        return words
    return f"{words}, sum of the flows" if scope == "sum" else f"{words} of flow {scope}"


def in_words(mean: float, deviation: float) -> str:
    """Returns "mean ± standard deviation", both with the decimals of four digits of the mean."""
    magnitude = math.floor(math.log10(abs(mean))) if mean else 0
    decimals = min(max(0, 3 - magnitude), 6)
    text = f"{mean:.{decimals}f}"
    if deviation == 0:
        return f"{text} ± 0"
    smallest = 10.0**-decimals
    if deviation < smallest / 2:
        return f"{text} ± <{smallest:.{decimals}f}"
    return f"{text} ± {deviation:.{decimals}f}"


def mean_and_deviation(numbers: Sequence[float] | np.ndarray) -> tuple[float, float]:
    """Returns mean and sample standard deviation; it is exactly 0 where all are equal."""
    if min(numbers) == max(numbers):
        return float(numbers[0]), 0.0
    return float(np.mean(numbers)), float(np.std(numbers, ddof=1))
