"""What is measured of a run: each metric is declared once, as a field of FlowResult or RunMetrics.

A declaration has the name, the unit, the formula in words, how it is computed, and whether less is
better. All lists of names, the columns of results and this table come from it; one with `evaluated`
is measured by `quicgym evaluate`, sweeps and searches, too.

{table}

Runs and flows with traffic of a kind have its metrics, too; a run's are taken over all of its flows
and short flows together:

{traffic_table}

Bytes are UDP payloads, so headers and retransmissions count in the first two and not in goodput.
The active time of a flow goes from its start (jitter included) to its stop, its completion or the
end of the run, whichever comes first. A run's value is the mean over its flows; the last three
belong to the run. A value without any sample is None.

Windows and queues are integrated over every change, not sampled. A sender's time, for its window
and the variance of its rate, goes from the flow's start to its stop, to the acknowledgement of all
that a sized transfer has, or to the end of the run; a receiver's is the active time. Variances are
those of a population: the whole seconds of that time, counted from the flow's start, the first one
included. The queue's time goes from the first flow's start to the end of the run. The packet on the
wire is not in the queue; with one of ns-3's queue discs, the packet that its device keeps ready is.
In a chain the queue of a run is that of hop 1, the bottleneck.
In a wireless LAN the queue is that of the access point, and what is on the air is in it until it is
acknowledged.
Of ns-3's TCP, only segments with payload count, windows are in segments, and the sender's time ends
with the receiver's; a segment that arrives and brings nothing new counts as sent only, because ns-3
does not tell of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from quicgym.envs.scenarios.conversion import nanoseconds
from quicgym.envs.simulation.traffic import PAGES, REQUESTS, SHORT_FLOWS, VIDEO, TrafficTotals


@dataclass(frozen=True)
class Metric:
    """The declaration of a metric.

    Attributes:
        name: Of the field, with the unit.
        title: For the head of a table, with the unit.
        unit: As text.
        formula: In words.
        compute: The value, of FlowTotals or RunTotals.
        less_is_better: Otherwise more is.
        evaluated: Episodes of policies have it, too; one of a run may use its flows only.
        of_agents: Episodes have `agent_` and the name, too: the mean over the policy's flows.
        traffic: The kind of traffic that has it; empty: every flow, or every run.
    """

    name: str
    title: str
    unit: str
    formula: str
    compute: Callable[[Any], float | None]
    less_is_better: bool
    evaluated: bool
    of_agents: bool
    traffic: str


def metric(
    title: str,
    unit: str,
    formula: str,
    compute: Callable[[Any], float | None],
    *,
    less_is_better: bool = False,
    evaluated: bool = False,
    of_agents: bool = False,
    traffic: str = "",
) -> Any:
    """Declares a field of FlowResult, RunMetrics or TrafficMetrics as a metric; see Metric."""
    declared = (title, unit, formula, compute, less_is_better, evaluated, of_agents, traffic)
    return field(metadata={"metric": declared})


def metrics_of(result: type) -> tuple[Metric, ...]:
    """Returns the metrics that a class of results declares, in their order."""
    return tuple(
        Metric(entry.name, *entry.metadata["metric"])
        for entry in fields(result)
        if "metric" in entry.metadata
    )


class FlowTotals:
    """What the metrics of a flow are computed from.

    Attributes:
        total: Its totals, as SimulatedFlow.statistics has them.
        active_s: Its active time.
    """

    def __init__(self, total: Mapping[str, Any], stop_s: float | None, end: int) -> None:
        """Takes the totals, when the scenario stops the flow, and when the run ended, in ns."""
        ends = [end, total["completion"], None if stop_s is None else nanoseconds(stop_s)]
        self.total = total
        self.active_s = (min(at for at in ends if at is not None) - total["start"]) * 1e-9

    def __getitem__(self, name: str) -> Any:
        """Returns one of the totals."""
        return self.total[name]

    def mbps(self, count: str) -> float:
        """Returns a number of bytes over the active time."""
        return self[count] * 8 / self.active_s / 1e6 if self.active_s > 0 else 0.0

    def mean_ms(self, seconds: str, count: str) -> float | None:
        """Returns the mean of so many times."""
        return ratio(1e3 * self[seconds], self[count])

    def variance_mbps2(self, side: str) -> float | None:
        """Returns the variance of the rate in whole seconds."""
        return self[f"{side}_rate_variance"] * 8e-6**2 if self[f"{side}_rate_bins"] else None

    def completion_s(self) -> float | None:
        """Returns the time from the start to the completion."""
        completion = self["completion"]
        return None if completion is None else (completion - self["start"]) * 1e-9


def ratio(numerator: float, denominator: float) -> float | None:
    """Returns the quotient; None where there is nothing to divide by."""
    return numerator / denominator if denominator else None


@dataclass(frozen=True)
class FlowResult:
    """Metrics of one flow; units are in the names, formulas in this module's text."""

    name: str
    controller: str
    send_rate_mbps: float = metric(
        "sending rate (Mbps)",
        "Mbps",
        "sent bytes · 8 / active time / 10^6",
        lambda flow: flow.mbps("sent_bytes"),
    )
    receive_rate_mbps: float = metric(
        "receiving rate (Mbps)",
        "Mbps",
        "bytes that reached the receiver · 8 / active time / 10^6",
        lambda flow: flow.mbps("received_bytes"),
    )
    goodput_mbps: float = metric(
        "goodput (Mbps)",
        "Mbps",
        "stream bytes received for the first time · 8 / active time / 10^6",
        lambda flow: flow.mbps("goodput_bytes"),
        evaluated=True,
        of_agents=True,
    )
    loss_percent: float | None = metric(
        "loss (%)",
        "%",
        "100 · packets that the network dropped / packets sent",
        lambda flow: ratio(100 * flow["dropped_packets"], flow["sent_packets"]),
        less_is_better=True,
        evaluated=True,
    )
    mean_rtt_ms: float | None = metric(
        "mean RTT (ms)",
        "ms",
        "mean of the sender's RTT samples, the peer's ACK delay included",
        lambda flow: flow.mean_ms("rtt_sum_seconds", "rtt_samples"),
        less_is_better=True,
        evaluated=True,
    )
    p95_rtt_ms: float | None = metric(
        "95th percentile RTT (ms)",
        "ms",
        "their 95th percentile, from a histogram with under 1% error",
        lambda flow: 1e3 * flow["rtt_p95_seconds"] if flow["rtt_samples"] else None,
        less_is_better=True,
    )
    mean_queue_delay_ms: float | None = metric(
        "queueing delay (ms)",
        "ms",
        "mean time in the bottleneck's queue of the packets that left it; in a chain the mean over "
        "the queues passed, times their number",
        lambda flow: ratio(
            1e3 * flow["queue_delay_sum_seconds"] * flow["queues"], flow["queue_samples"]
        ),
        less_is_better=True,
        evaluated=True,
    )
    mean_one_way_delay_ms: float | None = metric(
        "one-way delay (ms)",
        "ms",
        "mean of receiving − sending time of what reached the receiver",
        lambda flow: flow.mean_ms("one_way_delay_sum_seconds", "received_packets"),
        less_is_better=True,
    )
    completion_time_s: float | None = metric(
        "completion time (s)",
        "s",
        "of a sized transfer: the receiver has every byte − the flow's start",
        lambda flow: flow.completion_s(),
        less_is_better=True,
    )
    mean_window_packets: float | None = metric(
        "mean window (packets)",
        "packets",
        "∫ window dt / time / size of a full packet",
        lambda flow: ratio(flow["window_packet_seconds"], flow["window_seconds"]),
    )
    max_window_packets: float | None = metric(
        "largest window (packets)",
        "packets",
        "largest window / size of a full packet",
        lambda flow: flow["max_window_packets"] if flow["window_seconds"] else None,
    )
    send_rate_variance_mbps2: float | None = metric(
        "variance of the sending rate (Mbps²)",
        "Mbps²",
        "variance of the sent bytes · 8 / 10^6 per second",
        lambda flow: flow.variance_mbps2("send"),
        less_is_better=True,
    )
    receive_rate_variance_mbps2: float | None = metric(
        "variance of the receiving rate (Mbps²)",
        "Mbps²",
        "the same of the bytes that reached the receiver",
        lambda flow: flow.variance_mbps2("receive"),
        less_is_better=True,
    )


