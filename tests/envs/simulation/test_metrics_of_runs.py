"""The metrics of whole runs and of time series, against values computed by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import quicgym
from quicgym.agents.evaluation.rollouts import play
from quicgym.agents.policies.by_name import find_policy
from quicgym.envs.scenarios.flows import Flow
from quicgym.envs.scenarios.model import Scenario
from quicgym.envs.simulation.metrics import METRICS, OF_RUNS, OF_TRACES, FlowTotals, RunTotals
from quicgym.envs.simulation.series import Series
from quicgym.envs.simulation.simulation import MODES, NEVER, TRACE_DTYPE, TRANSFER_DTYPE
from quicgym.envs.simulation.traffic import SHORT_FLOWS, TrafficTotals

SECOND = 10**9
WINDOW = (0, 10 * SECOND)
COUNTS = (
    "sent_packets", "sent_bytes", "received_packets", "received_bytes", "dropped_packets",
    "goodput_bytes", "queue_samples", "queue_delay_sum_seconds", "one_way_delay_sum_seconds",
)  # fmt: skip


def flow(controller: str | None = None, **totals: Any) -> FlowTotals:
    model: dict[str, Any] = {} if controller is None else {"controller": controller}
    if "completion" in totals:
        model["application"] = {"kind": "transfer", "size_bytes": 1000}
    counts = {"start": 0, "completion": None, "queues": 1, **dict.fromkeys(COUNTS, 0), **totals}
    return FlowTotals(counts, Flow.model_validate(model), WINDOW)


def run(flows: list[FlowTotals], received: list[int], capacity_mbps: float = 2.0) -> RunTotals:
    """A run of 10 s, in intervals of 1 s in which each flow receives as much."""
    times = np.arange(1, 11)
    columns = {
        "time_s": times.astype(float),
        "capacity_mbps": np.full(10, capacity_mbps),
        "reward": np.where(times > 5, 1.0, 0.0),
        "throughput_share": np.full(10, 0.5),
        "loss_rate": np.full(10, 0.1),
        "jain": np.full(10, 0.9),
    }
    grown = np.outer(times, received).astype(np.uint64)
    series = Series(0, columns, times * SECOND, grown)

    def capacity(begin: int, end: int) -> float:
        return capacity_mbps * (end - begin) * 1e-3

    return RunTotals(flows, [], WINDOW, capacity, series, TrafficTotals(), 30.0, 10.0)


AGENT = flow(
    sent_packets=1000, sent_bytes=1_200_000, received_packets=900, received_bytes=1_080_000,
    dropped_packets=100, goodput_bytes=1_000_000, queue_samples=900, queue_delay_sum_seconds=9.0,
)  # fmt: skip
OTHER = flow(
    "cubic",
    sent_packets=300, sent_bytes=360_000, received_packets=297, received_bytes=356_400,
    dropped_packets=3, goodput_bytes=250_000, queue_samples=300, queue_delay_sum_seconds=3.0,
    one_way_delay_sum_seconds=29.7,
)  # fmt: skip
BOTH = run([AGENT, OTHER], [108_000, 36_000])
EXPECTED = {
    "reward": 0.5,
    "throughput_share": 0.5,
    "loss_rate": 0.1,
    "jain_of_intervals": 0.9,
    "jain": 144**2 / (2 * (108**2 + 36**2)),
    "smallest_share": 0.5,
    "efficiency_index_mbps": 1.152,
    "wire_efficiency_index_mbps": 1.152 * 1230 / 1200,
    "buffer_use_percent": 30.0,
    "utilisation": 8 * (1_080_000 + 356_400 + 30 * 1197) / 20e6,
    "queue_delay_ms": 10.0,
    "agent_goodput_mbps": 0.8,
    "agent_jain": 1.0,
    "agent_loss_percent": 10.0,
    "agent_sent_packets": 1000,
    "agent_offered_load": 8 * (1_200_000 + 30 * 1000) / 20e6,
    "agent_transfer_time_s": None,
    "others_goodput_mbps": 0.2,
    "others_loss_percent": 1.0,
    "others_one_way_delay_ms": 100.0,
}


def test_a_metric_of_a_run_is_its_formula() -> None:
    found = {entry.name: entry.compute(BOTH) for entry in OF_RUNS}
    assert found == pytest.approx(EXPECTED)


def test_nothing_is_measured_where_no_packet_was() -> None:
    nothing = run([flow()], [0], capacity_mbps=0.0)
    measured = {"reward", "throughput_share", "loss_rate", "jain_of_intervals"}
    for entry in OF_RUNS:
        if entry.name not in {*measured, "buffer_use_percent"}:
            assert entry.compute(nothing) in (None, 0.0), entry.name


def network(**fields: Any) -> Scenario:
    """20 s over 10 Mbps, with a queue that a flow of CUBIC keeps filled."""
    link = {"rate_mbps": 10, "delay_ms": 10, "queue": {"limit": 50}}
    base = {"name": "own", "duration_s": 20, "max_datagram_bytes": 1400, "bottleneck": link,
            "access": {"rate_mbps": 100, "delay_ms": 5}}  # fmt: skip
    return Scenario.model_validate({**base, **fields})


CONSTANT = {"kind": "constant-rate", "rate_mbps": 2.0}
MANY = {"load_mbps": 12.0, "sizes": 200_000, "controller": "cubic"}
SECOND_HOP = {"rate_mbps": 20, "delay_ms": 10, "queue": {"limit": 50}}
USED = {
    "short flows": {"flows": [{"application": CONSTANT}], "short_flows": [MANY]},
    "short flows before": {
        "flows": [{"application": CONSTANT, "start_s": 15}], "short_flows": [MANY]
    },
    "a late start": {"flows": [{"start_s": 10}]},
    "a chain": {
        "flows": [{"name": "both"}, {"name": "first", "last_hop": 1}, {"first_hop": 2}],
        "chain": [SECOND_HOP],
    },
    "backward flows": {"flows": [{}, {"controller": "cubic", "direction": "backward"}]},
}  # fmt: skip


@pytest.mark.parametrize("name", USED)
def test_a_link_that_is_full_is_fully_used(name: str) -> None:
    found = quicgym.run(network(**USED[name]), "cubic", from_s=5).over()
    assert 0.9 < found.metrics["utilisation"] <= 1.001
    if "before" not in name:  # the reward's terms begin with the policy's flows
        share = found.metrics["throughput_share"]
        assert found.metrics["utilisation"] == pytest.approx(share, rel=1e-6)
    late = found.over(from_s=5)
    assert 0.9 < late.metrics["utilisation"] <= 1.001


@pytest.mark.parametrize("from_s", [None, 5])
def test_the_queueing_delay_of_all_packets_is_that_of_short_flows_too(from_s: float | None) -> None:
    # Little's law: packets waiting = rate of packets that leave · time that each waits.
    found = quicgym.run(network(**USED["short flows"]), "cubic", from_s=from_s)
    queue = found.queue_trace()
    waiting = queue["packets"][queue["time_s"] > (from_s or 0)].mean()
    by_little = 1e3 * waiting * 1400 * 8 / (found.metrics["utilisation"] * 10e6)
    assert found.metrics["queue_delay_ms"] == pytest.approx(by_little, rel=0.05)


def test_a_policys_run_counts_short_flows_as_a_controllers_does() -> None:
    scenario = network(**USED["short flows"])
    policy = find_policy("cubic")
    played = play(policy, scenario, from_s=5).over(from_s=5).metrics
    expected = quicgym.run(scenario, "cubic", from_s=5).metrics
    for name in ("utilisation", "queue_delay_ms", "agent_offered_load"):
        assert played[name] == expected[name]


def test_the_reward_ends_with_the_policy_s_flows() -> None:
    ended = run([flow(completion=5 * SECOND + 1), OTHER], [1000, 1000])
    assert ended.mean("reward") == pytest.approx(1 / 6)


def test_a_transfer_that_is_not_complete_leaves_no_completion_time() -> None:
    transfers = [flow(completion=SECOND), flow(completion=2 * SECOND)]
    time = METRICS["agent_transfer_time_s"].compute
    assert time(run(transfers, [1, 1])) == pytest.approx(1.5)
    assert time(run([*transfers, flow(completion=None)], [1, 1, 1])) is None
    assert time(run([*transfers, flow("cubic", completion=None)], [1, 1, 1])) == pytest.approx(1.5)


def test_short_flows_that_are_not_complete_count_as_the_longest() -> None:
    def quantile(name: str, durations_s: list[float | None]) -> float | None:
        rows = [
            (0, NEVER if duration is None else round(duration * SECOND), 1000, 0)
            for duration in durations_s
        ]
        transfers = np.array(rows, TRANSFER_DTYPE)
        traffic = TrafficTotals(kinds=frozenset({SHORT_FLOWS}), transfers=transfers)
        return METRICS[name].compute(traffic)

    assert quantile("short_flow_median_s", [0.1, 0.2, 0.3]) == pytest.approx(0.2)
    assert quantile("short_flow_p95_s", [0.1, 0.2, 0.3]) == pytest.approx(0.3)
    assert quantile("short_flow_median_s", [0.1] * 9 + [None]) == pytest.approx(0.1)
    assert quantile("short_flow_p95_s", [0.1] * 9 + [None]) is None
    assert quantile("short_flow_median_s", []) is None


def trace_metric(name: str, **columns: Any) -> float | None:
    """Of ten seconds from the flow's start at 1 s."""
    rows = np.zeros(1001, TRACE_DTYPE)
    rows["time"] = SECOND + np.arange(1001) * 10_000_000
    rows["mode"] = MODES.index("probe_bw")
    for column, values in columns.items():
        rows[column] = values
    return METRICS[name].compute(rows)


