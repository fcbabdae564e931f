"""Whether a run in real time may be believed."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MOST_LATE_MS = 0.5
"""At the 99th percentile; a run whose relay was later is invalid."""
MOST_LATE_DECISION_MS = 5.0
"""At the 99th percentile; a run whose policy decided later is invalid. A twentieth of the 100 ms
between two decisions of most policies: later ones act on another state than the simulator's."""
MOST_STOLEN_PERCENT = 1.0
"""A run is invalid if more of the CPU time of all cores was stolen. This is a mean over the run;
shorter thefts show as lateness."""
COUNTS = (
    "kernel_drops", "overflow_packets", "unsent_packets", "refused_packets", "socket_errors",
    "moved_packets", "foreign_packets", "oversized_packets", "clock_steps",
)  # fmt: skip
"""Fields that an audit copies from the relay's report."""


@dataclass(frozen=True)
class CpuTicks:
    """The kernel's count of CPU time, over all cores.

    Attributes:
        total: Ticks of all kinds.
        stolen: Ticks that other virtual machines had while this one wanted to run.
    """

    total: int
    stolen: int

    @classmethod
    def now(cls) -> CpuTicks:
        """Reads the first line of /proc/stat, see proc_stat(5)."""
        with Path("/proc/stat").open(encoding="ascii") as file:
            ticks = [int(field) for field in file.readline().split()[1:9]]
        return cls(sum(ticks), ticks[7])

    def stolen_percent_since(self, start: CpuTicks) -> float:
        """Returns how much of the CPU time since then was stolen."""
        return 100 * (self.stolen - start.stolen) / max(self.total - start.total, 1)


@dataclass(frozen=True)
class Audit:
    """Shows whether a relay did what the link's model says.

    Attributes:
        packets: Number of packets that left.
        lateness_p50_ms: How long packets left after the model's time, median, at most 3% above.
        lateness_p99_ms: 99th percentile.
        lateness_max_ms: Largest.
        cpu_steal_percent: CPU time that the machine lost to others, of all its cores.
        relay_cpu_percent: CPU time of the relay's thread, of one core.
        realtime_priority: Whether the relay's thread had SCHED_FIFO, for which it needs
            CAP_SYS_NICE or a limit `ulimit -r` above 0.
        kernel_drops: Packets that the kernel had no room for before the relay read them.
        overflow_packets: Packets that the relay dropped on arrival, because others took 64 MiB.
        unsent_packets: Packets that were due, and a socket did not take.
        refused_packets: Unsent packets for hosts that had closed their sockets, as at a run's end.
        socket_errors: Other errors of the sockets.
        last_socket_error: The last one of these; empty: there was none.
        moved_packets: Packets that the relay saw too late to let them reach a queue at their time.
        moved_max_ms: The largest delay of such a packet.
        foreign_packets: Packets from another sender than the host, which were ignored.
        oversized_packets: Packets above 2048 bytes, which were thrown away.
        clock_steps: How often the time of day was set.
        decisions: Number of decisions of learned policies, in a run of flows.
        decision_late_p99_ms: How long decisions were made after they were due, 99th percentile.
        decision_late_max_ms: The latest decision.
    """

    packets: int
    lateness_p50_ms: float
    lateness_p99_ms: float
    lateness_max_ms: float
    cpu_steal_percent: float
    relay_cpu_percent: float
    realtime_priority: bool
    kernel_drops: int
    overflow_packets: int
    unsent_packets: int
    refused_packets: int
    socket_errors: int
    last_socket_error: str
    moved_packets: int
    moved_max_ms: float
    foreign_packets: int
    oversized_packets: int
    clock_steps: int
    decisions: int = 0
    decision_late_p99_ms: float = 0.0
    decision_late_max_ms: float = 0.0

    @classmethod
    def of_report(cls, report: Mapping[str, Any], cpu_steal_percent: float) -> Audit:
        """Makes it from what _core.Relay.report() returns."""
        return cls(
            packets=report["lateness_packets"],
            lateness_p50_ms=report["lateness_p50"] / 1e6,
            lateness_p99_ms=report["lateness_p99"] / 1e6,
            lateness_max_ms=report["lateness_max"] / 1e6,
            cpu_steal_percent=cpu_steal_percent,
            relay_cpu_percent=100 * report["cpu"] / max(report["elapsed"], 1),
            realtime_priority=report["has_realtime_priority"],
            last_socket_error=os.strerror(report["last_error"]) if report["socket_errors"] else "",
            moved_max_ms=report["moved_max"] / 1e6,
            **{name: report[name] for name in COUNTS},
        )

    @property
    def problems(self) -> tuple[str, ...]:
        """The reasons why the run is invalid; empty if it is valid."""
        found = []
        if self.packets == 0:
            found.append("no packet left the relay")
        if self.lateness_p99_ms > MOST_LATE_MS:
            found.append(
                f"packets left {self.lateness_p99_ms:.2f} ms late at the 99th percentile; "
                f"{MOST_LATE_MS:g} ms is allowed"
            )
        if self.moved_max_ms > MOST_LATE_MS:
            found.append(
                f"a packet reached a queue {self.moved_max_ms:.2f} ms late; "
                f"{MOST_LATE_MS:g} ms is allowed"
            )
        if self.decision_late_p99_ms > MOST_LATE_DECISION_MS:
            found.append(
                f"decisions came {self.decision_late_p99_ms:.2f} ms late at the 99th percentile; "
                f"{MOST_LATE_DECISION_MS:g} ms is allowed"
            )
        if self.cpu_steal_percent > MOST_STOLEN_PERCENT:
            found.append(
                f"{self.cpu_steal_percent:.1f}% of the CPU time was stolen; "
                f"{MOST_STOLEN_PERCENT:g}% is allowed"
            )
        if self.kernel_drops > 0:
            found.append(
                f"the kernel dropped {self.kernel_drops} packets on their way to the relay"
            )
        if self.overflow_packets > 0:
            found.append(
                f"the relay dropped {self.overflow_packets} packets on arrival, because it held "
                "64 MiB; send no faster than the access links"
            )
        if self.socket_errors > 0:
            found.append(f"{self.socket_errors} socket errors, the last: {self.last_socket_error}")
        if self.oversized_packets > 0:
            found.append(f"{self.oversized_packets} packets were above 2048 bytes")
        if self.clock_steps > 0:
            found.append(f"the time of day was set {self.clock_steps} times")
        return tuple(found)

    @property
    def valid(self) -> bool:
        """Whether the run may be believed."""
        return not self.problems
