"""The reliability campaign: its parts find what is wrong, and its report grows."""

from __future__ import annotations

import json
import math
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from campaign import __main__ as campaign
from campaign import (
    cluster,
    commands,
    faults,
    fuzzing,
    kills,
    memory,
    overload,
    peers,
    scenarios,
    signals,
    soak,
)
from campaign.part import Found, Part
from campaign.report import Report, Run

from quicgym.agents.algorithms import registry
from quicgym.cli import group
from quicgym.envs import Simulation, load_scenario
from quicgym.envs.simulation.simulation import SimulatedFlow

FIRST = 1000


def test_the_first_scenarios_hold_what_must_hold() -> None:
    found = Found()
    for number in range(40):
        found.add(scenarios.check(number))
    assert found.counts["scenarios"] == 40
    assert found.counts["packets"] > 10_000
    assert found.failures == []


def test_a_run_that_takes_more_than_its_estimate_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    assert memory.check(0).failures == []
    monkeypatch.setattr(memory, "SLACK_BYTES", -(2**40))
    assert "bytes were taken" in memory.check(0).failures[0]


def test_a_relay_that_takes_too_much_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    if lacking := overload.PART.missing():
        pytest.skip(lacking)
    assert overload.check(0).failures == []
    monkeypatch.setattr(overload, "MOST_BYTES", 1)
    assert "the relay took" in overload.check(0).failures[0]


def test_a_process_that_a_link_leaves_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    if lacking := signals.PART.missing():
        pytest.skip(lacking)
    monkeypatch.setattr(signals, "left_after", lambda mark, seconds: [1])
    (failure,) = signals.check(0).failures
    assert failure.endswith("1 processes are left")


def test_an_agent_that_hostile_peers_keep_from_its_simulation_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = peers.check(0)
    assert found.failures == [] and found.counts["hostile peers"] > 0
    monkeypatch.setattr("quicgym.envs.ns3gym.connection._INTRODUCTION_S", math.inf)
    monkeypatch.setattr(peers, "PATIENCE_S", 1.0)
    monkeypatch.setattr(peers, "PEERS", {"silent": b""})
    monkeypatch.setattr(peers, "COUNTS", (16, 17))
    assert "no SimInitMsg within" in peers.check(0).failures[0]


def test_a_number_is_one_scenario() -> None:
    for number in range(8):
        assert scenarios.random_scenario(number) == scenarios.random_scenario(number)
    assert scenarios.random_scenario(0) != scenarios.random_scenario(2)


BROKEN: dict[str, tuple[dict[str, Any], str]] = {
    "NaN": ({"rtt_p95_seconds": math.nan}, "rtt_p95_seconds = nan"),
    "negative": ({"window_seconds": -1.0}, "window_seconds = -1.0"),
    "conservation": ({"sent_packets": 10}, "more packets came out than went in"),
    "bytes": ({"goodput_bytes": 2**50}, "goodput_bytes = 1125899906842624 > received_bytes"),
    "capacity": ({"received_bytes": 2**50, "sent_bytes": 2**51}, "bits came through"),
    "RTT": ({"lowest_rtt": 1}, "RTT 1 ns below"),
    "mean": ({"rtt_sum_seconds": 0.0}, "the mean RTT is below the lowest"),
}


