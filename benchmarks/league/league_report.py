"""Who wins the leagues of ccBench, and in which field: `make reports ARGS=leagues`."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Iterator, Mapping
from datetime import date
from pathlib import Path
from typing import Annotated, Any

import typer

from quicgym.agents.evaluation.evaluate import ALL_BASELINES
from quicgym.benchmarks import options
from quicgym.benchmarks.league.competition import Competition, League, load_competition
from quicgym.benchmarks.league.games import Participants
from quicgym.benchmarks.league.run_league import DOCUMENT, interval, run_league
from quicgym.console import say
from quicgym.jobs import Workers, report_failures, run_jobs, workers_of
from quicgym.output_folders import locked, write_atomically

CCBENCH = "ccbench"
RECOMMENDED = ("window", "tuning")
READING = """\
A game is a network in a window of time. Several participants may win a game, so the win rates of a
field need not sum to 100%. A win rate depends on the field, which is named above each table.
[The guide](../how-to/hard-tests.md#leagues-of-ccbench) has networks, scores and rules. Intervals
are 95% by Student's t over the networks of a league. "Not rounded" is the win rate where rates and
delays are not rounded to whole numbers. Every run has the seed 0, because nothing in the leagues is
random but BBR's phase. `league.json` has the win rates by window, rate, delay, queue and step, too.
A participant that the command reads from a file (`orca=orca.json`) is an agent of other authors,
with its original weights ([import](../how-to/authors-agents.md)).
"""
PUBLISHED = {
    "single-flow": {"cubic": 16.6, "vegas": 38.6, "copa": 28.8, "bbr3": 28.1},
    "beside-cubic": {"cubic": 67.0, "vegas": 0.6, "copa": 13.4, "bbr3": 22.0},
}
"""Sage (Yen, Abbasloo and Chao, SIGCOMM 2023), Figure 1; in place of BBRv3 the paper has BBR2."""
FIELD = ("cubic", "vegas", "copa", "bbr", "bbr3")
"""The field of the comparison with published win rates."""
SLOW_STARTS = {
    "HyStart++ (default)": "",
    "until a loss": "standard",
    "HyStart of Linux": "hystart-linux",
}
COMPARISON = """\
The published win rates are those of Sage (SIGCOMM 2023), Figure 1. Its field has more controllers
than the figure shows. Its flows run in real time in Linux, and Copa is a program in user space. The
figure has BBR2 where quicgym has BBRv3. The field of the other columns are the participants with a
number. CUBIC leaves its first slow start as the heading says, also as the competing flow.
"""


def page(document: Mapping[str, Any], comparison: str = "") -> str:
    """Returns the report of the content of league.json, as Markdown.

    Args:
        document: Content of league.json.
        comparison: Section that compares with published win rates.
    """
    lines = [
        "# Leagues",
        "",
        READING,
    ]
    for table in document["leagues"]:
        lines += _section(table)
    if comparison:
        lines += [comparison, ""]
    lines.append(
        f"{date.today():%-d %B %Y}, quicgym {document['version']} at commit {document['commit']} "
        f"on {os.cpu_count()} cores, `{document['command']}`. The leagues are "
        f"{document['competition']}: {document['source']}."
    )
    return "\n".join(lines) + "\n"


def _section(table: Mapping[str, Any]) -> Iterator[str]:
    yield f"## League {table['league']}, {table['who']}"
    yield ""
    field = ", ".join(table["field"])
    yield f"{table['networks']} networks, {table['games']} games. Field: `{field}`."
    yield ""
    yield "| participant | kind | wins (%) | 95% interval | not rounded (%) |"
    yield "|---|---|---:|---:|---:|"
    for row in table["policies"]:
        yield (
            f"| {row['policy']} | {row['kind']} | {row['win_rate_percent']:.1f} | {interval(row)} "
            f"| {row['unrounded_win_rate_percent']:.1f} |"
        )
    yield ""
    if any(row["kind"] == "learned" for row in table["policies"]):
        won = table["won_by_percent"]
        yield (
            f"Learned participants alone win {won['learned alone']:.1f}% of the games, hand-coded "
            f"ones alone {won['hand-coded alone']:.1f}%, and both kinds {won['both']:.1f}%."
        )
        yield ""


def with_slow_start(competition: Competition, slow_start: str) -> Competition:
    """Returns a competition whose competing flows leave slow start in another way.

    Args:
        competition: The competition.
        slow_start: Value of CUBIC's parameter `slow_start`.
    """

    def changed(league: League) -> League:
        beside = [
            flow.model_copy(update={"parameters": {"slow_start": slow_start}})
            for flow in league.beside
        ]
        return league.model_copy(update={"beside": tuple(beside)})

    return competition.model_copy(update={"leagues": tuple(map(changed, competition.leagues))})


def compare(directory: Path, workers: Workers) -> str:
    """Runs the field of five with each slow start of CUBIC, and returns the section about it.

    Args:
        directory: Folder of the report's runs, of which most are needed here, too.
        workers: Workers that run them.
    """
    rates: dict[str, dict[str, dict[str, float]]] = {}
    for title, slow_start in SLOW_STARTS.items():
        competition, cubic = load_competition(CCBENCH), "cubic"
        if slow_start:
            competition = with_slow_start(competition, slow_start)
            cubic = f"cubic=cubic:slow_start={slow_start}"
        of = Participants.of(competition, [cubic, *FIELD[1:]])
        with locked(directory):
            outcome = run_jobs(of.every_job, directory, workers, resume=True)
        report_failures(outcome.failures)
        if outcome.interrupted or outcome.failures:
            say(f"the report is not written, because runs of {directory} are missing")
            raise typer.Exit(1)
        for league in competition.leagues:
            games = of.games(league, outcome.finished)
            for without in ("", "copa", "bbr"):
                if without and slow_start:
                    continue
                names = [name for name in FIELD if name != without]
                heading = f"{title}, without {without}" if without else title
                rates.setdefault(league.name, {})[heading] = {
                    name: float(100 * wins.mean())
                    for name, wins in zip(names, games.wins(names), strict=True)
                }
    return "\n".join(["## Published win rates", "", COMPARISON, *_compared(rates)])


def _compared(rates: Mapping[str, Mapping[str, Mapping[str, float]]]) -> Iterator[str]:
    for league, columns in rates.items():
        published = PUBLISHED[league]
        yield f"### {league}, wins (%)"
        yield ""
        yield "| participant | published | " + " | ".join(columns) + " |"
        yield "|---|---:|" + "---:|" * len(columns)
        for name in FIELD:
            values = [published.get(name), *(column.get(name) for column in columns.values())]
            shown = ("–" if value is None else f"{value:.1f}" for value in values)
            yield f"| {name} | {' | '.join(shown)} |"
        yield ""


def leagues(
    also: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Add this participant. You may repeat it."),
    ] = None,
    jobs: options.Jobs = None,
    resume: options.Resume = False,
    out: options.Out = Path("results/leagues"),
    pages: Path = Path("results/reports"),
) -> None:
    """Write the report of all hand-coded controllers, the recommended policies and others."""
    policies = [ALL_BASELINES, *RECOMMENDED, *(also or ())]
    workers = workers_of(jobs)
    status = run_league(
        competition=CCBENCH,
        policies=policies,
        directory=out,
        workers=workers,
        resume=resume and out.exists(),
        command=shlex.join(["quicgym", "league", CCBENCH, "--policies", *policies]),
    )
    if status:
        raise typer.Exit(status)
    comparison = compare(out, workers)
    document = json.loads((out / DOCUMENT).read_text(encoding="utf-8"))
    write_atomically({pages / "leagues.md": page(document, comparison)})
