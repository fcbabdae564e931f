"""Distributions of scenarios for training, and the suite that training never sees.

A distribution is a YAML file of ranges; `sample` draws a scenario from it and the generator that
it is given, and from nothing else. quicgym's own are in configs/distributions:

    gymnasium.make("quicgym/Tuning-v1", scenario=load_distribution("training"))

**Held out.** The plane of rate and RTT, both on a logarithmic scale, is cut into 8 by 8 cells
between 1 and 200 Mbps and 10 and 600 ms. In each row and in each column one cell is held out: a
distribution with `held_out: true` draws again while it meets one. All scenarios of the suite
`heldout` lie in those cells, so training on such a distribution cannot have met any of them, or any
path much like it, while rates and RTTs of every size are on both sides. The suite `stress` has
cells of the same kind on a wider plane, which `held_out_stress: true` leaves out. Worlds have cells
on the plane of their own ranges: `cells: training` leaves these out, and the world's suite is drawn
with `cells: held-out`.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from pydantic import BeforeValidator, Field, ValidationError, field_validator, model_validator

from quicgym.envs.scenarios.distribution_parts import (
    AckAggregation,
    DelayChanges,
    NotNegative,
    Outages,
    Policers,
    Positive,
    QueueDisciplines,
    RandomJitter,
    RandomLoss,
    Range,
    RateChanges,
    RateWalk,
    Reconfigurations,
    ShortFlowLoad,
    Traces,
    WholeRange,
    drawn,
)
from quicgym.envs.scenarios.fields import (
    LINK_HEADER_BYTES,
    SHORTEST_S,
    SLOWEST_MBPS,
    CheckedModel,
    DatagramBytes,
    DurationS,
    Name,
    Probability,
    RateMbps,
    ScenarioError,
    errors_at,
)
from quicgym.envs.scenarios.files import NOT_OF_BASE, changed
from quicgym.envs.scenarios.flows import Flow, check_parameters
from quicgym.envs.scenarios.links import (
    Access,
    BernoulliLoss,
    DelayStep,
    DisciplineName,
    Link,
    Policer,
    Queue,
    RateStep,
    UniformJitter,
)
from quicgym.envs.scenarios.model import Scenario
from quicgym.envs.scenarios.short_flows import ShortFlows
from quicgym.envs.scenarios.traces import mean_rate_mbps, read_mahimahi
from quicgym.validation import explain, validated
from quicgym.yaml_files import CONFIGS, YamlFile, is_path, read_yaml, yaml_names

DISTRIBUTIONS = CONFIGS / "distributions"


class HeldOutCells(NamedTuple):
    """A part of the plane of rate and RTT with one held-out cell in each row and column.

    Attributes:
        rate_mbps: Rates in Mbps at which the first of the eight columns begins and the last one
            ends.
        rtt_ms: RTTs in ms at which the first of the eight rows begins and the last one ends.
    """

    rate_mbps: tuple[float, float]
    rtt_ms: tuple[float, float]

    def cell(self, rate_mbps: float, rtt_ms: float) -> tuple[int, int] | None:
        """Returns column and row of the cell that a path lies in; None: outside of the plane."""
        column = _position(rate_mbps, self.rate_mbps)
        row = _position(rtt_ms, self.rtt_ms)
        return None if column is None or row is None else (column, row)

    def contain(self, rate_mbps: float, rtt_ms: float) -> bool:
        """Returns whether a path lies in a held-out cell."""
        cell = self.cell(rate_mbps, rtt_ms)
        return cell is not None and (cell[0] + _STRIDE * cell[1]) % CELLS == 0


CELLS = 8
_STRIDE = 3  # has no divisor in common with CELLS: one held-out cell per row and per column
HELD_OUT = HeldOutCells((1.0, 200.0), (10.0, 600.0))
"""Held-out cells of the suite `heldout`."""
HELD_OUT_STRESS = HeldOutCells((0.1, 500.0), (2.0, 1500.0))
"""Held-out cells of the suite `stress`."""
_FIRST_CHANGE_S = 0.1
_MOST_CHANGES = 100_000


RttMs = Annotated[
    float,
    Field(
        strict=True,
        gt=0,
        le=100_000,
        description="a number of milliseconds above 0, at most 100000",
    ),
]


def _as_range(value: Any) -> Any:
    return {"minimum": value, "maximum": value} if isinstance(value, int) else value


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
    """Rate of the bottleneck."""
    rtt_ms: Range[RttMs]
    """RTT of the path without a queue."""
    access_delay_ms: NotNegative = 1.0
    """Delay of each access link, one way; the path's RTT has it four times."""
    queue_bdp: Range[Positive]
    """Limit of the queue over rate · RTT; two packets at least."""
    loss: RandomLoss | None = None
    """Random loss on some of the paths."""
    flows: WholeRange = WholeRange(minimum=1, maximum=1)
    """Number of flows, the agents' included."""
    packets_per_flow: NotNegative = 0.0
    """Packets that path and queue hold at least for each flow; with less, fewer flows are drawn."""
    agents: Annotated[WholeRange, BeforeValidator(_as_range)] = WholeRange(minimum=1, maximum=1)
    """Flows that name no controller; `flows` counts them. Where their number is drawn, at least one
    flow of a path is another's."""
    all_agents: Probability = 0.0
    """Probability that all flows of a path are the agents'."""
    other_controllers: tuple[str, ...] = Field(default=("cubic",), min_length=1)
    """Controllers from which each other flow's is drawn."""
    start_spread_s: float = Field(default=0.0, ge=0)
    """Time within which all flows but the first start."""
    extra_rtt: Range[NotNegative] = Range(minimum=0, maximum=0)
    """RTT that all flows but the first have on top, as a share of the path's RTT."""
    rate_changes: RateChanges | None = None
    """The rate becomes a multiple of the first one."""
    rate_walk: RateWalk | None = None
    """The rate moves at random, in place of `rate_changes`."""
    reconfigurations: Reconfigurations | None = None
    """Rate and delay become others every few seconds, in place of all other changes of them."""
    traces: Traces | None = None
    """A mahimahi trace takes the place of the rate."""
    outages: Outages | None = None
    """The rate is 0 for a while."""
    queue_disciplines: QueueDisciplines | None = None
    """A managed queue takes the place of the drop-tail queue."""
    ack_aggregation: AckAggregation | None = None
    """Acknowledgements come in bursts."""
    short_flows: ShortFlowLoad | None = None
    """Transfers with one of `other_controllers` come and go."""
    delay_changes: DelayChanges | None = None
    """The bottleneck's delay becomes a multiple of the first one."""
    jitter: RandomJitter | None = None
    """Every packet has an additional random delay."""
    policers: Policers | None = None
    """A token bucket comes before the queue."""
    held_out: bool = False
    """Never draw from the cells of the suite `heldout`; traces are not concerned."""
    held_out_stress: bool = False
    """Nor from those of the suite `stress`."""
    cells: Literal["all", "training", "held-out"] = "all"
    """Cells of the plane of `rate_mbps` and `rtt_ms` that paths are drawn from."""

    @model_validator(mode="after")
    def _possible(self) -> Distribution:
        shortest_ms = 4 * self.access_delay_ms
        if self.rtt_ms.minimum < shortest_ms:
            raise ValueError(
                f"rtt_ms.minimum = {self.rtt_ms.minimum:g}: the access links alone have "
                f"{shortest_ms:g} ms; make it longer, or access_delay_ms shorter"
            )
        if self.agents.maximum > self.flows.maximum or self.agents.minimum > self.flows.minimum:
            raise ValueError(f"agents: there are only {self.flows.minimum} flows at times")
        if self.start_spread_s > self.duration_s - SHORTEST_S:
            raise ValueError("start_spread_s: make it shorter than duration_s")
        longest_ms = self.extra_rtt.maximum * self.rtt_ms.maximum / 2
        if longest_ms > 60_000:
            raise ValueError(f"extra_rtt: adds up to {longest_ms:g} ms each way; 60000 is the most")
        for field in ("rate_changes", "delay_changes", "outages"):
            if getattr(self, field) is not None and self.duration_s <= _FIRST_CHANGE_S:
                raise ValueError(f"{field}: need a duration_s above {_FIRST_CHANGE_S:g}")
        if self.rate_changes is not None:
            self._check_rate_changes(self.rate_changes)
        if self.rate_walk is not None:
            self._check_interval("rate_walk.every_s", self.rate_walk.every_s, 0.0)
        if self.reconfigurations is not None:
            every_s = self.reconfigurations.every_s.minimum
            self._check_interval("reconfigurations.every_s.minimum", every_s, _FIRST_CHANGE_S)
        if self.traces is not None and self.reconfigurations is not None:
            raise ValueError("traces: reconfigurations draw the rate; leave out one of them")
        return self

    def _check_interval(self, field: str, every_s: float, least_s: float) -> None:
        shortest_s = max(least_s, self.duration_s / _MOST_CHANGES)
        if every_s < shortest_s:
            raise ValueError(f"{field} = {every_s:g}: give at least {shortest_s:g} s")

    def _check_rate_changes(self, changes: RateChanges) -> None:
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
        return self.flows.maximum if self.all_agents else self.agents.maximum

    @property
    def draws_agents(self) -> bool:
        """Whether paths have different numbers of agents."""
        return self.all_agents > 0 or self.agents.minimum < self.agents.maximum

    def content(self) -> list[Any]:
        """Returns all that its draws depend on, the packets of its traces included."""
        return [
            self.model_dump(mode="python", exclude={"description", "source"}),
            [read_mahimahi(path) for path in (self.traces.paths if self.traces else ())],
        ]

    def sample(self, rng: np.random.Generator) -> Scenario:
        """Draws a scenario.

        Raises:
            ScenarioError: The ranges hold paths that are not valid, and one was drawn; the text
                names field and value.
        """
        try:
            return self._draw(rng)
        except ValidationError as wrong:
            texts = "; ".join(explain(Scenario, wrong))
            raise ScenarioError(f"{self.name}: drew a path that is not valid: {texts}") from None

    def _draw(self, rng: np.random.Generator) -> Scenario:
        rate_mbps, rtt_ms = self._path(rng)
        delay_ms = rtt_ms / 2 - 2 * self.access_delay_ms
        queue_bdp = self.queue_bdp.sample(rng)
        trace = None
        if (traces := drawn(self.traces, rng)) is not None:
            trace = traces.paths[int(rng.integers(len(traces.paths)))]
            rate_mbps = mean_rate_mbps(trace)
        packet_bytes = self.max_datagram_bytes + LINK_HEADER_BYTES
        bdp_packets = rate_mbps * rtt_ms * 1e3 / 8 / packet_bytes
        limit = max(2, round(queue_bdp * bdp_packets))
        loss = drawn(self.loss, rng)
        bernoulli = BernoulliLoss(probability=loss.probability.sample(rng)) if loss else None
        # A new part must draw its random numbers after all older parts, so that a seed still gives
        # the same network in distributions without the new part.
        rate_schedule: tuple[RateStep, ...] = ()
        if trace is None:
            rate_schedule = tuple(
                RateStep(at_s=at_s, rate_mbps=rate_mbps * factor)
                for at_s, factor in self._changes(self.rate_changes, rng)
            )
        flows = self._flows(rtt_ms, bdp_packets + limit, rng)
        if trace is None and (walk := drawn(self.rate_walk, rng)) is not None:
            rate_schedule = _walk(walk, rate_mbps, self.duration_s, rng)
        if trace is None:
            rate_schedule = self._with_outages(rate_mbps, rate_schedule, rng)
        discipline, marks = self._queue_discipline(rng)
        queue = Queue(limit=limit, discipline=discipline, ecn_marking=marks)
        acks = drawn(self.ack_aggregation, rng)
        opens_every_ms = acks.opens_every_ms.sample(rng) if acks else None
        short_flows = self._short_flows(rate_mbps, marks, rng)
        delay_schedule = tuple(
            DelayStep(at_s=at_s, delay_ms=delay_ms * factor)
            for at_s, factor in self._changes(self.delay_changes, rng)
        )
        if (handovers := drawn(self.reconfigurations, rng)) is not None:
            rate_schedule, delay_schedule = _reconfigured(
                handovers, rate_mbps, delay_ms, self.duration_s, rng
            )
        jitter, reordering = None, False
        if (random_jitter := drawn(self.jitter, rng)) is not None:
            jitter = UniformJitter(max_ms=random_jitter.max_rtt.sample(rng) * rtt_ms)
            reordering = bool(rng.uniform() < random_jitter.reordering)
        # An outage may last beyond the end.
        rate_schedule = tuple(step for step in rate_schedule if step.at_s < self.duration_s)
        return Scenario(
            name=self.name,
            description=self.description,
            duration_s=self.duration_s,
            bottleneck=Link(
                rate_mbps=rate_mbps if trace is None else None,
                trace=trace,
                delay_ms=delay_ms,
                delay_schedule=delay_schedule,
                jitter=jitter,
                reordering=reordering,
                policer=self._policer(rate_mbps, rtt_ms, rng),
                queue=queue,
                loss=bernoulli,
                rate_schedule=rate_schedule,
            ),
            reverse=Link(
                rate_mbps=rate_mbps,
                delay_ms=delay_ms,
                queue=Queue(limit=limit),
                opens_every_ms=opens_every_ms,
            ),
            access=Access(
                rate_mbps=min(max(100.0, 5 * rate_mbps), 100_000.0), delay_ms=self.access_delay_ms
            ),
            flows=tuple(flow.model_copy(update={"ecn": True}) for flow in flows)
            if marks
            else flows,
            short_flows=short_flows,
            max_datagram_bytes=self.max_datagram_bytes,
        )

    def may_have(self, rate_mbps: float, rtt_ms: float) -> bool:
        """Returns whether no held-out cell has a path of this rate and RTT."""
        own = HeldOutCells(
            (self.rate_mbps.minimum, self.rate_mbps.maximum),
            (self.rtt_ms.minimum, self.rtt_ms.maximum),
        )
        held_out = self.held_out and HELD_OUT.contain(rate_mbps, rtt_ms)
        held_out |= self.held_out_stress and HELD_OUT_STRESS.contain(rate_mbps, rtt_ms)
        if self.cells != "all":
            held_out |= own.contain(rate_mbps, rtt_ms) == (self.cells == "training")
        return not held_out

    def _path(self, rng: np.random.Generator) -> tuple[float, float]:
        for _ in range(1000):
            rate_mbps, rtt_ms = self.rate_mbps.sample(rng), self.rtt_ms.sample(rng)
            if self.may_have(rate_mbps, rtt_ms):
                return rate_mbps, rtt_ms
        raise ScenarioError(
            f"{self.name}: rate_mbps and rtt_ms lie in held-out cells; widen a range"
        )

    def _changes(
        self, changes: RateChanges | DelayChanges | None, rng: np.random.Generator
    ) -> list[tuple[float, float]]:
        """Draws when something changes, in s, and by which factor."""
        if changes is None or drawn(changes, rng) is None:
            return []
        times = sorted(rng.uniform(_FIRST_CHANGE_S, self.duration_s, changes.count.sample(rng)))
        return [(float(time), changes.factor.sample(rng)) for time in times]

    def _with_outages(
        self, rate_mbps: float, steps: tuple[RateStep, ...], rng: np.random.Generator
    ) -> tuple[RateStep, ...]:
        outages = drawn(self.outages, rng)
        if outages is None:
            return steps
        for _ in range(outages.count.sample(rng)):
            begin_s = float(rng.uniform(_FIRST_CHANGE_S, self.duration_s))
            end_s = begin_s + outages.duration_s.sample(rng)
            before = [step for step in steps if step.at_s < begin_s]
            until_end = [step for step in steps if step.at_s <= end_s]
            again_mbps = until_end[-1].rate_mbps if until_end else rate_mbps
            after = [step for step in steps if step.at_s > end_s]
            outage = RateStep(at_s=begin_s, rate_mbps=0)
            steps = (*before, outage, RateStep(at_s=end_s, rate_mbps=again_mbps), *after)
        return steps

    def _queue_discipline(self, rng: np.random.Generator) -> tuple[DisciplineName, bool]:
        managed = drawn(self.queue_disciplines, rng)
        if managed is None:
            return "drop-tail", False
        discipline = managed.disciplines[int(rng.integers(len(managed.disciplines)))]
        return discipline, bool(rng.uniform() < managed.ecn_marking)

    def _short_flows(
        self, rate_mbps: float, ecn: bool, rng: np.random.Generator
    ) -> tuple[ShortFlows, ...]:
        short = drawn(self.short_flows, rng)
        if short is None:
            return ()
        choice = int(rng.integers(len(self.other_controllers)))
        return (
            ShortFlows(
                name="short",
                load_mbps=max(short.load.sample(rng) * rate_mbps, SLOWEST_MBPS),
                sizes=short.sizes,
                controller=self.other_controllers[choice],
                ecn=ecn,
            ),
        )

    def _policer(self, rate_mbps: float, rtt_ms: float, rng: np.random.Generator) -> Policer | None:
        policers = drawn(self.policers, rng)
        if policers is None:
            return None
        rate_mbps = max(policers.rate.sample(rng) * rate_mbps, SLOWEST_MBPS)
        burst_bytes = policers.burst_rtt.sample(rng) * rtt_ms * rate_mbps * 125
        smallest = 2 * (self.max_datagram_bytes + LINK_HEADER_BYTES)
        return Policer(rate_mbps=rate_mbps, burst_bytes=max(round(burst_bytes), smallest))

    def _flows(
        self, rtt_ms: float, room_packets: float, rng: np.random.Generator
    ) -> tuple[Flow, ...]:
        count = self.flows.sample(rng)
        agents = self.agents.minimum
        if self.packets_per_flow:
            count = max(agents, min(count, int(room_packets / self.packets_per_flow)))
        if self.agents.minimum < self.agents.maximum:
            agents = min(self.agents.sample(rng), max(agents, count - 1))
        others = count - 1
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


