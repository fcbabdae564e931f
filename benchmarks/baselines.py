"""The baselines: every scenario with every controller, the papers' tables and figures.

Into the output folder go runs.jsonl (one line per finished run), results.json, results.parquet
(one row per run), traces/ (the time series of the first seed) and figures/.
"""

from __future__ import annotations

import json
import platform
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

import pandas as pd

from quicgym import __version__, _core
from quicgym.benchmarks import figures, tables
from quicgym.benchmarks.runner import (
    RUNS_FILE,
    TRACES_FOLDER,
    Job,
    make_jobs,
    report_failures,
    run_jobs,
)
from quicgym.configs import PaperTables, load_tables
from quicgym.console import wide_console
from quicgym.envs import Scenario, ScenarioError, load_scenario, scenario_names
from quicgym.envs.scenario import EngineName
from quicgym.envs.simulation import NS3_REMEDY, check_engine, ns3_version

Format = Literal["table", "json", "csv"]
RESULTS = (RUNS_FILE, "results.json", "results.parquet", TRACES_FOLDER, "figures")


@dataclass(frozen=True)
class Request:
    """What the user asked for."""

    scenarios: Sequence[str]
    """Names or paths; empty: all that quicgym brings."""
    controllers: Sequence[str]
    """Empty: those of the paper's tables."""
    engine: str | None
    """None: native, and ns-3 for the cross-check rows of the tables."""
    seeds: int
    jobs: int
    format: Format
    directory: Path
    resume: bool
    command: str
    """The command line, to be kept with the results."""


def run_baselines(request: Request) -> int:
    """Runs, writes and prints everything; returns the exit status."""
    paper = load_tables("ebcc")
    engine = check_engine(request.engine or "native")
    jobs = _jobs(request, engine, paper)
    try:
        _prepare(request)
    except OSError as error:
        _say(
            f"quicgym: {request.directory}: cannot be written to ({error.strerror}); "
            "give another folder with --out"
        )
        return 2
    outcome = run_jobs(jobs, request.directory, request.jobs, resume=request.resume)
    report_failures(outcome.failures)
    if outcome.interrupted:
        again = request.command if request.resume else f"{request.command} --resume"
        print(
            f"interrupted: {len(outcome.finished)} of {len(jobs)} runs are kept in "
            f"{request.directory}; continue with\n  {again}",
            file=sys.stderr,
        )
        return 130
    runs = [outcome.finished[job.key] for job in jobs if job.key in outcome.finished]
    if runs:
        _write(request, runs)
        files = figures.draw_all(jobs, runs, paper, engine, request.directory / "figures")
        _print(request, runs, paper, engine)
        _say(
            f"{len(runs)} runs (results.json, results.parquet) and {len(files)} pictures (figures) "
            f"are in {request.directory}"
        )
    return 1 if outcome.failures else 0


def _say(text: str) -> None:
    print(text, file=sys.stderr)


def _jobs(request: Request, engine: EngineName, paper: PaperTables) -> list[Job]:
    names = request.scenarios or scenario_names()
    scenarios = [load_scenario(name) for name in dict.fromkeys(names)]
    _check_names(scenarios)
    chosen = list(dict.fromkeys(request.controllers)) or list(paper.controllers)
    traces = request.directory / TRACES_FOLDER
    jobs = make_jobs(scenarios, chosen, engine, request.seeds, traces)
    if request.engine is None and not request.scenarios:
        jobs += _cross_check(request, chosen, paper)
    return jobs


def _check_names(scenarios: Sequence[Scenario]) -> None:
    names = [scenario.name for scenario in scenarios]
    for name in names:
        if names.count(name) > 1:
            raise ScenarioError(
                f"two of the scenarios have the name {name!r}; change `name` in one of the files"
            )


def _cross_check(request: Request, chosen: Sequence[str], paper: PaperTables) -> list[Job]:
    """One row of each table on ns-3, with the same seeds: it should equal ours."""
    if ns3_version() is None:
        _say(
            "note: this quicgym was built without the ns-3 host, so the tables' ns-3 cross-check "
            f"rows are left out; to have them, {NS3_REMEDY}"
        )
        return []
    names = dict.fromkeys(table.cross_check for table in paper.tables)
    return make_jobs([load_scenario(name) for name in names], chosen, "ns3", request.seeds)


def _prepare(request: Request) -> None:
    """Moves results of an earlier run into previous-<time>/, unless they are to be resumed."""
    directory = request.directory
    directory.mkdir(parents=True, exist_ok=True)
    there = [directory / name for name in RESULTS if (directory / name).exists()]
    if request.resume or not there:
        return
    previous = directory / datetime.now().strftime("previous-%Y%m%d-%H%M%S-%f")
    previous.mkdir()
    for path in there:
        path.rename(previous / path.name)
    _say(f"earlier results are now in {previous}")


def _write(request: Request, runs: Sequence[dict[str, Any]]) -> None:
    about = {
        "version": __version__,
        "command": request.command,
        "commit": _core.commit,
        "ns3_version": ns3_version(),
        "python": platform.python_version(),
        "seeds": list(range(request.seeds)),
    }
    text = json.dumps({**about, "runs": runs}, indent=1, allow_nan=False)
    (request.directory / "results.json").write_text(text + "\n", encoding="utf-8")
    frame = pd.DataFrame(runs)
    frame.attrs.update(about)
    frame.to_parquet(request.directory / "results.parquet")


def _print(
    request: Request, runs: Sequence[dict[str, Any]], paper: PaperTables, engine: str
) -> None:
    if request.format == "json":
        document = {"version": __version__, "command": request.command, "runs": runs}
        print(json.dumps(document, indent=1, allow_nan=False))
        return
    if request.format == "csv":
        print(pd.DataFrame(runs).drop(columns="flows").to_csv(index=False), end="")
        return
    console = wide_console()
    seeds = f"mean±standard deviation over {request.seeds} seeds" if request.seeds > 1 else "seed 0"
    console.print(f"{seeds}\n", highlight=False)
    for table in tables.measurement_tables(runs, paper.controllers):
        console.print(table, "")
    papers_tables = [tables.paper_table(table, paper, runs, engine) for table in paper.tables]
    if any(papers_tables):
        console.print(f"{paper.paper}\n", highlight=False)
    for shown in papers_tables:
        if shown is not None:
            console.print(shown, "")
