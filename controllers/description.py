"""Describes a controller: its name, parameters, ranges, units and sources."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

from quicgym import _core
from quicgym.yaml_files import closest

if TYPE_CHECKING:
    from quicgym.controllers.python_controller import Controller


@dataclass(frozen=True, init=False)
class Parameter:
    """One parameter of a controller.

    Attributes:
        name: The key in a mapping of parameters.
        default: The default; one number, or as many as the list has.
        minimum: Smallest allowed value of each number.
        maximum: Largest allowed value of each number; may be infinity.
        is_list: Whether the parameter is a list of numbers.
        unit: "packets", "ms", "rounds" and so on; empty for a plain ratio.
        description: The parameter's effect, in a sentence.
        source: RFC section, draft section or paper equation.
        scale: The scale of an agent's coordinate over the range: "linear", "logarithmic", or
            "odds", which reaches infinity. Only quicgym's own controllers have one.
        choices: The names of the values 0, 1, 2 and so on; empty: the values are plain numbers.
            Only quicgym's own controllers have some.
    """

    name: str
    default: tuple[float, ...]
    minimum: float
    maximum: float
    is_list: bool
    unit: str
    description: str
    source: str
    scale: str
    choices: tuple[str, ...]

    def __init__(
        self,
        name: str,
        default: float | Sequence[float],
        minimum: float = -math.inf,
        maximum: float = math.inf,
        *,
        unit: str = "",
        description: str = "",
        source: str = "",
        scale: str = "linear",
        choices: tuple[str, ...] = (),
    ) -> None:
        """Describes a parameter; it is a list where `default` is one.

        Raises:
            ValueError: The name is not an identifier, or the default is empty or out of range.
        """
        if not name.isidentifier():
            raise ValueError(f"parameter {name!r}: the name must be a Python identifier")
        is_list = isinstance(default, Sequence)
        numbers = tuple(map(float, default if isinstance(default, Sequence) else [default]))
        if not numbers or not all(minimum <= number <= maximum for number in numbers):
            raise ValueError(
                f"parameter {name!r}: the default {default!r} is empty or "
                f"outside the range [{minimum:g}, {maximum:g}]"
            )
        fields = {
            "name": name,
            "default": numbers,
            "minimum": minimum,
            "maximum": maximum,
            "is_list": is_list,
            "unit": unit,
            "description": description,
            "source": source,
            "scale": scale,
            "choices": choices,
        }
        for key, value in fields.items():  # as dataclasses do it where they are frozen
            object.__setattr__(self, key, value)


@dataclass(frozen=True)
class ControllerInfo:
    """One controller.

    Attributes:
        name: The name by which scenarios ask for it, and under which results show it.
        description: The algorithm, in a sentence.
        source: RFC, draft or paper; of one in Python, its module and class.
        parameters: The controller's parameters, with its own defaults.
        python_class: The class of a controller in Python; None: the controller is C++.
        plugin: The object of another package's extension module that holds the controller; None:
            the controller is quicgym's own.
        steered: Whether an agent decides in its place, so that it is no baseline.
        preset_of: The controller that it is with other defaults; empty: none.
        given: Parameters that were given with the name, as in `ebcc:gamma=3`.
        own_name: The name without these parameters.
        fingerprint: The SHA-256 of the files that it comes from, where it is named by its place.
    """

    name: str
    description: str
    source: str
    parameters: tuple[Parameter, ...]
    python_class: type[Controller] | None = None
    plugin: Any = None
    steered: bool = False
    preset_of: str = ""
    given: Mapping[str, Any] = field(default_factory=dict, hash=False)
    own_name: str = ""
    fingerprint: str | None = None

    def __post_init__(self) -> None:
        """Fills in `own_name`."""
        if not self.own_name:
            object.__setattr__(self, "own_name", self.name)

    @property
    def is_own(self) -> bool:
        """Whether it is quicgym's own, and neither a user's nor another package's."""
        return self.python_class is None and self.plugin is None

    def parameter(self, name: str) -> Parameter:
        """Returns the parameter of that name.

        Raises:
            KeyError: If there is none; the message lists those that exist.
        """
        for parameter in self.parameters:
            if parameter.name == name:
                return parameter
        raise KeyError(self._has_no(name))

    def _has_no(self, name: str) -> str:
        known = closest(name, (parameter.name for parameter in self.parameters))
        return f"controller '{self.own_name}' has no parameter '{name}'; {known}"

    def numbers(self, values: Mapping[str, Any]) -> dict[str, list[float]]:
        """Returns values as the simulator takes them: lists of numbers.

        Args:
            values: Numbers, lists of numbers or names of values by parameter.

        Raises:
            ValueError: If a parameter has no value of that name.
        """
        choices = {parameter.name: parameter.choices for parameter in self.parameters}
        numbers = {}
        for name, value in values.items():
            if isinstance(value, str):
                known = choices.get(name, ())
                if value not in known:
                    remedy = f"give one of {', '.join(known)}" if known else "give a number"
                    raise ValueError(
                        f"parameter '{name}' of controller '{self.own_name}' is {value!r}; {remedy}"
                    )
                value = known.index(value)
            numbers[name] = list(value) if isinstance(value, Iterable) else [value]
        return numbers

    def wants_l4s(self, values: Mapping[str, Any]) -> bool:
        """Returns whether its packets ask an L4S queue for marks, without the flow's `ecn`, too.

        Args:
            values: Numbers, lists of numbers or names of values by parameter.
        """
        if self.python_class is not None:
            return False  # those in Python cannot ask for them
        numbers = self.numbers(values)
        if self.plugin is not None:
            return bool(_core.plugin_wants_l4s(self.plugin, numbers))
        return bool(_core.wants_l4s(self.own_name, numbers))

    def complete(self, values: dict[str, Any] | None = None) -> dict[str, list[float]]:
        """Returns every parameter: the defaults, overridden by `given`, overridden by `values`.

        Args:
            values: Numbers, lists of numbers or names of values by parameter.

        Raises:
            ValueError: If a name is unknown or a value out of range.
        """
        names = {parameter.name for parameter in self.parameters}
        for name in values or {}:
            if name not in names:
                raise ValueError(self._has_no(name))
        complete = self.numbers({**self.given, **(values or {})})
        if self.python_class is None and self.plugin is None:
            return _core.complete_parameters(self.own_name, complete)
        return _core.complete_parameters(self, complete)


def check_name(title: str, name: str) -> None:
    """Raises ValueError where a user's controller, called `title`, has the name of quicgym's own.

    A scenario's parameters for that controller would be this one's.
    """
    if name in _own_names():
        raise ValueError(f"{title}: its name {name!r} is a controller's of quicgym; change it")


@cache
def _own_names() -> frozenset[str]:
    return frozenset(entry["name"] for entry in _core.catalogue())
