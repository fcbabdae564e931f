"""The command `quicgym coexist`: a grid of runs as one table, one figure and one Parquet."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path as File
from typing import Any, Literal

import pandas as pd

from quicgym import __version__, _core
from quicgym.agents.evaluation.evaluate import expand, number
from quicgym.agents.evaluation.jobs import PolicyChoice
from quicgym.benchmarks.coexistence.coexistence_figure import draw, in_words, varying
from quicgym.benchmarks.coexistence.coexistence_summary import CELL_METRICS, FACTORS, Results
from quicgym.benchmarks.coexistence.grid import Grid, Path
from quicgym.console import print_by_columns, say, wide_console
from quicgym.envs.simulation.simulation import check_engine
from quicgym.envs.simulation.window import Window
from quicgym.jobs import RUNS_FILE, report_outcome, run_jobs
from quicgym.output_folders import output_folder, write_atomically

Format = Literal["table", "json", "csv"]
RESULTS = (RUNS_FILE, "coexist.json", "coexist.parquet", "figures")
FORMATS = {
    "convergence_s": ".1f",
    "arrival_convergence_s": ".1f",
    "departure_convergence_s": ".1f",
    "fct_median_ms": ".0f",
    "fct_p99_ms": ".0f",
}
"""Of numbers in the table; others have two decimals."""


def run_coexist(
    *,
    subjects: Sequence[str],
    beside: Sequence[str],
    counts: Sequence[int],
    queues: Sequence[float],
    rtts: Sequence[float],
    rates: Sequence[float],
    disciplines: Sequence[str],
    directory: File,
    duration_s: float,
    seeds: int,
    window: Window,
    engine: str = "native",
    workers: int = 1,
    format: Format = "table",
    resume: bool = False,
    trust_zip: bool = False,
    figure_format: str = "png",
    command: str = "",
) -> int:
    """Runs, writes, draws and prints everything; returns the exit status.

    The arguments are the options of `quicgym coexist`. "baselines" among the subjects stands for
    all hand-coded controllers.

    Raises:
        ScenarioError: A controller, policy, path or window is not possible.
        PolicyError: A policy cannot be loaded.
        RunError: The directory cannot be written to.
    """
    every_path = product(rates, rtts, queues, disciplines)
    paths = list(dict.fromkeys(Path(*path) for path in every_path))
    grid = Grid(
        expand(subjects),
        list(dict.fromkeys(beside)),
        sorted(set(counts)),
        paths,
        duration_s,
        seeds,
        window,
        trust_zip,
        check_engine(engine),
    )
    jobs = grid.jobs()
    every = list({job.key: job for of_cell in jobs.values() for job in of_cell}.values())
    with output_folder(directory, RESULTS, resume=resume):
        outcome = run_jobs(every, directory, workers, resume=resume)
        if report_outcome(outcome, every, directory, command, resumed=resume):
            return 130
        results = Results(grid, jobs, outcome.finished)
        rows, curves = results.rows(), results.adoption()
        about = {
            "version": __version__,
            "commit": _core.commit,
            "command": command,
            "seeds": list(range(seeds)),
            "engine": engine,
            "duration_s": duration_s,
            **grid.measured._asdict(),
            "fingerprints": {
                job.steering.shown: job.steering.fingerprint
                for job in every
                if isinstance(job.steering, PolicyChoice)
            },
        }
        document = {**about, "cells": rows, "adoption": curves}
        text = json.dumps(document, indent=1, allow_nan=False) + "\n"
        flows = pd.DataFrame(results.flows())
        flows.attrs.update(about)
        write_atomically(
            {directory / "coexist.json": text, directory / "coexist.parquet": flows.to_parquet}
        )
        formats = (figure_format, "pdf")
        figures = draw(results, rows, curves, seeds, directory / "figures", formats)
    if format == "json":
        print(text, end="")
    elif format == "csv":
        print(pd.DataFrame(rows).to_csv(index=False), end="")
    else:
        _print(document)
    say(
        f"{len(every)} runs ({RUNS_FILE}), their flows (coexist.parquet), the table and the "
        f"adoption curves (coexist.json) and {' and '.join(file.name for file in figures)} "
        f"(figures) are in {directory}"
    )
    return 1 if outcome.failures else 0


def shown_value(row: Mapping[str, Any], name: str, seeds: int) -> str:
    """Returns a metric of a row as tables show it, with the seeds that have it where some lack."""
    text = number(row[name], FORMATS.get(name, ".2f"))
    there = row[f"{name}_seeds"]
    return text if there in (0, seeds) else f"{text} ({there}/{seeds})"


def _print(document: Mapping[str, Any]) -> None:
    rows, seeds = document["cells"], len(document["seeds"])
    names = varying(rows)
    fixed = in_words(rows[0], [name for name in FACTORS if name not in (*names, "subject")])
    until_s = document["until_s"] or document["duration_s"]
    of_seeds = "seed 0" if seeds == 1 else f"means over seeds 0 to {seeds - 1}"
    console = wide_console()
    console.print(
        ", ".join(filter(None, (fixed, of_seeds)))
        + f"; shares, rates and delays from {document['from_s']:g} s to {until_s:g} s\n",
        highlight=False,
    )
    print_by_columns(
        ["subject + flows beside", *(entry.title.replace(" ", "\n", 1) for entry in CELL_METRICS)],
        [
            [
                in_words(row, ["subject", *names]),
                *(shown_value(row, entry.name, seeds) for entry in CELL_METRICS),
            ]
            for row in rows
        ],
    )
    console.print(
        "\n(k/n): k of n seeds have a value; flows that do not converge have none. "
        "docs/how-to/coexist.md has the formulas",
        highlight=False,
    )
