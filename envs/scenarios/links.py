"""The links of a dumbbell or a chain: rates, queues, losses."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import BaseModel, Field, StrictBool, ValidationInfo, field_validator, model_validator

from quicgym import _core
from quicgym.envs.scenarios.conversion import structure
from quicgym.envs.scenarios.fields import (
    INLINE,
    CheckedModel,
    Core,
    DelayMs,
    DurationS,
    MtuBytes,
    Outside,
    PeriodMs,
    PositiveInteger,
    Probability,
    RateMbps,
    RateOrOutageMbps,
    check,
)
from quicgym.envs.scenarios.traces import find_trace, mean_rate_mbps, read_mahimahi
from quicgym.validation import problem

DISCIPLINES = {entry.name: entry for entry in _core.queue_disciplines()}
"""The queue disciplines by name, with what each can do."""
if TYPE_CHECKING:
    DisciplineName = str
else:
    DisciplineName = Literal[tuple(DISCIPLINES)]


MOST_BDP = 10_000
"""Largest limit of a queue in bandwidth-delay products (BDP)."""
# By name: Sphinx cannot read an f-string inside an annotation.
_LIMIT = f"a whole number, 1 or more; with the unit bdp a number above 0, at most {MOST_BDP}"


class Queue(CheckedModel):
    """The buffer in front of a link; the packet on the wire does not count."""

    core_type = "Link"

    limit: Annotated[
        PositiveInteger | Annotated[float, Field(strict=True, gt=0, le=MOST_BDP)],
        Field(description=_LIMIT),
        Core("queue_limit"),
    ] = 100
    unit: Annotated[Literal["packets", "bytes", "bdp"], Core("queue_unit")] = "packets"
    """bdp: times the link's mean rate times the scenario's base RTT."""
    discipline: Annotated[DisciplineName, Core("queue_discipline")] = "drop-tail"
    """Which packet is next, and which are dropped or marked: see sim/net/queues/."""
    ecn_marking: StrictBool = False
    """The discipline marks ECN-capable packets instead of dropping them; dualpi2 always does."""
    ce_threshold_ms: PeriodMs | None = None
    """With codel and fq-codel, L4S packets are marked where they have waited longer, and never
    dropped before the queue is full. Needs ecn_marking."""

    @property
    def marks(self) -> bool:
        """Whether a sender that is ECN-capable is told of congestion by marks."""
        return self.ecn_marking or DISCIPLINES[self.discipline].always_marks

    @model_validator(mode="after")
    def _possible(self) -> Queue:
        if self.unit != "bdp" and not isinstance(self.limit, int):
            raise problem(
                "limit", self.limit, f"no whole number of {self.unit}",
                "give a whole number, or the unit bdp",
            )  # fmt: skip
        counted = self.in_packets(1) if self.unit == "bdp" else self
        check(self, _core.queue_problem(structure(counted)))
        return self

    def in_packets(self, limit: int) -> Queue:
        """Returns the queue with a limit in packets."""
        return BaseModel.model_copy(self, update={"limit": limit, "unit": "packets"})


class BernoulliLoss(CheckedModel):
    """Each packet is lost on the wire, after the queue, with the same probability."""

    core_type = "LossModel"

    kind: Literal["bernoulli"] = "bernoulli"
    probability: Probability


class GilbertElliottLoss(CheckedModel):
    """Loss in bursts: a good and a bad state, each with its own loss; all per packet."""

    core_type = "LossModel"

    kind: Literal["gilbert-elliott"] = "gilbert-elliott"
    good_to_bad: Probability
    bad_to_good: Probability
    loss_in_good: Probability = 0.0
    loss_in_bad: Probability = 1.0


Loss = Annotated[
    BernoulliLoss | GilbertElliottLoss,
    Field(discriminator="kind", description="a mapping with the kind bernoulli or gilbert-elliott"),
]


class LossStep(CheckedModel):
    """Random loss of the packets whose transmission begins at `at_s` or later."""

    at_s: DurationS
    loss: Loss | None = None
    """Null, the default: no loss. A Gilbert-Elliott loss begins in its good state."""


class RateStep(CheckedModel):
    """From `at_s` on, transmissions start at this rate; at 0 none starts."""

    at_s: DurationS
    rate_mbps: RateOrOutageMbps


class DelayStep(CheckedModel):
    """Delay of the packets whose transmission begins at `at_s` or later."""

    at_s: DurationS
    delay_ms: DelayMs


class UniformJitter(CheckedModel):
    """A delay from 0 to `max_ms` on top of the link's, drawn for every packet."""

    core_type = "Jitter"

    kind: Literal["uniform"] = "uniform"
    max_ms: DelayMs


