"""`quicgym baselines`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from quicgym.cli.options import (
    ControllerOption,
    JobsOption,
    ResultFormat,
    ResumeOption,
    ScenarioOption,
    SeedsOption,
    command_line,
)

EXAMPLES = (
    "quicgym baselines",
    "quicgym baselines --scenario ebcc-single --controller bbr ebcc",
    "quicgym baselines --scenario my-network.yaml --seeds 20 --out results/mine",
    "quicgym baselines --engine ns3 --format json > results.json",
)


def baselines(
    scenario: ScenarioOption = None,
    controller: ControllerOption = None,
    engine: Annotated[
        str | None,
        typer.Option(
            metavar="native|ns3",
            help="Default: native, and one ns-3 row per table when no scenario is named.",
        ),
    ] = None,
    seeds: SeedsOption = 5,
    jobs: JobsOption = None,
    format: Annotated[
        ResultFormat, typer.Option(help="What is printed on standard output.")
    ] = ResultFormat.table,
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="Where results and figures are written.")
    ] = Path("results/baselines"),
    resume: ResumeOption = False,
) -> None:
    """Run the papers' experiments; print their tables with our values beside the printed ones.

    Without --scenario these are the eBCC paper's, with a line for the same networks as the QUIC
    module for ns-3 behaves, which the paper used (docs/reproduction.md). Each runs with NewReno,
    CUBIC, BBR and eBCC unless --controller says otherwise. Results (runs.jsonl, results.json,
    results.parquet), the time series of seed 0 and the figures go to DIR; results of an earlier
    run are moved to DIR/previous-<time>.
    """
    from quicgym.benchmarks.baselines import run_baselines

    status = run_baselines(
        scenarios=scenario or (),
        controllers=controller or (),
        engine=engine,
        seeds=seeds,
        workers=jobs or os.cpu_count() or 1,
        format=format.value,
        directory=out,
        resume=resume,
        command=command_line(),
    )
    raise typer.Exit(status)
