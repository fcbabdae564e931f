"""The campaign: what is wrong is found, and named with the number that repeats it."""

from __future__ import annotations

import math
import time
from typing import Any

import pytest
from campaign import __main__ as campaign
from campaign import scenarios
from campaign.found import Found

from quicgym.envs import Simulation, load_scenario
from quicgym.envs.simulation.simulation import SimulatedFlow


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


def test_failures_are_named_with_the_number_that_repeats_them(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--part", "scenarios", "--budget-s", "0.001"]
    assert campaign.main(arguments) == 0
    assert ", 0 failures in" in capfd.readouterr().err

    def failing(number: int) -> Found:
        raise ArithmeticError(f"in\nnumber {number}")

    monkeypatch.setattr(scenarios, "check", failing)
    assert campaign.main([*arguments, "--first", "7"]) == 1
    assert "7: ArithmeticError: in number 7" in capfd.readouterr().err


def test_several_processes_check_each_number_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scenarios, "check", lambda number: Found({"numbers": 1}, [str(number)]))
    found = scenarios.run(3, time.monotonic(), 2)
    assert found.counts == {"numbers": 2 * scenarios.CHUNK}
    assert found.failures == [str(3 + number) for number in range(2 * scenarios.CHUNK)]
