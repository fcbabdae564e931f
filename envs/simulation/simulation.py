"""One simulation, on the engine of choice, driven step by step."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from quicgym import _core
from quicgym.controllers import ControllerInfo
from quicgym.envs.rewards import Reward
from quicgym.envs.scenarios.conversion import nanoseconds, to_core
from quicgym.envs.scenarios.engines import (
    ENGINES,
    EngineName,
    check_capabilities,
    check_records_events,
)
from quicgym.envs.scenarios.fields import LONGEST_S, ScenarioError
from quicgym.envs.scenarios.files import load_scenario
from quicgym.envs.scenarios.model import Scenario
from quicgym.envs.simulation.controller_choice import (
    ControllerChoice,
    resolve_controllers,
    warn_of_idle_ecn,
)
from quicgym.envs.simulation.engine import Ns3Module
from quicgym.envs.simulation.run_size import check_size
from quicgym.envs.simulation.series import REWARD_INTERVAL_MS, Series
from quicgym.errors import UserError
from quicgym.validation import check_number
from quicgym.yaml_files import closest

MODES: tuple[str, ...] = _core.MODES
"""Names of the numbers in a trace's `mode`."""
TRACE_DTYPE = np.dtype(_core.LAYOUTS["TraceSample"])
TRANSFER_DTYPE = np.dtype(_core.LAYOUTS["Transfer"])
NEVER = 2**63 - 1
"""The completion, in ns, of a transfer that was not completed."""
QUEUE_DTYPE = np.dtype(_core.LAYOUTS["QueueSample"])
EVENT_DTYPE = np.dtype(_core.LAYOUTS["SenderEvent"])
DELIVERY_DTYPE = np.dtype(_core.LAYOUTS["Delivery"])

NS3_REMEDY = (
    "install quicgym-ns3 of the same version; in the source folder of quicgym:\n"
    "  pip install . ./sim/ns3"
)


class Ns3MissingError(UserError, RuntimeError):
    """The ns-3 host is not there: not installed, of another build, or without ns-3's libraries."""

    def __init__(self, reason: str = "the ns-3 host is not installed") -> None:
        """Says how to get it."""
        super().__init__(f"{reason}; {NS3_REMEDY}")
        self._reason = reason

    def __reduce__(self) -> tuple[Any, ...]:
        """Returns how another process makes the error: from the reason, not from the whole text."""
        return type(self), (self._reason,)


def ns3_module() -> Ns3Module:
    """Returns the ns-3 host, the package quicgym_ns3; Ns3MissingError where it cannot be used."""
    if find_spec("quicgym_ns3") is None:
        raise Ns3MissingError
    try:
        module: Any = import_module("quicgym_ns3")
    except ImportError as error:
        raise Ns3MissingError(f"the ns-3 host cannot be loaded ({error})") from error
    host: Ns3Module = module
    return host


def ns3_version() -> str | None:
    """Returns the version of ns-3 that the host was built with; None where there is no host."""
    try:
        return ns3_module().ns3_version
    except Ns3MissingError:
        return None


def check_engine(engine: str) -> EngineName:
    """Returns the engine's name; ScenarioError where none has it, Ns3MissingError without ns-3."""
    for known in ENGINES:
        if engine == known:
            if known == "ns3":
                ns3_module()
            return known
    raise ScenarioError(f"unknown engine {engine!r}; {closest(engine, ENGINES)}")


def flow_indices(names: Iterable[str]) -> dict[str, int]:
    """Returns name -> place, for `flow_index`."""
    return {name: index for index, name in enumerate(names)}


def flow_index(flow: int | str, indices: Mapping[str, int]) -> int:
    """Returns the place of a flow given by index or name; ValueError where there is none."""
    if isinstance(flow, str):
        if flow not in indices:
            raise ValueError(f"no flow {flow!r}; {closest(flow, indices)}")
        return indices[flow]
    if not 0 <= flow < len(indices):
        raise ValueError(f"no flow {flow}; there are {len(indices)}, counted from 0")
    return flow


