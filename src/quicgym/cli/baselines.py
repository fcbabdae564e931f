"""`quicgym baselines`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from quicgym.cli import options
from quicgym.plot_style import FigureFormat

EXAMPLES = (
    "quicgym baselines",
    "quicgym baselines --scenario ebcc-single --controller bbr ebcc:gamma=3 mine.py:Aimd",
    "quicgym baselines --scenario ebcc-single --variations",
    "quicgym baselines --scenario my-network.yaml --seeds 20 --out results/mine",
    "quicgym baselines --engine ns3 --format json > results.json",
    "quicgym baselines --scenario ebcc-single --qlog results/qlog --log-every 10",
)


def baselines(
    scenario: options.Scenario = None,
    controller: options.Controller = None,
    engine: Annotated[
        str | None,
        typer.Option(
            metavar="native|ns3",
            help="Default: native, and one ns-3 row per table when no scenario is named.",
        ),
    ] = None,
    seeds: options.Seeds = 5,
    variations: Annotated[
        bool,
        typer.Option(
            "--variations",
            help="Also run the eBCC paper's scenarios as the QUIC module for ns-3 behaves, which "
            "the paper used. Results mark these runs in the column variation.",
        ),
    ] = False,
    from_s: options.From = None,
    until_s: options.Until = None,
    jobs: options.Jobs = None,
    format: options.Format = options.ResultFormat.table,
    out: options.Out = Path("results/baselines"),
    figures: options.Figures = FigureFormat.png,
    qlog: options.Qlog = None,
    pcap: options.Pcap = None,
    log_every: options.LogEvery = 1,
    log_limit_mb: options.LogLimit = 100,
    resume: options.Resume = False,
    verbose: Annotated[
        bool,
        typer.Option(
            "--verbose",
            help="Print every metric of every scenario after the papers' tables. With --scenario "
            "this is the default.",
        ),
    ] = False,
) -> None:
    """Run the papers' experiments; print their tables with our values beside the printed ones.

    Without --scenario these are the eBCC paper's. Each runs with NewReno, CUBIC, BBR and eBCC
    unless --controller says otherwise. A line under each table says how many rows have the printed
    order, which cell is farthest from the print, and what became of the paper's claims. Results
    (runs.jsonl, results.json, results.parquet), the time series of seed 0 and the figures go to
    DIR; results of an earlier run are moved to DIR/previous-<time>. With --variations each table
    has a line for the QUIC module that the paper used (docs/reports/reproduction.md).
    """
    from quicgym.benchmarks.baselines import run_baselines
    from quicgym.envs.simulation.packet_logs import PacketLogs
    from quicgym.envs.simulation.window import Window

    status = run_baselines(
        scenarios=scenario or (),
        controllers=controller or (),
        engine=engine,
        seeds=seeds,
        variations=variations,
        window=Window(from_s, until_s),
        workers=jobs or os.cpu_count() or 1,
        format=format.value,
        directory=out,
        resume=resume,
        verbose=verbose,
        figure_format=figures.value,
        qlog=None if qlog is None else PacketLogs(qlog, log_every, log_limit_mb),
        pcap=None if pcap is None else PacketLogs(pcap, log_every, log_limit_mb),
        command=options.command_line(),
    )
    raise typer.Exit(status)
