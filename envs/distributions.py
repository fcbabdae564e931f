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
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

import numpy as np
import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from quicgym.configs import DISTRIBUTIONS, SUITES
from quicgym.configs.names import yaml_names
from quicgym.envs.scenario import (
    LINK_HEADER_BYTES,
    Access,
    BernoulliLoss,
    DatagramBytes,
    DurationS,
    Flow,
    Link,
    Name,
    Probability,
    Queue,
    RateStep,
    Scenario,
    ScenarioError,
    closest,
    read_mahimahi,
)
from quicgym.envs.scenario_files import load_scenario, scenario_names

HELD_OUT_SUITE = "heldout"
CELLS = 8
_RATE_MBPS = (1.0, 200.0)
_RTT_MS = (10.0, 600.0)
_STRIDE = 3  # has no divisor in common with CELLS: one held-out cell per row and per column
_ACCESS_DELAY_MS = 1.0


class UnknownNameError(ScenarioError):
    """No distribution or suite has this name."""


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Range(_Model):
    """A number between two others, uniform on a linear or a logarithmic scale."""

    minimum: float
    maximum: float
    scale: Literal["linear", "log"] = "linear"

    @model_validator(mode="after")
    def _ordered(self) -> Range:
        if self.maximum < self.minimum:
            raise ValueError(f"maximum {self.maximum:g} is below minimum {self.minimum:g}")
        if self.scale == "log" and self.minimum <= 0:
            raise ValueError("a logarithmic scale needs a minimum above 0")
        return self

    def sample(self, random: np.random.Generator) -> float:
        """Draws a number."""
        if self.scale == "linear":
            return float(random.uniform(self.minimum, self.maximum))
        return math.exp(random.uniform(math.log(self.minimum), math.log(self.maximum)))


class WholeRange(_Model):
    """A whole number between two others, both included."""

    minimum: int = Field(ge=1)
    maximum: int = Field(ge=1)

    @model_validator(mode="after")
    def _ordered(self) -> WholeRange:
        if self.maximum < self.minimum:
            raise ValueError(f"maximum {self.maximum} is below minimum {self.minimum}")
        return self

    def sample(self, random: np.random.Generator) -> int:
        """Draws a number."""
        return int(random.integers(self.minimum, self.maximum, endpoint=True))


class RandomLoss(_Model):
    """Bernoulli loss on some of the paths."""

    chance: Probability
    """That a path has it."""
    probability: Range


class RateChanges(_Model):
    """On some of the paths the rate changes, at times uniform over the duration."""

    chance: Probability
    count: WholeRange
    factor: Range
    """Of the path's rate."""


class Traces(_Model):
    """Some of the paths have the rate of a mahimahi trace."""

    chance: Probability
    paths: tuple[Path, ...] = Field(min_length=1)
    """Relative ones start at the YAML's folder."""


