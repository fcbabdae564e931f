"""Preferences: weights that observations end with, and that the reward of this name weighs by."""

import re

import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from helpers import environments as helper
from hypothesis import given
from hypothesis import strategies as st

import quicgym
from quicgym import ScenarioError
from quicgym.envs import find_environment
from quicgym.envs.info import INFO_COLUMNS
from quicgym.envs.observations import observation_names, observation_space
from quicgym.envs.parallel import ParallelCongestionControlEnv
from quicgym.envs.preferences import PREFERENCE_TERMS, Preference, preference_terms
from quicgym.envs.registration import environments

NAMES = list(environments())
SCENARIO = helper.scenario(flows=2, duration_s=1.0)
RANDOM = {"scenario": SCENARIO, "preference": "random", "reward": "preference"}


def make(name="tuning", **arguments):
    return find_environment(name)(**{**RANDOM, **arguments})


def reward_of(preference, info):
    throughput, loss, fairness, delay = preference
    return 4 * (
        throughput * info["throughput_share"]
        - loss * 5 * info["loss_rate"]
        - fairness * (1 - info["jain"])
        - delay * (info["rtt_ratio"] - 1)
    )


def test_terms_are_what_the_reward_weighs():
    info = {"throughput_share": 0.8, "loss_rate": 0.02, "jain": 0.7, "rtt_ratio": 1.5}
    row = np.full((1, len(INFO_COLUMNS)), 9.0)
    row[0, [INFO_COLUMNS.index(name) for name in info]] = list(info.values())
    for preference in np.random.default_rng(1).dirichlet(np.ones(4), 20):
        assert preference_terms(row)[0] @ preference == pytest.approx(reward_of(preference, info))
    row[0, INFO_COLUMNS.index("rtt_ratio")] = np.nan  # before the first sample
    assert preference_terms(row)[0, 3] == 0


@pytest.mark.parametrize("name", NAMES)
def test_observations_end_with_the_weights_of_the_episode(name):
    environment, plain = make(name), find_environment(name)(SCENARIO)
    names = tuple(f"preference_{term}" for term in PREFERENCE_TERMS)
    assert environment.observation_names == plain.observation_names + names
    length = plain.default_history_length
    assert environment.observation_names == observation_names(length, name, preference=True)
    space = environment.observation_space
    assert space == observation_space(length, name, preference=True)
    assert space.shape[0] == plain.observation_space.shape[0] + 4
    rows = helper.play(environment, helper.actions(environment.action_space, 3), seed=4)
    expected = helper.play(plain, helper.actions(plain.action_space, 3), seed=4)
    weights = rows[0][0][-4:]
    assert weights.sum() == pytest.approx(1) and (weights > 0).all()
    for row, without in zip(rows, expected, strict=True):
        assert row[0] in space and np.array_equal(row[0][-4:], weights)
        assert np.array_equal(row[0][:-4], without[0])  # the episode is the one without
        assert row[4] == without[4]
    for _, reward, _, _, info in rows[1:]:
        assert reward == pytest.approx(reward_of(weights, info), rel=1e-5, abs=1e-6)
    check_env(environment, skip_render_check=True)


@pytest.mark.parametrize("name", NAMES)
def test_all_agents_of_a_network_have_the_same_weights(name):
    agents = ParallelCongestionControlEnv(name, **RANDOM)
    observations, _ = agents.reset(seed=3)
    weights = make(name).reset(seed=3)[0][-4:]
    seen = 0
    while agents.agents:
        actions = {agent: agents.action_space(agent).sample() for agent in agents.agents}
        observations, rewards, *_, infos = agents.step(actions)
        for agent, observation in observations.items():
            seen += 1
            assert np.array_equal(observation[-4:], weights)
            assert observation in agents.observation_space(agent)
            expected = reward_of(weights, infos[agent])
            assert rewards[agent] == pytest.approx(expected, rel=1e-5, abs=1e-6)
    assert seen > 10


@pytest.mark.parametrize("name", ["tuning", "switch"])
def test_a_flow_that_no_agent_controls_yet_keeps_its_action_beside_the_weights(name):
    flows = [flow.model_copy(update={"start_s": 0.1 + 0.3 * i, "name": f"flow-{i}"})
             for i, flow in enumerate((helper.scenario().flows[0],) * 2)]  # fmt: skip
    scenario = helper.scenario(flow_list=tuple(flows))

    def weighted_and_plain(environment):
        environment.reset(seed=1)
        rows = []
        while environment.agents:
            size = environment.action_space(environment.agents[0])
            actions = dict.fromkeys(environment.agents, helper.rest(size))
            rows.append(environment.step(actions)[0])
        return rows

    weighted = weighted_and_plain(
        ParallelCongestionControlEnv(name, **{**RANDOM, "scenario": scenario})
    )
    plain = weighted_and_plain(ParallelCongestionControlEnv(name, scenario))
    for with_weights, without in zip(weighted, plain, strict=True):
        assert with_weights.keys() == without.keys()
        for agent, observation in without.items():
            assert np.array_equal(with_weights[agent][:-4], observation)


@pytest.mark.train
def test_a_critic_s_knowledge_comes_after_the_weights():
    from quicgym.envs.sb3 import PRIVILEGED, make_sb3

    seen = make_sb3("tuning", 3, privileged=True, **RANDOM)
    plain = make_sb3("tuning", 3, **RANDOM)
    for environments_ in (seen, plain):
        environments_.seed(5)
    observations, expected = seen.reset(), plain.reset()
    assert np.array_equal(observations[:, : -len(PRIVILEGED)], expected)
    assert expected[:, -4:].sum(axis=1) == pytest.approx(1)
    assert len({tuple(row) for row in expected[:, -4:]}) == 3


