"""Distributions of scenarios for training, and the suite that training never sees.

A distribution is a YAML file of ranges; `sample` draws a scenario from it and the generator that
it is given, and from nothing else. quicgym's own are in configs/distributions:

    gymnasium.make("quicgym/Tuning-v0", scenario=load_distribution("training"))

**Held out.** The plane of rate and RTT, both on a logarithmic scale, is cut into 8 by 8 cells
between 1 and 200 Mbps and 10 and 600 ms. In each row and in each column one cell is held out: a
distribution with `held_out: true` draws again while it meets one. All scenarios of the suite
`heldout` lie in those cells, so training on such a distribution cannot have met any of them, or any
path much like it, while rates and RTTs of every size are on both sides.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, TypeVar

import numpy as np
from pydantic import Field, field_validator, model_validator

from quicgym.envs.scenarios.fields import (
    LINK_HEADER_BYTES,
    SHORTEST_S,
    CheckedModel,
    DatagramBytes,
    DurationS,
    Name,
    Probability,
    RateMbps,
    ScenarioError,
)
from quicgym.envs.scenarios.flows import Flow, check_parameters
from quicgym.envs.scenarios.links import Access, BernoulliLoss, Link, Queue, RateStep
from quicgym.envs.scenarios.model import Scenario
from quicgym.envs.scenarios.traces import read_mahimahi
from quicgym.validation import validated
from quicgym.yaml_files import CONFIGS, read_yaml, yaml_names

DISTRIBUTIONS = CONFIGS / "distributions"

CELLS = 8
_RATE_MBPS = (1.0, 200.0)
_RTT_MS = (10.0, 600.0)
_STRIDE = 3  # has no divisor in common with CELLS: one held-out cell per row and per column
_ACCESS_DELAY_MS = 1.0
_FIRST_CHANGE_S = 0.1


RttMs = Annotated[
    float,
    Field(
        strict=True,
        ge=4 * _ACCESS_DELAY_MS,  # which the access links alone have
        le=100_000,
        description="a number of milliseconds, 4 to 100000",
    ),
]
Positive = Annotated[float, Field(strict=True, gt=0, description="a number above 0")]
NotNegative = Annotated[float, Field(strict=True, ge=0, description="a number, 0 or more")]
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

    minimum: int = Field(ge=1)
    maximum: int = Field(ge=1)

    @model_validator(mode="after")
    def _ordered(self) -> WholeRange:
        if self.maximum < self.minimum:
            raise ValueError(f"maximum {self.maximum} is below minimum {self.minimum}")
        return self

    def sample(self, rng: np.random.Generator) -> int:
        """Draws a number."""
        return int(rng.integers(self.minimum, self.maximum, endpoint=True))


class RandomLoss(CheckedModel):
    """Bernoulli loss on some of the paths."""

    chance: Probability
    """That a path has it."""
    probability: Range[Probability]


class RateChanges(CheckedModel):
    """On some of the paths the rate changes, at times uniform over the duration."""

    chance: Probability
    count: WholeRange
    factor: Range[Positive]
    """Of the path's rate."""


class Traces(CheckedModel):
    """Some of the paths have the rate of a mahimahi trace."""

    chance: Probability
    paths: tuple[Path, ...] = Field(min_length=1)
    """Relative ones start at the YAML's folder."""