class Distribution(_Model):
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
    rate_mbps: Range
    rtt_ms: Range
    queue_bdp: Range
    loss: RandomLoss | None = None
    flows: WholeRange = WholeRange(minimum=1, maximum=1)
    agents: int = Field(default=1, ge=1)
    """Flows that name no controller; `flows` counts them."""
    all_agents: Probability = 0.0
    """That all flows of a path are the agents'."""
    other_controllers: tuple[str, ...] = ("cubic",)
    start_spread_s: float = Field(default=0.0, ge=0)
    extra_rtt: Range = Range(minimum=0, maximum=0)
    rate_changes: RateChanges | None = None
    traces: Traces | None = None
    held_out: bool = False
    """Never draw from the cells of the suite `heldout`; traces are not concerned."""

    @model_validator(mode="after")
    def _possible(self) -> Distribution:
        if self.rtt_ms.minimum < 4 * _ACCESS_DELAY_MS:
            raise ValueError(f"rtt_ms: the access links alone have {4 * _ACCESS_DELAY_MS:g} ms")
        if self.agents > self.flows.minimum:
            raise ValueError(f"agents: there are only {self.flows.minimum} flows at times")
        if self.start_spread_s >= self.duration_s:
            raise ValueError("start_spread_s: make it shorter than duration_s")
        return self

    @property
    def most_agents(self) -> int:
        """How many agents a path has at most."""
        return self.flows.maximum if self.all_agents else self.agents

    def sample(self, random: np.random.Generator) -> Scenario:
        """Draws a scenario."""
        rate_mbps, rtt_ms = self._path(random)
        delay_ms = rtt_ms / 2 - 2 * _ACCESS_DELAY_MS
        queue_bdp = self.queue_bdp.sample(random)
        trace = self._trace(random)
        if trace is not None:
            times = read_mahimahi(trace)
            rate_mbps = len(times) * 1500 * 8e-3 / times[-1]
        packet_bytes = self.max_datagram_bytes + LINK_HEADER_BYTES
        bdp_packets = rate_mbps * rtt_ms * 1e3 / 8 / packet_bytes
        queue = Queue(limit=max(2, round(queue_bdp * bdp_packets)))
        loss = None
        if self.loss is not None and random.uniform() < self.loss.chance:
            loss = BernoulliLoss(probability=self.loss.probability.sample(random))
        reverse = Link(rate_mbps=rate_mbps, delay_ms=delay_ms, queue=queue)
        if trace is not None:
            link = Link(trace=trace, delay_ms=delay_ms, queue=queue, loss=loss)
        else:
            link = Link(
                rate_mbps=rate_mbps,
                delay_ms=delay_ms,
                queue=queue,
                loss=loss,
                rate_schedule=self._rate_schedule(rate_mbps, random),
            )
        return Scenario(
            name=self.name,
            description=self.description,
            duration_s=self.duration_s,
            bottleneck=link,
            reverse=reverse,
            access=Access(rate_mbps=max(100.0, 5 * rate_mbps), delay_ms=_ACCESS_DELAY_MS),
            flows=self._flows(rtt_ms, random),
            max_datagram_bytes=self.max_datagram_bytes,
        )

    def _path(self, random: np.random.Generator) -> tuple[float, float]:
        for _ in range(1000):
            rate_mbps, rtt_ms = self.rate_mbps.sample(random), self.rtt_ms.sample(random)
            if not self.held_out or not is_held_out(rate_mbps, rtt_ms):
                return rate_mbps, rtt_ms
        raise ScenarioError(
            f"{self.name}: rate_mbps and rtt_ms lie in held-out cells; widen a range"
        )

    def _trace(self, random: np.random.Generator) -> Path | None:
        if self.traces is None or random.uniform() >= self.traces.chance:
            return None
        return self.traces.paths[int(random.integers(len(self.traces.paths)))]

    def _rate_schedule(self, rate_mbps: float, random: np.random.Generator) -> tuple[RateStep, ...]:
        changes = self.rate_changes
        if changes is None or random.uniform() >= changes.chance:
            return ()
        times = sorted(random.uniform(0.1, self.duration_s, changes.count.sample(random)))
        return tuple(
            RateStep(at_s=float(time), rate_mbps=rate_mbps * changes.factor.sample(random))
            for time in times
        )

    def _flows(self, rtt_ms: float, random: np.random.Generator) -> tuple[Flow, ...]:
        others = self.flows.sample(random) - 1
        agents = self.agents
        if self.all_agents and random.uniform() < self.all_agents:
            agents = 1 + others
        flows = [Flow(name="agent")]
        for number in range(others):
            controller = None
            name = f"agent-{number + 2}"
            if number + 1 >= agents:
                name = f"other-{number + 2 - agents}"
                choice = int(random.integers(len(self.other_controllers)))
                controller = self.other_controllers[choice]
            flows.append(
                Flow(
                    name=name,
                    controller=controller,
                    start_s=float(random.uniform(0, self.start_spread_s)),
                    extra_delay_ms=self.extra_rtt.sample(random) * rtt_ms / 2,
                )
            )
        return tuple(flows)


_ONLY_DISTRIBUTIONS = frozenset(Distribution.model_fields) - frozenset(Scenario.model_fields)


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
    data, file, folder = _read_yaml(name_or_path, distribution_names(), "distribution")
    if isinstance(data, dict) and isinstance(data.get("traces"), dict):
        paths = data["traces"].get("paths")
        if isinstance(paths, list):
            data["traces"]["paths"] = [str((folder / str(path)).absolute()) for path in paths]
    try:
        distribution = Distribution.model_validate(data)
    except ValidationError as error:
        raise ScenarioError(_explain(file, error)) from None
    for path in distribution.traces.paths if distribution.traces else ():
        Link.model_validate({"trace": path, "delay_ms": 0})  # names what is wrong with the file
    return distribution


