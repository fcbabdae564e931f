"""clone_state and restore_state: what follows a state is the same to the last bit."""

from __future__ import annotations

import itertools
import re
import threading
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from helpers import environments as helper
from helpers.random_scenarios import native_networks
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import quicgym
from quicgym import Scenario, controllers
from quicgym.controllers import ControllerError
from quicgym.envs import environment_ids, find_environment

SHORT = {"scenario": helper.scenario(flows=2, duration_s=1.0), "record_deliveries": True}


def make(name="tuning", **arguments):
    return find_environment(name)(**{**SHORT, **arguments})


def everything(environment) -> tuple[Any, ...]:
    """What can be asked about an episode: all of it follows from the simulation's state."""
    batch, scenario = environment._batch, environment.scenario
    flows = range(len(list(scenario.single_flows())))
    return (
        environment.deliveries().tobytes(),
        [str(environment.statistics(flow)) for flow in flows],
        [str(environment.parameters(flow)) for flow in flows],
        [batch.requests(0, flow).tobytes() for flow in flows],
        [batch.transfers(0, entry).tobytes() for entry in range(len(scenario.short_flows))],
    )


def go_on(environment, actions) -> list[Any]:
    """Plays actions up to the episode's end, and returns all that they bring about."""
    rows = []
    for action in actions:
        observation, *others, info = environment.step(action)
        rows.append((observation.tobytes(), *others, str(info)))
        if others[1] or others[2]:
            break
    return [*rows, everything(environment)]


def check_states(make_environment, seed, before, after) -> None:
    """Checks clones at the moment between `before` and `after` against an episode without them."""
    reference, original, other = (make_environment() for _ in range(3))
    reference.reset(seed=seed)
    begun = go_on(reference, before)
    if begun[-2][2] or begun[-2][3]:
        return
    wanted = go_on(reference, after)

    original.reset(seed=seed)
    assert go_on(original, before) == begun
    state = original.clone_state()
    other.restore_state(state)
    assert everything(other) == begun[-1]
    # In turn, so that each would find what the other does to its memory.
    otherwise = list(reversed(after))
    half = len(after) // 2
    go_on(other, otherwise[:half])
    assert go_on(original, after[:half])[:half] == wanted[:half]
    for _ in range(2):
        other.restore_state(state)
        assert go_on(other, after) == wanted
    original.restore_state(state)
    assert go_on(original, after) == wanted
    for environment in (reference, original, other):
        environment.close()


@pytest.mark.parametrize("networks_drawn", [40, pytest.param(1000, marks=pytest.mark.long)])
def test_what_follows_a_state_is_the_same_to_the_last_bit(networks_drawn):
    @settings(max_examples=networks_drawn, deadline=None, suppress_health_check=list(HealthCheck))
    @given(
        name=st.sampled_from(environment_ids()),
        network=native_networks,
        seed=st.integers(0, 2**32),
        moments=st.tuples(st.integers(1, 12), st.integers(2, 8)),
    )
    def check(name, network, seed, moments):
        def one():
            return make(name, scenario=network)

        before, after = moments
        actions = helper.actions(one().action_space, before + after, seed % 1000)
        check_states(one, seed, actions[:before], actions[before:])

    check()


@pytest.mark.parametrize("controller", controllers.names())
def test_every_controller_goes_on_as_before(controller):
    network = Scenario(
        name="marks",
        duration_s=3.0,
        bottleneck={"rate_mbps": 8, "delay_ms": 10,
                    "queue": {"limit": 40, "discipline": "codel", "ecn_marking": True},
                    "loss": {"kind": "bernoulli", "probability": 0.002}},
        access={"rate_mbps": 50, "delay_ms": 5},
        flows=[{"count": 2, "controller": controller, "ecn": True}, {}],
    )  # fmt: skip
    actions = helper.actions(make("rate").action_space, 20)
    check_states(lambda: make("rate", scenario=network), 3, actions[:8], actions[8:])