@dataclass(frozen=True)
class RunTotals:
    """What the metrics of a run are computed from.

    Attributes:
        flows: The metrics of each flow.
        queue_seconds: ∫ of the bottleneck's queue dt, in the unit of its limit.
        full_queue_seconds: The same of a queue that is always full.
    """

    flows: Sequence[FlowResult]
    queue_seconds: float = 0.0
    full_queue_seconds: float = 0.0


@dataclass(frozen=True)
class RunMetrics:
    """Metrics of a whole run."""

    jain: float | None = metric(
        "Jain's index",
        "0 to 1",
        "(Σ x)² / (n · Σ x²) over the flows' receiving rates",
        lambda run: jain(flow.receive_rate_mbps for flow in run.flows),
        evaluated=True,
    )
    buffer_use_percent: float | None = metric(
        "buffer use (%)",
        "%",
        "100 · ∫ queue dt / time / the queue's limit, in the limit's unit",
        lambda run: (
            100 * run.queue_seconds / run.full_queue_seconds if run.full_queue_seconds > 0 else None
        ),
    )
    efficiency_index_mbps: float = metric(
        "efficiency index (Mbps)",
        "Mbps",
        "sum of the flows' receiving rates",
        lambda run: sum(flow.receive_rate_mbps for flow in run.flows),
    )


