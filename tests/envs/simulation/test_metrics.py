"""The metrics that are accumulated in the engines, against values worked out another way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import quicgym
from quicgym import Run, Scenario, Simulation
from quicgym.controllers import AckEvent, LossEvent

ENGINES = ["native", pytest.param("ns3", marks=pytest.mark.ns3)]
every_engine = pytest.mark.parametrize("engine", ENGINES)

SECOND = 10**9
LINK_BYTES = 30


def dumbbell(flows: list[dict[str, Any]], duration_s: float = 10, **queue: Any) -> Scenario:
    """8 Mbps and a one-way delay of 20 ms; full packets of 1200 bytes."""
    return Scenario.model_validate(
        {
            "name": "metrics",
            "duration_s": duration_s,
            "bottleneck": {"rate_mbps": 8, "delay_ms": 10, "queue": {"limit": 30, **queue}},
            "access": {"rate_mbps": 100, "delay_ms": 5},
            "flows": flows,
        }
    )


class Sawtooth(quicgym.Controller):
    """Changes its window on every event, those of sent packets included, and notes when."""

    changes: list[tuple[int, int]] = []  # of the latest instance

    def on_start(self, max_datagram_bytes: int) -> None:
        type(self).changes = []
        self.now = -1

    def _set(self, now: int, window_bytes: int) -> None:
        self.window_bytes = window_bytes
        self.changes.append((now, window_bytes))

    def on_packet_sent(self, now: int, packet_bytes: int, in_flight_bytes: int) -> None:
        if now != self.now:
            self._set(now, self.window_bytes + 1)
        self.now = now

    def on_ack(self, event: AckEvent) -> None:
        self._set(event.now, self.window_bytes + event.newly_acked_bytes // 10)

    def on_loss(self, event: LossEvent) -> None:
        self._set(event.now, max(self.window_bytes // 2, 4 * self.max_datagram_bytes))


@every_engine
@pytest.mark.parametrize(
    "flow",
    [
        {"start_s": 0.5},
        {"start_s": 0.5, "stop_s": 6.25},
        {"start_jitter_ms": 50, "application": {"kind": "transfer", "size_bytes": 2_000_000}},
    ],
    ids=["bulk", "stopped", "transfer"],
)
def test_the_mean_window_is_the_integral_over_every_change(
    engine: str, flow: dict[str, Any]
) -> None:
    with Simulation(dumbbell([flow]), engine, 3, Sawtooth, marks=()) as simulation:
        for pause in (0.25, 2, 2.5):
            simulation.run_until(pause)
            assert simulation.flows[0].statistics["window_seconds"] < pause
        simulation.run()
        total = simulation.flows[0].statistics
        measured = Run.of(simulation).flows[0]
    end = total["start"] + round(total["window_seconds"] * SECOND)
    if "stop_s" in flow:
        assert end == 6.25 * SECOND
    elif "application" in flow:  # the last acknowledgement comes after the last byte arrived
        assert total["completion"] < end < total["completion"] + 0.2 * SECOND
    else:
        assert end == 10 * SECOND
    changes = [(total["start"], 12_000), *Sawtooth.changes, (end, 0)]
    times = np.array([time for time, _ in changes])
    windows = np.array([window for _, window in changes])
    lasting = np.diff(times)
    assert (lasting >= 0).all()
    mean = (windows[:-1] * lasting).sum() / (end - total["start"])
    assert measured.mean_window_packets == pytest.approx(mean / 1200, rel=1e-9)
    largest = windows[:-1][lasting > 0].max()
    assert measured.max_window_packets == pytest.approx(largest / 1200, rel=1e-12)


def bytes_before(make: Callable[[], Simulation], counter: str, borders: list[int]) -> list[int]:
    """A total just before each moment, from a run of its own."""
    with make() as simulation:
        counts = []
        for border in borders:
            simulation.run_until((border - 1) * 1e-9)
            counts.append(simulation.flows[0].statistics[counter])
        return counts


@every_engine
@pytest.mark.parametrize(
    "flow",
    [
        {"start_jitter_ms": 400},
        {"start_s": 1, "stop_s": 7},
        {"application": {"kind": "transfer", "size_bytes": 5_000_000}},
        {"application": {"kind": "on-off", "rate_mbps": 4, "on_s": 1.3, "off_s": 2.9}},
    ],
    ids=["bulk", "stopped", "transfer", "on-off"],
)
def test_rate_variances_are_those_of_whole_seconds(engine: str, flow: dict[str, Any]) -> None:
    def make() -> Simulation:
        return Simulation(dumbbell([flow]), engine, 2, "cubic", trace_interval_ms=None, marks=())

    with make() as simulation:
        simulation.run()
        total = simulation.flows[0].statistics
        measured = Run.of(simulation).flows[0]
    for side, counter, end_s in (
        ("send", "sent_bytes", total["start"] * 1e-9 + total["window_seconds"]),
        ("receive", "received_bytes", (total["completion"] or flow.get("stop_s", 10) * 1e9) * 1e-9),
    ):
        seconds = int(end_s - total["start"] * 1e-9 + 1e-12)
        assert 4 <= seconds < 10 or flow.get("application", {}).get("kind") == "on-off"
        borders = [total["start"] + number * SECOND for number in range(1, seconds + 1)]
        rates = np.diff([0, *bytes_before(make, counter, borders)]) * 8e-6
        value = getattr(measured, f"{side}_rate_variance_mbps2")
        assert value == pytest.approx(np.var(rates), rel=1e-9)
        assert value > 0


@pytest.mark.parametrize("window", [(None, None), (5.0, 15.0)])
def test_percentiles_are_those_of_every_packet(window: tuple[float | None, float | None]) -> None:
    with quicgym.Simulation(
        "ebcc-flows-3", "native", 1, ["cubic", "bbr", "newreno"], record_deliveries=True,
        marks=(5_000_000_000, 15_000_000_000),
    ) as simulation:  # fmt: skip
        simulation.run()
        deliveries = simulation.deliveries()
        measured = Run.of(simulation).over(*window)
    times = deliveries["time"] * 1e-9
    within = (times > (window[0] or 0)) & (times <= (window[1] or np.inf))
    for number, flow in enumerate(measured.flows):
        packets = deliveries[within & (deliveries["flow"] == number)]
        delays_ms = (packets["time"] - packets["sent"]) * 1e-6
        base_ms = delays_ms.min() if window[0] is None else 0.0
        for share in (50, 95, 99):
            expected = np.percentile(delays_ms, share)
            assert getattr(flow, f"p{share}_one_way_delay_ms") == pytest.approx(expected, rel=0.01)
            if window[0] is None:  # what is not the path's is the queue's
                queue_ms = getattr(flow, f"p{share}_queue_delay_ms")
                assert queue_ms == pytest.approx(expected - base_ms, rel=0.02, abs=0.5)
        assert flow.p50_rtt_ms < flow.p95_rtt_ms <= flow.p99_rtt_ms
    for name in ("p50_rtt_ms", "p99_queue_delay_ms", "p95_one_way_delay_ms"):
        values = [getattr(flow, name) for flow in measured.flows]
        assert measured.metrics[name] == pytest.approx(np.mean(values))


def test_rtts_of_minutes_have_a_95th_percentile() -> None:
    far = {"controller": "newreno", "extra_delay_ms": 60_000}
    slow = {**dumbbell([far]).model_dump(exclude_none=True), "duration_s": 1500.0}
    slow["bottleneck"]["delay_ms"] = 60_000
    metrics = quicgym.run(Scenario.model_validate(slow)).metrics
    assert metrics["p95_rtt_ms"] == pytest.approx(240_020, rel=0.01)


def test_no_whole_second_no_variance() -> None:
    flow = quicgym.run(dumbbell([{}], duration_s=0.99), "bbr").flows[0]
    assert flow.send_rate_variance_mbps2 is None
    assert flow.receive_rate_variance_mbps2 is None
    flow = quicgym.run(dumbbell([{}], duration_s=1), "bbr").flows[0]
    assert flow.send_rate_variance_mbps2 == flow.receive_rate_variance_mbps2 == 0


@every_engine
def test_the_delay_of_a_packet_alone_is_that_of_the_path(engine: str) -> None:
    # 0.1 Mbps of messages: no packet meets another one.
    flow = {"application": {"kind": "constant-rate", "rate_mbps": 0.1}}
    measured = quicgym.run(dumbbell([flow]), "newreno", engine).flows[0]
    assert measured.mean_queue_delay_ms == 0
    full_ms = 20 + (1200 + LINK_BYTES) * 8 * (2 / 100e6 + 1 / 8e6) * 1e3
    assert measured.mean_one_way_delay_ms is not None
    # One packet of about a hundred is small: the acknowledgement of HANDSHAKE_DONE.
    assert full_ms - 0.05 < measured.mean_one_way_delay_ms <= full_ms + 1e-6


@every_engine
def test_completion_is_counted_from_the_start(engine: str) -> None:
    transfer = {"kind": "transfer", "size_bytes": 1_000_000}
    flows = [
        {"start_s": 2, "start_jitter_ms": 30, "application": transfer},
        {"start_s": 9.9, "application": transfer},
        {},
    ]
    with Simulation(dumbbell(flows), engine, 1, "newreno", marks=()) as simulation:
        simulation.run()
        totals = [flow.statistics for flow in simulation.flows]
        result = Run.of(simulation)
    done, late, bulk = result.flows
    assert done.completion_time_s == (totals[0]["completion"] - totals[0]["start"]) * 1e-9
    assert 1 < done.completion_time_s < 7
    assert late.completion_time_s is None and bulk.completion_time_s is None
    assert result.metrics["completion_time_s"] == done.completion_time_s


QUEUES: dict[str, dict[str, Any]] = {
    "packets": {"limit": 20},
    "bytes": {"limit": 25_000, "unit": "bytes"},
    "fifo": {"limit": 20, "discipline": "fifo"},
    "fifo, bytes": {"limit": 25_000, "unit": "bytes", "discipline": "fifo"},
}


@pytest.mark.parametrize(
    ("engine", "queue"),
    [
        *(("native", QUEUES[name]) for name in ("packets", "bytes")),
        *(pytest.param("ns3", queue, marks=pytest.mark.ns3) for queue in QUEUES.values()),
    ],
    ids=["native-packets", "native-bytes", *(f"ns3-{name}" for name in QUEUES)],
)
def test_buffer_use_is_the_mean_of_the_queue(engine: str, queue: dict[str, Any]) -> None:
    flows = [{"start_s": 1.5, "start_jitter_ms": 20}, {"start_s": 3}]
    with Simulation(
        dumbbell(flows, **queue), engine, 5, "cubic", trace_interval_ms=0.1, marks=()
    ) as simulation:
        simulation.run()
        trace = simulation.queue_trace()[queue.get("unit", "packets")]
        start_s = simulation.flows[0].statistics["start"] * 1e-9
        result = Run.of(simulation)
    use = result.metrics["buffer_use_percent"]
    assert use is not None and 40 < use < 100
    assert use == pytest.approx(
        100 * trace.sum() * 1e-4 / queue["limit"] / (10 - start_s), rel=0.005
    )


@settings(max_examples=30, deadline=None)
@given(
    limit=st.integers(1, 60),
    controllers=st.lists(st.sampled_from(["cubic", "bbr", "newreno"]), min_size=1, max_size=4),
    pauses=st.lists(st.integers(0, 3 * SECOND), max_size=5),
)
def test_what_waits_is_the_sum_of_all_waits(
    limit: int, controllers: list[str], pauses: list[int]
) -> None:
    """Little's law, exact once the queue is empty; and until then it never falls."""
    flows = [{"controller": name, "stop_s": 2, "start_jitter_ms": 30} for name in controllers]
    simulation = Simulation(dumbbell(flows, duration_s=5, limit=limit))
    before = 0.0
    for pause in sorted(pauses):
        simulation.run_until(pause * 1e-9)
        assert before <= simulation.queue_occupancy_seconds <= limit * pause * 1e-9 + 1e-9
        before = simulation.queue_occupancy_seconds
    simulation.run()
    waits = sum(flow.statistics["queue_delay_sum_seconds"] for flow in simulation.flows)
    assert simulation.queue_occupancy_seconds == pytest.approx(waits, rel=1e-12)


