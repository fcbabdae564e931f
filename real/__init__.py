"""Packets of real programs, over a scenario's network in real time or in virtual time."""

from quicgym.real.audit import MOST_LATE_MS, Audit
from quicgym.real.link import LinkResult, run_link
from quicgym.real.network import Replay, replay
from quicgym.real.relay import Relay, RelayReport, WayReport
from quicgym.real.runs import InvalidRunError, Moment, RealRun, run_stack
from quicgym.real.stacks import StackError

__all__ = [
    "MOST_LATE_MS",
    "Audit",
    "InvalidRunError",
    "LinkResult",
    "Moment",
    "RealRun",
    "Relay",
    "RelayReport",
    "Replay",
    "StackError",
    "WayReport",
    "replay",
    "run_link",
    "run_stack",
]
