"""QUIC stacks that carry out a scenario's flows: what each offers, and where they are found.

A stack is found by the entry point group `quicgym.stacks`, whose entries are objects of the
protocol `Stack`. Another distribution adds one in its pyproject.toml:

    [project.entry-points."quicgym.stacks"]
    mine = "my_package.stack:STACK"

quicgym makes the network and measures what passes it; a stack brings endpoints and says what only
they know. Times are whole nanoseconds from the scenario's beginning, sizes bytes of UDP payload
unless a name says otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from quicgym import _core, plugins
from quicgym.errors import UserError
from quicgym.real.relay import Relay
from quicgym.yaml_files import closest

Clock = Literal["virtual", "real"]
CLOCKS: tuple[Clock, ...] = ("virtual", "real")
NEVER = 2**63 - 1
"""The completion, in ns, of what was not completed."""

ROW_DTYPE = np.dtype(
    [
        ("time", "i8"),
        ("window_bytes", "u8"),
        ("pacing_rate", "f8"),
        ("smoothed_rtt", "i8"),
        ("in_flight_bytes", "u8"),
        ("delivered_bytes", "u8"),
        ("lost_bytes", "u8"),
        ("lost_packets", "u8"),
        ("goodput_bytes", "u8"),
        ("mode", "i8"),
    ]
)
"""A row of a flow's series, all at one time.