@pytest.mark.ns3
def test_tcp_has_the_same_metrics() -> None:
    transfer = {"kind": "transfer", "size_bytes": 3_000_000}
    tcp = {"transport": "tcp", "controller": "cubic"}
    flows = [{"name": "bulk", **tcp}, {"name": "sized", "application": transfer, **tcp}]
    with Simulation(dumbbell(flows), "ns3", trace_interval_ms=1, marks=()) as simulation:
        simulation.run()
        windows = simulation.trace("bulk")["window_bytes"]
        received = simulation.trace("bulk")["received_bytes"][999::1000]
        result = Run.of(simulation)
    bulk, sized = result.flows
    segment_bytes = 1200 + 28 - 20 - 32
    assert bulk.mean_window_packets == pytest.approx(windows.mean() / segment_bytes, rel=0.01)
    assert bulk.max_window_packets is not None
    assert bulk.max_window_packets >= windows.max() / segment_bytes
    rates = np.diff([0, *received.astype(np.int64)]) * 8e-6
    assert bulk.receive_rate_variance_mbps2 == pytest.approx(np.var(rates), rel=0.05)
    assert bulk.mean_queue_delay_ms is not None and bulk.mean_one_way_delay_ms is not None
    path_ms = 20 + (1200 + LINK_BYTES) * 8 * (2 / 100e6 + 1 / 8e6) * 1e3
    assert bulk.mean_one_way_delay_ms == pytest.approx(path_ms + bulk.mean_queue_delay_ms, rel=0.05)
    assert sized.completion_time_s is not None and 3 < sized.completion_time_s < 10