def test_the_deviation_of_the_rtt_is_that_of_its_samples() -> None:
    sawtooth = np.where(np.arange(1001) % 2, 90, 110) * 1_000_000
    sawtooth[:3] = 0  # before the first sample
    assert trace_metric("rtt_deviation_ms", rtt=sawtooth) == pytest.approx(10)
    assert trace_metric("rtt_deviation_ms", rtt=50_000_000) == 0
    assert trace_metric("rtt_deviation_ms") is None


def test_each_entry_into_startup_counts() -> None:
    mode = np.full(1001, MODES.index("probe_bw"))
    assert trace_metric("startup_entries", mode=mode) == 0
    mode[:50] = MODES.index("startup")
    assert trace_metric("startup_entries", mode=mode) == 1
    mode[500:550] = mode[700:] = MODES.index("startup")
    assert trace_metric("startup_entries", mode=mode) == 3


def test_a_flow_converges_when_it_has_nine_tenths_of_its_later_rate() -> None:
    rate = np.where(np.arange(1000) < 300, 0.2, 1.0)  # Mbps, for 3 s and then
    received = np.concatenate([[0], np.cumsum(rate * 1e6 / 8 / 100)])
    # 90% over a window of 0.1 s: 0.0125 s of it may be at the lower rate.
    converged = trace_metric("convergence_time_s", received_bytes=received)
    assert converged == pytest.approx(3.09, abs=0.011)
    assert trace_metric("convergence_time_s") is None


