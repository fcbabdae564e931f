"""The record of a run, whatever ran it: totals of every flow at marks, series and traces.

Simulations, episodes of policies and runs over real stacks all leave a `Run`. Its metrics are those
of a window of time, by default the whole run; `quicgym.envs.simulation.metrics` has the formulas.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import ModuleType
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from quicgym import _core
from quicgym.envs.scenarios.conversion import nanoseconds, network
from quicgym.envs.scenarios.fields import LINK_HEADER_BYTES
from quicgym.envs.scenarios.model import Scenario
from quicgym.envs.simulation.capacity import BottleneckCapacity
from quicgym.envs.simulation.metrics import (
    BURST_METRICS,
    METRICS,
    OF_FLOWS,
    OF_RUNS,
    OF_TRAFFIC,
    SHARING_METRICS,
    FlowResult,
    FlowTotals,
    RunTotals,
    ShortFlowTotals,
    evaluated_names,
    jain,
    mean_of,
    measure_flow,
    measure_run,
    measure_traffic,
)
from quicgym.envs.simulation.plots import RunTraces, draw_run
from quicgym.envs.simulation.series import Series
from quicgym.envs.simulation.sharing import Member, Sharing
from quicgym.envs.simulation.simulation import (
    MODES,
    QUEUE_DTYPE,
    TRACE_DTYPE,
    Simulation,
    flow_index,
    flow_indices,
)
from quicgym.envs.simulation.traffic import (
    TrafficTotals,
    asking_flows,
    burst_times_s,
    together,
    traffic_of_flow,
    traffic_of_short_flows,
)
from quicgym.envs.simulation.window import WHOLE, Window
from quicgym.errors import MissingExtraError
from quicgym.yaml_files import closest

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


FLOW_METRICS = tuple(entry.name for entry in OF_FLOWS)


class TotalsAt(Protocol):
    """The totals of a flow at one time."""

    def statistics(self) -> dict[str, Any]:
        """Returns what SimulatedFlow.statistics returned then."""

    def since(self, earlier: Any, /) -> dict[str, Any]:
        """Returns the same of the time since an earlier moment of the same flow."""


@dataclass(frozen=True)
class Mark:
    """A moment, in ns, at which the totals of a run's flows were taken.

    `queue_seconds` is ∫ of the bottleneck's queue dt until then, in the unit of its limit.
    `short_flows` has the totals of each entry of short flows, as Simulation.short_flow_totals.
    """

    time: int
    flows: Sequence[TotalsAt]
    queue_seconds: float
    short_flows: Sequence[Mapping[str, float]] = ()


@dataclass(frozen=True)
class Recorded:
    """The record that a run is read from.

    Of real packets `engine` is the stack and the clock, as in "aioquic-real". The last of the marks
    is the end of the run. `requests` are by the place of each flow that asks. `requests`,
    `transfers`, `traces` and `queue_traces` are as Simulation returns them; traces are empty where
    none were kept. `core` is the scenario in C++, where that is at hand.
    """

    scenario: Scenario
    engine: str
    seed: int
    controllers: Sequence[str]
    short_flow_controllers: Sequence[str]
    marks: Sequence[Mark]
    series: Series
    requests: Mapping[int, np.ndarray]
    transfers: Sequence[np.ndarray]
    traces: Sequence[np.ndarray] = ()
    queue_traces: Sequence[np.ndarray] = ()
    core: _core.Scenario | None = None


class Run:
    """A run in a window of time: its metrics, series and traces.

    Attributes:
        scenario: Scenario of the run.
        engine: "native" or "ns3"; of real packets the stack and the clock, as in "aioquic-real".
        seed: The run's seed.
    """

    def __init__(self, recorded: Recorded, window: Window = WHOLE) -> None:
        """Takes what was recorded, and the part of the run that the metrics are of.

        Raises:
            ValueError: A time is no mark of the run.
        """
        self.scenario, self.engine, self.seed = recorded.scenario, recorded.engine, recorded.seed
        self._recorded = recorded
        from_s, until_s = window
        self._from = None if not from_s else self._mark("from_s", from_s)
        self._until = recorded.marks[-1] if until_s is None else self._mark("until_s", until_s)
        self._window = (0 if self._from is None else self._from.time, self._until.time)
        if self._from is recorded.marks[-1]:
            raise ValueError(
                f"from_s = {from_s:g}: the episode of {self.scenario.name} ended after "
                f"{self._from.time * 1e-9:g} s with the last flow of the policy; give an earlier "
                "from_s, or leave this scenario out"
            )

    @classmethod
    def of(cls, simulation: Simulation, window: Window = WHOLE) -> Run:
        """Reads a run up to now out of a simulation, which may be closed afterwards.

        Args:
            simulation: The simulation, which has marks.
            window: The part of the run that the metrics are of, from mark to mark.

        Raises:
            ValueError: The simulation is not measured.
        """
        scenario, now = simulation.scenario, nanoseconds(simulation.time)
        series = simulation.series
        marks = [
            Mark(
                time,
                simulation.totals(index),
                simulation.queue_seconds_at(index),
                simulation.short_flow_totals(index),
            )
            for index, time in enumerate(simulation.marks or ())
            if time < now
        ]
        marks.append(
            Mark(
                now,
                simulation.totals(),
                simulation.queue_occupancy_seconds,
                simulation.short_flow_totals(),
            )
        )
        flows, hops = range(len(simulation.flows)), range(1, 2 + len(scenario.chain))
        traced = simulation.traced
        recorded = Recorded(
            scenario,
            simulation.engine,
            simulation.seed,
            [flow.controller for flow in simulation.flows],
            simulation.short_flow_controllers,
            marks,
            series,
            {flow: simulation.requests(flow) for flow in asking_flows(scenario)},
            [simulation.transfers(entry) for entry in range(len(scenario.short_flows))],
            [simulation.trace(flow) for flow in flows] if traced else (),
            [simulation.queue_trace(hop) for hop in hops] if traced else (),
            simulation.core,
        )
        return cls(recorded, window)

    def over(self, from_s: float | None = None, until_s: float | None = None) -> Run:
        """Returns the same run in another window.

        Args:
            from_s: Beginning of the window, in s; None: the run's beginning.
            until_s: End of the window, in s; None: the run's end.

        Raises:
            ValueError: A time is no mark of the run: what `from_s` or `until_s` of quicgym.run was.
        """
        other = copy.copy(self)
        for name, value in vars(type(self)).items():
            if isinstance(value, cached_property):
                other.__dict__.pop(name, None)
        Run.__init__(other, self._recorded, Window(from_s, until_s))
        return other

    def _mark(self, name: str, time_s: float) -> Mark:
        """Returns a mark by its time; an episode may have ended before."""
        time, marks = nanoseconds(time_s), self._recorded.marks
        if time >= marks[-1].time:
            return marks[-1]
        for mark in marks:
            if mark.time == time:
                return mark
        known = ", ".join(f"{mark.time * 1e-9:g}" for mark in marks)
        raise ValueError(
            f"{name} = {time_s}: the run has totals at {known} s only; run it again with this "
            f"{name}"
        )

    @cached_property
    def _flows(self) -> list[FlowTotals]:
        begin, now = self._from, self._until.flows
        totals = (
            (flow.statistics() for flow in now)
            if begin is None
            else (flow.since(before) for flow, before in zip(now, begin.flows, strict=True))
        )
        models = (model for _, model in self.scenario.single_flows())
        return [FlowTotals(*entry, self._window) for entry in zip(totals, models, strict=True)]

    @cached_property
    def _traffic(self) -> list[TrafficTotals]:
        """Traffic of each flow, and then of each entry of short flows."""
        recorded, none = self._recorded, np.empty(0)
        return [
            *(
                traffic_of_flow(model, flow.total, recorded.requests.get(index, none), self._window)
                for index, ((_, model), flow) in enumerate(
                    zip(self.scenario.single_flows(), self._flows, strict=True)
                )
            ),
            *(traffic_of_short_flows(entry, self._window) for entry in recorded.transfers),
        ]

    @cached_property
    def _short_flows(self) -> list[ShortFlowTotals]:
        begin, now = self._from, self._until.short_flows
        before = [dict.fromkeys(total, 0) for total in now] if begin is None else begin.short_flows
        return [
            ShortFlowTotals(
                {name: total[name] - earlier[name] for name in total},
                entry,
                len(self.scenario.hops_of(entry)),
            )
            for total, earlier, entry in zip(now, before, self.scenario.short_flows, strict=True)
        ]

    def _capacity_bits(self, begin: int, end: int) -> float:
        """Returns what the hops could have carried between two times in ns, headers included."""
        core = self._recorded.core or network(self.scenario)
        links = (BottleneckCapacity(self.scenario, hop, core) for hop in self._hops)
        rate_mbps = sum(float(link.mean_mbps(np.array([begin, end]))[1]) for link in links)
        return rate_mbps * (end - begin) * 1e-3

    @cached_property
    def _totals(self) -> RunTotals:
        begin = self._from
        return RunTotals(
            self._flows,
            self._short_flows,
            self._window,
            self._capacity_bits,
            self._recorded.series,
            together(self._traffic),
            self._until.queue_seconds - (0.0 if begin is None else begin.queue_seconds),
            self.scenario.queue_limit,
        )

    @cached_property
    def flows(self) -> tuple[FlowResult, ...]:
        """The metrics of each flow."""
        names = (name for name, _ in self.scenario.single_flows())
        return tuple(
            measure_flow(*entry)
            for entry in zip(names, self._recorded.controllers, self._flows, strict=True)
        )

    @property
    def totals(self) -> list[Mapping[str, Any]]:
        """The totals of each flow over the window, as SimulatedFlow.statistics has them."""
        return [flow.total for flow in self._flows]

    @cached_property
    def metrics(self) -> dict[str, float | None]:
        """The run's metrics: means over the flows, what belongs to the run, and its traffic's."""
        return measure_run(self.flows, self._totals)

    @property
    def evaluation(self) -> dict[str, float | None]:
        """The metrics that `quicgym evaluate` writes."""
        metrics = self.metrics
        return {name: metrics[name] for name in evaluated_names(metrics)}

    @property
    def facts(self) -> dict[str, Any]:
        """Facts about the run that are no metrics, such as the audit of a real run."""
        return {}

    def metric(self, name: str) -> float | None:
        """Returns a metric by its name, those of traces and of sharing included.

        Raises:
            ValueError: No metric has this name, or it needs traces that the run has not.
        """
        if name not in METRICS:
            raise ValueError(f"no metric {name!r}; {closest(name, METRICS)}")
        if METRICS[name].needs_traces:
            return mean_of(self.trace_metric(name, flow.name) for flow in self.flows)
        if name in BURST_METRICS:
            begin, end = (time * 1e-9 for time in self._window)
            bursts = (
                self.over(from_s, min(until_s, end))._totals
                for from_s, until_s in burst_times_s(self.scenario)
                if begin <= from_s < end
            )
            return METRICS[name].compute([*bursts])
        if name in SHARING_METRICS:
            return None if self.sharing is None else METRICS[name].compute(self.sharing)
        return self.metrics.get(name)

    def trace_metric(self, name: str, flow: int | str) -> float | None:
        """Returns a metric of a flow's time series.

        Args:
            name: A metric that needs traces. Those that count from the flow's start are None where
                the window begins later.
            flow: The flow's name or place.

        Raises:
            ValueError: The run has no traces.
        """
        if not self._recorded.traces:
            raise ValueError(f"{name} needs traces; run it with trace_interval_ms above 0")
        rows, active = self._trace(flow), self._flows[flow_index(flow, self._flow_places)]
        if METRICS[name].from_start and active.begin > active["start"]:
            return None
        chosen = rows[(rows["time"] >= active.begin) & (rows["time"] <= active.end)]
        return METRICS[name].compute(chosen)

    @property
    def series(self) -> Mapping[str, np.ndarray]:
        """Measurements over intervals: `time_s`, `reward` and columns of `info`.

        A simulation has the columns of the whole network, every 100 ms. An episode has every column
        of `info`, at each decision of the first agent's flow.
        """
        return self._recorded.series.columns

    def series_table(self) -> pd.DataFrame:
        """Returns `series` as a table, with the number of hops in its attribute `hops`."""
        frame = _import_pandas().DataFrame(dict(self.series))
        frame.attrs["hops"] = len(self._hops)
        return frame

    def jain(
        self, flows: Iterable[int | str] | None = None, metric: str | None = None
    ) -> float | None:
        """Returns Jain's index over some flows.

        Args:
            flows: Names or places; None: all flows.
            metric: A metric of flows that every one of these has; None: the receiving rate while
                all of these flows are active.

        Raises:
            ValueError: No such flow or metric, no flow at all, or a flow without a value.
        """
        if metric is not None and metric not in FLOW_METRICS:
            raise ValueError(f"no metric {metric!r} of a flow; {closest(metric, FLOW_METRICS)}")
        names = self._flow_places
        chosen = range(len(names)) if flows is None else [flow_index(flow, names) for flow in flows]
        if not chosen:
            raise ValueError("Jain's index of no flow; name at least one")
        if metric is None:
            return jain(self._totals.shared_rates_mbps(chosen) or ())
        values = {self.flows[place].name: getattr(self.flows[place], metric) for place in chosen}
        lacking = [name for name, value in values.items() if value is None]
        if lacking:
            raise ValueError(f"{metric} of {', '.join(lacking)} has no value; leave such flows out")
        return jain(values.values())

    @cached_property
    def sharing(self) -> Sharing | None:
        """How the flows share the bottleneck; None of a chain, a wireless LAN, or no such flow."""
        scenario = self.scenario
        models = [model for _, model in scenario.single_flows()]
        places = [place for place, flow in enumerate(models) if flow.direction == "forward"]
        if scenario.chain or scenario.wifi is not None or not places:
            return None
        members = []
        for place in places:
            flow, payload = self._flows[place], models[place].max_datagram_bytes
            payload = payload or scenario.max_datagram_bytes
            end = min(flow.end, self._recorded.marks[-1].time)
            wire_share = 1 + LINK_HEADER_BYTES / payload
            members.append(Member(flow["start"], end, flow.has_policy, wire_share))
        link = scenario.bottleneck
        times_s = set()
        if link is not None:
            schedules = (link.rate_schedule, link.delay_schedule, link.reroutes)
            times_s = {step.at_s for schedule in schedules for step in schedule}
        changes = sorted(map(nanoseconds, times_s))
        return Sharing.of(self._recorded.series, members, places, self._window, changes)

    def fair_shares(self) -> pd.DataFrame:
        """Returns each flow's receiving rate over its fair share, in the seconds of the window.

        A row has the second's end, `time_s`, and a column for each flow that goes forward. A share
        is NaN where the flow is not active throughout. Empty for chains and wireless LANs.
        """
        frame = _import_pandas().DataFrame({"time_s": []})
        if self.sharing is None:
            return frame
        forward = (
            name for name, flow in self.scenario.single_flows() if flow.direction == "forward"
        )
        time_s, shares = self.sharing.over_time()
        frame["time_s"] = time_s
        return frame.assign(**dict(zip(forward, shares.T, strict=True)))

    def to_dict(self) -> dict[str, Any]:
        """Returns the run as JSON takes it: scenario, engine, seed, metrics and flows."""
        of_short_flows = self._recorded.short_flow_controllers
        controllers = dict.fromkeys([*self._recorded.controllers, *of_short_flows])
        count = len(self._flows)
        result = {
            "scenario": self.scenario.name,
            "controller": ", ".join(controllers),
            "engine": self.engine,
            "seed": self.seed,
            **self.metrics,
            **self.facts,
            "flows": [
                {**flow.__dict__, **measure_traffic(traffic)}
                for flow, traffic in zip(self.flows, self._traffic[:count], strict=True)
            ],
        }
        if of_short_flows:
            names = (name for name, _ in self.scenario.named_short_flows())
            result["short_flows"] = [
                {"name": name, "controller": controller, **measure_traffic(traffic)}
                for name, controller, traffic in zip(
                    names, of_short_flows, self._traffic[count:], strict=True
                )
            ]
        return result

    def to_pandas(self) -> pd.DataFrame:
        """Returns one row per flow: the run's names, the flow's and the run's own metrics."""
        pd = _import_pandas()
        frame = pd.DataFrame([flow.__dict__ for flow in self.flows])
        frame.insert(0, "scenario", self.scenario.name)
        frame.insert(1, "engine", self.engine)
        frame.insert(2, "seed", self.seed)
        metrics = self.metrics
        for name in (entry.name for entry in (*OF_RUNS, *OF_TRAFFIC) if entry.name in metrics):
            frame[name] = metrics[name]
        return frame

    def trace(self, flow: int | str = 0) -> pd.DataFrame:
        """Returns a flow's time series, the flow given by index or name; units are in the names.

        `delivered_bytes` are acknowledged, `received_bytes` at the receiver, `dropped_packets`
        those that the network lost, in queues and by random loss; all are totals.
        `rtt_ms` and `smoothed_rtt_ms` are NaN before the first sample.
        """
        return _trace_frame(self._trace(flow))

    def traces(self) -> pd.DataFrame:
        """Returns the time series of all flows under one another, with the column `flow`."""
        pd = _import_pandas()
        parts = [self._trace(index) for index in range(len(self._recorded.controllers))]
        frame = _trace_frame(np.concatenate(parts, dtype=TRACE_DTYPE))
        places = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
        frame.insert(
            0, "flow", pd.Categorical.from_codes(places, categories=list(self._flow_places))
        )
        return frame

    def _trace(self, flow: int | str) -> np.ndarray:
        place = flow_index(flow, self._flow_places)
        traces = self._recorded.traces
        return traces[place] if traces else np.empty(0, TRACE_DTYPE)

    @cached_property
    def _flow_places(self) -> dict[str, int]:
        return flow_indices(name for name, _ in self.scenario.single_flows())

    def queue_trace(self, hop: int = 1) -> pd.DataFrame:
        """Returns the time series of the bottleneck: its queue and its capacity.

        `packets` and `bytes` wait then. `capacity_mbps` is what the link could have sent since the
        row before, on the wire; with Wi-Fi the rate of the data symbols. `delay_ms` is the time in
        which the link sends what waits; NaN with Wi-Fi, and where the link never does.

        Args:
            hop: Number of the hop of a chain, counted from 1, the bottleneck.

        Raises:
            ValueError: The chain has no such hop.
        """
        hops = self._hops
        if hop not in hops:
            raise ValueError(f"hop = {hop}: give 1 to {len(hops)}")
        pd = _import_pandas()
        queues = self._recorded.queue_traces
        rows = queues[hop - 1] if queues else np.empty(0, QUEUE_DTYPE)
        link = BottleneckCapacity(self.scenario, hop, self._recorded.core)
        return pd.DataFrame(
            {
                "time_s": rows["time"] * 1e-9,
                "packets": rows["packets"],
                "bytes": rows["bytes"],
                "capacity_mbps": link.mean_mbps(rows["time"]),
                "delay_ms": link.delay_ms(rows["time"], rows["bytes"]),
            }
        )

    @property
    def _hops(self) -> range:
        return range(1, 2 + len(self.scenario.chain))

    def queue_traces(self) -> pd.DataFrame:
        """Returns the time series of all hops under one another, with the column `hop`."""
        pd = _import_pandas()
        return pd.concat(
            {hop: self.queue_trace(hop) for hop in self._hops}, names=["hop", None]
        ).reset_index("hop")

    def plot(self) -> Figure:
        """Returns a picture of the run, see `quicgym.envs.simulation.plots.draw_run`.

        Raises:
            ValueError: The run has no traces.
            MissingExtraError: Matplotlib, of the extra `reports`, is not installed.

        Example:
            quicgym.run("ebcc-flows-3", "bbr").plot().savefig("bbr.pdf")
        """
        return draw_run(
            RunTraces(
                {flow.name: self.trace(flow.name) for flow in self.flows},
                {flow.name: flow.controller for flow in self.flows},
                [self.queue_trace(hop) for hop in self._hops],
                self.scenario.duration_s,
            )
        )

    def __repr__(self) -> str:
        """Returns what was run and the main figures."""
        values = ", ".join(
            f"{name}={value:.4g}" for name, value in self.metrics.items() if value is not None
        )
        return f"<Run {self.scenario.name} {self.engine} seed={self.seed}: {values}>"


