from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import quicgym
from quicgym import Run, Scenario, Simulation, load_scenario
from quicgym.envs.scenarios import conversion
from quicgym.envs.simulation.metrics import OF_FLOWS, OF_RUNS, jain


def _bytes(total, count):
    """Bytes of a flow, with the headers of the layer in the count's name."""
    side, layer, *rest = count.split("_")
    headers = {"ip": 28, "wire": 30}[layer] * total[f"{side}_packets"] if rest else 0
    return total[f"{side}_bytes" if rest else count] + headers


def test_jain_of_known_shares() -> None:
    assert jain([5, 5, 5]) == 1
    assert jain([1, 0, 0, 0]) == 0.25
    assert jain([3, 1]) == pytest.approx(0.8)
    assert jain([0, 0]) is None


@settings(deadline=None)
@given(st.lists(st.floats(0.001, 1e6), min_size=1, max_size=20))
def test_jain_is_between_one_over_n_and_one(values: list[float]) -> None:
    index = jain(values)
    assert index is not None
    assert 1 / len(values) - 1e-9 <= index <= 1 + 1e-9


@pytest.fixture(scope="module")
def three_flows() -> Run:
    return quicgym.run("ebcc-flows-3", controller="cubic", seed=3)


def test_the_metrics_are_their_formulas() -> None:
    with Simulation("ebcc-flows-3", seed=3, controllers="cubic", marks=()) as simulation:
        simulation.run()
        run = Run.of(simulation)
        for flow, measured in zip(simulation.flows, run.flows, strict=True):
            total = flow.statistics
            active_s = 20 - total["start"] * 1e-9
            assert 1 <= total["start"] * 1e-9 < 1.05
            for metric, count in (
                ("send_rate_mbps", "sent_bytes"),
                ("receive_rate_mbps", "received_bytes"),
                ("goodput_mbps", "goodput_bytes"),
            ):
                expected = total[count] * 8e-6 / active_s
                assert getattr(measured, metric) == pytest.approx(expected)
            assert measured.loss_percent == pytest.approx(
                100 * total["dropped_packets"] / total["sent_packets"]
            )


def test_the_run_is_the_mean_of_its_flows(three_flows: Run) -> None:
    metrics = three_flows.metrics
    assert list(metrics) == [entry.name for entry in (*OF_FLOWS, *OF_RUNS)]
    starts = [total["start"] for total in three_flows.totals]
    for entry in OF_FLOWS:
        values = [getattr(flow, entry.name) for flow in three_flows.flows]
        if entry.name == "completion_time_s":
            assert metrics[entry.name] is None and values == [None] * 3
        elif entry.rate_of:
            sent = sum(_bytes(total, entry.rate_of) for total in three_flows.totals)
            seconds = 20 - min(starts) * 1e-9
            assert metrics[entry.name] == pytest.approx(sent * 8e-6 / 3 / seconds)
        else:
            assert metrics[entry.name] == pytest.approx(sum(values) / 3)


def test_pandas_view(three_flows: Run) -> None:
    frame = three_flows.to_pandas()
    assert len(frame) == 3
    assert list(frame.columns[:5]) == ["scenario", "engine", "seed", "name", "controller"]
    for entry in OF_RUNS:
        value = three_flows.metrics[entry.name]
        assert (
            frame[entry.name].isna().all() if value is None else (frame[entry.name] == value).all()
        )
    trace = three_flows.trace("flow-2")
    assert trace["time_s"].iloc[-1] == pytest.approx(20)
    assert set(trace["mode"]) <= {"slow_start", "congestion_avoidance", "recovery"}
    assert trace["rtt_ms"].max() < 300
    queue = three_flows.queue_trace()
    assert queue["packets"].max() == 100
    with pytest.raises(ValueError, match="no flow 'flow-9'"):
        three_flows.trace("flow-9")


def test_a_trace_in_pandas_is_the_simulation_s_in_the_units_of_its_columns() -> None:
    with Simulation("ebcc-single", controllers="bbr", trace_interval_ms=50, marks=()) as simulation:
        simulation.run_until(5)
        rows = simulation.trace(0)
        trace = Run.of(simulation).trace()
    for column, name, factor in (
        ("time_s", "time", 1e-9),
        ("pacing_rate_mbps", "pacing_rate", 8e-6),
        ("rtt_ms", "rtt", 1e-6),
        ("smoothed_rtt_ms", "smoothed_rtt", 1e-6),
    ):
        measured = trace[column].fillna(0.0).to_numpy()
        assert measured == pytest.approx(rows[name] * factor), column
    for name in ("window", "in_flight", "sent", "delivered", "lost", "received"):
        assert (trace[f"{name}_bytes"] == rows[f"{name}_bytes"]).all(), name


def test_the_rtt_of_a_trace_is_nan_before_the_first_sample() -> None:
    with Simulation("ebcc-single", controllers="bbr", trace_interval_ms=10, marks=()) as simulation:
        simulation.run_until(2)
        rows = simulation.trace(0)
        trace = Run.of(simulation).trace()
    for column, name in (("rtt_ms", "rtt"), ("smoothed_rtt_ms", "smoothed_rtt")):
        missing = trace[column].isna().to_numpy()
        assert missing.tolist() == (rows[name] == 0).tolist()
        assert missing[0] and not missing[-1]
        assert (np.diff(missing.astype(int)) <= 0).all()  # from the first sample on they are there


def test_a_result_is_json(three_flows: Run) -> None:
    document = json.loads(json.dumps(three_flows.to_dict(), allow_nan=False))
    assert document["controller"] == "cubic"
    assert len(document["flows"]) == 3


def scenario_with(flow: dict[str, object]) -> Scenario:
    return Scenario.model_validate({**load_scenario("ebcc-single").model_dump(), "flows": [flow]})


def test_rates_are_over_the_time_that_a_flow_is_active() -> None:
    stopped = quicgym.run(scenario_with({"start_s": 1, "stop_s": 11}), "bbr")
    assert 10 < stopped.flows[0].receive_rate_mbps < 15
    transfer = scenario_with(
        {"start_s": 1, "application": {"kind": "transfer", "size_bytes": 5_000_000}}
    )
    with Simulation(transfer, controllers="bbr", marks=()) as simulation:
        simulation.run()
        completion_s = simulation.flows[0].statistics["completion"] * 1e-9
        run = Run.of(simulation)
    assert 3 < completion_s < 8
    assert run.flows[0].goodput_mbps == pytest.approx(5 * 8 / (completion_s - 1))


def test_a_flow_that_has_not_begun_has_no_rtt() -> None:
    simulation = Simulation("ebcc-single", controllers="bbr", marks=())
    simulation.run_until(0.5)
    run = Run.of(simulation)
    assert run.flows[0].mean_rtt_ms is None
    assert run.flows[0].send_rate_mbps == 0
    assert run.flows[0].mean_window_packets is run.flows[0].max_window_packets is None
    assert run.flows[0].mean_one_way_delay_ms is None
    assert run.metrics["jain"] is None
    assert run.metrics["buffer_use_percent"] is None
    json.dumps(run.to_dict(), allow_nan=False)


def test_a_scenario_is_converted_to_cpp_once_per_run(monkeypatch: pytest.MonkeyPatch) -> None:
    converted = []
    links = conversion._links

    def counted(scenario: Scenario) -> object:
        converted.append(scenario.name)
        return links(scenario)

    monkeypatch.setattr(conversion, "_links", counted)
    run = quicgym.run(scenario_with({"controller": "bbr"}), from_s=1)
    run.queue_trace()
    run.to_dict()
    assert converted == ["ebcc-single"]
