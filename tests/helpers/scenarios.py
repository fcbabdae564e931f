"""Scenarios that several test files change in a few fields."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from quicgym import Scenario
from quicgym.envs.scenarios.suites import DRAWN_SUITES, SUITES, load_suite


@cache
def packaged_suite(name: str) -> Sequence[Any]:
    """A suite that quicgym brings, which is read once, and without a warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return load_suite(name)


def suite_text(name: str) -> str:
    """The YAML of a suite that quicgym brings."""
    drawn = yaml.safe_load(DRAWN_SUITES.read_text(encoding="utf-8"))
    if name in drawn:
        return yaml.safe_dump(drawn[name])
    return (SUITES / f"{name}.yaml").read_text(encoding="utf-8")


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


TEXT = """
name: short
duration_s: {duration_s}
max_datagram_bytes: 1400
bottleneck:
  rate_mbps: 4
  delay_ms: 20
  queue: {{limit: 20, unit: packets, discipline: drop-tail}}
  loss: {{kind: bernoulli, probability: {loss}}}
access: {{rate_mbps: 50, delay_ms: 5}}
flows: [{flow}]
"""


def write_short(path: Path, duration_s: float = 1.5, loss: float = 0.0, flow: str = "{}") -> Path:
    """Writes the scenario and returns its path."""
    path.write_text(TEXT.format(duration_s=duration_s, loss=loss, flow=flow))
    return path


def short(tmp_path: Path, **values: object) -> Scenario:
    """Returns the scenario."""
    from quicgym import load_scenario

    return load_scenario(write_short(tmp_path / "short.yaml", **values))  # type: ignore[arg-type]
