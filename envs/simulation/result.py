"""What came out of a run: the metrics of every flow, and the traces.

| metric | formula | unit |
|---|---|---|
| send_rate_mbps | sent bytes · 8 / active time / 10^6 | Mbps |
| receive_rate_mbps | bytes that reached the receiver · 8 / active time / 10^6 | Mbps |
| goodput_mbps | stream bytes received for the first time · 8 / active time / 10^6 | Mbps |
| loss_percent | 100 · packets that the network dropped / packets sent | % |
| mean_rtt_ms | mean of the sender's RTT samples, the peer's ACK delay included | ms |
| p95_rtt_ms | their 95th percentile, from a histogram with under 1% error | ms |
| mean_queue_delay_ms | mean time in the bottleneck's queue of the packets that left it | ms |
| mean_one_way_delay_ms | mean of receiving − sending time of what reached the receiver | ms |
| completion_time_s | of a sized transfer: the receiver has every byte − the flow's start | s |
| mean_window_packets | ∫ window dt / time / size of a full packet | packets |
| max_window_packets | largest window / size of a full packet | packets |
| send_rate_variance_mbps2 | variance of the sent bytes · 8 / 10^6 per second | Mbps² |
| receive_rate_variance_mbps2 | the same of the bytes that reached the receiver | Mbps² |
| jain | (Σ x)² / (n · Σ x²) over the flows' receiving rates | 0 to 1 |
| buffer_use_percent | 100 · ∫ queue dt / time / the queue's limit, in the limit's unit | % |
| efficiency_index_mbps | sum of the flows' receiving rates | Mbps |

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
In a wireless LAN the queue is that of the access point, and what is on the air is in it until it is
acknowledged.
Of ns-3's TCP, only segments with payload count, windows are in segments, and the sender's time ends
with the receiver's; a segment that arrives and brings nothing new counts as sent only, because ns-3
does not tell of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from quicgym.envs.scenarios.model import Scenario
from quicgym.envs.simulation.conversion import ControllerChoice, nanoseconds
from quicgym.envs.simulation.simulation import MODES, Simulation, flow_index
from quicgym.yaml_files import closest

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class FlowResult:
    """Metrics of one flow; units are in the names, formulas in this module's text."""

    name: str
    controller: str
    send_rate_mbps: float
    receive_rate_mbps: float
    goodput_mbps: float
    loss_percent: float | None
    mean_rtt_ms: float | None
    p95_rtt_ms: float | None
    mean_queue_delay_ms: float | None
    mean_one_way_delay_ms: float | None
    completion_time_s: float | None
    mean_window_packets: float | None
    max_window_packets: float | None
    send_rate_variance_mbps2: float | None
    receive_rate_variance_mbps2: float | None


FLOW_METRICS = (
    "send_rate_mbps",
    "receive_rate_mbps",
    "goodput_mbps",
    "loss_percent",
    "mean_rtt_ms",
    "p95_rtt_ms",
    "mean_queue_delay_ms",
    "mean_one_way_delay_ms",
    "completion_time_s",
    "mean_window_packets",
    "max_window_packets",
    "send_rate_variance_mbps2",
    "receive_rate_variance_mbps2",
)
RUN_METRICS = ("jain", "buffer_use_percent", "efficiency_index_mbps")
METRICS = (*FLOW_METRICS, *RUN_METRICS)


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
    name: str, controller: str, total: dict[str, Any], stop_s: float | None, end: int
) -> FlowResult:
    """Returns a flow's metrics.

    Args:
        name: Of the flow.
        controller: Of the flow.
        total: Its totals, as SimulatedFlow.statistics has them.
        stop_s: When the scenario stops it.
        end: When the run ended, in ns.
    """
    ends = [end, total["completion"], None if stop_s is None else nanoseconds(stop_s)]
    active_s = (min(moment for moment in ends if moment is not None) - total["start"]) * 1e-9

    def mbps(count: int) -> float:
        return count * 8 / active_s / 1e6 if active_s > 0 else 0.0

    def ratio(numerator: float, denominator: float) -> float | None:
        return numerator / denominator if denominator else None

    def variance_mbps2(side: str) -> float | None:
        return total[f"{side}_rate_variance"] * 8e-6**2 if total[f"{side}_rate_bins"] else None

    completion = total["completion"]
    window_s = total["window_seconds"]

    return FlowResult(
        name=name,
        controller=controller,
        send_rate_mbps=mbps(total["sent_bytes"]),
        receive_rate_mbps=mbps(total["received_bytes"]),
        goodput_mbps=mbps(total["goodput_bytes"]),
        loss_percent=ratio(100 * total["dropped_packets"], total["sent_packets"]),
        mean_rtt_ms=ratio(1e3 * total["rtt_sum_seconds"], total["rtt_samples"]),
        p95_rtt_ms=1e3 * total["rtt_p95_seconds"] if total["rtt_samples"] else None,
        mean_queue_delay_ms=ratio(1e3 * total["queue_delay_sum_seconds"], total["queue_samples"]),
        mean_one_way_delay_ms=ratio(
            1e3 * total["one_way_delay_sum_seconds"], total["received_packets"]
        ),
        completion_time_s=None if completion is None else (completion - total["start"]) * 1e-9,
        mean_window_packets=ratio(total["window_packet_seconds"], window_s),
        max_window_packets=total["max_window_packets"] if window_s else None,
        send_rate_variance_mbps2=variance_mbps2("send"),
        receive_rate_variance_mbps2=variance_mbps2("receive"),
    )


