"""What came out of a run: the metrics of every flow, and the time series.

The formulas are in `quicgym.envs.simulation.metrics`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from quicgym.envs.scenarios.conversion import nanoseconds
from quicgym.envs.scenarios.model import Scenario
from quicgym.envs.simulation.capacity import BottleneckCapacity
from quicgym.envs.simulation.controller_choice import ControllerChoice
from quicgym.envs.simulation.metrics import (
    FLOW_METRICS,
    RUN_METRICS,
    TRAFFIC_METRICS,
    RunTotals,
    jain,
    measure_flow,
    measure_run,
    measure_traffic,
)
from quicgym.envs.simulation.plots import RunTraces, draw_run
from quicgym.envs.simulation.qlog import qlog_folder, write_sender_logs
from quicgym.envs.simulation.simulation import MODES, Simulation, flow_index, flow_indices
from quicgym.envs.simulation.traffic import (
    together,
    traffic_of_flows,
    traffic_of_short_flows,
)
from quicgym.errors import MissingExtraError
from quicgym.yaml_files import closest

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


class MeasuredRun(Protocol):
    """What a result is read from: a simulation, or what was measured of a run over real packets.

    See Simulation for the members.
    """

    @property
    def scenario(self) -> Scenario:
        """That was run."""

    @property
    def engine(self) -> str:
        """As results name it."""

    @property
    def seed(self) -> int:
        """Of the run."""

    @property
    def flows(self) -> Sequence[Any]:
        """With index, name, controller and statistics, as SimulatedFlow has them."""

    @property
    def short_flow_controllers(self) -> Sequence[str]:
        """Of each entry of short flows."""

    @property
    def time(self) -> float:
        """Of the run, in s."""

    @property
    def queue_occupancy_seconds(self) -> float:
        """∫ of the bottleneck's queue dt."""

    def trace(self, flow: int, /) -> np.ndarray:
        """Returns the time series of a flow."""

    def queue_trace(self, hop: int, /) -> np.ndarray:
        """Returns that of a hop's queue."""

    def requests(self, flow: int, /) -> np.ndarray:
        """Returns what a flow's receiving application has asked for."""

    def transfers(self, short_flows: int, /) -> np.ndarray:
        """Returns the transfers of an entry of short flows."""


