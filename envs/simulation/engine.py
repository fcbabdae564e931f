"""What an engine offers to a simulation; _core.NativeSimulation and _ns3.Ns3Simulation have it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from quicgym import _core


class Engine(Protocol):
    """A network with its flows, in C++; flows go by index."""

    @property
    def now(self) -> int:
        """Simulated time in ns."""

    @property
    def queue_occupancy_seconds(self) -> float:
        """∫ of the bottleneck's queue dt: packets · s, or bytes · s where bytes limit it."""

    def run_until(self, until: int) -> None:
        """Processes every event up to and at a time in ns."""

    def statistics(self, flow: int, /) -> dict[str, Any]:
        """Returns the members of FlowStatistics in sim/simulation.hpp."""

    def snapshot(self, flow: int, /) -> dict[str, Any]:
        """Returns the members of ControllerSnapshot in controllers/controller.hpp."""

    def parameters(self, flow: int, /) -> dict[str, list[float]]:
        """Returns the parameters of a flow's controller."""

    def set_parameters(self, flow: int, values: Mapping[str, Sequence[float]], /) -> None:
        """Replaces some of them."""

    def trace(self, flow: int, /) -> bytes:
        """Returns TRACE_DTYPE, one for each row."""

    def queue_trace(self, hop: int = 0) -> bytes:
        """Returns QUEUE_DTYPE, one for each row."""

    def deliveries(self) -> bytes:
        """Returns DELIVERY_DTYPE, one for each delivery."""

    def requests(self, flow: int, /) -> bytes:
        """Returns TRANSFER_DTYPE, one for each request of a flow's receiving application."""

    def transfers(self, short_flows: int, /) -> bytes:
        """Returns TRANSFER_DTYPE, one for each transfer of an entry of short flows."""


class ClosableEngine(Engine, Protocol):
    """An engine of which a process has one at a time."""

    def close(self) -> None:
        """Lets the next one begin."""


class Ns3Module(Protocol):
    """The extension module of the ns-3 host."""

    ns3_version: str
    Ns3Simulation: Callable[[_core.Scenario, int], ClosableEngine]
    ns3_batch: Callable[[_core.EnvironmentSettings, int, int, int], _core.Batch]
