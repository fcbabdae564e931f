"""`quicgym coexist`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from quicgym.cli import options
from quicgym.plot_style import FigureFormat

EXAMPLES = (
    "quicgym coexist bbr3",
    "quicgym coexist bbr3 --beside cubic --rates 50 --rtts 40 --queues 1 --counts 1 2 4",
    "quicgym coexist runs/ppo --beside cubic bbr3 --queues 0.5 1 4 --rtts 20 80",
    "quicgym coexist baselines --counts 4 --from-s 40 --format csv > shares.csv",
)


def coexist(
    subject: Annotated[
        list[str],
        typer.Argument(
            metavar="SUBJECT...",
            autocompletion=options.complete_policies,
            help="A controller, one with parameters (ebcc:gamma=60), a published policy, a "
            "policy's JSON, a training run's folder, an object of a Python file "
            "(agent.py:policy; runs the file), or baselines: all controllers; an alias may "
            "precede it (mine=runs/ppo); one or more.",
        ),
    ],
    beside: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            autocompletion=options.complete_controllers,
            help="Controllers of the flows beside; one or more.  [default: cubic]",
        ),
    ] = None,
    counts: Annotated[
        list[int] | None,
        typer.Option(
            min=1, metavar="N", help="Numbers of flows beside; one or more.  [default: 1 2 4]"
        ),
    ] = None,
    queues: Annotated[
        list[float] | None,
        typer.Option(metavar="BDP", help="Queue limits in BDP; one or more.  [default: 1]"),
    ] = None,
    rtts: Annotated[
        list[float] | None,
        typer.Option(metavar="MS", help="Base RTTs in ms; one or more.  [default: 40]"),
    ] = None,
    rates: Annotated[
        list[float] | None,
        typer.Option(metavar="MBPS", help="Rates in Mbps; one or more.  [default: 50]"),
    ] = None,
    discipline: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Queue disciplines, such as drop-tail, codel; one or more.  [default: drop-tail "
            "fq-codel]",
        ),
    ] = None,
    duration_s: Annotated[
        float,
        typer.Option(
            min=18, metavar="S", help="Of each run; the subject arrives after a sixth of it."
        ),
    ] = 60.0,
    seeds: options.Seeds = 5,
    from_s: Annotated[
        float | None,
        typer.Option(
            "--from-s",
            min=0,
            metavar="S",
            help="Measure shares, rates and delays from here. Default: the subject's arrival.",
        ),
    ] = None,
    until_s: options.Until = None,
    jobs: options.Jobs = None,
    format: options.Format = options.ResultFormat.table,
    out: options.Out = Path("results/coexist"),
    figures: Annotated[
        FigureFormat, typer.Option(help="Of the figure's file, which is written as PDF, too.")
    ] = FigureFormat.png,
    resume: options.Resume = False,
    trust_zip: options.TrustZip = False,
) -> None:
    """Measure how a controller or policy shares a bottleneck with others.

    On each path of a grid: shares of the fair share, convergence, harm to the flows beside, RTT
    unfairness, arrivals and departures, short flows, and adoption curves. The controllers beside
    are subjects, too, for comparison. The table (coexist.json), a row for each flow of each run
    (coexist.parquet) and the figure go to DIR; results of an earlier run are moved to
    DIR/previous-<time>. docs/how-to/coexist.md has the formulas.
    """
    from quicgym.benchmarks.coexistence.run import run_coexist
    from quicgym.envs.simulation.window import Window

    status = run_coexist(
        subjects=subject,
        beside=beside or ["cubic"],
        counts=counts or [1, 2, 4],
        queues=queues or [1.0],
        rtts=rtts or [40.0],
        rates=rates or [50.0],
        disciplines=discipline or ["drop-tail", "fq-codel"],
        directory=out,
        duration_s=duration_s,
        seeds=seeds,
        window=Window(from_s, until_s),
        workers=jobs or os.cpu_count() or 1,
        format=format.value,
        resume=resume,
        trust_zip=trust_zip,
        figure_format=figures.value,
        command=options.command_line(),
    )
    raise typer.Exit(status)
