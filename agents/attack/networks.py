"""Networks that a search chooses: the draws of a distribution are what Optuna suggests.

A distribution draws a network from a generator of random numbers. Here the generator asks Optuna
for each number. The search therefore meets only networks that the distribution could draw, and none
of a held-out cell.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from quicgym.envs.scenarios.distributions import Distribution
from quicgym.envs.scenarios.fields import ScenarioError
from quicgym.envs.scenarios.mixtures import Mixture
from quicgym.envs.scenarios.model import Scenario
from quicgym.envs.scenarios.suites import load_entry

if TYPE_CHECKING:
    from optuna import Trial

START_JITTER_MS = 100.0
"""Seeds shift every flow's start by up to this, so that no result hangs on one phase."""


def load_networks(name_or_path: str) -> Distribution | Mixture:
    """Loads what networks are drawn from.

    Args:
        name_or_path: A distribution or a mixture, by its name or as the path of a YAML file.

    Raises:
        ScenarioError: There is none, or the name is of a single scenario.
    """
    entry = load_entry(name_or_path)
    if not isinstance(entry, Distribution | Mixture):
        raise ScenarioError(
            f"--distribution {name_or_path}: is a single scenario, which leaves nothing to search; "
            "give a distribution or a mixture"
        )
    return entry


class SuggestedDraws(np.random.Generator):
    """A generator whose single numbers and choices are parameters of a trial.

    A parameter's name has the range of the draw and how many draws of this range came before it.
    Whole arrays, such as the steps of a random walk, are drawn at random.
    """

    def __init__(self, trial: Trial, seed: int) -> None:
        """Begins the draws of a network.

        Args:
            trial: Trial that suggests the numbers.
            seed: Seed of the search, for what is drawn at random.
        """
        super().__init__(np.random.PCG64([seed, trial.number]))
        self._trial = trial
        self._part = ""
        self._draws: Counter[str] = Counter()

    def uniform(self, low: Any = 0.0, high: Any = 1.0, size: Any = None) -> Any:
        """Returns a number from `low` to `high`."""
        if size is not None:
            return super().uniform(low, high, size)
        name = self._name(f"{low:.6g} to {high:.6g}")
        return self._trial.suggest_float(name, float(low), float(high))

    def integers(  # type: ignore[override]
        self, low: int, high: int | None = None, *, endpoint: bool = False
    ) -> int:
        """Returns a whole number from `low`, or from 0 below `low` where there is no `high`."""
        if high is None:
            return int(self._trial.suggest_categorical(self._name(f"of {low}"), range(low)))
        name = self._name(f"whole, {low} to {high}")
        return self._trial.suggest_int(name, low, high if endpoint else high - 1)

    def choice(self, count: int, p: Any = None) -> int:  # type: ignore[override]
        """Returns which part of a mixture is next; the search has no use for its weight."""
        self._part = ""
        chosen = int(self._trial.suggest_categorical(self._name("part"), range(count)))
        self._part = f"part {chosen}: "
        return chosen

    def _name(self, draw: str) -> str:
        name = f"{self._part}{draw}"
        self._draws[name] += 1
        return f"{name}, number {self._draws[name]}"


def draw_network(entry: Distribution | Mixture, trial: Trial, seed: int) -> Scenario:
    """Draws the network of a trial.

    Args:
        entry: The distribution or mixture.
        trial: Trial that suggests the draws.
        seed: Seed of the search.
    """
    drawn = entry.sample(SuggestedDraws(trial, seed))
    flows = tuple(
        flow.model_copy(
            update={
                "start_jitter_ms": min(START_JITTER_MS, 500 * (drawn.duration_s - flow.start_s))
            }
        )
        for flow in drawn.flows
    )
    return drawn.model_copy(update={"flows": flows})


def may_have(entry: Distribution | Mixture, part: str, network: Scenario) -> bool:
    """Returns whether a network lies in no cell that its distribution leaves out.

    Args:
        entry: The distribution or mixture that networks are drawn from.
        part: Name of the distribution that the network was drawn from.
        network: The network, which was changed since.
    """
    link = network.bottleneck
    if link is None or link.rate_mbps is None:
        return True
    rtt_ms = 2 * link.delay_ms + 4 * network.access.delay_ms
    parts = entry.parts if isinstance(entry, Mixture) else (entry,)
    named = [each for each in parts if isinstance(each, Distribution) and each.name == part]
    return bool(named) and all(each.may_have(link.rate_mbps, rtt_ms) for each in named)
