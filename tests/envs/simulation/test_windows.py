"""Metrics over windows of a run, and over the time in which all compared flows are active."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import quicgym
from quicgym import Run, Scenario, ScenarioError, Simulation
from quicgym.agents.evaluation.jobs import RunJob
from quicgym.agents.evaluation.rollouts import play
from quicgym.agents.policies.by_name import find_policy
from quicgym.envs.simulation.metrics import BURST_METRICS, OF_FLOWS, OF_TRACES

ENGINES = ["native", pytest.param("ns3", marks=pytest.mark.ns3)]
COUNTED = ("sent_bytes", "received_packets", "goodput_bytes", "dropped_packets", "rtt_samples")


def dumbbell(flows: list[dict[str, Any]], duration_s: float = 10.0, **more: Any) -> Scenario:
    """50 Mbps, 20 ms, a queue of about 1 BDP."""
    return Scenario.model_validate(
        {
            "name": "windows",
            "duration_s": duration_s,
            "bottleneck": {"rate_mbps": 50, "delay_ms": 8, "queue": {"limit": 100}},
            "access": {"rate_mbps": 1000, "delay_ms": 1},
            "flows": flows,
            **more,
        }
    )


@pytest.mark.parametrize("engine", ENGINES)
def test_windows_add_up_to_the_run_which_marks_do_not_change(engine: str) -> None:
    scenario = dumbbell([{"start_jitter_ms": 30}, {"start_s": 2.05, "stop_s": 6}], duration_s=8)
    plain = quicgym.run(scenario, "cubic", engine, seed=4)
    run = quicgym.run(scenario, "cubic", engine, seed=4, from_s=2.512, until_s=7)
    assert run.over().to_dict() == plain.to_dict()
    before, after = run.over(until_s=2.512), run.over(from_s=7)
    for index in range(2):
        parts = [part.totals[index] for part in (before, run, after)]
        for name in COUNTED:
            assert sum(part[name] for part in parts) == plain.totals[index][name], name
    assert run.totals[1]["goodput_bytes"] > 0 == after.totals[1]["goodput_bytes"]
    assert after.flows[1].send_rate_mbps == 0 and after.flows[1].mean_rtt_ms is None
    # A flow's own rate is over its active time in the window.
    expected = run.totals[1]["goodput_bytes"] * 8e-6 / (6 - 2.512)
    assert run.flows[1].goodput_mbps == pytest.approx(expected)
    use = [part.metrics["buffer_use_percent"] or 0.0 for part in (before, run, after)]
    start_s = plain.totals[0]["start"] * 1e-9
    spans = (2.512 - start_s, 7 - 2.512, 1)
    assert np.dot(use, spans) / sum(spans) == pytest.approx(plain.metrics["buffer_use_percent"])


def trace_metrics(run: Run) -> dict[str, float | None]:
    return {entry.name: run.metric(entry.name) for entry in OF_TRACES}


def test_time_after_the_end_of_a_flow_does_not_change_its_trace_metrics() -> None:
    alone = quicgym.run(dumbbell([{}], duration_s=5), "cubic")
    stopped = quicgym.run(dumbbell([{"stop_s": 5}], duration_s=20), "cubic")
    assert trace_metrics(stopped) == pytest.approx(trace_metrics(alone))


def test_metrics_from_the_start_of_a_flow_have_no_value_where_the_window_begins_later() -> None:
    run = quicgym.run(dumbbell([{}, {"start_s": 6}], duration_s=12), "cubic", from_s=5)
    for name in ("convergence_time_s", "first_reduction_s", "recovery_time_s"):
        assert run.trace_metric(name, 0) is None
        assert run.metric(name) == run.trace_metric(name, 1) == run.over().trace_metric(name, 1)
        assert run.over().trace_metric(name, 0) is not None
    assert run.trace_metric("rate_trend", 0) is not None


def test_a_rate_that_stays_the_same_needs_no_time_to_recover() -> None:
    constant = {"application": {"kind": "constant-rate", "rate_mbps": 10}}
    assert quicgym.run(dumbbell([constant]), "cubic").metric("recovery_time_s") == 0


def test_a_window_after_the_end_of_an_episode_is_refused_by_its_name() -> None:
    scenario = dumbbell([{"stop_s": 2}, {"controller": "cubic"}], duration_s=6)
    assert quicgym.run(scenario, "cubic", from_s=3).metric("goodput_mbps") is not None
    with pytest.raises(ValueError, match="from_s = 3: the episode of .* ended after 2 s"):
        play(find_policy("cubic"), scenario, from_s=3)


@pytest.mark.parametrize("policy", [False, True])
def test_further_marks_are_ends_of_windows(policy: bool) -> None:
    scenario = dumbbell([{}], duration_s=4)
    marks_s = (1.0, 2.5)
    if policy:
        run = play(find_policy("cubic"), scenario, marks_s=marks_s)
        other = play(find_policy("cubic"), scenario, from_s=1, until_s=2.5)
    else:
        run = quicgym.run(scenario, "cubic", marks_s=marks_s)
        other = quicgym.run(scenario, "cubic", from_s=1, until_s=2.5)
    assert run.over(1, 2.5).flows == other.flows
    with pytest.raises(ValueError, match="the run has totals at 1, 2.5, 4 s only"):
        run.over(1, 3)
    with pytest.raises(ScenarioError, match="marks_s = .*leave it out"):
        quicgym.run(scenario, "cubic", stack="aioquic", marks_s=marks_s, trace_interval_ms=None)


def test_the_reward_of_a_window_is_the_mean_over_its_time() -> None:
    run = quicgym.run(dumbbell([{"count": 2}]), "cubic", from_s=1, until_s=4)
    inside = (run.series["time_s"] > 1 + 1e-9) & (run.series["time_s"] < 4 + 1e-9)
    assert inside.sum() == 30
    for name, column in (("reward", "reward"), ("jain_of_intervals", "jain")):
        assert run.metrics[name] == pytest.approx(np.mean(run.series[column][inside])), name


def test_an_episode_has_the_windows_of_a_run() -> None:
    scenario = dumbbell([{}, {"controller": "bbr"}], duration_s=4)
    for window in ({}, {"from_s": 1.0, "until_s": 3.5}):
        run = quicgym.run(scenario, "cubic", seed=2, **window)
        episode = play(find_policy("cubic"), scenario, seed=2, **window)
        assert episode.metrics == pytest.approx(run.metrics)
        assert episode.flows == run.flows


def test_flows_are_compared_while_all_of_them_are_active() -> None:
    """A flow alone takes the whole link; that is no unfairness."""
    scenario = dumbbell([{"name": "long"}, {"name": "late", "start_s": 5.02}], duration_s=20)
    run = quicgym.run(scenario, "cubic")
    both = quicgym.run(scenario, "cubic", from_s=5.1)
    assert run.metrics["jain"] == pytest.approx(both.metrics["jain"])
    assert run.metrics["efficiency_index_mbps"] < 50 < sum(f.receive_rate_mbps for f in run.flows)
    received = run.series["throughput_mbps"][run.series["time_s"] > 5.1 + 1e-9]
    assert run.metrics["efficiency_index_mbps"] == pytest.approx(np.mean(received), rel=0.03)
    # The mean over the flows is what the link carried over the time, so their sum fits the link.
    for entry in OF_FLOWS:
        if entry.rate_of == "received_bytes":
            total = sum(totals["received_bytes"] for totals in run.totals)
            assert run.metrics[entry.name] == pytest.approx(total * 8e-6 / 2 / 20)
    assert 2 * run.metrics["goodput_mbps"] < 50


def test_flows_that_are_never_active_together_are_not_compared() -> None:
    run = quicgym.run(dumbbell([{"stop_s": 4}, {"start_s": 5}], duration_s=8), "cubic")
    for name in ("jain", "smallest_share", "efficiency_index_mbps"):
        assert run.metrics[name] is None, name
    assert run.jain([0]) == run.jain([1]) == 1
    assert run.jain(metric="goodput_mbps") == pytest.approx(1, abs=0.1)


def test_short_flows_belong_to_the_window_in_which_they_arrive() -> None:
    short = [{"arrivals_per_s": 20, "sizes": 300_000, "controller": "cubic"}]
    scenario = dumbbell([{}], duration_s=6, short_flows=short)
    run = quicgym.run(scenario, "cubic", from_s=2, until_s=4)
    parts = [run.over(until_s=2), run, run.over(from_s=4)]
    arrived = [part.metrics["short_flow_arrivals"] for part in parts]
    assert sum(arrived) == run.over().metrics["short_flow_arrivals"] and min(arrived) > 10
    assert run.metrics["short_flows_completed_percent"] < 100
    assert run.metrics["short_flow_p95_s"] is None or run.metrics["short_flow_p95_s"] < 2


@pytest.mark.parametrize(
    ("window", "text"),
    [
        ({"from_s": 10}, "from_s = 10: the window of windows ends at 10 s; give a time from 0"),
        ({"from_s": 5, "until_s": 5}, "from_s = 5: .* at until_s = 5 s; .* later until_s"),
        ({"until_s": 11}, "until_s = 11: windows lasts 10 s; give a time above 0 and up to 10"),
    ],
)
def test_a_window_is_a_part_of_the_scenario(window: dict[str, float], text: str) -> None:
    with pytest.raises(ScenarioError, match=text):
        quicgym.run(dumbbell([{}]), "cubic", **window)


def test_a_simulation_that_pauses_is_measured_up_to_now() -> None:
    with Simulation(dumbbell([{"start_s": 1}]), controllers="cubic", marks=()) as simulation:
        simulation.run_until(0.5)
        assert Run.of(simulation).metrics["reward"] is None
        with pytest.raises(ValueError, match="lies before the current time"):
            simulation.run_until(0.25)
        simulation.run_until(2.05)
        run = Run.of(simulation)
        assert run.series["time_s"][-1] == pytest.approx(2.05)
        assert run.metrics["goodput_mbps"] == run.flows[0].goodput_mbps > 0
        assert run.metrics["reward"] is not None


def test_a_simulation_without_marks_is_not_measured() -> None:
    with Simulation(dumbbell([{}]), controllers="cubic") as simulation:
        simulation.run_until(0.5)
        with pytest.raises(
            ValueError, match="is not measured; give it `marks`, which may be empty"
        ):
            Run.of(simulation)


def with_bursts(**more: Any) -> Scenario:
    """40 Mbps, and bursts of 30 Mbps beside it for a second in three, over 50 Mbps."""
    bursts = {
        "kind": "bursts", "rate_mbps": 0, "burst_rate_mbps": 30, "burst_duration_s": 1,
        "burst_period_s": 3, "burst_count": 2,
    }  # fmt: skip
    original = {"application": {"kind": "constant-rate", "rate_mbps": 40}}
    unresponsive = {
        "controller": "external",
        "parameters": {"window_bytes": 1e7, "pacing_rate": 1e7},
    }
    return dumbbell(
        [original, {"start_s": 2, "application": bursts, **unresponsive}], duration_s=8, **more
    )


def test_goodput_during_bursts_is_what_they_leave() -> None:
    outcome = RunJob(with_bursts(), "cubic", "native", 0, measures=BURST_METRICS).run()
    assert outcome["burst_goodput_mbps"] == pytest.approx(50 * 1172 / 1230 - 30, rel=0.1)
    assert outcome["agent_goodput_mbps"] > outcome["burst_goodput_mbps"] + 10
    assert outcome["burst_one_way_delay_ms"] > outcome["flows"][0]["mean_one_way_delay_ms"]


def test_no_burst_comes_after_its_flow_has_stopped() -> None:
    fields = with_bursts().model_dump()
    fields["flows"][1]["stop_s"] = 4
    scenario = Scenario.model_validate(fields)
    run = quicgym.run(scenario, "cubic", marks_s=[2, 3])
    assert run.metric("burst_goodput_mbps") == pytest.approx(run.over(2, 3).flows[0].goodput_mbps)


def test_goodput_during_bursts_is_that_of_its_windows() -> None:
    scenario = with_bursts()
    run = quicgym.run(scenario, "cubic", marks_s=[2, 3, 5, 6])
    parts = [run.over(2, 3), run.over(5, 6)]
    goodputs = [part.flows[0].goodput_mbps for part in parts]
    assert run.metric("burst_goodput_mbps") == pytest.approx(sum(goodputs) / 2)
    assert parts[1].metric("burst_goodput_mbps") == pytest.approx(goodputs[1])
    received = [part.totals[0]["received_packets"] for part in parts]
    delays = [part.flows[0].mean_one_way_delay_ms or 0.0 for part in parts]
    expected = np.average(delays, weights=received)
    assert run.metric("burst_one_way_delay_ms") == pytest.approx(expected)
    assert quicgym.run(dumbbell([{}]), "cubic").metric("burst_goodput_mbps") is None
    with pytest.raises(ValueError, match="from_s = 2"):
        quicgym.run(scenario, "cubic").metric("burst_goodput_mbps")
