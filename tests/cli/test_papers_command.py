"""`quicgym papers`: tables, figures, claims and the report, run as a user runs them."""

import base64
import json
from copy import deepcopy
from pathlib import Path

import pandas as pd
import pytest
import yaml
from conftest import Command
from helpers.authors import random_agent
from helpers.commands import says
from helpers.papers import SMALL

from quicgym.benchmarks.papers.needs import check_names, needs
from quicgym.benchmarks.papers.paper import PAPERS, load_paper, paper_names
from quicgym.benchmarks.papers.run_papers import engine_of
from quicgym.benchmarks.simulations import packets_of
from quicgym.envs import load_scenario


def written(folder: Path, **changes: object) -> Path:
    path = folder / "small.yaml"
    path.write_text(yaml.safe_dump({**SMALL, **changes}, sort_keys=False))
    return path


def test_json_holds_claims_and_tables(quicgym: Command, tmp_path: Path) -> None:
    done = quicgym(
        "papers", "--paper", written(tmp_path), "--seeds", "3", "--format", "json", "--out", "here"
    )
    document = json.loads(done.stdout)
    assert document["command"].startswith("quicgym papers --paper")
    assert document["seeds"] == [0, 1, 2]
    true, false = document["claims"]
    assert (true["id"], true["paper"], true["verdict"]) == ("true", "small", "holds")
    assert true["source"] == "abstract; Table 1"
    assert (false["verdict"], false["printed"]) == ("fails", {"rate": 1.5})
    (comparison,) = true["measured"]
    assert comparison["quantity"]["algorithm"] == "bbr"
    assert comparison["quantity"]["mean"] < comparison["against"]["mean"]
    assert comparison["quantity"]["seeds"] == 3
    cells = document["tables"]
    assert len(cells) == 2 * 2 * 2
    first = cells[0]
    assert {key: first[key] for key in ("paper", "table", "row", "algorithm", "metric")} == {
        "paper": "small",
        "table": "1",
        "row": "one",
        "algorithm": "newreno",
        "metric": "receive_rate_mbps",
    }
    assert first["printed"] == 7.0
    assert first["ratio"] == pytest.approx(first["measured_mean"] / 7)
    assert (first["seeds"], first["engine"]) == (3, "native")
    assert cells[1]["printed"] is None
    folder = tmp_path / "here"
    assert json.loads((folder / "papers.json").read_text())["claims"] == document["claims"]
    assert len(pd.read_parquet(folder / "tables.parquet")) == len(cells)
    assert list(pd.read_parquet(folder / "claims.parquet")["outcome"]) == ["yes", "no"]
    assert {path.name for path in (folder / "figures").iterdir()} == {
        "captions.md",
        "small-figure-1-window.png",
        "small-figure-2-rates.png",
    }


def test_the_table_shows_ratio_and_verdicts(quicgym: Command, tmp_path: Path) -> None:
    done = quicgym("papers", "--paper", written(tmp_path), "--seeds", "2")
    for text in ("Table 1: Rates", "ratio", "7.0", "holds  true:", "does not hold  false:"):
        assert text in done.stdout
    assert "small: of 2 claims 1 holds, 1 does not hold" in done.stdout
    assert "8 runs, papers.json, tables.parquet, claims.parquet and 2 pictures" in done.stderr
    runs = tmp_path / "results/papers/runs.jsonl"
    before = runs.read_bytes()
    again = quicgym("papers", "--paper", written(tmp_path), "--seeds", "2", "--resume")
    assert again.stdout == done.stdout and runs.read_bytes() == before


def test_tables_have_lines_of_ours_of_the_module_that_the_paper_used_and_of_the_paper(
    quicgym: Command, tmp_path: Path
) -> None:
    done = quicgym("papers", "--paper", "ebcc", "--seeds", "1", "--variations", "--out", "v")
    first = done.stdout.index("Table 2:")
    assert all(f"'{line}'" in done.stdout[:first] for line in ("ours", "module", "paper"))
    table = done.stdout[done.stdout.index("Table 5:") : done.stdout.index("Table 6:")]
    lines = [line.split() for line in table.splitlines() if " module " in line or " paper " in line]
    assert len(lines) >= 6  # three rows
    cells = pd.read_parquet(tmp_path / "v/tables.parquet")
    loss = cells[(cells["table"] == "5") & (cells["algorithm"] == "newreno")]
    ours, module = (loss[loss["variation"].isna()], loss[loss["variation"] == "module"])
    assert (abs(module["measured_mean"] - module["printed"]) < 0.1).all()
    assert (abs(ours["measured_mean"] - ours["printed"]) > 0.1).all()
    assert "printed ones in " in table and " range " in table