class Stateful(quicgym.Controller):
    """Keeps what deepcopy has to look after: containers, a bound method, both generators."""

    def on_start(self, max_datagram_bytes):
        self.rtts = [[]]
        self.same = self.rtts[0]
        self.draw = self.sum
        self.numpy = np.random.default_rng(5)
        self.random = None
        self.events = None

    def sum(self):
        return sum(self.same) % 1000

    def on_ack(self, event):
        self.random = event.random
        self.events = event
        self.rtts[0].append(event.rtt)
        self.window_bytes = 12_000 + self.draw() + int(self.numpy.integers(9000))

    def on_loss(self, event):
        # The ACK's event still shows the latest ACK.
        factor = 0.5 + 0.4 * self.random.uniform()
        self.window_bytes = int(max(2400, self.window_bytes * factor)) + self.events.now % 1000


def test_controllers_in_python_are_copied_with_all_that_they_keep():
    actions = helper.actions(make().action_space, 9)
    check_states(lambda: make(other_controllers=Stateful), 3, actions[:4], actions[4:])


def with_attribute(attribute) -> type[quicgym.Controller]:
    class Keeper(Stateful):
        def on_start(self, max_datagram_bytes):
            super().on_start(max_datagram_bytes)
            self.kept = attribute

    return Keeper


class CopiedToNothing:
    def __deepcopy__(self, memo):
        raise ArithmeticError("one of a kind")


class Odd(Stateful):
    def __deepcopy__(self, memo):
        return 5


@pytest.mark.parametrize(
    "controller, text",
    [
        (with_attribute(threading.Lock()), "Keeper cannot be copied.*deepcopy"),
        (with_attribute(CopiedToNothing()), "Keeper cannot be copied.*deepcopy"),
        (Odd, "Odd cannot be copied.*the copy is 5"),
    ],
)
def test_a_controller_that_cannot_be_copied_is_named_and_its_environment_goes_on(controller, text):
    plain = make(other_controllers=Stateful)
    environment = make(other_controllers=controller)
    for each in (plain, environment):
        each.reset(seed=1)
    actions = helper.actions(plain.action_space, 6)
    assert go_on(environment, actions[:3]) == go_on(plain, actions[:3])
    with pytest.raises(ControllerError, match=f"controller {text}"):
        environment.clone_state()
    assert go_on(environment, actions[3:]) == go_on(plain, actions[3:])


def test_the_generator_belongs_to_the_state():
    environment = make(scenario="training-50", record_deliveries=False)
    environment.reset(seed=7)
    environment.np_random.spawn(2)
    state = environment.clone_state()

    def draws(of):
        child = of.np_random.spawn(1)[0].random()
        drawn = [of.reset()[0].tobytes() for _ in range(2)]
        return [child, *drawn, of.np_random.random(), of.np_random_seed, of.scenario]

    wanted = draws(environment)
    environment.restore_state(state)
    assert draws(environment) == wanted
    other = make(scenario="training-50", record_deliveries=False)
    other.restore_state(state)
    assert draws(other) == wanted
    assert draws(other) != wanted


def test_an_episode_that_is_over_stays_over():
    environment = make()
    environment.reset(seed=1)
    go_on(environment, itertools.repeat(helper.rest(environment.action_space)))
    state = environment.clone_state()
    other = make()
    other.restore_state(state)
    assert everything(other) == everything(environment)
    with pytest.raises(RuntimeError, match="the last one is over; reset it"):
        other.step(helper.rest(other.action_space))
    assert other.reset()[0].tobytes() == environment.reset()[0].tobytes()


def test_pictures_show_the_episode_up_to_the_state():
    first, second = (make(render_mode="rgb_array") for _ in range(2))
    actions = helper.actions(first.action_space, 8)
    first.reset(seed=1)
    go_on(first, actions[:5])
    state, wanted = first.clone_state(), first.render()
    go_on(first, actions[5:])
    assert not np.array_equal(first.render(), wanted)
    for environment in (first, second):
        environment.restore_state(state)
        assert np.array_equal(environment.render(), wanted)


