"""The ns-3 host's extension module, as quicgym uses it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from quicgym import _core


class Ns3Module(Protocol):
    """The extension module of the ns-3 host.

    `Ns3Simulation` makes a _core.Simulation with a method `close`.
    """

    ns3_version: str
    Ns3Simulation: Callable[[_core.Scenario, int], Any]
    ns3_batch: Callable[[_core.EnvironmentSettings, int, int, int], _core.Batch]
