"""Every table, figure and claim of the papers, from our own runs.

Into the output folder go runs.jsonl (one line per finished run), papers.json, tables.parquet (one
row per cell), claims.parquet (one row per comparison), traces/ (time series of the first seed),
figures/ and, with the format html, papers.html.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pandas as pd
from rich.console import Console
from rich.text import Text

from quicgym import __version__, _core
from quicgym.agents.evaluation.jobs import RunJob
from quicgym.benchmarks import run_time
from quicgym.benchmarks.papers import drawings, figures, report, tables
from quicgym.benchmarks.papers.measurements import Measurements, mean_and_deviation
from quicgym.benchmarks.papers.model import Paper, load_paper, paper_names
from quicgym.benchmarks.papers.needs import check_names, measures_of, needs, scenarios_of
from quicgym.benchmarks.papers.verdicts import VERDICTS, Judgement, MissingMeasurement, judge
from quicgym.benchmarks.simulations import TRACES_FOLDER, make_jobs
from quicgym.console import print_whole, say, wide_console
from quicgym.envs import Scenario, ScenarioError, load_scenario
from quicgym.envs.scenarios.engines import EngineName
from quicgym.envs.scenarios.words import network_in_words
from quicgym.envs.simulation.simulation import NS3_REMEDY, ns3_version
from quicgym.envs.simulation.window import WHOLE, Window
from quicgym.jobs import (
    RUNS_FILE,
    Outcome,
    Workers,
    as_workers,
    read_finished,
    report_outcome,
    run_jobs,
)
from quicgym.output_folders import output_folder, write_atomically
from quicgym.plot_style import PLOTS_FOLDER

Format = Literal["table", "json", "html"]
RESULTS = (
    RUNS_FILE, "papers.json", "tables.parquet", "claims.parquet", "papers.html", TRACES_FOLDER,
    "figures", PLOTS_FOLDER,
)  # fmt: skip


@dataclass(frozen=True)
class Reproduction:
    """One paper with what was measured for it."""

    paper: Paper
    judgements: tuple[Judgement, ...]
    unmeasured: dict[str, str]
    """Claim -> which run it lacks."""


def run_papers(
    *,
    directory: Path,
    papers: Sequence[str] = (),
    seeds: int = 5,
    window: Window = WHOLE,
    workers: int | Workers = 1,
    format: Format = "table",
    resume: bool = False,
    without_ns3: bool = False,
    figure_format: str = "png",
    command: str = "",
) -> int:
    """Runs, judges, writes and prints everything; returns the exit status.

    The arguments are the options of `quicgym papers`; no papers means all that quicgym brings, and
    the format "html" writes papers.html in place of a table. PaperError, ScenarioError, RunError or
    ClusterError says what cannot be run.
    """
    names = papers or paper_names()
    loaded = [load_paper(name) for name in names]
    scenarios = {name: load_scenario(name) for paper in loaded for name in scenarios_of(paper)}
    for name, paper in zip(names, loaded, strict=True):
        check_names(name, paper, scenarios)
    traces = directory / TRACES_FOLDER
    jobs = _jobs(
        loaded,
        scenarios,
        seeds,
        traces,
        without_ns3=without_ns3,
        window=window,
    )
    runners = as_workers(workers)
    runners.connect()
    with output_folder(directory, RESULTS, resume=resume):
        estimate = run_time.Estimate()
        count = sum(len(paper.figures) for paper in loaded)
        length = run_time.in_words(estimate.drawing_s(count))
        outcome = _run(
            jobs, directory, runners, estimate, f"  {count} figures: about {length}", resume=resume
        )
        if report_outcome(outcome, jobs, directory, command, resumed=resume):
            return 130
        measured = Measurements(jobs, outcome.finished)

        def engine(scenario: str) -> EngineName:
            return engine_of(scenarios[scenario])

        reproductions = [_judge(paper, measured, engine) for paper in loaded]
        traced = drawings.with_traces(jobs, engine)
        drawn = {
            paper.name: [
                drawing
                for figure in paper.figures
                if (drawing := drawings.figure_drawing(figure, paper, measured, traced, engine))
            ]
            for paper in loaded
        }
        document = _document(reproductions, measured, engine, seeds, command)
        files = figures.draw_all(
            [drawing for of_paper in drawn.values() for drawing in of_paper],
            directory / "figures",
            figure_format,
        )
        _write(directory, document)
        if format == "html":
            page = directory / "papers.html"
            measured_in = {job.scenario.name for job in jobs}
            networks = {
                name: network_in_words(scenario)
                for name, scenario in scenarios.items()
                if name in measured_in
            }
            by_name = {file.stem: file for file in files}
            report.write(page, document, loaded, drawn, by_name, networks)
            say(f"the report is {page}")
        elif format == "json":
            print(json.dumps(document, indent=1, allow_nan=False))
        else:
            _print(reproductions, measured, engine, seeds)
        say(
            f"{len(outcome.finished)} runs, papers.json, tables.parquet, claims.parquet and "
            f"{len(files)} pictures (figures) are in {directory}"
        )
        return 1 if outcome.failures else 0


def engine_of(scenario: Scenario) -> EngineName:
    """Returns the engine whose values count: the native one where it can run the scenario."""
    try:
        scenario.check_engine("native")
    except ScenarioError:
        return "ns3"
    return "native"


def _jobs(
    papers: Sequence[Paper],
    scenarios: Mapping[str, Scenario],
    seeds: int,
    trace_folder: Path,
    *,
    without_ns3: bool,
    window: Window,
) -> list[RunJob]:
    traced = {name for paper in papers for figure in paper.figures for name in figure.scenarios}
    wanted: dict[str, dict[str, None]] = {}
    for paper in papers:
        for name, algorithm in needs(paper):
            wanted.setdefault(name, {})[algorithm] = None
    jobs: dict[str, RunJob] = {}
    measures = measures_of(papers)
    for name, algorithms in wanted.items():
        engine = engine_of(scenarios[name])
        if engine == "ns3" and (without_ns3 or ns3_version() is None):
            continue
        folder = trace_folder if name in traced else None
        for job in make_jobs(
            [scenarios[name]],
            list(algorithms),
            engine,
            seeds,
            folder,
            window=window,
            measures=measures.get(name, ()),
        ):
            jobs[job.key] = job
    left_out = sorted(name for name in wanted if engine_of(scenarios[name]) == "ns3")
    if left_out and without_ns3:
        say(f"left out, as --without-ns3 says: {', '.join(left_out)}")
    elif left_out and ns3_version() is None:
        say(
            "note: this quicgym was built without the ns-3 host, so these are left out: "
            f"{', '.join(left_out)}; to have them, {NS3_REMEDY}"
        )
    return list(jobs.values())


def _run(
    jobs: Sequence[RunJob],
    directory: Path,
    workers: Workers,
    estimate: run_time.Estimate,
    afterwards: str,
    *,
    resume: bool,
) -> Outcome:
    """Runs the jobs host by host, each with a progress bar.

    Says before how long they take, and with `afterwards` what follows them.
    """
    kept = read_finished(directory) if resume else {}
    hosts: dict[str, list[RunJob]] = {}
    for job in jobs:
        hosts.setdefault(run_time.host_of(job), []).append(job)
    say(f"{len(jobs)} simulations with {workers.count} processes:")
    for host, of_host in hosts.items():
        new = [job for job in of_host if job.key not in kept]
        seconds = sum(map(estimate.cpu_s, new)) / workers.count
        length = run_time.in_words(seconds + (estimate.start_s if new else 0.0))
        say(f"  {host}: {len(new)} to run of {len(of_host)}, about {length}")
    say(afterwards)
    outcome = Outcome()
    for host, of_host in hosts.items():
        # Seed by seed, so that what an interrupted run leaves covers everything; the longest first,
        # so that no core is left with one at the end.
        ordered = sorted(of_host, key=lambda job: (job.seed, -estimate.cpu_s(job)))
        part = run_jobs(ordered, directory, workers, resume=True, title=host)
        outcome.finished |= part.finished
        outcome.failures += part.failures
        if part.interrupted:
            outcome.interrupted = True
            break
    return outcome


def _judge(
    paper: Paper, measured: Measurements, engine: Callable[[str], EngineName]
) -> Reproduction:
    judgements = []
    unmeasured = {}
    for claim in paper.claims:
        try:
            judgements.append(judge(claim, paper, measured, engine))
        except MissingMeasurement as missing:
            unmeasured[claim.id] = str(missing)
    return Reproduction(paper, tuple(judgements), unmeasured)


def _table_cells(
    paper: Paper, measured: Measurements, engine: Callable[[str], EngineName]
) -> Iterator[dict[str, Any]]:
    for table in paper.tables:
        for row in table.rows:
            for algorithm in table.algorithms or paper.algorithms:
                for metric in table.metrics.values():
                    of_engine = engine(row.scenario)
                    numbers = measured.values(row.scenario, algorithm, of_engine, metric)
                    if not numbers:
                        continue
                    mean, deviation = mean_and_deviation(numbers)
                    printed = table.printed(row, algorithm, metric)
                    yield {
                        "paper": paper.name,
                        "table": table.number,
                        "row": row.label,
                        "scenario": row.scenario,
                        "algorithm": algorithm,
                        "metric": metric,
                        "printed": None if printed is None else float(printed),
                        "measured_mean": mean,
                        "measured_std": deviation,
                        "ratio": mean / float(printed) if printed and float(printed) else None,
                        "seeds": len(numbers),
                        "engine": of_engine,
                    }


def _document(
    reproductions: Sequence[Reproduction],
    measured: Measurements,
    engine: Callable[[str], EngineName],
    seeds: int,
    command: str,
) -> dict[str, Any]:
    return {
        "version": __version__,
        "commit": _core.commit,
        "ns3_version": ns3_version(),
        "python": platform.python_version(),
        "command": command,
        "seeds": list(range(seeds)),
        "claims": [
            {
                "id": judgement.claim.id,
                "paper": reproduction.paper.name,
                "statement": judgement.claim.statement,
                "source": judgement.source,
                "verdict": judgement.verdict,
                "measured": judgement.measured(),
                "printed": judgement.claim.printed,
            }
            for reproduction in reproductions
            for judgement in reproduction.judgements
        ],
        "tables": [
            cell
            for reproduction in reproductions
            for cell in _table_cells(reproduction.paper, measured, engine)
        ],
    }


def _write(directory: Path, document: dict[str, Any]) -> None:
    text = json.dumps(document, indent=1, allow_nan=False)
    contents: dict[Path, str | Callable[[Path], object]] = {directory / "papers.json": text + "\n"}
    about = {key: value for key, value in document.items() if key not in ("claims", "tables")}
    for name, rows in (("tables", document["tables"]), ("claims", _claim_rows(document))):
        frame = pd.DataFrame(rows)
        frame.attrs.update(about)
        contents[directory / f"{name}.parquet"] = frame.to_parquet
    write_atomically(contents)


def _claim_rows(document: dict[str, Any]) -> list[dict[str, Any]]:
    """One row per comparison, its quantities flattened."""
    rows = []
    for claim in document["claims"]:
        for comparison in claim["measured"]:
            row = {key: claim[key] for key in ("paper", "id", "verdict", "source", "statement")}
            for part in ("quantity", "against"):
                for key, value in (comparison[part] or {}).items():
                    row[f"{part}_{key}"] = value
            row |= {key: comparison[key] for key in ("ratio", "low", "high", "claimed", "outcome")}
            rows.append(row)
    return rows


def _print(
    reproductions: Iterable[Reproduction],
    measured: Measurements,
    engine: Callable[[str], EngineName],
    seeds: int,
) -> None:
    console = wide_console()
    shown_seeds = f"mean±standard deviation over {seeds} seeds" if seeds > 1 else "seed 0"
    console.print(f"{shown_seeds}; ratio: ours divided by the printed value\n", highlight=False)
    for reproduction in reproductions:
        paper = reproduction.paper
        console.print(Text(paper.title, style="bold underline"), "")
        for table in paper.tables:
            shown = tables.paper_table(
                table, paper, measured, lambda row: [engine(row.scenario)], ratio=True
            )
            if shown is not None:
                print_whole(shown)
                console.print()
        for judgement in reproduction.judgements:
            _print_judgement(console, judgement)
        for claim, missing in reproduction.unmeasured.items():
            console.print(f"{claim}: not measured, there is no {missing}", highlight=False)
        counts = {
            words: sum(entry.verdict == verdict for entry in reproduction.judgements)
            for verdict, words in VERDICTS.items()
        }
        if reproduction.judgements:
            console.print(
                f"{paper.name}: "
                + ", ".join(f"{count} {words}" for words, count in counts.items())
                + "\n",
                highlight=False,
            )


def _print_judgement(console: Console, judgement: Judgement) -> None:
    claim = judgement.claim
    colours = {"holds": "green", "partly": "yellow", "fails": "red", "undecided": "blue"}
    colour = colours[judgement.verdict]
    console.print(
        Text.assemble(
            (VERDICTS[judgement.verdict], f"bold {colour}"),
            f"  {claim.id}: {claim.statement} ({judgement.source})",
        )
    )
    for comparison in judgement.comparisons:
        console.print(Text(f"    {comparison.outcome}: {comparison.in_words()}", style="dim"))
