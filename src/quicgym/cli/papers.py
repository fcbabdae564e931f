"""`quicgym papers`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from quicgym.benchmarks import options
from quicgym.plot_style import FigureFormat

EXAMPLES = (
    "quicgym papers",
    "quicgym papers --paper ebcc --variations",
    "quicgym papers --paper ebcc --format html --out results/ebcc",
    "quicgym papers --without-ns3 --seeds 10",
    "quicgym papers --paper my-paper.yaml",
    "quicgym papers --address 10.0.0.1:6379",
)


def papers(
    paper: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            autocompletion=options.complete_configs("papers"),
            help=f"Run only these papers: {options.config_names('papers')}, or a YAML file of "
            "that form. Default: all.",
        ),
    ] = None,
    seeds: options.Seeds = 5,
    from_s: options.From = None,
    until_s: options.Until = None,
    jobs: options.Jobs = None,
    format: Annotated[
        options.ReportFormat,
        typer.Option(
            help="Print tables or JSON, or write DIR/papers.html, a single file for a browser."
        ),
    ] = options.ReportFormat.table,
    out: options.Out = Path("results/papers"),
    figures: options.Figures = FigureFormat.png,
    resume: options.Resume = False,
    address: options.Address = None,
    without_ns3: Annotated[
        bool,
        typer.Option(
            "--without-ns3",
            help="Skip the experiments that need ns-3 (wireless LAN, TCP), which take hours.",
        ),
    ] = False,
    variations: Annotated[
        bool,
        typer.Option(
            "--variations",
            help="Also run the eBCC paper's networks with the deviations from the RFCs of the QUIC "
            "module for ns-3 that the paper measured. Tables show these runs in the lines module, "
            "range and mean.",
        ),
    ] = False,
) -> None:
    """Run every table, figure and claim of the papers, and give a verdict on each claim.

    The tables show our value, the printed one and their ratio below one another. The verdict on a
    claim (holds, holds in part, does not hold, undecided) is computed from our runs;
    docs/reports/reproduction.md has the rule.
    """
    from quicgym.benchmarks.papers.run_papers import run_papers
    from quicgym.envs.simulation.window import Window
    from quicgym.jobs import workers_of

    status = run_papers(
        papers=list(dict.fromkeys(paper or ())),
        seeds=seeds,
        window=Window(from_s, until_s),
        workers=workers_of(jobs, address),
        format=format.value,
        directory=out,
        resume=resume,
        without_ns3=without_ns3,
        variations=variations,
        figure_format=figures.value,
        command=options.command_line(),
    )
    raise typer.Exit(status)