def vector(count=4, **arguments):
    return quicgym.make_vec("tuning", num_envs=count, num_threads=2, **{**SHORT, **arguments})


def play(environments, batches) -> list[Any]:
    """What steps of a vector environment return, in a form that can be compared."""
    rows = []
    for batch in batches:
        *arrays, info = environments.step(batch)
        final = info.pop("final_obs", np.zeros(0))
        info.pop("final_info", None)
        finals = [None if it is None else it.tobytes() for it in final]
        rows.append([*(array.tobytes() for array in arrays), finals,
                     {name: column.tobytes() for name, column in info.items()}])  # fmt: skip
    return [*rows, environments.episode_seeds()]


def batches(environments, count, seed=0):
    environments.action_space.seed(seed)
    return [environments.action_space.sample() for _ in range(count)]


@pytest.mark.parametrize("mode", ["next_step", "same_step"])
@pytest.mark.parametrize("per_flow", [False, True])
@pytest.mark.parametrize("before", [3, 9, 10])
def test_vector_environments_go_on_through_autoresets(mode, per_flow, before):
    arguments = {"autoreset_mode": mode, "per_flow": per_flow, "scenario": "self-play-50",
                 "episode_s": 1.0}  # fmt: skip
    first, second = vector(**arguments), vector(**arguments)
    first.reset(seed=1)
    chosen = batches(first, 40)
    play(first, chosen[:before])
    states = first.clone_state()
    wanted = play(first, chosen[before:])
    for rows in (first, second):
        rows.restore_state(states)
        assert play(rows, chosen[before:]) == wanted
    assert second.np_random_seed == first.np_random_seed
    assert np.array_equal(first.reset()[0], second.reset()[0])


def test_chosen_simulations_are_put_back_and_the_others_go_on():
    plain, other = vector(), vector()
    for environments in (plain, other):
        environments.reset(seed=1)
    chosen = batches(plain, 8)
    play(plain, chosen[:3])
    play(other, chosen[:3])
    states = other.clone_state([2, 0])
    other.step(chosen[3][::-1])
    plain.step(np.where([[False], [True], [False], [True]], chosen[3][::-1], chosen[4]))
    other.restore_state(states, [2, 0])
    other.step(chosen[4])
    # Rows 0 and 2 have made the step `chosen[4]` from the state; the others a second one.
    for row in (0, 2):
        assert np.array_equal(other.deliveries(row), plain.deliveries(row))
    for row in (1, 3):
        assert len(other.deliveries(row)) > len(plain.deliveries(row))


def test_one_state_in_many_rows_tries_many_actions():
    single, rows = make(), vector(3)
    single.reset(seed=1)
    actions = helper.actions(single.action_space, 6)
    go_on(single, actions[:3])
    state = single.clone_state()
    rows.restore_state([state] * 3)
    observations, rewards, _, _, _ = rows.step(np.stack(actions[3:]))
    for row, action in enumerate(actions[3:]):
        single.restore_state(state)
        observation, reward, *_ = single.step(action)
        assert np.array_equal(observation, observations[row])
        assert reward == rewards[row]
    (returned,) = rows.clone_state([2])
    go_on(single, actions[:1])
    single.restore_state(returned)
    assert everything(single)[0] == rows.deliveries(2).tobytes()


def test_options_of_the_reset_belong_to_the_state():
    environments = vector(2, episode_s=0.3)
    environments.reset(seed=1, options={"controller": "cubic"})
    states = environments.clone_state()
    wanted = play(environments, batches(environments, 12))
    environments.reset(seed=2)
    environments.restore_state(states)
    assert play(environments, batches(environments, 12)) == wanted
    environments.reset(seed=2)
    environments.restore_state(states[:1], [0])
    play(environments, batches(environments, 12))
    parameters = [environments.batch.parameters(row, 0) for row in range(2)]
    assert "gain_cycle" not in parameters[0] and "gain_cycle" in parameters[1]