class NormalJitter(CheckedModel):
    """A normally distributed delay on top of the link's, drawn for every packet; 0 where below."""

    core_type = "Jitter"

    kind: Literal["normal"] = "normal"
    mean_ms: DelayMs
    deviation_ms: DelayMs


LinkJitter = Annotated[
    UniformJitter | NormalJitter,
    Field(discriminator="kind", description="a mapping with the kind uniform or normal"),
]


class Policer(CheckedModel):
    """A token bucket before the queue; what exceeds it is dropped."""

    rate_mbps: RateMbps
    burst_bytes: PositiveInteger
    """Size of the bucket: the bytes that may pass at once. The bucket is full at first."""


class Shaper(CheckedModel):
    """A token bucket before the transmitter; what exceeds it waits in the queue."""

    rate_mbps: RateMbps
    burst_bytes: PositiveInteger
    """Size of the bucket: the bytes that may leave at the link's rate. It is full at first."""


class Reroute(CheckedModel):
    """Sends packets that arrive at `at_s` or later over a new path with this rate and delay.

    The new path's queue is empty. Packets that arrived earlier stay in the old path's queue and on
    its wire.
    """

    at_s: DurationS
    rate_mbps: RateMbps
    delay_ms: DelayMs


class Link(CheckedModel):
    """One direction of the bottleneck."""

    rate_mbps: RateMbps | None = None
    delay_ms: DelayMs
    """One way."""
    delay_schedule: tuple[DelayStep, ...] = ()
    jitter: LinkJitter | None = None
    reordering: StrictBool = False
    """Packets may overtake one another when the delay falls; otherwise they keep their order."""
    reroutes: tuple[Reroute, ...] = ()
    """Each path has the link's queue, loss, jitter and shaper. The policer is before all paths."""
    policer: Policer | None = None
    queue: Annotated[Queue, INLINE] = Queue()
    loss: Loss | None = None
    loss_schedule: tuple[LossStep, ...] = ()
    rate_schedule: tuple[RateStep, ...] = ()
    shaper: Shaper | None = None
    """Bounds the rate over times that are long for the bucket."""
    opens_every_ms: PeriodMs | None = None
    """The queue goes out in bursts: from each multiple of this time on, until it is empty."""
    trace: Annotated[Path | None, Core("delivery_opportunities_ms", read_mahimahi)] = None
    """A mahimahi trace: one time in ms per line, each lets one 1500-byte packet go; it repeats.

    Replaces the rate. A relative path starts at the YAML's folder. Where nothing is there, it is a
    name in the folder of the environment variable QUICGYM_TRACES. A cellular-like trace
    is drawn where the text names model, rate, duration and seed, as in
    `lte:mean_mbps=6,duration_s=60,seed=0`.
    """

    @property
    def first_rate_mbps(self) -> float:
        """The rate that the link sustains at the beginning; of a trace the mean."""
        return self._sustained_mbps([])

    @property
    def highest_rate_mbps(self) -> float:
        """The rate that the link sustains at its best; of a trace the mean."""
        return self._sustained_mbps([*self.rate_schedule, *self.reroutes])

    def _sustained_mbps(self, later: Sequence[RateStep | Reroute]) -> float:
        if self.trace is not None:
            return mean_rate_mbps(self.trace)
        highest = max([self.rate_mbps or 0.0, *(step.rate_mbps for step in later)])
        return highest if self.shaper is None else min(highest, self.shaper.rate_mbps)

    @property
    def delays_ms(self) -> list[float]:
        """The delays that the link has in the course of time, without jitter."""
        later: list[DelayStep | Reroute] = [*self.delay_schedule, *self.reroutes]
        return [self.delay_ms, *(step.delay_ms for step in later)]

    @field_validator("trace")
    @classmethod
    def _readable(cls, trace: Path | None, info: ValidationInfo) -> Path | None:
        if trace is None:
            return None
        folder = (info.context or {}).get("folder", Path())
        trace = find_trace(trace, folder)
        read_mahimahi(trace)
        return trace

    @model_validator(mode="after")
    def _one_rate(self) -> Link:
        if self.trace is None and self.rate_mbps is None:
            raise problem("rate_mbps", None, "is missing", "give a number of Mbps, or a trace")
        for field in ("rate_schedule", "opens_every_ms", "shaper", "reroutes", "rate_mbps"):
            if self.trace is not None and (value := getattr(self, field)):
                raise problem(
                    field,
                    value,
                    "the trace sets when the link sends",
                    f"leave out trace or {field}",
                )
        return self

    @model_validator(mode="after")
    def _ascending(self) -> Link:
        for field in ("rate_schedule", "delay_schedule", "loss_schedule", "reroutes"):
            for index, (earlier, later) in enumerate(pairwise(getattr(self, field))):
                if later.at_s <= earlier.at_s:
                    raise problem(
                        f"{field}.{index + 1}.at_s", later.at_s,
                        f"is not after the step before it, {earlier.at_s:g} s",
                        "list the steps in ascending order of time",
                    )  # fmt: skip
        return self

    @model_validator(mode="after")
    def _one_way_to_change(self) -> Link:
        for field in ("rate_schedule", "delay_schedule"):
            if self.reroutes and (steps := getattr(self, field)):
                raise problem(
                    field, f"{len(steps)} entries", "reroutes set rate and delay",
                    f"leave out reroutes or {field}",
                )  # fmt: skip
        return self

    @model_validator(mode="after")
    def _can_reorder(self) -> Link:
        if self.reordering and self.jitter is None and not self.delay_schedule:
            raise problem(
                "reordering", True, "the link's delay never changes",
                "add jitter or delay_schedule, or leave it out",
            )  # fmt: skip
        return self


