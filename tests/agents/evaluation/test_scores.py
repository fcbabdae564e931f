"""`quicgym.score`: what an episode in a loop of one's own earns is what an evaluation says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pandas as pd
import pytest
import yaml
from conftest import Command

import quicgym
from quicgym.agents.policies import find_policy
from quicgym.envs.parallel import ParallelCongestionControlEnv

PATH: dict[str, Any] = {
    "name": "far",
    "duration_s": 12,
    "bottleneck": {
        "rate_mbps": 8,
        "delay_ms": 60,
        "queue": {"limit": 150},
        "rate_schedule": [{"at_s": 4, "rate_mbps": 3}],
        "loss": {"kind": "bernoulli", "probability": 0.001},
    },
    "access": {"rate_mbps": 100, "delay_ms": 5},
    "flows": [{"name": "agent"}, {"name": "second", "start_s": 2}],
}
"""A round trip takes 140 ms and more."""
EVERY_ROUND_TRIP = """
import numpy as np
import quicgym

decisions = quicgym.Decisions("window", decision_interval_rtts=1.5)


class Steps:
    def reset(self, seed):
        self.draws = np.random.default_rng(seed)

    def __call__(self, observations):
        rows = np.atleast_2d(observations)
        return self.draws.integers(4, 9, size=len(rows))