def test_reward_functions_and_their_last_rewards_stay():
    def reward(info):
        return info["throughput_share"]

    first, second = vector(2, reward=reward), vector(2, reward=reward)
    first.reset(seed=1)
    chosen = batches(first, 6)
    play(first, chosen[:3])
    second.restore_state(first.clone_state())
    assert np.array_equal(second.batch.rewards, first.batch.rewards)
    assert play(second, chosen[3:]) == play(first, chosen[3:])


@pytest.mark.parametrize(
    "argument, text",
    [
        ({"history_length": 5}, "history_length = 128, this one has 5"),
        ({"reward": "delay"}, "reward = 'fair-throughput', this one has 'delay'"),
        ({"scenario": helper.scenario(flows=3)}, "scenario = 'short', this one has 'short'"),
        ({"other_controllers": "bbr"}, "other_controllers = 'cubic', this one has 'bbr'"),
        ({"record_deliveries": False}, "record_deliveries = True, this one has False"),
    ],
)
def test_a_state_of_other_arguments_is_refused_and_nothing_changes(argument, text):
    environment, other = make(), make(**argument)
    for one in (environment, other):
        one.reset(seed=1)
    before = everything(other)
    with pytest.raises(ValueError, match=f"restore_state: .* {text}; make both with the same"):
        other.restore_state(environment.clone_state())
    assert everything(other) == before


def test_what_is_no_state_and_where_there_is_none():
    environment, rows = make("rate"), vector(2)
    for nothing in (environment, rows):
        with pytest.raises(RuntimeError, match="environment 0 has no running episode; reset it"):
            nothing.clone_state()
        nothing.reset(seed=1)
    with pytest.raises(TypeError, match="None is not what clone_state has returned"):
        environment.restore_state(None)
    for states, indices, text in (
        ([environment.clone_state()], [0], "environment = 'rate', this one has 'tuning"),
        (rows.clone_state([0]), None, "1 states for 2 simulations"),
        (rows.clone_state(), [1, 1], "one is there twice"),
    ):
        with pytest.raises(ValueError, match=text):
            rows.restore_state(states, indices)
    with pytest.raises(ValueError, match="no simulation 2; give numbers from 0 to 1"):
        rows.clone_state([2])
    environment.close()
    with pytest.raises(RuntimeError, match="no running episode"):
        environment.clone_state()


def test_a_state_outlives_its_environment_and_a_closed_one_takes_it():
    environment = make()
    environment.reset(seed=1)
    actions = helper.actions(environment.action_space, 6)
    go_on(environment, actions[:3])
    state = environment.clone_state()
    wanted = go_on(environment, actions[3:])
    environment.close()
    environment.restore_state(state)
    assert go_on(environment, actions[3:]) == wanted


def test_a_step_that_another_thread_is_in_cannot_be_cloned():
    stopped = helper.StoppedInTheMiddle()
    environment = make(other_controllers=stopped.controller)
    environment.reset(seed=1)
    action = helper.rest(environment.action_space)
    with stopped.during(lambda: environment.step(action)):
        with pytest.raises(RuntimeError, match="another thread is in a call"):
            environment.clone_state()


def test_the_examples_of_the_documentation_run():
    page = (Path(__file__).parents[2] / "docs/reference/environments.md").read_text("utf-8")
    section = page.split("## Clone and restore a state", 1)[1].split("\n## ", 1)[0]
    names: dict[str, Any] = {"gymnasium": gymnasium, "numpy": np, "quicgym": quicgym}
    for example in re.findall(r"^```python\n(.*?)^```", section, re.S | re.M):
        exec(example, names)
    assert len(set(names["returns"])) > 1
    assert names["rewards"].shape == (13,)


@pytest.mark.ns3
def test_ns3_says_which_engine_can():
    environment = make(engine="ns3")
    rows = quicgym.make_vec("tuning", engine="ns3", **SHORT)
    for each in (environment, rows):
        with pytest.raises(NotImplementedError, match="ns-3 cannot copy.*engine='native'"):
            each.clone_state()
        each.close()
