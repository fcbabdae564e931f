"""Declares the metrics of a run, each of them once.

A declaration has the name, the unit, the formula in words, how it is computed, its scope, and
whether less is better. Every command takes its metrics from here: one name is one number. A metric
is that of a window of the run, by default the whole run.

{table}

Runs and flows with traffic of a kind have its metrics, too. The run's are taken over all of its
flows and short flows together:

{traffic_table}

Metrics of a flow's time series need traces, and are taken over the flow's active time. Those that
count from the flow's start have no value where the window begins later. The run's value is the mean
over the flows:

{trace_table}

Metrics of how flows share the bottleneck of a dumbbell, which are computed where they are asked for
by name, as in `Run.metric("agent_fair_share")`:

{sharing_table}

Metrics of what the policy's flows get while bursts last, which are computed where they are asked
for by name, too. Bursts are those of all flows' applications of the kind bursts, counted from
`start_s`. Those that begin within the window count, up to its end:

{burst_table}

A fair share is the capacity of the bottleneck over the number of active flows that go forward, with
headers. Short flows are not counted. Flows have converged from the first moment on from which the
rate of each flow, in each second of the next 5 s, is within 25% of the fair share. That is the
definition of Dong et al., "PCC: Re-architecting Congestion Control for Consistent High
Performance", NSDI 2015. Liao et al. ("Astraea", EuroSys 2024) and Tian et al. ("Jury", EuroSys
2025) report the time and the deviation after it, too. The time is None where flows do not converge
after a change, and changes that are followed by another within 5 s do not count.

The scope of a metric:

- flow: each flow has the metric. The run's value is the mean over its flows. A mean rate is the
  mean of the flows' bytes over the time in which any of the flows is active, so that the rates of
  all flows add up to no more than the bottleneck carries.
- run: the metric belongs to the run as a whole.
- agents: the metric is taken over the flows that name no controller, which have the policy.
- others: the metric is taken over the flows that name their controller.

Bytes are UDP payloads, so headers of QUIC and retransmissions count in the first two metrics of
flows and not in goodput. Three rates count more headers, as some papers do. IP bytes are those of
ns-3's FlowMonitor: UDP 8 and IPv4 20 are added to each datagram, once where it is fragmented. Wire
bytes are what a link carries: PPP 2 is added to that.

A flow is active from its start (jitter included) to its stop, its completion or the
end of the run, whichever comes first; in a window only that part counts. A value without any sample
is None.

Shares are compared while all compared flows are active: over the whole intervals of 100 ms between
the latest start and the earliest end. Where there is no such interval the value is None.

The reward and its terms are measured over intervals of 100 ms, from the start of the first flow
that names no controller to the end of the last. Where every flow names its controller, they are
measured from the start of the first flow to the end of the last.

Windows and queues are integrated over every change, not sampled. A sender's time, for its window
and the variance of its rate, goes from the flow's start to its stop, to the acknowledgement of all
that a sized transfer has, or to the end of the run; a receiver's is the active time. Variances are
those of a population: the whole seconds of that time, counted from the flow's start, the first one
included. The queue's time, and that of the bottleneck's capacity, goes from the first start of a
flow or of short flows to the end of the run. The packet on the
wire is not in the queue; with one of ns-3's queue discs, the packet that its device keeps ready is.
In a chain the queue of a run is that of hop 1, the bottleneck, but utilisation, offered load and
the queueing delay of all packets are taken over all hops: a flow counts at every hop that it passes
forward, as each hop's capacity counts.
In a wireless LAN the queue is that of the access point, and what is on the air is in it until it is
acknowledged.
Of ns-3's TCP, only segments with payload count, windows are in segments, and the sender's time ends
with the receiver's; a segment that arrives and brings nothing new counts as sent only, because ns-3
does not tell of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, Literal

import numpy as np

from quicgym.envs.scenarios.applications import Transfer
from quicgym.envs.scenarios.conversion import nanoseconds
from quicgym.envs.scenarios.fields import LINK_HEADER_BYTES
from quicgym.envs.scenarios.flows import Flow
from quicgym.envs.scenarios.short_flows import ShortFlows
from quicgym.envs.simulation.series import Series
from quicgym.envs.simulation.simulation import MODES
from quicgym.envs.simulation.traffic import (
    MEDIA,
    PAGES,
    REQUESTS,
    SHORT_FLOWS,
    VIDEO,
    TrafficTotals,
)

Scope = Literal["flow", "run", "agents", "others"]
CONVERGED_SHARE = 0.9
"""Share of the second half's rate at which a flow has converged; our reading of convergence."""
CONVERGENCE_WINDOW_S = 0.1
REDUCED_SHARE = 0.9
"""Share of its largest value so far below which a window has been reduced; our reading."""
LARGEST_WINDOW_SHARE = 0.95
"""Share of its largest value from which on a window is at its maximum; our reading."""
HEADER_BYTES = {"ip": LINK_HEADER_BYTES - 2, "wire": LINK_HEADER_BYTES}
"""Bytes that a datagram has in addition to its UDP payload: in IP, and on the wire with PPP."""


