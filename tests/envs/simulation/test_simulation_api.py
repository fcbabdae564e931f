"""Simulations from Python: what they take and return, and what is too large for a run."""

from __future__ import annotations

import time
import warnings
from typing import Any

import gymnasium
import numpy as np
import pytest
from helpers.environments import StoppedInTheMiddle

import quicgym
from quicgym import Ns3MissingError, Scenario, ScenarioError, Simulation, load_scenario
from quicgym.agents.evaluation.jobs import RunJob
from quicgym.envs.simulation import simulation as simulation_module
from quicgym.envs.simulation.run_size import fitting_interval_ms
from quicgym.envs.simulation.simulation import MODES

ENGINES = ["native", pytest.param("ns3", marks=pytest.mark.ns3)]


def variant(**fields: Any) -> Scenario:
    """ebcc-single with other fields; those of the bottleneck beside its own."""
    base = load_scenario("ebcc-single").model_dump()
    if "delay_ms" not in (link := fields.get("bottleneck", {})):
        fields["bottleneck"] = {**base["bottleneck"], **link}
    return Scenario.model_validate({**base, **fields})


def test_importing_quicgym_is_light() -> None:
    import subprocess
    import sys

    heavy = {"matplotlib", "pandas", "ray", "rich", "scipy", "torch", "typer"}
    code = "import quicgym, sys; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert not heavy & set(loaded.stdout.split())


@pytest.mark.parametrize("engine", ENGINES)
def test_step_by_step(engine: str) -> None:
    with Simulation("ebcc-flows-3", engine, seed=1, controllers="ebcc") as simulation:
        assert simulation.time == 0
        assert [flow.name for flow in simulation.flows] == ["flow-1", "flow-2", "flow-3"]
        simulation.run_until(2.5)
        assert simulation.time == 2.5
        first = simulation.flows[0]
        sent = first.statistics["sent_packets"]
        assert sent > 0
        assert first.snapshot["mode"] in MODES
        assert first.parameters["gamma"] == 30
        assert isinstance(first.parameters["gain_cycle"], list)
        first.set_parameters(gamma=20, gain_cycle=[1.1, 0.9, 1])
        assert first.parameters["gamma"] == 20
        assert first.parameters["gain_cycle"] == [1.1, 0.9, 1]
        assert simulation.flows[1].parameters["gamma"] == 30
        simulation.run_until(4)
        assert first.statistics["sent_packets"] > sent


@pytest.mark.parametrize("engine", ENGINES)
def test_traces(engine: str) -> None:
    with Simulation("ebcc-single", engine, controllers="bbr", trace_interval_ms=50) as simulation:
        simulation.run_until(5)
        trace = simulation.trace("flow-1")
        queue = simulation.queue_trace()
        total = simulation.flows[0].statistics
    assert np.array_equal(np.unique(np.diff(trace["time"])), [50_000_000])
    assert trace["time"][-1] == 5_000_000_000
    for name in ("sent_bytes", "delivered_bytes", "lost_bytes", "received_bytes"):
        assert (np.diff(trace[name].astype(np.int64)) >= 0).all()
    last = trace[-1]
    assert last["sent_bytes"] == total["sent_bytes"]
    assert last["received_bytes"] == total["received_bytes"]
    assert last["delivered_bytes"] <= last["received_bytes"] <= last["sent_bytes"]
    assert 100e6 <= last["rtt"] <= 250e6
    assert 10 * 1400 <= last["window_bytes"] <= 1_000_000
    assert 0.1e6 < last["pacing_rate"] < 10e6
    assert set(trace["mode"]) <= set(range(len(MODES)))
    assert queue["packets"].max() <= 100
    assert (queue["bytes"] <= queue["packets"] * 1430).all()


