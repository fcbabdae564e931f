"""The baselines: every scenario with every controller, the papers' tables and figures.

Each run has the reward that agents earn, so that both are compared by one number. Into the output
folder go runs.jsonl (one line per finished run), results.json, results.parquet (one row per run),
traces/ (the time series of the first seed) and figures/.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import pandas as pd

from quicgym import __version__, _core
from quicgym.agents.evaluation.jobs import RunJob, with_packet_logs
from quicgym.benchmarks.papers import drawings, figures, tables
from quicgym.benchmarks.papers.measurements import Measurements
from quicgym.benchmarks.papers.model import Paper, TableRow, load_paper
from quicgym.benchmarks.papers.needs import scenarios_of
from quicgym.benchmarks.papers.table_verdicts import table_verdict
from quicgym.benchmarks.papers.variations import alternatives, comparable
from quicgym.benchmarks.simulations import TRACES_FOLDER, make_jobs
from quicgym.console import print_whole, say, wide_console
from quicgym.envs import Scenario, ScenarioError, load_scenario
from quicgym.envs.scenarios.engines import EngineName
from quicgym.envs.simulation.metrics import OF_RUNS
from quicgym.envs.simulation.packet_logs import PacketLogs
from quicgym.envs.simulation.simulation import NS3_REMEDY, check_engine, ns3_version
from quicgym.envs.simulation.window import WHOLE, Window
from quicgym.jobs import RUNS_FILE, report_outcome, run_jobs
from quicgym.output_folders import output_folder, write_atomically
from quicgym.plot_style import PLOTS_FOLDER

Format = Literal["table", "json", "csv"]
RESULTS = (
    RUNS_FILE, "results.json", "results.parquet", TRACES_FOLDER, "figures", PLOTS_FOLDER,
)  # fmt: skip


def run_baselines(
    *,
    directory: Path,
    scenarios: Sequence[str] = (),
    controllers: Sequence[str] = (),
    engine: str | None = None,
    seeds: int = 5,
    window: Window = WHOLE,
    variations: bool = False,
    workers: int = 1,
    format: Format = "table",
    resume: bool = False,
    verbose: bool = False,
    figure_format: str = "png",
    qlog: PacketLogs | None = None,
    pcap: PacketLogs | None = None,
    command: str = "",
) -> int:
    """Runs, writes and prints everything; returns the exit status.

    The arguments are the options of `quicgym baselines`. No scenario or controller means those of
    the eBCC paper. The engine None is native, and ns-3 for the cross-check rows of the tables.
    ScenarioError, Ns3MissingError or RunError says what cannot be run.
    """
    paper = load_paper("ebcc")
    known = check_engine(engine or "native")
    loaded = [load_scenario(name) for name in dict.fromkeys(scenarios or scenarios_of(paper))]
    _check_names(loaded)
    if controllers:
        _check_controllers_are_used(loaded)
    chosen = list(dict.fromkeys(controllers)) or list(paper.algorithms)
    jobs = make_jobs(loaded, chosen, known, seeds, directory / TRACES_FOLDER, window=window)
    own = {job.scenario.name for job in jobs}
    if engine is None and not scenarios:
        jobs += _cross_check(paper, chosen, seeds, window)
    jobs = with_packet_logs(jobs, qlog, pcap)
    varied = _varied(paper, loaded, chosen, known, seeds, window) if variations else {}
    jobs += [job for of_variation in varied.values() for job in of_variation]
    variation_of = {job.key: name for name, of_name in varied.items() for job in of_name}
    with output_folder(directory, RESULTS, resume=resume):
        outcome = run_jobs(jobs, directory, workers, resume=resume)
        if report_outcome(outcome, jobs, directory, command, resumed=resume):
            return 130
        runs = [
            {**outcome.finished[job.key], "variation": variation_of.get(job.key)}
            for job in jobs
            if job.key in outcome.finished
        ]
        if runs:
            _write(directory, runs, seeds, command)
            measured = Measurements(jobs, outcome.finished)
            files = _draw(jobs, measured, paper, known, directory / "figures", figure_format)
            if format == "json":
                document = {"version": __version__, "command": command, "runs": runs}
                print(json.dumps(document, indent=1, allow_nan=False))
            elif format == "csv":
                print(pd.DataFrame(_flow_rows(runs)).to_csv(index=False), end="")
            else:
                _print_papers_tables(measured, paper, known, seeds, variations=variations)
                if verbose or scenarios:
                    _print_measurements([run for run in runs if run["scenario"] in own], paper)
                else:
                    say("every metric of every scenario: --verbose, or results.json")
            say(
                f"{len(runs)} runs (results.json, results.parquet) and {len(files)} pictures "
                f"(figures) are in {directory}"
            )
        return 1 if outcome.failures else 0


def _flow_rows(runs: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yields a row for each flow and each entry of short flows, with the run's own metrics."""
    of_runs = [entry.name for entry in OF_RUNS]
    for run in runs:
        about = {name: run[name] for name in ("scenario", "variation", "engine", "seed")}
        about["controllers"] = run["controller"]
        shared = {name: run[name] for name in of_runs if name in run}
        for flow in (*run["flows"], *run.get("short_flows", ())):
            yield {**about, **flow, **shared}