@dataclass(frozen=True)
class Metric:
    """The declaration of a metric.

    Attributes:
        name: Name of the metric, with its unit.
        title: Title at the head of a table, with the unit.
        unit: Unit as text.
        formula: Formula in words.
        compute: Returns the value: of FlowTotals (scope flow), RunTotals (any other scope),
            TrafficTotals (with `traffic`), Sharing (of SharingMetrics), or a flow's trace (with
            `needs_traces`).
        scope: Scope that the metric is taken over, see this module's text.
        less_is_better: Whether a lower value is better; otherwise a higher one is.
        evaluated: Whether `quicgym evaluate` and sweeps have the metric, too.
        rate_of: Name of the count of bytes whose mean rate a metric of flows is; empty: it is no
            mean rate.
        traffic: The kind of traffic that has the metric; empty: every flow, or every run.
        needs_traces: Whether the metric is computed from a flow's time series.
        from_start: Whether it counts from the flow's start, so that a window which begins later
            has no value.
        limits: The least and the largest value that it can have; None: its unit says it.
    """

    name: str
    title: str
    unit: str
    formula: str
    compute: Callable[[Any], float | None]
    scope: Scope = "flow"
    less_is_better: bool = False
    evaluated: bool = False
    rate_of: str = ""
    traffic: str = ""
    needs_traces: bool = False
    from_start: bool = False
    limits: tuple[float, float] | None = None

    @property
    def bounds(self) -> tuple[float, float]:
        """The least and the largest value that the metric can have."""
        if self.limits is not None:
            return self.limits
        return 0.0, {"%": 100.0, "0 to 1": 1.0}.get(self.unit, math.inf)


def metric(
    title: str, unit: str, formula: str, compute: Callable[[Any], float | None], **more: Any
) -> Any:
    """Declares a field of a class as a metric; see Metric."""
    return field(metadata={"metric": ((title, unit, formula, compute), more)})


def metrics_of(declaring: type) -> tuple[Metric, ...]:
    """Returns the metrics that a class declares, in their order."""
    return tuple(
        Metric(entry.name, *entry.metadata["metric"][0], **entry.metadata["metric"][1])
        for entry in fields(declaring)
        if "metric" in entry.metadata
    )


def ratio(numerator: float, denominator: float) -> float | None:
    """Returns the quotient; None where there is nothing to divide by."""
    return numerator / denominator if denominator else None


def jain(values: Iterable[float]) -> float | None:
    """Returns Jain's fairness index, from 1/n to 1; None where every value is 0."""
    array = np.asarray(list(values), dtype=float)
    squares = float(np.sum(array**2))
    return float(np.sum(array) ** 2) / (len(array) * squares) if squares > 0 else None


def mean_of(values: Iterable[float | None]) -> float | None:
    """Returns the mean of the values that are there; None where none is."""
    there = [value for value in values if value is not None]
    return float(np.mean(there)) if there else None


# ---- what metrics are computed from ---------------------------------------------------------


class FlowTotals:
    """A flow in a window: what the metrics of a flow are computed from.

    `total` has the keys of SimulatedFlow.statistics. The flow's active time in the window is from
    `begin` to `end`, in ns; `end` is before `begin` where the flow is not active.
    """

    def __init__(self, total: Mapping[str, Any], flow: Flow, window: tuple[int, int]) -> None:
        """Takes the totals, the scenario's flow, and the window's ends in ns."""
        stop = None if flow.stop_s is None else nanoseconds(flow.stop_s)
        ends = (window[1], total["completion"], stop)
        self.total = total
        # Only what goes forward passes the bottleneck.
        self.hops = total["queues"] if flow.direction == "forward" else 0
        self.begin = max(total["start"], window[0])
        self.end = min(at for at in ends if at is not None)
        self.has_policy = flow.controller is None
        self.is_quic = flow.transport == "quic"
        self.is_transfer = isinstance(flow.application, Transfer)
        self._window = window

    def __getitem__(self, name: str) -> Any:
        """Returns one of the totals, or bytes with headers, such as received_wire_bytes."""
        if name in self.total:
            return self.total[name]
        return with_headers(self.total, name)

    @property
    def active_s(self) -> float:
        """The active time in the window."""
        return max(0, self.end - self.begin) * 1e-9

    def mbps(self, count: str, duration_s: float | None = None) -> float:
        """Returns a number of bytes over a time; None: over the active time."""
        seconds = self.active_s if duration_s is None else duration_s
        return self[count] * 8 / seconds / 1e6 if seconds > 0 else 0.0

    def mean_ms(self, seconds: str, count: str) -> float | None:
        """Returns the mean of so many times."""
        return ratio(1e3 * self[seconds], self[count])

    def quantile_ms(self, seconds: str, count: str) -> float | None:
        """Returns a quantile of times; None without a sample, or where none were recorded."""
        if seconds not in self.total or not self[count]:
            return None
        return float(1e3 * self[seconds])

    def variance_mbps2(self, side: str) -> float | None:
        """Returns the variance of the rate in whole seconds."""
        return self[f"{side}_rate_variance"] * 8e-6**2 if self[f"{side}_rate_bins"] else None

    def blocked_percent(self) -> float | None:
        """Returns the share of the active time; None where the transport does not tell of it."""
        if not self.is_quic or "blocked_seconds" not in self.total:
            return None
        return ratio(100 * self["blocked_seconds"], self.active_s)

    def spurious_loss_percent(self) -> float | None:
        """Returns the share of the packets sent; None where the transport does not tell of it."""
        if not self.is_quic or "spuriously_lost_packets" not in self.total:
            return None
        return ratio(100 * self["spuriously_lost_packets"], self["sent_packets"])

    def completion_s(self) -> float | None:
        """Returns the time from the start to the completion, if that is in the window."""
        completion = self["completion"]
        begin, end = self._window
        if completion is None or not begin <= completion <= end:
            return None
        return float((completion - self["start"]) * 1e-9)


