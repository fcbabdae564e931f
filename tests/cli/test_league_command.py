"""`quicgym league`, run as a user runs it."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pandas as pd
import pytest
from conftest import Command
from helpers.commands import says
from helpers.inputs import LEAGUE

from quicgym.benchmarks.league.league_report import page


@pytest.fixture(autouse=True)
def competition(tmp_path: Path) -> None:
    (tmp_path / "league.yaml").write_text(LEAGUE)


def test_win_rates_are_printed_and_written_with_their_field(
    quicgym: Command, tmp_path: Path
) -> None:
    field = ("--policies", "vegas", "mine=window", "--field", "cubic")
    done = quicgym("league", "./league.yaml", *field, "--jobs", "1", "--out", "here")
    document = json.loads((tmp_path / "here/league.json").read_text())
    assert "field: vegas, mine, cubic" in done.stdout
    assert "field: vegas, cubic" in done.stdout
    alone, hand_coded, beside, _ = document["leagues"]
    assert [table["games"] for table in document["leagues"]] == [4, 4, 2, 2]
    assert set(alone["field"]) == {"vegas", "mine", "cubic"}
    assert hand_coded["field"] == ["vegas", "cubic"]
    assert document["policies"]["mine"] == "window"
    assert document["fingerprints"]["mine"]
    assert max(row["win_rate_percent"] for row in beside["policies"]) > 0
    games = pd.read_parquet(tmp_path / "here/league.parquet")
    assert len(games) == 3 * 6
    wins = games[(games["league"] == "alone")].groupby("policy")["wins"].mean()
    assert {row["policy"]: row["win_rate_percent"] for row in alone["policies"]} == (
        100 * wins
    ).to_dict()
    report = page(document)
    assert "Field: `vegas, mine, cubic`." in report
    for row in alone["policies"]:
        assert f"| {row['policy']} | {row['kind']} | {row['win_rate_percent']:.1f} |" in report


def test_a_resumed_run_with_more_participants_runs_only_these(
    quicgym: Command, tmp_path: Path
) -> None:
    options = ("--jobs", "1", "--out", "here")
    quicgym("league", "./league.yaml", "--policies", "vegas", *options)
    before = (tmp_path / "here/runs.jsonl").read_text()
    done = quicgym(
        "league", "./league.yaml", "--policies", "vegas", "cubic", *options, "--resume",
        "--format", "csv",
    )  # fmt: skip
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    assert {row["policy"] for row in rows} == {"vegas", "cubic"}
    assert {"flow_rate_mbps", "flow_delay_ms", "wins", "queue_bdp"} <= rows[0].keys()
    after = (tmp_path / "here/runs.jsonl").read_text()
    assert after.startswith(before)
    assert (before.count("\n"), after.count("\n")) == (3, 6)


def test_bad_input_ends_with_a_message(quicgym: Command) -> None:
    says(quicgym("league", "ccbenhc", status=2), "unknown league 'ccbenhc'; did you mean ccbench")
    says(
        quicgym("league", "./league.yaml", "--policies", "cubik", status=2),
        "unknown policy 'cubik'; did you mean cubic",
    )
    says(
        quicgym("league", "./league.yaml", "--policies", "a=cubic", "a=bbr", status=2),
        "two of the policies are shown as 'a'",
    )