steps = Steps()
"""


def test_a_score_is_the_reward_of_quicgym_evaluate(quicgym: Command, tmp_path: Path) -> None:
    (tmp_path / "far.yaml").write_text(yaml.safe_dump(PATH))
    (tmp_path / "mine.py").write_text(EVERY_ROUND_TRIP)
    policies = ("cubic", "tuning", "low-delay", "mine.py:steps")
    quicgym(
        "evaluate", "--policy", *policies, "--suite", "far.yaml", "--other-controllers", "cubic",
        "--seeds", "3", "--first-seed", "5",
    )  # fmt: skip
    rows = pd.read_parquet(tmp_path / "results/evaluation/results.parquet")
    evaluated = rows.pivot(index="policy", columns="seed", values="reward")
    for name in policies:
        path = f"{tmp_path}/{name}" if ".py" in name else name
        scores = scores_of(path, tmp_path / "far.yaml", range(5, 8))
        assert scores == pytest.approx(evaluated.loc[name].to_numpy(), abs=1e-9)
        assert len(set(scores)) == 3


def scores_of(name: str, scenario: Path, seeds: range) -> np.ndarray:
    policy = find_policy(name)
    decisions = policy.decisions
    environment = gymnasium.make(
        f"quicgym/{decisions.environment.title()}-v1", scenario=scenario, **decisions.arguments
    )
    return quicgym.score(environment, policy, seeds)


@pytest.mark.parametrize("name", ["quicgym/Window-v1", "quicgym/Easy-v1"])
def test_a_step_says_how_long_it_was(name: str) -> None:
    scenario = quicgym.Scenario.model_validate(PATH)
    environment = gymnasium.make(name, scenario=scenario, decision_interval_rtts=1)
    _, info = environment.reset(seed=1)
    begin_s = info["time_s"]
    assert info["step_s"] == 0
    steps_s, over = [], False
    while not over:
        before_s = info["time_s"]
        action = environment.action_space.sample()
        _, _, terminated, truncated, info = environment.step(action)
        assert info["step_s"] == pytest.approx(info["time_s"] - before_s)
        steps_s.append(info["step_s"])
        over = terminated or truncated
    assert sum(steps_s) == pytest.approx(12 - begin_s)
    assert max(steps_s[:-1]) > 1.2 * min(steps_s[:-1])


def test_a_wrapped_environment_and_options_of_reset_score_as_they_are() -> None:
    scenario = quicgym.Scenario.model_validate(PATH)
    environment = gymnasium.make("quicgym/Window-v1", scenario=scenario)
    wrapped = gymnasium.wrappers.TransformReward(environment, lambda reward: 2 * reward)
    keep = quicgym.score(environment, lambda observation: 6, (0, 1))
    assert quicgym.score(wrapped, lambda observation: 6, (0, 1)) == pytest.approx(2 * keep)
    bbr = quicgym.score(environment, quicgym.baseline("bbr", "window"))
    assert quicgym.score(environment, lambda _: 6, options={"controller": "bbr"}) == bbr != keep[0]


def test_what_has_no_score_of_an_evaluation_is_refused_with_the_remedy() -> None:
    scenario = quicgym.Scenario.model_validate(PATH)
    environment = gymnasium.make("quicgym/Window-v1", scenario=scenario, reward_interval_ms=250)
    with pytest.raises(ValueError, match="reward_interval_ms = 250: .* without this argument"):
        quicgym.score(environment, lambda observation: 6)
    for argument in ({"baseline": "bbr"}, {"episode_s": 3.0}):
        environment = gymnasium.make("quicgym/Window-v1", scenario=scenario, **argument)
        with pytest.raises(ValueError, match=f"{[*argument][0]} = .* without this argument"):
            quicgym.score(environment, lambda observation: 6)
    environment = gymnasium.make("quicgym/Window-v1", scenario=scenario)
    normalized = gymnasium.wrappers.NormalizeReward(environment)
    shorter = gymnasium.wrappers.TimeLimit(environment, 20)
    for other in (normalized, gymnasium.wrappers.PassiveEnvChecker(shorter)):
        with pytest.raises(ValueError, match="with (NormalizeReward|TimeLimit) the rewards"):
            quicgym.score(other, lambda observation: 6)
    vector = quicgym.make_vec("quicgym/Window-v1", num_envs=2, scenario=scenario)
    several = ParallelCongestionControlEnv("window", scenario)
    for other in (gymnasium.make("CartPole-v1"), vector, several):
        with pytest.raises(TypeError, match="none of quicgym's with one agent; make one"):
            quicgym.score(other, lambda observation: 6)
    environment = gymnasium.make("quicgym/Window-v1", scenario=scenario)
    with pytest.raises(TypeError, match=r"seeds = 3: give the seeds, such as range\(20\)"):
        quicgym.score(environment, lambda observation: 6, 3)
    with pytest.raises(ValueError, match=r"seeds: there are none; .* range\(20\)"):
        quicgym.score(environment, lambda observation: 6, [])
    often = gymnasium.make("quicgym/Window-v1", scenario=scenario, decision_interval_ms=50)
    with pytest.warns(
        UserWarning, match="decision_interval_ms = 50: rewards are over intervals of"
    ):
        quicgym.score(often, lambda observation: 6)
    with pytest.raises(TypeError, match=r"policy = 'bbr': give quicgym.baseline\('bbr'\)"):
        quicgym.score(environment, "bbr")
    with pytest.raises(TypeError, match=r"model.predict\(observation, deterministic=True\)\[0\]"):
        quicgym.score(environment, object())


def test_a_policy_that_knows_the_network_is_refused_because_nothing_would_steer_it() -> None:
    environment = gymnasium.make("quicgym/Tuning-v1", scenario="ebcc-single")
    with pytest.raises(TypeError, match="quicgym evaluate"):
        quicgym.score(environment, find_policy("omniscient"))


def test_a_policy_in_another_environment_than_its_own_is_refused() -> None:
    policy = quicgym.load_policy("tuning")
    environment = gymnasium.make("quicgym/Tuning-v1", scenario="ebcc-single")
    with pytest.raises(ValueError, match=r"decision_interval_rtts = None in place of 1\.0.*\*\*"):
        quicgym.score(environment, policy)
    quicgym.score(environment, policy, options={"controller": "bbr"})  # which decides in its place
    own = gymnasium.make("quicgym/Tuning-v1", scenario="ebcc-single", **policy.decisions.arguments)
    assert quicgym.score(own, policy) != quicgym.score(environment, lambda rows: policy(rows))
