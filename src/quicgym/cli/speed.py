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
        SpeedFormat, typer.Option(help="What is printed on standard output.")
    ] = SpeedFormat.table,
) -> None:
    """Measure CPU nanoseconds per delivered packet of both engines and of a bare event loop."""
    from quicgym.benchmarks.speed import run_speed

    raise typer.Exit(run_speed(format.value))
