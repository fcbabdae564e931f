"""Every table, figure and claim of the papers, from our own runs.

`run_papers` runs, judges, draws and prints, as `quicgym papers` does; `quicgym baselines` uses
`make_runs` and `findings`.

Into the output folder go runs.jsonl (one line per finished run), papers.json, tables.parquet (one
row per cell), claims.parquet (one row per comparison), traces/ (time series of the first seed),
figures/ and, with the format html, papers.html.
"""

from __future__ import annotations

import math
import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any, Literal

import pandas as pd
from rich.console import Console
from rich.text import Text

from quicgym.agents.evaluation.jobs import RunJob
from quicgym.benchmarks.papers import drawings, paper_figures, paper_report, paper_tables
from quicgym.benchmarks.papers.measurements import Measurements, mean_and_deviation
from quicgym.benchmarks.papers.needs import check_names, measures_of, needs, scenarios_of
from quicgym.benchmarks.papers.paper import Paper, PaperError, load_paper, paper_names
from quicgym.benchmarks.papers.table_verdicts import table_verdict
from quicgym.benchmarks.papers.variations import alternatives, comparable
from quicgym.benchmarks.papers.verdicts import (
    VERDICTS,
    Judgement,
    MissingMeasurement,
    counted,
    judge,
)
from quicgym.benchmarks.simulations import TRACES_FOLDER, make_jobs, packets_of
from quicgym.console import count_of, print_whole, say, wide_console
from quicgym.envs import Scenario, ScenarioError, load_scenario
from quicgym.envs.scenarios.engines import EngineName
from quicgym.envs.scenarios.words import network_in_words
from quicgym.envs.simulation.simulation import NS3_REMEDY, ns3_version
from quicgym.envs.simulation.window import WHOLE, Window
from quicgym.jobs import RUNS_FILE, Outcome, Workers
from quicgym.plot_style import PLOTS_FOLDER
from quicgym.studies import Findings, Study, run_study

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


@dataclass(frozen=True)
class Asked:
    """The question of a run: the arguments of `run_papers` that running and judging need.

    A simulation that carries more packets than `most_packets` is left out.
    """

    papers: Sequence[Paper]
    scenarios: Mapping[str, Scenario]
    seeds: int
    window: Window = WHOLE
    without_ns3: bool = False
    variations: bool = False
    most_packets: float = math.inf

    def engine(self, scenario: str) -> EngineName:
        """Returns the engine whose values count in a scenario."""
        return engine_of(self.scenarios[scenario])

    def runs_here(self, scenario: str) -> bool:
        """Whether the scenario is run, or left out."""
        if packets_of(self.scenarios[scenario]) > self.most_packets:
            return False
        without_ns3 = self.without_ns3 or ns3_version() is None
        return not (without_ns3 and self.engine(scenario) == "ns3")


def asked_of(names: Sequence[str], seeds: int, **options: Any) -> Asked:
    """Returns what is asked of papers, by name or path; `options` are further fields of `Asked`.

    PaperError or ScenarioError says what a paper's file asks for that quicgym does not have.
    """
    papers = [load_paper(name) for name in names]
    scenarios = {name: load_scenario(name) for paper in papers for name in scenarios_of(paper)}
    for name, paper in zip(names, papers, strict=True):
        check_names(name, paper, scenarios)
    asked = Asked(papers, scenarios, seeds, **options)
    if asked.variations and not any(paper.compared for paper in papers):
        having = [name for name in paper_names() if load_paper(name).compared]
        raise PaperError(
            f"--variations: {', '.join(names)} has none; give --paper {' or '.join(having)}, or "
            "leave out --variations"
        )
    return asked


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
    variations: bool = False,
    figure_format: str = "png",
    command: str = "",
) -> int:
    """Runs, judges, writes and prints everything; returns the exit status.

    The arguments are the options of `quicgym papers`; no papers means all that quicgym brings, and
    the format "html" writes papers.html in place of a table. PaperError, ScenarioError, RunError or
    ClusterError says what cannot be run.
    """
    asked = asked_of(
        papers or paper_names(),
        seeds,
        window=window,
        without_ns3=without_ns3,
        variations=variations,
    )
    study = Study(directory, RESULTS, command, workers, format, resume)
    jobs = make_runs(asked, directory / TRACES_FOLDER)
    _say_what_ns3_runs(asked, jobs)

    def conclude(outcome: Outcome) -> Findings:
        measured = Measurements(jobs, outcome.finished)
        traced = drawings.with_traces(jobs, asked.engine)
        drawn = {
            paper.name: [
                drawing
                for figure in paper.figures
                if (
                    drawing := drawings.figure_drawing(
                        figure, paper, measured, traced, asked.engine
                    )
                )
            ]
            for paper in asked.papers
        }
        files = paper_figures.draw_all(
            [drawing for of_paper in drawn.values() for drawing in of_paper],
            directory / "figures",
            figure_format,
        )
        found = findings(asked, study, measured)
        html = format == "html"
        if html:
            measured_in = {job.scenario.name for job in jobs}
            networks = {
                name: network_in_words(scenario)
                for name, scenario in asked.scenarios.items()
                if name in measured_in
            }
            by_name = {file.stem: file for file in files}
            page = paper_report.render(found.document, asked.papers, drawn, by_name, networks)
            found = replace(found, texts={"papers.html": page})
        return replace(
            found,
            closing=f"{len(outcome.finished)} runs, papers.json, {'papers.html, ' if html else ''}"
            f"tables.parquet, claims.parquet and {len(files)} pictures (figures)",
        )

    return run_study(study, jobs, conclude)


