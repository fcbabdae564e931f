"""Types of a scenario's fields: numbers with units and limits, and their C++ names."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, Self

from pydantic import AfterValidator, BaseModel, Field

from quicgym import _core
from quicgym.errors import UserError
from quicgym.validation import StrictModel, problem

SHORTEST_S = 1e-6
"""Shortest duration of a simulation, an episode and a flow's time in it."""
LONGEST_S = 1e6
"""Longest time of a scenario, in s."""
LINK_HEADER_BYTES = 30
"""UDP 8, IPv4 20 and PPP 2: what a datagram's size on the wire has on top."""

SLOWEST_MBPS = 0.001


def within(least: float, most: float, description: str) -> Any:
    """Returns the limits of a number, which is not converted from a text, and what it takes."""
    return Field(strict=True, ge=least, le=most, description=description)


def _not_between(rate_mbps: float) -> float:
    if 0 < rate_mbps < SLOWEST_MBPS:
        raise problem(
            "", rate_mbps, "is neither 0 nor a rate",
            f"give 0, or {SLOWEST_MBPS:g} or more",
        )  # fmt: skip
    return rate_mbps


RateMbps = Annotated[float, within(SLOWEST_MBPS, 100_000, "a number of Mbps, 0.001 to 100000")]
RateOrOutageMbps = Annotated[
    float,
    within(0, 100_000, "0 for an outage, or a number of Mbps, 0.001 to 100000"),
    AfterValidator(_not_between),
]
RateOrZeroMbps = Annotated[
    float,
    within(0, 100_000, "0, or a number of Mbps, 0.001 to 100000"),
    AfterValidator(_not_between),
]
DelayMs = Annotated[float, within(0, 60_000, "a number of milliseconds, 0 to 60000")]
PeriodMs = Annotated[float, within(0.001, 60_000, "a number of milliseconds, 0.001 to 60000")]
MomentS = Annotated[float, within(0, LONGEST_S, "a number of seconds from the start, 0 or more")]
DurationS = Annotated[
    float, within(SHORTEST_S, LONGEST_S, "a number of seconds above 0, at most 1000000")
]
Probability = Annotated[float, within(0, 1, "a probability from 0 to 1")]
PositiveInteger = Annotated[int, within(1, 2**53, "a whole number, 1 or more")]
FlowCount = Annotated[int, within(1, 100_000, "a whole number, 1 to 100000")]
HopNumber = Annotated[
    int, within(1, _core.MAX_HOPS, f"a whole number, 1 (bottleneck) to {_core.MAX_HOPS}")
]
DatagramBytes = Annotated[
    int, within(1200, 65_507, "1200 to 1472 bytes; with access.mtu_bytes up to 65507")
]
LARGEST_UNFRAGMENTED_BYTES = 1472
"""Largest size of a datagram in an Ethernet frame."""
MtuBytes = Annotated[int, within(68, 65_535, "a whole number of bytes, 68 to 65535")]
"""Maximum transmission unit of IPv4 packets."""
Name = Annotated[
    str,
    Field(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._+-]*$",
        max_length=80,
        description="letters, digits and . _ + - without spaces",
    ),
]
QueuePackets = Annotated[int, within(1, 2**32 - 1, "a whole number of packets, 1 or more")]


@dataclass(frozen=True)
class Core:
    """A field's member in sim/scenario.hpp, where the rule of `conversion` gives another one.

    `convert` makes the member's value of the field's; None: by the rule.
    """

    member: str
    convert: Callable[[Any], Any] | None = None


@dataclass(frozen=True)
class Outside:
    """Marks a field that has no member in C++; `reader` says what reads it."""

    reader: str


INLINE: Final = "inline"
"""The fields of this part are members of the structure around it."""


class ScenarioError(UserError, ValueError):
    """A scenario that cannot be simulated; the text says where, what and the remedy."""


@contextmanager
def errors_at(place: str) -> Iterator[None]:
    """A ScenarioError in this block begins with the place: a file, and a field of it."""
    try:
        yield
    except ScenarioError as error:
        raise ScenarioError(f"{place}: {error}") from None


def check(model: BaseModel, found: _core.Problem | None) -> None:
    """Raises a pydantic validator's error where C++ has found a problem in a field of `model`."""
    if found is None:
        return
    value: Any = model
    for step in found.field.split("."):
        value = value[int(step)] if step.isdecimal() else getattr(value, step)
    if isinstance(value, tuple):
        value = f"{len(value)} entries"
    elif isinstance(value, Path):
        value = str(value)
    raise problem(found.field, value, found.text, found.remedy)


class CheckedModel(StrictModel):
    """A part of a scenario: frozen, without unknown fields, and checked when it is changed, too."""

    core_type: ClassVar[str] = ""
    """The structure's name in sim/scenario.hpp, where it is not the model's."""

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Returns a copy with other values in some fields, which pydantic checks."""
        if not update:
            return super().model_copy(deep=deep)
        fields = {name: getattr(self, name) for name in self.model_fields_set}
        return type(self).model_validate({**fields, **update})
