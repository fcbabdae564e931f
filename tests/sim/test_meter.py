"""Runs measured in intervals, and totals of flows at marks."""

from __future__ import annotations

import numpy as np
import pytest
from helpers import environments as helper
from helpers.random_scenarios import networks
from hypothesis import HealthCheck, given, settings

from quicgym import Scenario, Simulation, _core
from quicgym.envs import find_environment
from quicgym.envs.decisions import Decisions
from quicgym.envs.episodes import EpisodeChoice, EpisodeSource
from quicgym.envs.info import INFO_COLUMNS
from quicgym.envs.rewards import Reward
from quicgym.envs.scenarios.conversion import with_every_flow
from quicgym.envs.scenarios.flows import Flow
from quicgym.real.recording import STATE_DTYPE

SECOND = 10**9
STAYING = ("start", "completion", "queues", "min_rtt", "lowest_rtt")
QUANTILES = [
    f"{delay}_p{share}_seconds"
    for delay in ("rtt", "queue_delay", "one_way_delay")
    for share in (50, 95, 99)
]
NOT_ADDED = (*STAYING, *QUANTILES, "max_window_packets", "send_rate_variance",
             "receive_rate_variance")  # fmt: skip
BUSY = helper.scenario(
    duration_s=6.0,
    flow_list=(
        Flow(name="first", controller="cubic"),
        Flow(name="second", controller="newreno", start_s=2.0, stop_s=4.0),
    ),
)
BUSY_AGENT = helper.scenario(
    duration_s=3.0, flow_list=(Flow(name="agent"), Flow(name="other", controller="cubic"))
)


def run(scenario: Scenario, engine: str = "native") -> Simulation:
    return Simulation(scenario, engine, seed=3, record_deliveries=True)