def quantile(values: np.ndarray, probability: float) -> float | None:
    """Returns the quantile, straight between samples; None of nothing."""
    return float(np.quantile(values, probability)) if len(values) else None


STATISTICS: dict[str, Callable[[np.ndarray], float | None]] = {
    "mean": lambda values: mean_of(values),
    "median": lambda values: quantile(values, 0.5),
    "99th percentile": lambda values: quantile(values, 0.99),
}
SIZES = {"small": "at most 100 kB", "medium": "100 kB to 10 MB", "large": "more than 10 MB"}
"""Of the classes of short flows."""


def completion_time(statistic: str, size_class: str = "") -> Any:
    """Declares a statistic of the completion times of short flows, all or those of a class."""
    sizes = f" of {SIZES[size_class]}" if size_class else ""
    return metric(
        f"completion time{sizes}, {statistic} (ms)",
        "ms",
        f"{statistic} of completion − arrival over the completed short flows{sizes}",
        lambda traffic: STATISTICS[statistic](traffic.completion_ms(size_class)),
        less_is_better=True,
        traffic=SHORT_FLOWS,
    )


def latency(statistic: str) -> Any:
    """Declares a statistic of the latencies of requests."""
    return metric(
        f"request latency, {statistic} (ms)",
        "ms",
        f"{statistic} of (last byte of the response received − request made)",
        lambda traffic: STATISTICS[statistic](traffic.latency_ms()),
        less_is_better=True,
        traffic=REQUESTS,
    )


@dataclass(frozen=True)
class TrafficMetrics:
    """Metrics of applications: only runs and flows with such traffic have them."""

    short_flow_arrivals: float = metric(
        "short flows arrived",
        "flows",
        "transfers that arrived",
        lambda traffic: len(traffic.transfers),
        traffic=SHORT_FLOWS,
    )
    short_flows_completed_percent: float | None = metric(
        "short flows completed (%)",
        "%",
        "100 · transfers of which the receiver has every byte / transfers that arrived",
        lambda traffic: ratio(100 * len(traffic.completed), len(traffic.transfers)),
        traffic=SHORT_FLOWS,
    )
    fct_mean_ms: float | None = completion_time("mean")
    fct_median_ms: float | None = completion_time("median")
    fct_p99_ms: float | None = completion_time("99th percentile")
    fct_small_mean_ms: float | None = completion_time("mean", "small")
    fct_small_median_ms: float | None = completion_time("median", "small")
    fct_small_p99_ms: float | None = completion_time("99th percentile", "small")
    fct_medium_mean_ms: float | None = completion_time("mean", "medium")
    fct_medium_median_ms: float | None = completion_time("median", "medium")
    fct_medium_p99_ms: float | None = completion_time("99th percentile", "medium")
    fct_large_mean_ms: float | None = completion_time("mean", "large")
    fct_large_median_ms: float | None = completion_time("median", "large")
    fct_large_p99_ms: float | None = completion_time("99th percentile", "large")
    request_latency_mean_ms: float | None = latency("mean")
    request_latency_median_ms: float | None = latency("median")
    request_latency_p99_ms: float | None = latency("99th percentile")
    page_load_time_s: float | None = metric(
        "page load time (s)",
        "s",
        "mean of (last object received − the flow's start) over the pages that were loaded",
        lambda traffic: mean_of(traffic.page_load_s),
        less_is_better=True,
        traffic=PAGES,
    )
    video_rate_mbps: float | None = metric(
        "video bit rate (Mbps)",
        "Mbps",
        "mean of the nominal rates of the chunks that arrived",
        lambda traffic: mean_of(traffic.chunk_mbps),
        traffic=VIDEO,
    )
    video_switches: float = metric(
        "video rate switches",
        "switches",
        "how often a chunk that arrived has another rate than the one before it",
        lambda traffic: traffic.switches,
        less_is_better=True,
        traffic=VIDEO,
    )
    rebuffering_percent: float | None = metric(
        "rebuffering (%)",
        "%",
        "100 · time at standstill / (time at standstill + time played), from the first picture on",
        lambda traffic: ratio(100 * traffic.stalled_s, traffic.stalled_s + traffic.playing_s),
        less_is_better=True,
        traffic=VIDEO,
    )