def findings(asked: Asked, study: Study, measured: Measurements) -> Findings:
    """Returns what the runs say of the papers' claims, as files and tables have it."""
    reproductions = reproduce(asked, measured)
    claims = [
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
    ]
    cells = [cell for paper in asked.papers for cell in _table_cells(paper, measured, asked)]
    about = {
        **study.about(asked.seeds),
        "ns3_version": ns3_version(),
        "python": platform.python_version(),
    }
    return Findings(
        "papers.json",
        about,
        {"claims": claims, "tables": cells},
        "papers.json, tables.parquet and claims.parquet",
        print_table=lambda _: _print(reproductions, measured, asked),
        tables={
            "tables.parquet": pd.DataFrame(cells),
            "claims.parquet": pd.DataFrame(_claim_rows(claims)),
        },
    )


def reproduce(asked: Asked, measured: Measurements) -> list[Reproduction]:
    """Judges the claims of every paper."""
    return [_judge(paper, measured, asked.engine) for paper in asked.papers]


def claim_counts(reproduction: Reproduction, asked: Asked) -> dict[str, int]:
    """Returns how many of a paper's claims came out how, and what the others need."""
    counts: dict[str, int] = {
        verdict: sum(entry.verdict == verdict for entry in reproduction.judgements)
        for verdict in VERDICTS
    }
    unmeasured = [
        claim for claim in reproduction.paper.claims if claim.id in reproduction.unmeasured
    ]
    of_ns3 = sum(any(asked.engine(name) == "ns3" for name in c.scenarios) for c in unmeasured)
    return {**counts, "need_ns3": of_ns3, "need_longer_runs": len(unmeasured) - of_ns3}


def engine_of(scenario: Scenario) -> EngineName:
    """Returns the engine whose values count: the native one where it can run the scenario."""
    try:
        scenario.check_engine("native")
    except ScenarioError:
        return "ns3"
    return "native"


def make_runs(asked: Asked, trace_folder: Path | None) -> list[RunJob]:
    """Returns the simulations of papers in their order; None keeps no time series for figures.

    They go seed by seed, so that what an interrupted run leaves covers everything, and the longest
    first, so that no core is left with one at the end.
    """
    traced = {
        name for paper in asked.papers for figure in paper.figures for name in figure.scenarios
    }
    wanted: dict[str, dict[str, None]] = {}
    for paper in asked.papers:
        for name, algorithm in needs(paper):
            wanted.setdefault(name, {})[algorithm] = None
    jobs: dict[str, RunJob] = {}
    measures = measures_of(asked.papers)
    for name, algorithms in wanted.items():
        if not asked.runs_here(name):
            continue
        for job in make_jobs(
            [asked.scenarios[name]],
            list(algorithms),
            asked.engine(name),
            asked.seeds,
            trace_folder if name in traced else None,
            window=asked.window,
            measures=measures.get(name, ()),
        ):
            jobs[job.key] = job
    if asked.variations:
        jobs |= {job.key: job for paper in asked.papers for job in _varied(paper, asked)}
    return sorted(
        jobs.values(),
        key=lambda job: (job.seed, job.engine == "native", -packets_of(job.scenario)),
    )


def _varied(paper: Paper, asked: Asked) -> Iterator[RunJob]:
    """Yields the paper's runs as its compared variations have them, and their alternatives."""
    for variation in paper.compared:
        for name, controller in dict.fromkeys(needs(paper)):
            if asked.engine(name) != "native":
                continue
            scenario = asked.scenarios[name]
            varied = [(comparable(scenario, variation, controller), asked.seeds)]
            varied += [(other, 1) for other in alternatives(scenario, variation, controller)]
            for other, seeds in varied:
                yield from make_jobs([other], [controller], "native", seeds, window=asked.window)


def _say_what_ns3_runs(asked: Asked, jobs: Sequence[RunJob]) -> None:
    """Says what is left out without ns-3, or how many runs need it: a packet takes long there."""
    if asked.without_ns3:
        return
    if ns3_version() is None:
        left_out = sorted(name for name in asked.scenarios if asked.engine(name) == "ns3")
        if left_out:
            say(
                "note: this quicgym was built without the ns-3 host, so these are left out: "
                f"{', '.join(left_out)}; to have them, {NS3_REMEDY}"
            )
    elif on_ns3 := sum(job.engine == "ns3" for job in jobs):
        say(
            f"note: {on_ns3} of {count_of(len(jobs), 'simulation')} need ns-3, which may take "
            "hours; --without-ns3 leaves them out"
        )


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