class ShortFlowTotals:
    """All connections of an entry of short flows in a window.

    `total` has the keys of Simulation.short_flow_totals. They begin to arrive at `start`, in ns.
    """

    def __init__(self, total: Mapping[str, float], entry: ShortFlows, hops: int) -> None:
        """Takes the totals, the scenario's entry, and the number of hops that it passes."""
        self.total = total
        self.hops = hops
        self.start = nanoseconds(entry.start_s)

    def __getitem__(self, name: str) -> float:
        """Returns one of the totals, or bytes with headers, such as received_wire_bytes."""
        return self.total[name] if name in self.total else with_headers(self.total, name)


def with_headers(total: Mapping[str, Any], name: str) -> Any:
    """Returns bytes with headers by their name, such as received_wire_bytes."""
    side, layer, _ = name.split("_")
    return total[f"{side}_bytes"] + HEADER_BYTES[layer] * total[f"{side}_packets"]


@dataclass(frozen=True)
class RunTotals:
    """A run in a window, in ns: what the metrics of a run are computed from.

    `capacity` returns the bits that all hops could have carried between two times in ns, headers
    included. `series` is that of the whole run. `queue_seconds` is ∫ of the bottleneck's queue dt,
    in the unit of its limit.
    """

    flows: Sequence[FlowTotals]
    short_flows: Sequence[ShortFlowTotals]
    window: tuple[int, int]
    capacity: Callable[[int, int], float]
    series: Series
    traffic: TrafficTotals
    queue_seconds: float
    queue_limit: float

    @property
    def agents(self) -> list[int]:
        """The places of the flows that have the policy."""
        return [index for index, flow in enumerate(self.flows) if flow.has_policy]

    @property
    def others(self) -> list[int]:
        """The places of the flows that name their controller."""
        return [index for index, flow in enumerate(self.flows) if not flow.has_policy]

    @property
    def all_flows(self) -> range:
        """The places of all flows."""
        return range(len(self.flows))

    @cached_property
    def begin(self) -> int:
        """When the first flow or the first short flows start, in the window."""
        starts = [flow["start"] for flow in self.flows] + [each.start for each in self.short_flows]
        return max(self.window[0], min(starts))

    @property
    def buffer_use_percent(self) -> float | None:
        """The mean of the queue from the first start on, in percent of its limit."""
        full = self.queue_limit * ((self.window[1] - self.begin) * 1e-9)
        return 100 * self.queue_seconds / full if full > 0 else None

    @property
    def queue_delay_ms(self) -> float | None:
        """The mean time in a queue of the bottleneck's direction."""
        every: list[FlowTotals | ShortFlowTotals] = [*self.flows, *self.short_flows]
        passing = [each for each in every if each.hops]
        delay_s = sum(each["queue_delay_sum_seconds"] for each in passing)
        return ratio(1e3 * delay_s, sum(each["queue_samples"] for each in passing))

    def sum(self, flows: Iterable[int], count: str) -> float:
        """Returns the sum of one of the flows' totals."""
        return float(sum(self.flows[index][count] for index in flows))

    def mean_rate_mbps(self, flows: Sequence[int], count: str) -> float | None:
        """Returns the mean of the flows' bytes over the time in which any of them is active."""
        chosen = [self.flows[index] for index in flows]
        seconds = _union_s((flow.begin, flow.end) for flow in chosen)
        return mean_of(flow.mbps(count, seconds) for flow in chosen)

    def shared_rates_mbps(self, flows: Sequence[int]) -> list[float] | None:
        """Returns the receiving rates while all of the flows are active; None: they never are."""
        chosen = [self.flows[index] for index in flows]
        if not chosen:
            return None
        series = self.series
        times = np.concatenate([[series.begin], series.received_times])
        first = int(np.searchsorted(times, max(flow.begin for flow in chosen)))
        last = int(np.searchsorted(times, min(flow.end for flow in chosen), side="right")) - 1
        if first == 0 and series.begin > min(flow["start"] for flow in self.flows):
            first = 1  # what had arrived when the series began is not known
        if last <= first:
            return None
        seconds = float(times[last] - times[first]) * 1e-9
        places = list(flows)
        received = series.received[last - 1, places].astype(np.int64)
        if first > 0:
            received = received - series.received[first - 1, places].astype(np.int64)
        return [float(rate) for rate in received * 8 / seconds / 1e6]

    def share_of_capacity(
        self, count: str, flows: Iterable[FlowTotals | ShortFlowTotals]
    ) -> float | None:
        """Returns the bits of some flows over what the bottleneck could have carried.

        They count at every hop that they pass, as the capacity of every hop counts.
        """
        if self.window[1] <= self.begin:
            return None
        bits = 8 * sum(flow[count] * flow.hops for flow in flows if flow.hops)
        return ratio(float(bits), self.capacity(self.begin, self.window[1]))

    def shared_wire_rate_mbps(self) -> float | None:
        """Returns the sum of the flows' receiving rates while all are active, in wire bytes.

        Each flow has the headers of its mean packet.
        """
        rates = self.shared_rates_mbps(self.all_flows)
        if rates is None:
            return None
        return sum(
            rate * (ratio(flow["received_wire_bytes"], flow["received_bytes"]) or 1.0)
            for rate, flow in zip(rates, self.flows, strict=True)
        )

    def mean(self, column: str) -> float | None:
        """Returns the mean over time of a column of the series, until the policy's flows end."""
        ends = np.rint(self.series.columns["time_s"] * 1e9).astype(np.int64)
        last = max(self.flows[index].end for index in self.agents or self.all_flows)
        begin, end = self.window
        if (place := int(np.searchsorted(ends, last))) < len(ends):
            end = min(end, int(ends[place]))
        return self.series.mean(column, (begin, end))

    def transfer_time_s(self) -> float | None:
        """Returns the mean completion time of the policy's transfers; None: one is not complete."""
        transfers = [flow for flow in self.flows if flow.has_policy and flow.is_transfer]
        times = [flow.completion_s() for flow in transfers]
        return None if None in times else mean_of(times)