def with_counted_queue(link: Link, base_rtt_ms: float, packet_bytes: int) -> Link:
    """Returns a link whose queue is limited in packets or bytes, as the engines count.

    Of a limit in BDP the rate is that at the beginning, of a trace the mean rate. The limit is in
    bytes, or in full packets where the discipline counts no bytes.

    Args:
        link: Link as it is described.
        base_rtt_ms: Base RTT of the BDP, in ms.
        packet_bytes: Size of a full packet on the wire.
    """
    if link.queue.unit != "bdp":
        return link
    limit_bytes = link.queue.limit * link.first_rate_mbps * 125 * base_rtt_ms
    if DISCIPLINES[link.queue.discipline].counts_bytes:
        counted = {"limit": round(limit_bytes), "unit": "bytes"}
        queue = BaseModel.model_copy(link.queue, update=counted)
    else:
        queue = link.queue.in_packets(round(limit_bytes / packet_bytes))
    return BaseModel.model_copy(link, update={"queue": queue})


def plain_reverse(link: Link) -> Link:
    """Returns the way back where none is given: rate, delay and queue limit, drop-tail, no loss."""
    return Link.model_construct(  # as it is: of a trace it has no rate, which the scenario refuses
        rate_mbps=link.rate_mbps,
        delay_ms=link.delay_ms,
        queue=Queue(limit=link.queue.limit, unit=link.queue.unit) if link.rate_mbps else Queue(),
    )


class Hop(Link):
    """A further bottleneck of a chain, from the senders' side to the receivers' side."""

    core_type = "Link"

    reverse: Annotated[Link | None, Outside("Scenario.links")] = None
    """Link from the receivers' side to the senders'. Null: as the hop, drop-tail, without loss."""


class Access(CheckedModel):
    """The links between a host and the bottleneck: the same at both ends, in both directions.

    With `wifi` the sender's only.
    """

    core_type = "Flow"

    rate_mbps: Annotated[RateMbps, Core("access_rate_bits_per_second")]
    delay_ms: Annotated[DelayMs, Core("access_delay")]
    """Each end, one way."""
    mtu_bytes: MtuBytes | None = None
    """Larger packets go as fragments. Null: none is too large."""
