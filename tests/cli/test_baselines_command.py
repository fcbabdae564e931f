from __future__ import annotations

import csv
import io
import json
import os
import re
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml
from conftest import Command
from helpers.brief_job import Brief
from helpers.commands import says, start_process

import quicgym as package
from quicgym import cli, load_scenario
from quicgym.agents.evaluation.jobs import RunJob
from quicgym.benchmarks import baselines
from quicgym.benchmarks.papers.paper import load_paper
from quicgym.benchmarks.simulations import make_jobs
from quicgym.envs.scenarios.flows import Flow
from quicgym.envs.scenarios.model import Scenario
from quicgym.envs.simulation.metrics import EVALUATED, OF_FLOWS, OF_RUNS
from quicgym.envs.simulation.simulation import ns3_version
from quicgym.jobs import read_finished, run_jobs

NAMES = [entry.name for entry in (*OF_FLOWS, *OF_RUNS)]
SHORT = ("--scenario", "ebcc-flows-3", "ebcc-single", "--seeds", "2")


def own_scenario(folder: Path, **changes: Any) -> Path:
    path = folder / "own.yaml"
    path.write_text(yaml.safe_dump({"base": "ebcc-single", "name": "own", **changes}))
    return path


QUICK = ("--controller", "bbr", "ebcc", "--policy", "window")


def test_the_benchmark_compares_controllers_and_agents_and_counts_claims(
    quicgym: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(baselines, "SUITES", ("ebcc-bandwidth-5",))
    monkeypatch.setattr(baselines, "MOST_PACKETS", 100_000)  # leaves the longest simulations out
    done = quicgym("baselines", *QUICK, "--seeds", "1", "--out", "b")
    table, rest = done.stdout.split("The reward is")
    for name in ("BBR", "eBCC", "Window"):
        assert sum(line.startswith(f"{name} ") for line in table.splitlines()) == 1
    for paper in ("ebcc", "cubic-plus", "ibcca", "high-latency"):
        assert f"(quicgym papers --paper {paper})" in rest
    assert "20 need ns-3" in rest and "need longer runs" in rest
    assert [path.name for path in sorted((tmp_path / "b/figures").iterdir())] == [
        "captions.md",
        "iqm.png",
    ]
    assert {"bbr", "ebcc", "window"} <= {
        path.name for path in (tmp_path / "b/tensorboard").iterdir()
    }
    assert "tensorboard --logdir b/tensorboard" in done.stderr
    assert "read b/report.html first" in done.stderr
    report = (tmp_path / "b/report.html").read_text()
    for text in ("Window has an interquartile mean reward of", "The papers&#39; claims, judged"):
        assert text in report
    for sentence in re.findall(r"^\S+: of \d+ claims .*$", rest, re.MULTILINE):
        assert f"<li>{sentence}</li>" in report
    quicgym("compare", "b", "--logdir", "c")
    again = quicgym("baselines", *QUICK, "--seeds", "1", "--out", "b", "--resume")
    assert again.stdout == done.stdout


def test_the_benchmark_as_json_has_the_claims_too_and_needs_no_pytorch(
    quicgym: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("torch", "safetensors", "stable_baselines3", "ray"):
        monkeypatch.setitem(sys.modules, name, None)  # cannot be imported
    monkeypatch.setattr(baselines, "SUITES", ("ebcc-bandwidth-5",))
    monkeypatch.setattr(baselines, "MOST_PACKETS", 0)  # leaves all simulations out
    done = quicgym("baselines", *QUICK, "--seeds", "1", "--format", "json")
    document = json.loads(done.stdout)
    kept = json.loads((tmp_path / "results/baselines/evaluation.json").read_text())
    claims = document.pop("papers")
    assert document == kept
    assert {name: sum(counts.values()) for name, counts in claims.items()} == {
        name: len(load_paper(name).claims) for name in claims
    }
    assert claims["ibcca"]["need_ns3"] == len(load_paper("ibcca").claims)


def test_other_suites_are_compared_without_the_papers_claims(
    quicgym: Command, tmp_path: Path
) -> None:
    (tmp_path / "mine.yaml").write_text("- {base: ebcc-flows-3, name: mine, duration_s: 4}")
    suites = ("--suite", "ebcc-bandwidth-5", "./mine.yaml")
    done = quicgym("baselines", *suites, *QUICK, "--seeds", "1")
    assert "claims" not in done.stdout
    document = json.loads((tmp_path / "results/baselines/evaluation.json").read_text())
    scenarios = {cell["scenario"] for cell in document["policies"][0]["scenarios"]}
    assert scenarios == {"ebcc-bandwidth-5", "mine"}


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("--scenario ebcc-single --suite papers", ["--suite", "--scenario"]),
        ("--scenario ebcc-single --policy window", ["--policy", "--scenario"]),
        ("--qlog logs", ["--qlog", "--scenario"]),
        ("--from-s 1", ["--from-s", "--scenario"]),
        ("--suite heldout/65", ["'heldout/65'", "from 1 to 64"]),
        ("--seeds 0", ["--seeds", "greater|x>=1"]),  # as old versions of Typer say it
    ],
)
def test_bad_input_of_the_benchmark(
    quicgym: Command, tmp_path: Path, arguments: str, expected: list[str]
) -> None:
    says(quicgym("baselines", *arguments.split(), status=2), *expected)
    assert not (tmp_path / "results").exists()


