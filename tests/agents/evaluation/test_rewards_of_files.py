"""Rewards by `file.py:function`: what they earn, what is fingerprinted, and what is refused."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import numpy as np
import pytest
from helpers import environments as helper
from helpers.training import NEEDS_TRAIN, write_config

import quicgym
from quicgym.agents.evaluation.evaluate import run_evaluate
from quicgym.agents.evaluation.jobs import make_jobs
from quicgym.agents.evaluation.rollouts import play
from quicgym.agents.policies.by_name import find_policy
from quicgym.envs.rewards import find_reward

SHARE = "def reward(info):\n    return 2.0 * info['throughput_share']\n"
SCENARIO = helper.scenario(duration_s=2.0)


@pytest.fixture
def here(here):
    Path("mine.py").write_text(SHARE)
    return here


def test_a_function_of_a_file_is_what_an_episode_earns(here):
    metrics = play(find_policy("bbr"), SCENARIO, reward=find_reward("mine.py:reward")).metrics
    assert metrics["reward"] == pytest.approx(2.0 * metrics["throughput_share"])


@pytest.mark.usefixtures("jobs_here", "plain_figures")
def test_quicgym_evaluate_takes_it_and_says_which_it_was(here, capsys):
    write_config(here)  # and with it a scenario, pair.yaml
    run = {"policies": ["bbr"], "suite": "./pair.yaml", "seeds": 1, "workers": 1}
    assert run_evaluate(directory=here / "out", reward="mine.py:reward", **run) == 0
    document = json.loads((here / "out/evaluation.json").read_text())
    assert document["reward"]["name"] == "mine.py:reward"
    (policy,) = document["policies"]
    assert policy["mean"]["reward"] == pytest.approx(2.0 * policy["mean"]["throughput_share"])


def test_an_edit_of_the_file_is_another_reward(here):
    def key():
        (job,) = make_jobs(["bbr"], [SCENARIO], 1, reward=find_reward("mine.py:reward"))
        return job

    first = key()
    assert first.key == key().key and Path("mine.py") in first.files
    Path("mine.py").write_text(SHARE.replace("2.0", "3.0"))
    assert key().key != first.key
    elsewhere = pickle.loads(pickle.dumps(find_reward("mine.py:reward")))
    Path("mine.py").write_text(SHARE)
    with pytest.raises(quicgym.UserError, match=r"mine\.py:reward: its file has changed"):
        elsewhere({"time_s": np.ones(1)})


@pytest.mark.parametrize(
    ("code", "choice", "message"),
    [
        (SHARE, "mine.py", "name the function as well, such as mine.py:reward"),
        (SHARE, "mine.py:revard", r"has no object 'revard'; did you mean reward"),
        (SHARE, "other.py:reward", "other.py: No such file"),
        ("reward = 3", "mine.py:reward", "is int; give a function"),
        ("def reward(info)\n", "mine.py:reward", r"mine\.py:1: SyntaxError"),
        (SHARE.replace("_share", ""), "mine.py:reward", r"mine\.py:2: KeyError: 'throughput'"),
        ("def reward(info):\n    return 1.0", "mine.py:reward", r"the shape \(\) for 2 rows"),
        ("def reward(info):\n    pass", "mine.py:reward", "returned None; return an array"),
        ("def reward(info):\n    return 'x'", "mine.py:reward", "returned str; return an array"),
    ],
)
def test_a_function_that_cannot_be_used_is_named(code, choice, message, here):
    Path("mine.py").write_text(code)
    with pytest.raises(quicgym.UserError, match=message):
        find_reward(choice)


def test_what_is_not_finite_is_named_with_the_columns_that_are_not(here):
    Path("mine.py").write_text("def reward(info):\n    return -info['rtt_ratio']")
    reward = find_reward("mine.py:reward")
    ones = np.ones(2)
    with pytest.raises(quicgym.UserError, match="returned nan; .*: rtt_ratio; np.nan_to_num"):
        reward({"time_s": ones, "rtt_ratio": np.array([1.0, np.nan])})


@pytest.mark.train
class TestTraining:
    pytestmark = NEEDS_TRAIN

    @pytest.mark.parametrize("algorithm", ["ppo", "grpo"])
    def test_it_is_learned_from_measured_and_kept_for_resuming(self, algorithm, here):
        from quicgym.agents.training.configuration import load_training
        from quicgym.agents.training.run import train

        changes = ["environment.reward=mine.py:reward", "steps=160"]
        config = load_training(str(write_config(here, algorithm)), changes)
        train(config, here / "run", "command")
        lines = (here / "run/evaluations.jsonl").read_text().splitlines()
        for record in map(json.loads, lines):
            assert record["reward"] == pytest.approx(2.0 * record["throughput_share"])
        train(config, here / "run", "command", resume=True)
        Path("mine.py").write_text(SHARE.replace("2.0", "3.0"))
        with pytest.raises(quicgym.UserError, match="environment.reward 'mine.py:reward' is not"):
            train(config, here / "run", "command", resume=True)

    def test_a_wrong_name_is_refused_when_the_configuration_is_read(self, here):
        from quicgym.agents.training.configuration import load_training

        with pytest.raises(quicgym.UserError, match="environment.reward.*unknown reward 'delai'"):
            load_training(str(write_config(here)), ["environment.reward=delai"])