def _union_s(intervals: Iterable[tuple[int, int]]) -> float:
    """Returns how long it is that at least one of the intervals, in ns, lasts."""
    total, until = 0, None
    for begin, end in sorted(interval for interval in intervals if interval[0] < interval[1]):
        if until is None or begin > until:
            total, until = total + end - begin, end
        elif end > until:
            total, until = total + end - until, end
    return total * 1e-9


# ---- the metrics ----------------------------------------------------------------------------
# In a few lines each, and not in one line for each argument.
# fmt: off


def percentile(share: int, delay: str, title: str, count: str) -> Any:
    """Declares a percentile of a flow's delays, where there are so many samples."""
    formula = f"{share}th percentile of the {title} of each packet"
    if delay == "rtt":
        formula = f"{share}th percentile of the sender's RTT samples"
    elif delay == "queue_delay":
        formula += ", in a chain of each of its queues"
    return metric(f"{title}, {share}th percentile (ms)", "ms",
        f"{formula}, from a histogram with under 1% error",
        lambda flow: flow.quantile_ms(f"{delay}_p{share}_seconds", count), less_is_better=True)


@dataclass(frozen=True)
class FlowResult:
    """Metrics of one flow in a window; this module's text has the formulas."""

    name: str
    controller: str
    send_rate_mbps: float = metric("sending rate (Mbps)", "Mbps",
        "sent bytes · 8 / active time / 10^6", lambda flow: flow.mbps("sent_bytes"),
        rate_of="sent_bytes")
    receive_rate_mbps: float = metric("receiving rate (Mbps)", "Mbps",
        "bytes that reached the receiver · 8 / active time / 10^6",
        lambda flow: flow.mbps("received_bytes"), rate_of="received_bytes")
    ip_send_rate_mbps: float = metric("sending rate in IP bytes (Mbps)", "Mbps",
        "sent bytes with UDP and IP headers · 8 / active time / 10^6",
        lambda flow: flow.mbps("sent_ip_bytes"), rate_of="sent_ip_bytes")
    ip_receive_rate_mbps: float = metric("receiving rate in IP bytes (Mbps)", "Mbps",
        "bytes that reached the receiver, with UDP and IP headers · 8 / active time / 10^6",
        lambda flow: flow.mbps("received_ip_bytes"), rate_of="received_ip_bytes")
    wire_receive_rate_mbps: float = metric("receiving rate in wire bytes (Mbps)", "Mbps",
        "bytes that reached the receiver, with UDP, IP and PPP headers · 8 / active time / 10^6",
        lambda flow: flow.mbps("received_wire_bytes"), rate_of="received_wire_bytes")
    goodput_mbps: float = metric("goodput (Mbps)", "Mbps",
        "stream bytes received for the first time, without bursts' own stream, · 8 / active time / "
        "10^6", lambda flow: flow.mbps("goodput_bytes"), rate_of="goodput_bytes", evaluated=True)
    loss_percent: float | None = metric("loss (%)", "%",
        "100 · packets that the network dropped / packets sent",
        lambda flow: ratio(100 * flow["dropped_packets"], flow["sent_packets"]),
        less_is_better=True, evaluated=True)
    mean_rtt_ms: float | None = metric("mean RTT (ms)", "ms",
        "mean of the sender's RTT samples, the peer's ACK delay included",
        lambda flow: flow.mean_ms("rtt_sum_seconds", "rtt_samples"), less_is_better=True,
        evaluated=True)
    p50_rtt_ms: float | None = percentile(50, "rtt", "RTT", "rtt_samples")
    p95_rtt_ms: float | None = percentile(95, "rtt", "RTT", "rtt_samples")
    p99_rtt_ms: float | None = percentile(99, "rtt", "RTT", "rtt_samples")
    mean_queue_delay_ms: float | None = metric("queueing delay (ms)", "ms",
        "mean time in the bottleneck's queue of the packets that left it; in a chain the mean over "
        "the queues passed, times their number",
        lambda flow: ratio(1e3 * flow["queue_delay_sum_seconds"] * flow["queues"],
                           flow["queue_samples"]), less_is_better=True, evaluated=True)
    p50_queue_delay_ms: float | None = percentile(50, "queue_delay", "queueing delay",
        "queue_samples")
    p95_queue_delay_ms: float | None = percentile(95, "queue_delay", "queueing delay",
        "queue_samples")
    p99_queue_delay_ms: float | None = percentile(99, "queue_delay", "queueing delay",
        "queue_samples")
    mean_one_way_delay_ms: float | None = metric("one-way delay (ms)", "ms",
        "mean of receiving − sending time of what reached the receiver",
        lambda flow: flow.mean_ms("one_way_delay_sum_seconds", "received_packets"),
        less_is_better=True)
    p50_one_way_delay_ms: float | None = percentile(50, "one_way_delay", "one-way delay",
        "received_packets")
    p95_one_way_delay_ms: float | None = percentile(95, "one_way_delay", "one-way delay",
        "received_packets")
    p99_one_way_delay_ms: float | None = percentile(99, "one_way_delay", "one-way delay",
        "received_packets")
    completion_time_s: float | None = metric("completion time (s)", "s",
        "of a sized transfer: the receiver has every byte − the flow's start",
        lambda flow: flow.completion_s(), less_is_better=True)
    blocked_percent: float | None = metric("blocked by flow control (%)", "%",
        "100 · time in which new data waited for the receiver's flow control alone / active time",
        lambda flow: flow.blocked_percent(), less_is_better=True, evaluated=True)
    spurious_loss_percent: float | None = metric("spurious losses (%)", "%",
        "100 · packets that the sender declared lost, but that arrived / packets sent",
        lambda flow: flow.spurious_loss_percent(), less_is_better=True)
    mean_window_packets: float | None = metric("mean window (packets)", "packets",
        "∫ window dt / time / size of a full packet",
        lambda flow: ratio(flow["window_packet_seconds"], flow["window_seconds"]))
    max_window_packets: float | None = metric("largest window (packets)", "packets",
        "largest window / size of a full packet",
        lambda flow: flow["max_window_packets"] if flow["window_seconds"] else None)
    send_rate_variance_mbps2: float | None = metric("variance of the sending rate (Mbps²)",
        "Mbps²", "variance of the sent bytes · 8 / 10^6 per second",
        lambda flow: flow.variance_mbps2("send"), less_is_better=True)
    receive_rate_variance_mbps2: float | None = metric("variance of the receiving rate (Mbps²)",
        "Mbps²", "the same of the bytes that reached the receiver",
        lambda flow: flow.variance_mbps2("receive"), less_is_better=True)


