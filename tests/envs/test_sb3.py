"""The adapter for Stable-Baselines3."""

import numpy as np
import pytest
from helpers import environments as helper

from quicgym.envs import ENVIRONMENTS
from quicgym.envs.scenarios.applications import Transfer
from quicgym.envs.scenarios.flows import Flow

pytestmark = pytest.mark.train
SHORT = {"scenario": helper.scenario(flows=2, duration_s=0.8)}


def make(name="quicgym/Tuning-v1", num_envs=3, **arguments):
    from quicgym.envs.sb3 import make_sb3

    return make_sb3(name, num_envs, **{**SHORT, **arguments})


def batches(environments, count):
    environments.action_space.seed(0)
    rows = range(environments.num_envs)
    return [np.array([environments.action_space.sample() for _ in rows]) for _ in range(count)]


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_the_checker_of_sb3_accepts_the_single_environments(name):
    import gymnasium
    from stable_baselines3.common.env_checker import check_env

    check_env(gymnasium.make(name, **SHORT), skip_render_check=True)


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_rows_are_those_of_the_vector_environment(name):
    import quicgym

    ours = make(name)
    theirs = quicgym.make_vec(name, num_envs=3, autoreset_mode="SameStep", **SHORT)
    ours.seed(7)
    first, info = theirs.reset(seed=7)
    assert np.array_equal(ours.reset(), first)
    begins_s = info["time_s"].copy()
    ends = 0
    for batch in batches(ours, 20):
        observations, rewards, done, infos = ours.step(batch)
        expected, expected_rewards, terminations, truncations, info = theirs.step(batch)
        assert np.array_equal(observations, expected) and observations.dtype == np.float32
        ends_s = info["time_s"].copy()
        for row in np.flatnonzero(done):
            ends_s[row] = info["final_info"]["time_s"][row]
        assert np.allclose(rewards, expected_rewards * (ends_s - begins_s) * 10, rtol=1e-6)
        begins_s = info["time_s"].copy()
        assert rewards.dtype == np.float32
        assert np.array_equal(done, terminations | truncations)
        for row in np.flatnonzero(done):
            ends += 1
            assert np.array_equal(infos[row]["terminal_observation"], info["final_obs"][row])
            assert infos[row]["TimeLimit.truncated"] is True
            assert infos[row]["jain"] == info["final_info"]["jain"][row]
        for row in np.flatnonzero(~done):
            assert "terminal_observation" not in infos[row]
    assert ends >= 6


@pytest.mark.parametrize("step", [{"decision_interval_ms": 250}, {"decision_interval_rtts": 1.5}])
def test_a_return_is_what_is_evaluated_however_long_the_steps_are(step):
    """The reward of intervals of 100 ms, integrated over time."""
    import quicgym

    path = {"scenario": helper.scenario(flows=2, duration_s=5)}
    ours = make(num_envs=1, per_flow=False, **path, **step)
    theirs = quicgym.make_vec(
        "quicgym/Tuning-v1", 1, autoreset_mode="SameStep", reward_interval_ms=100, **path, **step
    )
    ours.seed(3)
    ours.reset()
    _, info = theirs.reset(seed=3)
    total = integral = 0.0
    done = np.array([False])
    while not done[0]:
        begin_s = info["time_s"][0]
        _, reward, done, _ = ours.step(np.zeros((1, 13)))
        total += float(reward[0])
        _, reward, _, _, info = theirs.step(np.zeros((1, 13)))
        last = info["final_info"] if done[0] else info
        integral += reward[0] * (last["time_s"][0] - begin_s)
    assert total == pytest.approx(integral / 0.1, rel=1e-6)


def test_a_critic_sees_no_nan_before_the_first_rtt_sample():
    environments = make(privileged=True, infos="all", scenario=helper.scenario(loss=0))
    environments.seed(1)
    assert np.isfinite(environments.reset()).all()
    assert np.isnan([info["rtt_ms"] for info in environments.unwrapped.reset_infos]).all()


def test_a_termination_is_not_a_truncation():
    flow = Flow(start_s=0.1, application=Transfer(size_bytes=30_000))
    environments = make(scenario=helper.scenario(flow_list=(flow,), loss=0))
    environments.reset()
    for batch in batches(environments, 20):
        _, _, done, infos = environments.step(batch * 0)
        if done.any():
            break
    assert done.any() and not infos[int(np.argmax(done))]["TimeLimit.truncated"]


