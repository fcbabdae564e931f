"""Calls that fail half-way, by an error or by Ctrl-C, leave an environment that can go on."""

import contextlib
import itertools
import sys

import gymnasium
import numpy as np
import pytest
from helpers import environments as helper

import quicgym
from quicgym.envs.scenarios.fields import ScenarioError

SHORT = {"scenario": helper.scenario(duration_s=0.8)}
WRONG = {"controller": "cubic", "parameters": {"nope": 1}}


class Unbegun(quicgym.Controller):
    """Cannot begin, which shows only when the simulation is built."""

    def on_start(self, max_datagram_bytes):
        raise ValueError("no window")

    def on_ack(self, event):
        pass

    def on_loss(self, event):
        pass


def throughput(info):
    return info["throughput_mbps"]


class FailsAt:
    """A reward function that fails at one of its calls."""

    def __init__(self, call, error):
        self.calls_left, self.error = call, error

    def __call__(self, info):
        self.calls_left -= 1
        if self.calls_left == 0:
            raise self.error
        return throughput(info)


@contextlib.contextmanager
def interrupted_at(line):
    """Ctrl-C at a line of envs/batch.py, which are counted from 1 as they run."""
    left = line

    def trace(frame, event, _):
        nonlocal left
        if not frame.f_code.co_filename.endswith("envs/batch.py"):
            return None
        if event == "line":
            left -= 1
            if left == 0:
                raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(before)


@pytest.mark.parametrize("call", ["reset", "step"])
def test_ctrl_c_at_any_line_of_a_call_leaves_no_episode_or_the_baseline_in_step(call):
    environment = gymnasium.make(
        "quicgym/Window-v1", reward=throughput, baseline="cubic", **SHORT
    ).unwrapped
    calls = {
        "reset": lambda: environment.reset(options={"controller": "cubic"}),
        "step": lambda: environment.step(6),
    }
    ends = 0
    for line in itertools.count(1):
        environment.reset(seed=1, options={"controller": "cubic"})
        environment.step(6)
        try:
            with interrupted_at(line):
                calls[call]()
        except KeyboardInterrupt:
            pass
        else:
            break
        try:
            assert [environment.step(6)[1] for _ in range(4)] == [0.0] * 4
        except RuntimeError as error:
            assert "no running episode; reset it" in str(error)
            ends += 1
    assert line > 20 and (ends > 0) == (call == "reset")


def test_a_reset_that_is_refused_leaves_the_episode_that_was_running():
    environment, twin = (
        gymnasium.make("quicgym/Window-v1", baseline="bbr", **SHORT).unwrapped for _ in range(2)
    )
    for each in (environment, twin):
        each.reset(seed=1)
        each.step(9)
    with pytest.raises(ScenarioError, match="no parameter 'nope'"):
        environment.reset(options={"scenario": "ebcc-single", **WRONG})
    assert environment.scenario is twin.scenario
    assert environment.episode_seed == twin.episode_seed
    assert helper.same([environment.step(6)], [twin.step(6)])


@pytest.mark.parametrize("baseline", [None, "bbr"])
def test_a_reset_whose_simulation_cannot_be_built_leaves_no_episode(baseline):
    environment = gymnasium.make("quicgym/Window-v1", baseline=baseline, **SHORT).unwrapped
    environment.reset(seed=1)
    with pytest.raises(quicgym.ControllerError, match="no window"):
        environment.reset(options={"controller": Unbegun})
    assert (environment.scenario, environment.episode_seed) == (None, None)
    with pytest.raises(RuntimeError, match="no running episode; reset it"):
        environment.step(6)
    environment.reset()
    environment.step(6)


def test_a_baseline_that_cannot_begin_leaves_no_agent_without_one():
    environment = gymnasium.make("quicgym/Window-v1", baseline=Unbegun, **SHORT).unwrapped
    with pytest.raises(quicgym.ControllerError, match="no window"):
        environment.reset(seed=1)
    with pytest.raises(RuntimeError, match="no running episode; reset it"):
        environment.step(6)


def test_options_of_a_reset_that_failed_are_not_those_of_the_next_episodes():
    rows = quicgym.make_vec("window", 2, **SHORT)
    rows.reset(seed=1, options={"controller": "newreno"})
    with pytest.raises(ScenarioError, match="no parameter 'nope'"):
        rows.reset(options=WRONG)
    controllers = set()
    for _ in range(20):  # two episodes
        rows.step(np.full(2, 6))
        controllers |= {episode.controller for episode in rows.batch.episodes}
    assert controllers == {"newreno"}


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
@pytest.mark.parametrize("mode", ["next_step", "same_step"])
def test_a_vector_environment_goes_on_after_an_error_in_an_episode_s_last_step(mode, error):
    def results(reward):
        rows = quicgym.make_vec("window", 2, reward=reward, autoreset_mode=mode, **SHORT)
        rows.reset(seed=1)
        listed = []
        for _ in range(24):
            with contextlib.suppress(error):
                listed.append(rows.step(np.array([9, 6]))[:4])
        return listed

    expected = results(throughput)
    last = [truncations.any() for *_, truncations in expected].index(True)
    listed = results(FailsAt(last + 1, error))
    assert len(listed) == len(expected) - 1
    (failed,) = expected[last : last + 1]
    del expected[last]
    if mode == "same_step":  # the next step begins the episode
        no = np.zeros(2, np.bool_)
        expected.insert(last, (failed[0], np.zeros(2), no, no))
    for ours, theirs in zip(listed, expected, strict=False):
        assert all(map(helper.equal, ours, theirs))