def over_time(title: str, unit: str, formula: str, column: str, **more: Any) -> Any:
    """Declares the mean over time of a column of the series, which evaluations have."""
    return metric(title, unit, f"mean over time of {formula}", lambda run: run.mean(column),
        scope="run", evaluated=True, **more)


def goodput(scope: Literal["agents", "others"], whose: str, **more: Any) -> Any:
    """Declares the mean goodput of some flows."""
    return metric(f"goodput of {whose} flows (Mbps)", "Mbps", f"mean goodput of {whose} flows",
        lambda run: run.mean_rate_mbps(getattr(run, scope), "goodput_bytes"), scope=scope, **more)


def loss(scope: Literal["agents", "others"], whose: str) -> Any:
    """Declares the loss of some flows together."""
    return metric(f"loss of {whose} flows (%)", "%",
        "100 · their packets that the network dropped / those that they sent, all flows together",
        lambda run: ratio(100 * run.sum(getattr(run, scope), "dropped_packets"),
                          run.sum(getattr(run, scope), "sent_packets")),
        scope=scope, less_is_better=True)


@dataclass(frozen=True)
class RunMetrics:
    """Metrics of the run as a whole, of the policy's flows, and of the others."""

    reward: float | None = over_time("reward", "1", "the reward", "reward",
        limits=(-math.inf, math.inf))
    throughput_share: float | None = over_time("throughput share", "1",
        "what reached the receivers / mean capacity over the run", "throughput_share")
    loss_rate: float | None = over_time("loss rate", "0 to 1",
        "packets dropped / packets dropped or received in an interval", "loss_rate",
        less_is_better=True)
    jain_of_intervals: float | None = over_time("Jain's index of intervals", "0 to 1",
        "Jain's index over the throughputs of the flows that are active", "jain")
    jain: float | None = metric("Jain's index", "0 to 1",
        "(Σ x)² / (n · Σ x²) over the receiving rates while all flows are active",
        lambda run: jain(run.shared_rates_mbps(run.all_flows) or ()), scope="run", evaluated=True)
    smallest_share: float | None = metric("smallest share", "0 to 1",
        "smallest / mean receiving rate while all flows are active",
        lambda run: smallest_share(run.shared_rates_mbps(run.all_flows)), scope="run")
    efficiency_index_mbps: float | None = metric("efficiency index (Mbps)", "Mbps",
        "sum of the receiving rates while all flows are active",
        lambda run: sum_of(run.shared_rates_mbps(run.all_flows)), scope="run")
    wire_efficiency_index_mbps: float | None = metric("efficiency index in wire bytes (Mbps)",
        "Mbps", "sum of the receiving rates in wire bytes while all flows are active",
        lambda run: run.shared_wire_rate_mbps(), scope="run")
    buffer_use_percent: float | None = metric("buffer use (%)", "%",
        "100 · ∫ queue dt / time / the queue's limit, in the limit's unit",
        lambda run: run.buffer_use_percent, scope="run")
    utilisation: float | None = metric("utilisation", "1",
        "bits that the receivers of flows and short flows got, headers included / what the "
        "bottleneck could carry",
        lambda run: run.share_of_capacity("received_wire_bytes", (*run.flows, *run.short_flows)),
        scope="run")
    queue_delay_ms: float | None = metric("queueing delay of all packets (ms)", "ms",
        "mean time in the bottleneck's queue of all packets that left it, those of short flows "
        "included",
        lambda run: run.queue_delay_ms, scope="run", less_is_better=True)
    agent_goodput_mbps: float | None = goodput("agents", "the policy's", evaluated=True)
    agent_jain: float | None = metric("Jain's index of the policy's flows", "0 to 1",
        "(Σ x)² / (n · Σ x²) over their receiving rates while all of them are active",
        lambda run: jain(run.shared_rates_mbps(run.agents) or ()), scope="agents")
    agent_loss_percent: float | None = loss("agents", "the policy's")
    agent_sent_packets: float | None = metric("packets sent by each of the policy's flows",
        "packets", "packets that they sent / their number",
        lambda run: ratio(run.sum(run.agents, "sent_packets"), len(run.agents)), scope="agents")
    agent_offered_load: float | None = metric("offered load of the policy's flows", "1",
        "bits that they sent, headers included / what the bottleneck could carry",
        lambda run: run.share_of_capacity(
            "sent_wire_bytes", [run.flows[index] for index in run.agents]), scope="agents")
    agent_transfer_time_s: float | None = metric(
        "completion time of the policy's transfers (s)", "s",
        "mean of completion − start over their sized transfers; None where one is not complete",
        lambda run: run.transfer_time_s(), scope="agents", less_is_better=True)
    others_goodput_mbps: float | None = goodput("others", "the other")
    others_loss_percent: float | None = loss("others", "the other")
    others_one_way_delay_ms: float | None = metric("one-way delay of the other flows (ms)", "ms",
        "mean of receiving − sending time of their packets, all flows together",
        lambda run: ratio(1e3 * run.sum(run.others, "one_way_delay_sum_seconds"),
                          run.sum(run.others, "received_packets")),
        scope="others", less_is_better=True)


