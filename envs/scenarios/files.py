"""Scenarios from and to YAML: quicgym's own by name, a user's by path."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from quicgym.envs.scenarios.fields import CheckedModel, ScenarioError
from quicgym.envs.scenarios.model import Scenario
from quicgym.envs.scenarios.traces import is_drawn
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
        place: Function from a file that the scenario names to its path in the YAML.
    """
    return yaml.safe_dump(
        _fields(scenario, place), sort_keys=False, default_flow_style=None, width=120
    )


def _fields(part: Any, place: Callable[[Path], str]) -> Any:
    if isinstance(part, CheckedModel):
        values = {name: getattr(part, name) for name in type(part).model_fields}
        return {
            name: _fields(value, place)
            for name, value in values.items()
            # A part of several kinds is read by its kind.
            if name == "kind" or value != type(part).model_fields[name].get_default()
        }
    if isinstance(part, dict):
        return {name: _fields(value, place) for name, value in part.items()}
    if isinstance(part, tuple):
        return [_fields(value, place) for value in part]
    if isinstance(part, Path):
        return str(part) if is_drawn(part) else place(part)
    return part
