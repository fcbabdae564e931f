"""Mixtures: each scenario is drawn from one of several distributions or folders of scenarios."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import Field

from quicgym.envs.scenarios.distribution_parts import Positive
from quicgym.envs.scenarios.distributions import DISTRIBUTIONS, Distribution, load_distribution
from quicgym.envs.scenarios.fields import CheckedModel, Name, ScenarioError, errors_at
from quicgym.envs.scenarios.files import load_scenario
from quicgym.envs.scenarios.model import Scenario
from quicgym.validation import validated
from quicgym.yaml_files import is_path, read_yaml


@dataclass(frozen=True)
class ScenarioFolder:
    """The scenarios of a folder, each of which is drawn as often.

    Attributes:
        name: Name of the folder.
        scenarios: Scenarios of its YAML files, in the order of the files' names.
    """

    name: str
    scenarios: tuple[Scenario, ...]

    @property
    def most_agents(self) -> int:
        """How many agents a scenario has at most."""
        return max(map(_agents, self.scenarios))

    @property
    def draws_agents(self) -> bool:
        """Whether scenarios have different numbers of agents."""
        return len(set(map(_agents, self.scenarios))) > 1

    def content(self) -> list[Any]:
        """Returns all that its draws depend on."""
        contents = [scenario.content() for scenario in self.scenarios]
        return [[fields for fields, *_ in contents], [more for _, *of in contents for more in of]]

    def sample(self, rng: np.random.Generator) -> Scenario:
        """Draws a scenario."""
        return self.scenarios[int(rng.integers(len(self.scenarios)))]


def _agents(scenario: Scenario) -> int:
    return sum(flow.controller is None for _, flow in scenario.single_flows())


Part = Distribution | ScenarioFolder


class Mixture(CheckedModel):
    """Distributions with their weights; see configs/distributions/wide.yaml."""

    name: Name
    description: str = ""
    mixture: dict[str, Positive] = Field(min_length=1)
    """How often each distribution or mixture, by name or path, is drawn from, in proportion. The
    path of a folder stands for the scenarios of its YAML files."""

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """The distributions and folders, in the order of `mixture`."""
        return tuple(map(_load_part, self.mixture))

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


def load_mixture(name_or_path: str | Path, above: tuple[str, ...] = ()) -> Mixture:
    """Loads a mixture by its name or from a YAML file, its distributions included.

    A mixture in it is replaced by its own parts, which have its weight together. ScenarioError
    names file, field and value.

    Args:
        name_or_path: Name or path of the mixture.
        above: The mixtures that it is a part of.
    """
    data, file, folder = read_yaml(name_or_path, DISTRIBUTIONS, "mixture", ScenarioError)
    if isinstance(data, dict) and isinstance(data.get("mixture"), dict):
        data["mixture"] = {
            str((folder / name).absolute()) if is_path(name) else name: weight
            for name, weight in data["mixture"].items()
        }
    mixture: Mixture = validated(Mixture, data, file, ScenarioError)
    weights: dict[str, float] = {}
    for name, weight in mixture.mixture.items():
        with errors_at(f"{file}: mixture"):
            within = _weights_within(name, (*above, file))
        total = sum(within.values())
        for part, of_part in within.items():
            weights[part] = weights.get(part, 0) + weight * of_part / total
    return mixture.model_copy(update={"mixture": weights})


def _weights_within(name: str, above: tuple[str, ...]) -> dict[str, float]:
    """Returns the parts of a mixture with their weights, and of anything else itself."""
    if not (is_path(name) and Path(name).is_dir()):
        data, file, _ = read_yaml(name, DISTRIBUTIONS, "distribution", ScenarioError)
        if isinstance(data, dict) and "mixture" in data:
            if file in above:
                raise ScenarioError(f"{name} contains this mixture; leave out one of them")
            return load_mixture(name, above).mixture
    _load_part(name)
    return {name: 1.0}


def _load_part(name: str) -> Part:
    folder = Path(name)
    if not (is_path(name) and folder.is_dir()):
        return load_distribution(name)
    scenarios = tuple(load_scenario(path) for path in sorted(folder.glob("*.yaml")))
    if not scenarios:
        raise ScenarioError(f"{name}: the folder has no .yaml; give one with scenarios")
    for scenario in scenarios:
        if not _agents(scenario):
            raise ScenarioError(
                f"{name}: in scenario {scenario.name} each flow names its controller, so none is "
                "left for an agent; leave out `controller` of one"
            )
    return ScenarioFolder(folder.resolve().name, scenarios)
