"""Short flows: transfers that arrive as a Poisson process, each over a connection of its own."""

from __future__ import annotations

from typing import Annotated, Literal, NamedTuple

from pydantic import Field, StrictBool, model_validator

from quicgym.envs.scenarios.fields import (
    INLINE,
    CheckedModel,
    DatagramBytes,
    DelayMs,
    MomentS,
    Name,
    Outside,
    PositiveInteger,
    Probability,
    RateMbps,
)
from quicgym.envs.scenarios.flows import Parameters, check_parameters
from quicgym.envs.scenarios.links import Access
from quicgym.validation import problem


class SizePoint(NamedTuple):
    """A point of a distribution of sizes."""

    size_bytes: int
    cumulative_probability: float


def _points(*points: tuple[int, float]) -> tuple[SizePoint, ...]:
    return tuple(SizePoint(*point) for point in points)


SIZE_DISTRIBUTIONS = {
    # Alizadeh et al., "Data Center TCP (DCTCP)", SIGCOMM 2010.
    "web-search": _points(
        (0, 0), (10_000, 0.15), (20_000, 0.2), (30_000, 0.3), (50_000, 0.4), (80_000, 0.53),
        (200_000, 0.6), (1_000_000, 0.7), (2_000_000, 0.8), (5_000_000, 0.9), (10_000_000, 0.97),
        (30_000_000, 1),
    ),
    # Greenberg et al., "VL2: A Scalable and Flexible Data Center Network", SIGCOMM 2009.
    "data-mining": _points(
        (0, 0), (180, 0.1), (216, 0.2), (560, 0.3), (900, 0.4), (1100, 0.5), (1870, 0.6),
        (3160, 0.7), (10_000, 0.8), (400_000, 0.9), (3_160_000, 0.95), (100_000_000, 0.98),
        (1_000_000_000, 1),
    ),
}  # fmt: skip
"""By name. Both papers print curves; the points are those that Bai et al. read from them
(github.com/HKUST-SING/TrafficGenerator, conf/DCTCP_CDF.txt and VL2_CDF.txt)."""


class SizeRow(CheckedModel):
    """A row of a table of sizes."""

    core_type = "SizePoint"

    size_bytes: Annotated[int, Field(strict=True, ge=0, le=2**53, description="a whole number")]
    cumulative_probability: Probability


SizeTable = Annotated[
    tuple[SizeRow, ...],
    Field(min_length=1, description="a list of size_bytes with their cumulative_probability"),
]
Sizes = Annotated[
    PositiveInteger | Literal["web-search", "data-mining"] | SizeTable,
    Field(
        description="a number of bytes, web-search, data-mining, or a list of size_bytes with "
        "their cumulative_probability"
    ),
]


def size_points(sizes: int | str | tuple[SizeRow, ...]) -> tuple[SizePoint, ...]:
    """Returns the points of a distribution, however it is given."""
    if isinstance(sizes, int):
        return _points((sizes, 1))
    if isinstance(sizes, str):
        return SIZE_DISTRIBUTIONS[sizes]
    return tuple(SizePoint(row.size_bytes, row.cumulative_probability) for row in sizes)


def mean_size_bytes(points: tuple[SizePoint, ...]) -> float:
    """Returns the mean of a distribution that is uniform between its points."""
    first = points[0]
    mean = first.size_bytes * first.cumulative_probability
    for below, above in zip(points, points[1:], strict=False):
        weight = above.cumulative_probability - below.cumulative_probability
        mean += weight * (below.size_bytes + above.size_bytes) / 2
    return mean


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
    access: Annotated[Access | None, INLINE] = None
    """Of the pair of hosts; null: the scenario's."""
    max_datagram_bytes: DatagramBytes | None = None
    """Null: the scenario's."""
    flow_control_window_bytes: PositiveInteger = 64 * 2**20
    """Of each connection and its stream alike; the default is out of the way."""
    ecn: StrictBool = False

    @property
    def points(self) -> tuple[SizePoint, ...]:
        """The distribution of sizes."""
        return size_points(self.sizes)

    @property
    def arrivals_per_second(self) -> float:
        """The rate of arrivals, however it is given."""
        if self.arrivals_per_s is not None:
            return self.arrivals_per_s
        assert self.load_mbps is not None
        return self.load_mbps * 1e6 / 8 / mean_size_bytes(self.points)

    @model_validator(mode="after")
    def _consistent(self) -> ShortFlows:
        if (self.arrivals_per_s is None) == (self.load_mbps is None):
            raise problem(
                "arrivals_per_s", self.arrivals_per_s,
                "and load_mbps say the same thing" if self.load_mbps else "is missing",
                "give arrivals_per_s or load_mbps",
            )  # fmt: skip
        self._check_table()
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

    def _check_table(self) -> None:
        points = self.points
        if points[-1].cumulative_probability != 1 or points[-1].size_bytes < 1:
            raise problem(
                f"sizes.{len(points) - 1}", tuple(points[-1]), "is not the end of a distribution",
                "give the largest size, at least 1, the cumulative_probability 1",
            )  # fmt: skip
        for index, (below, above) in enumerate(zip(points, points[1:], strict=False), 1):
            if above <= below or above.cumulative_probability <= below.cumulative_probability:
                raise problem(
                    f"sizes.{index}", tuple(above), "is not above the row before it",
                    "give rows in which size_bytes does not fall and cumulative_probability rises",
                )  # fmt: skip
