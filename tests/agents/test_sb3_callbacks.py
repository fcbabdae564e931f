"""Stable-Baselines3 in one's own code: paired differences, and models of published policies."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import environments as helper

import quicgym
from quicgym.agents.evaluation.rollouts import play_all
from quicgym.agents.policies import find_policy
from quicgym.envs.scenarios.suites import SELECTION_SEED
from quicgym.errors import PolicyError, UserError

pytestmark = pytest.mark.train
PATH = {"scenario": helper.scenario(flows=2, duration_s=1.0)}


def make(**arguments: Any) -> Any:
    from quicgym.envs.sb3 import make_sb3

    return make_sb3("quicgym/Window-v1", 2, **{**PATH, **arguments})


def ppo(environments: Any) -> Any:
    from stable_baselines3 import PPO

    return PPO("MlpPolicy", environments, n_steps=16, batch_size=16, n_epochs=1, seed=1)


def logger(values: dict[str, list[tuple[int, float]]]) -> Any:
    """Returns a logger of Stable-Baselines3 that adds step and value to the lists of the tags."""
    from stable_baselines3.common.logger import KVWriter, Logger

    class Records(KVWriter):
        def write(self, key_values: Any, key_excluded: Any, step: int = 0) -> None:
            for name, value in key_values.items():
                values.setdefault(name, []).append((step, value))

        def close(self) -> None:
            pass

    return Logger(None, [Records()])


@pytest.fixture
def scenario_file(tmp_path: Path) -> str:
    path = tmp_path / "pair.yaml"
    path.write_text(
        "name: pair\nduration_s: 1\nbottleneck: {rate_mbps: 3, delay_ms: 5, queue: {limit: 20},"
        " loss: {kind: bernoulli, probability: 0.01}}\naccess: {rate_mbps: 50, delay_ms: 1}\n"
        "flows: [{}, {}]\n"
    )
    return str(path)


def test_the_difference_is_logged_and_is_the_one_of_an_evaluation(scenario_file):
    from quicgym.agents.sb3 import PairedDifference

    model, records = ppo(make()), {}
    model.set_logger(logger(records))
    callback = PairedDifference(
        scenario_file, paths=6, every=64, controllers=("bbr", "cubic"), verbose=0
    )
    model.learn(128, callback=callback)
    assert "rollout/ep_rew_mean" in records
    logged = records["paired/minus_bbr"]
    assert [step for step, _ in logged] == [0, 64, 128]
    assert [step for step, _, _ in callback.history] == [0, 64, 128]

    # The training's agent has one flow beside CUBIC, so the evaluation does, too.
    scenario = quicgym.load_scenario(scenario_file).with_one_open_flow("cubic")
    cells = [(scenario, SELECTION_SEED + number) for number in range(6)]

    def rewards(policy):
        return np.array([run.metrics["reward"] for run in play_all(policy, cells, threads=1)])

    class Greedy:
        name, options = "model", None
        decisions = quicgym.Decisions("window")

        def __call__(self, observations):
            return model.predict(observations, deterministic=True)[0]

    own, others = rewards(Greedy()), {name: rewards(find_policy(name)) for name in ("bbr", "cubic")}
    assert logged[-1][1] == pytest.approx((own - others["bbr"]).mean())
    assert callback.best == max(others, key=lambda name: others[name].mean())
    best = records["paired/minus_best"][-1][1]
    assert best == pytest.approx((own - others[callback.best]).mean())
    low, high = (records[f"paired/minus_bbr_{end}"][-1][1] for end in ("low", "high"))
    assert low <= logged[-1][1] <= high


def test_the_model_of_the_largest_difference_is_kept(scenario_file, tmp_path, monkeypatch):
    from quicgym.agents import sb3

    rewards = iter([0.1, 0.3, 0.2])
    monkeypatch.setattr(
        sb3.PairedDifference,
        "_rewards",
        lambda self, policy: np.full((1, 2), 0.0 if policy.name == "bbr" else next(rewards)),
    )
    callback = sb3.PairedDifference(
        scenario_file,
        paths=2,
        every=64,
        controllers=("bbr",),
        save_best=tmp_path / "best.zip",
        verbose=0,
    )
    model = ppo(make())
    model.learn(128, callback=callback)
    assert callback.best_step == 64
    with pytest.warns(UserWarning, match="runs code"):
        best = quicgym.load_policy(tmp_path / "best.zip", trust_zip=True)
    assert best.model.num_timesteps == 64


def test_a_second_training_is_compared_as_often_as_the_first(scenario_file):
    from quicgym.agents.sb3 import PairedDifference

    callback = PairedDifference(scenario_file, paths=2, every=64, controllers=("bbr",), verbose=0)
    model = ppo(make())
    for _ in range(2):
        model.learn(128, callback=callback)
    steps = [step for step, *_ in callback.history]
    assert steps == 2 * [0, 64, 128]


def test_a_recurrent_model_is_compared_with_the_memory_that_it_has(scenario_file):
    from helpers.recurrent import Counts, CountsDecisions
    from stable_baselines3 import PPO

    from quicgym.agents.sb3 import PairedDifference

    model = PPO(CountsDecisions, make(), n_steps=16, batch_size=16, n_epochs=1)
    callback = PairedDifference(scenario_file, paths=2, controllers=("bbr",), verbose=0)
    model.learn(32, callback=callback)
    scenario = quicgym.load_scenario(scenario_file).with_one_open_flow("cubic")
    own, bbr = (
        np.mean([play_all(policy, [(scenario, seed)], threads=1)[0].metrics["reward"]
                 for seed in (SELECTION_SEED, SELECTION_SEED + 1)])
        for policy in (Counts(), find_policy("bbr"))
    )  # fmt: skip
    assert callback.history[-1][1].value == pytest.approx(own - bbr)


def test_what_cannot_be_compared_is_refused(scenario_file):
    from stable_baselines3 import PPO
    from stable_baselines3.common.vec_env import VecEnvWrapper

    from quicgym.agents.sb3 import PairedDifference

    with pytest.raises(UserError, match="heldout"):
        PairedDifference("heldout")
    with pytest.raises(UserError, match="give at least one"):
        PairedDifference(scenario_file, controllers=())
    with pytest.raises(ValueError, match="make_sb3"):
        PPO("MlpPolicy", "CartPole-v1", n_steps=16, batch_size=16).learn(
            16, PairedDifference(scenario_file, paths=2)
        )

    class Own(VecEnvWrapper):
        def reset(self) -> Any:
            return self.venv.reset()

        def step_wait(self) -> Any:
            return self.venv.step_wait()

    with pytest.raises(ValueError, match="PairedDifference: the environments have the wrapper Own"):
        ppo(Own(make())).learn(16, PairedDifference(scenario_file, paths=2))
    with pytest.raises(ValueError, match="flow = 'flow-1'"):
        ppo(make(flow="flow-1")).learn(16, PairedDifference(scenario_file, paths=2))


@pytest.mark.parametrize("name", ["window", "tuning"])
def test_a_model_of_a_published_policy_acts_as_it_and_comes_back_from_its_file(name, tmp_path):
    from quicgym.agents.sb3 import ppo_of
    from quicgym.envs.sb3 import make_sb3, save

    policy = quicgym.load_policy(name)
    decisions = policy.decisions
    environments = make_sb3(decisions.environment, 2, **PATH, **decisions.arguments)
    model = ppo_of(name, environments, n_steps=16, batch_size=16, n_epochs=1, seed=1)
    observations = environments.reset()
    for _ in range(8):
        actions = policy(observations)
        assert model.predict(observations, deterministic=True)[0] == pytest.approx(
            actions, abs=1e-4
        )
        observations = environments.step(actions)[0]
    before = policy.actor.state_dict()["action.weight"].clone()
    model.learn(32)
    save(model, tmp_path / "mine.zip")
    with pytest.warns(UserWarning, match="runs code"):
        again = quicgym.load_policy(tmp_path / "mine.zip", trust_zip=True)
    assert again.decisions == decisions
    assert np.array_equal(again(observations), model.predict(observations, deterministic=True)[0])
    assert (policy.actor.state_dict()["action.weight"] == before).all()  # a copy was trained


def test_another_environment_than_the_policy_s_is_refused():
    from quicgym.agents.sb3 import ppo_of

    with pytest.raises(PolicyError, match=r"window: was trained for .*'recent'"):
        ppo_of("window", make())
