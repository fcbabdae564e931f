"""The examples that train agents, run as a user runs them."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from quicgym.agents.evaluation.rollouts import play
from quicgym.agents.policies.by_name import find_policy
from quicgym.envs import load_suite
from quicgym.envs.scenarios.suites import episodes_of

EXAMPLES = Path(__file__).parents[2] / "examples"
PATHS = 4
NUMBER = r"(-?\d+\.\d{4})"


def check_example(
    name: str, folder: Path, monkeypatch: pytest.MonkeyPatch, *arguments: str
) -> None:
    """Trains for a moment, and evaluates what was saved by its name."""
    script = EXAMPLES / f"{name}.py"
    done = subprocess.run(
        [sys.executable, script, "--steps", "1", "--paths", str(PATHS), *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    start = re.search(rf"^start: reward {NUMBER}, mean over {PATHS} paths$", done.stdout, re.M)
    end = re.search(rf"^end: reward {NUMBER}$", done.stdout, re.M)
    difference = re.search(
        rf"^difference: {NUMBER} ± {NUMBER} \(95% interval, same paths\)$", done.stdout, re.M
    )
    assert start and end and difference, done.stdout
    assert float(difference[1]) == pytest.approx(float(end[1]) - float(start[1]), abs=2e-4)
    monkeypatch.chdir(folder)
    policy = find_policy(f"{script}:trained")
    cells = episodes_of(load_suite("training-50"), PATHS)
    rewards = [play(policy, scenario, seed=seed).metrics["reward"] for scenario, seed in cells]
    assert np.mean(rewards) == pytest.approx(float(end[1]), abs=1e-4)