@pytest.mark.parametrize("engine", ENGINES)
def test_deliveries(engine: str) -> None:
    with Simulation(
        "ebcc-flows-3", engine, 0, ["bbr", "cubic", "newreno"], record_deliveries=True
    ) as simulation:
        simulation.run_until(2)
        deliveries = simulation.deliveries()
    assert set(deliveries["flow"]) == {0, 1, 2}
    assert (np.diff(deliveries["time"]) >= 0).all()
    assert deliveries["time"].min() > 1_000_000_000
    with Simulation("ebcc-single", engine, 0, "bbr", trace_interval_ms=None) as simulation:
        simulation.run_until(2)
        assert len(simulation.deliveries()) == 0
        assert len(simulation.trace(0)) == 0


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"engine": "nativ"}, "unknown engine 'nativ'; did you mean native"),
        ({"controllers": "cubik"}, "did you mean cubic"),
        ({"controllers": None}, "1 of its flows name no controller .*0 are given"),
        (
            {"scenario": "ebcc-flows-3", "controllers": ["bbr", "bbr"]},
            "3 of its flows .*2 are given",
        ),
        ({"trace_interval_ms": -1}, "trace_interval_ms = -1"),
        ({"trace_interval_ms": 1e-7}, "trace_interval_ms = 1e-07"),
        ({"trace_interval_ms": float("nan")}, "trace_interval_ms = nan: give a number from"),
        ({"trace_interval_ms": "10"}, "trace_interval_ms = '10': give a number from"),
        ({"seed": -1}, "seed = -1"),
        ({"pcap_prefix": "x"}, "cannot do pcap_prefix; use the engine ns3"),
    ],
)
def test_bad_arguments_are_refused(arguments: dict[str, Any], text: str) -> None:
    with pytest.raises(ScenarioError, match=text):
        Simulation(**{"scenario": "ebcc-single", "controllers": "bbr", **arguments})


def test_bad_calls_are_refused() -> None:
    simulation = Simulation("ebcc-flows-3", controllers="ebcc")
    simulation.run_until(2)
    flow = simulation.flows[0]
    for call, text in (
        (lambda: simulation.run_until(1), "lies before the current time"),
        (lambda: simulation.trace("flow-4"), "no flow 'flow-4'; did you mean flow-"),
        (lambda: simulation.trace(3), "no flow 3; there are 3, counted from 0"),
        (lambda: flow.set_parameters(gama=1), "gamma"),
        (lambda: flow.set_parameters(gamma=-1), "gamma"),
    ):
        with pytest.raises(ValueError, match=text):
            call()
    assert flow.parameters["gamma"] == 30
    assert len(simulation.trace("flow-3")) == len(simulation.trace(2))


def test_without_ns3_the_error_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulation_module, "find_spec", lambda name: None)
    assert simulation_module.ns3_version() is None
    with pytest.raises(Ns3MissingError, match="pip install . ./sim/ns3"):
        Simulation("ebcc-single", "ns3", controllers="bbr")


def test_a_flow_keeps_its_own_controller_and_parameters() -> None:
    own = {"name": "a", "controller": "ebcc", "parameters": {"gamma": 12.5}}
    simulation = Simulation(variant(flows=[own, {"name": "b"}]), controllers="newreno")
    assert [flow.controller for flow in simulation.flows] == ["ebcc", "newreno"]
    assert simulation.flows[0].parameters["gamma"] == 12.5


def test_controller_parameters_are_for_flows_that_are_given_the_controller() -> None:
    parameters = {"ebcc": {"gamma": 12.5, "gain_cycle": [1.5, 0.5]}, "cubic": {"beta": 0.6}}
    flows = [{"name": "named", "controller": "ebcc"}, {"count": 2}]
    scenario = variant(controller_parameters=parameters, flows=flows)
    simulation = Simulation(scenario, controllers=["ebcc", "newreno"])
    named, given, other = simulation.flows
    assert named.parameters["gamma"] == 30
    assert given.parameters["gamma"] == 12.5
    assert given.parameters["gain_cycle"] == [1.5, 0.5]
    assert given.parameters["beta"] == named.parameters["beta"]
    assert other.controller == "newreno"
    assert Simulation(scenario, controllers="cubic").flows[1].parameters["beta"] == 0.6


