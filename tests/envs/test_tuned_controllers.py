"""Tuning with `controller`: the agent tunes IBCCA, Cubic+ or any other of the catalogue."""

import gymnasium
import numpy as np
import pytest

import quicgym
from quicgym import _core, controllers
from quicgym.envs.actions import (
    PRESETS,
    controller_action,
    controller_parameters,
    preset_action,
    tuned_space,
)
from quicgym.envs.vector import row_seed

SCENARIO = "cubic-plus-2mbps-50kb"
TUNABLE = tuple(entry.name for entry in controllers.catalogue() if not entry.steered)
the_papers = pytest.mark.parametrize("controller", ["ibcca", "cubic+"])


def make(controller, **arguments):
    arguments = {"scenario": SCENARIO, "episode_s": 5, **arguments}
    return gymnasium.make("quicgym/Tuning-v1", controller=controller, **arguments)


def play(environment, action, options=None):
    """The last observation of an episode with this action in every step."""
    environment.reset(seed=1, options=options)
    over = False
    while not over:
        observation, _, terminated, truncated, _ = environment.step(action)
        over = terminated or truncated
    return observation


@pytest.mark.parametrize("controller", TUNABLE)
def test_every_controller_that_decides_by_itself_has_a_coordinate_for_each_number(controller):
    names = _core.find_action_space(tuned_space(controller)).coordinates
    parameters = controllers.find(controller).parameters
    assert len(names) == len(set(names)) == sum(len(row.default) for row in parameters)
    environment = make(controller, episode_s=0.5)
    assert environment.action_space.shape == (len(names),)
    environment.reset(seed=1)
    for corner in (-1, 1):
        environment.step(np.full(len(names), corner, np.float32))
        in_force = environment.unwrapped.parameters()
        for row in parameters:
            assert set(in_force[row.name]) == {row.maximum if corner > 0 else row.minimum}


@the_papers
def test_the_action_of_the_defaults_is_the_controller_itself(controller):
    scenario = quicgym.load_scenario(SCENARIO).model_copy(update={"controller_parameters": {}})
    environment = make(controller, scenario=scenario, record_deliveries=True)
    play(environment, controller_action(controller))
    tuned = environment.unwrapped.deliveries()
    environment = make(None, scenario=scenario, record_deliveries=True)
    play(environment, preset_action("bbr"), options={"controller": controller})
    assert len(tuned) > 100
    arrived = [
        "flow",
        "packet_number",
        "time",
    ]  # a packet may be sent later and wait less at the host
    np.testing.assert_array_equal(tuned[arrived], environment.unwrapped.deliveries()[arrived])


def test_an_action_sets_the_parameters_that_it_stands_for():
    environment = make("cubic+", scenario="ebcc-single")
    environment.reset(seed=1)
    chosen = {"theta": 0.8, "period_ms": 25.0, "min_rtt_tolerance_packets": 3.0, "c": 0.7}
    action = controller_action("cubic+", **chosen)
    environment.step(action)
    in_force = environment.unwrapped.parameters()
    assert in_force == controllers.find("cubic+").complete(chosen)
    assert in_force == controller_parameters("cubic+", action)


def test_a_list_has_a_coordinate_for_each_of_its_numbers():
    names = _core.find_action_space(tuned_space("ibcca")).coordinates
    cycles = [name for name in names if name.startswith("gain_cycle")]
    assert cycles == [
        *(f"gain_cycle_without_rise_{place}" for place in range(1, 9)),
        *(f"gain_cycle_{place}" for place in range(1, 9)),
    ]
    cycle = [0.7, 1, 1, 1.1, 1, 1, 1, 1.3]
    action = controller_action("ibcca", gain_cycle=cycle)
    assert controller_parameters("ibcca", action)["gain_cycle"] == cycle
    with pytest.raises(ValueError, match="an action has 8 numbers for it; give as many"):
        controller_action("ibcca", gain_cycle=[1.0])
    with pytest.raises(ValueError, match="numbers from -1 to 1, for test_rounds"):
        controller_parameters("ibcca", action[1:])


@the_papers
def test_an_observation_shows_the_parameters_in_force_from_the_start(controller):
    # A scenario that leaves controllers as they are; those of the older papers set slow_start.
    environment = make(controller, scenario="ledbat-single")
    observation, _ = environment.reset(seed=1)
    action = controller_action(controller)
    np.testing.assert_array_equal(observation[-len(action) :], action)
    other = np.clip(action + 0.1, -1, 1).astype(np.float32)
    observation, *_ = environment.step(other)
    np.testing.assert_array_equal(observation[-len(action) :], other)


@the_papers
def test_the_same_seed_gives_the_same_episode_single_and_in_rows(controller):
    environments = quicgym.make_vec(
        "tuning", 2, controller=controller, scenario=SCENARIO, episode_s=5, num_threads=2
    )
    environments.reset(seed=4)
    size = environments.single_action_space.shape[0]
    action = np.linspace(-0.5, 0.5, size, dtype=np.float32)
    rows = [environments.step(np.stack([action, action]))[0] for _ in range(20)]
    environment = make(controller)
    for row in range(2):
        environment.reset(seed=row_seed(4, row))
        for step in range(20):
            observation = environment.step(action)[0]
            np.testing.assert_array_equal(observation, rows[step][row])


@the_papers
def test_several_agents_tune_it(controller):
    parallel = pytest.importorskip("quicgym.envs.parallel")
    environment = parallel.ParallelCongestionControlEnv(
        "tuning", "ebcc-flows-3", controller=controller, episode_s=2
    )
    environment.reset(seed=1)
    action = controller_action(controller)
    while environment.agents:
        assert environment.action_space(environment.agents[0]).shape == action.shape
        rewards = environment.step(dict.fromkeys(environment.agents, action))[1]
        assert all(np.isfinite(list(rewards.values())))


def test_without_controller_the_space_is_the_one_that_policies_were_published_for():
    environment = make(None)
    assert environment.action_space.shape == (13,)
    assert environment.unwrapped.controller == "bbr"
    assert environment.unwrapped.presets == PRESETS
    tuning = quicgym.envs.find_environment("tuning")
    assert tuning is quicgym.envs.TuningEnv
    tuned = tuning.variant("ibcca")
    assert tuned.presets == ("ibcca",)
    np.testing.assert_array_equal(tuned.preset_action("ibcca"), controller_action("ibcca"))
    with pytest.raises(ValueError, match="'bbr' is not a point of the action space"):
        tuned.preset_action("bbr")


@pytest.mark.parametrize(
    "environment, controller, text",
    [
        ("Tuning-v1", "guided", "'guided': cannot be tuned, an agent decides in its place"),
        ("Tuning-v1", "external", "give one of bbr, bbr-combined"),
        ("Tuning-v1", "ibca", "'ibca': .*ibcca"),
        ("Rate-v1", "ibcca", "the actions of quicgym/Rate-v1 are for 'external'"),
    ],
)
def test_a_controller_that_cannot_be_tuned_is_refused(environment, controller, text):
    with pytest.raises(ValueError, match=text):
        gymnasium.make(f"quicgym/{environment}", controller=controller)
