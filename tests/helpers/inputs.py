"""What commands read, in files that take them seconds."""

from __future__ import annotations

from pathlib import Path

import yaml

from helpers.training import scenario, write_config

SWEEP = """
name: gamma
controller: ebcc
parameters: {gamma: {values: [5, 40]}, beta: {values: [0.2, 0.6]}}
scenarios: [./path.yaml]
seeds: 1
"""


def write_inputs(folder: Path) -> Path:
    """Writes path, suite and sweep, and tiny, a training; returns the folder."""
    write_config(folder)
    path = {**scenario("path", 1, 2.0), "flows": [{"name": "flow"}]}
    for name, content in {"path": path, "suite": [path, {**path, "name": "again"}]}.items():
        (folder / f"{name}.yaml").write_text(yaml.safe_dump(content))
    (folder / "sweep.yaml").write_text(SWEEP)
    return folder