def sum_of(values: Sequence[float] | None) -> float | None:
    """Returns the sum; None of None."""
    return None if values is None else float(sum(values))


def smallest_share(values: Sequence[float] | None) -> float | None:
    """Returns the smallest value / their mean; None of None, and where all are 0."""
    return None if values is None else ratio(min(values) * len(values), sum(values))


def quantile(values: np.ndarray, probability: float) -> float | None:
    """Returns the quantile, straight between samples; None of nothing."""
    return float(np.quantile(values, probability)) if len(values) else None


STATISTICS: dict[str, Callable[[np.ndarray], float | None]] = {
    "mean": lambda values: mean_of(values),
    "median": lambda values: quantile(values, 0.5),
    "99th percentile": lambda values: quantile(values, 0.99),
}
SIZES = {"small": "at most 100 kB", "medium": "100 kB to 10 MB", "large": "more than 10 MB"}
"""Sizes of the classes of short flows."""


def completion_time(statistic: str, size_class: str = "") -> Any:
    """Declares a statistic of the completion times of short flows, all or those of a class."""
    sizes = f" of {SIZES[size_class]}" if size_class else ""
    return metric(f"completion time{sizes}, {statistic} (ms)", "ms",
        f"{statistic} of completion − arrival over the completed short flows{sizes}",
        lambda traffic: STATISTICS[statistic](traffic.completion_ms(size_class)),
        less_is_better=True, traffic=SHORT_FLOWS)


def latency(statistic: str) -> Any:
    """Declares a statistic of the latencies of requests."""
    return metric(f"request latency, {statistic} (ms)", "ms",
        f"{statistic} of (last byte of the response received − request made) over the requests "
        "that were answered",
        lambda traffic: STATISTICS[statistic](traffic.latency_ms()),
        less_is_better=True, traffic=REQUESTS)


def frame_delay(statistic: str, probability: float) -> Any:
    """Declares a quantile of the delays of the frames of real-time media."""
    return metric(f"frame delay, {statistic} (ms)", "ms",
        f"{statistic} of (last byte of the frame received − frame captured) over the frames that "
        "arrived", lambda traffic: quantile(traffic.frame_delay_ms(), probability),
        less_is_better=True, traffic=MEDIA)


@dataclass(frozen=True)
class TrafficMetrics:
    """Metrics of applications: only runs and flows with such traffic have them."""

    short_flow_arrivals: float = metric("short flows arrived", "flows", "transfers that arrived",
        lambda traffic: len(traffic.transfers), traffic=SHORT_FLOWS)
    short_flows_completed_percent: float | None = metric("short flows completed (%)", "%",
        "100 · transfers of which the receiver has every byte / transfers that arrived",
        lambda traffic: ratio(100 * len(traffic.completed), len(traffic.transfers)),
        traffic=SHORT_FLOWS)
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
    short_flow_median_s: float | None = metric("short flows, median (s)", "s",
        "median completion time of all short flows; None where half of them are not complete",
        lambda traffic: traffic.completion_quantile_s(0.5), less_is_better=True,
        traffic=SHORT_FLOWS)
    short_flow_p95_s: float | None = metric("short flows, 95th percentile (s)", "s",
        "95th percentile of it; None where more than 5% are not complete",
        lambda traffic: traffic.completion_quantile_s(0.95), less_is_better=True,
        traffic=SHORT_FLOWS)
    request_latency_mean_ms: float | None = latency("mean")
    request_latency_median_ms: float | None = latency("median")
    request_latency_p99_ms: float | None = latency("99th percentile")
    requests_answered_percent: float | None = metric("requests answered (%)", "%",
        "100 · requests of which the receiver has the whole response / requests made",
        lambda traffic: ratio(100 * len(traffic.latency_ms()), len(traffic.requests)),
        traffic=REQUESTS)
    page_load_time_s: float | None = metric("page load time (s)", "s",
        "mean of (last object received − the flow's start) over the pages that were loaded",
        lambda traffic: mean_of(traffic.page_load_s), less_is_better=True, traffic=PAGES)
    video_rate_mbps: float | None = metric("video bit rate (Mbps)", "Mbps",
        "mean of the nominal rates of the chunks that arrived",
        lambda traffic: mean_of(traffic.chunk_mbps), traffic=VIDEO)
    video_switches: float = metric("video rate switches", "switches",
        "how often a chunk that arrived has another rate than the one before it",
        lambda traffic: traffic.switches, less_is_better=True, traffic=VIDEO)
    rebuffering_percent: float | None = metric("rebuffering (%)", "%",
        "100 · time at standstill / (time at standstill + time played), from the first picture on",
        lambda traffic: ratio(100 * traffic.stalled_s, traffic.stalled_s + traffic.playing_s),
        less_is_better=True, traffic=VIDEO)


    media_rate_mbps: float | None = metric("media bit rate (Mbps)", "Mbps",
        "bytes of the frames that arrived · 8 / active time / 10^6",
        lambda traffic: ratio(8e-6 * float(traffic.arrived_frames["size_bytes"].sum()),
                              traffic.media_s), traffic=MEDIA)
    frame_delay_p50_ms: float | None = frame_delay("median", 0.5)
    frame_delay_p95_ms: float | None = frame_delay("95th percentile", 0.95)
    frame_delay_p99_ms: float | None = frame_delay("99th percentile", 0.99)
    frozen_percent: float | None = metric("frozen (%)", "%",
        "100 · time in pictures that stay for 183 ms or more / time from the first picture on",
        lambda traffic: ratio(100 * traffic.frozen_s, traffic.shown_s),
        less_is_better=True, traffic=MEDIA)
    frames_arrived_percent: float | None = metric("frames that arrived (%)", "%",
        "100 · frames that arrived / frames captured, those that the encoder skips included",
        lambda traffic: ratio(100 * len(traffic.arrived_frames), len(traffic.frames)),
        traffic=MEDIA)