class Distribution(CheckedModel):
    """Ranges of dumbbells; see configs/distributions/training.yaml.

    The agents have the first flows, of which the first starts at once; each of the others has a
    controller drawn from `other_controllers`. All but the first have a start drawn from the first
    `start_spread_s`, and the path's RTT times 1 + `extra_rtt`. A queue holds `queue_bdp` times
    rate · RTT, two packets at least; rates of traces count with their mean.
    """

    name: Name
    description: str = ""
    duration_s: DurationS
    max_datagram_bytes: DatagramBytes = 1200
    rate_mbps: Range[RateMbps]
    rtt_ms: Range[RttMs]
    queue_bdp: Range[Positive]
    loss: RandomLoss | None = None
    flows: WholeRange = WholeRange(minimum=1, maximum=1)
    agents: int = Field(default=1, ge=1)
    """Flows that name no controller; `flows` counts them."""
    all_agents: Probability = 0.0
    """That all flows of a path are the agents'."""
    other_controllers: tuple[str, ...] = Field(default=("cubic",), min_length=1)
    start_spread_s: float = Field(default=0.0, ge=0)
    extra_rtt: Range[NotNegative] = Range(minimum=0, maximum=0)
    rate_changes: RateChanges | None = None
    traces: Traces | None = None
    held_out: bool = False
    """Never draw from the cells of the suite `heldout`; traces are not concerned."""

    @model_validator(mode="after")
    def _possible(self) -> Distribution:
        if self.agents > self.flows.minimum:
            raise ValueError(f"agents: there are only {self.flows.minimum} flows at times")
        if self.start_spread_s > self.duration_s - SHORTEST_S:
            raise ValueError("start_spread_s: make it shorter than duration_s")
        longest_ms = self.extra_rtt.maximum * self.rtt_ms.maximum / 2
        if longest_ms > 60_000:
            raise ValueError(f"extra_rtt: adds up to {longest_ms:g} ms each way; 60000 is the most")
        if self.rate_changes is not None:
            self._check_rate_changes(self.rate_changes)
        return self

    def _check_rate_changes(self, changes: RateChanges) -> None:
        if self.duration_s <= _FIRST_CHANGE_S:
            raise ValueError(f"rate_changes: need a duration_s above {_FIRST_CHANGE_S:g}")
        slowest = self.rate_mbps.minimum * changes.factor.minimum
        fastest = self.rate_mbps.maximum * changes.factor.maximum
        if slowest < 0.001 or fastest > 100_000:
            raise ValueError(
                f"rate_changes.factor: makes rates of {slowest:g} to {fastest:g} Mbps; keep them "
                "within 0.001 and 100000"
            )

    @field_validator("other_controllers")
    @classmethod
    def _exist(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        for index, name in enumerate(names):
            check_parameters(name, {}, str(index), "")
        return names

    @property
    def most_agents(self) -> int:
        """How many agents a path has at most."""
        return self.flows.maximum if self.all_agents else self.agents

    def content(self) -> list[Any]:
        """Returns all that its draws depend on, the packets of its traces included."""
        return [
            self.model_dump(mode="python", exclude={"description", "source"}),
            [read_mahimahi(path) for path in (self.traces.paths if self.traces else ())],
        ]

    def sample(self, rng: np.random.Generator) -> Scenario:
        """Draws a scenario."""
        rate_mbps, rtt_ms = self._path(rng)
        delay_ms = rtt_ms / 2 - 2 * _ACCESS_DELAY_MS
        queue_bdp = self.queue_bdp.sample(rng)
        trace = self._trace(rng)
        if trace is not None:
            times = read_mahimahi(trace)
            rate_mbps = len(times) * 1500 * 8e-3 / times[-1]
        packet_bytes = self.max_datagram_bytes + LINK_HEADER_BYTES
        bdp_packets = rate_mbps * rtt_ms * 1e3 / 8 / packet_bytes
        queue = Queue(limit=max(2, round(queue_bdp * bdp_packets)))
        loss = None
        if self.loss is not None and rng.uniform() < self.loss.chance:
            loss = BernoulliLoss(probability=self.loss.probability.sample(rng))
        reverse = Link(rate_mbps=rate_mbps, delay_ms=delay_ms, queue=queue)
        if trace is not None:
            link = Link(trace=trace, delay_ms=delay_ms, queue=queue, loss=loss)
        else:
            link = Link(
                rate_mbps=rate_mbps,
                delay_ms=delay_ms,
                queue=queue,
                loss=loss,
                rate_schedule=self._rate_schedule(rate_mbps, rng),
            )
        return Scenario(
            name=self.name,
            description=self.description,
            duration_s=self.duration_s,
            bottleneck=link,
            reverse=reverse,
            access=Access(
                rate_mbps=min(max(100.0, 5 * rate_mbps), 100_000.0), delay_ms=_ACCESS_DELAY_MS
            ),
            flows=self._flows(rtt_ms, rng),
            max_datagram_bytes=self.max_datagram_bytes,
        )

    def _path(self, rng: np.random.Generator) -> tuple[float, float]:
        for _ in range(1000):
            rate_mbps, rtt_ms = self.rate_mbps.sample(rng), self.rtt_ms.sample(rng)
            if not self.held_out or not is_held_out(rate_mbps, rtt_ms):
                return rate_mbps, rtt_ms
        raise ScenarioError(
            f"{self.name}: rate_mbps and rtt_ms lie in held-out cells; widen a range"
        )

    def _trace(self, rng: np.random.Generator) -> Path | None:
        if self.traces is None or rng.uniform() >= self.traces.chance:
            return None
        return self.traces.paths[int(rng.integers(len(self.traces.paths)))]

    def _rate_schedule(self, rate_mbps: float, rng: np.random.Generator) -> tuple[RateStep, ...]:
        changes = self.rate_changes
        if changes is None or rng.uniform() >= changes.chance:
            return ()
        times = sorted(rng.uniform(_FIRST_CHANGE_S, self.duration_s, changes.count.sample(rng)))
        return tuple(
            RateStep(at_s=float(time), rate_mbps=rate_mbps * changes.factor.sample(rng))
            for time in times
        )

    def _flows(self, rtt_ms: float, rng: np.random.Generator) -> tuple[Flow, ...]:
        others = self.flows.sample(rng) - 1
        agents = self.agents
        if self.all_agents and rng.uniform() < self.all_agents:
            agents = 1 + others
        flows = [Flow(name="agent")]
        for number in range(others):
            controller = None
            name = f"agent-{number + 2}"
            if number + 1 >= agents:
                name = f"other-{number + 2 - agents}"
                choice = int(rng.integers(len(self.other_controllers)))
                controller = self.other_controllers[choice]
            flows.append(
                Flow(
                    name=name,
                    controller=controller,
                    start_s=float(rng.uniform(0, self.start_spread_s)),
                    extra_delay_ms=self.extra_rtt.sample(rng) * rtt_ms / 2,
                )
            )
        return tuple(flows)


def is_held_out(rate_mbps: float, rtt_ms: float) -> bool:
    """Returns whether a path lies in a cell that training never draws from."""
    column, row = _cell(rate_mbps, _RATE_MBPS), _cell(rtt_ms, _RTT_MS)
    return (column + _STRIDE * row) % CELLS == 0


def _cell(value: float, limits: tuple[float, float]) -> int:
    position = math.log(value / limits[0]) / math.log(limits[1] / limits[0])
    return min(CELLS - 1, max(0, math.floor(CELLS * position)))


def distribution_names() -> list[str]:
    """Returns the names of the distributions that quicgym brings."""
    return yaml_names(DISTRIBUTIONS)


def load_distribution(name_or_path: str | Path) -> Distribution:
    """Loads a distribution by its name or from a YAML file.

    Raises:
        ScenarioError: There is none, or it is not valid; the text names file, field and value.
    """
    data, file, folder = read_yaml(name_or_path, DISTRIBUTIONS, "distribution", ScenarioError)
    if isinstance(data, dict) and isinstance(data.get("traces"), dict):
        paths = data["traces"].get("paths")
        if isinstance(paths, list):
            data["traces"]["paths"] = [str((folder / str(path)).absolute()) for path in paths]
    distribution = validated(Distribution, data, file, ScenarioError)
    for path in distribution.traces.paths if distribution.traces else ():
        validated(Link, {"trace": path, "delay_ms": 0}, file, ScenarioError)
    return distribution
