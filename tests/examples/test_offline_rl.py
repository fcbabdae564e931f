"""examples/offline_rl.py: learns from a dataset, and tells better choices from worse ones."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from quicgym.agents.evaluation.recording import record
from quicgym.agents.policies.by_name import find_policy
from quicgym.errors import UserError
from quicgym.python_files import PythonFile

pytest.importorskip("minari", reason="needs the extra `offline`")

pytestmark = pytest.mark.train
EXAMPLES = Path(__file__).parents[2] / "examples"
EXAMPLE = EXAMPLES / "offline_rl.py"
DECISIONS = 4000


@pytest.fixture(scope="module")
def example() -> Any:
    return PythonFile(EXAMPLE, UserError).module


def test_it_learns_from_a_recorded_dataset_and_is_evaluated_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "datasets"))
    policies = EXAMPLES / "window_policies.py"
    chosen = [f"{name}={policies}:{name}" for name in ("keep", "sometimes")]
    name, episodes, steps = record(chosen, "ebcc-single", 1, tmp_path / "datasets")
    done = subprocess.run(
        [sys.executable, EXAMPLE, name, "--steps", "2"],
        cwd=tmp_path,
        env={**os.environ},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    assert episodes == 2 and f"{name}: {steps:,} decisions, reward" in done.stdout
    assert re.findall(r"^(\w+): 2 steps in", done.stdout, re.M) == ["cloned", "implicit_q"]
    monkeypatch.chdir(tmp_path)
    for algorithm in ("cloned", "implicit_q"):
        policy = find_policy(f"{EXAMPLE}:{algorithm}")
        rows = np.zeros((3, *policy.decisions.observation_space.shape), np.float32)
        assert policy(rows).shape == (3,)


def test_implicit_q_takes_the_better_choice_where_cloning_takes_the_frequent_one(
    example: Any,
) -> None:
    """In a state the choice 6 is taken four times as often as the choice 3, which earns more."""
    import torch

    torch.manual_seed(1)
    features = example.make_actor()[0].in_features
    observations = torch.randn(DECISIONS, features) * 0.1
    actions = torch.where(torch.rand(DECISIONS) < 0.2, 3, 6)
    data = example.Transitions(
        observations=observations,
        actions=actions,
        rewards=torch.where(actions == 3, 1.0, 0.5) + 0.1 * torch.randn(DECISIONS),
        next_observations=observations,
        goes_on=torch.zeros(DECISIONS),
    )
    cloned = example.clone(data, 300)(observations).argmax(1)
    assert (cloned == 6).float().mean() > 0.9
    learned = example.learn_implicit_q(data, 600)(observations).argmax(1)
    assert (learned == 3).float().mean() > 0.9
