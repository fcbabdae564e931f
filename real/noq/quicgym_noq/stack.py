"""The stack `noq` of quicgym.real: noq-proto, sans I/O, in virtual and in real time."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, cast

import quicgym
from quicgym import _core
from quicgym.envs.simulation.qlog import log_path, rewrite_log
from quicgym.real import Relay
from quicgym.real.stacks import Clock, FlowPlan, FlowRecord, Progress, StackError
from quicgym_noq import _noq

NAMES = (
    "rows", "rtt", "completion", "compared_bytes", "decision_lateness", "probe_timeouts",
    "persistent_congestion",
)  # fmt: skip
"""Fields that `_noq` returns for each flow, in this order."""


def _library() -> Path:
    suffix = "dylib" if sys.platform == "darwin" else "so"
    return Path(quicgym.get_library_dir()) / f"libquicgym-controller.{suffix}"


def _refuse_what_noq_cannot(flows: Sequence[FlowPlan]) -> None:
    for number, flow in enumerate(flows):
        if flow.ecn:
            raise StackError(
                f"flow {number}: ecn is true, and noq does not tell its controller how many "
                "packets were marked; set ecn to false"
            )


@dataclass(frozen=True)
class NoqStack:
    """See quicgym.real.stacks.Stack. What is sent and received is TLS 1.3 in QUIC version 1."""

    name: str = "noq"
    clocks: Sequence[Clock] = ("virtual", "real")
    own_controllers: Sequence[str] = ("noq-newreno", "noq-cubic", "noq-bbr3")

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
        """Carries out one run, see quicgym.real.stacks.Stack.run."""
        _refuse_what_noq_cannot(flows)
        schedule: dict[str, Any] = {
            "duration": duration,
            "interval": interval,
            "progress": progress,
            "deadline_s": deadline_s,
            "qlog_folder": None if qlog is None else str(qlog),
        }
        try:
            if clock == "virtual":
                capsule = cast(_core.EmulatedNetwork, network).capsule
                records = _noq.run_virtual(_library(), flows, capsule, **schedule)
            else:
                records = _run_real(flows, cast(Relay, network), schedule)
        except _noq.RunError as error:
            raise StackError(str(error)) from None
        if qlog is not None:
            for flow, side in product(range(len(flows)), ("sender", "receiver")):
                rewrite_log(log_path(qlog, flow, side), side, f"{self.name}-{clock}")
        named: list[dict[str, Any]] = [dict(zip(NAMES, record, strict=True)) for record in records]
        return [FlowRecord.of_bytes(**fields) for fields in named]


def _run_real(
    flows: Sequence[FlowPlan], relay: Relay, schedule: dict[str, Any]
) -> list[_noq.Record]:
    def connect(path: int, port: int) -> tuple[tuple[str, int], tuple[str, int]]:
        return relay.connect(path, receiver=("127.0.0.1", port))

    def start() -> int:
        relay.start()
        return relay.started_at_ns

    return _noq.run_real(_library(), flows, connect, start, **schedule)


STACK = NoqStack()