def test_seed_and_options_hold_for_the_next_reset():
    environments = make()
    environments.seed(7)
    first = environments.reset()
    states = [environments.step(batch)[0] for batch in batches(environments, 4)]
    environments.seed(7)
    assert np.array_equal(environments.reset(), first)
    assert all(
        np.array_equal(environments.step(batch)[0], state)
        for batch, state in zip(batches(environments, 4), states, strict=True)
    )
    environments.seed(7)
    environments.set_options({"controller": "cubic"})
    environments.reset()
    ignored = [environments.step(batch)[0] for batch in batches(environments, 4)]
    assert not np.array_equal(ignored, states)
    environments.set_options([{}, {"controller": "cubic"}, {}])
    with pytest.raises(ValueError, match="share their options"):
        environments.reset()


def test_seed_and_options_are_forgotten_after_that_reset():
    environments = make()
    rows = environments.environments
    environments.seed(7)
    environments.set_options({"controller": "cubic"})
    environments.reset()
    seeds = rows.episode_seeds()
    assert [episode.controller for episode in rows.batch.episodes] == ["cubic"] * 3
    environments.reset()
    assert not set(seeds) & set(rows.episode_seeds())
    assert [episode.controller for episode in rows.batch.episodes] == [None] * 3


class FewerLater:
    """Paths with two agents, but those that begin after the first two have one."""

    most_agents = 2

    def __init__(self):
        self.drawn = 0

    def sample(self, rng):
        self.drawn += 1
        return helper.scenario(flows=1 + (self.drawn <= 2), duration_s=0.5)


def test_rows_without_an_agent_are_refused_because_a_model_would_learn_from_them():
    from stable_baselines3 import PPO

    words = r"per_flow = True: .* agents, .* leave per_flow out, .*quicgym train tuning-ppo"
    drawn = make("window", 16, scenario="self-play-50", per_flow=True)
    with pytest.raises(ValueError, match=words):
        PPO("MlpPolicy", drawn, n_steps=4, batch_size=8).learn(1)
    later = make("window", 2, scenario=FewerLater(), per_flow=True)
    later.reset()
    with pytest.raises(ValueError, match=words):
        for batch in batches(later, 20):
            later.step(batch)
    alike = make("window", 2, per_flow=True)
    assert len(alike.reset()) == 4


def test_a_critic_may_see_what_only_the_network_knows():
    from quicgym.envs.privileged import PRIVILEGED

    plain, privileged = make(), make(privileged=True)
    for environments in (plain, privileged):
        environments.seed(3)
    size = plain.observation_space.shape[0]
    assert privileged.observation_space.shape == (size + len(PRIVILEGED),)
    expected, observations = plain.reset(), privileged.reset()
    assert np.array_equal(observations[:, :size], expected)
    ends = 0
    for batch in batches(plain, 12):
        expected, _, _, theirs = plain.step(batch)
        observations, _, done, infos = privileged.step(batch)
        assert np.array_equal(observations[:, :size], expected)
        for row in range(3):
            assert privileged.observation_space.contains(observations[row])
            if done[row]:
                ends += 1
                last = infos[row]["terminal_observation"]
                assert np.array_equal(last[:size], theirs[row]["terminal_observation"])
                assert last[size] == np.float32(min(1, infos[row]["throughput_share"]))
                assert last[size + 2] == np.float32(infos[row]["jain"])
            else:
                assert observations[row, size + 4] == np.float32(infos[row]["active_flows"] / 8)
    assert ends


def test_what_a_critic_sees_is_what_its_names_say():
    from quicgym.envs.privileged import PRIVILEGED, privileged_inputs

    info = {
        "throughput_share": [0.75, 0.0, np.nan],
        "loss_rate": [0.1, 0.0, np.nan],
        "jain": [0.9, 1.0, np.nan],
        "rtt_ratio": [2.5, 30.0, np.nan],
        "active_flows": [4.0, 1.0, np.nan],
        "queue_bytes": [50_000.0, 0.0, 0.0],
        "capacity_mbps": [8.0, 0.0, np.nan],
        "flow_throughput_mbps": [1.5, 0.0, np.nan],
        "throughput_mbps": [6.0, 0.0, np.nan],
    }
    seen = privileged_inputs({name: np.array(values) for name, values in info.items()})
    assert dict(zip(PRIVILEGED, seen[0], strict=True)) == pytest.approx(
        {
            "throughput_share": 0.75,
            "loss_rate": 0.1,
            "jain": 0.9,
            "rtt_ratio / 10": 0.25,
            "active_flows / 8": 0.5,
            "queue / capacity in s": 0.05,
            "flow's throughput / throughput": 0.25,
        }
    )
    assert seen[1] == pytest.approx([0, 0, 1, 1, 0.125, 0, 0])  # at most 1, and finite
    assert seen[2] == pytest.approx([0, 0, 1, 0.1, 0, 0, 0])  # when an episode begins
