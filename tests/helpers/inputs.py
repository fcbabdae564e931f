"""What commands read, in files that take them seconds."""

from __future__ import annotations

from pathlib import Path

import yaml

from helpers.training import scenario, write_config

LEAGUE = """
name: small
source: ours
margin: 0.1
leagues:
- name: alone
  score: power
  rates: [{rate_mbps: 2, factors: [1, 2]}]
  changes_s: [2]
  delays_ms: [10]
  queues_bdp: [2]
  windows_s: [[0, 2], [2, 4]]
- name: beside
  score: fair-share
  beside: [{controller: cubic}]
  rates: [{rate_mbps: 4, factors: [1]}]
  delays_ms: [10]
  queues_bdp: [2]
  windows_s: [[0, 3], [3, 4]]
"""
SWEEP = """
name: gamma
controller: ebcc
parameters: {gamma: {values: [5, 40]}, beta: {values: [0.2, 0.6]}}
scenarios: [./path.yaml]
seeds: 1
"""


def write_inputs(folder: Path) -> Path:
    """Writes path, suite, league and sweep, and tiny, a training; returns the folder."""
    write_config(folder)
    path = {**scenario("path", 1, 2.0), "flows": [{"name": "flow"}]}
    for name, content in {"path": path, "suite": [path, {**path, "name": "again"}]}.items():
        (folder / f"{name}.yaml").write_text(yaml.safe_dump(content))
    (folder / "league.yaml").write_text(LEAGUE)
    (folder / "sweep.yaml").write_text(SWEEP)
    return folder
