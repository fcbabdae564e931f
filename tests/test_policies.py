"""Hand-coded policies in single and vector environments."""

import environments as helper
import gymnasium
import numpy as np
import pytest

import quicgym
from quicgym.agents.policies import (
    ConstantPolicy,
    RandomPolicy,
    controller_policy,
    preset_policy,
    switch_policy,
)
from quicgym.envs import ENVIRONMENTS
from quicgym.envs.actions import PRESETS


def earned(environment, policy, seed=3):
    observation, _ = environment.reset(seed=seed, options=policy.options)
    rewards = []
    while True:
        observation, reward, terminated, truncated, _ = environment.step(policy(observation))
        rewards.append(reward)
        if terminated or truncated:
            return rewards


@pytest.mark.parametrize("preset", PRESETS)
def test_a_preset_earns_what_its_controller_earns(preset):
    environment = gymnasium.make("quicgym/Tuning-v0", scenario=helper.scenario(flows=2))
    by_options = controller_policy(preset, environment.action_space)
    assert earned(environment, preset_policy(preset)) == earned(environment, by_options)
    assert preset_policy(preset).name == by_options.name == preset


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_every_policy_gives_actions_of_the_space(name):
    vector = quicgym.make_vec(name, num_envs=3, scenario=helper.scenario())
    space = vector.single_action_space
    policies = [
        RandomPolicy(space, seed=1),
        controller_policy("cubic", space),
        ConstantPolicy("middle", np.zeros(space.shape, space.dtype)),
    ]
    for policy in policies:
        observations, _ = vector.reset(seed=1, options=policy.options)
        assert vector.action_space.contains(policy(observations))
        vector.step(policy(observations))
        assert space.contains(policy(observations[0]))


def test_random_policies_follow_their_seed():
    environment = gymnasium.make("quicgym/Rate-v0", scenario=helper.scenario())
    space = environment.action_space
    first = earned(environment, RandomPolicy(space, seed=1))
    assert first == earned(environment, RandomPolicy(space, seed=1))
    assert first != earned(environment, RandomPolicy(space, seed=2))


def test_a_choice_in_switch_earns_what_its_controller_earns():
    environment = gymnasium.make("quicgym/Switch-v0", scenario=helper.scenario(flows=2))
    by_options = controller_policy("vegas", environment.action_space)
    assert earned(environment, switch_policy("vegas")) == earned(environment, by_options)
    with pytest.raises(ValueError, match="'vega'; did you mean vegas"):
        switch_policy("vega")