class SimulatedFlow:
    """A flow of a running simulation.

    Attributes:
        index: Place of the flow in the scenario, from 0.
        name: Name of the flow in the scenario.
        controller: Name of the flow's controller.
    """

    def __init__(
        self, host: _core.Simulation, index: int, name: str, controller: ControllerInfo
    ) -> None:
        """Made by Simulation."""
        self._host = host
        self.index = index
        self.name = name
        self.controller = controller.name
        self._controller = controller

    @property
    def statistics(self) -> dict[str, Any]:
        """Totals since the flow's start: times in ns, `..._seconds` in s, else packets or bytes.

        `min_rtt` is the minimum of RFC 9002, section 5.2, which starts again at the latest sample
        after persistent congestion: the mean of all samples may be lower. `lowest_rtt` is the
        lowest sample since the flow's start. Both are 0 before the first sample.
        """
        return self._host.statistics(self.index)

    @property
    def snapshot(self) -> dict[str, Any]:
        """The controller's state now: bytes, bytes per second, ns; `mode` as one of MODES."""
        values = self._host.snapshot(self.index)
        values["mode"] = MODES[int(values["mode"])]
        return values

    @property
    def parameters(self) -> dict[str, float | list[float]]:
        """The controller's parameters, in the units that the catalogue states."""
        lists = {entry.name for entry in self._controller.parameters if entry.is_list}
        return {
            name: list(value) if name in lists else value[0]
            for name, value in self._host.parameters(self.index).items()
        }

    def set_parameters(self, **values: float | Sequence[float] | str) -> None:
        """Replaces the named parameters and keeps the controller's state.

        Raises:
            ValueError: Unknown name or value out of range; nothing is changed then.
            ControllerError: A controller in Python failed to take them.
        """
        self._host.set_parameters(self.index, self._controller.numbers(values))

    def __repr__(self) -> str:
        """Returns name and controller."""
        return f"<SimulatedFlow {self.name}: {self.controller}>"


