"""The suite `stress`: 32 networks from each of the cells that training never draws from.

    python benchmarks/studies/stress_suite.py > configs/suites/stress.yaml

They are drawn from the distribution `stress-training` with its exclusion the other way round, and
with cellular traces of their own; of a trace counts its mean rate. Numbers are rounded.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from quicgym.envs import Distribution, Scenario, load_distribution
from quicgym.envs.scenarios.distributions import CELLS, HELD_OUT_STRESS

SEED = 9743
NETWORKS_PER_CELL = 32
DIGITS = 4
HEADER = """\
# 256 networks, 32 from each of eight held-out cells of rate and RTT (HELD_OUT_STRESS of
# quicgym.envs.scenarios.distributions), never trained on: drawn from the distribution
# `stress-training` with the seed 9743, rounded, fixed since (benchmarks/studies/stress_suite.py).
# Not to be tuned or chosen by.
"""


def own_distribution() -> Distribution:
    """Returns the distribution with the suite's own traces and without the exclusion."""
    distribution = load_distribution("stress-training")
    assert distribution.traces is not None
    paths = [
        path.with_name(path.name.replace("stress-training", "stress"))
        for path in distribution.traces.paths
    ]
    traces = distribution.traces.model_copy(update={"paths": paths})
    return distribution.model_copy(
        update={"held_out": False, "held_out_stress": False, "traces": traces}
    )


def networks() -> list[dict[str, Any]]:
    """Returns the suite as its YAML has it."""
    distribution = own_distribution()
    rng = np.random.default_rng(SEED)
    found: list[dict[str, Any]] = []
    drawn: Counter[tuple[int, int]] = Counter()
    while len(found) < NETWORKS_PER_CELL * CELLS:
        scenario = distribution.sample(rng)
        path = _path(scenario)
        cell = HELD_OUT_STRESS.cell(*path)
        if cell is None or not HELD_OUT_STRESS.contain(*path) or drawn[cell] == NETWORKS_PER_CELL:
            continue
        drawn[cell] += 1
        found.append({"name": f"stress-{len(found) + 1:03}", **_fields(scenario)})
    return found


def _path(scenario: Scenario) -> tuple[float, float]:
    """Rate and RTT; the reverse link has the path's rate, and beside a trace its mean."""
    link, reverse = scenario.bottleneck, scenario.reverse
    assert link is not None and reverse is not None and reverse.rate_mbps is not None
    return reverse.rate_mbps, 2 * (link.delay_ms + 2 * scenario.access.delay_ms)


def _fields(scenario: Scenario) -> dict[str, Any]:
    fields = scenario.model_dump(
        mode="json", exclude_defaults=True, exclude={"name", "description"}
    )
    link = fields["bottleneck"]
    if "trace" in link:
        link["trace"] = f"../traces/{Path(link['trace']).name}"
    for part, kind in (("loss", "bernoulli"), ("jitter", "uniform")):
        if part in link:  # whose kind is a default
            link[part] = {"kind": kind, **link[part]}
    rounded: dict[str, Any] = _rounded(fields)
    return rounded


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _rounded(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [_rounded(entry) for entry in value]
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value


def text() -> str:
    """Returns the suite's file."""
    entries = []
    for network in networks():
        lines = [
            f"{key}: {_flow_style(value)}" if key != "flows" else _flows(value)
            for key, value in network.items()
        ]
        entries.append("- " + "\n  ".join(lines))
    return HEADER + "\n".join(entries) + "\n"


def _flows(flows: list[dict[str, Any]]) -> str:
    return "\n    ".join(["flows:", *(f"- {_flow_style(flow)}" for flow in flows)])


def _flow_style(value: Any) -> str:
    written: str = yaml.safe_dump(value, default_flow_style=True, sort_keys=False, width=10**6)
    return written.strip().removesuffix("...").strip()


if __name__ == "__main__":
    sys.stdout.write(text())