class Result:
    """Metrics and traces of a run up to now.

    Attributes:
        scenario: What was run.
        engine: "native" or "ns3"; of real packets the stack and the clock, as in "aioquic-real".
        seed: The run's seed.
        flows: The metrics of each flow.
    """

    def __init__(self, simulation: MeasuredRun) -> None:
        """Reads everything out of the simulation, which may be closed afterwards."""
        self.scenario = simulation.scenario
        self.engine = simulation.engine
        self.seed = simulation.seed
        end = nanoseconds(simulation.time)
        totals = [flow.statistics for flow in simulation.flows]
        self.flows = tuple(
            measure_flow(flow.name, flow.controller, total, model.stop_s, end)
            for flow, total, (_, model) in zip(
                simulation.flows, totals, simulation.scenario.single_flows(), strict=True
            )
        )
        busy_s = (end - min(total["start"] for total in totals)) * 1e-9
        self._totals = RunTotals(
            self.flows,
            simulation.queue_occupancy_seconds,
            simulation.scenario.queue_limit * busy_s,
        )
        self._traffic = dict(
            zip(
                (flow.name for flow in self.flows),
                traffic_of_flows(simulation.scenario, totals, simulation.requests),
                strict=True,
            )
        )
        entries = [name for name, _ in simulation.scenario.named_short_flows()]
        self._short_flows = {
            (name, controller): traffic
            for name, controller, traffic in zip(
                entries,
                simulation.short_flow_controllers,
                traffic_of_short_flows(map(simulation.transfers, range(len(entries)))),
                strict=True,
            )
        }
        self._traces = [simulation.trace(flow.index) for flow in simulation.flows]
        hops = range(1, 2 + len(simulation.scenario.chain))
        self._queue_traces = [simulation.queue_trace(hop) for hop in hops]

    @property
    def metrics(self) -> dict[str, float | None]:
        """The run's metrics: means over the flows, what belongs to the run, and its traffic's."""
        traffic = together([*self._traffic.values(), *self._short_flows.values()])
        return {**measure_run(self._totals), **measure_traffic(traffic)}

    def jain(
        self, flows: Iterable[int | str] | None = None, metric: str = "receive_rate_mbps"
    ) -> float | None:
        """Returns Jain's index over some flows.

        Args:
            flows: Names or indices; None: all flows.
            metric: One of FLOW_METRICS that every one of these flows has.

        Raises:
            ValueError: No such flow or metric, no flow at all, or a flow without a value.
        """
        if metric not in FLOW_METRICS:
            raise ValueError(f"no metric {metric!r} of a flow; {closest(metric, FLOW_METRICS)}")
        chosen = self.flows
        if flows is not None:
            indices = flow_indices(flow.name for flow in self.flows)
            chosen = tuple(self.flows[flow_index(flow, indices)] for flow in flows)
        lacking = [flow.name for flow in chosen if getattr(flow, metric) is None]
        if not chosen or lacking:
            raise ValueError(
                f"{metric} of {', '.join(lacking)} has no value; leave such flows out"
                if lacking
                else "Jain's index of no flow; name at least one"
            )
        return jain(getattr(flow, metric) for flow in chosen)

    def to_dict(self) -> dict[str, Any]:
        """Returns the run as JSON takes it: scenario, engine, seed, metrics and flows."""
        controllers = [flow.controller for flow in self.flows]
        controllers += [controller for _, controller in self._short_flows]
        result = {
            "scenario": self.scenario.name,
            "controller": ", ".join(dict.fromkeys(controllers)),
            "engine": self.engine,
            "seed": self.seed,
            **self.metrics,
            "flows": [
                {**asdict(flow), **measure_traffic(self._traffic[flow.name])} for flow in self.flows
            ],
        }
        if self._short_flows:
            result["short_flows"] = [
                {"name": name, "controller": controller, **measure_traffic(traffic)}
                for (name, controller), traffic in self._short_flows.items()
            ]
        return result

    def to_pandas(self) -> pd.DataFrame:
        """Returns one row per flow: the run's names, the flow's and the run's own metrics."""
        pd = _import_pandas()
        frame = pd.DataFrame([asdict(flow) for flow in self.flows])
        frame.insert(0, "scenario", self.scenario.name)
        frame.insert(1, "engine", self.engine)
        frame.insert(2, "seed", self.seed)
        metrics = self.metrics
        for name in (*RUN_METRICS, *(name for name in TRAFFIC_METRICS if name in metrics)):
            frame[name] = metrics[name]
        return frame

    def trace(self, flow: int | str = 0) -> pd.DataFrame:
        """Returns a flow's time series, the flow given by index or name; units are in the names.

        `delivered_bytes` are acknowledged, `received_bytes` at the receiver, `dropped_packets`
        those that the network lost, in queues and by random loss; all are totals.
        `rtt_ms` and `smoothed_rtt_ms` are NaN before the first sample.
        """
        pd = _import_pandas()
        rows = self._traces[flow_index(flow, flow_indices(entry.name for entry in self.flows))]
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

    def queue_trace(self, hop: int = 1) -> pd.DataFrame:
        """Returns the time series of the bottleneck: its queue and its capacity.

        `packets` and `bytes` wait then. `capacity_mbps` is what the link could have sent since the
        row before, on the wire; with Wi-Fi the rate of the data symbols. `delay_ms` is the time in
        which the link sends what waits; NaN with Wi-Fi, and where the link never does.

        Args:
            hop: Of a chain, counted from 1, the bottleneck.

        Raises:
            ValueError: There is no such hop.
        """
        if not 1 <= hop <= len(self._queue_traces):
            raise ValueError(f"hop = {hop}: give 1 to {len(self._queue_traces)}")
        pd = _import_pandas()
        rows = self._queue_traces[hop - 1]
        link = BottleneckCapacity(self.scenario, hop)
        return pd.DataFrame(
            {
                "time_s": rows["time"] * 1e-9,
                "packets": rows["packets"],
                "bytes": rows["bytes"],
                "capacity_mbps": link.mean_mbps(rows["time"]),
                "delay_ms": link.delay_ms(rows["time"], rows["bytes"]),
            }
        )

    def plot(self) -> Figure:
        """Returns a picture of the run, see `quicgym.envs.simulation.plots.draw_run`.

        Raises:
            ValueError: The run has no traces.
            MissingExtraError: Matplotlib, of the extra `reports`, is not installed.

        Example:
            quicgym.run("ebcc-flows-3", "bbr").plot().savefig("bbr.pdf")
        """
        hops = range(1, 1 + len(self._queue_traces))
        return draw_run(
            RunTraces(
                {flow.name: self.trace(flow.name) for flow in self.flows},
                {flow.name: flow.controller for flow in self.flows},
                [self.queue_trace(hop) for hop in hops],
                self.scenario.duration_s,
            )
        )

    def __repr__(self) -> str:
        """Returns what was run and the main figures."""
        values = ", ".join(
            f"{name}={value:.4g}" for name, value in self.metrics.items() if value is not None
        )
        return f"<Result {self.scenario.name} {self.engine} seed={self.seed}: {values}>"


def _measured_ms(times: np.ndarray) -> np.ndarray:
    """Times in ns as ms; the engines write 0 where nothing has been measured yet."""
    return np.where(times > 0, times * 1e-6, np.nan)


def _import_pandas() -> ModuleType:
    try:
        import pandas
    except ImportError as error:
        raise MissingExtraError("tables of results need pandas", "reports") from error
    return pandas


def run(
    scenario: Scenario | str | Path,
    controller: ControllerChoice | Sequence[ControllerChoice] | None = None,
    engine: str = "native",
    seed: int = 0,
    *,
    trace_interval_ms: float | None = 10.0,
    qlog: str | Path | None = None,
) -> Result:
    """Runs a scenario to its end.

    Args:
        scenario: A Scenario, a name from `scenario_names()` or the path of a YAML.
        controller: For the flows that name none: a name or a subclass of quicgym.Controller for
            all, or a list of one for each.
        engine: "native" or "ns3".
        seed: Every random draw comes from it.
        trace_interval_ms: Between two rows of the traces; None: no traces.
        qlog: The folder that gets a qlog file of each flow's sender, with the engine native; None:
            none.

    Raises:
        ScenarioError: The scenario, the engine for it or the controller is not valid.
        ControllerError: A controller in Python failed.
        Ns3MissingError: This build has no ns-3.

    Example:
        result = quicgym.run("ebcc-single", controller="ebcc")
        print(result.to_pandas())
    """
    folder = None if qlog is None else qlog_folder(qlog)
    with Simulation(
        scenario,
        engine,
        seed,
        controller,
        trace_interval_ms=trace_interval_ms,
        record_events=folder is not None,
    ) as simulation:
        simulation.run()
        if folder is not None:
            events = [simulation.events(flow.index) for flow in simulation.flows]
            write_sender_logs(folder, events, simulation.engine)
        return Result(simulation)