def test_a_warning_is_a_note_without_a_line_of_our_code(quicgym: Command, tmp_path: Path) -> None:
    late = {"rate_schedule": [{"at_s": 3, "rate_mbps": 5}]}
    path = own_scenario(tmp_path, duration_s=2, bottleneck=late)
    done = quicgym("baselines", "--scenario", str(path), "--controller", "bbr", "--seeds", "1")
    assert re.search(r"^note: own: bottleneck\.rate_schedule\.0\.at_s = 3: ", done.stderr, re.M)
    assert "Warning" not in done.stderr


def test_json_is_one_document_and_files_are_written(quicgym: Command, tmp_path: Path) -> None:
    done = quicgym("baselines", *SHORT, "--controller", "bbr", "--format", "json", "--out", "here")
    document = json.loads(done.stdout)
    assert {"version", "commit", "command", "seeds", "runs", "intervals"} <= set(document)
    assert len(document["intervals"]) == 2 * len(NAMES)
    assert document["version"] == package.__version__
    assert document["command"].startswith("quicgym baselines --scenario ebcc-flows-3")
    runs = document["runs"]
    assert [(run["scenario"], run["controller"], run["engine"], run["seed"]) for run in runs] == [
        ("ebcc-flows-3", "bbr", "native", 0),
        ("ebcc-flows-3", "bbr", "native", 1),
        ("ebcc-single", "bbr", "native", 0),
        ("ebcc-single", "bbr", "native", 1),
    ]
    for run in runs:
        assert set(run) == {"scenario", "controller", "engine", "seed", *NAMES, "flows"}
        for flow in run["flows"]:
            assert set(flow) == {"name", "controller", *(entry.name for entry in OF_FLOWS)}
    frame = pd.read_parquet(tmp_path / "here" / "results.parquet")
    assert {str(frame[name].dtype) for name in NAMES} == {"float64"}  # without a value, too
    assert len(runs[0]["flows"]) == 3
    assert runs[0]["receive_rate_mbps"] != runs[1]["receive_rate_mbps"]

    kept = json.loads((tmp_path / "here/results.json").read_text())
    assert kept["runs"] == runs
    assert kept["seeds"] == [0, 1]
    assert {"version", "command", "commit"} <= set(kept)
    intervals = pd.read_parquet(tmp_path / "here/intervals.parquet").dropna()
    assert {"goodput_mbps", "p99_one_way_delay_ms", "loss_percent"} <= set(intervals["metric"])
    assert (intervals["low"] <= intervals["high"]).all()
    frame = pd.read_parquet(tmp_path / "here/results.parquet")
    assert list(frame["jain"]) == [run["jain"] for run in runs]
    assert frame.attrs["command"] == document["command"]
    figures = {path.name for path in (tmp_path / "here/figures").iterdir()}
    assert figures == {"captions.md", "ebcc-flows-3.png", "ebcc-single.png"}


def test_a_table_has_every_metric_of_the_controllers_that_are_the_default(
    quicgym: Command,
) -> None:
    done = quicgym("baselines", "--scenario", "ebcc-bandwidth-15", "--seeds", "2")
    for text in ("NewReno", "eBCC", "±", "RTT, 95th percentile (ms)", "Jain's index", "\nreward  "):
        assert text in done.stdout
    assert "Table" not in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 100


MIXED = [{"name": "own"}, {"name": "cubic", "controller": "cubic", "count": 14}]


