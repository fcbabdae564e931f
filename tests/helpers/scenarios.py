"""Scenarios that several test files change in a few fields."""

from __future__ import annotations

from typing import Any

from quicgym import Scenario


def dumbbell(
    flows: list[dict[str, Any]],
    rate_mbps: float = 20.0,
    delay_ms: float = 10.0,
    access: tuple[float, float] = (100.0, 1.0),
    bottleneck: dict[str, Any] | None = None,
    **fields: Any,
) -> Scenario:
    """A dumbbell that runs for 20 s.

    Args:
        flows: The scenario's flows.
        rate_mbps: The bottleneck's rate.
        delay_ms: The bottleneck's delay, one way.
        access: Rate in Mbps and delay in ms of the access links.
        bottleneck: Further fields of the bottleneck, such as its queue.
        **fields: Further fields of the scenario.
    """
    return Scenario.model_validate(
        {
            **{"name": "dumbbell", "duration_s": 20.0, "flows": flows},
            "bottleneck": {"rate_mbps": rate_mbps, "delay_ms": delay_ms, **(bottleneck or {})},
            "access": {"rate_mbps": access[0], "delay_ms": access[1]},
            **fields,
        }
    )
