"""Distributions of sizes: a number, a table, or one of the literature."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from quicgym.envs.scenarios.fields import CheckedModel, PositiveInteger, Probability
from quicgym.validation import problem


class SizeRow(CheckedModel):
    """A point of a distribution of sizes."""

    core_type = "SizePoint"

    size_bytes: Annotated[int, Field(strict=True, ge=0, le=2**53, description="a whole number")]
    cumulative_probability: Probability


def _rows(*points: tuple[int, float]) -> tuple[SizeRow, ...]:
    return tuple(
        SizeRow(size_bytes=size_bytes, cumulative_probability=probability)
        for size_bytes, probability in points
    )


SIZE_DISTRIBUTIONS = {
    # Alizadeh et al., "Data Center TCP (DCTCP)", SIGCOMM 2010.
    "web-search": _rows(
        (0, 0), (10_000, 0.15), (20_000, 0.2), (30_000, 0.3), (50_000, 0.4), (80_000, 0.53),
        (200_000, 0.6), (1_000_000, 0.7), (2_000_000, 0.8), (5_000_000, 0.9), (10_000_000, 0.97),
        (30_000_000, 1),
    ),
    # Greenberg et al., "VL2: A Scalable and Flexible Data Center Network", SIGCOMM 2009.
    "data-mining": _rows(
        (0, 0), (180, 0.1), (216, 0.2), (560, 0.3), (900, 0.4), (1100, 0.5), (1870, 0.6),
        (3160, 0.7), (10_000, 0.8), (400_000, 0.9), (3_160_000, 0.95), (100_000_000, 0.98),
        (1_000_000_000, 1),
    ),
}  # fmt: skip
"""Distributions by name. Both papers print curves; the points are what Bai et al. read from them
(github.com/HKUST-SING/TrafficGenerator, conf/DCTCP_CDF.txt and VL2_CDF.txt)."""


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


GivenSizes = int | str | tuple[SizeRow, ...]


def size_points(sizes: GivenSizes) -> tuple[SizeRow, ...]:
    """Returns the points of a distribution, however it is given."""
    if isinstance(sizes, int):
        return _rows((sizes, 1))
    return SIZE_DISTRIBUTIONS[sizes] if isinstance(sizes, str) else sizes


def mean_size_bytes(points: tuple[SizeRow, ...]) -> float:
    """Returns the mean of a distribution that is uniform between its points."""
    first = points[0]
    mean = first.size_bytes * first.cumulative_probability
    for below, above in zip(points, points[1:], strict=False):
        weight = above.cumulative_probability - below.cumulative_probability
        mean += weight * (below.size_bytes + above.size_bytes) / 2
    return mean


def check_sizes(field: str, sizes: GivenSizes) -> None:
    """Raises a validation error, naming the field, for a table that is no distribution."""
    points = size_points(sizes)
    if points[-1].cumulative_probability != 1 or points[-1].size_bytes < 1:
        raise problem(
            f"{field}.{len(points) - 1}", _shown(points[-1]), "is not the end of a distribution",
            "give the largest size, at least 1, the cumulative_probability 1",
        )  # fmt: skip
    for index, (below, above) in enumerate(zip(points, points[1:], strict=False), 1):
        falls = above.size_bytes < below.size_bytes
        if falls or above.cumulative_probability <= below.cumulative_probability:
            raise problem(
                f"{field}.{index}", _shown(above), "is not above the row before it",
                "give rows in which size_bytes does not fall and cumulative_probability rises",
            )  # fmt: skip


def _shown(row: SizeRow) -> tuple[int, float]:
    return row.size_bytes, row.cumulative_probability
