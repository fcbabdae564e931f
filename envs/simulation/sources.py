"""`quicgym.run`: a scenario to its end, in a simulation or over a real QUIC stack.

What runs stacks stands above this package. It is found by the entry point `stack` of the group
`quicgym.runners`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from quicgym import plugins
from quicgym.envs.scenarios.fields import ScenarioError
from quicgym.envs.scenarios.files import load_scenario
from quicgym.envs.scenarios.model import Scenario
from quicgym.envs.simulation.controller_choice import ControllerChoice
from quicgym.envs.simulation.packet_logs import PacketLogs
from quicgym.envs.simulation.run import Run
from quicgym.envs.simulation.simulation import Simulation
from quicgym.envs.simulation.window import Window

STACK_INTERVAL_MS = 10.0
"""Between two rows of the traces of a run over a stack."""


class StackRunner(Protocol):
    """Runs a scenario over a real QUIC stack."""

    def __call__(
        self,
        scenario: Scenario,
        controller: Any,
        stack: str,
        clock: str | None,
        seed: int,
        *,
        keep_traces: bool,
        qlog: str | Path | None,
        window: Window,
    ) -> Run:
        """Returns the run; the arguments are those of `run`."""


def run(
    scenario: Scenario | str | Path,
    controller: ControllerChoice | Sequence[ControllerChoice] | None = None,
    engine: str = "native",
    seed: int = 0,
    *,
    trace_interval_ms: float | None = 10.0,
    from_s: float | None = None,
    until_s: float | None = None,
    marks_s: Sequence[float] = (),
    stack: str | None = None,
    clock: str | None = None,
    qlog: str | Path | PacketLogs | None = None,
    pcap: str | Path | PacketLogs | None = None,
) -> Run:
    """Runs a scenario to its end: in a simulation, or with a real QUIC stack.

    Args:
        scenario: A Scenario, a name from `scenario_names()` or the path of a YAML.
        controller: Controllers of the flows that name none: a name or a subclass of
            quicgym.Controller for all, or a list of one for each. A stack takes names only: of
            controllers, also with parameters as in "ebcc:gamma=60", of learned policies, of the
            stack's own controllers.
        engine: "native" or "ns3"; not for a stack.
        seed: Seed of every random draw.
        trace_interval_ms: Interval between two rows of the traces, in ms; None: no traces. With a
            stack 10 or None.
        from_s: Beginning of the window of the metrics, in s; None: the run's beginning.
        until_s: End of the window of the metrics, in s; None: the run's end.
        marks_s: Further times, in s, at which windows of `Run.over` may begin and end. Not with a
            stack.
        stack: Name of an installed QUIC stack, such as "aioquic"; None: a simulation.
        clock: Clock of the stack: "virtual", the default where it has one, or "real".
        qlog: Folder that gets qlog files, `flow-0-sender.sqlog` and so on; None: none. PacketLogs
            also say how many packets the files have. A stack has all packets, and may write
            receivers' files, too. Not with the engine ns3.
        pcap: Folder that gets pcap files, `ebcc-single-router-1.pcap` and so on, or PacketLogs;
            None: none. The engine ns3 only.

    Returns:
        The run; with a stack a quicgym.real.RealRun, which has the audit, too.

    Raises:
        ScenarioError: The scenario, the engine or stack for it, the controller or the window is not
            valid.
        ControllerError: A controller in Python failed.
        Ns3MissingError: The engine is "ns3", and this build has no ns-3.
        UserError: The stack is not installed, or its run failed; the text says why.

    Example:
        run = quicgym.run("ebcc-single", controller="ebcc")
        print(run.to_pandas())
    """
    if not isinstance(scenario, Scenario):
        scenario = load_scenario(scenario)
    window = Window(from_s, until_s)
    window.check(scenario)
    if stack is not None:
        if engine != "native":
            raise ScenarioError(
                f"engine = {engine!r}: stack {stack!r} is no simulation; leave out one of the two"
            )
        if trace_interval_ms not in (None, STACK_INTERVAL_MS):
            raise ScenarioError(
                f"trace_interval_ms = {trace_interval_ms}: runs over a stack have a row every "
                f"{STACK_INTERVAL_MS:g} ms; give that, or None"
            )
        if marks_s:
            raise ScenarioError(
                f"marks_s = {list(marks_s)}: runs over a stack have one window; leave it out"
            )
        if isinstance(qlog, PacketLogs) or pcap is not None:
            raise ScenarioError(
                f"stack {stack!r}: logs all packets, as qlog; give `qlog` a folder, and no pcap"
            )
        run_stack: StackRunner = plugins.load("runner", "stack")
        return run_stack(
            scenario, controller, stack, clock, seed, keep_traces=trace_interval_ms is not None,
            qlog=qlog, window=window,
        )  # fmt: skip
    if clock is not None:
        raise ScenarioError(
            f"clock = {clock!r}: belongs to a stack; name one, as in stack='aioquic'"
        )
    logs = None if qlog is None else PacketLogs.of(qlog)
    captures = None if pcap is None else PacketLogs.of(pcap)
    with Simulation(
        scenario,
        engine,
        seed,
        controller,
        trace_interval_ms=trace_interval_ms,
        marks=window.marks(marks_s),
        record_events=logs is not None,
        pcap_prefix=None if captures is None else captures.pcap_prefix(scenario.name),
    ) as simulation:
        simulation.run()
        if logs is not None:
            events = (simulation.events(flow.index) for flow in simulation.flows)
            logs.write_qlog(events, simulation.engine)
        done = Run.of(simulation, window)
    if captures is not None:
        captures.thin_pcap(scenario.name)
    return done
