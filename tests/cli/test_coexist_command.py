"""`quicgym coexist`, run as a user runs it."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pandas as pd
import pytest
from conftest import Command
from helpers.commands import says

from quicgym.benchmarks.coexistence.coexistence_report import page
from quicgym.benchmarks.coexistence.grid import Grid
from quicgym.benchmarks.coexistence.grid import Path as NetworkPath
from quicgym.envs.simulation.window import WHOLE

TINY = (
    "--counts", "1", "2", "--rates", "2", "--rtts", "20", "--queues", "2", "--discipline",
    "drop-tail", "--duration-s", "18", "--seeds", "2", "--jobs", "1",
)  # fmt: skip


def test_one_command_leaves_a_table_a_figure_and_a_parquet(
    quicgym: Command, tmp_path: Path
) -> None:
    done = quicgym("coexist", "bbr3", *TINY, "--format", "json", "--out", "here")
    document = json.loads(done.stdout)
    assert json.loads((tmp_path / "here/coexist.json").read_text()) == document
    cells = {(row["subject"], row["count"]): row for row in document["cells"]}
    assert set(cells) == {("bbr3", 1), ("bbr3", 2), ("cubic", 1), ("cubic", 2)}
    for row in cells.values():
        total = row["fair_share"] + row["count"] * row["others_fair_share"]
        assert total == pytest.approx(row["count"] + 1, rel=0.15)
        assert row["fct_p99_ms"] >= row["fct_median_ms"] > 0
    assert cells["cubic", 2]["extra_harm_rate"] == 0
    assert cells["cubic", 1]["rtt_unfairness"] > 1
    assert [row["users"] for row in document["adoption"]] == [0, 1, 2, 3]
    flows = pd.read_parquet(tmp_path / "here/coexist.parquet")
    assert flows.attrs["seeds"] == [0, 1]
    assert set(flows["experiment"]) == {
        "beside", "alone", "rtt", "changes", "short-flows", "adoption"
    }  # fmt: skip
    (late,) = flows[
        (flows["subject"] == "bbr3")
        & (flows["experiment"] == "beside")
        & (flows["count"] == 2)
        & (flows["seed"] == 0)
        & flows["is_subject"]
    ].itertuples()
    assert 3 <= late.begin_s < 3.3
    assert len(late.share_by_second) in (14, 15)
    figures = tmp_path / "here/figures"
    assert {path.name for path in figures.iterdir()} == {
        "coexist.png", "coexist.pdf", "captions.md"
    }  # fmt: skip
    assert "2 Mbps, 20 ms, 2 BDP" in (figures / "captions.md").read_text()
    report = page(document)
    assert "## Next to 2 CUBIC, 2 Mbps, 20 ms, 2 BDP, drop-tail" in report
    share = f"{cells['bbr3', 2]['fair_share']:.2f}"
    assert f"| BBRv3 | {share} |" in report


def test_the_engine_of_a_grid_is_that_of_its_runs() -> None:
    cells = (["bbr3"], ["cubic"], [1], [NetworkPath(2.0, 20.0, 2.0, "drop-tail")], 18.0, 1, WHOLE)
    for engine in ("native", "ns3"):
        jobs = Grid(*cells, engine=engine).jobs()
        assert {job.engine for of_cell in jobs.values() for job in of_cell} == {engine}


def test_csv_and_table_have_every_cell(quicgym: Command) -> None:
    rows = list(csv.DictReader(io.StringIO(
        quicgym("coexist", "vegas", *TINY, "--format", "csv", "--out", "here").stdout
    )))  # fmt: skip
    assert [(row["subject"], row["count"]) for row in rows] == [
        ("vegas", "1"), ("cubic", "1"), ("vegas", "2"), ("cubic", "2")
    ]  # fmt: skip
    assert {"harm_rate", "harm_rate_low", "convergence_s_seeds"} <= rows[0].keys()
    done = quicgym("coexist", "vegas", *TINY, "--resume", "--out", "here")
    for text in ("2 Mbps, 20 ms, 2 BDP, drop-tail", "Vegas + 2 CUBIC", "from 3 s to 18 s"):
        assert text in done.stdout


def test_a_learned_policy_and_a_window(quicgym: Command) -> None:
    done = quicgym(
        "coexist", "mine=window", *TINY, "--seeds", "1", "--counts", "1", "--from-s",
        "9", "--format", "json", "--out", "here",
    )  # fmt: skip
    document = json.loads(done.stdout)
    row = document["cells"][0]
    assert row["subject"] == "mine" and row["fair_share"] > 0
    assert document["from_s"] == 9
    assert document["fingerprints"].keys() == {"mine"}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["bbbr"], ["unknown policy 'bbbr'", "did you mean"]),
        (["bbr", "--beside", "cubik"], ["'cubik'", "did you mean cubic?"]),
        (["bbr", "--beside", "window"], ["unknown controller 'window'; there are: newreno"]),
        (["bbr", "--queues", "0.001"], ["queue.limit = 0.001", "one takes 1230 bytes"]),
        *(
            (["bbr", option, "0"], [option, "0.001"])
            for option in ("--rates", "--rtts", "--queues")
        ),
        (["a=bbr", "a=cubic"], ["shown as 'a'", "another alias"]),
    ],
)
def test_bad_input_is_refused_before_anything_runs(
    quicgym: Command, tmp_path: Path, arguments: list[str], words: list[str]
) -> None:
    done = quicgym("coexist", *arguments, status=2)
    says(done, *words)
    assert not (tmp_path / "results").exists()
