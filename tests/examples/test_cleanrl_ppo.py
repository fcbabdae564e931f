"""examples/cleanrl_ppo.py: PPO in one file, which leaves the steps of resets out of its loss."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

import quicgym
from quicgym.errors import UserError
from quicgym.python_files import PythonFile

pytestmark = pytest.mark.train
EXAMPLE = Path(__file__).parents[2] / "examples/cleanrl_ppo.py"


@pytest.fixture(scope="module")
def example() -> Any:
    return PythonFile(EXAMPLE, UserError).module


class NotesResets(gymnasium.vector.VectorWrapper):
    """Notes which rows a step has given another episode, by the episodes' seeds."""

    def __init__(self, environments: gymnasium.vector.VectorEnv) -> None:
        super().__init__(environments)
        self.resets: list[list[bool]] = []

    def step(self, actions: np.ndarray) -> Any:
        before = self.unwrapped.episode_seeds()
        result = super().step(actions)
        pairs = zip(before, self.unwrapped.episode_seeds(), strict=True)
        self.resets.append([old != new for old, new in pairs])
        return result


@pytest.fixture
def rollouts(example: Any) -> Any:
    """Two rollouts in a row, a decision each RTT: episodes end in different steps."""
    import torch

    torch.manual_seed(1)
    environments = NotesResets(
        quicgym.make_vec(
            "window", 6, scenario="single", episode_s=0.7, decision_interval_ms=1,
            decision_interval_rtts=1.0,
            autoreset_mode="next_step",
        )
    )  # fmt: skip
    observations, _ = environments.reset(seed=3)
    agent = example.make_agent(environments)
    first, observations, ended = example.collect(
        agent, environments, torch.as_tensor(observations), torch.zeros(6, dtype=torch.bool), 11
    )
    second, _, _ = example.collect(agent, environments, observations, ended, 37)
    resets = torch.tensor(environments.resets)
    return agent, (first, resets[:11]), (second, resets[11:])


def test_exactly_the_rows_of_resets_are_left_out(example: Any, rollouts: Any) -> None:
    import torch

    _, *parts = rollouts
    for rollout, resets in parts:
        assert torch.equal(rollout.is_reset, resets)
        assert rollout.rewards[resets].abs().max() == 0
        samples = example.samples_of(rollout)
        kept = [
            (step, row)
            for step, row in np.ndindex(*resets.shape)
            if not resets[step, row]
        ]  # fmt: skip
        expected = torch.stack([rollout.observations[place] for place in kept])
        assert torch.equal(samples.observations, expected)
        assert len(samples.actions) == len(samples.advantages) == len(kept)
    second = parts[1][1]
    assert len({tuple(column) for column in second.T.tolist()}) > 2  # the rows differ
    assert second.sum() > 6


def test_what_resets_hold_does_not_reach_the_loss(example: Any, rollouts: Any) -> None:
    import torch

    agent, _, (rollout, resets) = rollouts

    def loss() -> float:
        samples = example.samples_of(rollout)
        return float(example.loss_of(agent, samples, torch.arange(len(samples.actions))).detach())

    before = loss()
    for values in (rollout.rewards, rollout.values, rollout.next_values, rollout.log_probabilities):
        values[resets] += 100.0
    rollout.observations[resets] = 5.0
    rollout.actions[resets] = 0
    assert loss() == before
    rollout.rewards[torch.nonzero(~resets)[7].tolist()] += 100.0
    assert loss() != before


def test_an_advantage_ends_with_its_episode(example: Any, rollouts: Any) -> None:
    import torch

    _, _, (rollout, _) = rollouts
    before = example.advantages_of(rollout)
    step, row = torch.nonzero(rollout.ends[:-2])[0].tolist()
    rollout.rewards[step + 2, row] += 1.0
    changed = example.advantages_of(rollout) - before
    assert torch.equal(changed[: step + 1], torch.zeros_like(changed[: step + 1]))
    assert changed[step + 2, row] == pytest.approx(1.0, abs=1e-4)
    rollout.rewards[step, row] += 1.0
    changed = example.advantages_of(rollout) - before
    assert changed[step, row] == pytest.approx(1.0, abs=1e-4)
