"""A scenario's flows, carried out by a real QUIC stack.

The network is the scenario's in both clocks: emulated in virtual time, or in real time between UDP
sockets by the relay. So are metrics and rewards, which are computed as those of a simulation.
"""

from __future__ import annotations

import dataclasses
import inspect
import os
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from quicgym import _core, controllers
from quicgym.agents.policies.by_name import (
    policy_description,
    policy_kind,
    stack_of_controller,
    unknown_controller,
)
from quicgym.envs.scenarios.applications import Bulk, Transfer
from quicgym.envs.scenarios.conversion import nanoseconds, parameters_of
from quicgym.envs.scenarios.fields import ScenarioError
from quicgym.envs.scenarios.flows import Flow, ModuleHabits
from quicgym.envs.scenarios.model import Scenario
from quicgym.envs.simulation.controller_choice import find_controller
from quicgym.envs.simulation.qlog import log_folder
from quicgym.envs.simulation.run import Recorded, Run
from quicgym.envs.simulation.sources import STACK_INTERVAL_MS as INTERVAL_MS
from quicgym.envs.simulation.window import WHOLE, Window
from quicgym.errors import RunError, UserError
from quicgym.real.audit import Audit
from quicgym.real.network import as_scenario, to_network
from quicgym.real.recording import (
    PASSED_DTYPE,
    QUEUE_RECORD_DTYPE,
    RecordedFlow,
    recorded_run,
)
from quicgym.real.relay import Relay
from quicgym.real.stacks import (
    CLOCKS,
    NEVER,
    Clock,
    FlowPlan,
    FlowRecord,
    Stack,
    StackError,
    Steering,
    find_stack,
)
from quicgym.yaml_files import closest

QLOG_VARIABLE = "QLOGDIR"
"""Environment variable with the folder for qlog files, if none is given."""
ATTEMPTS = 3
"""Runs in real time that the audit finds invalid are repeated, up to so many in all."""
REAL_GRACE_S = 15.0
"""A run in real time may take so much longer than its scenario."""
VIRTUAL_GRACE = 60.0
"""A run in virtual time may take so many times as long, and so many seconds."""
STALLED_S = 2.0
"""A flow that was active for so long has got something across."""
SMALLEST_DATAGRAM_BYTES = 1200
"""RFC 9000 14.1."""
LARGEST_DATAGRAM_BYTES = 2048
"""The relay's."""


class InvalidRunError(UserError):
    """Every attempt of a run in real time was invalid; the text has the audit's reasons.

    Attributes:
        audit: Audit of the last attempt.
    """

    def __init__(self, text: str, audit: Audit) -> None:
        """Keeps both."""
        super().__init__(text)
        self.audit = audit


@dataclass(frozen=True)
class Moment:
    """The progress of a run, reported about every second.

    Attributes:
        time_s: Time on the run's clock.
        goodput_mbps: Goodput of each flow since the last moment.
        smoothed_rtt_ms: Smoothed RTT of each flow; 0 before the first sample.
        lateness_p99_ms: 99th percentile of the relay's lateness so far; None on the virtual clock.
    """

    time_s: float
    goodput_mbps: Sequence[float]
    smoothed_rtt_ms: Sequence[float]
    lateness_p99_ms: float | None


class RealRun(Run):
    """A run over a real stack.

    Attributes:
        stack: Name of the stack.
        clock: "virtual" or "real".
        audit: Whether a run in real time may be believed; None on the virtual clock.
        attempts: How many runs there were until this one, invalid ones included.
    """

    def __init__(
        self,
        recorded: Recorded,
        window: Window,
        stack: str,
        clock: Clock,
        audit: Audit | None,
        attempts: int,
    ) -> None:
        """Takes what was recorded, the window of the metrics, and what is known of the run."""
        if clock == "real" and audit is None:
            raise RunError("a run in real time without an audit has no result; run it again")
        super().__init__(recorded, window)
        self.stack, self.clock, self.audit, self.attempts = stack, clock, audit, attempts

    @property
    def facts(self) -> dict[str, Any]:
        """The stack, the clock, the attempts and the audit, as JSON takes them."""
        return {
            "stack": self.stack,
            "clock": self.clock,
            "attempts": self.attempts,
            "audit": None if self.audit is None else dataclasses.asdict(self.audit),
        }