@pytest.mark.ns3
def test_controller_parameters_are_not_for_tcp() -> None:
    scenario = variant(
        controller_parameters={"cubic": {"beta": 0.6}}, flows=[{"transport": "tcp"}, {}]
    )
    with Simulation(scenario, "ns3", controllers="cubic") as simulation:
        assert simulation.flows[0].parameters == {}
        assert simulation.flows[1].parameters["beta"] == 0.6


@pytest.mark.parametrize("engine", ENGINES)
def test_reading_from_another_thread_is_refused_while_it_runs(engine: str) -> None:
    stopped = StoppedInTheMiddle()
    with Simulation("ebcc-single", engine, controllers=stopped.controller) as simulation:
        with stopped.during(lambda: simulation.run_until(4)):
            for read in (
                lambda: simulation.trace(0),
                lambda: simulation.flows[0].statistics,
                lambda: simulation.run_until(5),
                *([simulation.close] if engine == "ns3" else []),
            ):
                with pytest.raises(RuntimeError, match="another thread"):
                    read()
        assert simulation.time == 4
        simulation.run_until(5)
        assert simulation.flows[0].statistics["sent_packets"] > 0


def test_numbers_of_numpy_are_parameters() -> None:
    with Simulation("ebcc-single", controllers="ebcc") as simulation:
        simulation.flows[0].set_parameters(gamma=np.float32(3), beta=np.float64(0.5))
        assert simulation.flows[0].parameters["gamma"] == 3


@pytest.mark.parametrize("engine", ENGINES)
def test_a_flow_is_traced_from_its_start(engine: str) -> None:
    flow = {"name": "later", "controller": "newreno", "start_s": 0.5}
    with Simulation(variant(flows=[flow]), engine, trace_interval_ms=100) as simulation:
        simulation.run_until(1)
        assert simulation.trace("later")["time"].tolist() == [
            100_000_000 * step for step in range(5, 11)
        ]


def cpu_time_of_traces(flows: int) -> float:
    """Of asking for 200 traces, in s: the least of five times."""
    scenario = load_scenario("ebcc-single")
    many = scenario.flows[0].model_copy(update={"count": flows, "controller": "newreno"})
    simulation = Simulation(scenario.model_copy(update={"flows": (many,)}), trace_interval_ms=None)
    times = []
    for _ in range(5):
        begin = time.process_time()
        for flow in range(200):
            simulation.trace(flow % flows)
        times.append(time.process_time() - begin)
    return min(times)


def test_one_flow_s_trace_costs_the_same_among_few_and_many_flows() -> None:
    """It cost a list of all names: of 100,000 flows, minutes for the results."""
    assert cpu_time_of_traces(8_000) < 10 * cpu_time_of_traces(80)


def scenario(duration_s: float, rate_mbps: float, **fields: Any) -> Scenario:
    fields = {
        "bottleneck": {"rate_mbps": rate_mbps, "delay_ms": 10, "queue": {"limit": 100}},
        "access": {"rate_mbps": 10 * rate_mbps, "delay_ms": 1},
        "flows": [{"controller": "cubic"}],
    } | fields
    return Scenario.model_validate({"name": "tried", "duration_s": duration_s, **fields})


MANY = "tried: has 20,001 flows, and a run has at most 20,000; make flows.count smaller"


def test_too_many_flows_are_refused_in_a_run_and_in_an_episode() -> None:
    with pytest.raises(ScenarioError, match=MANY):
        quicgym.run(scenario(0.01, 10, flows=[{"controller": "cubic", "count": 20_001}]))
    many = scenario(0.01, 10, flows=[{}, {"controller": "cubic", "count": 20_000}])
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
