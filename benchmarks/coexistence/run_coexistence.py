"""The command `quicgym coexist`: a grid of runs as one table, one figure and one Parquet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path as File
from typing import Any, Literal

import pandas as pd

from quicgym.agents.evaluation.evaluate import expand, number
from quicgym.agents.evaluation.jobs import PolicyChoice
from quicgym.benchmarks.coexistence.coexistence_figure import draw, in_words, varying
from quicgym.benchmarks.coexistence.coexistence_summary import CELL_METRICS, FACTORS, Results
from quicgym.benchmarks.coexistence.grid import Grid, Path
from quicgym.console import print_by_columns, wide_console
from quicgym.envs.simulation.controller_choice import find_controller
from quicgym.envs.simulation.simulation import check_engine
from quicgym.envs.simulation.window import Window
from quicgym.jobs import RUNS_FILE, Outcome
from quicgym.studies import Findings, Study, run_study

Format = Literal["table", "json", "csv"]
RESULTS = (RUNS_FILE, "coexist.json", "coexist.parquet", "figures")
FORMATS = {
    "convergence_s": ".1f",
    "arrival_convergence_s": ".1f",
    "departure_convergence_s": ".1f",
    "short_flows_completed_percent": ".1f",
    "fct_median_ms": ".0f",
    "fct_p99_ms": ".0f",
}
"""Formats of numbers in the table; others have two decimals."""


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
    for name in beside:
        find_controller(name)  # raises for a policy, which other flows cannot have
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
    study = Study(directory, RESULTS, command, workers, format, resume)

    def conclude(outcome: Outcome) -> Findings:
        results = Results(grid, jobs, outcome.finished)
        rows, curves = results.rows(), results.adoption()
        about = {
            **study.about(seeds),
            "engine": engine,
            "duration_s": duration_s,
            **grid.measured._asdict(),
            "fingerprints": {
                job.steering.shown: job.steering.fingerprint
                for job in every
                if isinstance(job.steering, PolicyChoice)
            },
        }
        formats = (figure_format, "pdf")
        figures = draw(results, rows, curves, seeds, directory / "figures", formats)
        return Findings(
            "coexist.json",
            about,
            {"cells": rows, "adoption": curves},
            f"{len(every)} runs ({RUNS_FILE}), their flows (coexist.parquet), the table and the "
            f"adoption curves (coexist.json) and {' and '.join(file.name for file in figures)} "
            "(figures)",
            print_table=_print,
            frame=pd.DataFrame(rows),
            tables={"coexist.parquet": pd.DataFrame(results.flows())},
        )

    return run_study(study, every, conclude)


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
        ["subject + others", *(entry.title.replace(" ", "\n", 1) for entry in CELL_METRICS)],
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
