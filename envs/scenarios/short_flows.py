"""Short flows: transfers that arrive as a Poisson process, each over a connection of its own."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StrictBool, ValidationInfo, field_validator, model_validator

from quicgym.envs.scenarios.fields import (
    INLINE,
    CheckedModel,
    DatagramBytes,
    DelayMs,
    HopNumber,
    MomentS,
    Name,
    Outside,
    PositiveInteger,
    RateMbps,
)
from quicgym.envs.scenarios.flows import Parameters, check_parameters, from_folder
from quicgym.envs.scenarios.links import Access
from quicgym.envs.scenarios.sizes import Sizes, check_sizes, mean_size_bytes, size_points
from quicgym.validation import problem


class ShortFlows(CheckedModel):
    """Transfers between one pair of hosts; each opens a connection, sends, and closes it."""

    core_type = "Flow"

    name: Annotated[Name | None, Outside("Scenario.named_short_flows")] = None
    """Default: short-flows-1, short-flows-2, …"""
    arrivals_per_s: Annotated[
        float | None,
        Field(strict=True, gt=0, le=1e6, description="a number above 0, at most 1000000"),
        Outside("to_core"),
    ] = None
    """The mean of a Poisson process."""
    load_mbps: Annotated[RateMbps | None, Outside("to_core")] = None
    """In place of arrivals_per_s: arrivals · mean size."""
    sizes: Annotated[Sizes, Outside("to_core")]
    controller: Annotated[str | None, Outside("resolve_controllers")] = None
    """Null: chosen by whoever runs the scenario."""
    parameters: Annotated[
        Parameters,
        Field(description="a number, or a list of numbers where the catalogue says so"),
        Outside("to_core, with the controller"),
    ] = {}
    start_s: MomentS = 0.0
    """No arrival before it."""
    stop_s: MomentS | None = None
    """No arrival from it on; transfers that have begun go on."""
    extra_delay_ms: DelayMs = 0.0
    """One way, at the senders' access link, in each direction."""
    first_hop: HopNumber = 1
    """Of a chain, where the flow enters; 1 is the bottleneck, 2 the chain's first entry."""
    last_hop: HopNumber | None = None
    """After which it leaves; null: the chain's end. Backward data goes from last to first."""
    access: Annotated[Access | None, INLINE] = None
    """Of the pair of hosts; null: the scenario's."""
    max_datagram_bytes: DatagramBytes | None = None
    """Null: the scenario's."""
    flow_control_window_bytes: PositiveInteger = 64 * 2**20
    """Of each connection and its stream alike; the default is out of the way."""
    ecn: StrictBool = False

    @property
    def arrivals_per_second(self) -> float:
        """The rate of arrivals, however it is given."""
        if self.arrivals_per_s is not None:
            return self.arrivals_per_s
        assert self.load_mbps is not None
        return self.load_mbps * 1e6 / 8 / mean_size_bytes(size_points(self.sizes))

    @field_validator("controller")
    @classmethod
    def _from_folder(cls, controller: str | None, info: ValidationInfo) -> str | None:
        return from_folder(controller, info)

    @model_validator(mode="after")
    def _consistent(self) -> ShortFlows:
        if (self.arrivals_per_s is None) == (self.load_mbps is None):
            raise problem(
                "arrivals_per_s", self.arrivals_per_s,
                "and load_mbps say the same thing" if self.load_mbps else "is missing",
                "give arrivals_per_s or load_mbps",
            )  # fmt: skip
        check_sizes("sizes", self.sizes)
        if self.stop_s is not None and self.stop_s <= self.start_s:
            raise problem(
                "stop_s", self.stop_s, f"is not after the start, {self.start_s:g} s",
                "make stop_s later or leave it out",
            )  # fmt: skip
        if self.controller is not None:
            check_parameters(self.controller, self.parameters, "controller", "parameters")
        elif self.parameters:
            raise problem(
                "parameters", dict(self.parameters), "belong to no controller",
                "name the controller",
            )  # fmt: skip
        return self
