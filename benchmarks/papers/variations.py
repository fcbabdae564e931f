"""A paper's scenarios with other values of what the paper leaves open."""

from __future__ import annotations

from typing import Any

from quicgym.benchmarks.papers.model import PaperError, Variation
from quicgym.envs import Scenario
from quicgym.validation import validated


def varied(scenario: Scenario, variation: Variation) -> Scenario:
    """Returns the scenario with the variation's fields; PaperError where one does not fit."""
    data = scenario.model_dump(exclude_none=True)
    fields = {**variation.fields, **variation.scenario_fields.get(scenario.name, {})}
    for field, value in fields.items():
        *parents, last = field.split(".")
        target: Any = data
        for parent in parents:
            target = target[int(parent) if parent.isdigit() else parent]
        target[last] = value
    parameters = data.setdefault("controller_parameters", {})
    for controller, values in variation.controller_parameters.items():
        parameters[controller] = {**parameters.get(controller, {}), **values}
    return validated(Scenario, data, f"variation {variation.name!r} of {scenario.name}", PaperError)


def comparable(scenario: Scenario, variation: Variation) -> Scenario:
    """Returns the varied scenario under a name of its own, for results beside the scenario's."""
    assert variation.source is not None
    return varied(scenario, variation).model_copy(
        update={"name": f"{scenario.name}--{variation.source}"}
    )
