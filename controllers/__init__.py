"""The catalogue of congestion controllers: names, parameters, ranges, units and sources.

The algorithms are C++; this module only describes them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from quicgym import _core

__all__ = ["ControllerInfo", "Parameter", "catalogue", "find"]


@dataclass(frozen=True)
class Parameter:
    """One parameter of a controller.

    Attributes:
        name: The key in a mapping of parameters.
        default: The default; one number, or as many as the list has.
        minimum: Smallest allowed value of each number.
        maximum: Largest allowed value of each number; may be infinity.
        is_list: Whether the parameter is a list of numbers.
        unit: "packets", "ms", "rounds" and so on; empty for a plain ratio.
        description: What it does.
        source: RFC section, draft section or paper equation.
    """

    name: str
    default: tuple[float, ...]
    minimum: float
    maximum: float
    is_list: bool
    unit: str
    description: str
    source: str


@dataclass(frozen=True)
class ControllerInfo:
    """One controller of the catalogue.

    Attributes:
        name: The name by which scenarios ask for it.
        description: What it is.
        source: RFC, draft or paper.
        parameters: Its parameters, with this controller's own defaults.
    """

    name: str
    description: str
    source: str
    parameters: tuple[Parameter, ...]

    def parameter(self, name: str) -> Parameter:
        """Returns the parameter of that name.

        Raises:
            KeyError: If there is none; the message lists those that exist.
        """
        for parameter in self.parameters:
            if parameter.name == name:
                return parameter
        known = ", ".join(parameter.name for parameter in self.parameters)
        raise KeyError(f"controller '{self.name}' has no parameter '{name}'; it has: {known}")

    def complete(self, values: dict[str, Any] | None = None) -> dict[str, list[float]]:
        """Returns every parameter: the defaults, overridden by `values`.

        Args:
            values: Numbers or lists of numbers by parameter name.

        Raises:
            ValueError: If a name is unknown or a value out of range.
        """
        return _core.complete_parameters(self.name, values or {})


@cache
def catalogue() -> tuple[ControllerInfo, ...]:
    """Returns every controller, in the order in which tables show them."""
    return tuple(
        ControllerInfo(
            name=entry["name"],
            description=entry["description"],
            source=entry["source"],
            parameters=tuple(
                Parameter(**{**parameter, "default": tuple(parameter["default"])})
                for parameter in entry["parameters"]
            ),
        )
        for entry in _core.catalogue()
    )


def find(name: str) -> ControllerInfo:
    """Returns the controller of that name.

    Raises:
        KeyError: If there is none; the message lists those that exist.
    """
    for controller in catalogue():
        if controller.name == name:
            return controller
    known = ", ".join(controller.name for controller in catalogue())
    raise KeyError(f"no controller is named '{name}'; there are: {known}")
