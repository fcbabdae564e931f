"""Parts of a distribution: ranges, and what may happen on some of its paths.

Each part is drawn with its own `chance` per path. A distribution without it draws nothing for it.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Generic, Literal, TypeVar

import numpy as np
from pydantic import Field, ValidationInfo, field_validator, model_validator

from quicgym.envs.scenarios.cellular_trace import reflected
from quicgym.envs.scenarios.fields import CheckedModel, Probability, within
from quicgym.envs.scenarios.links import DisciplineName
from quicgym.envs.scenarios.traces import find_trace, read_mahimahi

Positive = Annotated[
    float, Field(strict=True, gt=0, le=1e9, description="a number above 0, at most 1e9")
]
NotNegative = Annotated[float, within(0, 1e9, "a number, 0 to 1e9")]
Count = Annotated[int, within(1, 1000, "a whole number, 1 to 1000")]
Number = TypeVar("Number", bound=float)


class Range(CheckedModel, Generic[Number]):
    """A number between two others, uniform on a linear or a logarithmic scale."""

    minimum: Number
    maximum: Number
    scale: Literal["linear", "log"] = "linear"

    @model_validator(mode="after")
    def _ordered(self) -> Range:
        if self.maximum < self.minimum:
            raise ValueError(f"maximum {self.maximum:g} is below minimum {self.minimum:g}")
        if self.scale == "log" and self.minimum <= 0:
            raise ValueError("a logarithmic scale needs a minimum above 0")
        return self

    def sample(self, rng: np.random.Generator) -> float:
        """Draws a number."""
        if self.scale == "linear":
            return float(rng.uniform(self.minimum, self.maximum))
        return math.exp(rng.uniform(math.log(self.minimum), math.log(self.maximum)))


class WholeRange(CheckedModel):
    """A whole number between two others, both included."""

    minimum: Count
    maximum: Count

    @model_validator(mode="after")
    def _ordered(self) -> WholeRange:
        if self.maximum < self.minimum:
            raise ValueError(f"maximum {self.maximum} is below minimum {self.minimum}")
        return self

    def sample(self, rng: np.random.Generator) -> int:
        """Draws a number."""
        return int(rng.integers(self.minimum, self.maximum, endpoint=True))


class Part(CheckedModel):
    """A feature that some of a distribution's paths have."""

    chance: Probability
    """The share of the paths that have the part."""


AnyPart = TypeVar("AnyPart", bound=Part)


def drawn(part: AnyPart | None, rng: np.random.Generator) -> AnyPart | None:
    """Returns the part where the next path has it; without a part nothing is drawn."""
    return part if part is not None and rng.uniform() < part.chance else None


class RandomLoss(Part):
    """Bernoulli loss on some of the paths."""

    probability: Range[Probability]


class RateChanges(Part):
    """On some of the paths the rate changes, at times uniform over the duration."""

    count: WholeRange
    factor: Range[Positive]
    """New rate as a multiple of the path's rate."""


class RateWalk(Part):
    """On some of the paths the rate is a random walk, as a cellular link's.

    The walk is that of cellular_trace.py: it is reflected at 0 and at twice the path's rate, which
    is therefore its mean.
    """

    volatility: Range[Positive]
    """Standard deviation of the change within a second, as a share of the path's rate."""
    every_s: Positive = 0.1
    """Time for which the rate stands still."""

    def rates(self, duration_s: float, rng: np.random.Generator) -> np.ndarray:
        """Draws the rates at every_s, 2 every_s, …, as multiples of the path's rate."""
        step = self.volatility.sample(rng) * math.sqrt(self.every_s)
        steps = rng.normal(0, step, math.ceil(duration_s / self.every_s) - 1)
        return reflected(rng.uniform(0, 2) + np.cumsum(steps), 2.0)


class Reconfigurations(Part):
    """On some of the paths rate and delay become others at equal intervals, as at a handover.

    Low-orbit constellations assign satellites anew every 15 s, all over the world at the same
    moment (Mohan et al., "A Multifaceted Look at Starlink Performance", WWW 2024, section 5).
    """

    every_s: Range[Positive]
    """Time from one to the next; the first is at any moment before."""
    rate: Range[Positive]
    """New rate as a multiple of the path's rate."""
    delay: Range[Positive]
    """New delay as a multiple of the bottleneck's delay."""
    outage_s: Range[NotNegative]
    """Time for which nothing is sent first."""


class Traces(Part):
    """Some of the paths have the rate of a mahimahi trace."""

    paths: tuple[Path, ...] = Field(min_length=1)
    """Paths, names or models of traces, as a link's `trace`."""

    @field_validator("paths")
    @classmethod
    def _readable(cls, paths: tuple[Path, ...], info: ValidationInfo) -> tuple[Path, ...]:
        folder = (info.context or {}).get("folder", Path())
        found = tuple(find_trace(path, folder) for path in paths)
        for path in found:
            read_mahimahi(path)
        return found


class Outages(Part):
    """On some of the paths the rate is 0 for a while, at times uniform over the duration."""

    count: WholeRange
    duration_s: Range[Positive]


class QueueDisciplines(Part):
    """On some of the paths the bottleneck's queue is managed."""

    disciplines: tuple[DisciplineName, ...] = Field(min_length=1)
    """Disciplines from which each path's is drawn."""
    ecn_marking: Probability = 0.0
    """Probability that such a queue marks and all flows understand it."""


class AckAggregation(Part):
    """On some of the paths the reverse link opens at intervals only."""

    opens_every_ms: Range[Positive]


class ShortFlowLoad(Part):
    """On some of the networks short transfers come and go next to the flows."""

    load: Range[Positive]
    """Mean rate of the transfers as a share of the path's rate."""
    sizes: Literal["web-search", "data-mining"] = "web-search"
    """Distribution of the sizes, as in a scenario's `short_flows`."""


class DelayChanges(Part):
    """On some of the paths the bottleneck's delay changes, at times uniform over the duration."""

    count: WholeRange
    factor: Range[Positive]
    """New delay as a multiple of the bottleneck's delay."""


class RandomJitter(Part):
    """On some of the networks every packet has an additional random delay, uniform from 0."""

    max_rtt: Range[Positive]
    """Largest delay, as a share of the path's RTT."""
    reordering: Probability = 0.0
    """Probability that packets overtake one another on such a path."""


class Policers(Part):
    """On some of the paths a token bucket comes before the queue."""

    rate: Range[Positive]
    """Rate of the token bucket as a multiple of the path's rate."""
    burst_rtt: Range[Positive]
    """Size of the bucket in RTTs of the path: what the bucket's rate brings in that time."""
