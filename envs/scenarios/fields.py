"""What the fields of a scenario are made of: numbers with units and limits, and their C++ names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from quicgym import _core
from quicgym.validation import problem

SHORTEST_S = 1e-6
"""Shortest duration of a simulation, an episode and a flow's time in it."""
LINK_HEADER_BYTES = 30
"""UDP 8, IPv4 20 and PPP 2: what a datagram's size on the wire has on top."""

SLOWEST_MBPS = 0.001

RateMbps = Annotated[
    float,
    Field(
        strict=True, ge=SLOWEST_MBPS, le=100_000, description="a number of Mbps, 0.001 to 100000"
    ),
]


def _not_between(rate_mbps: float) -> float:
    if 0 < rate_mbps < SLOWEST_MBPS:
        raise problem(
            "", rate_mbps, "is neither a rate nor an outage",
            f"give 0, or {SLOWEST_MBPS:g} or more",
        )  # fmt: skip
    return rate_mbps


RateOrOutageMbps = Annotated[
    float,
    Field(
        strict=True,
        ge=0,
        le=100_000,
        description="0 for an outage, or a number of Mbps, 0.001 to 100000",
    ),
    AfterValidator(_not_between),
]
DelayMs = Annotated[
    float,
    Field(strict=True, ge=0, le=60_000, description="a number of milliseconds, 0 to 60000"),
]
PeriodMs = Annotated[
    float,
    Field(strict=True, ge=0.001, le=60_000, description="a number of milliseconds, 0.001 to 60000"),
]
MomentS = Annotated[
    float,
    Field(strict=True, ge=0, le=1e6, description="a number of seconds from the start, 0 or more"),
]
DurationS = Annotated[
    float,
    Field(
        strict=True,
        ge=SHORTEST_S,
        le=1e6,
        description="a number of seconds above 0, at most 1000000",
    ),
]
Probability = Annotated[
    float, Field(strict=True, ge=0, le=1, description="a probability from 0 to 1")
]
PositiveInteger = Annotated[
    int, Field(strict=True, ge=1, le=2**53, description="a whole number, 1 or more")
]
FlowCount = Annotated[
    int, Field(strict=True, ge=1, le=100_000, description="a whole number, 1 to 100000")
]
HopNumber = Annotated[
    int,
    Field(
        strict=True,
        ge=1,
        le=_core.MAX_HOPS,
        description=f"a whole number, 1 (bottleneck) to {_core.MAX_HOPS}",
    ),
]
DatagramBytes = Annotated[
    int,
    Field(
        strict=True,
        ge=1200,
        le=65_507,
        description="1200 to 1472 bytes; with access.mtu_bytes up to 65507",
    ),
]
LARGEST_UNFRAGMENTED_BYTES = 1472
"""Largest size of a datagram in an Ethernet frame."""
MtuBytes = Annotated[
    int, Field(strict=True, ge=68, le=65_535, description="a whole number of bytes, 68 to 65535")
]
"""Maximum transmission unit of IPv4 packets."""
Name = Annotated[
    str,
    Field(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._+-]*$",
        max_length=80,
        description="letters, digits and . _ + - without spaces",
    ),
]
QueuePackets = Annotated[
    int, Field(strict=True, ge=1, le=2**32 - 1, description="a whole number of packets, 1 or more")
]


@dataclass(frozen=True)
class Core:
    """A field's member in C++, where the rule of `conversion` gives another one.

    Attributes:
        member: Name of the member in sim/scenario.hpp.
        convert: Function from the field's value to the member's; None: by the rule.
    """

    member: str
    convert: Callable[[Any], Any] | None = None


@dataclass(frozen=True)
class Outside:
    """A field without a member of its own in C++.

    Attributes:
        reader: Reader of the field.
    """

    reader: str


INLINE: Final = "inline"
"""The fields of this part are members of the structure around it."""


class ScenarioError(ValueError):
    """A scenario that cannot be simulated; the text says where, what and the remedy."""


def check(model: BaseModel, found: _core.Problem | None) -> None:
    """Raises the error of a pydantic validator where C++ has found a problem.

    Args:
        model: The part of a scenario that was checked; the problem's field is one of it.
        found: Problem that `_core.queue_problem` or `_core.chain_problem` returned; None: no
            problem.
    """
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


class CheckedModel(BaseModel):
    """A part of a scenario: frozen, without unknown fields, and checked when it is changed, too."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)
    core_type: ClassVar[str] = ""
    """The structure's name in sim/scenario.hpp, where it is not the model's."""

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Returns a copy with other values in some fields.

        Raises:
            pydantic.ValidationError: A field does not exist, or the values do not fit.
        """
        if not update:
            return super().model_copy(deep=deep)
        fields = {name: getattr(self, name) for name in self.model_fields_set}
        return type(self).model_validate({**fields, **update})
