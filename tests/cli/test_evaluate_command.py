"""`quicgym evaluate`, as a user runs it."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import re
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml
from conftest import Command
from helpers.commands import run_process, says, start_process
from scipy import stats

from quicgym import ScenarioError, _core, controllers, load_scenario, make_vec
from quicgym.agents.evaluation.evaluate import notable_differences
from quicgym.agents.evaluation.jobs import PolicyChoice, RunJob, make_jobs
from quicgym.agents.evaluation.rollouts import play, play_all
from quicgym.agents.evaluation.run_folders import read_runs, read_series, series_path
from quicgym.agents.evaluation.statistics import Bootstrap, mean_interval
from quicgym.agents.evaluation.summary import evaluate, keep_runs, summarize
from quicgym.agents.policies.by_name import find_policy, policy_kind
from quicgym.agents.policies.hand_coded import BASELINES, STEERED
from quicgym.console import wide_console
from quicgym.envs.episodes import EpisodeChoice
from quicgym.envs.rewards import Reward
from quicgym.envs.scenarios.distributions import load_distribution
from quicgym.envs.scenarios.model import Scenario
from quicgym.envs.scenarios.suites import episodes_of, load_suite
from quicgym.envs.simulation.metrics import EVALUATED, METRICS, OF_FLOWS, OF_RUNS
from quicgym.envs.simulation.window import Window
from quicgym.jobs import read_finished


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    """Two short scenarios: one in which seeds differ, one in which nothing is random."""
    names = ("ebcc-flows-3", "ebcc-bandwidth-5")
    path = tmp_path / "short.yaml"
    path.write_text("".join(f"- {{base: {name}, name: {name}, duration_s: 2}}\n" for name in names))
    return path


def kinds_of(policies: Iterable[str]) -> dict[str, str]:
    return {policy: policy_kind(policy) for policy in policies}


def runs_of(rewards: dict[str, list[list[float]]], names: list[str]) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {"policy": policy, "scenario": name, "seed": seed, **dict.fromkeys(EVALUATED, 1.0)}
            | {"reward": reward}
            for policy, rows in rewards.items()
            for name, row in zip(names, rows, strict=True)
            for seed, reward in enumerate(row)
        ]
    )


def test_a_table_and_the_files(quicgym: Command, suite: Path, tmp_path: Path) -> None:
    arguments = ("evaluate", "--policy", "bbr", "ebcc:gamma=60", "cubic", "--suite", suite)
    done = quicgym(*arguments, "--seeds", "2", "--jobs", "2")
    header = done.stdout.partition("\n")[0]
    assert "2 scenarios with 2 seeds, 12 runs" in header and "distribution" not in header
    rows = {line.split()[0]: line.split() for line in done.stdout.splitlines() if line.strip()}
    assert {"bbr", "ebcc:gamma=60", "cubic"} <= set(rows)
    folder = tmp_path / "results/evaluation"
    document = json.loads((folder / "evaluation.json").read_text())
    ranked = [entry["policy"] for entry in document["policies"]]
    assert [name for name in rows if name in ranked] == ranked
    for entry in document["policies"]:
        assert rows[entry["policy"]][1] == f"{entry['iqm_reward']:.4f}"
        assert rows[entry["policy"]][2] == f"{entry['iqm_low']:.4f}"
        assert rows[entry["policy"]][5] == f"{entry['mean']['reward']:.4f}"
        assert float(rows[entry["policy"]][6]) == round(entry["mean"]["goodput_mbps"], 2)
    assert f"IQM {ranked[0]} − {ranked[1]}: " in done.stdout
    assert {path.name for path in (folder / "figures").iterdir()} == {
        "captions.md",
        "iqm.png",
        "profiles.png",
        "scenarios.png",
    }
    assert set((folder / "series").iterdir()) == {
        series_path(folder, policy, scenario)
        for policy in ranked
        for scenario in ("ebcc-flows-3", "ebcc-bandwidth-5")
    }
    (bbr,) = (run for run in read_runs(folder) if run.name == "bbr")  # as compare reads it
    series = read_series(bbr.series["ebcc-flows-3"])
    scenario = load_scenario("ebcc-flows-3").model_copy(update={"duration_s": 2.0})
    metrics = play(find_policy("bbr"), scenario).evaluation
    durations_s = np.diff(series["time_s"], prepend=series["time_s"][0] - 0.1)
    assert np.average(series["reward"], weights=durations_s) == pytest.approx(metrics["reward"])
    frame = pd.read_parquet(folder / "results.parquet")
    assert len(frame) == 12 and frame.attrs["seeds"] == [0, 1]
    row = frame[(frame.policy == "bbr") & (frame.scenario == "ebcc-flows-3")].iloc[0]
    assert row[list(metrics)].to_dict() == metrics


@pytest.mark.parametrize("window_bytes, warns", [(2**14, True), (None, False)])
def test_a_receiver_that_limits_a_flow_is_told_of(
    quicgym: Command, tmp_path: Path, window_bytes: int | None, warns: bool
) -> None:
    scenario = load_scenario("ebcc-bandwidth-5").model_copy(update={"duration_s": 2.0})
    content = json.loads(scenario.model_dump_json(exclude_none=True))
    content["flows"][0]["flow_control_window_bytes"] = window_bytes
    path = tmp_path / "limited.yaml"
    path.write_text(yaml.safe_dump([content]))
    done = quicgym("evaluate", "--policy", "cubic", "--suite", path, "--seeds", "1")
    assert ("flow_control_window_bytes" in done.stderr) == warns
    runs = pd.read_parquet(tmp_path / "results/evaluation/results.parquet")
    assert (runs["blocked_percent"] > 1).all() == warns
    path.write_text(yaml.safe_dump(content))
    done = quicgym("baselines", "--scenario", path, "--controller", "cubic", "--seeds", "1")
    assert ("flow_control_window_bytes" in done.stderr) == warns


@pytest.fixture
def mixture(tmp_path: Path) -> Path:
    """A mixture of two distributions of short episodes."""
    for name, rate in (("slow", 2), ("fast", 20)):
        (tmp_path / f"{name}.yaml").write_text(
            f"name: {name}\nduration_s: 1\nrate_mbps: {{minimum: {rate}, maximum: {2 * rate}}}\n"
            "rtt_ms: {minimum: 20, maximum: 40}\nqueue_bdp: {minimum: 1, maximum: 2}\n"
        )
    path = tmp_path / "both.yaml"
    path.write_text("name: both\nmixture: {./slow.yaml: 1, ./fast.yaml: 1}\n")
    return path


def test_a_mixture_has_an_aggregate_and_one_for_each_part(quicgym: Command, mixture: Path) -> None:
    arguments = ("evaluate", "--policy", "cubic", "bbr", "--suite", mixture, "--jobs", "1")
    done = quicgym(*arguments, "--seeds", "10", "--out", "out")
    assert "no aggregate" not in done.stderr and "10 networks" in done.stdout
    document = json.loads(Path("out/evaluation.json").read_text())
    frame = pd.read_parquet("out/results.parquet")
    assert set(frame["scenario"]) == {"both"} and set(frame["part"]) == {"slow", "fast"}
    assert document["missing"] == [] and len(document["differences"]) == 1
    for entry in document["policies"]:
        own = frame[frame["policy"] == entry["policy"]]
        assert entry["iqm_reward"] == pytest.approx(stats.trim_mean(own["reward"], 0.25))
        assert [part["part"] for part in entry["parts"]] == ["fast", "slow"]
        assert sum(part["seeds"] for part in entry["parts"]) == 10
        for part in entry["parts"]:
            rewards = own.loc[own["part"] == part["part"], "reward"]
            assert part["reward"] == pytest.approx(rewards.mean())
            assert part["iqm_low"] <= part["iqm_reward"] <= part["iqm_high"]
            assert f"{part['iqm_reward']:.4f}" in done.stdout


def test_a_mixture_is_evaluated_next_to_its_parts_and_to_a_mixture_of_the_same_parts(
    quicgym: Command, mixture: Path, tmp_path: Path
) -> None:
    suites = [mixture, mixture.with_name("slow.yaml"), tmp_path / "more.yaml"]
    suites[2].write_text("name: more\nmixture: {./slow.yaml: 1, ./fast.yaml: 2}\n")
    arguments = ("evaluate", "--policy", "cubic", "bbr", "--jobs", "1", "--seeds", "4")
    done = quicgym(*arguments, "--suite", *suites, "--out", "out", "--qlog", "logs")
    together = pd.read_parquet("out/results.parquet")
    for name, suite in zip(("both", "slow", "more"), suites, strict=True):
        quicgym(*arguments, "--suite", suite, "--out", name)
        alone = pd.read_parquet(f"{name}/results.parquet")
        own = together[together["scenario"] == name].reset_index(drop=True)
        pd.testing.assert_frame_equal(own[alone.columns], alone, check_like=True)
    for label in ("both: slow", "both: fast", "slow: slow", "more: fast"):
        assert label in done.stdout
    assert len(list(Path("logs").iterdir())) == 3 * 2
    assert "both" in quicgym(*arguments, "--suite", mixture, mixture, status=2).stderr


def test_every_scenario_of_a_folder_in_a_mixture_counts(
    quicgym: Command, suite: Path, tmp_path: Path
) -> None:
    (tmp_path / "fixed").mkdir()
    for scenario in yaml.safe_load(suite.read_text()):
        (tmp_path / "fixed" / f"{scenario['name']}.yaml").write_text(yaml.safe_dump(scenario))
    path = tmp_path / "folder.yaml"
    path.write_text("name: folder\nmixture: {./fixed: 1}\n")
    quicgym("evaluate", "--policy", "cubic", "--suite", path, "--seeds", "4", "--out", "out")
    document = json.loads(Path("out/evaluation.json").read_text())
    assert document["missing"] == []
    names = {part["part"] for part in document["policies"][0]["parts"]}
    assert names == {"ebcc-flows-3", "ebcc-bandwidth-5"}


def test_the_header_says_how_much_is_run_and_what_is_drawn(
    quicgym: Command, suite: Path, mixture: Path
) -> None:
    slow, fast = (mixture.with_name(f"{name}.yaml") for name in ("slow", "fast"))
    options = ("--policy", "cubic", "--seeds", "3", "--format", "table", "--suite")
    for suites, counts in (
        ([suite, slow], ["2 scenarios with 3 seeds", "3 networks", "distribution slow", "9 runs"]),
        ([slow, fast], ["3 networks of each", "distributions slow, fast", "6 runs"]),
    ):
        done = quicgym("evaluate", *options, *suites)
        header = " ".join(done.stdout.split()).partition(", reward")[0]
        assert all(count in header for count in counts), header
        (runs,) = re.findall(r"(\d+ runs) \(evaluation.json", done.stderr)
        assert header.endswith(runs)


def test_within_1_percent_of_best_counts_the_paths_of_a_distribution(mixture: Path) -> None:
    (distribution,) = load_suite(mixture.with_name("slow.yaml"))
    rewards = {"bbr": [[0.9, 0.2, 0.3, 0.4]], "cubic": [[0.5, 0.5, 0.5, 0.5]]}
    document = summarize(runs_of(rewards, ["slow"]), kinds_of(rewards), [distribution], range(4))
    shares = {entry["policy"]: entry["level_share"] for entry in document["policies"]}
    assert shares == {"bbr": 0.25, "cubic": 0.75}


@pytest.mark.parametrize("others", [None, "cubic", "cubic:beta=0.5"])
def test_an_evaluation_gives_the_policy_the_flows_of_its_training(
    quicgym: Command, suite: Path, others: str | None
) -> None:
    """`per_flow` trains what an evaluation measures, as do other_controllers in both places."""
    (scenario, _), bbr = load_suite(suite), EpisodeChoice(load_suite(suite)[0], 0, "bbr")
    chosen = {"per_flow": True} if others is None else {"other_controllers": others}
    environments = make_vec("tuning", 1, scenario=scenario, reward_interval_ms=100.0, **chosen)
    assert environments.num_envs == (3 if others is None else 1)
    batch, rewards, times_s = environments.batch, [], []
    batch.begin_chosen([0], [bbr])
    batch.selected[:] = True
    begin_s = batch.columns()["time_s"][0]
    while not (batch.truncations | batch.terminations).any():
        batch.step()
        rewards.append(float(batch.rewards[0]))
        times_s.append(float(batch.columns()["time_s"][0]))
    trained = np.average(rewards, weights=np.diff(times_s, prepend=begin_s))
    arguments = ("evaluate", "--policy", "bbr", "--suite", suite, "--seeds", "1", "--jobs", "1")
    option = () if others is None else ("--other-controllers", others)
    done = quicgym(*arguments, *option, "--out", "out")
    document = json.loads(Path("out/evaluation.json").read_text())
    assert document["policies"][0]["scenarios"][0]["reward"] == pytest.approx(trained)
    if others is None:
        assert "each policy has every flow that names no controller: 1 to 3 flows" in done.stdout
        assert document["policy_flows"] == [1, 3]
    else:
        one = f"each policy has one flow, the other flows without a controller run {others}"
        assert one in done.stdout
        assert document["other_controllers"] == others and document["policy_flows"] == [1, 1]


def test_several_suites_are_one_and_each_run_of_seed_0_has_its_packets(
    quicgym: Command, suite: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other.yaml"
    entry = {**yaml.safe_load(suite.read_text())[0], "name": "another"}
    other.write_text(yaml.safe_dump([entry]))
    done = quicgym(
        "evaluate", "--policy", "cubic", "--suite", suite, other, "--seeds", "2", "--out",
        tmp_path / "out", "--qlog", tmp_path / "logs", "--log-every", "20", "--format", "json",
    )  # fmt: skip
    document = json.loads(done.stdout)
    assert document["suite"] == f"{suite}, {other}"
    (policy,) = document["policies"]
    names = {scenario["scenario"] for scenario in policy["scenarios"]}
    assert names == {"ebcc-flows-3", "ebcc-bandwidth-5", "another"}
    folders = {path.name for path in (tmp_path / "logs").iterdir()}
    assert folders == {f"{name}--cubic--native--0" for name in names}
    logs = sorted(path.name for path in (tmp_path / "logs" / "another--cubic--native--0").iterdir())
    assert logs == [f"flow-{flow}-sender.sqlog" for flow in range(3)]


def test_json_is_the_document_and_earlier_results_are_kept(
    quicgym: Command, suite: Path, tmp_path: Path
) -> None:
    arguments = ("evaluate", "--policy", "bbr", "cubic", "--suite", suite, "--seeds", "2")
    arguments = (*arguments, "--jobs", "1")
    done = quicgym(*arguments, "--format", "json", "--out", "here", "--reward", "delay")
    document = json.loads(done.stdout)
    assert document == json.loads((tmp_path / "here/evaluation.json").read_text())
    assert document["suite"] == str(suite) and document["engine"] == "native"
    assert document["seeds"] == [0, 1] and document["reward"]["name"] == "delay"
    assert document["command"].startswith("quicgym evaluate --policy bbr")
    assert document["missing"] == []
    first, second = document["policies"]
    assert first["iqm_low"] <= first["iqm_reward"] <= first["iqm_high"]
    assert {cell["scenario"] for cell in first["scenarios"]} == {"ebcc-flows-3", "ebcc-bandwidth-5"}
    for cell in first["scenarios"]:
        assert set(EVALUATED) | {"scenario", "seeds", "reward_std", "intervals"} == set(cell)
        assert set(cell["intervals"]) == set(EVALUATED)
        low, high = cell["intervals"]["goodput_mbps"]
        assert low <= cell["goodput_mbps"] <= high
    every = {entry.name for entry in (*OF_FLOWS, *OF_RUNS)}
    assert set(first["intervals"]) == set(first["mean"]) == every
    intervals = pd.read_parquet(tmp_path / "here/intervals.parquet")
    assert len(intervals) == 2 * 2 * len(every)
    runs = pd.read_parquet(tmp_path / "here/results.parquet")
    for row in intervals.dropna().itertuples():
        of_cell = (runs["policy"] == row.policy) & (runs["scenario"] == row.scenario)
        expected = mean_interval(runs.loc[of_cell, row.metric], METRICS[row.metric].bounds)
        assert (row.mean, row.low, row.high) == pytest.approx(
            (expected.value, expected.low, expected.high), abs=1e-9
        )
    (difference,) = document["differences"]
    assert (difference["a"], difference["b"]) == (first["policy"], second["policy"])
    assert difference["iqm_difference"] == pytest.approx(first["iqm_reward"] - second["iqm_reward"])
    assert difference["iqm_difference"] >= 0
    assert {entry["level_share"] for entry in document["policies"]} <= {0.0, 0.5, 1.0}

    done = quicgym(*arguments, "--format", "csv", "--out", "here")
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    names = ["policy", "scenario", "engine", "seed", *EVALUATED]
    assert len(rows) == 8 and list(rows[0])[: len(names)] == names
    assert set(rows[0]) == {*names, *every}
    done = quicgym(*arguments, "--out", "columns", "--columns", "p95_queue_delay_ms", "p99_rtt_ms")
    assert "95th percentile" in done.stdout and "goodput" not in done.stdout
    assert "p99_rtt_ms" in quicgym(*arguments, "--columns", "p99_rtt", status=2).stderr
    (previous,) = (tmp_path / "here").glob("previous-*")
    assert json.loads((previous / "evaluation.json").read_text()) == document


def test_an_evaluation_begins_at_the_first_seed_that_is_given(
    quicgym: Command, suite: Path, tmp_path: Path
) -> None:
    arguments = ("evaluate", "--policy", "bbr", "--suite", suite, "--figures", "svg")
    quicgym(*arguments, "--seeds", "4", "--out", "all")
    done = quicgym(*arguments, "--first-seed", "2", "--seeds", "2", "--out", "later")
    every, later = (pd.read_parquet(tmp_path / out / "results.parquet") for out in ("all", "later"))
    assert later.attrs["seeds"] == [2, 3]
    rewards = every[every["seed"] >= 2].set_index(["scenario", "seed"])["reward"]
    assert later.set_index(["scenario", "seed"])["reward"].to_dict() == rewards.to_dict()
    document = json.loads((tmp_path / "later/evaluation.json").read_text())
    assert document["seeds"] == [2, 3] and document["missing"] == []
    assert document["policies"][0]["iqm_low"] is not None
    assert "the time series of seed 2" in done.stderr
    assert len(list((tmp_path / "later/series").iterdir())) == 2


@pytest.mark.usefixtures("jobs_here")
def test_resume_runs_what_is_missing_or_has_changed(suite: Path, tmp_path: Path) -> None:
    def run(**changes):
        arguments = {"seeds": 2, "resume": True, "directory": tmp_path / "out", **changes}
        return evaluate(["cubic"], suite, **arguments)

    first = run(resume=False)
    runs = tmp_path / "out/runs.jsonl"
    lines = runs.read_text().splitlines(keepends=True)
    runs.write_text("".join(lines[:-1]) + lines[-1][:30])  # killed in the middle of a line
    second = run()
    assert second.document == first.document
    assert len(read_finished(tmp_path / "out")) == 4
    run(reward=Reward(loss_weight=2))
    assert len(read_finished(tmp_path / "out")) == 8
    run(seeds=3)
    assert len(read_finished(tmp_path / "out")) == 10
    before = runs.read_text()
    assert run(seeds=3).document["seeds"] == [0, 1, 2]
    assert runs.read_text() == before


BAD_INPUT = {
    "--policy cubik": ["'cubik'", "did you mean cubic?"],
    "--policy bbr:gama=3": ["no parameter 'gama'", "did you mean gamma?"],
    "--suite heldot": ["'heldot'", "did you mean heldout?", "unknown suite, scenario"],
    "--suite ebcc-flow-3": ["'ebcc-flow-3'", "did you mean ebcc-flows-3?"],
    "--suite world": ["'world'", "did you mean worlds?"],
    "--from-s 10 --until-s 5": ["from_s = 10", "until_s = 5", "a later until_s"],
    "--suite ebcc-single ebcc-single": ["two of the scenarios have the name 'ebcc-single'"],
    "--suite controlled.yaml": ["each flow names its controller"],
    "--suite ibcca-single": ["wifi", "ns3"],
    "--pcap captures": ["--pcap: no run is on the engine ns3", "give --engine ns3"],
    "--qlog file/logs --suite ebcc-single --seeds 1": ["file/logs", "name another folder"],
    "--other-controllers cubik": ["other_controllers = 'cubik'", "did you mean cubic"],
    "--reward fair": ["--reward", "'fair'", "fair-throughput"],
    "--first-seed 18446744073709551615": ["--first-seed", "less than or equal to"],
}


@pytest.mark.parametrize("arguments", BAD_INPUT)
def test_bad_input(quicgym: Command, tmp_path: Path, arguments: str) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "controlled.yaml").write_text(
        "{base: ebcc-single, name: own, flows: [{controller: bbr}]}"
    )
    suite = [] if "--suite" in arguments else ["--suite", "ebcc-single"]
    done = quicgym("evaluate", *arguments.split(), *suite, status=2)
    says(done, *BAD_INPUT[arguments])
    assert not (tmp_path / "results").exists()


def test_failed_runs_are_named_the_rest_is_kept_and_resume_mends(
    quicgym: Command, suite: Path, tmp_path: Path
) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out/series").write_text("")  # so that seed 0 cannot keep its time series
    arguments = ("evaluate", "--policy", "bbr", "cubic", "--suite", suite, "--seeds", "2")
    arguments = (*arguments, "--jobs", "1", "--out", "out", "--resume")
    done = quicgym(*arguments, status=1)
    assert done.stderr.count("failed: policy ") == 4
    assert "bbr: no aggregate, because runs are missing: ebcc-flows-3 seed 0" in done.stderr
    assert "–" in done.stdout and len(read_finished(tmp_path / "out")) == 4
    assert json.loads((tmp_path / "out/evaluation.json").read_text())["missing"]
    (tmp_path / "out/series").unlink()
    done = quicgym(*arguments, "--format", "json")
    assert json.loads(done.stdout)["missing"] == []
    assert len(read_finished(tmp_path / "out")) == 8


def test_the_key_of_an_episode_is_all_that_its_result_depends_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = tmp_path / "link.trace"
    trace.write_text("1\n2\n")
    link = {"bottleneck": {"delay_ms": 10, "trace": trace}}
    data = load_scenario("ebcc-single").model_dump(exclude_none=True) | link
    data["reverse"] = {"delay_ms": 10, "rate_mbps": 10}
    scenario = Scenario.model_validate(data)
    job = RunJob(scenario, PolicyChoice("bbr"), "native", 0)
    shorter = scenario.model_copy(update={"duration_s": 3.0})
    changes: list[dict[str, Any]] = [
        {},
        {"steering": PolicyChoice("cubic")},
        {"steering": PolicyChoice("bbr", "0123")},
        {"steering": "bbr"},
        {"window": Window(1.0)},
        {"window": Window(until_s=1.0)},
        {"measures": ("utilisation",)},
        {"scenario": shorter},
        {"engine": "ns3"},
        {"seed": 1},
        {"reward": Reward("power")},
    ]
    keys = [replace(job, **change).key for change in changes]
    described = scenario.model_copy(update={"description": "other words"})
    assert replace(job, scenario=described).key == job.key
    trusted = PolicyChoice("bbr", trust_zip=True)
    assert replace(job, series_file=Path("kept.parquet"), steering=trusted).key == job.key
    trace.write_text("1\n3\n")
    keys.append(replace(job).key)
    monkeypatch.setattr(_core, "commit", "0123abcd")
    keys.append(replace(job).key)
    assert len(set(keys)) == len(keys) == 13


@pytest.mark.usefixtures("jobs_here")
def test_the_document_names_the_distributions_of_a_suite(suite: Path, tmp_path: Path) -> None:
    drawn = tmp_path / "drawn.yaml"
    own = load_distribution("single").model_copy(update={"duration_s": 1.0, "name": "own"})
    drawn.write_text(yaml.safe_dump(own.model_dump(mode="json", exclude_none=True)))
    for entries, expected in ((drawn, ["own"]), (suite, [])):
        evaluation = evaluate(["cubic"], entries, 1, tmp_path / entries.stem, keep_series=False)
        assert evaluation is not None and evaluation.document is not None
        assert evaluation.document["distributions"] == expected
        assert not (tmp_path / entries.stem / "series").exists()


def test_a_policy_that_is_evaluated_here_earns_the_reward_that_is_asked_for(
    suite: Path, tmp_path: Path
) -> None:
    policy, power = find_policy("cubic"), Reward("power")
    cells = episodes_of(load_suite(suite), 1)
    runs = play_all(policy, cells, threads=1, reward=power)
    keep_runs(runs, "cubic", str(suite), 1, tmp_path / "out", reward=power, command="c")
    frame = pd.read_parquet(tmp_path / "out/results.parquet")
    scenario = load_scenario("ebcc-flows-3").model_copy(update={"duration_s": 2.0})
    expected = play(policy, scenario, reward=power).metrics["reward"]
    assert frame["reward"][0] == expected != play(policy, scenario).metrics["reward"]
    document = json.loads((tmp_path / "out/evaluation.json").read_text())
    assert document["reward"]["name"] == "power" and document["seeds"] == [0]


def test_a_difference_has_the_intervals_of_the_bootstrap() -> None:
    rng = np.random.default_rng(1)
    scores = rng.normal(size=(2, 3, 5)) + [[[0.3]], [[0.0]]]
    names = ["ebcc-single", "ebcc-flows-3", "ebcc-flows-5"]
    rewards = {name: rows.tolist() for name, rows in zip(("bbr", "cubic"), scores, strict=True)}
    scenarios = [load_scenario(name) for name in names]
    kinds = dict.fromkeys(rewards, "baseline")
    (found,) = summarize(runs_of(rewards, names), kinds, scenarios, range(5))["differences"]
    first, second = (list(rewards).index(found[side]) for side in "ab")
    bootstrap = Bootstrap(scores)
    difference = bootstrap.difference(first, second)
    probability = bootstrap.probability_of_improvement(first, second)
    assert found == {
        "a": found["a"],
        "b": found["b"],
        "iqm_difference": difference.value,
        "low": difference.low,
        "high": difference.high,
        "probability_of_improvement": probability.value,
        "probability_low": probability.low,
        "probability_high": probability.high,
    }
    assert probability.low is not None and probability.high is not None
    assert probability.low < probability.value < probability.high


def test_aggregates_and_who_is_within_1_percent_of_best() -> None:
    names = ["ebcc-flows-3", "ebcc-single", "high-latency"]
    scenarios = [load_scenario(name) for name in names]
    rewards = {
        "bbr": [[0.9, 1.1], [-1.0, -1.0], [0.5, 0.5]],
        "cubic": [[0.5, 0.5], [-2.0, -2.0], [1.0, 1.0]],
        "ebcc:gamma=60": [[0.99, 0.995], [-1.009, -1.009], [0.98, 0.98]],
        "torn": [[1.0, 1.0], [1.0, np.nan], [1.0, 1.0]],
    }
    document = summarize(runs_of(rewards, names), kinds_of(rewards), scenarios, range(2))
    entries = {entry["policy"]: entry for entry in document["policies"]}
    assert entries["bbr"]["iqm_reward"] == pytest.approx((0.5 + 0.5 + 0.9 - 1.0) / 4)
    assert entries["bbr"]["level_share"] == pytest.approx(2 / 3)
    assert entries["cubic"]["level_share"] == pytest.approx(1 / 3)
    # Within 1% in the first two, also where rewards are negative; 2% short in the last.
    assert entries["ebcc:gamma=60"]["level_share"] == pytest.approx(2 / 3)
    assert entries["bbr"]["scenarios"][0]["reward_std"] == pytest.approx(np.sqrt(0.02))
    assert entries["bbr"]["mean"]["reward"] == pytest.approx(0.5 / 3)
    assert document["policies"][-1]["policy"] == "torn"
    for name in ("iqm_reward", "mean", "level_share"):
        assert entries["torn"][name] is None
    assert document["missing"] == [{"policy": "torn", "scenario": "ebcc-single", "seed": 1}]
    assert len(document["differences"]) == 3
    # Torn counts as learned, but has no aggregate: the best two are shown.
    shown = notable_differences(document)
    assert [(entry["a"], entry["b"]) for entry in shown] == [
        (document["policies"][0]["policy"], document["policies"][1]["policy"])
    ]
    without = summarize(
        runs_of({"random": rewards["bbr"]}, names), {"random": "random"}, scenarios, range(2)
    )
    assert without["policies"][0]["level_share"] is None


def test_a_metric_that_some_runs_lack_has_no_interval_of_another_mean() -> None:
    names = ["ebcc-flows-3", "ebcc-single"]
    runs = runs_of({"bbr": [[1.0, 1.0, 1.0], [1.0, 1.0, 1.0]]}, names)
    runs["mean_rtt_ms"] = [1000.0, np.nan, np.nan, 50.0, 52.0, 51.0]
    runs["jain"] = [np.nan, np.nan, np.nan, 0.5, 0.6, 0.7]  # of one scenario, with every seed
    scenarios = [load_scenario(name) for name in names]
    (entry,) = summarize(runs, {"bbr": "baseline"}, scenarios, range(3))["policies"]
    assert entry["mean"]["mean_rtt_ms"] == pytest.approx((1000 + 51) / 2)
    assert entry["intervals"]["mean_rtt_ms"] == [None, None]
    low, high = entry["intervals"]["jain"]
    assert low < entry["mean"]["jain"] < high


def test_a_trained_policy_is_learned_whatever_its_name(suite: Path, tmp_path: Path) -> None:
    runs = play_all(find_policy("window"), episodes_of(load_suite(suite), 1), threads=1)
    keep_runs(runs, "bbr", str(suite), 1, tmp_path / "out", reward=Reward(), command="c")
    (run,) = read_runs(tmp_path / "out")
    assert run.origin == "learned"


def test_the_best_learned_is_compared_with_the_best_baseline_and_the_best_static() -> None:
    names = ["ebcc-single"]
    rewards = {
        "bbr": [[0.1, 0.1]],
        "cubic": [[0.9, 0.9]],
        "ebcc:gamma=60": [[0.5, 0.5]],
        "mine.json": [[0.6, 0.6]],
        "worse.json": [[0.2, 0.2]],
    }
    document = summarize(
        runs_of(rewards, names), kinds_of(rewards), [load_scenario(names[0])], range(2)
    )
    assert [(entry["a"], entry["b"]) for entry in notable_differences(document)] == [
        ("cubic", "mine.json"),
        ("mine.json", "ebcc:gamma=60"),
    ]


def test_the_baselines_are_the_catalogue_but_for_what_something_else_steers() -> None:
    own = {name for name in controllers.names() if controllers.find(name).plugin is None}
    assert own == {*BASELINES, *STEERED}
    assert {policy_kind(name) for name in BASELINES} == {"baseline"}
    assert {policy_kind(name) for name in (*STEERED, "cubic:beta=0.5")} == {"static"}


def test_random_draws_depend_on_the_seed_alone() -> None:
    scenario = load_scenario("ebcc-flows-3").model_copy(update={"duration_s": 2.0})
    first, other = make_jobs(["random"], [scenario], 2)
    rewards = [job.run()["reward"] for job in (first, other, first)]
    assert rewards[0] == rewards[2] != rewards[1]


def test_two_time_series_never_share_a_file(tmp_path: Path) -> None:
    scenario = load_scenario("ebcc-single")
    policies = ["ebcc:gain_cycle=1/1", "ebcc:gain_cycle=1/0.5"]
    jobs = make_jobs(policies, [scenario], 2, series_in=tmp_path)
    assert [job.series_file is not None for job in jobs] == [True, False] * 2
    assert len({job.series_file for job in jobs}) == 3
    # Names that no scenario's checks let through.
    names = [Scenario.model_construct(**{**scenario.__dict__, "name": n}) for n in ("a/b", "a-b")]
    with pytest.raises(ScenarioError, match="a/b and bbr in a-b.*give one of them another name"):
        make_jobs(["bbr"], names, 1, series_in=tmp_path)


@pytest.fixture
def learned(tmp_path: Path) -> Path:
    """A policy that nobody trained, as training publishes it."""
    import torch

    from quicgym.agents.policies.learned import LearnedPolicy, save_policy
    from quicgym.agents.policies.networks import Actor, Architecture
    from quicgym.envs.decisions import Decisions

    torch.manual_seed(0)
    architecture, decisions = Architecture(), Decisions()
    actor = Actor(architecture, decisions)
    path = tmp_path / "mine.json"
    save_policy(path, LearnedPolicy("mine", decisions, actor), architecture, {"seed": 0})
    return path


def _session(leader: int) -> set[int]:
    """The processes of a session that are running."""
    found = set()
    for status in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, _, _, session = status.read_text().rpartition(")")[2].split()[:4]
            if int(session) == leader and state != "Z":
                found.add(int(status.parent.name))
    return found


def _wait_until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks for processes in /proc")
def test_workers_end_with_a_command_that_was_killed(tmp_path: Path) -> None:
    arguments = ("--policy", "bbr", "--suite", "ebcc-single", "--seeds", "5000", "--jobs", "2")
    process = start_process(tmp_path, "evaluate", *arguments, "--out", "out")
    runs = tmp_path / "out/runs.jsonl"
    _wait_until(lambda: runs.exists() and runs.stat().st_size > 0, "no run was finished")
    assert len(_session(process.pid)) > 2  # the command and its workers
    process.kill()
    process.wait()
    _wait_until(lambda: not _session(process.pid), "workers go on without the command")


def test_a_folder_with_a_training_is_left_alone(
    quicgym: Command, suite: Path, tmp_path: Path
) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run/run.json").write_text("{}")
    arguments = ("--policy", "cubic", "--suite", suite, "--seeds", "1", "--out", "run")
    assert "holds a run of `quicgym train`" in quicgym("evaluate", *arguments, status=2).stderr
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["run.json"]


def test_a_folder_with_results_of_another_command_is_left_alone(
    quicgym: Command, suite: Path, tmp_path: Path
) -> None:
    arguments = ("--policy", "cubic", "--suite", suite, "--seeds", "1", "--out", "out")
    (tmp_path / "out").mkdir()
    (tmp_path / "out/coexist.json").write_text("{}")
    assert "holds results of `quicgym coexist`" in quicgym("evaluate", *arguments, status=2).stderr
    (tmp_path / "out/coexist.json").rename(tmp_path / "out/mine.json")
    quicgym("evaluate", *arguments)
    before = {path: path.read_bytes() for path in (tmp_path / "out").glob("*.*")}
    again = ("baselines", "--scenario", "ebcc-single", "--out", "out", "--resume")
    assert "holds results of `quicgym evaluate`" in quicgym(*again, status=2).stderr
    assert {path: path.read_bytes() for path in (tmp_path / "out").glob("*.*")} == before


def test_tables_are_as_wide_as_their_numbers_on_any_terminal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    assert wide_console().width == 160
    monkeypatch.setenv("COLUMNS", "300")
    assert wide_console().width == 300


@pytest.mark.train
def test_a_learned_policy_s_weights_are_part_of_the_key(learned: Path) -> None:
    scenario = load_scenario("ebcc-flows-3").model_copy(update={"duration_s": 2.0})
    (job,) = make_jobs([str(learned)], [scenario], 1)
    assert job.run()["reward"] == play(find_policy(str(learned)), scenario).metrics["reward"]
    import torch

    from quicgym.agents.policies.learned import save_policy
    from quicgym.agents.policies.networks import Architecture

    unchecked = replace(job.steering, fingerprint=None)
    assert replace(job, steering=unchecked).key != job.key
    policy = find_policy(str(learned))
    with torch.no_grad():
        next(policy.actor.parameters()).add_(0.1)
    save_policy(learned, policy, Architecture(), {"seed": 0})
    (changed,) = make_jobs([str(learned)], [scenario], 1)
    assert changed.key != job.key


@pytest.mark.train
def test_a_policy_whose_files_change_during_the_evaluation_is_refused(learned: Path) -> None:
    from quicgym.agents.policies.learned import save_policy
    from quicgym.agents.policies.networks import Architecture

    scenario = load_scenario("ebcc-single").model_copy(update={"duration_s": 2.0})
    (job,) = make_jobs([str(learned)], [scenario], 1)
    save_policy(learned, find_policy(str(learned)), Architecture(), {"seed": 1})
    with pytest.raises(ScenarioError, match="mine.json: its files changed during the evaluation"):
        job.run()


@pytest.mark.train
def test_learned_policies_and_zips_on_the_command_line(
    quicgym: Command, learned: Path, suite: Path, tmp_path: Path
) -> None:
    from stable_baselines3 import PPO

    from quicgym.envs.sb3 import make_sb3

    PPO("MlpPolicy", make_sb3("quicgym/Tuning-v1", 1), device="cpu").save(tmp_path / "ppo.zip")
    arguments = ("evaluate", "--policy", "mine.json", "ppo.zip", "cubic", "--suite", suite)
    done = run_process(tmp_path, *arguments, "--trust-zip", "--seeds", "1", "--jobs", "1")
    assert done.stderr.count("runs code that is in the file") == 1  # the worker does not say it
    document = json.loads((tmp_path / "results/evaluation/evaluation.json").read_text())
    assert {entry["policy"]: entry["kind"] for entry in document["policies"]} == {
        "mine.json": "learned",
        "ppo.zip": "learned",
        "cubic": "baseline",
    }
    assert sum(" − " in line for line in done.stdout.splitlines()) == 1