def run_stack(
    scenario: Scenario | str | Path,
    controller: Any,
    stack: str,
    clock: str | None = None,
    seed: int = 0,
    *,
    keep_traces: bool = True,
    qlog: str | Path | None = None,
    window: Window = WHOLE,
    on_moment: Callable[[Moment], None] | None = None,
    on_invalid: Callable[[int, Audit], None] | None = None,
) -> RealRun:
    """Runs a scenario with a real QUIC stack.

    Args:
        scenario: A Scenario, the name of one, or the path of a YAML.
        controller: The name of what steers the flows that name no controller, or a list of a name
            for each; see quicgym.run.
        stack: The stack's name.
        clock: "virtual" or "real"; None: the stack's first.
        seed: Every random draw comes from it.
        keep_traces: Keep the time series.
        qlog: The folder that gets qlog files; None: that of the environment variable QLOGDIR, if
            it is set.
        window: The part of the run that the metrics are of.
        on_moment: Called about every second of the run's clock.
        on_invalid: Called with the attempt's number, from 1, and the audit of an invalid run
            before it is repeated.

    Raises:
        ScenarioError: The scenario, the controller, the clock or the window is not valid.
        UserError: The stack is not installed, or its run failed; the text says why.
        InvalidRunError: Every attempt in real time was invalid.
    """
    scenario = as_scenario(scenario)
    check_marks(scenario, window)
    chosen = find_stack(stack)
    known_clock = check_clock(chosen, clock)
    plans = make_plans(scenario, controller, chosen, seed)
    folder = _log_folder(chosen, qlog)
    if known_clock == "virtual":
        return _run_virtual(scenario, plans, chosen, seed, window, keep_traces, folder, on_moment)
    _warn_of_python(plans)
    for attempt in range(1, ATTEMPTS + 1):
        result, audit = _run_real(
            scenario, plans, chosen, seed, window, keep_traces, folder, on_moment, attempt
        )
        if audit.valid:
            return result
        if attempt < ATTEMPTS and on_invalid is not None:
            on_invalid(attempt, audit)
    raise InvalidRunError(
        f"{scenario.name} over {stack}: all {ATTEMPTS} runs in real time were invalid, the last "
        f"because {'; '.join(audit.problems)}; repeat it on a quieter machine",
        audit,
    )


def _warn_of_python(plans: Sequence[FlowPlan]) -> None:
    for name in dict.fromkeys(plan.steering.name for plan in plans if plan.steering.kind == "user"):
        if find_controller(name).python_class is not None:
            warnings.warn(
                f"{name}: is in Python, whose time the sender spends between packets in real time; "
                "compare with the virtual clock, or write the controller in C++",
                stacklevel=3,
            )


def check_marks(scenario: Scenario, window: Window) -> None:
    """Raises ScenarioError for a window that is no part of the scenario, or ends between rows."""
    window.check(scenario)
    for name, time_s in window._asdict().items():
        if time_s is not None and nanoseconds(time_s) % nanoseconds(INTERVAL_MS / 1e3):
            raise ScenarioError(
                f"{name} = {time_s}: runs over a stack have a row every {INTERVAL_MS:g} ms; give a "
                "multiple of that"
            )


def _log_folder(stack: Stack, qlog: str | Path | None) -> Path | None:
    """Returns where qlog files go; None: nobody wants any."""
    given = os.environ.get(QLOG_VARIABLE)
    if qlog is None and not given:
        return None
    if "qlog" not in inspect.signature(stack.run).parameters:
        raise ScenarioError(
            f"stack {stack.name!r} writes no qlog; leave out qlog, and unset {QLOG_VARIABLE}"
        )
    if qlog is not None:
        return log_folder(qlog)
    folder = Path(str(given))
    if not folder.is_dir():
        raise UserError(
            f"{QLOG_VARIABLE} = {folder}: is no folder; make it, or unset {QLOG_VARIABLE}"
        )
    return folder


