"""What is wrong in a file, in words: field, value and remedy, also without a description."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, model_validator

from quicgym.agents.training.configuration import ConfigError, load_training
from quicgym.validation import validated


class Circle(BaseModel):
    kind: Literal["circle"] = "circle"
    radius: float = 1.0

    @model_validator(mode="after")
    def _is_round(self) -> Circle:
        if self.radius < 0:
            raise ValueError(f"radius = {self.radius}: is negative")
        if self.radius == 0:
            raise ValueError("is a point")
        return self


class Square(BaseModel):
    kind: Literal["square"] = "square"


class Drawing(BaseModel):
    model_config = ConfigDict(extra="forbid")

    count: int = Field(default=1, ge=1, le=9)
    scale: Annotated[float, Field(gt=0)] | None = None
    visible: bool = True
    colour: Literal["red", "blue"] | None = None
    unit: str = Field(default="mm", pattern="^[mc]m$", description="mm or cm")
    title: str = ""
    size: int = Field(default=1, description="a size in cm")
    shape: Annotated[Circle | Square, Field(discriminator="kind")] = Circle()
    line_mm: float = 1.0
    lime: int = 1
    names: tuple[str, ...] = Field(default=("a",), min_length=1, max_length=2)
    widths_mm: dict[str, float] = Field(default_factory=dict)
    frame: Circle = Circle()


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            {"count": "lots"},
            "count = 'lots': should be a valid integer; give a whole number, at least 1, at most 9",
        ),
        ({"scale": "big"}, "scale = 'big': should be a valid number; give a number, above 0"),
        ({"visible": "maybe"}, "visible = 'maybe': should be a valid boolean; give true or false"),
        (
            {"colour": "rod"},
            "colour = 'rod': there is no such value; did you mean red? there are: red, blue",
        ),
        ({"unit": "inch"}, "unit = 'inch': cannot be used; give mm or cm"),
        ({"frame": {"radius": -1}}, "frame.radius = -1.0: is negative"),
        ({"frame": {"radius": 0}}, "frame: is a point"),
        ({"title": 5}, "title = 5: should be a valid string; give a text"),
        ({"names": ["a", "b", "c"]}, "names = ['a', 'b', 'c']: has 3 entries; give at most 2"),
        ({"names": []}, "names = []: has no entries; give at least 1"),
        (
            {"line": 3},
            "line = 3: unknown field; did you mean line_mm? there are: count, scale, visible, "
            "colour, unit, title, size, shape, line_mm, lime, names, widths_mm, frame",
        ),
        ({"size": []}, "size = []: should be a valid integer; give a size in cm"),
        (
            {"shape": {"kind": "circel"}},
            "shape.kind = 'circel': there is no such kind; did you mean circle? give one of "
            "'circle', 'square'",
        ),
        (
            {"shape": {"kind": 3}},
            "shape.kind = '3': there is no such kind; give one of 'circle', 'square'",
        ),
        ({"shape": {}}, "shape.kind: is missing; give one of 'circle', 'square'"),
        (
            {"shape": {"kind": "circle", "radius": "r"}},
            "shape.radius = 'r': should be a valid number; give a number",
        ),
        ({"names": 3}, "names = 3: is no list; give a list"),
        ({"names": [3]}, "names.0 = 3: should be a valid string; give a text"),
        ({"widths_mm": 3}, "widths_mm = 3: is no mapping; give a mapping"),
        (
            {"widths_mm": {"a": []}},
            "widths_mm.a = []: should be a valid number; give a number",
        ),
        ({"frame": 3}, "frame = 3: is no mapping; give its fields: kind, radius"),
    ],
)
def test_field_value_and_remedy(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError) as error:
        validated(Drawing, fields, "drawing.yaml", ValueError)
    assert str(error.value) == f"drawing.yaml: {message}"


def test_a_change_of_a_training_configuration_has_a_remedy() -> None:
    with pytest.raises(ConfigError) as error:
        load_training("tuning-ppo", ["steps=lots"])
    assert str(error.value) == (
        "tuning-ppo: steps = 'lots': should be a valid integer; give a whole number, at least 1, "
        "at most 1e+12"
    )