def _rtt_deviation_ms(trace: np.ndarray) -> float | None:
    known = trace["rtt"][trace["rtt"] > 0]
    return float(np.std(known * 1e-6)) if len(known) else None


def _startup_entries(trace: np.ndarray) -> float:
    in_startup = trace["mode"] == MODES.index("startup")
    return float(np.count_nonzero(np.diff(in_startup, prepend=False) & in_startup))


def _has_converged_rate(trace: np.ndarray) -> np.ndarray:
    """Returns whether the rate before each sample is that of a converged flow."""
    time, received = trace["time"] * 1e-9, trace["received_bytes"].astype(float)
    if len(time) < 2:
        return np.zeros(len(time), bool)
    half_s = (time[0] + time[-1]) / 2
    late_rate = (received[-1] - np.interp(half_s, time, received)) / (time[-1] - half_s)
    gained = received - np.interp(time - CONVERGENCE_WINDOW_S, time, received)
    reached = gained / CONVERGENCE_WINDOW_S >= CONVERGED_SHARE * late_rate
    return np.asarray(reached & (late_rate > 0))


def _convergence_time_s(trace: np.ndarray) -> float | None:
    return _first_s(trace, _has_converged_rate(trace))


def _time_at_largest_window_percent(trace: np.ndarray) -> float | None:
    window = trace["window_bytes"].astype(float)
    if len(window) == 0:
        return None
    return float(100 * np.mean(window >= LARGEST_WINDOW_SHARE * window.max()))


def _recovery_time_s(trace: np.ndarray) -> float | None:
    reached = _has_converged_rate(trace)
    if not reached.any():
        return None
    below = ~reached & np.logical_or.accumulate(reached)
    changes = np.flatnonzero(np.diff(below, prepend=False, append=False))
    times = np.append(trace["time"], trace["time"][-1])[changes]
    return float((times[1::2] - times[::2]).max(initial=0)) * 1e-9


def _rate_trend(trace: np.ndarray) -> float | None:
    time, received = trace["time"] * 1e-9, trace["received_bytes"].astype(float)
    if len(time) < 2:
        return None
    at_half = float(np.interp((time[0] + time[-1]) / 2, time, received))
    return ratio(received[-1] - at_half, at_half - received[0])


def _first_reduction_s(trace: np.ndarray) -> float | None:
    window = trace["window_bytes"].astype(float)
    return _first_s(trace, window < REDUCED_SHARE * np.maximum.accumulate(window))


def _first_s(trace: np.ndarray, fulfilled: np.ndarray) -> float | None:
    """Returns the time from the flow's start to the first sample that fulfils a condition."""
    if not fulfilled.any():
        return None
    return float(trace["time"][np.argmax(fulfilled)] - trace["time"][0]) * 1e-9


@dataclass(frozen=True)
class TraceMetrics:
    """Metrics of a flow's time series, which begins with the flow."""

    rtt_deviation_ms: float | None = metric("standard deviation of the RTT (ms)", "ms",
        "standard deviation of the sender's latest RTT over time", _rtt_deviation_ms,
        less_is_better=True, needs_traces=True)
    startup_entries: float | None = metric("entries into Startup", "entries",
        "how often the controller enters Startup, the first time included", _startup_entries,
        needs_traces=True)
    convergence_time_s: float | None = metric("convergence time (s)", "s",
        "from the flow's start until the receiving rate of 0.1 s is first 90% of that of the "
        "flow's second half", _convergence_time_s, less_is_better=True, needs_traces=True,
        from_start=True)
    recovery_time_s: float | None = metric("recovery time (s)", "s",
        "the longest time, once the flow has converged, for which that rate stays below",
        _recovery_time_s, less_is_better=True, needs_traces=True, from_start=True)
    time_at_largest_window_percent: float | None = metric("time at the largest window (%)", "%",
        "100 · samples whose window is at least 95% of the largest / samples",
        _time_at_largest_window_percent, needs_traces=True)
    rate_trend: float | None = metric("trend of the receiving rate", "1",
        "receiving rate of the second half of the flow's time / of the first half", _rate_trend,
        needs_traces=True)
    first_reduction_s: float | None = metric("first reduction of the window (s)", "s",
        "from the flow's start until the window is first below 90% of its largest value so far",
        _first_reduction_s, needs_traces=True, from_start=True)


def convergence(kind: Literal["arrival", "departure"]) -> Any:
    """Declares the convergence time after arrivals or departures of flows."""
    where = " where others are active" if kind == "arrival" else ""
    return metric(f"convergence after {kind}s (s)", "s",
        f"mean over the {kind}s of flows{where} of (time from which all active flows have "
        f"converged − {kind})",
        lambda sharing: sharing.convergence_after(kind), scope="run", less_is_better=True)