def _table_cells(paper: Paper, measured: Measurements, asked: Asked) -> Iterator[dict[str, Any]]:
    """Yields a cell for each number that was measured, and where runs are varied one for these."""
    variations = [None, *(paper.compared if asked.variations else ())]
    for table, variation in product(paper.tables, variations):
        for row in table.rows:
            scenario = row.scenario
            if variation is not None:
                scenario += f"--{variation.source}"
            for algorithm in table.algorithms or paper.algorithms:
                for metric in table.metrics.values():
                    of_engine = asked.engine(row.scenario)
                    numbers = measured.values(scenario, algorithm, of_engine, metric)
                    if not numbers:
                        continue
                    mean, deviation = mean_and_deviation(numbers)
                    printed = table.printed(row, algorithm, metric)
                    yield {
                        "paper": paper.name,
                        "table": table.number,
                        "row": row.label,
                        "scenario": row.scenario,
                        "variation": None if variation is None else variation.source,
                        "algorithm": algorithm,
                        "metric": metric,
                        "printed": None if printed is None else float(printed),
                        "measured_mean": mean,
                        "measured_std": deviation,
                        "ratio": mean / float(printed) if printed and float(printed) else None,
                        "seeds": len(numbers),
                        "engine": of_engine,
                    }


def _claim_rows(claims: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """One row per comparison, its quantities flattened."""
    rows = []
    for claim in claims:
        for comparison in claim["measured"]:
            row = {key: claim[key] for key in ("paper", "id", "verdict", "source", "statement")}
            for part in ("quantity", "against"):
                for key, value in (comparison[part] or {}).items():
                    row[f"{part}_{key}"] = value
            row |= {key: comparison[key] for key in ("ratio", "low", "high", "claimed", "outcome")}
            rows.append(row)
    return rows


def _print(reproductions: Sequence[Reproduction], measured: Measurements, asked: Asked) -> None:
    console = wide_console()
    seeds = f"{asked.seeds} seeds" if asked.seeds > 1 else "seed 0"
    about = (
        "'ours' is what quicgym's controllers reach on the paper's network (mean ± standard "
        f"deviation over {seeds}), 'paper' is the printed value, 'ratio' is ours divided by it"
    )
    if any(paper.compared for paper in asked.papers):
        module = (
            "'module' is the same network with the habits of the QUIC module for ns-3"
            if asked.variations
            else "--variations adds lines for the QUIC module for ns-3"
        )
        about += (
            f", and {module} that the eBCC paper measured. quicgym's QUIC follows the RFCs and the "
            "module does not: for example it sends all lost bytes again as one datagram, and its "
            "receiver does not report a gap at once, so a correct stack has other losses and rates "
            "(docs/papers/ebcc.md)"
        )
    console.print(f"{about}.\n", highlight=False, width=100)
    for reproduction in reproductions:
        paper = reproduction.paper
        compared = paper.compared if asked.variations else ()
        console.print(Text(paper.title, style="bold underline"), "")
        for table in paper.tables:
            shown = paper_tables.paper_table(
                table,
                paper,
                measured,
                asked.engine,
                ratio=True,
                variations=compared,
            )
            if shown is None:
                continue
            print_whole(shown)
            verdict = table_verdict(table, paper, measured, asked.engine, compared)
            if verdict is not None:
                console.print(f"{verdict}", highlight=False, markup=False, width=100)
            console.print()
        for judgement in reproduction.judgements:
            _print_judgement(console, judgement)
        _print_what_is_missing(console, reproduction, asked)
        if paper.claims:
            console.print(
                f"{paper.name}: of {len(paper.claims)} claims "
                f"{counted(claim_counts(reproduction, asked))}\n",
                highlight=False,
            )


def _print_what_is_missing(console: Console, reproduction: Reproduction, asked: Asked) -> None:
    """Prints once which networks were left out, and what is not measured therefore."""
    missing = [name for name in scenarios_of(reproduction.paper) if not asked.runs_here(name)]
    if not missing:
        for claim, run in reproduction.unmeasured.items():
            console.print(f"{claim}: not measured, there is no {run}", highlight=False)
        return
    remedy = "leave out --without-ns3" if ns3_version() else NS3_REMEDY
    claims = len(reproduction.unmeasured)
    console.print(
        f"Not measured here, because only ns-3 can run such networks: {', '.join(missing)}. So our "
        f"values are missing there, and {claims} of {len(reproduction.paper.claims)} claims have "
        f"no verdict; to have both, {remedy}",
        highlight=False,
        markup=False,
        width=100,
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
