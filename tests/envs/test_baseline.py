"""Rewards minus those of a baseline on the same path with the same seed."""

import contextlib

import gymnasium
import numpy as np
import pytest
from helpers import environments as helper

import quicgym
from quicgym.envs import ENVIRONMENTS
from quicgym.envs.scenarios.applications import Transfer
from quicgym.envs.scenarios.flows import Flow

SHORT = {"scenario": helper.scenario(flows=2, duration_s=0.8)}


def rewards_of(environment, seed, actions, options=None):
    environment.reset(seed=seed, options=options)
    rewards = []
    for action in actions:
        _, reward, terminated, truncated, _ = environment.step(action)
        rewards.append(reward)
        if terminated or truncated:
            break
    return np.array(rewards)


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_a_reward_is_the_agent_s_minus_the_baseline_s(name):
    plain = gymnasium.make(name, **SHORT)
    paired = gymnasium.make(name, baseline="bbr", **SHORT)
    actions = helper.actions(plain.action_space, 20)
    for seed in (3, 4):
        own = rewards_of(plain, seed, actions)
        bbr = rewards_of(plain, seed, actions, {"controller": "bbr"})
        assert np.array_equal(rewards_of(paired, seed, actions), own - bbr)
        assert not rewards_of(paired, seed, actions, {"controller": "bbr"}).any()


@pytest.mark.parametrize("arguments", [{}, {"per_flow": True, "reward_per_flow": True}])
@pytest.mark.parametrize("mode", ["next_step", "same_step"])
def test_every_row_of_a_vector_environment_has_its_own_baseline(mode, arguments):
    def rewards(baseline, options=None):
        rows = quicgym.make_vec(
            "window", 3, scenario=SHORT["scenario"], baseline=baseline, autoreset_mode=mode,
            num_threads=2, **arguments,
        )  # fmt: skip
        rows.reset(seed=1, options=options)
        rows.action_space.seed(1)
        return np.array([rows.step(rows.action_space.sample())[1] for _ in range(20)])

    bbr = {"controller": "bbr"}
    assert np.array_equal(rewards("bbr"), rewards(None) - rewards(None, bbr))
    assert not rewards("bbr", bbr).any() and rewards("bbr").any()


def test_a_reward_function_is_of_both():
    def window(info):
        return info["flow_window_bytes"]

    plain = gymnasium.make("quicgym/Window-v1", reward=window, **SHORT)
    paired = gymnasium.make("quicgym/Window-v1", reward=window, baseline="cubic", **SHORT)
    own, cubic = (rewards_of(plain, 1, [9] * 6, it) for it in (None, {"controller": "cubic"}))
    assert np.array_equal(rewards_of(paired, 1, [9] * 6), own - cubic)


class Gain:
    """How much the throughput has grown since the last step of a row."""

    def __init__(self, rows):
        self.last = np.zeros(rows)

    def __call__(self, info):
        before = self.last[info["row"]]
        self.last[info["row"]] = info["throughput_mbps"]
        return info["throughput_mbps"] - before


def test_what_a_reward_function_remembers_is_of_the_agent_or_of_the_baseline():
    def rewards(baseline=None, options=None):
        rows = quicgym.make_vec(
            "window", 2, scenario=SHORT["scenario"], reward=Gain(2), baseline=baseline
        )
        rows.reset(seed=1, options=options)
        return np.array([rows.step(np.array([9, 9]))[1] for _ in range(6)])

    bbr = {"controller": "bbr"}
    assert np.array_equal(rewards("bbr"), rewards() - rewards(options=bbr))


def test_a_state_has_the_baseline_s_simulation():
    environment = gymnasium.make("quicgym/Window-v1", baseline="bbr", **SHORT).unwrapped
    environment.reset(seed=1)
    environment.step(9)
    state = environment.clone_state()
    rewards = [environment.step(6)[1] for _ in range(4)]
    environment.reset(seed=2)
    environment.restore_state(state)
    assert [environment.step(6)[1] for _ in range(4)] == rewards
    other = gymnasium.make("quicgym/Window-v1", **SHORT).unwrapped
    with pytest.raises(ValueError, match="baseline = 'bbr'"):
        other.restore_state(state)


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_a_reward_function_that_fails_once_leaves_agent_and_baseline_in_step(error):
    calls = []

    def fails_once(info):
        calls.append(0)
        if len(calls) == 7:
            raise error
        return info["throughput_mbps"]

    paired = gymnasium.make(
        "quicgym/Window-v1", reward=fails_once, baseline="cubic", scenario=helper.scenario()
    )
    paired.reset(seed=1, options={"controller": "cubic"})
    rewards = []
    for _ in range(15):
        with contextlib.suppress(error):
            rewards.append(paired.step(6)[1])
    assert rewards == [0.0] * 14


class Steady(quicgym.Controller):
    """Keeps its window."""

    def on_start(self, max_datagram_bytes):
        self.window_bytes = 60 * max_datagram_bytes

    def on_ack(self, event):
        pass

    def on_loss(self, event):
        pass


class SteadyAtFirst(Steady):
    """As Steady, but fails at the first loss of one run in four."""

    fails = None

    def on_ack(self, event):
        if self.fails is None:
            self.fails = event.random.below(4) == 0

    def on_loss(self, event):
        if self.fails:
            raise ValueError("nothing is left")


def test_the_rows_beside_a_failing_controller_stay_in_step_with_their_baseline():
    rows = quicgym.make_vec(
        "window", 8, scenario=helper.scenario(loss=0.02), baseline=Steady, num_threads=1
    )
    rows.reset(seed=1, options={"controller": SteadyAtFirst})
    failures = 0
    for _ in range(15):
        try:
            rewards = rows.step(np.full(8, 6))[1]
        except quicgym.ControllerError:
            failures += 1
            failed = [row for row in range(8) if has_failed(rows, row)]
            (running, *_) = set(range(8)) - set(failed)
            rows.restore_state(rows.clone_state([running]) * len(failed), failed)
        else:
            assert not rewards.any()
    assert 0 < failures < 15


def has_failed(rows, row):
    try:
        rows.clone_state([row])
    except RuntimeError:
        return True
    return False


def test_a_baseline_whose_transfer_is_done_earns_nothing_more():
    flows = (Flow(application=Transfer(size_bytes=200_000)), Flow(controller="cubic"))
    scenario = helper.scenario(flow_list=flows, duration_s=4.0)
    plain = gymnasium.make("quicgym/Window-v1", scenario=scenario)
    paired = gymnasium.make("quicgym/Window-v1", scenario=scenario, baseline="bbr")
    slow = [3] * 60
    own, bbr = (rewards_of(plain, 1, slow, it) for it in (None, {"controller": "bbr"}))
    assert len(bbr) < len(own)
    expected = own - np.pad(bbr, (0, len(own) - len(bbr)))
    assert np.array_equal(rewards_of(paired, 1, slow), expected)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"baseline": "bbbr"}, "did you mean bbr"),
        ({"baseline": "bbr", "decision_interval_rtts": 1.0}, "decision_interval_rtts = 1.0"),
    ],
)
def test_what_a_baseline_cannot_be_beside_is_refused(arguments, words):
    with pytest.raises(ValueError, match=words):
        gymnasium.make("quicgym/Window-v1", **arguments, **SHORT)
