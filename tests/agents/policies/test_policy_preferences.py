"""Policies that take a preference: saved, loaded, given another one, evaluated and trained."""

from __future__ import annotations

import dataclasses
import json
import re

import numpy as np
import pytest
import yaml
from helpers import environments as helper
from helpers.training import made, write_config

import quicgym
from quicgym.agents.evaluation.jobs import make_jobs
from quicgym.agents.evaluation.rollouts import play
from quicgym.agents.policies.by_name import find_policy
from quicgym.agents.policies.hand_coded import controller_policy
from quicgym.agents.policies.policy import ConstantPolicy
from quicgym.agents.training.configuration import ConfigError, load_training
from quicgym.envs.actions import action_space, choices
from quicgym.envs.decisions import Decisions
from quicgym.envs.preferences import Preference
from quicgym.errors import PolicyError

SCENARIO = helper.scenario(flows=2, duration_s=1.0)
EQUAL = Preference(1, 1, 1, 1)


@dataclasses.dataclass(frozen=True)
class _Listening(ConstantPolicy):
    """A policy that keeps what it has seen."""

    seen: list[np.ndarray] = dataclasses.field(default_factory=list)

    def __call__(self, observations: np.ndarray) -> np.ndarray:
        self.seen.append(observations.copy())
        return super().__call__(observations)


@pytest.mark.parametrize("environment", ["tuning", "window", "switch", "aurora"])
def test_an_episode_has_the_preference_of_the_policy(environment):
    decisions = Decisions(environment, preference={"loss": 1, "delay": 3})
    action = helper.rest(action_space(environment))
    policy = _Listening("still", action, decisions=decisions)
    episode = play(policy, SCENARIO, reward=quicgym.Reward("preference"))
    for observations in policy.seen:
        assert observations.shape[1:] == decisions.observation_space.shape
        assert observations[:, -4:].tolist() == [[0, 0.25, 0, 0.75]] * 2
    plain = ConstantPolicy("still", action, decisions=Decisions(environment))
    assert episode.totals == play(plain, SCENARIO).totals
    series = episode.series
    terms = 0.25 * 5 * series["loss_rate"] + 0.75 * (series["rtt_ratio"] - 1)
    assert series["reward"] == pytest.approx(-4 * terms)


def test_a_reward_of_preferences_is_for_policies_that_have_one():
    with pytest.raises(ValueError, match="reward preference: cubic has no preference to weigh by"):
        make_jobs(["cubic"], [SCENARIO], 1, reward=quicgym.Reward("preference"))
    cubic = controller_policy("cubic", action_space("tuning"))
    cubic = dataclasses.replace(cubic, decisions=Decisions(preference={"throughput": 1}))
    episode = play(cubic, SCENARIO, reward=quicgym.Reward("preference"))
    assert episode.metrics["reward"] == pytest.approx(4 * episode.metrics["throughput_share"])


@pytest.mark.parametrize(
    "fields, text",
    [
        ({"reward": "preference"}, "reward = 'preference' needs environment.preference"),
        ({"preference": "rndom"}, "environment.preference"),
        ({"preference": {"delai": 1}}, "no weight 'delai'; did you mean delay"),
        ({"preference": {"delay": 0}}, "no weight is above 0"),
    ],
)
def test_a_configuration_s_preference_is_checked(fields, text):
    changes = [f"environment.{name}={json.dumps(value)}" for name, value in fields.items()]
    with pytest.raises(ConfigError, match=re.escape(text)):
        load_training("ppo", changes)


def test_a_sweep_has_no_preference(tmp_path):
    from quicgym.agents.tuning.sweep_config import load_sweep

    fields = {"name": "mine", "controller": "bbr", "parameters": {"cwnd_gain": {"values": [1, 2]}}}
    path = tmp_path / "mine.yaml"
    path.write_text(
        yaml.safe_dump({**fields, "scenarios": ["ebcc-single"], "reward": "preference"})
    )
    with pytest.raises(ValueError, match="reward = 'preference': a controller has none"):
        load_sweep(str(path))


def saved(tmp_path, environment="tuning", preference=EQUAL):
    """Saves a policy with random weights; returns its path and the policy."""
    import torch

    from quicgym.agents.policies.learned import LearnedPolicy, save_policy
    from quicgym.agents.policies.networks import Actor, Architecture

    output = "argmax" if choices(environment) else "clip"
    architecture = Architecture((8,), (8,), "tanh", output)
    decisions = Decisions(environment, history_length=4, preference=preference)
    torch.manual_seed(0)
    actor = Actor(architecture, decisions).eval()
    torch.nn.init.zeros_(actor.action.bias)  # so that observations decide between choices
    policy = LearnedPolicy("mine", decisions, actor)
    path = tmp_path / "mine.json"
    save_policy(path, policy, architecture, {})
    return path, policy


