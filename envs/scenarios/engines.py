"""The engines, and what not every one of them can do.

Which engine can do what is one table, `capabilities` in sim/capabilities.cpp. The engines refuse by
it what they lack, and `Scenario.check_engine` asks it before a run. A new capability is a row
of it. Where an engine learns something, its column changes.
"""

from __future__ import annotations

from typing import Literal, get_args

from quicgym import _core
from quicgym.envs.scenarios.fields import ScenarioError

EngineName = Literal["native", "ns3"]
ENGINES: tuple[EngineName, ...] = get_args(EngineName)


def check_capabilities(name: str, scenario: _core.Scenario, engine: EngineName) -> None:
    """Raises ScenarioError, with the scenario's name, for the fields that the engine cannot do."""
    lacking = _core.lacking(scenario, _core.Engine[engine])
    if not lacking:
        return
    able = [other for other in ENGINES if not _core.lacking(scenario, _core.Engine[other])]
    remedy = f"use the engine {able[0]}" if able else "leave them out: no engine can do all of it"
    raise ScenarioError(f"{name}: the engine {engine} cannot do {', '.join(lacking)}; {remedy}")


def check_records_events(name: str, engine: str) -> None:
    """Raises ScenarioError, with the scenario's name, where the engine writes no qlog."""
    if engine == "ns3":
        raise ScenarioError(
            f"{name}: engine ns3 records no events for qlog; take the engine native, or write pcap"
        )