def suite_names() -> list[str]:
    """Returns the names of the suites that quicgym brings."""
    return yaml_names(SUITES)


SuiteEntry = Scenario | Distribution
"""A scenario, or a distribution, from which each seed draws one; see `scenario_of`."""


def scenario_of(entry: SuiteEntry, seed: int) -> Scenario:
    """Returns what is simulated with a seed."""
    if isinstance(entry, Scenario):
        return entry
    return entry.sample(np.random.default_rng(seed))


def episodes_of(entries: Iterable[SuiteEntry], seeds: int) -> list[tuple[Scenario, int]]:
    """Returns scenario and seed of every episode, with the seeds 0 to `seeds` - 1 of each entry."""
    return [(scenario_of(entry, seed), seed) for entry in entries for seed in range(seeds)]


def load_entry(name_or_path: str | Path) -> SuiteEntry:
    """Loads a scenario or a distribution, by its name or from a YAML file.

    Raises:
        ScenarioError: There is neither, or it is not valid; the text names file, field and value.
    """
    text = str(name_or_path)
    if text in distribution_names() or _is_distribution(Path(text)):
        return load_distribution(name_or_path)
    return load_scenario(name_or_path)


def _is_distribution(path: Path) -> bool:
    """Whether a file has a field at its top that no scenario has there; what is wrong, too."""
    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError):
        return False  # load_scenario says what is wrong
    return isinstance(data, dict) and not data.keys().isdisjoint(_ONLY_DISTRIBUTIONS)


def load_suite(name_or_path: str | Path) -> tuple[SuiteEntry, ...]:
    """Loads a suite, a fixed list of scenarios.

    Args:
        name_or_path: One of `suite_names()`; the name of a scenario or of a distribution, a suite
            of one; or the path of a YAML file: that of one as well, or a list of scenarios, each
            written out or given as `load_scenario` takes it (paths start at the file's folder).

    Raises:
        ScenarioError: There is none, or it is not valid; the text names file, field and value.
    """
    text = str(name_or_path)
    if text in scenario_names() or text in distribution_names():
        return (load_entry(text),)
    try:
        data, file, folder = _read_yaml(name_or_path, suite_names(), "suite")
    except UnknownNameError as error:
        raise ScenarioError(f"{error}, or the name of a scenario or a distribution") from None
    if isinstance(data, dict):
        return (load_entry(Path(file)),)
    if not isinstance(data, list) or not data:
        raise ScenarioError(f"{file}: is no list of scenarios; give at least one")
    return tuple(
        _suite_entry(entry, f"{file}: {number}", folder) for number, entry in enumerate(data)
    )


def _suite_entry(entry: Any, place: str, folder: Path) -> Scenario:
    try:
        if not isinstance(entry, str):
            return Scenario.model_validate(entry, context={"folder": folder})
        is_path = entry.endswith((".yaml", ".yml")) or "/" in entry
        return load_scenario(folder / entry if is_path else entry)
    except ValidationError as error:
        raise ScenarioError(_explain(place, error)) from None
    except ScenarioError as error:
        raise ScenarioError(f"{place}: {error}") from None


def _read_yaml(name_or_path: str | Path, names: list[str], what: str) -> tuple[Any, str, Path]:
    text = str(name_or_path)
    folder = Path()
    if isinstance(name_or_path, Path) or text.endswith((".yaml", ".yml")) or "/" in text:
        path = Path(name_or_path)
        folder = path.parent
        try:
            content = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ScenarioError(f"{path}: {error}; give the path of a YAML file") from None
    elif text in names:
        source = (DISTRIBUTIONS if what == "distribution" else SUITES) / f"{text}.yaml"
        content = source.read_text(encoding="utf-8")
    else:
        raise UnknownNameError(
            f"unknown {what} {text!r}; {closest(text, names)}; or give a YAML's path"
        )
    try:
        return yaml.safe_load(content), text, folder
    except yaml.YAMLError as error:
        raise ScenarioError(f"{text}: not valid YAML: {error}") from None


def _explain(file: str, error: ValidationError) -> str:
    return "\n".join(
        f"{file}: {'.'.join(map(str, entry['loc']))} = {entry['input']!r}: {entry['msg']}"
        for entry in error.errors()
    )