DECLARED_OF_FLOWS = metrics_of(FlowResult)
DECLARED_OF_RUNS = metrics_of(RunMetrics)
DECLARED_OF_TRAFFIC = metrics_of(TrafficMetrics)
DECLARED = (*DECLARED_OF_FLOWS, *DECLARED_OF_RUNS)
FLOW_METRICS = tuple(entry.name for entry in DECLARED_OF_FLOWS)
RUN_METRICS = tuple(entry.name for entry in DECLARED_OF_RUNS)
METRICS = (*FLOW_METRICS, *RUN_METRICS)
TRAFFIC_METRICS = tuple(entry.name for entry in DECLARED_OF_TRAFFIC)


def jain(values: Iterable[float]) -> float | None:
    """Returns Jain's fairness index, from 1/n to 1; None where every value is 0."""
    array = np.asarray(list(values), dtype=float)
    squares = float(np.sum(array**2))
    return float(np.sum(array) ** 2) / (len(array) * squares) if squares > 0 else None


def mean_of(values: Iterable[float | None]) -> float | None:
    """Returns the mean of the values that are there; None where none is."""
    there = [value for value in values if value is not None]
    return float(np.mean(there)) if there else None


def measure_flow(
    name: str, controller: str, total: Mapping[str, Any], stop_s: float | None, end: int
) -> FlowResult:
    """Returns a flow's metrics.

    Args:
        name: Of the flow.
        controller: Of the flow.
        total: Its totals, as SimulatedFlow.statistics has them.
        stop_s: When the scenario stops it.
        end: When the run ended, in ns.
    """
    totals = FlowTotals(total, stop_s, end)
    values = {entry.name: entry.compute(totals) for entry in DECLARED_OF_FLOWS}
    return FlowResult(name=name, controller=controller, **values)  # type: ignore[arg-type]


def measure_run(totals: RunTotals) -> dict[str, float | None]:
    """Returns a run's metrics: means over the flows, and what belongs to the run."""
    means = {name: mean_of(getattr(flow, name) for flow in totals.flows) for name in FLOW_METRICS}
    return {**means, **{entry.name: entry.compute(totals) for entry in DECLARED_OF_RUNS}}


def measure_traffic(traffic: TrafficTotals) -> dict[str, float | None]:
    """Returns the metrics of the kinds of traffic that there are."""
    return {
        entry.name: entry.compute(traffic)
        for entry in DECLARED_OF_TRAFFIC
        if entry.traffic in traffic.kinds
    }


def metrics_table(declared: Sequence[Metric] = DECLARED) -> str:
    """Returns every metric with its formula and unit, as Markdown."""
    rows = [f"| {entry.name} | {entry.formula} | {entry.unit} |" for entry in declared]
    return "\n".join(["| metric | formula | unit |", "|---|---|---|", *rows])


__doc__ = (__doc__ or "").format(
    table=metrics_table(), traffic_table=metrics_table(DECLARED_OF_TRAFFIC)
)
