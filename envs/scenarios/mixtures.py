"""Mixtures of distributions: each scenario is drawn from one of several."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import Field

from quicgym.envs.scenarios.distribution_parts import Positive
from quicgym.envs.scenarios.distributions import DISTRIBUTIONS, Distribution, load_distribution
from quicgym.envs.scenarios.fields import CheckedModel, Name, ScenarioError
from quicgym.envs.scenarios.model import Scenario
from quicgym.validation import validated
from quicgym.yaml_files import is_path, read_yaml


class Mixture(CheckedModel):
    """Distributions with their weights; see configs/distributions/wide.yaml."""

    name: Name
    description: str = ""
    mixture: dict[str, Positive] = Field(min_length=1)
    """How often each distribution, by name or path, is drawn from, in proportion."""

    @cached_property
    def parts(self) -> tuple[Distribution, ...]:
        """The distributions, in the order of `mixture`."""
        return tuple(load_distribution(name) for name in self.mixture)

    @property
    def most_agents(self) -> int:
        """How many agents a path has at most."""
        return max(part.most_agents for part in self.parts)

    @property
    def draws_agents(self) -> bool:
        """Whether paths have different numbers of agents."""
        return any(part.draws_agents or part.most_agents != self.most_agents for part in self.parts)

    def content(self) -> list[Any]:
        """Returns all that its draws depend on."""
        contents = [part.content() for part in self.parts]
        return [
            [list(self.mixture.values()), *(fields for fields, _ in contents)],
            [trace for _, traces in contents for trace in traces],
        ]

    def sample(self, rng: np.random.Generator) -> Scenario:
        """Draws a distribution, and from it a scenario."""
        weights = np.array(list(self.mixture.values()))
        return self.parts[rng.choice(len(weights), p=weights / weights.sum())].sample(rng)


def load_mixture(name_or_path: str | Path) -> Mixture:
    """Loads a mixture by its name or from a YAML file, its distributions included.

    ScenarioError names file, field and value.
    """
    data, file, folder = read_yaml(name_or_path, DISTRIBUTIONS, "mixture", ScenarioError)
    if isinstance(data, dict) and isinstance(data.get("mixture"), dict):
        data["mixture"] = {
            str(folder / str(name) if is_path(str(name)) else name): weight
            for name, weight in data["mixture"].items()
        }
    mixture: Mixture = validated(Mixture, data, file, ScenarioError)
    for name in mixture.mixture:
        try:
            load_distribution(name)
        except ScenarioError as error:
            raise ScenarioError(f"{file}: mixture: {error}") from None
    return mixture
