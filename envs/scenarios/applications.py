"""What a flow's application writes, and when."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from quicgym.envs.scenarios.fields import CheckedModel, Core, DurationS, PositiveInteger, RateMbps
from quicgym.validation import problem


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
    rate_mbps: RateMbps
    burst_rate_mbps: RateMbps
    """Added to `rate_mbps` during a burst."""
    burst_duration_s: DurationS
    burst_period_s: DurationS
    """From the start of a burst to the start of the next."""
    burst_count: PositiveInteger

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


Application = Annotated[
    Bulk | Transfer | ConstantRate | Bursts | OnOff,
    Field(
        discriminator="kind",
        description="a mapping with the kind bulk, transfer, constant-rate, bursts or on-off",
    ),
]
