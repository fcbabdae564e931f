"""A small network for runs over real stacks: 4 Mbps, 60 ms, a flow from the start on."""

from __future__ import annotations

from pathlib import Path

from quicgym import Scenario

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
