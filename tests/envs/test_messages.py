"""Wrong arguments of environments: the error names field, value and remedy."""

import re

import gymnasium
import numpy as np
import pytest
from helpers import environments as helper

import quicgym
from quicgym.envs.parallel import ParallelCongestionControlEnv

SHORT = {"scenario": helper.scenario()}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"scenario": "trainning"}, "'trainning'; did you mean training.*ebcc-single"),
        ({"scenario": "heldout"}, "'heldout' is a suite.*a distribution, such as 'training'"),
        ({"decision_interval_ms": "100"}, "decision_interval_ms = '100': give a number from 1 to"),
        ({"decision_interval_rtts": True}, "decision_interval_rtts = True: give a number from 0.1"),
        ({"history_length": 1.5}, "history_length = 1.5: give a whole number from 1 to 1000"),
    ],
)
def test_a_wrong_argument_of_an_environment(arguments, words):
    with pytest.raises(ValueError, match=words):
        gymnasium.make("quicgym/Window-v1", **arguments)


@pytest.mark.parametrize("reward", [3, None, ["power"], {"name": "power"}])
def test_a_reward_of_a_wrong_type_is_refused_and_not_replaced_by_the_default(reward):
    words = re.escape(f"reward = {reward!r}: give the name of a reward (fair-throughput, ")
    makers = (
        lambda: gymnasium.make("quicgym/Window-v1", reward=reward, **SHORT),
        lambda: quicgym.make_vec("window", 2, reward=reward, **SHORT),
        lambda: ParallelCongestionControlEnv("window", reward=reward, **SHORT),
    )
    for make in makers:
        with pytest.raises(ValueError, match=words):
            make()


@pytest.mark.parametrize(
    ("name", "value"), [("num_envs", 1.5), ("num_envs", 10**10), ("num_threads", "2")]
)
def test_a_wrong_number_of_a_vector_environment(name, value):
    with pytest.raises(ValueError, match=f"{name} = {value!r}: give a whole number from 1 to"):
        quicgym.make_vec("window", **{"num_envs": 2, name: value, **SHORT})


def test_a_reward_function_that_reads_a_column_that_info_does_not_have():
    environment = gymnasium.make("quicgym/Window-v1", reward=lambda info: info["thruput"], **SHORT)
    environment.reset(seed=1)
    with pytest.raises(KeyError, match="no column 'thruput'; did you mean throughput_mbps"):
        environment.step(0)


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_an_action_that_is_not_finite_is_refused_and_not_clipped(value):
    environment = gymnasium.make("quicgym/Tuning-v1", **SHORT)
    environment.reset(seed=1)
    action = np.zeros(environment.action_space.shape, np.float32)
    environment.step(action + 2)  # which is clipped
    action[1] = value
    with pytest.raises(ValueError, match=rf"beta = {value}; give a number from -1 to 1"):
        environment.step(action)


def test_a_step_after_close_says_that_the_environment_is_closed():
    environment = gymnasium.make("quicgym/Window-v1", **SHORT)
    environment.reset(seed=1)
    environment.close()
    with pytest.raises(RuntimeError, match="is closed; make another one, or begin an episode"):
        environment.step(0)
    environment.reset(seed=1)
    environment.step(0)
