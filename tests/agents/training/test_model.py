"""What a configuration makes: environments, algorithms, and where policies begin."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.training import NEEDS_TRAIN, made

import quicgym

pytestmark = NEEDS_TRAIN


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    "name",
    ["ppo", "rate-ppo", "switch-ppo", "switch-dpi", "switch-self-play", "window-aggrevate"]
    + ["window-grpo", "sac", "td3"],
)
def test_the_shipped_configurations_are_what_the_algorithms_take(name):
    from quicgym.agents.algorithms.registry import find
    from quicgym.agents.training.configuration import load_training, training_names
    from quicgym.agents.training.model import make_model
    from quicgym.envs.sb3 import make_sb3

    assert name in training_names()
    config = load_training(name)
    environments = make_sb3(
        config.environment.id,
        8,
        privileged=config.network.privileged_critic,
        scenario="ebcc-single",
        history_length=config.environment.history_length,
    )
    model = make_model(config, environments)
    assert type(model) is find(config.algorithm).model_class


def test_td3_explores_with_the_std_of_the_configuration(here):
    _, _, model = made(here, "start.std=0.25", algorithm="td3")
    noise = np.array([model.action_noise() for _ in range(400)])
    assert noise.shape == (400, 14) and noise.std() == pytest.approx(0.25, rel=0.1)
    assert made(here, "start.std=null", algorithm="td3")[2].action_noise is None


def test_a_preset_s_parameters_are_those_of_the_configuration(here):
    changes = ("start.preset=ebcc", "start.parameters={gamma: 60, beta: 0.7}")
    _, _, model = made(here, *changes)
    observations = np.zeros((1, model.observation_space.shape[0]), np.float32)
    action, _ = model.predict(observations, deterministic=True)
    expected = quicgym.preset_action("ebcc", gamma=60, beta=0.7)
    assert action[0] == pytest.approx(expected, abs=0.02)


@pytest.mark.parametrize(
    "change",
    [
        {"reward": "power"},
        {"reward_per_flow": True},
        {"decision_interval_ms": 500.0, "reward_interval_ms": 100.0},
        {"decision_interval_rtts": 3.0},
    ],
    ids=lambda change: ", ".join(change),
)
def test_training_steps_the_environments_of_its_configuration(change, here):
    changes = [f"environment.{name}={value}" for name, value in change.items()]
    _, ours, _ = made(here, *changes)
    theirs = quicgym.make_vec(
        "quicgym/Tuning-v0",
        4,
        scenario="./pair.yaml",
        per_flow=True,
        autoreset_mode="SameStep",
        **change,
    )
    ours.seed(3)
    assert np.array_equal(ours.reset(), theirs.reset(seed=3)[0])
    actions = np.tile(quicgym.preset_action("bbr"), (8, 1))
    actions[::2] = quicgym.preset_action("ebcc", gamma=5)
    for _ in range(2):
        observations, rewards, _, _ = ours.step(actions)
        expected = theirs.step(actions)
        assert np.array_equal(observations, expected[0])
        assert np.array_equal(rewards, expected[1].astype(np.float32))


def test_a_linear_schedule_ends_at_0(here):
    changes = ("hyperparameters.learning_rate=linear_4e-4", "hyperparameters.gamma=0.9")
    _, _, model = made(here, *changes)
    rates = [model.lr_schedule(left) for left in (1.0, 0.5, 0.0)]
    assert rates == pytest.approx([4e-4, 2e-4, 0])
    assert model.gamma == 0.9
