"""A run that would fill the machine is refused before anything is reserved."""

from __future__ import annotations

import warnings
from typing import Any

import gymnasium
import pytest

import quicgym
from quicgym.agents.evaluation.jobs import RunJob
from quicgym.envs import Scenario, ScenarioError
from quicgym.envs.simulation.run_size import fitting_interval_ms


def scenario(duration_s: float, rate_mbps: float, **fields: Any) -> Scenario:
    fields = {
        "bottleneck": {"rate_mbps": rate_mbps, "delay_ms": 10, "queue": {"limit": 100}},
        "access": {"rate_mbps": 10 * rate_mbps, "delay_ms": 1},
        "flows": [{"controller": "cubic"}],
    } | fields
    return Scenario.model_validate({"name": "tried", "duration_s": duration_s, **fields})


MANY = "tried: has 100,000 flows, and a run has at most 20,000; make flows.count smaller"


def test_too_many_flows_are_refused_in_a_run_and_in_an_episode() -> None:
    with pytest.raises(ScenarioError, match=MANY):
        quicgym.run(scenario(0.01, 10, flows=[{"controller": "cubic", "count": 100_000}]))
    many = scenario(0.01, 10, flows=[{}, {"controller": "cubic", "count": 99_999}])
    with pytest.raises(ScenarioError, match=MANY):
        gymnasium.make("quicgym/Window-v1", scenario=many).reset()


def test_traces_of_a_long_job_have_fewer_rows_and_a_message(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tried = scenario(100, 0.1)
    assert fitting_interval_ms(tried, 10.0) == 10.0
    monkeypatch.setattr("quicgym.envs.simulation.run_size.MOST_ROWS", 7000)
    text = "tried: traces of 1 flows with trace_interval_ms = 10 .* make trace_interval_ms larger"
    with pytest.raises(ScenarioError, match=text):
        quicgym.run(tried)
    with pytest.warns(UserWarning, match="a row every 20 ms instead of 10 ms"):
        run = RunJob(tried, None, "native", 0).carry_out(traced=True)
    assert len(run.trace(0)) == 5000
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        RunJob(tried, None, "native", 0).carry_out()
