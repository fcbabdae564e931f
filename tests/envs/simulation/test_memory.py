"""The memory of a run is estimated before anything is reserved, and too much is refused."""

from __future__ import annotations

import warnings
from typing import Any

import gymnasium
import pytest
from helpers.memory import peak_bytes

import quicgym
from quicgym.agents.evaluation.jobs import RunJob
from quicgym.envs import Scenario, ScenarioError, Simulation, load_scenario
from quicgym.envs.simulation.memory import (
    MAXIMUM_BYTES,
    estimate,
    fitting_interval_ms,
    total_bytes,
)
from quicgym.envs.simulation.run import Run


def scenario(duration_s: float = 1.0, rate_mbps: float = 10.0, **fields: Any) -> Scenario:
    fields = {
        "bottleneck": {"rate_mbps": rate_mbps, "delay_ms": 10, "queue": {"limit": 100}},
        "access": {"rate_mbps": 10 * rate_mbps, "delay_ms": 1},
        "flows": [{"controller": "cubic"}],
    } | fields
    return Scenario.model_validate({"name": "tried", "duration_s": duration_s, **fields})


TRANSFERS = {"controller": "cubic", "load_mbps": 9, "sizes": 300}
GREEDY = {"controller": "newreno", "parameters": {"slow_start": 0}, "count": 3}
SLOW = {"rate_mbps": 50, "delay_ms": 1}
KINDS: dict[str, tuple[Scenario, dict[str, Any]]] = {
    "flows": (scenario(0.05, flows=[{"controller": "bbr", "count": 3000}]), {}),
    "traces": (scenario(4000, 0.01), {"trace_interval_ms": 10.0}),
    "measurements": (scenario(100, flows=[{"controller": "cubic", "count": 400}]), {}),
    "short flows": (scenario(2.2, short_flows=[TRANSFERS]), {}),
    "in flight": (scenario(9, 500, access=SLOW, flows=[GREEDY]), {}),
    "deliveries": (scenario(10, 200), {"record_deliveries": True}),
    "events": (scenario(5, 200), {"record_events": True}),
}


ALLOCATOR_BYTES = 8 * 2**20
"""What a process's allocator takes beside, whatever the run."""


def run_it(kind: str) -> None:
    tried, kept = KINDS[kind]
    with Simulation(tried, marks=(), **({"trace_interval_ms": None} | kept)) as simulation:
        simulation.run()
        run = Run.of(simulation)
        run.to_dict()
        if simulation.traced:
            run.traces()
        if "record_deliveries" in kept:
            simulation.deliveries()
        if "record_events" in kept:
            simulation.events()


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_takes_no_more_than_the_estimate_and_not_much_less(kind: str) -> None:
    tried, kept = KINDS[kind]
    parts = estimate(tried, **kept)
    quicgym.run(scenario(0.1)).traces()  # what is imported and reserved only once
    taken = peak_bytes(lambda: run_it(kind))
    assert taken < total_bytes(parts) + ALLOCATOR_BYTES and total_bytes(parts) < 8 * taken, parts


LONG = scenario(1e6, 0.001)
REFUSED: dict[str, tuple[Scenario, dict[str, Any], str]] = {
    "traces": (
        LONG,
        {"trace_interval_ms": 10.0},
        r"tried: the run may take .* GiB of memory, and at most 2 GiB are allowed: .* GiB for "
        r"traces of 1 flows with trace_interval_ms = 10 for duration_s = 1e\+06; make trace_inter",
    ),
    "flows": (
        scenario(0.01, flows=[{"controller": "cubic", "count": 100_000}]),
        {"trace_interval_ms": None},
        "for 100000 flows; make flows.count smaller",
    ),
    "short flows": (
        scenario(100, 100, short_flows=[TRANSFERS | {"load_mbps": 90}]),
        {"trace_interval_ms": None},
        r"transfers of short_flows.0, which offer .* times what the link carries; make short_flows",
    ),
    "in flight": (
        scenario(
            1000,
            500,
            access=SLOW,
            flows=[{"controller": "cubic", "flow_control_window_bytes": 2**40}],
        ),
        {"trace_interval_ms": None},
        "may have in flight; make flow_control_window_bytes, the queues' limits",
    ),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_a_run_that_would_fill_the_machine_is_refused_at_once(kind: str) -> None:
    tried, kept, text = REFUSED[kind]
    with pytest.raises(ScenarioError, match=text):
        Simulation(tried, **kept)


def test_an_episode_is_refused_like_a_run() -> None:
    many = scenario(flows=[{}, {"controller": "cubic", "count": 99_999}])
    with pytest.raises(ScenarioError, match="for 100000 flows; make flows.count smaller"):
        gymnasium.make("quicgym/Window-v1", scenario=many).reset()


def test_no_scenario_of_quicgym_comes_near_the_limit() -> None:
    for name in quicgym.scenario_names():
        own = load_scenario(name)
        parts = estimate(own, "ns3" if own.wifi else "native", trace_interval_ms=10.0)
        assert total_bytes(parts) < MAXIMUM_BYTES / 20, name


def test_traces_of_a_long_job_have_fewer_rows_and_a_message(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tried = scenario(100, 0.1)
    assert fitting_interval_ms(tried, "native", 10.0) == 10.0
    limit = total_bytes(estimate(tried, trace_interval_ms=10.0)) * 0.7
    monkeypatch.setattr("quicgym.envs.simulation.memory.MAXIMUM_BYTES", limit)
    with pytest.raises(ScenarioError, match="trace_interval_ms larger"):
        quicgym.run(tried)
    with pytest.warns(UserWarning, match="a row every 20 ms instead of 10 ms"):
        run = RunJob(tried, None, "native", 0).carry_out(traced=True)
    assert len(run.trace(0)) == 5000
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        RunJob(tried, None, "native", 0).carry_out()