def measured(simulation: Simulation, marks=(), interval=SECOND // 10, begin=0) -> _core.Meter:
    """The simulation, run to its end."""
    end = round(simulation.scenario.duration_s * SECOND)
    meter = _core.Meter(
        simulation._host,
        with_every_flow(simulation.scenario),
        Reward().to_core(),
        interval,
        end,
        list(marks),
        begin,
    )
    meter.run_until(end)
    return meter


def test_a_meter_has_the_numbers_of_an_environment() -> None:
    scenario = helper.scenario(flows=2, duration_s=3.0)
    environment = find_environment("tuning")(
        scenario=scenario, engine="native", decision_interval_ms=100
    )
    _, info = environment.reset(seed=1, options={"controller": "bbr"})
    begin = round(info["time_s"] * SECOND)
    rows = []
    over = False
    while not over:
        _, reward, terminated, truncated, info = environment.step(
            helper.rest(environment.action_space)
        )
        rows.append([*(info[name] for name in _core.METER_COLUMNS[:-1]), reward])
        over = terminated or truncated
    simulation = Simulation(
        scenario,
        seed=environment.episode_seed,
        controllers=["bbr", "cubic"],
        trace_interval_ms=None,
    )
    meter = measured(simulation, begin=begin)
    assert list(_core.METER_COLUMNS[:-1]) == list(INFO_COLUMNS)[: len(_core.METER_COLUMNS) - 1]
    np.testing.assert_array_equal(meter.rows, rows)
    assert meter.received[-1].tolist() == [
        flow.statistics["received_bytes"] for flow in simulation.flows
    ]
    assert meter.times[-1] == 3 * SECOND and len(meter.times) == len(rows)


@settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))
@given(networks("drop-tail"))
def test_marks_change_nothing_and_their_totals_add_up(scenario: Scenario) -> None:
    end = round(scenario.duration_s * SECOND)
    marks = [0, end // 3, end // 2, end]
    plain, marked = run(scenario), run(scenario)
    rows = measured(plain).rows
    meter = measured(marked, marks)
    np.testing.assert_array_equal(meter.rows, rows)
    assert np.array_equal(plain.deliveries(), marked.deliveries())
    for flow in plain.flows:
        first, _, middle, whole = (meter.totals(mark, flow.index) for mark in range(4))
        assert whole.statistics() == flow.statistics
        if flow.statistics["start"] > 0:
            assert whole.since(first) == flow.statistics
        begun, early, late = first.statistics(), middle.since(first), whole.since(middle)
        for name, value in flow.statistics.items():
            if name in STAYING:
                assert late[name] == value
            elif name not in NOT_ADDED:
                parts = begun[name] + early[name] + late[name]
                assert parts == pytest.approx(value, rel=1e-9, abs=1e-9)
        highest = max(part["max_window_packets"] for part in (begun, early, late))
        assert highest == flow.statistics["max_window_packets"]


def check_window_of_time(engine: str) -> None:
    with run(BUSY, engine) as simulation:
        meter = measured(simulation, [1 * SECOND, 5 * SECOND])
        since = meter.totals(1, 0).since(meter.totals(0, 0))
        trace = simulation.trace(0)
        within = trace[(trace["time"] > SECOND) & (trace["time"] <= 5 * SECOND)]
        # Of rates in the whole seconds between the marks, at whose ends nothing else is measured.
        edges = trace["sent_bytes"][np.searchsorted(trace["time"], np.arange(1, 6) * SECOND)]
        assert since["send_rate_bins"] == 4
        assert np.sqrt(since["send_rate_variance"]) == pytest.approx(
            np.std(np.diff(edges)), rel=0.1
        )
        assert since["rtt_p95_seconds"] * 1e9 == pytest.approx(
            np.quantile(within["rtt"], 0.95), rel=0.05
        )
        packets = within["window_bytes"].max() / BUSY.max_datagram_bytes
        assert since["max_window_packets"] == pytest.approx(packets, rel=0.1)
        # Slow start, before the first mark, had the highest window of all.
        assert since["max_window_packets"] < simulation.flows[0].statistics["max_window_packets"]
        with pytest.raises(ValueError, match="same flow at an earlier one"):
            meter.totals(0, 0).since(meter.totals(1, 0))


def test_totals_between_marks_are_those_of_the_time_between() -> None:
    check_window_of_time("native")


@pytest.mark.ns3
def test_ns3_has_totals_at_marks() -> None:
    pytest.importorskip("quicgym_ns3", exc_type=ImportError)
    check_window_of_time("ns3")


@pytest.mark.parametrize(
    ("marks", "text"), [([2, 1], "marks must rise"), ([1, 1], "marks must rise"), ([-1], "passed")]
)
def test_wrong_marks_are_refused(marks, text) -> None:
    with pytest.raises(ValueError, match=text):
        measured(run(BUSY), marks)


def test_a_recorded_run_has_no_marks() -> None:
    recorded = _core.RecordedRun(SECOND, [np.zeros(7, STATE_DTYPE).tobytes()] * 2, [bytes(7 * 24)])
    scenario = with_every_flow(BUSY)
    with pytest.raises(ValueError, match="marks need a simulation"):
        _core.Meter(recorded, scenario, Reward().to_core(), SECOND, 6 * SECOND, [SECOND])


def begin_batch(marks: list[int], *, records: bool) -> _core.Batch:
    """A batch of one episode, which has begun."""
    source = EpisodeSource(BUSY_AGENT, "native", Decisions("tuning"))
    core, plan = source.prepare(EpisodeChoice(BUSY_AGENT, 3))
    plan.marks = marks
    options = _core.EnvironmentSettings(_core.find_action_space("tuning"), "spans")
    options.reward_interval = SECOND // 10
    options.decision_interval = SECOND // 4
    options.records = records
    batch = _core.native_batch(options, 1, len(plan.agents), 1)
    batch.reset([0], [core], [plan])
    return batch


def test_a_batch_records_what_flows_had_received() -> None:
    batch = begin_batch([SECOND], records=True)
    batch.step()
    simulation = batch.simulation(0)
    begin = simulation.statistics(0)["start"]
    # A decision ends an interval before it is full.
    steps = np.array([100, 200, 250]) * SECOND // 1000
    assert batch.times(0).tolist() == [begin + step for step in steps]
    for flow in range(2):
        assert batch.received(0)[-1, flow] == simulation.statistics(flow)["received_bytes"]
    with pytest.raises(IndexError):
        batch.totals(0, 0, 0)  # the mark is still to come
    while not batch.truncations[0]:
        batch.step()
    since = simulation.totals(0).since(batch.totals(0, 0, 0))
    total = simulation.statistics(0)
    assert 0 < since["sent_bytes"] < total["sent_bytes"]
    assert (
        since["sent_bytes"] + batch.totals(0, 0, 0).statistics()["sent_bytes"]
        == total["sent_bytes"]
    )


def test_a_batch_records_nothing_unless_told() -> None:
    batch = begin_batch([], records=False)
    batch.step()
    assert batch.times(0).size == 0 and batch.received(0).size == 0


def test_a_simulation_can_be_read_after_its_episode() -> None:
    batch = begin_batch([], records=False)
    batch.step()
    simulation = batch.simulation(0)
    assert isinstance(simulation, _core.NativeSimulation)
    assert batch.simulation(0) is simulation
    before = simulation.statistics(0)
    batch.close(0)
    assert simulation.statistics(0) == before
    with pytest.raises(RuntimeError, match="no running episode"):
        batch.simulation(0)
