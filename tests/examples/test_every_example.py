"""Every example without tests of its own runs as a user runs it, also one that is added later."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
TRAIN = {"cleanrl_ppo", "offline_rl", "rllib_ppo", "sb3_ppo", "torchrl_ppo"}
"""Examples that need minutes or a dataset; their tests in this folder give them less to do."""


@pytest.mark.parametrize(
    "name", sorted({path.stem for path in EXAMPLES.glob("*.py")} - TRAIN - {"window_policies"})
)
def test_an_example_runs_to_its_end(name: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, EXAMPLES / f"{name}.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout
