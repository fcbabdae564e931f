"""A paper's scenarios with other values of what the paper leaves open."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

from quicgym.benchmarks.papers.paper import PaperError, Variation
from quicgym.envs import Scenario
from quicgym.validation import validated


def varied(scenario: Scenario, variation: Variation, controller: str = "") -> Scenario:
    """Returns the scenario with the variation's fields; PaperError where one does not fit.

    The fields are those for runs of `controller`; empty: those for every controller.
    """
    data = scenario.model_dump(exclude_none=True)
    fields = {
        **variation.fields,
        **variation.scenario_fields.get(scenario.name, {}),
        **variation.controller_fields.get(controller, {}),
    }
    for field, value in fields.items():
        *parents, last = field.split(".")
        target: Any = data
        for parent in parents:
            target = target[int(parent) if parent.isdigit() else parent]
        target[last] = deepcopy(value)  # a later field may change a part of it
    parameters = data.setdefault("controller_parameters", {})
    for controller, values in variation.controller_parameters.items():
        parameters[controller] = {**parameters.get(controller, {}), **values}
    return validated(Scenario, data, f"variation {variation.name!r} of {scenario.name}", PaperError)


def comparable(scenario: Scenario, variation: Variation, controller: str) -> Scenario:
    """Returns the varied scenario under a new name, for results next to the scenario's."""
    assert variation.source is not None
    return varied(scenario, variation, controller).model_copy(
        update={"name": f"{scenario.name}--{variation.source}"}
    )


def alternatives(scenario: Scenario, variation: Variation, controller: str) -> Iterator[Scenario]:
    """Yields the scenario with each of the variation's alternatives, under names of their own."""
    found = variation.alternatives
    if found is None or controller not in found.algorithms:
        return
    for number, fields in enumerate(found.fields):
        of_runs = {**variation.controller_fields.get(controller, {}), **fields}
        other = variation.model_copy(
            update={
                "source": f"{variation.source}-{number}",
                "controller_fields": {controller: of_runs},
            }
        )
        yield comparable(scenario, other, controller)
