"""The network of a scenario in real time: a relay between UDP sockets."""

from __future__ import annotations

import errno
import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from quicgym import _core
from quicgym.envs.scenarios.model import Scenario
from quicgym.errors import UserError
from quicgym.real.audit import Audit, CpuTicks
from quicgym.real.network import as_scenario, to_network

Address = tuple[str, int]
"""Host, a numeric IPv4 address, and port."""


@dataclass(frozen=True)
class WayReport:
    """Totals of one direction of the network; bytes are those on the wire.

    Attributes:
        sent_packets: Packets that hosts have sent.
        sent_bytes: Bytes of the sent packets.
        delivered_packets: Packets that have arrived at the other host. One that still waits in a
            queue, or is on a link, does not count yet.
        delivered_bytes: Bytes of the delivered packets.
        dropped_packets: Packets that a queue or a policer dropped.
        lost_packets: Packets that were lost at random, on a link.
        mean_queue_delay_ms: Mean queueing delay of the delivered packets over all hops; None
            without any.
        queue_packets: Packets that wait before the bottleneck, or the way back over it, now.
        queue_bytes: Bytes of the waiting packets.
    """

    sent_packets: int
    sent_bytes: int
    delivered_packets: int
    delivered_bytes: int
    dropped_packets: int
    lost_packets: int
    mean_queue_delay_ms: float | None
    queue_packets: int
    queue_bytes: int


@dataclass(frozen=True)
class RelayReport:
    """The report of a relay on its work so far.

    Attributes:
        elapsed_s: Since its start.
        forward: From the senders' side, over the bottleneck.
        backward: From the receivers' side, over the reverse link.
        audit: Whether it may be believed.
    """

    elapsed_s: float
    forward: WayReport
    backward: WayReport
    audit: Audit