def flow_traces(traces: pd.DataFrame, most: int | None = None) -> dict[str, pd.DataFrame]:
    """Returns each flow's part of `Run.traces`, of the first `most` flows or of all."""
    names = traces["flow"].cat.categories[:most]
    ends = np.cumsum(np.bincount(traces["flow"].cat.codes, minlength=len(names)))
    return {
        name: traces.iloc[end - count : end].reset_index(drop=True)
        for name, end, count in zip(names, ends, np.diff(ends, prepend=0), strict=False)
    }


def _trace_frame(rows: np.ndarray) -> pd.DataFrame:
    pd = _import_pandas()
    return pd.DataFrame(
        {
            "time_s": rows["time"] * 1e-9,
            "window_bytes": rows["window_bytes"],
            "pacing_rate_mbps": rows["pacing_rate"] * 8e-6,
            "rtt_ms": _measured_ms(rows["rtt"]),
            "smoothed_rtt_ms": _measured_ms(rows["smoothed_rtt"]),
            "in_flight_bytes": rows["in_flight_bytes"],
            "sent_bytes": rows["sent_bytes"],
            "delivered_bytes": rows["delivered_bytes"],
            "lost_bytes": rows["lost_bytes"],
            "received_bytes": rows["received_bytes"],
            "dropped_packets": rows["dropped_packets"],
            "mode": pd.Categorical.from_codes(
                rows["mode"].astype("i1"), categories=pd.Index(MODES)
            ),
        }
    )


def _measured_ms(times: np.ndarray) -> np.ndarray:
    """Times in ns as ms; the engines write 0 where nothing has been measured yet."""
    return np.where(times > 0, times * 1e-6, np.nan)


def _import_pandas() -> ModuleType:
    try:
        import pandas
    except ImportError as error:
        raise MissingExtraError("tables of results need pandas", "reports") from error
    return pandas