class Simulation:
    """A scenario, running.

    The native engine takes any number of simulations at a time. ns-3 keeps its state in globals:
    one simulation per process, so close one before the next, or use it as a context manager.

    Args:
        scenario: A Scenario, a name from `scenario_names()` or the path of a YAML.
        engine: "native" or "ns3".
        seed: Every random draw of the simulation comes from it. Same scenario, seed, engine and
            build: the same packets.
        controllers: Controllers of the flows that name none: a name or a subclass of
            quicgym.Controller for all, or a list of one for each.
        trace_interval_ms: Interval between two rows of the traces, in ms; None: no traces.
        marks: Times, in ns and rising, at which the totals of every flow are kept. The simulation
            is measured every 100 ms then, as `Run.of` needs it. None: it is not measured.
        record_deliveries: Whether to keep every packet delivered, for `deliveries`.
        record_events: Whether to keep what every sender does, for qlog. Engine native only.
        pcap_prefix: Beginning of the paths of packet captures; None: none are written. Engine ns3
            only.
        flow_monitor_path: File for the report of ns-3's FlowMonitor; None: none is written. Engine
            ns3 only.

    Raises:
        ScenarioError: The scenario, or the engine for it, is not valid.
        Ns3MissingError: The ns-3 host is not installed.
        ControllerError: A controller in Python failed to start.
        RuntimeError: Another ns-3 simulation is open in this process.

    Example:
        with Simulation("ebcc-flows-3", controllers="bbr") as simulation:
            simulation.run_until(5)
            simulation.flows[0].set_parameters(gamma=30)
            simulation.run()
            print(simulation.trace(0)["window_bytes"])
    """

    def __init__(
        self,
        scenario: Scenario | str | Path,
        engine: str = "native",
        seed: int = 0,
        controllers: ControllerChoice | Sequence[ControllerChoice] | None = None,
        *,
        trace_interval_ms: float | None = 10.0,
        marks: Sequence[int] | None = None,
        record_deliveries: bool = False,
        record_events: bool = False,
        pcap_prefix: str | None = None,
        flow_monitor_path: str | Path | None = None,
    ) -> None:
        """Builds the network; nothing has happened yet, `time` is 0."""
        if not isinstance(scenario, Scenario):
            scenario = load_scenario(scenario)
        self.scenario = scenario
        if record_events:
            check_records_events(scenario.name, engine)
        self.engine = check_engine(engine)
        self.seed = seed
        is_whole = isinstance(seed, int | np.integer) and not isinstance(seed, bool)
        if not is_whole or not 0 <= seed < 2**64:
            raise ScenarioError(f"seed = {seed!r}: give a whole number from 0 to 2**64 - 1")
        if trace_interval_ms is not None:
            try:
                check_number("trace_interval_ms", trace_interval_ms, 1e-6, LONGEST_S * 1e3)
            except ValueError as error:
                raise ScenarioError(f"{error}, or None for no traces") from None
        check_size(scenario, trace_interval_ms)
        chosen = resolve_controllers(scenario, controllers)
        warn_of_idle_ecn(scenario, chosen)
        core = to_core(scenario, chosen)
        core.trace_interval = nanoseconds((trace_interval_ms or 0.0) / 1e3)
        core.record_deliveries = record_deliveries
        core.pcap_prefix = pcap_prefix or ""
        core.flow_monitor_path = str(flow_monitor_path or "")
        check_capabilities(scenario.name, core, self.engine)
        self._host: _core.Simulation
        self._close: Callable[[], None] | None = None
        if self.engine == "native":
            native = _core.NativeSimulation(core, seed)
            if record_events:
                native.record_events()
            self._host = native
        else:
            host = ns3_module().Ns3Simulation(core, seed)
            self._host, self._close = host, host.close
        self.core = core
        self.traced = trace_interval_ms is not None
        self._meter: _core.Meter | None = None
        self.marks = None if marks is None else tuple(marks)
        self.short_flow_controllers = tuple(
            controller.name for controller in chosen[len(tuple(scenario.single_flows())) :]
        )
        self.flows = tuple(
            SimulatedFlow(self._host, index, name, controller)
            for index, ((name, _), controller) in enumerate(
                zip(scenario.single_flows(), chosen, strict=False)
            )
        )
        self._indices = flow_indices(flow.name for flow in self.flows)

    @property
    def time(self) -> float:
        """Simulated time in s."""
        return float(self._host.now) * 1e-9

    def run_until(self, time_s: float) -> None:
        """Processes every event up to and at `time_s`, in s from the start of the simulation.

        Raises:
            ValueError: The time has passed already, or is none.
            ControllerError: A controller in Python failed. The simulation has ended then: what it
                measured can be read, and running on raises RuntimeError.
        """
        check_number("time_s", time_s, 0, LONGEST_S)
        until = nanoseconds(time_s)
        if self._meter is None and self.marks is not None and until >= self.begin:
            self._meter = _core.Meter(
                self._host,
                self.core,
                Reward().to_core(),
                nanoseconds(REWARD_INTERVAL_MS / 1e3),
                nanoseconds(self.scenario.duration_s),
                self.marks,
                max(self.begin, self._host.now),
            )
        if self._meter is None or until <= self._host.now:
            self._host.run_until(until)
        else:
            self._meter.run_until(until)

    def run(self) -> None:
        """Runs to the end of the scenario."""
        self.run_until(self.scenario.duration_s)

    @cached_property
    def begin(self) -> int:
        """When measuring begins, in ns: the first start of a flow that names no controller.

        Where every flow names its controller, the first start of all.
        """
        flows = [flow for _, flow in self.scenario.single_flows()]
        places = [index for index, flow in enumerate(flows) if flow.controller is None]
        return min(
            _core.flow_start(self.core, index, self.seed) for index in places or range(len(flows))
        )

    @property
    def series(self) -> Series:
        """Measurements so far, every 100 ms and at each pause.

        Raises:
            ValueError: The simulation is not measured.
        """
        if self.marks is None:
            raise ValueError(
                f"the simulation of {self.scenario.name} is not measured; give it `marks`, which "
                "may be empty"
            )
        meter = self._meter
        if meter is None:
            return Series.of_nothing(self.begin, _core.METER_COLUMNS, len(self.flows))
        columns = dict(zip(_core.METER_COLUMNS, meter.rows.T, strict=True))
        return Series(self.begin, columns, meter.times, meter.received)

    def totals(self, mark: int | None = None) -> list[_core.FlowTotals]:
        """Returns the totals of every flow.

        Args:
            mark: Number of one of the marks that have been reached, from 0; None: the totals now.
        """
        count = range(len(self.flows))
        if mark is None:
            return [self._host.totals(flow) for flow in count]
        assert self._meter is not None
        return [self._meter.totals(mark, flow) for flow in count]

    def short_flow_totals(self, mark: int | None = None) -> list[dict[str, float]]:
        """Returns the totals of all connections of every entry of short flows, as `totals` does."""
        entries = range(len(self.scenario.short_flows))
        if mark is None:
            return [self._host.short_flow_totals(entry) for entry in entries]
        assert self._meter is not None
        return [self._meter.short_flow_totals(mark, entry) for entry in entries]

    def queue_seconds_at(self, mark: int) -> float:
        """Returns what `queue_occupancy_seconds` was at one of the marks, counted from 0."""
        assert self._meter is not None
        return self._meter.queue_occupancy_seconds(mark)

    def trace(self, flow: int | str) -> np.ndarray:
        """Returns the time series of a flow, given by its index or name.

        A structured array: `time` in ns; `rtt`, `smoothed_rtt` in whole ns, 0 before the first
        sample (NaN in `Run.trace`); `window_bytes`, `in_flight_bytes`;
        `pacing_rate` in bytes per second; totals `sent_bytes`, `delivered_bytes` (acknowledged),
        `lost_bytes` (declared lost), `received_bytes` (at the receiver); `dropped_packets`, by
        queues and by random loss; `mode`, see MODES.
        """
        return np.frombuffer(self._host.trace(self._index(flow)), TRACE_DTYPE)

    def queue_trace(self, hop: int = 1) -> np.ndarray:
        """Returns what waits before the bottleneck: `time` in ns, `packets`, `bytes`.

        Args:
            hop: Number of the hop of a chain, counted from 1, the bottleneck. The queue is the
                forward direction's.

        Raises:
            ValueError: The chain has no such hop.
        """
        if hop < 1:
            raise ValueError(f"hop = {hop}: hops are counted from 1, the bottleneck")
        return np.frombuffer(self._host.queue_trace(hop - 1), QUEUE_DTYPE)

    @property
    def queue_occupancy_seconds(self) -> float:
        """∫ of the bottleneck's queue dt: packets · s, or bytes · s where bytes limit it."""
        return float(self._host.queue_occupancy_seconds)

    def deliveries(self) -> np.ndarray:
        """Returns every delivery in order: `flow` (index), `packet_number`, `time`, `sent` in ns.

        `sent` is when the sender sent the packet, and `time` when it arrived. Empty without
        `record_deliveries`.
        """
        return np.frombuffer(self._host.deliveries(), DELIVERY_DTYPE)

    def events(self, flow: int | str = 0) -> np.ndarray:
        """Returns what a flow's sender did, in order, as `quicgym.envs.simulation.qlog` reads it.

        A structured array: `time` in ns, `kind` (see EventKind there), and `values`, shape (6,).
        Empty without `record_events`.
        """
        index = self._index(flow)
        if not isinstance(self._host, _core.NativeSimulation):
            return np.empty(0, EVENT_DTYPE)
        return np.frombuffer(self._host.events(index), EVENT_DTYPE)

    def requests(self, flow: int | str = 0) -> np.ndarray:
        """Returns what a flow's receiving application has asked for, in order; as `transfers`.

        `start` is when it asked, `completion` when the response's last byte was there, and
        `size_bytes` the response's. `lost_packets` is 0. Of real-time media, the frames: `start` is
        when one was captured, and 0 bytes say that it was skipped. Empty for other applications.
        """
        return np.frombuffer(self._host.requests(self._index(flow)), TRANSFER_DTYPE)

    def transfers(self, short_flows: int | str = 0) -> np.ndarray:
        """Returns the transfers of an entry of short flows, given by index or name, in order.

        A structured array: `start` and `completion` in ns, the latter NEVER while bytes are
        missing at the receiver; `size_bytes`; `lost_packets`, declared lost by the sender.
        """
        indices = flow_indices(name for name, _ in self.scenario.named_short_flows())
        place = flow_index(short_flows, indices)
        return np.frombuffer(self._host.transfers(place), TRANSFER_DTYPE)

    def close(self) -> None:
        """Ends the simulation; on ns3, the next one may begin in this process."""
        if self._close is not None:
            self._close()

    def __enter__(self) -> Simulation:
        """Returns itself."""
        return self

    def __exit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Closes the simulation."""
        self.close()

    def _index(self, flow: int | str) -> int:
        return flow_index(flow, self._indices)
