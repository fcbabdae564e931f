"""Models of applications: what a flow's application writes, and when."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, StrictBool, model_validator

from quicgym import _core
from quicgym.envs.scenarios.conversion import core_points
from quicgym.envs.scenarios.fields import (
    CheckedModel,
    Core,
    DurationS,
    MomentS,
    Name,
    Outside,
    PositiveInteger,
    RateMbps,
    RateOrZeroMbps,
)
from quicgym.envs.scenarios.sizes import Sizes, check_sizes
from quicgym.validation import problem
from quicgym.yaml_files import closest

RequestBytes = Annotated[
    int, Field(strict=True, ge=8, le=1000, description="a whole number of bytes, 8 to 1000")
]


class Bulk(CheckedModel):
    """Always has data to send."""

    core_type = "Application"

    kind: Literal["bulk"] = "bulk"


class Transfer(CheckedModel):
    """Sends a file and stops."""

    core_type = "Application"

    kind: Literal["transfer"] = "transfer"
    size_bytes: PositiveInteger


class ConstantRate(CheckedModel):
    """Writes stream bytes at a constant rate."""

    core_type = "Application"

    kind: Literal["constant-rate"] = "constant-rate"
    rate_mbps: RateMbps


class Bursts(CheckedModel):
    """A constant rate, with bursts on top of it."""

    core_type = "Application"

    kind: Literal["bursts"] = "bursts"
    rate_mbps: RateOrZeroMbps
    """0: nothing between the bursts."""
    burst_rate_mbps: RateMbps
    """Added to `rate_mbps` during a burst."""
    burst_duration_s: DurationS
    burst_period_s: DurationS
    """Time from the start of a burst to the start of the next."""
    burst_count: PositiveInteger
    burst_own_stream: StrictBool = False
    """The bursts go over a second stream of the connection, and goodput counts the first alone.

    New data of the two streams takes turns, a packet each.
    """

    @model_validator(mode="after")
    def _bursts_do_not_overlap(self) -> Bursts:
        if self.burst_duration_s > self.burst_period_s:
            raise problem(
                "burst_duration_s", self.burst_duration_s,
                f"bursts overlap: one starts every {self.burst_period_s:g} s",
                "make burst_duration_s at most burst_period_s",
            )  # fmt: skip
        return self


class OnOff(CheckedModel):
    """A constant rate that is switched on and off."""

    core_type = "Application"

    kind: Literal["on-off"] = "on-off"
    rate_mbps: RateMbps
    on_s: Annotated[DurationS, Core("on_duration")]
    off_s: Annotated[DurationS, Core("off_duration")]


class RequestResponse(CheckedModel):
    """The receiver asks, reads the response, thinks, and asks again."""

    core_type = "Application"

    kind: Literal["request-response"] = "request-response"
    responses: Annotated[Sizes, Core("response_sizes", core_points)]
    """Their sizes, as of short flows."""
    think_s: Annotated[MomentS, Core("think_time")] = 0.0
    """Time from a response's last byte to the next request."""
    request_bytes: RequestBytes = 200

    @model_validator(mode="after")
    def _is_a_distribution(self) -> RequestResponse:
        check_sizes("responses", self.responses)
        return self


class PageObject(CheckedModel):
    """An object of a web page."""

    name: Annotated[Name, Outside("WebPage")]
    size_bytes: PositiveInteger
    after: Annotated[tuple[str, ...], Outside("WebPage")] = ()
    """Objects, listed before this one, that must be there before it is asked for."""


def core_objects(objects: tuple[PageObject, ...]) -> list[_core.PageObject]:
    """Returns a page's objects as the engines read them: `after` by number."""
    numbers = {entry.name: number for number, entry in enumerate(objects)}
    converted = []
    for entry in objects:
        core = _core.PageObject()
        core.size_bytes = entry.size_bytes
        core.after = sorted({numbers[name] for name in entry.after})
        converted.append(core)
    return converted


class WebPage(CheckedModel):
    """The receiver asks for the objects of a page, each as soon as it knows of it."""

    core_type = "Application"

    kind: Literal["web-page"] = "web-page"
    objects: Annotated[
        tuple[PageObject, ...],
        Field(min_length=1, description="a list of objects with name, size_bytes and after"),
        Core("objects", core_objects),
    ]
    request_bytes: RequestBytes = 200

    @model_validator(mode="after")
    def _objects_come_after_known_ones(self) -> WebPage:
        known: list[str] = []
        for index, entry in enumerate(self.objects):
            for name in entry.after:
                if name not in known:
                    raise problem(
                        f"objects.{index}.after", name, "is not listed before this object",
                        closest(name, known) if known else "leave it out for the first object",
                    )  # fmt: skip
            if entry.name in known:
                raise problem(
                    f"objects.{index}.name", entry.name, "is the name of two objects",
                    "give each its own name",
                )  # fmt: skip
            known.append(entry.name)
        return self


def _ascending(rates: tuple[float, ...]) -> tuple[float, ...]:
    for index, (below, above) in enumerate(zip(rates, rates[1:], strict=False), 1):
        if above <= below:
            raise problem(
                str(index), above, f"is not above {below:g}, the rate before it",
                "list the rates in ascending order",
            )  # fmt: skip
    return rates


RatesMbps = Annotated[
    tuple[RateMbps, ...],
    Field(min_length=1, description="a list of rates in Mbps, ascending"),
    AfterValidator(_ascending),
    Core("rates_bits_per_second", lambda rates: [round(rate * 1e6) for rate in rates]),
]


class Video(CheckedModel):
    """A buffer-based player of video in chunks: BBA-0 of Huang et al., SIGCOMM 2014."""

    core_type = "Application"

    kind: Literal["video"] = "video"
    rates_mbps: RatesMbps
    chunk_s: Annotated[DurationS, Core("chunk_duration")] = 4.0
    reservoir_s: MomentS = 90.0
    """With less in the buffer the player takes the lowest rate."""
    cushion_s: DurationS = 126.0
    """Part of the buffer above the reservoir, over which the rate rises to the highest one."""
    max_buffer_s: DurationS = 240.0
    """With no room for another chunk the player waits."""
    request_bytes: RequestBytes = 200

    @model_validator(mode="after")
    def _consistent(self) -> Video:
        if self.max_buffer_s < max(self.reservoir_s + self.cushion_s, 2 * self.chunk_s):
            raise problem(
                "max_buffer_s", self.max_buffer_s,
                "holds less than reservoir_s + cushion_s, or than two chunks",
                "make max_buffer_s larger, or the others smaller",
            )  # fmt: skip
        return self


class RealTimeMedia(CheckedModel):
    """A call: 30 frames per second, whose encoder follows the controller's rate."""

    core_type = "Application"

    kind: Literal["real-time-media"] = "real-time-media"
    rates_mbps: RatesMbps
    """The ladder of bit rates that the encoder chooses from."""


Application = Annotated[
    Bulk
    | Transfer
    | ConstantRate
    | Bursts
    | OnOff
    | RequestResponse
    | WebPage
    | Video
    | RealTimeMedia,
    Field(
        discriminator="kind",
        description="a mapping with the kind bulk, transfer, constant-rate, bursts, on-off, "
        "request-response, web-page, video or real-time-media",
    ),
]
