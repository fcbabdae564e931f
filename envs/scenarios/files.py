"""Scenarios from and to YAML: quicgym's own by name, a user's by path."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import yaml

from quicgym.envs.scenarios.fields import ScenarioError
from quicgym.envs.scenarios.model import Scenario
from quicgym.validation import validated
from quicgym.yaml_files import CONFIGS, read_yaml, yaml_names

SCENARIOS = CONFIGS / "scenarios"


def scenario_names() -> list[str]:
    """Returns the names of the scenarios that quicgym brings."""
    return yaml_names(SCENARIOS)


def load_scenario(name_or_path: str | Path) -> Scenario:
    """Loads a scenario by its name or from a YAML file.

    Args:
        name_or_path: One of `scenario_names()`, or a path (a Path, or a text that ends in .yaml
            or .yml or has a folder in it).

    Raises:
        ScenarioError: No such scenario, or a file that is not a valid scenario. The text names
            file, field, value and remedy.
    """
    file = read_yaml(name_or_path, SCENARIOS, "scenario", ScenarioError)
    context = {"folder": file.folder}
    return validated(Scenario, file.data, file.name, ScenarioError, context=context)


def as_yaml(scenario: Scenario, place: Callable[[Path], str]) -> str:
    """Returns a scenario as a YAML file has it, without the fields that have their default.

    Args:
        scenario: The scenario.
        place: Function from the file of a trace to its path in the YAML.
    """
    fields = scenario.model_dump(mode="json", exclude_defaults=True)
    for link in fields.values():
        if isinstance(link, dict) and "trace" in link:
            link["trace"] = place(Path(link["trace"]))
    return yaml.safe_dump(fields, sort_keys=False, default_flow_style=None, width=120)