def test_csv_has_a_row_for_each_flow_with_its_own_controller(
    quicgym: Command, tmp_path: Path
) -> None:
    shorts = [{"load_mbps": 0.5, "sizes": 20_000, "controller": "newreno"}]
    path = own_scenario(tmp_path, flows=MIXED, short_flows=shorts, duration_s=2.0)
    common = ("baselines", "--scenario", path, "--controller", "bbr3", "--seeds", "2")
    done = quicgym(*common, "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    assert list(rows[0])[: len(NAMES) + 6] == [
        "scenario", "engine", "seed", "controllers", "name", "controller", *NAMES
    ]  # fmt: skip
    assert len(rows) == 2 * 16 and {row["controllers"] for row in rows} == {"bbr3, cubic, newreno"}
    assert [row["controller"] for row in rows[:16]] == ["bbr3", *["cubic"] * 14, "newreno"]
    run = pd.read_parquet(tmp_path / "results/networks/results.parquet").iloc[0]
    for row, flow in zip(rows, run["flows"], strict=False):
        assert (row["name"], float(row["goodput_mbps"])) == (flow["name"], flow["goodput_mbps"])
    assert float(rows[15]["fct_small_mean_ms"]) > 0 and rows[15]["goodput_mbps"] == ""


def test_the_runs_of_seed_0_write_their_packets(quicgym: Command, tmp_path: Path) -> None:
    path = own_scenario(tmp_path, flows=[{}, {}], duration_s=1.0)
    quicgym(
        "baselines", "--scenario", path, "--controller", "bbr", "cubic", "--seeds", "2", "--qlog",
        tmp_path / "logs", "--log-limit-mb", "0.02",
    )  # fmt: skip
    files = sorted((tmp_path / "logs").glob("*/*"))
    assert [file.name for file in files] == ["flow-0-sender.sqlog", "flow-1-sender.sqlog"] * 2
    assert [file.parent.name.split("--")[1] for file in files[::2]] == ["bbr", "cubic"]
    assert all(file.parent.name.endswith("--native--0") for file in files)
    assert all(file.stat().st_size <= 20_000 for file in files)


@pytest.mark.parametrize(
    ("flows", "names"),
    [
        (MIXED, ["own", *(f"cubic-{number}" for number in range(1, 15))]),
        ([{"name": "near"}, {"name": "far", "extra_delay_ms": 50}], ["near", "far"]),
    ],
)
def test_a_redirected_table_has_a_column_for_every_flow(
    flows: list[dict[str, Any]], names: list[str], quicgym: Command, tmp_path: Path
) -> None:
    path = own_scenario(tmp_path, flows=flows, duration_s=1.0)
    done = quicgym("baselines", "--scenario", path, "--controller", "bbr3", "--seeds", "2")
    (heading,) = (line for line in done.stdout.splitlines() if f"{names[1]} " in line)
    assert heading.split()[-len(names) :] == names


@pytest.mark.parametrize("engine", ["native", pytest.param("ns3", marks=pytest.mark.ns3)])
def test_the_reward_is_that_of_evaluate(quicgym: Command, tmp_path: Path, engine: str) -> None:
    short = tmp_path / "short.yaml"
    short.write_text("{base: ebcc-flows-3, name: short, duration_s: 4}")
    common = ("--seeds", "2", "--engine", engine)
    baselines = ("--scenario", short, "--controller", "ebcc", "cubic", "--out", "b")
    quicgym("baselines", *baselines, *common)
    quicgym("evaluate", "--policy", "ebcc", "cubic", "--suite", short, *common, "--out", "e")
    ours = pd.read_parquet(tmp_path / "b/results.parquet")
    theirs = pd.read_parquet(tmp_path / "e/results.parquet").rename(
        columns={"policy": "controller"}
    )
    place = ["controller", "seed"]
    for name in EVALUATED:
        expected = theirs.set_index(place)[name].to_dict()
        assert ours.set_index(place)[name].to_dict() == expected
    assert ours["reward"].nunique() == 4 and (ours["reward"] < 1).all()


def test_an_interrupted_run_keeps_what_it_has_and_resumes(quicgym: Command, tmp_path: Path) -> None:
    path = own_scenario(tmp_path, duration_s=400)
    arguments = ["baselines", "--scenario", path, "--seeds", "10", "--controller", "bbr"]
    process = start_process(tmp_path, *arguments, "--jobs", "1")
    runs = tmp_path / "results/networks/runs.jsonl"
    deadline = time.monotonic() + 60
    while not (runs.exists() and runs.read_text().count("\n") >= 2):
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to the workers too
    output, errors = process.communicate(timeout=30)
    assert (process.returncode, output) == (130, "")
    assert "interrupted" in errors and "--resume" in errors and "Traceback" not in errors
    kept = runs.read_text()
    assert 2 <= kept.count("\n") < 10

    with runs.open("a") as file:
        file.write('{"key": "torn')  # as after a power cut
    done = quicgym(*arguments, "--resume", "--format", "json")
    assert len(json.loads(done.stdout)["runs"]) == 10
    assert runs.read_text().startswith(kept)
    assert len(read_finished(runs.parent)) == 10
    before = runs.read_text()
    again = quicgym(*arguments, "--resume", "--format", "json")
    assert json.loads(again.stdout)["runs"] == json.loads(done.stdout)["runs"]
    assert runs.read_text() == before


