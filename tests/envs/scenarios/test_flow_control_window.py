"""The receiver's window of flows that state none follows the path and does not limit a flow."""

from __future__ import annotations

import pytest

import quicgym
from quicgym import Scenario
from quicgym.envs.scenarios.suites import load_suite


def held_out(suite: str, name: str) -> Scenario:
    return next(scenario for scenario in load_suite(suite) if scenario.name == name)


def with_window(scenario: Scenario, window_bytes: int) -> Scenario:
    flows = tuple(
        flow.model_copy(update={"flow_control_window_bytes": window_bytes})
        for flow in scenario.flows
    )
    return scenario.model_copy(update={"flows": flows})


@pytest.mark.parametrize("controller", ["bbr", "cubic"])
def test_flow_control_does_not_block_a_bulk_flow_on_a_long_fat_path(controller: str) -> None:
    run = quicgym.run(held_out("heldout-long-fat", "long-fat-110"), controller, seed=0)
    assert [total["blocked_events"] for total in run.totals] == [0] * len(run.totals)


def test_a_stated_window_still_limits() -> None:
    scenario = with_window(held_out("heldout-long-fat", "long-fat-110"), 2**20)
    run = quicgym.run(scenario, "cubic", seed=0)
    assert run.totals[0]["blocked_events"] > 0
    assert 1 < run.flows[0].blocked_percent <= 100