def test_the_recovery_time_is_the_longest_below_nine_tenths_after_that() -> None:
    rate = np.ones(1000)
    rate[500:600] = 0.2  # 1 s in the second half, whose rate is then 0.84 Mbps
    received = np.concatenate([[0], np.cumsum(rate * 1e6 / 8 / 100)])
    recovery = trace_metric("recovery_time_s", received_bytes=received)
    assert recovery == pytest.approx(1.04, abs=0.011)
    assert trace_metric("recovery_time_s") is None


def test_a_window_within_a_twentieth_of_its_largest_is_at_its_maximum() -> None:
    window = np.full(1001, 10_000)
    window[:401] = 9000
    window[401:501] = 9600
    percent = trace_metric("time_at_largest_window_percent", window_bytes=window)
    assert percent == pytest.approx(100 * 600 / 1001)


def test_the_trend_is_the_rate_of_the_second_half_over_that_of_the_first() -> None:
    rate = np.where(np.arange(1000) < 500, 1.0, 1.5)
    received = np.concatenate([[0], np.cumsum(rate * 1e6 / 8 / 100)])
    assert trace_metric("rate_trend", received_bytes=received) == pytest.approx(1.5, abs=1e-4)
    assert trace_metric("rate_trend") is None


def test_a_window_is_reduced_when_a_tenth_of_its_largest_so_far_is_gone() -> None:
    window = np.full(1001, 10_000)
    window[:100] = 5000
    window[300:] = 9500
    window[400:] = 8900
    assert trace_metric("first_reduction_s", window_bytes=window) == pytest.approx(4)
    assert trace_metric("first_reduction_s", window_bytes=window[0]) is None


def test_every_metric_of_runs_and_traces_has_a_case() -> None:
    assert set(EXPECTED) == {entry.name for entry in OF_RUNS}
    assert len(OF_TRACES) == 7