def test_jain_takes_any_flows_and_any_metric_of_them() -> None:
    flows = [{"name": name, "controller": name} for name in ("cubic", "bbr", "newreno")]
    run = quicgym.run(dumbbell(flows))
    rates = [flow.receive_rate_mbps for flow in run.flows]
    assert run.metrics["efficiency_index_mbps"] == pytest.approx(sum(rates))
    assert run.metrics["smallest_share"] == pytest.approx(3 * min(rates) / sum(rates))
    assert run.jain() == run.metrics["jain"]
    expected = (rates[0] + rates[2]) ** 2 / (2 * (rates[0] ** 2 + rates[2] ** 2))
    assert run.jain(["cubic", "newreno"]) == run.jain([0, 2]) == pytest.approx(expected)
    assert run.jain([1], "mean_rtt_ms") == 1
    goodputs = [flow.goodput_mbps for flow in run.flows]
    assert run.jain(metric="goodput_mbps") == quicgym.envs.simulation.metrics.jain(goodputs)
    with pytest.raises(ValueError, match="no flow 'reno'; did you mean newreno"):
        run.jain(["reno"])
    with pytest.raises(ValueError, match="no metric 'goodput'.*did you mean goodput_mbps"):
        run.jain(metric="goodput")
    with pytest.raises(ValueError, match="completion_time_s of cubic, bbr, newreno has no value"):
        run.jain(metric="completion_time_s")
    with pytest.raises(ValueError, match="no flow; name at least one"):
        run.jain([])
