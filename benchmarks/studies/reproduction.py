"""In which region a paper's claims hold: what the paper leaves open is varied, claims judged again.

    python benchmarks/studies/reproduction.py PAPER [--variation NAME] [--seeds N] [--jobs N]
        [--with-ns3] [--out DIR]

prints the tables of docs/papers. The variations are in the paper's file.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer

from quicgym.benchmarks.papers.measurements import Measurements, mean_and_deviation
from quicgym.benchmarks.papers.needs import claim_needs, measures_of
from quicgym.benchmarks.papers.paper import Paper, PaperError, Variation, load_paper
from quicgym.benchmarks.papers.run_papers import engine_of
from quicgym.benchmarks.papers.variations import varied
from quicgym.benchmarks.papers.verdicts import MissingMeasurement, judge
from quicgym.benchmarks.simulations import make_jobs
from quicgym.console import say
from quicgym.envs import load_scenario
from quicgym.jobs import report_failures, run_jobs
from quicgym.yaml_files import closest

AS_IT_IS = Variation(name="as the scenarios have it")
SIGNS = {"holds": "holds", "partly": "in part", "fails": "no", "undecided": "undecided"}


def judge_variation(
    paper: Paper, variation: Variation, seeds: int, jobs: int, directory: Path, *, with_ns3: bool
) -> tuple[dict[str, str], list[str]]:
    """Runs what the claims need; returns claim -> verdict, and the watched quantities as text."""
    wanted: dict[str, dict[str, None]] = {}
    watched = ((entry.scenario, entry.algorithm) for entry in paper.watched)
    for name, algorithm in (*claim_needs(paper), *watched):
        wanted.setdefault(name, {})[algorithm] = None
    loaded = {name: load_scenario(name) for name in wanted}
    scenarios = {name: varied(scenario, variation) for name, scenario in loaded.items()}
    engines = {name: engine_of(scenario) for name, scenario in scenarios.items()}
    measures = measures_of([paper])
    all_jobs = [
        job
        for name, scenario in loaded.items()
        if with_ns3 or engines[name] == "native"
        for controller in wanted[name]
        for job in make_jobs(
            [varied(scenario, variation, controller)],
            [controller],
            engines[name],
            seeds,
            measures=measures.get(name, ()),
        )
    ]
    outcome = run_jobs(all_jobs, directory, jobs, resume=True, title=variation.name)
    report_failures(outcome.failures)
    if outcome.interrupted:
        raise KeyboardInterrupt
    measured = Measurements(all_jobs, outcome.finished)
    verdicts = {}
    for claim in paper.claims:
        try:
            verdict = judge(claim, paper, measured, engines.__getitem__).verdict
            verdicts[claim.id] = SIGNS[verdict]
        except MissingMeasurement:
            verdicts[claim.id] = "–"
    quantities = []
    for entry in paper.watched:
        engine = engines[entry.scenario]
        numbers = measured.values(entry.scenario, entry.algorithm, engine, entry.metric)
        if not numbers:
            quantities.append("–")
            continue
        mean, deviation = mean_and_deviation(numbers)
        quantities.append(f"{mean:.4g}±{deviation:.2g}")
    return verdicts, quantities


def _chosen(paper: Paper, name: str | None) -> list[Variation]:
    """Returns the variation of a name, or all, with the scenarios as they are before them."""
    if name is None:
        return [AS_IT_IS, *paper.variations]
    known = {variation.name: variation for variation in paper.variations}
    if name not in known:
        raise PaperError(f"--variation {name!r}: {paper.name} has none; {closest(name, [*known])}")
    return [AS_IT_IS, known[name]]


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yields the lines of a Markdown table."""
    yield f"| {' | '.join(header)} |"
    yield "|" + "---|" * len(header)
    for row in rows:
        yield f"| {' | '.join(row)} |"


def main(
    paper: Annotated[
        str, typer.Argument(help="The paper: a name from `quicgym papers --help` or a YAML file.")
    ],
    variation: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Judge only this variation. Default: all of the paper's."
        ),
    ] = None,
    seeds: Annotated[
        int, typer.Option(min=1, metavar="N", help="Run everything with the seeds 0 to N-1.")
    ] = 10,
    jobs: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Use N processes. Default: one for each core."),
    ] = None,
    with_ns3: Annotated[
        bool,
        typer.Option(
            "--with-ns3",
            help="Also judge claims that only ns-3 can run. Otherwise the table has a – there.",
        ),
    ] = False,
    out: Annotated[
        Path,
        typer.Option(
            metavar="DIR", help="Keep the runs in this folder; finished ones are not repeated."
        ),
    ] = Path("results/reproduction"),
) -> None:
    """Judge a paper's claims again for each variation of what the paper leaves open."""
    try:
        described = load_paper(paper)
        results = {}
        for chosen in _chosen(described, variation):
            results[chosen.name] = judge_variation(
                described, chosen, seeds, jobs or os.cpu_count() or 1, out, with_ns3=with_ns3
            )
    except PaperError as error:
        say(f"quicgym: {error}")
        raise typer.Exit(2) from None
    claims = [claim.id for claim in described.claims]
    print(f"Verdicts, {seeds} seeds\n")
    rows = [
        [name, *(verdicts[claim] for claim in claims)] for name, (verdicts, _) in results.items()
    ]
    # A row per claim reads better, since there are more claims than variations.
    for line in markdown(
        ["claim", *(row[0] for row in rows)],
        ([claim, *(row[place] for row in rows)] for place, claim in enumerate(claims, start=1)),
    ):
        print(line)
    print("\nTotals\n")
    for line in markdown(
        ["variation", *SIGNS.values()],
        (
            [name, *(str([*verdicts.values()].count(sign)) for sign in SIGNS.values())]
            for name, (verdicts, _) in results.items()
        ),
    ):
        print(line)
    print(f"\nQuantities, mean±standard deviation over {seeds} seeds\n")
    header = [f"{entry.scenario}, {entry.algorithm}, {entry.metric}" for entry in described.watched]
    for line in markdown(
        ["variation", *header], ([name, *numbers] for name, (_, numbers) in results.items())
    ):
        print(line)


if __name__ == "__main__":
    typer.run(main)
