"""The stack `quicgym`: the simulator's own endpoints, over UDP sockets in real time.

In virtual time they are the native engine. So the difference between the two is the clock's alone.
They encrypt nothing: every datagram ends with a checksum where the tag of the AEAD would be.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from quicgym import _core
from quicgym.envs.simulation.packet_logs import PacketLogs
from quicgym.envs.simulation.qlog import as_events
from quicgym.errors import UserError
from quicgym.real.relay import Relay
from quicgym.real.stacks import (
    Clock,
    FlowPlan,
    FlowRecord,
    Progress,
    StackError,
)

POLL_S = 0.05
"""Between two looks at the endpoints' thread."""
PROGRESS_S = 1.0


class OwnStack:
    """See quicgym.real.stacks.Stack."""

    name = "quicgym"
    clocks: Sequence[Clock] = ("real",)
    own_controllers: Sequence[str] = ()

    def run(
        self,
        flows: Sequence[FlowPlan],
        network: _core.EmulatedNetwork | Relay,
        *,
        clock: Clock,
        duration: int,
        interval: int,
        progress: Progress,
        deadline_s: float,
        qlog: Path | None = None,
    ) -> Sequence[FlowRecord]:
        """Carries out one run; see quicgym.real.stacks.Stack.run."""
        assert isinstance(network, Relay)
        deadline = time.monotonic() + deadline_s
        plans = [(_flow(plan), plan.seed, _policy(plan)) for plan in flows]
        try:
            endpoints = _core.UdpFlows(plans, interval, duration)
        except ValueError as error:
            raise UserError(str(error)) from error
        if qlog is not None:
            endpoints.record_events()
        for path in range(len(flows)):
            hosts = network.connect(
                path,
                sender=endpoints.sender_address(path),
                receiver=endpoints.receiver_address(path),
            )
            endpoints.connect(path, *hosts)
        network.start()
        endpoints.start(network.started_at_ns)
        try:
            next_progress = time.monotonic() + PROGRESS_S
            while not endpoints.finished:
                time.sleep(POLL_S)
                now = time.monotonic()
                if now > deadline:
                    raise StackError(f"the deadline of {deadline_s:g} s has passed")
                if now >= next_progress:
                    next_progress += PROGRESS_S
                    progress(*endpoints.progress())
        finally:
            try:
                endpoints.stop()
            except RuntimeError as error:
                raise StackError(str(error)) from error
            finally:
                if qlog is not None:
                    events = [as_events(endpoints.events(path)) for path in range(len(flows))]
                    PacketLogs(qlog).write_qlog(events, f"{self.name}-{clock}")
        return [FlowRecord.of_bytes(**endpoints.record(path)) for path in range(len(flows))]


def _flow(plan: FlowPlan) -> _core.Flow:
    flow = _core.Flow()
    flow.start = plan.start
    flow.stop = plan.stop
    flow.max_datagram_bytes = plan.max_datagram_bytes
    flow.flow_control_window_bytes = plan.flow_control_window_bytes
    flow.ack_eliciting_threshold = plan.ack_eliciting_threshold
    flow.max_ack_delay = plan.max_ack_delay
    flow.ecn = plan.ecn
    if plan.size_bytes is not None:
        application = _core.Application()
        application.kind = _core.ApplicationKind.transfer
        application.size_bytes = plan.size_bytes
        flow.application = application
    if plan.steering.kind == "controller":
        flow.controller = plan.steering.name
        flow.parameters = {name: list(values) for name, values in plan.steering.parameters.items()}
    return flow


def _policy(plan: FlowPlan) -> str | None:
    return None if plan.steering.policy is None else str(plan.steering.policy)


STACK = OwnStack()