@pytest.mark.parametrize(
    "weights, name",
    [
        ({"throughput": 1, "loss": 1, "fairness": 1}, "fair-throughput"),
        ({"throughput": 7, "loss": 7, "delay": 7}, "delay"),
    ],
)
def test_equal_parts_are_the_rewards_of_these_names(weights, name):
    weighted = make(preference=weights)
    plain = find_environment("tuning")(SCENARIO, reward=name)
    actions = helper.actions(plain.action_space, 8)
    rows = helper.play(weighted, actions, seed=2)
    for row, expected in zip(rows, helper.play(plain, actions, seed=2), strict=True):
        assert row[1] == pytest.approx(4 / 3 * expected[1])
    assert rows[0][0][-4:] == pytest.approx([weights.get(term, 0) / sum(weights.values())
                                             for term in PREFERENCE_TERMS])  # fmt: skip


def test_the_reward_may_be_another():
    environment = make(preference={"delay": 1}, reward="power")
    for observation, reward, _, _, info in helper.play(environment, [np.zeros(18)] * 3, seed=2)[1:]:
        assert observation[-4:].tolist() == [0, 0, 0, 1]
        assert reward == pytest.approx(info["throughput_share"] / info["rtt_ratio"])


def test_weights_of_a_reward_are_taken():
    reward = quicgym.Reward("preference", loss_weight=2, fairness_weight=3, delay_weight=4)
    environment = make(preference={"loss": 1, "fairness": 1, "delay": 2}, reward=reward)
    for _, earned, _, _, info in helper.play(environment, [np.zeros(18)] * 8, seed=2)[1:]:
        terms = 2 * info["loss_rate"] + 3 * (1 - info["jain"]) + 8 * (info["rtt_ratio"] - 1)
        assert earned == pytest.approx(-terms)


def test_an_option_fixes_one_episode_and_leaves_the_next_as_they_are():
    fixed, plain = make(), make()
    observation, _ = fixed.reset(seed=1, options={"preference": {"loss": 3, "delay": 1}})
    assert observation[-4:].tolist() == [0, 0.75, 0, 0.25]
    plain.reset(seed=1)
    assert fixed.episode_seed == plain.episode_seed
    for _ in range(3):
        assert np.array_equal(fixed.reset()[0], plain.reset()[0])
        assert fixed.episode_seed == plain.episode_seed


def test_a_fixed_preference_draws_nothing():
    fixed, plain = make(preference={"delay": 1}), find_environment("tuning")(SCENARIO)
    for seed in (1, None, None):
        assert np.array_equal(fixed.reset(seed=seed)[0][:-4], plain.reset(seed=seed)[0])


def test_a_state_has_its_weights():
    environment = make()
    environment.reset(seed=1)
    environment.step(np.zeros(18))
    state = environment.clone_state()
    actions = helper.actions(environment.action_space, 4)

    def go_on(other):
        rows = [other.step(action)[:2] for action in actions]
        return [(row[0].tobytes(), row[1]) for row in rows], other.reset()[0].tobytes()

    expected = go_on(environment)
    other = make()
    other.reset(seed=9)
    for restored in (environment, other):
        restored.restore_state(state)
        assert go_on(restored) == expected


def test_a_state_of_an_environment_with_another_preference_is_refused():
    environment = make(reward="power")
    environment.reset(seed=1)
    for preference in (None, {"delay": 1}):
        with pytest.raises(ValueError, match="preference = 'random', this one has"):
            make(preference=preference, reward="power").restore_state(environment.clone_state())


@pytest.mark.parametrize(
    "preference, text",
    [
        (None, "no preference to weigh by; give preference='random'"),
        ("randm", "preference = 'randm': give 'random'"),
        (3, "preference = 3: give weights by name"),
        ({"delai": 1}, "no weight 'delai'; did you mean delay"),
        ({"delay": -1}, "delay = -1: give a finite number from 0 on"),
        *(
            ({"delay": bad}, f"delay = {bad!r}: give a finite number")
            for bad in (np.nan, np.inf, "1")
        ),
        ({"delay": 0}, "no weight is above 0; give one to throughput"),
        ({}, "no weight is above 0"),
    ],
)
def test_what_is_no_preference_is_an_error_at_once(preference, text):
    for one in (make, lambda **fields: quicgym.make_vec("tuning", 2, **{**RANDOM, **fields})):
        with pytest.raises(ValueError, match=re.escape(text)):
            one(preference=preference)


def test_options_are_checked():
    with pytest.raises(ValueError, match="no weight is above 0"):
        make().reset(options={"preference": {"loss": 0}})
    plain = find_environment("tuning")(SCENARIO)
    with pytest.raises(ScenarioError, match="this environment shows none; make it with"):
        plain.reset(options={"preference": {"loss": 1}})


@given(st.tuples(*[st.floats(0, 1e308)] * 4).filter(any))
def test_weights_sum_to_1_and_stay_as_they_are(weights):
    preference = Preference(*weights)
    assert sum(preference.weights) == pytest.approx(1)
    assert Preference(*preference.weights) == preference  # to the last bit
    largest = max(weights)
    assert preference.weights == pytest.approx(
        np.array(weights) / largest / (np.array(weights) / largest).sum()
    )


def test_draws_are_uniform_on_the_simplex():
    rng = np.random.default_rng(0)
    drawn = np.array([Preference.draw(rng).weights for _ in range(4000)])
    assert drawn.mean(axis=0) == pytest.approx([0.25] * 4, abs=0.01)
    # Of a uniform point each weight has the density 3 (1 - x)^2.
    assert (drawn > 0.5).mean(axis=0) == pytest.approx([0.125] * 4, abs=0.02)