@pytest.mark.parametrize("what", BROKEN)
def test_what_cannot_be_is_found(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    change, text = BROKEN[what]
    scenario = load_scenario("ebcc-single").model_copy(update={"duration_s": 2.0})
    simulation = Simulation(scenario, controllers="newreno", marks=())
    simulation.run()
    assert scenarios._violations(scenario, simulation) == []
    told = SimulatedFlow.statistics.fget
    assert told is not None
    monkeypatch.setattr(SimulatedFlow, "statistics", property(lambda flow: told(flow) | change))
    assert any(text in found for found in scenarios._violations(scenario, simulation))


def test_runs_of_other_bytes_are_told_apart() -> None:
    scenario = load_scenario("ebcc-single").model_copy(update={"duration_s": 2.0})
    lossy = {"loss": {"kind": "bernoulli", "probability": 0.01}}
    scenario = scenario.model_copy(
        update={"bottleneck": scenario.bottleneck.model_copy(update=lossy)}  # type: ignore[union-attr]
    )
    runs = []
    for seed in (1, 1, 2):
        runs.append(Simulation(scenario, seed=seed, controllers="newreno", record_deliveries=True))
        runs[-1].run()
    assert scenarios._differences(runs[0], runs[1]) == []
    assert "deliveries differ" in scenarios._differences(runs[0], runs[2])[0]


def test_a_report_goes_on_with_the_next_number_and_names_failures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "reports/reliability.md"
    arguments = ["--part", "scenarios", "--budget-s", "0.001", "--report", str(page)]
    assert campaign.main(arguments) == 0
    assert "There was no failure." in page.read_text()

    def failing(number: int) -> Found:
        raise ArithmeticError(f"in\nnumber {number}")

    monkeypatch.setattr(scenarios, "check", failing)
    assert campaign.main(arguments) == 1
    first, second = json.loads(page.with_suffix(".json").read_text())["runs"]
    assert (first["first"], first["counts"]["scenarios"]) == (0, first["after"])
    assert second["first"] == first["after"]
    assert second["failures"][0].endswith(f"ArithmeticError: in number {first['after']}")
    assert f"ArithmeticError: in number {first['after']}" in page.read_text()
    assert "ArithmeticError" in capfd.readouterr().err
    before = page.read_bytes()
    assert campaign.main([*arguments, "--first", "7"]) == 1  # repeats, and reports nothing
    assert page.read_bytes() == before


def test_several_processes_check_each_number_once(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    arguments = ["--part", "scenarios", "--budget-s", "0.5", "--jobs", "2", "--report", str(page)]
    assert campaign.main(arguments) == 0
    (run,) = json.loads(page.with_suffix(".json").read_text())["runs"]
    assert run["counts"]["scenarios"] == run["after"] - run["first"]


INITED = "#8\tREAD units: 20\n#16\tpulse  cov: 44 ft: 60 exec/s: 5\n#20\tINITED cov: 45 ft: 69\n"


@pytest.mark.parametrize(
    ("said", "share"),
    [
        (INITED + "#30\tNEW    cov: 45 ft: 70\n#1020\tDONE   cov: 45 ft: 70\n", 1.0),
        (INITED + "#270\tNEW    cov: 46 ft: 70\n#1020\tDONE   cov: 46 ft: 71\n", 0.75),
        (INITED + "#1020\tNEW    cov: 50 ft: 99\n", 0.0),
        ("no program\n", 0.0),
    ],
)
def test_the_time_without_a_new_edge_begins_after_the_last_one(said: str, share: float) -> None:
    assert fuzzing._quiet_share(said) == share


def test_a_count_that_begins_anew_forgets_earlier_runs(tmp_path: Path) -> None:
    part = Part("part", "title", {"quiet": 100}, 1.0, lambda *_: (Found(), 0))
    report = Report(tmp_path / "page.md")
    runs: list[tuple[int, list[str], str]] = [
        (30, [], "30 | 108,000 per hour | 2 s"),
        (20, [], "50 | 90,000 per hour | 2 s"),
        (4, ["quiet"], "4 | begins anew | at least 96"),
        (6, [], "10 | begins anew | at least 90"),
        (95, [], "105 | begins anew | none"),
    ]
    for seconds, restarted, said in runs:
        run = Run("part", 0, 1, 1.0, 1.0, "version", {"quiet": seconds}, restarted=restarted)
        report.add(run, [part])
        assert f"| part | 100 quiet | {said} |" in report.page([part])


def test_a_part_spends_its_time_on_goals_that_are_not_reached(tmp_path: Path) -> None:
    if lacking := soak.PART.missing():
        pytest.skip(lacking)
    page = tmp_path / "page.md"
    reached = {name: goal for name, goal in soak.PART.goals.items() if name != "resets"}
    Report(page).add(Run("soak", 0, 1, 60.0, 1.0, "version", reached), [soak.PART])
    arguments = ["--part", "soak", "--budget-s", "0.01", "--jobs", "2", "--report", str(page)]
    assert campaign.main(arguments) == 0
    _, run = json.loads(page.with_suffix(".json").read_text())["runs"]
    assert run["counts"] == {"resets": 128} and run["after"] == 3
    assert run["spent_s"].keys() == {"resets"}


def test_the_rate_of_a_count_is_of_its_own_time(tmp_path: Path) -> None:
    part = Part("part", "title", {"red": 100, "blue": 100}, 1.0, lambda *_: (Found(), 0))
    spent_s = {"red": 3.6, "blue": 7.2}
    run = Run("part", 0, 1, 60.0, 10.8, "version", {"red": 10, "blue": 10}, spent_s=spent_s)
    rest = Run("part", 1, 2, 60.0, 7.2, "version", {"red": 20})  # of no known time
    page = Report(tmp_path / "page.md")
    page.runs = [run, rest]
    assert "100 red | 30 | 10,000 per hour | 25 s |" in page.page([part])
    assert "100 blue | 10 | 5,000 per hour | 65 s |" in page.page([part])
    page.runs = [rest]
    assert "100 red | 20 | 10,000 per hour | 29 s |" in page.page([part])


@pytest.mark.long
def test_a_killed_command_is_resumed_and_compared() -> None:
    command = next(entry for entry in commands.commands() if entry.name == "baselines")
    uninterrupted = commands.Uninterrupted()
    expected, usual_s = uninterrupted.of(command)
    assert kills.kill_once(command, 1, expected, usual_s) == []
    (wrong,) = kills.kill_once(command, 2, "another result", 0.01)
    assert wrong.startswith("2: baselines: result = {")


@pytest.mark.long
@pytest.mark.skipif(shutil.which("cc") is None, reason="compiles a library")
def test_what_a_kill_before_a_step_leaves_is_resumed() -> None:
    expected, _ = commands.Uninterrupted().of(commands.EVALUATE)
    with faults.copies(commands.EVALUATE, 1) as (folder, made):
        assert 12 < len(made) < faults.COPIES  # all steps of the command
        assert not (made[0] / "runs.jsonl").exists() and (made[12] / "runs.jsonl").exists()
        for image in (made[0], made[12], made[-1]):
            assert faults.resume(commands.EVALUATE, folder, image, expected) == ""
        wrong = faults.resume(commands.EVALUATE, folder, made[1], "another result")
        assert wrong.startswith("result = {")
    with faults.copies(commands.EVALUATE, 3, count=2) as (folder, some):
        assert len(some) == 2
    assert not folder.exists()


def test_all_of_a_command_are_stopped_for_a_copy_whatever_their_group() -> None:
    code = "import os, time; os.fork() or os.setpgrp(); print(flush=True); time.sleep(60)"
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, start_new_session=True, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.read(2)  # a line of each of the two
        faults.stop_session(process.pid)
        assert sorted(faults.session(process.pid).values()) == ["T", "T"]
        for each in faults.session(process.pid):
            os.kill(each, signal.SIGKILL)


@pytest.mark.long
@pytest.mark.train
def test_a_cluster_that_loses_a_node_gives_the_result_of_a_whole_one() -> None:
    with cluster.cluster() as nodes:
        undisturbed = commands.Uninterrupted("--address", nodes.address)
        for command in cluster.COMMANDS:
            expected, usual_s = undisturbed.of(command)
            assert expected == commands.Uninterrupted().of(command)[0]  # and of no cluster
            found = Found()
            while not found.counts.get("kills of a node"):  # a fast one may end before the kill
                number = sum(found.counts.values())
                found.add(cluster.kill_a_node(nodes, command, number, expected, usual_s))
            assert found.failures == []
        _, usual_s = undisturbed.of(commands.EVALUATE)
        found = cluster.kill_a_node(nodes, commands.EVALUATE, 9, "another result", usual_s)
        assert "in place of another result" in found.failures[0]


def test_where_two_results_differ_is_said() -> None:
    one = {"a": [1, {"b": 2.5}], "c": 3}
    assert commands.difference(one, {"a": [1, {"b": 2.5}], "c": 3}) == ""
    other = {"a": [1, {"b": 2.75}], "c": 3}
    assert commands.difference(one, other) == "result.a.1.b = 2.75 in place of 2.5"
    assert commands.difference(one, {"a": [1]}) == "result.a = [1] in place of [1, {'b': 2.5}]"
    assert commands.difference({}, {"d": 0}) == "result.d = 0 in place of None"


def test_every_command_that_resumes_and_every_algorithm_has_its_kills() -> None:
    known = group().commands
    resuming = {
        name
        for name, command in known.items()
        if any("--resume" in parameter.opts for parameter in command.params)
    }
    killed = commands.commands()
    assert resuming <= {command.arguments[0] for command in killed}
    trained = {command.name for command in killed if command.arguments[0] == "train"}
    assert trained == {f"train {name}" for name in registry.names()}
