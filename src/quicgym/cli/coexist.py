"""`quicgym coexist`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from quicgym.benchmarks import options
from quicgym.plot_style import FigureFormat

EXAMPLES = (
    "quicgym coexist bbr3",
    "quicgym coexist bbr3 --beside cubic --rates 50 --rtts 40 --queues 1 --counts 1 2 4",
    "quicgym coexist runs/ppo --beside cubic bbr3 --queues 0.5 1 4 --rtts 20 80",
    "quicgym coexist baselines --counts 4 --from-s 40 --format csv > shares.csv",
    "quicgym coexist bbr --engine ns3 --counts 1 --seeds 1",
)


def coexist(
    subject: Annotated[
        list[str],
        typer.Argument(
            metavar="SUBJECT...",
            autocompletion=options.complete_policies,
            help="Who to measure: a controller, also with parameters (ebcc:gamma=60), a published "
            "policy, a policy's JSON, a training run's folder, an object of a Python file "
            "(agent.py:policy, which runs the file), or `baselines` for all controllers. You may "
            "give it a name (mine=runs/ppo).",
        ),
    ],
    beside: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            autocompletion=options.complete_controllers,
            help="Controllers of the competing flows.  [default: cubic]",
        ),
    ] = None,
    counts: Annotated[
        list[int] | None,
        typer.Option(min=1, metavar="N", help="Numbers of competing flows.  [default: 1 2 4]"),
    ] = None,
    queues: Annotated[
        list[float] | None,
        typer.Option(
            min=0.001,
            max=10_000,
            metavar="BDP",
            help="Queue limits, in bandwidth-delay products.  [default: 1]",
        ),
    ] = None,
    rtts: Annotated[
        list[float] | None,
        typer.Option(
            min=0.001, max=120_000, metavar="MS", help="RTTs without a queue, in ms.  [default: 40]"
        ),
    ] = None,
    rates: Annotated[
        list[float] | None,
        typer.Option(
            min=0.001,
            max=100_000,
            metavar="MBPS",
            help="Rates of the bottleneck, in Mbps.  [default: 50]",
        ),
    ] = None,
    discipline: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Queue disciplines, such as drop-tail or codel.  [default: drop-tail fq-codel]",
        ),
    ] = None,
    duration_s: Annotated[
        float,
        typer.Option(
            min=18,
            metavar="S",
            help="Simulated seconds of each run. The subject arrives after a sixth of them.",
        ),
    ] = 60.0,
    engine: Annotated[str, typer.Option(metavar="native|ns3")] = "native",
    seeds: options.Seeds = 5,
    from_s: Annotated[
        float | None,
        typer.Option(
            "--from-s",
            min=0,
            metavar="S",
            help="Measure shares, rates and delays from this second on. Default: from the "
            "subject's arrival.",
        ),
    ] = None,
    until_s: options.Until = None,
    jobs: options.Jobs = None,
    format: options.Format = options.ResultFormat.table,
    out: options.Out = Path("results/coexist"),
    figures: Annotated[
        FigureFormat,
        typer.Option(help="Write the figure in this format. A PDF is always written, too."),
    ] = FigureFormat.png,
    resume: options.Resume = False,
    trust_zip: options.TrustZip = False,
) -> None:
    """Measure how a controller or policy shares a bottleneck with others.

    On a grid of networks you get the share of the fair share, convergence, the harm to competing
    flows, RTT unfairness, arrivals and departures, short flows, and adoption curves. For reference,
    each competing controller is also tested against itself. --counts, --queues, --rtts, --rates and
    --discipline span the grid; each takes one or more values.

    The table (coexist.json), a row for each flow of each run (coexist.parquet) and the figure are
    written to DIR. Results of an earlier run are moved to DIR/previous-<time>.
    docs/how-to/coexist.md has the formulas.
    """
    from quicgym.benchmarks.coexistence.run_coexistence import run_coexist
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
        engine=engine,
        workers=jobs or os.cpu_count() or 1,
        format=format.value,
        resume=resume,
        trust_zip=trust_zip,
        figure_format=figures.value,
        command=options.command_line(),
    )
    raise typer.Exit(status)
