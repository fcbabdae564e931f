"""The study of what the papers leave open."""

from pathlib import Path

import pytest
import typer
import yaml
from conftest import Command
from helpers.papers import SMALL
from reproduction import main, varied

from quicgym.benchmarks.papers.paper import PaperError, Variation, load_paper, paper_names
from quicgym.envs import Scenario, load_scenario

QUEUE_5 = {"name": "queue 5", "fields": {"bottleneck.queue.limit": 5}}
WATCHED = {"scenario": "ebcc-single", "algorithm": "newreno", "metric": "mean_queue_delay_ms"}


def write(folder: Path, **changes: object) -> None:
    (folder / "small.yaml").write_text(yaml.safe_dump({**SMALL, **changes}, sort_keys=False))


def test_claims_are_judged_again_under_each_variation(quicgym: Command, tmp_path: Path) -> None:
    write(tmp_path, variations=[QUEUE_5], watched=[WATCHED])
    done = quicgym("small.yaml", "--seeds", "2", main=lambda: typer.run(main))
    lines = done.stdout.splitlines()
    assert "| claim | as the scenarios have it | queue 5 |" in lines
    assert "| true | holds | no |" in lines  # with such a short queue NewReno's RTT is as low
    _, wide = [line for line in lines if line.startswith("| as the scenarios have it |")]
    total, short = [line for line in lines if line.startswith("| queue 5 |")]
    assert total == "| queue 5 | 0 | 0 | 2 | 0 |"
    delays = [float(line.split("|")[2].split("±")[0]) for line in (wide, short)]
    assert delays[0] > 5 * delays[1] > 0


def test_parameters_of_a_variation_are_added_to_the_scenarios() -> None:
    base = load_scenario("ebcc-single")
    data = base.model_dump(exclude_none=True)
    data["controller_parameters"] = {"ebcc": {"gamma": 20.0, "beta": 0.4}}
    scenario = type(base).model_validate(data)
    variation = Variation(name="v", controller_parameters={"ebcc": {"beta": 0.7}})
    assert varied(scenario, variation).controller_parameters == {
        "ebcc": {"gamma": 20.0, "beta": 0.7}
    }
    with pytest.raises(PaperError, match="'w'"):
        varied(base, Variation(name="w", controller_parameters={"ebcc": {"gama": 1.0}}))


def test_a_field_of_one_controller_does_not_reach_the_runs_of_another() -> None:
    variation = Variation(
        name="v",
        fields={"flows.0.module_habits": {"losses_by_count": True}},
        controller_fields={"newreno": {"flows.0.module_habits.probe_timeout_ms": 10}},
    )
    base = load_scenario("ebcc-single")
    habits = [varied(base, variation, name).flows[0].module_habits for name in ("newreno", "bbr")]
    assert [habit.probe_timeout_ms for habit in habits if habit] == [10, 0]


def test_fields_of_one_scenario_and_of_one_flow_can_vary() -> None:
    variation = Variation(
        name="v",
        fields={"bottleneck.queue.limit": 7, "flows.0.burst_retransmission": True},
        scenario_fields={"ebcc-single": {"bottleneck.queue.limit": 9}},
    )
    for name, limit in (("ebcc-single", 9), ("ebcc-flows-3", 7)):
        scenario = varied(load_scenario(name), variation)
        assert scenario.queue_limit == limit
        assert scenario.flows[0].burst_retransmission


def test_every_variation_that_comes_with_quicgym_changes_a_scenario_of_its_paper() -> None:
    papers = [paper for paper in map(load_paper, paper_names()) if paper.variations]
    assert len(papers) > 3
    for paper in papers:
        checks = [check for claim in paper.claims for check in claim.checks]
        scenarios = [load_scenario(name) for name in sorted({check.within[0] for check in checks})]
        for variation in paper.variations:
            assert any(changes(variation, scenario) for scenario in scenarios), variation.name


def changes(variation: Variation, scenario: Scenario) -> bool:
    try:
        return varied(scenario, variation) != scenario
    except (PaperError, KeyError):  # it is of other scenarios
        return False