def check_clock(stack: Stack, clock: str | None) -> Clock:
    """Returns a clock that a stack has; None: the first of them.

    Raises:
        ScenarioError: There is none of this name, or the stack does not have it.
    """
    if clock is None:
        return stack.clocks[0]
    for known in CLOCKS:
        if known == clock:
            if known not in stack.clocks:
                raise ScenarioError(
                    f"clock = {clock!r}: stack {stack.name!r} has {', '.join(stack.clocks)} only"
                )
            return known
    raise ScenarioError(f"unknown clock {clock!r}; {closest(str(clock), CLOCKS)}")


# ---- what is asked of a stack ---------------------------------------------------------------


def make_plans(
    scenario: Scenario, controller: Any, stack: Stack, seed: int
) -> tuple[FlowPlan, ...]:
    """Returns what a stack is to do for each single flow.

    Args:
        scenario: The scenario to be run.
        controller: Names of controllers and policies for the flows that name none, see `run`.
        stack: The stack that runs the scenario.
        seed: Seed of the run.

    Raises:
        ScenarioError: The scenario has something that only a simulation can do, or there is no such
            controller.
        PolicyError: A learned policy cannot be loaded.
    """
    if not 0 <= seed < 2**64:
        raise ScenarioError(f"seed = {seed}: give a whole number from 0 to 2**64 - 1")
    core = to_network(scenario)
    if scenario.short_flows:
        raise ScenarioError(
            f"{scenario.name}: short_flows run in simulations only; take a scenario without them"
        )
    flows = list(scenario.single_flows())
    plans = []
    for index, ((name, flow), choice) in enumerate(
        zip(flows, _choices(scenario, controller), strict=True)
    ):
        _check_flow(f"{scenario.name}, flow {name}", scenario, flow)
        _warn_of_own_ways(f"{scenario.name}, flow {name}", flow, stack)
        own = core.flows[index]
        application = flow.application
        plans.append(
            FlowPlan(
                steering=_steering(scenario, flow, choice, stack),
                seed=(seed + index) % 2**64,
                start=_core.flow_start(core, index, seed),
                stop=NEVER if flow.stop_s is None else nanoseconds(flow.stop_s),
                size_bytes=application.size_bytes if isinstance(application, Transfer) else None,
                max_datagram_bytes=own.max_datagram_bytes,
                flow_control_window_bytes=own.flow_control_window_bytes,
                ack_eliciting_threshold=own.ack_eliciting_threshold,
                max_ack_delay=own.max_ack_delay,
                ecn=flow.ecn,
            )
        )
    return tuple(plans)


def _choices(scenario: Scenario, controller: Any) -> list[str]:
    """Returns the name of what steers each flow."""
    flows = list(scenario.single_flows())
    open_flows = [name for name, flow in flows if flow.controller is None]
    given = [] if controller is None else controller
    if isinstance(given, str):
        given = [given] * len(open_flows)
    if not isinstance(given, Sequence) or not all(isinstance(name, str) for name in given):
        raise ScenarioError(
            f"controllers = {controller!r}: a stack takes names, of controllers that are part of "
            "quicgym, of learned policies, or of its own controllers; name a class by its file, as "
            "in mine.py:Aimd"
        )
    if len(given) != len(open_flows):
        raise ScenarioError(
            f"{scenario.name}: {len(open_flows)} of its flows name no controller "
            f"({', '.join(open_flows)}), and {len(given)} are given; give one for all of them, or "
            "a list of one for each"
        )
    rest = iter(given)
    return [flow.controller or next(rest) for _, flow in flows]


