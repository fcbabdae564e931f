"""The command `quicgym league`: the runs of a competition, win rates, and their tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import pandas as pd

from quicgym.agents.evaluation.evaluate import expand
from quicgym.agents.policies.by_name import split_alias
from quicgym.benchmarks.league.competition import load_competition
from quicgym.benchmarks.league.games import Participants
from quicgym.console import print_by_columns, wide_console
from quicgym.jobs import RUNS_FILE, Outcome, Workers
from quicgym.studies import Findings, Study, run_study

Format = Literal["table", "json", "csv"]
DOCUMENT = "league.json"
RESULTS = (RUNS_FILE, DOCUMENT, "league.parquet")
ALL, HAND_CODED = "all participants", "hand-coded participants"


def run_league(
    *,
    competition: str,
    policies: Sequence[str],
    directory: Path,
    field: Sequence[str] = (),
    workers: int | Workers = 1,
    format: Format = "table",
    resume: bool = False,
    trust_zip: bool = False,
    command: str = "",
) -> int:
    """Runs, writes and prints everything; returns the exit status.

    The arguments are the options of `quicgym league`. No policies means the baselines. `field` are
    more participants.

    Raises:
        LeagueError: The competition does not exist, or is not valid.
        ScenarioError: A controller or policy does not exist.
        PolicyError: A policy cannot be loaded.
        RunError: The directory cannot be written to.
        ClusterError: There are no workers.
    """
    choices = list(dict.fromkeys([*expand(policies), *(expand(field) if field else ())]))
    participants = Participants.of(load_competition(competition), choices, trust_zip=trust_zip)
    jobs = participants.every_job
    study = Study(directory, RESULTS, command, workers, format, resume)

    def conclude(outcome: Outcome) -> Findings:
        about = {
            "competition": participants.competition.name,
            "source": participants.competition.source,
            **study.about(seeds=1),
            "policies": {split_alias(choice)[0]: split_alias(choice)[1] for choice in choices},
            "fingerprints": participants.fingerprints,
        }
        games = pd.DataFrame(
            [
                row
                for league in participants.competition.leagues
                for row in participants.games(league, outcome.finished).rows()
            ]
        )
        return Findings(
            DOCUMENT,
            about,
            {"leagues": league_tables(participants, outcome.finished)},
            f"win rates ({DOCUMENT}) and every game (league.parquet)",
            print_table=_print,
            frame=games,
            tables={"league.parquet": games},
        )

    incomplete = "no win rates, because runs are missing; --resume runs only these again"
    return run_study(study, jobs, conclude, incomplete=incomplete)


def league_tables(
    participants: Participants, finished: Mapping[str, Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Returns the tables of each league: in the field of all, and of those that are hand-coded.

    Args:
        participants: Controllers and policies that take part.
        finished: Results of the runs by their key.
    """
    kinds = participants.kinds
    hand_coded = [name for name, kind in kinds.items() if kind != "learned"]
    fields = {ALL: list(kinds)}
    if 1 < len(hand_coded) < len(kinds):
        fields[HAND_CODED] = hand_coded
    return [
        {"who": who, **participants.games(league, finished).table(field, kinds)}
        for league in participants.competition.leagues
        for who, field in fields.items()
    ]


def _print(document: Mapping[str, Any]) -> None:
    console = wide_console()
    for table in document["leagues"]:
        console.print(
            f"{document['competition']}, {table['league']}: {table['networks']} networks, "
            f"{table['games']} games\nfield: {', '.join(table['field'])}\n",
            highlight=False,
            markup=False,
        )
        windows = list(table["policies"][0]["by"]["window"])
        print_by_columns(
            ["policy", "wins\n(%)", "95% interval\nover networks", "not rounded\n(%)", *windows],
            [
                [
                    row["policy"],
                    f"{row['win_rate_percent']:.1f}",
                    interval(row),
                    f"{row['unrounded_win_rate_percent']:.1f}",
                    *(f"{row['by']['window'][window]:.1f}" for window in windows),
                ]
                for row in table["policies"]
            ],
        )
        shares = ", ".join(f"{who} {won:.1f}%" for who, won in table["won_by_percent"].items())
        console.print(f"\ngames won by {shares}\n", highlight=False)


def interval(row: Mapping[str, Any]) -> str:
    """Returns the interval of a win rate as tables show it."""
    return "–" if row["low"] is None else f"{row['low']:.1f} to {row['high']:.1f}"