class Result:
    """Metrics and traces of a simulation up to now.

    Attributes:
        scenario: What was simulated.
        engine: "native" or "ns3".
        seed: The simulation's seed.
        flows: The metrics of each flow.
    """

    def __init__(self, simulation: Simulation) -> None:
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
        full = simulation.scenario.queue_limit * busy_s
        self._buffer_use_percent = (
            100 * simulation.queue_occupancy_seconds / full if busy_s > 0 else None
        )
        self._traces = [simulation.trace(flow.index) for flow in simulation.flows]
        self._queue_trace = simulation.queue_trace()

    @property
    def metrics(self) -> dict[str, float | None]:
        """The run's metrics: means over the flows, and what belongs to the run."""
        means = {name: mean_of(getattr(flow, name) for flow in self.flows) for name in FLOW_METRICS}
        return {
            **means,
            "jain": self.jain(),
            "buffer_use_percent": self._buffer_use_percent,
            "efficiency_index_mbps": sum(flow.receive_rate_mbps for flow in self.flows),
        }

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
        names = [flow.name for flow in self.flows]
        chosen = [
            self.flows[flow_index(flow, names)] for flow in (names if flows is None else flows)
        ]
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
        return {
            "scenario": self.scenario.name,
            "controller": ", ".join(dict.fromkeys(flow.controller for flow in self.flows)),
            "engine": self.engine,
            "seed": self.seed,
            **self.metrics,
            "flows": [asdict(flow) for flow in self.flows],
        }

    def to_pandas(self) -> pd.DataFrame:
        """Returns one row per flow: the run's names, the flow's and the run's own metrics."""
        import pandas as pd

        frame = pd.DataFrame([asdict(flow) for flow in self.flows])
        frame.insert(0, "scenario", self.scenario.name)
        frame.insert(1, "engine", self.engine)
        frame.insert(2, "seed", self.seed)
        for name in RUN_METRICS:
            frame[name] = self.metrics[name]
        return frame

    def trace(self, flow: int | str = 0) -> pd.DataFrame:
        """Returns a flow's time series, the flow given by index or name; units are in the names.

        `delivered_bytes` are acknowledged, `received_bytes` at the receiver; both are totals.
        """
        import pandas as pd

        rows = self._traces[flow_index(flow, [entry.name for entry in self.flows])]
        return pd.DataFrame(
            {
                "time_s": rows["time"] * 1e-9,
                "window_bytes": rows["window_bytes"],
                "pacing_rate_mbps": rows["pacing_rate"] * 8e-6,
                "rtt_ms": rows["rtt"] * 1e-6,
                "smoothed_rtt_ms": rows["smoothed_rtt"] * 1e-6,
                "in_flight_bytes": rows["in_flight_bytes"],
                "sent_bytes": rows["sent_bytes"],
                "delivered_bytes": rows["delivered_bytes"],
                "lost_bytes": rows["lost_bytes"],
                "received_bytes": rows["received_bytes"],
                "mode": pd.Categorical.from_codes(
                    rows["mode"].astype("i1"), categories=pd.Index(MODES)
                ),
            }
        )

    def queue_trace(self) -> pd.DataFrame:
        """Returns the time series of the bottleneck's queue: time_s, packets, bytes."""
        import pandas as pd

        rows = self._queue_trace
        return pd.DataFrame(
            {"time_s": rows["time"] * 1e-9, "packets": rows["packets"], "bytes": rows["bytes"]}
        )

    def __repr__(self) -> str:
        """Returns what was run and the main figures."""
        values = ", ".join(
            f"{name}={value:.4g}" for name, value in self.metrics.items() if value is not None
        )
        return f"<Result {self.scenario.name} {self.engine} seed={self.seed}: {values}>"


def run(
    scenario: Scenario | str | Path,
    controller: ControllerChoice | Sequence[ControllerChoice] | None = None,
    engine: str = "native",
    seed: int = 0,
    *,
    trace_interval_ms: float | None = 10.0,
) -> Result:
    """Runs a scenario to its end.

    Args:
        scenario: A Scenario, a name from `scenario_names()` or the path of a YAML.
        controller: For the flows that name none: a name or a subclass of quicgym.Controller for
            all, or a list of one for each.
        engine: "native" or "ns3".
        seed: Every random draw comes from it.
        trace_interval_ms: Between two rows of the traces; None: no traces.

    Raises:
        ScenarioError: The scenario, the engine for it or the controller is not valid.
        ControllerError: A controller in Python failed.
        Ns3MissingError: This build has no ns-3.

    Example:
        result = quicgym.run("ebcc-single", controller="ebcc")
        print(result.to_pandas())
    """
    with Simulation(
        scenario, engine, seed, controller, trace_interval_ms=trace_interval_ms
    ) as simulation:
        simulation.run()
        return Result(simulation)
