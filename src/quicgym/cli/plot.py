"""`quicgym plot`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from quicgym.benchmarks import options
from quicgym.plot_style import FigureFormat

EXAMPLES = (
    "quicgym plot results/networks",
    "quicgym plot results/networks --scenario ebcc-flows-3 --figures pdf --out figures",
    "quicgym plot results/networks --animate cubic ebcc",
)


def plot(
    result: Annotated[
        Path,
        typer.Argument(
            metavar="RESULT",
            help="A folder that `quicgym baselines`, `papers` or `evaluate` has written.",
        ),
    ],
    scenario: options.Scenario = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Write the pictures to this folder.  [default: RESULT/plots]"
        ),
    ] = None,
    figures: options.Figures = FigureFormat.png,
    animate: Annotated[
        tuple[str, str] | None,
        typer.Option(
            metavar="A B",
            help="Instead of the pictures, write an animated GIF of two controllers or policies "
            "side by side on one scenario, the first of --scenario.",
        ),
    ] = None,
) -> None:
    """Draw the runs of a result.

    Begin with the overview, which has all scenarios. For each scenario you get a picture of goodput
    over queueing delay, with a point and an ellipse for each controller (1 standard deviation over
    the seeds).

    An evaluation also gives the episodes of all policies with its first seed: the throughput over
    the capacity, and below it the RTT. Runs that kept their time series (seed 0 of baselines and
    papers) give the receiving rate of each flow over the capacity, and below it the queueing delay
    with the drops.
    """
    from quicgym.benchmarks.plot import run_plot

    raise typer.Exit(
        run_plot(
            result,
            scenarios=scenario or (),
            directory=out,
            format=figures.value,
            animate=animate,
        )
    )