def _check_names(scenarios: Sequence[Scenario]) -> None:
    names = [scenario.name for scenario in scenarios]
    for name in names:
        if names.count(name) > 1:
            raise ScenarioError(
                f"two of the scenarios have the name {name!r}; change `name` in one of the files"
            )


def _check_controllers_are_used(scenarios: Sequence[Scenario]) -> None:
    for scenario in scenarios:
        if not scenario.has_open_flow:
            raise ScenarioError(
                f"scenario {scenario.name}: each flow names its controller, so none is left for "
                "--controller; leave out the option, or `controller` of a flow"
            )


def _varied(
    paper: Paper,
    scenarios: Sequence[Scenario],
    chosen: Sequence[str],
    engine: EngineName,
    seeds: int,
    window: Window,
) -> dict[str, list[RunJob]]:
    """Returns runs of the paper's scenarios among these as its compared variations have them.

    They are by the variation's name in the tables, and by the number of an alternative after it.
    """
    printed = set(scenarios_of(paper))
    found = [scenario for scenario in scenarios if scenario.name in printed]
    if not found or engine != "native":
        raise ScenarioError(
            f"--variations: they are of the {paper.name} paper's scenarios on the native engine; "
            + ("leave out --engine" if found else f"name one, such as {min(printed)}")
            + ", or leave out --variations"
        )
    jobs: dict[str, list[RunJob]] = {}
    for variation in paper.compared:
        assert variation.source is not None
        for scenario in found:
            for controller in chosen:
                varied = [(variation.source, comparable(scenario, variation, controller), seeds)]
                others = alternatives(scenario, variation, controller)
                varied += [(f"{variation.source}-{n}", other, 1) for n, other in enumerate(others)]
                for name, other, count in varied:
                    jobs.setdefault(name, []).extend(
                        make_jobs([other], [controller], engine, count, window=window)
                    )
    return jobs


def _cross_check(paper: Paper, chosen: Sequence[str], seeds: int, window: Window) -> list[RunJob]:
    """One row of each table on ns-3, with the same seeds: it should equal ours."""
    if ns3_version() is None:
        say(
            "note: this quicgym was built without the ns-3 host, so the tables' ns-3 cross-check "
            f"rows are left out; to have them, {NS3_REMEDY}"
        )
        return []
    names = dict.fromkeys(table.cross_check for table in paper.tables if table.cross_check)
    cross_checked = [load_scenario(name) for name in names]
    return make_jobs(cross_checked, chosen, "ns3", seeds, window=window)


def _write(directory: Path, runs: Sequence[dict[str, Any]], seeds: int, command: str) -> None:
    about = {
        "version": __version__,
        "command": command,
        "commit": _core.commit,
        "ns3_version": ns3_version(),
        "python": platform.python_version(),
        "seeds": list(range(seeds)),
    }
    text = json.dumps({**about, "runs": runs}, indent=1, allow_nan=False)
    frame = pd.DataFrame(runs)
    frame.attrs.update(about)
    write_atomically(
        {directory / "results.json": text + "\n", directory / "results.parquet": frame.to_parquet}
    )


def _draw(
    jobs: Sequence[RunJob],
    measured: Measurements,
    paper: Paper,
    engine: str,
    folder: Path,
    figure_format: str,
) -> list[Path]:
    traced = drawings.with_traces(jobs, lambda _: engine)
    found = [drawings.scenario_drawing(of_scenario, paper) for of_scenario in traced.values()]
    chosen = list(dict.fromkeys(job.steering for job in jobs if isinstance(job.steering, str)))
    for figure in paper.figures:
        drawing = drawings.figure_drawing(figure, paper, measured, traced, lambda _: engine, chosen)
        if drawing is not None:
            found.append(drawing)
    return figures.draw_all(found, folder, figure_format)


def _print_papers_tables(
    measured: Measurements, paper: Paper, engine: EngineName, seeds: int, *, variations: bool
) -> None:
    console = wide_console()
    shown_seeds = f"mean±standard deviation over {seeds} seeds" if seeds > 1 else "seed 0"
    console.print(f"{shown_seeds}\n", highlight=False)
    papers_tables = []
    for printed in paper.tables:

        def engines(row: TableRow, cross_check: str | None = printed.cross_check) -> list[str]:
            checked = engine == "native" and row.scenario == cross_check
            return [engine, "ns3"] if checked else [engine]

        shown = tables.paper_table(
            printed, paper, measured, engines, variations=paper.compared if variations else ()
        )
        if shown is not None:
            papers_tables.append((printed, shown))
    if not papers_tables:
        return
    console.print(f"{paper.title}\n", highlight=False)
    for printed, shown in papers_tables:
        print_whole(shown)
        verdict = table_verdict(printed, paper, measured, lambda _: engine)
        if verdict is not None:
            console.print(f"{verdict}\n", highlight=False, markup=False, width=100)
    console.print("Why values differ: docs/reports/reproduction.md\n", highlight=False)


def _print_measurements(runs: Sequence[dict[str, Any]], paper: Paper) -> None:
    for table in tables.measurement_tables(runs, paper.algorithms):
        print_whole(table)
        print()
