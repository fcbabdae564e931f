"""Scenarios from YAML: quicgym's own by name, a user's by path."""

from __future__ import annotations

from pathlib import Path

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