@dataclass(frozen=True)
class SharingMetrics:
    """Metrics of how the flows of a dumbbell share its bottleneck."""

    agent_fair_share: float | None = metric("share of the fair share of the policy's flows", "1",
        "mean over the policy's flows of receiving rate / fair share, while all flows are active",
        lambda sharing: sharing.mean_share(of_policy=True), scope="agents")
    others_fair_share: float | None = metric("share of the fair share of the other flows", "1",
        "mean over the other flows of receiving rate / fair share, while all flows are active",
        lambda sharing: sharing.mean_share(of_policy=False), scope="others")
    arrival_convergence_s: float | None = convergence("arrival")
    departure_convergence_s: float | None = convergence("departure")
    converged_deviation: float | None = metric("deviation after convergence", "1",
        "mean over flows and changes of the standard deviation over whole seconds of receiving "
        "rate / fair share, from convergence to the next change",
        lambda sharing: sharing.deviation(), scope="run", less_is_better=True)
    response_time_s: float | None = metric("response to changes of the path (s)", "s",
        "mean over the changes of rate or delay of (beginning of the first half second in which "
        "all flows together have 90% of the capacity − change); the time to the next change where "
        "there is no such half second. The beginning of an outage does not count",
        lambda sharing: sharing.response_s(), scope="run", less_is_better=True)
    response_deviation: float | None = metric("deviation after responses", "1",
        "mean over the changes of the standard deviation over half seconds of the share of the "
        "capacity that all flows have, from the response to the next change",
        lambda sharing: sharing.response_deviation(), scope="run", less_is_better=True)


@dataclass(frozen=True)
class BurstMetrics:
    """Metrics of the policy's flows while bursts last, computed from the run in each burst."""

    burst_goodput_mbps: float | None = metric("goodput during bursts (Mbps)", "Mbps",
        "mean over the bursts of the policy's mean goodput meanwhile",
        lambda bursts: mean_of(run.mean_rate_mbps(run.agents, "goodput_bytes") for run in bursts),
        scope="agents")
    burst_one_way_delay_ms: float | None = metric("one-way delay during bursts (ms)", "ms",
        "mean of receiving − sending time of the policy's packets that arrive meanwhile",
        lambda bursts: ratio(
            1e3 * sum(run.sum(run.agents, "one_way_delay_sum_seconds") for run in bursts),
            sum(run.sum(run.agents, "received_packets") for run in bursts)),
        scope="agents", less_is_better=True)

# fmt: on

OF_FLOWS, OF_RUNS, OF_TRAFFIC, OF_TRACES, OF_SHARING, OF_BURSTS = map(
    metrics_of, (FlowResult, RunMetrics, TrafficMetrics, TraceMetrics, SharingMetrics, BurstMetrics)
)
METRICS = {
    entry.name: entry
    for entry in (*OF_FLOWS, *OF_RUNS, *OF_TRAFFIC, *OF_TRACES, *OF_SHARING, *OF_BURSTS)
}
"""Every metric by its name."""
EVALUATED = tuple(entry.name for entry in (*OF_RUNS, *OF_FLOWS) if entry.evaluated)
"""The metrics that every episode of an evaluation has; episodes with traffic have its, too."""


TRAFFIC_METRICS = tuple(entry.name for entry in OF_TRAFFIC)
SHARING_METRICS = tuple(entry.name for entry in OF_SHARING)
BURST_METRICS = tuple(entry.name for entry in OF_BURSTS)
ASKED_FOR = (*(entry.name for entry in OF_TRACES), *SHARING_METRICS, *BURST_METRICS)
"""The metrics that a run has only where they are asked for by name."""


def measure_flow(name: str, controller: str, flow: FlowTotals) -> FlowResult:
    """Returns a flow's metrics."""
    values = {entry.name: entry.compute(flow) for entry in OF_FLOWS}
    return FlowResult(name=name, controller=controller, **values)  # type: ignore[arg-type]


def measure_run(flows: Sequence[FlowResult], run: RunTotals) -> dict[str, float | None]:
    """Returns a run's metrics: means over the flows, and what belongs to the run."""
    means = {
        entry.name: run.mean_rate_mbps(run.all_flows, entry.rate_of)
        if entry.rate_of
        else mean_of(getattr(flow, entry.name) for flow in flows)
        for entry in OF_FLOWS
    }
    return {
        **means,
        **{entry.name: entry.compute(run) for entry in OF_RUNS},
        **measure_traffic(run.traffic),
    }


def measure_traffic(traffic: TrafficTotals) -> dict[str, float | None]:
    """Returns the metrics of the kinds of traffic that there are."""
    return {
        entry.name: entry.compute(traffic) for entry in OF_TRAFFIC if entry.traffic in traffic.kinds
    }


def evaluated_names(names: Iterable[Any]) -> list[str]:
    """Returns the metrics of an evaluation: EVALUATED, and those of traffic among the names."""
    there = set(names)
    return [*EVALUATED, *(name for name in TRAFFIC_METRICS if name in there)]


def metrics_table(declared: Sequence[Metric] = (*OF_FLOWS, *OF_RUNS)) -> str:
    """Returns metrics with their scope, formula and unit, as Markdown."""
    rows = [
        f"| {entry.name} | {entry.scope} | {entry.formula} | {entry.unit} |" for entry in declared
    ]
    return "\n".join(["| metric | scope | formula | unit |", "|---|---|---|---|", *rows])


__doc__ = (__doc__ or "").format(
    table=metrics_table(),
    traffic_table=metrics_table(OF_TRAFFIC),
    trace_table=metrics_table(OF_TRACES),
    sharing_table=metrics_table(OF_SHARING),
    burst_table=metrics_table(OF_BURSTS),
)
