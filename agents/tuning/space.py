"""The values that a study tries: of each field a range, or a list."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
from pydantic import Field, model_validator

from quicgym.validation import StrictModel


class ValueRange(StrictModel):
    """A range of numbers, or a list of values.

    Attributes:
        minimum: Lowest value of the range.
        maximum: Highest value of the range, included.
        scale: Scale of the range: evenly divided, evenly in the logarithm, or whole numbers only.
        values: List of values, in place of a range.
    """

    minimum: float | None = None
    maximum: float | None = None
    scale: Literal["linear", "log", "whole"] = "linear"
    values: tuple[Any, ...] | None = Field(default=None, min_length=1)

    @model_validator(mode="after")
    def _one_of_two(self) -> ValueRange:
        if self.values is not None:
            if self.minimum is not None or self.maximum is not None:
                raise ValueError("has values and a range; give one of them")
            labels = list(map(self.text, self.values))
            for text in labels:
                if labels.count(text) > 1:
                    raise ValueError(f"values has {text} twice; leave one out")
            return self
        if self.minimum is None or self.maximum is None:
            raise ValueError("give minimum and maximum, or values")
        if self.maximum <= self.minimum:
            raise ValueError(
                f"maximum {self.maximum:g} is not above minimum {self.minimum:g}; exchange them"
            )
        if self.scale == "log" and self.minimum <= 0:
            raise ValueError(f"minimum {self.minimum:g}: a log scale needs one above 0")
        if self.scale == "whole" and not (self.minimum.is_integer() and self.maximum.is_integer()):
            raise ValueError("scale whole: give whole numbers as minimum and maximum")
        return self

    @staticmethod
    def text(value: Any) -> str:
        """Returns a value as messages show it."""
        return str(value)

    @property
    def limits(self) -> tuple[Any, ...]:
        """The values that are checked before anything is run: both ends, or all of them."""
        return self.values if self.values is not None else self.ends

    @property
    def ends(self) -> tuple[float, float]:
        """The minimum and the maximum of a range."""
        assert self.minimum is not None and self.maximum is not None
        return self.minimum, self.maximum

    def number(self, value: float) -> float:
        """Returns a drawn number of a range as it is used."""
        return float(value) if self.scale == "whole" else rounded(value)

    def draw(self, rng: np.random.Generator) -> Any:
        """Draws a value."""
        if self.values is not None:
            return self.values[int(rng.integers(len(self.values)))]
        minimum, maximum = self.ends
        if self.scale == "whole":
            return self.number(float(rng.integers(int(minimum), int(maximum), endpoint=True)))
        if self.scale == "log":
            return self.number(np.exp(rng.uniform(np.log(minimum), np.log(maximum))))
        return self.number(rng.uniform(minimum, maximum))


Space = Mapping[str, ValueRange]
"""The fields of a study by name."""
Setting = dict[str, Any]
"""A value of each field."""


def draws(space: Space, count: int, seed: int) -> list[Setting]:
    """Returns the settings of independent draws, in the order of their trials."""
    rng = np.random.default_rng(seed)
    return [{name: field.draw(rng) for name, field in space.items()} for _ in range(count)]


def place_in(values: Sequence[Any], value: Any) -> int:
    """Returns where a value stands in a list; 1, 1.0 and True are equal, and not the same."""
    return [json.dumps(entry) for entry in values].index(json.dumps(value))


def encode(space: Space, setting: Setting) -> dict[str, float]:
    """Returns a setting as Optuna keeps it: in place of a value from a list, its place there."""
    return {
        name: value if (values := space[name].values) is None else place_in(values, value)
        for name, value in setting.items()
    }


def decode(space: Space, encoded: Mapping[str, float]) -> Setting:
    """Returns a setting as trials take it."""
    return {
        name: space[name].number(value)
        if (values := space[name].values) is None
        else values[int(value)]
        for name, value in encoded.items()
    }


def rounded(number: float) -> float:
    """Six significant digits: what a table shows is what was run."""
    return float(f"{number:.6g}")


def trial_name(number: int) -> str:
    """Returns the name of a trial, which its files and folders have too."""
    return f"{number:05}"