def _check_flow(where: str, scenario: Scenario, flow: Flow) -> None:
    only_simulated = {
        "transport": flow.transport != "quic",
        "direction": flow.direction != "forward",
        "application": not isinstance(flow.application, Bulk | Transfer),
        "offload_packets": flow.offload_packets != 1,
        "burst_retransmission": flow.burst_retransmission,
        "stale_rate_samples": flow.stale_rate_samples,
        "module_habits": flow.module_habits != ModuleHabits(),
    }
    for field, is_there in only_simulated.items():
        if is_there:
            value = getattr(flow, field)
            shown = getattr(value, "kind", value)
            raise ScenarioError(
                f"{where}: {field} = {shown!r}: runs in simulations only; take a scenario without "
                "it"
            )
    size = flow.max_datagram_bytes or scenario.max_datagram_bytes
    if not SMALLEST_DATAGRAM_BYTES <= size <= LARGEST_DATAGRAM_BYTES:
        raise ScenarioError(
            f"{where}: max_datagram_bytes = {size}: a stack takes {SMALLEST_DATAGRAM_BYTES} to "
            f"{LARGEST_DATAGRAM_BYTES}"
        )


def _warn_of_own_ways(where: str, flow: Flow, stack: Stack) -> None:
    for field, way in getattr(stack, "own_ways", {}).items():
        value = getattr(flow, field)
        if value != Flow.model_fields[field].get_default():
            warnings.warn(f"{where}: {field} = {value}: {stack.name} {way}", stacklevel=4)


def _steering(scenario: Scenario, flow: Flow, choice: str, stack: Stack) -> Steering:
    if choice in stack.own_controllers:
        return Steering(choice, "own")
    if (other := stack_of_controller(choice)) is not None:
        own = closest(choice, stack.own_controllers) if stack.own_controllers else "it has none"
        raise ScenarioError(
            f"{choice!r} is a controller of the stack {other}, and not of {stack.name}; {own}"
        )
    if (path := policy_description(choice)) is not None:
        return Steering(path.stem, "policy", policy=path, title=choice)
    if controllers.is_place(choice) or policy_kind(choice) in ("baseline", "static"):
        return _controller(scenario, flow, choice)
    raise unknown_controller(choice, *stack.own_controllers)


def _controller(scenario: Scenario, flow: Flow, choice: str) -> Steering:
    """Returns a controller of quicgym, or a user's in Python, in a library or in a package."""
    info = find_controller(choice)
    try:
        given = info.numbers(parameters_of(scenario, flow, info))
        info.complete(dict(given))
    except ValueError as error:
        raise ScenarioError(f"{choice}: {error}") from None
    name, _ = controllers.split_parameters(choice)
    return Steering(name, "controller" if info.is_own else "user", given, title=info.name)


# ---- carrying it out ------------------------------------------------------------------------


def _duration(scenario: Scenario) -> int:
    """Returns the time of the last row, in ns."""
    interval = nanoseconds(INTERVAL_MS / 1e3)
    return nanoseconds(scenario.duration_s) // interval * interval


def _carry_out(
    scenario: Scenario,
    plans: Sequence[FlowPlan],
    stack: Stack,
    clock: Clock,
    network: _core.EmulatedNetwork | Relay,
    folder: Path | None,
    on_moment: Callable[[Moment], None] | None,
) -> Sequence[FlowRecord]:
    before = [0] * len(plans)
    last_s = 0.0

    def progress(time: int, goodput: Sequence[int], smoothed_rtt: Sequence[int]) -> None:
        nonlocal last_s
        if on_moment is None or time * 1e-9 <= last_s:
            return
        seconds = time * 1e-9 - last_s
        rates = [(now - then) * 8e-6 / seconds for now, then in zip(goodput, before, strict=True)]
        lateness = network.report().audit.lateness_p99_ms if isinstance(network, Relay) else None
        on_moment(Moment(time * 1e-9, rates, [rtt * 1e-6 for rtt in smoothed_rtt], lateness))
        before[:], last_s = goodput, time * 1e-9

    seconds = scenario.duration_s
    more = {} if folder is None else {"qlog": folder}  # a stack need not know of it
    records = stack.run(
        plans,
        network,
        clock=clock,
        duration=_duration(scenario),
        interval=nanoseconds(INTERVAL_MS / 1e3),
        progress=progress,
        deadline_s=seconds + REAL_GRACE_S if clock == "real" else VIRTUAL_GRACE * (1.0 + seconds),
        **more,
    )
    _check(scenario, plans, records)
    return records