@pytest.mark.train
class TestLearned:
    @pytest.mark.parametrize("environment", ["rate", "window"])
    def test_it_is_loaded_with_the_preference_that_it_was_saved_with(self, tmp_path, environment):
        import torch

        path, policy = saved(tmp_path, environment, Preference(0.1, 0.2, 0.3, 0.4))
        assert list(json.loads(path.read_text())["preference"]) == [
            "throughput", "loss", "fairness", "delay",
        ]  # fmt: skip
        loaded = quicgym.load_policy(path)
        assert loaded.decisions == policy.decisions
        rng = np.random.default_rng(0)
        observations = rng.random((500, *policy.decisions.observation_space.shape), np.float32)
        with torch.no_grad():
            expected = policy.actor(torch.from_numpy(observations)).numpy()
        assert loaded(observations) == pytest.approx(expected, abs=1e-5)
        observations[:, -4:] = 0
        assert not np.allclose(loaded(observations), expected, atol=1e-3)

    def test_its_user_gives_another(self, tmp_path):
        path, policy = saved(tmp_path)
        changed = quicgym.load_policy(path).with_preference(delay=1, throughput=3)
        assert changed.decisions.preference == Preference(throughput=0.75, delay=0.25)
        assert changed.name == "mine:delay=1,throughput=3"
        named = find_policy(f"{path}:delay=1,throughput=3")
        assert named.decisions == changed.decisions and named.name == changed.name
        assert find_policy(str(path)).decisions == policy.decisions
        equal = ":throughput=1,loss=1,fairness=1,delay=1"
        policies = [find_policy(f"{path}{end}") for end in ("", equal, ":delay=1")]
        rewards = [play(policy, SCENARIO).metrics["reward"] for policy in policies]
        assert rewards[0] == rewards[1] != rewards[2]

    @pytest.mark.parametrize(
        "end, error, text",
        [
            (":delai=1", quicgym.ScenarioError, "no weight 'delai'; did you mean delay"),
            (":delay=0", quicgym.ScenarioError, "no weight is above 0"),
            (":delay=-1", quicgym.ScenarioError, "delay = -1.0: give a finite number"),
            (":delay=x", quicgym.ScenarioError, "'delay=x' is no weight; give a number"),
            (":delay=1,delay=2", quicgym.ScenarioError, "delay is there twice"),
        ],
    )
    def test_what_is_no_preference_is_an_error(self, tmp_path, end, error, text):
        path, _ = saved(tmp_path)
        with pytest.raises(error, match=re.escape(text)):
            find_policy(f"{path}{end}")

    def test_a_policy_without_one_takes_none(self, tmp_path):
        with pytest.raises(PolicyError, match="window-v1-grpo: takes no preference; leave out"):
            find_policy("window-v1-grpo-seed0:delay=1")
        path, _ = saved(tmp_path, preference=None)
        assert "preference" not in json.loads(path.read_text())

    def test_a_description_s_preference_is_checked(self, tmp_path):
        path, _ = saved(tmp_path)
        data = json.loads(path.read_text())
        for preference, text in (
            ({**data["preference"], "delay": -1}, "preference.delay"),
            (dict.fromkeys(data["preference"], 0), "no weight is above 0"),
            ({"delay": 1}, "preference.throughput"),
            (None, "features.layers.0"),  # whose weights are for four elements more
        ):
            path.write_text(json.dumps({**data, "preference": preference}))
            with pytest.raises(PolicyError, match=re.escape(text)):
                quicgym.load_policy(path)

    def test_it_is_evaluated_under_several_at_once(self, tmp_path, monkeypatch):
        path, _ = saved(tmp_path)
        names = [str(path), f"{path}:delay=1", f"{path}:throughput=1"]
        jobs = make_jobs(names, [SCENARIO], 1, reward=quicgym.Reward("preference"))
        assert len({job.key for job in jobs}) == 3
        rewards = {job.steering.name: job.run()["reward"] for job in jobs}
        assert len(set(rewards.values())) == 3
        assert rewards[names[1]] < 0 < rewards[names[2]]  # one earns by throughput, one pays delay


RANDOM = ("environment.preference=random", "environment.reward=preference")


@pytest.mark.train
def test_training_draws_preferences_and_measures_under_equal_weights(here):
    from quicgym.agents.training.policies import policy_of

    changes = (*RANDOM, "network.privileged_critic=true", "environment.id=quicgym/Tuning-v1")
    config, trainer = made(here, *changes)
    environments = trainer.model.get_env()
    environments.seed(1)
    seen = environments.environments.batch.observations.shape[1]
    weights = environments.reset()[:, seen - 4 : seen]
    assert weights.sum(axis=1) == pytest.approx(1) and len({tuple(row) for row in weights}) == 4
    policy = policy_of(trainer, config)
    assert policy.decisions.preference == EQUAL
    assert policy(environments.environments.batch.observations).shape == (8, 18)
    config, trainer = made(here, "environment.preference={delay: 2, loss: 6}")
    assert policy_of(trainer, config).decisions.preference == Preference(loss=0.75, delay=0.25)


@pytest.mark.train
def test_a_policy_to_begin_with_has_to_take_a_preference_too(here):
    saved(here, preference=None)
    changes = (*RANDOM, "start={policy: ./mine.json}", "environment.id=quicgym/Tuning-v1")
    with pytest.raises(ConfigError, match="takes no preference, and environment.preference gives"):
        made(here, *changes)


@pytest.mark.train
def test_a_run_with_preferences_leaves_a_policy_that_takes_them(here):
    from quicgym.agents.training.run import train

    path = str(write_config(here))
    config = load_training(path, [*RANDOM, "steps=80"])
    train(config, here / "run", "command")
    description = json.loads((here / "run/policy/policy.json").read_text())
    assert description["preference"] == dict.fromkeys(description["preference"], 0.25)
    assert find_policy(f"{here / 'run'}:delay=1").decisions.preference == Preference(delay=1)
    train(config, here / "run", "command", resume=True)
    with pytest.raises(quicgym.UserError, match="holds another run"):
        train(load_training(path, ["steps=80"]), here / "run", "command", resume=True)