class Relay:
    """A scenario's network between UDP sockets, on a separate thread.

    Each single flow of the scenario is a path between two hosts: links, queues, losses and random
    numbers are those of the native engine, the flow's own sender does not run. A host sends its
    datagrams to the relay, and gets the other's from there. The kernel's timestamps say when a
    datagram was sent, and from them the model when it arrives: a late relay does not add up.

    Every use ends with `stop()`, or is a `with` block::

        with Relay("ebcc-single") as relay:
            to_receiver, to_sender = relay.connect(receiver=("127.0.0.1", 4433))
            relay.start()
            ...  # a sender that talks to `to_receiver` as if it were the receiver
        assert relay.report().audit.valid

    Linux only.
    """

    def __init__(
        self, scenario: Scenario | str | Path, *, seed: int = 0, beyond_loopback: bool = False
    ) -> None:
        """Makes the network; nothing passes before `start()`.

        Args:
            scenario: A name, a path or a scenario.
            seed: Seed of the network's random numbers.
            beyond_loopback: Whether sockets may have other addresses than those of this machine
                alone.

        Raises:
            ScenarioError: The scenario has something that only a simulation can do.
            UserError: The system is not Linux.
        """
        self.scenario = as_scenario(scenario)
        self._core = make_core_relay(to_network(self.scenario), seed)
        self._beyond_loopback = beyond_loopback
        self._start: CpuTicks | None = None
        self._end: CpuTicks | None = None

    def connect(
        self,
        path: int = 0,
        *,
        sender: Address | None = None,
        receiver: Address | None = None,
        host: str = "127.0.0.1",
    ) -> tuple[Address, Address]:
        """Opens the two sockets of a path.

        Args:
            path: A single flow of the scenario, from 0.
            sender: Where the host on the senders' side is. None: whoever sends a datagram to its
                socket first.
            receiver: Where the host on the receivers' side is; None as for the sender.
            host: The address of both sockets; the system chooses their ports.

        Returns:
            The address that stands for the receiver, to which the sender sends, and the address
            that stands for the sender, to which the receiver sends.

        Raises:
            UserError: The address is not of this machine alone, and `beyond_loopback` is not set;
                or `sender` or `receiver` is on another machine, which `host` does not reach.
            ValueError: There is no such path, it has its sockets, or an address is none.
            OSError: The system refuses a socket.
        """
        is_local = ipaddress.ip_address(host).is_loopback
        if not self._beyond_loopback and not is_local:
            raise UserError(
                f"host = {host!r}: others could reach the relay there; take an address of this "
                "machine alone, such as 127.0.0.1, or set beyond_loopback=True"
            )
        try:
            return self._core.add_udp_ports(path, host, sender, receiver)
        except OSError as error:
            if not is_local or error.errno != errno.EINVAL:
                raise
            raise UserError(
                f"{error}: this machine's own {host} reaches no other machine; take an address of "
                "this machine's network for host, and set beyond_loopback=True"
            ) from error

    def record(self, interval: int, duration: int) -> None:
        """Records what passes.

        Args:
            interval: Time between two rows, in ns.
            duration: Time of the last row, in ns from the start.

        Raises:
            ValueError: `interval` is below 1, or the rows take more than 1 GiB.
            RuntimeError: The relay was started before.
        """
        self._core.record(interval, duration)

    def recording(self) -> tuple[list[bytes], list[bytes]]:
        """Returns it after `stop()`: see quicgym.real.recording.

        Raises:
            RuntimeError: The relay still runs.
        """
        return self._core.recording()

    def start(self) -> None:
        """Lets packets pass; the scenario's time 0 is now.

        Raises:
            RuntimeError: A path has no sockets yet, or the relay was started before.
        """
        self._start = CpuTicks.now()
        self._core.start()

    @property
    def started_at_ns(self) -> int:
        """When that was, in ns of CLOCK_MONOTONIC; 0 before."""
        return self._core.started_at

    def stop(self) -> None:
        """Ends it; packets on their way are not delivered. Several threads may call this.

        Raises:
            OSError: The relay had failed before.
            RuntimeError: This process was forked after the start, so the relay is not its own.
        """
        self._core.stop()
        if self._end is None:
            self._end = CpuTicks.now()

    def report(self) -> RelayReport:
        """Returns what it has done, while it runs or afterwards. Several threads may call this.

        Raises:
            RuntimeError: This process was forked after the start, so the relay is not its own.
        """
        start = self._start or CpuTicks.now()
        end = self._end or CpuTicks.now()
        return make_report(self._core.report(), end.stolen_percent_since(start))

    def __enter__(self) -> Relay:
        """Returns itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Stops it."""
        self.stop()


def make_core_relay(network: _core.Scenario, seed: int) -> _core.Relay:
    """Returns the relay in C++; UserError where this is not Linux."""
    if not hasattr(_core, "Relay"):
        raise UserError(
            "packets of real programs need Linux: its sockets' timestamps, and for quicgym link "
            "its network namespaces"
        )
    return _core.Relay(network, seed)


def make_report(report: Mapping[str, Any], cpu_steal_percent: float) -> RelayReport:
    """Makes it from what _core.Relay.report() returns."""
    return RelayReport(
        elapsed_s=report["elapsed"] * 1e-9,
        forward=_way(report["forward"]),
        backward=_way(report["backward"]),
        audit=Audit.of_report(report, cpu_steal_percent),
    )


def _way(totals: Mapping[str, int]) -> WayReport:
    delivered = totals["delivered_packets"]
    return WayReport(
        sent_packets=totals["sent_packets"],
        sent_bytes=totals["sent_bytes"],
        delivered_packets=delivered,
        delivered_bytes=totals["delivered_bytes"],
        dropped_packets=totals["dropped_packets"],
        lost_packets=totals["lost_packets"],
        mean_queue_delay_ms=totals["queue_delay_sum"] / 1e6 / delivered if delivered else None,
        queue_packets=totals["queue_packets"],
        queue_bytes=totals["queue_bytes"],
    )
