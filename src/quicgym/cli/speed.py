"""`quicgym speed`."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

EXAMPLES = (
    "quicgym speed",
    "quicgym speed --format json",
)


class SpeedFormat(StrEnum):
    """How speed is printed."""

    table = "table"
    json = "json"


def speed(
    format: Annotated[
        SpeedFormat, typer.Option(help="Print the result in this form.")
    ] = SpeedFormat.table,
) -> None:
    """Measure how many CPU nanoseconds both engines and a bare event loop need for a packet."""
    from quicgym.benchmarks.speed import run_speed

    raise typer.Exit(run_speed(format.value))