`time` in ns; `pacing_rate` in bytes per second, 0: not paced; `smoothed_rtt` in ns, 0 before the
first sample; totals so far: `delivered_bytes` (acknowledged), `lost_bytes` and `lost_packets`
(declared lost), `goodput_bytes` (stream bytes at the receiving application for the first time);
`mode` as a place in `quicgym.envs.simulation.simulation.MODES`, 0 where the controller has none.
"""

Progress = Callable[[int, Sequence[int], Sequence[int]], None]
"""Called by a stack about every second of its clock: the time in ns, and of each flow goodput_bytes
and smoothed_rtt in ns. What it raises ends the run and is passed on."""


class StackError(UserError):
    """A run ended before its time; the text says why, such as a peer that sent what is no QUIC."""


@dataclass(frozen=True)
class Steering:
    """The controller or policy that steers a flow.

    Attributes:
        name: Name of a controller in quicgym's catalogue, of a policy, of a controller that the
            stack brings, or the place of a user's controller, such as "mine.py:Ledbat".
        kind: controller: of quicgym's catalogue; policy: a learned one; own: the stack's; user: a
            user's, in Python or in a library, which `hosted_controller.specification_of` loads.
        parameters: Parameters of a controller that differ from the catalogue's: numbers or lists.
        policy: Path of a policy's description (.json); None for a controller.
        title: Name in results, such as "ebcc:gamma=60"; empty: the name above.
    """

    name: str
    kind: Literal["controller", "policy", "own", "user"]
    parameters: Mapping[str, Sequence[float]] = field(default_factory=dict)
    policy: Path | None = None
    title: str = ""


@dataclass(frozen=True)
class FlowPlan:
    """One flow: its place in the list is the number of its path over the network.

    Attributes:
        steering: The controller or policy that steers the sender.
        seed: Seed of the controller's random numbers.
        start: When the sender opens the connection, in ns.
        stop: When the sender stops sending new data, in ns; NEVER: with the run.
        size_bytes: Stream bytes of a transfer; None: there is always something to send.
        max_datagram_bytes: UDP payload of a full packet; nothing larger may be sent.
        flow_control_window_bytes: The receiver's window, for the connection and for streams.
        ack_eliciting_threshold: Number of ack-eliciting packets that the receiver may leave without
            an ACK. Stacks that cannot be told keep their own.
        max_ack_delay: The receiver's largest ACK delay, in ns. Stacks that cannot be told keep
            their own.
        ecn: Whether the sender marks its packets ECT(0), where the stack can.
    """

    steering: Steering
    seed: int
    start: int
    stop: int
    size_bytes: int | None
    max_datagram_bytes: int
    flow_control_window_bytes: int
    ack_eliciting_threshold: int
    max_ack_delay: int
    ecn: bool


@dataclass(frozen=True)
class FlowRecord:
    """The measurements of one flow in a stack.

    Attributes:
        rows: Shape (rows,), of ROW_DTYPE: at 0, interval, 2 · interval, … up to the run's duration,
            both ends included. On the real clock each is as of its time, however late it was taken.
        rtt: Shape (samples, 2), int64: time and RTT of each sample in ns, in order of time. The
            peer's ACK delay is included. Samples of the handshake are there, too.
        completion: When the receiver had every byte of a sized transfer, in ns; else NEVER.
        compared_bytes: How many of the goodput_bytes at the end the receiver compared with what was
            sent. A difference is a StackError.
        decision_lateness: Shape (decisions,), int64: of a policy, by how many ns each decision was
            later than it was due. Empty for others.
        probe_timeouts: How often a probe timeout expired (RFC 9002 6.2).
        persistent_congestion: How often persistent congestion was declared (RFC 9002 7.6).
    """

    rows: NDArray[Any]
    rtt: NDArray[np.int64]
    completion: int
    compared_bytes: int
    decision_lateness: NDArray[np.int64]
    probe_timeouts: int
    persistent_congestion: int

    @classmethod
    def of_bytes(
        cls, *, rows: bytes, rtt: bytes, decision_lateness: bytes, **numbers: int
    ) -> FlowRecord:
        """Returns the record of a stack that is not written in Python.

        Args:
            rows: The rows' memory.
            rtt: The samples' memory, row by row.
            decision_lateness: The memory of that array.
            numbers: The other attributes.
        """
        return cls(
            rows=np.frombuffer(rows, ROW_DTYPE),
            rtt=np.frombuffer(rtt, np.int64).reshape(-1, 2),
            decision_lateness=np.frombuffer(decision_lateness, np.int64),
            **numbers,
        )


class Stack(Protocol):
    """A QUIC implementation that can carry out flows.

    Attributes:
        name: Name that users give.
        clocks: The clocks that the stack has.
        own_controllers: Names of controllers that the stack brings itself, each beginning with the
            stack's name, as in "noq-cubic".
        own_ways: Fields of a scenario's flow that the stack does not follow, and what it does: a
            scenario that has other values than the defaults warns. A stack may leave it out.
    """

    name: str
    clocks: Sequence[Clock]
    own_controllers: Sequence[str]

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
        """Carries out one run, from time 0 to its duration, and closes what it has opened.

        Each flow's sender is the client that opens the connection, on its path's `forward` side.

        Args:
            flows: In the order of the network's paths.
            network: On the virtual clock an emulated network: the stack tells it of each datagram
                (`wire_bytes` is the UDP payload and 30), and keeps the datagrams itself. On the
                real clock a relay that is not started. The stack binds its receivers' sockets to
                loopback and calls `connect(path, receiver=address)` for each. Then the stack calls
                `start()`, which is time 0: `started_at_ns` has this time on CLOCK_MONOTONIC. The
                caller stops the relay.
            clock: One of `clocks`.
            duration: Length of the run, in ns.
            interval: Time between two rows, in ns.
            progress: See Progress.
            deadline_s: After this much wall-clock time the run ends with a StackError, whatever it
                waits for.
            qlog: The folder that gets a file of each end, see quicgym.envs.simulation.qlog: times
                are the run's. None: no files. A stack that has no such argument writes no qlog.

        Raises:
            StackError: The run ended early, a byte differed, or the deadline has passed.
        """


def stack_names() -> list[str]:
    """Returns the names of the stacks that are installed."""
    return list(plugins.installed("stack"))


def find_stack(name: str | None) -> Stack:
    """Returns a stack by its name; None takes the first of those that are installed.

    Raises:
        UserError: There is none of this name, it is not installed, or it cannot be loaded.
    """
    known = stack_names()
    if name is None and known:
        name = known[0]
    if name is None or name not in known:
        what = "no QUIC stack is installed" if name is None else f"stack {name!r} is not installed"
        others = f"; {closest(name or '', known)}" if known else ""
        raise UserError(
            f"{what}{others}. Each stack is a package of its own: run `pip install . "
            f"./real/{name or 'NAME'}` in a checkout of quicgym"
        )
    stack: Stack = plugins.load("stack", name)
    return stack