def _walk(
    walk: RateWalk, rate_mbps: float, duration_s: float, rng: np.random.Generator
) -> tuple[RateStep, ...]:
    rates = np.maximum(rate_mbps * walk.rates(duration_s, rng), SLOWEST_MBPS)
    return tuple(
        RateStep(at_s=number * walk.every_s, rate_mbps=float(rate))
        for number, rate in enumerate(rates, 1)
    )


def _reconfigured(
    part: Reconfigurations,
    rate_mbps: float,
    delay_ms: float,
    duration_s: float,
    rng: np.random.Generator,
) -> tuple[tuple[RateStep, ...], tuple[DelayStep, ...]]:
    rates: list[RateStep] = []
    delays: list[DelayStep] = []
    every_s = part.every_s.sample(rng)
    for at_s in np.arange(rng.uniform(_FIRST_CHANGE_S, every_s), duration_s, every_s):
        again_s = float(at_s) + part.outage_s.sample(rng)
        if again_s > at_s:
            rates.append(RateStep(at_s=float(at_s), rate_mbps=0))
        rates.append(RateStep(at_s=again_s, rate_mbps=rate_mbps * part.rate.sample(rng)))
        delays.append(DelayStep(at_s=float(at_s), delay_ms=delay_ms * part.delay.sample(rng)))
    return tuple(rates), tuple(delays)