def _check(scenario: Scenario, plans: Sequence[FlowPlan], records: Sequence[FlowRecord]) -> None:
    """Raises StackError for flows that got nothing across, or that were not compared."""
    names = [name for name, _ in scenario.single_flows()]
    for name, plan, record in zip(names, plans, records, strict=True):
        goodput = int(record.rows["goodput_bytes"][-1])
        active_s = (min(_duration(scenario), plan.stop) - plan.start) * 1e-9
        if goodput == 0 and active_s >= STALLED_S:
            raise StackError(
                f"{scenario.name}, {name}: nothing arrived in {active_s:g} s; a peer or the relay "
                "has stalled"
            )
        if record.compared_bytes < goodput:
            raise StackError(
                f"{scenario.name}, {name}: {goodput - record.compared_bytes} bytes that arrived "
                "were not compared with what was sent; this is a fault of the stack"
            )


def _measured(
    scenario: Scenario,
    plans: Sequence[FlowPlan],
    records: Sequence[FlowRecord],
    recording: tuple[Sequence[bytes], Sequence[bytes]],
    engine: str,
    seed: int,
    window: Window,
    keep_traces: bool,
) -> Recorded:
    paths, queues = recording
    interval = nanoseconds(INTERVAL_MS / 1e3)
    flows = [
        RecordedFlow(
            index,
            name,
            plans[index],
            records[index],
            np.frombuffer(paths[index], PASSED_DTYPE),
            interval,
            len(scenario.hops_of(flow)),
        )
        for index, (name, flow) in enumerate(scenario.single_flows())
    ]
    samples = [np.frombuffer(queue, QUEUE_RECORD_DTYPE) for queue in queues]
    return recorded_run(
        scenario, engine, seed, flows, samples, interval, window.marks(), keep_traces=keep_traces
    )


def _run_virtual(
    scenario: Scenario,
    plans: Sequence[FlowPlan],
    stack: Stack,
    seed: int,
    window: Window,
    keep_traces: bool,
    folder: Path | None,
    on_moment: Callable[[Moment], None] | None,
) -> RealRun:
    network = _core.EmulatedNetwork(to_network(scenario), seed)
    network.record(nanoseconds(INTERVAL_MS / 1e3), _duration(scenario))
    records = _carry_out(scenario, plans, stack, "virtual", network, folder, on_moment)
    network.advance(_duration(scenario) + 1)  # for the last row of what is recorded
    engine = f"{stack.name}-virtual"
    recorded = _measured(
        scenario, plans, records, network.recording(), engine, seed, window, keep_traces
    )
    return RealRun(recorded, window, stack.name, "virtual", None, 1)


def _run_real(
    scenario: Scenario,
    plans: Sequence[FlowPlan],
    stack: Stack,
    seed: int,
    window: Window,
    keep_traces: bool,
    folder: Path | None,
    on_moment: Callable[[Moment], None] | None,
    attempt: int,
) -> tuple[RealRun, Audit]:
    with Relay(scenario, seed=seed) as relay:
        relay.record(nanoseconds(INTERVAL_MS / 1e3), _duration(scenario))
        try:
            records = _carry_out(scenario, plans, stack, "real", relay, folder, on_moment)
        except StackError as error:
            relay.stop()
            problems = relay.report().audit.problems
            if not problems:
                raise
            raise StackError(f"{error}; the audit says: {'; '.join(problems)}") from error
    audit = with_decisions(relay.report().audit, records)
    engine = f"{stack.name}-real"
    recorded = _measured(
        scenario, plans, records, relay.recording(), engine, seed, window, keep_traces
    )
    return RealRun(recorded, window, stack.name, "real", audit, attempt), audit


def with_decisions(audit: Audit, records: Sequence[FlowRecord]) -> Audit:
    """Returns the audit with how late learned policies decided."""
    late_ms = np.concatenate([record.decision_lateness for record in records]) * 1e-6
    if len(late_ms) == 0:
        return audit
    return dataclasses.replace(
        audit,
        decisions=len(late_ms),
        decision_late_p99_ms=float(np.quantile(late_ms, 0.99)),
        decision_late_max_ms=float(np.max(late_ms)),
    )