def test_time_series_are_those_of_the_first_seed(tmp_path: Path) -> None:
    scenario = load_scenario("ebcc-flows-3")
    jobs = make_jobs([scenario], ["bbr", "cubic"], "native", 3, tmp_path)
    assert [job.trace_folder is not None for job in jobs] == [True, False, False] * 2
    assert [job.seed for job in jobs] == [0, 1, 2] * 2


def test_a_failing_run_is_named_and_the_others_go_on(tmp_path: Path) -> None:
    good = load_scenario("ebcc-single").model_copy(update={"duration_s": 2.0})
    # Past the models' checks: the C++ core refuses it.
    change = {"controller": "bbr", "parameters": {"nonsense": 1.0}}
    flow = Flow.model_construct(**{**good.flows[0].__dict__, **change})
    broken = Scenario.model_construct(**{**good.__dict__, "flows": (flow,)})
    jobs = [
        RunJob(broken, "bbr", "native", 4),
        RunJob(good, "bbr", "native", 0),
        RunJob(good, "cubic", "native", 1),
    ]
    outcome = run_jobs(jobs, tmp_path, 2)
    assert len(outcome.finished) == 2
    (failure,) = outcome.failures
    assert "scenario ebcc-single, controller bbr, engine native, seed 4" in failure
    assert "nonsense" in failure


def test_a_job_whose_process_dies_takes_no_other_with_it(tmp_path: Path) -> None:
    jobs = [Brief("first"), Brief("deadly", dies=True), Brief("last")]
    outcome = run_jobs(jobs, tmp_path, 1)
    assert set(outcome.finished) == set(read_finished(tmp_path)) == {"first", "last"}
    (failure,) = outcome.failures
    assert "deadly" in failure and "its process died" in failure


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("--scenario ebcc-singel", ["'ebcc-singel'", "did you mean ebcc-single?"]),
        ("--scenario own.yaml", ["own.yaml: access.rate_mbps = -1"]),
        ("--scenario ebcc-single --controller bbbr", ["'bbbr'", "newreno, cubic, vegas, bbr"]),
        (
            "--scenario ebcc-single --controller tuning",
            ["evaluate --policy tuning --suite ebcc-single"],
        ),
        ("--scenario ebcc-single --out file.txt", ["file.txt", "folder"]),
    ],
)
def test_bad_input(quicgym: Command, tmp_path: Path, arguments: str, expected: list[str]) -> None:
    own_scenario(tmp_path, access={"rate_mbps": -1, "delay_ms": 5})
    (tmp_path / "file.txt").write_text("")
    says(quicgym("baselines", *arguments.split(), status=2), *expected)
    assert not (tmp_path / "results").exists()


def test_two_scenarios_of_one_name_are_refused(quicgym: Command, tmp_path: Path) -> None:
    path = own_scenario(tmp_path, name="ebcc-single")
    done = quicgym("baselines", "--scenario", path, "--scenario", "ebcc-single", status=2)
    assert "ebcc-single" in done.stderr and "change `name`" in done.stderr


def test_a_controller_that_no_flow_would_take_is_refused(quicgym: Command, tmp_path: Path) -> None:
    path = own_scenario(tmp_path, flows=[{"controller": "cubic"}], duration_s=1.0)
    done = quicgym("baselines", "--scenario", path, "--controller", "bbr", "--out", "b", status=2)
    says(done, "scenario own: each flow names its controller", "leave out the option")
    assert not (tmp_path / "b").exists()
    quicgym("baselines", "--scenario", path, "--seeds", "1", "--out", "b")


def test_version_and_help(quicgym: Command) -> None:
    version = quicgym("--version").stdout
    assert f"quicgym {package.__version__}" in version
    assert f"ns-3 {ns3_version() or 'not installed'}" in version
    assert "commit" in version and "Python 3." in version
    text = quicgym("baselines", "--help").stdout
    assert "--resume" in text and "Examples" in text
    assert "$QUICGYM_PEER -R" in quicgym("link", "--help").stdout
    for command in ("sweep", "attack"):
        assert "the extra `sweep`" in " ".join(quicgym(command, "--help").stdout.split())


def test_the_help_has_every_command_in_one_group(quicgym: Command) -> None:
    lines = quicgym("--help").stdout.splitlines()
    titles = [line for line in lines if line.endswith(":") and line[0] != " "]
    assert titles[1:] == [f"{title}:" for title in cli.COMMANDS]
    shown = [line.split()[0] for line in lines if re.match(r"  [a-z-]+  ", line) and line[2] != "-"]
    assert sorted(shown) == sorted(cli.group().commands)