def _position(value: float, limits: tuple[float, float]) -> int | None:
    if not limits[0] <= value <= limits[1]:
        return None
    if limits[0] == limits[1]:
        return 0
    position = math.log(value / limits[0]) / math.log(limits[1] / limits[0])
    return min(CELLS - 1, math.floor(CELLS * position))


def distribution_names() -> list[str]:
    """Returns the names of the distributions that quicgym brings."""
    return yaml_names(DISTRIBUTIONS)


def fields_of_distribution(name_or_path: str | Path, above: tuple[str, ...] = ()) -> YamlFile:
    """Reads a distribution's file, with the fields of the one that its `base` names.

    Args:
        name_or_path: Name or path of the distribution.
        above: The distributions that are based on it.
    """
    data, file, folder = read_yaml(name_or_path, DISTRIBUTIONS, "distribution", ScenarioError)
    if not isinstance(data, dict) or "base" not in data:
        return YamlFile(data, file, folder)
    base = data.pop("base")
    if not isinstance(base, str) or file in above:
        raise ScenarioError(
            f"{file}: base = {base!r}: give the name or the path of another distribution"
        )
    with errors_at(f"{file}: base"):
        found = fields_of_distribution(folder / base if is_path(base) else base, (*above, file))
    if not isinstance(found.data, dict):
        raise ScenarioError(f"{file}: base = {base!r}: has no fields; give another distribution")
    fields = {field: value for field, value in found.data.items() if field not in NOT_OF_BASE}
    return YamlFile(changed(fields, data), file, folder)


def load_distribution(name_or_path: str | Path) -> Distribution:
    """Loads a distribution by its name or from a YAML file.

    Raises:
        ScenarioError: The distribution does not exist, or is not valid; the text names file, field
            and value.
    """
    data, file, folder = fields_of_distribution(name_or_path)
    if isinstance(data, dict) and "mixture" in data:
        parts = data["mixture"]
        among = f", such as {next(iter(parts))}" if isinstance(parts, dict) and parts else ""
        raise ScenarioError(f"{file}: is a mixture; load one of its distributions{among}")
    distribution: Distribution = validated(
        Distribution, data, file, ScenarioError, context={"folder": folder}
    )
    with errors_at(file):
        distribution.sample(np.random.default_rng(0))  # some ranges have no valid path at all
    return distribution