@pytest.mark.parametrize(
    "arguments", [("--paper", "high-latency"), ("--paper", "ibcca", "cubic-plus")]
)
def test_variations_where_there_are_none_are_an_error(
    quicgym: Command, arguments: tuple[str, ...]
) -> None:
    says(quicgym("papers", "--variations", *arguments, status=2), "--variations", "--paper ebcc")


def test_without_ns3_the_printed_values_are_shown_and_what_is_missing_is_said_once(
    quicgym: Command,
) -> None:
    done = quicgym("papers", "--paper", "ibcca", "--without-ns3", "--seeds", "1")
    assert "53.12" in done.stdout and "ratio" not in done.stdout.split("Table")[-1]
    assert done.stdout.count("ibcca-burst-35-2s") == 1
    assert "20 need ns-3" in done.stdout and "left out" not in done.stderr


def test_html_is_one_file_that_holds_its_figures(quicgym: Command, tmp_path: Path) -> None:
    arguments = ("--paper", written(tmp_path), "--seeds", "2", "--format", "html", "--out", "here")
    assert "papers.html" in quicgym("papers", *arguments).stderr
    captions = (tmp_path / "here/figures/captions.md").read_text()
    assert "windows. Paths: ebcc-single (15 Mbps, 100 ms, 1 flow; queue of " in captions
    assert "rates. Paths: ebcc-" in captions and "Error bars: ± 1 standard" in captions
    page = tmp_path / "here/papers.html"
    text = page.read_text()
    for outside in ("src=", "@import", "url("):
        assert outside not in text
    for picture in (tmp_path / "here/figures").glob("*.png"):
        assert base64.b64encode(picture.read_bytes()).decode() in text
    assert "does not hold" in text and "Table 1: Rates" in text
    # What a reviewer asks for: who, on which network, over how many seeds; in words.
    assert 'A. Author: A small paper. Nowhere, 2026, <a href="https://doi.org/10.1000/1">' in text
    assert (
        '<code>ebcc-single</code></td><td class="text">15 Mbps, 100 ms, 1 flow; queue of ' in text
    )
    assert "our mean ± 1 standard deviation over 2 seeds" in text and "(n = 2)" in text
    assert "Error bars: ± 1 standard deviation, n = 2 seeds." in text
    assert "BBR: " in text and "bbr mean_rtt_ms" not in text
    assert "<th>undecided</th>" not in text  # no claim is, so there is no column


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ("algorithms={bbbr: BBR}", ["'bbbr'", "did you mean bbr?"]),
        (
            "tables.0.metrics={a: speed, b: jain}",
            ["tables.0.metrics.a = 'speed'", "no metric is named 'speed'", "goodput_mbps"],
        ),
        ("tables.0.metrics={a: jain, b: goodput_mbps@7}", ["no flow is named '7'", "flow-1"]),
        ("claims.1.id='true'", ["two claims have the id 'true'"]),
    ],
)
def test_a_wrong_paper_file_is_named_with_its_field(
    quicgym: Command, tmp_path: Path, change: str, expected: list[str]
) -> None:
    place, _, value = change.partition("=")
    paper = inner = deepcopy(SMALL)
    *outer, last = (int(name) if name.isdigit() else name for name in place.split("."))
    for name in outer:
        inner = inner[name]
    inner[last] = yaml.safe_load(value)
    says(quicgym("papers", "--paper", written(tmp_path, **paper), status=2), *expected)
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize("name", paper_names())
def test_the_papers_that_come_with_quicgym_ask_for_what_there_is(name: str) -> None:
    paper = load_paper(name)
    scenarios = {scenario: load_scenario(scenario) for scenario, _ in needs(paper)}
    check_names(name, paper, scenarios)
    assert {engine_of(scenario) for scenario in scenarios.values()} <= {"native", "ns3"}


def test_the_claims_of_other_authors_agents_ask_for_what_there_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    agents = ("astraea", "aurora", "indigo", "orca")
    for agent in agents:
        random_agent(agent, tmp_path)
    files = sorted(Path(str(PAPERS / "authors")).glob("*.yaml"))
    assert [file.stem for file in files] == [*agents]
    for file in files:
        paper = load_paper(file)
        scenarios = {scenario: load_scenario(scenario) for scenario, _ in needs(paper)}
        check_names(file.name, paper, scenarios)
        columns = {name for table in paper.tables for name in table.algorithms or paper.algorithms}
        assert {name for _, name in needs(paper)} <= columns == set(paper.algorithms)


def test_every_algorithm_is_in_a_table() -> None:
    papers = [load_paper(name) for name in paper_names()]
    for paper in papers:
        columns = {name for table in paper.tables for name in table.algorithms or paper.algorithms}
        assert columns >= set(paper.algorithms)


def test_the_longest_runs_are_those_with_the_most_packets() -> None:
    scenario = load_scenario("ebcc-single")  # 15 Mbps for 20 s in datagrams of 1400 bytes
    assert packets_of(scenario) == pytest.approx(15e6 / 8 / 1400 * 20)
