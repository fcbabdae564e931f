"""The reliability campaign: its parts find what is wrong, and its report grows."""

from __future__ import annotations

import json
import math
from collections.abc import Set
from pathlib import Path
from typing import Any

import pytest
from campaign import __main__ as campaign
from campaign import fuzzing, scenarios
from campaign.part import Found, Part
from campaign.report import Report, Run

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


def test_a_part_spends_its_time_on_goals_that_are_not_reached(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[set[str]] = []

    def run(first: int, until: float, jobs: int, wanted: Set[str]) -> tuple[Found, int]:
        asked.append({*wanted})
        return Found({"red": 5}), first + 1

    part = Part("part", "title", {"red": 10, "blue": 10}, 1.0, run)
    monkeypatch.setattr(campaign, "PARTS", [part])
    page = tmp_path / "page.md"
    for _ in range(3):
        assert campaign.main(["--budget-s", "0.01", "--report", str(page)]) == 0
    assert asked == [{"red", "blue"}, {"red", "blue"}, {"blue"}]


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
