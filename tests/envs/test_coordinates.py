"""The coordinates of Tuning: an action has the mission's four, or those that are asked for."""

import gymnasium
import numpy as np
import pytest

import quicgym
from quicgym.envs.actions import action_parameters, preset_action

FOUR = ("gamma", "beta", "gain_cycle", "alpha")
GAINS = tuple(f"gain_{i}" for i in range(1, 9))
NAMES = ("gamma", "beta", "cycle_length", "entry_gain_minimum", *GAINS, "alpha")


ALL = ("all",)


def make(coordinates=None, **arguments):
    arguments = {"scenario": "ebcc-flows-3", "flow": "flow-1", "episode_s": 3, **arguments}
    return gymnasium.make("quicgym/Tuning-v1", coordinates=coordinates, **arguments).unwrapped


def deliveries(environment, action):
    environment.reset(seed=1)
    over = False
    while not over:
        _, _, terminated, truncated, _ = environment.step(action)
        over = terminated or truncated
    return environment.deliveries()


def test_an_action_has_the_coordinates_in_the_order_in_which_they_are_named():
    assert make().action_names == NAMES
    assert make(FOUR).action_names == NAMES
    assert set(make(ALL).action_names) > set(NAMES)
    environment = make(("cwnd_gain", "beta"))
    assert environment.action_space.shape == (2,)
    assert environment.action_names == ("cwnd_gain", "beta")
    shown = [name for name in environment.observation_names if name.startswith("action_")]
    assert shown == ["action_cwnd_gain", "action_beta"]


def test_the_other_parameters_stay_those_of_bbr():
    environment = make()
    environment.reset(seed=1)
    action = np.linspace(-0.9, 0.9, len(NAMES), dtype=np.float32)
    environment.step(action)
    whole = make(ALL)
    named = dict(zip(NAMES, action, strict=True))
    filled = [named.get(name, 0.0) for name in whole.action_names]
    in_force = environment.parameters()
    for name, values in action_parameters(
        np.array(filled, np.float32), space="tuning[all]"
    ).items():
        assert in_force[name] == values
    for name in ("cwnd_gain", "startup_gain", "rtprop_window_s", "probe_rtt_duration_ms"):
        assert in_force[name] == quicgym.controllers.find("bbr").complete()[name]


@pytest.mark.parametrize(
    "controller", ["bbr", "bbr-smooth", "bbr-extended", "bbr-combined", "ebcc"]
)
def test_a_preset_in_part_gives_the_packets_of_the_whole_preset(controller):
    environment = make(record_deliveries=True)
    assert controller in environment.presets
    in_part = deliveries(environment, environment.preset_action(controller))
    whole = deliveries(
        make(ALL, record_deliveries=True), preset_action(controller, space="tuning[all]")
    )
    np.testing.assert_array_equal(in_part, whole)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("Tuning", {}),
        ("Tuning", {"coordinates": ALL}),
        ("Tuning", {"controller": "ibcca"}),
    ],
)
def test_an_environment_s_own_presets_are_actions_that_it_takes(name, arguments):
    environment = gymnasium.make(f"quicgym/{name}-v1", **arguments).unwrapped
    environment.reset(seed=1)
    assert environment.interface().action_space == environment.action_space_name
    assert environment.interface().controller == environment.controller
    for controller in environment.presets:
        environment.step(environment.preset_action(controller))


def test_a_preset_that_needs_another_coordinate_is_none_of_the_part():
    assert set(make(("gamma", "beta", *GAINS, "alpha")).presets) == {"bbr", "bbr-smooth", "ebcc"}
    part = make()
    with pytest.raises(ValueError, match="outside the action space"):
        part.preset_action("bbr", cwnd_gain=3)


@pytest.mark.parametrize(
    "fixed",
    [
        {"startup_gain": 1.75},
        # No coordinate moves the first, and the second follows the gain cycle unless it is fixed.
        {"extra_acked_gain": 1.0, "bandwidth_window_rounds": 10.0},
    ],
)
@pytest.mark.parametrize("controller", ["bbr", "ebcc", "bbr-extended"])
def test_a_fixed_parameter_keeps_its_value_whatever_the_action(controller, fixed):
    coordinates = (*FOUR, *(f"{name}={value:g}" for name, value in fixed.items()))
    # With room for ACKs the envelope acts, and a controller in the agent's place has none.
    enveloped = "extra_acked_gain" not in fixed
    environment = make(coordinates, record_deliveries=True, safe_envelope=enveloped)
    assert environment.action_names == NAMES and controller in environment.presets
    preset = deliveries(environment, environment.preset_action(controller))
    options = {"controller": controller, "parameters": fixed}
    as_controller = make(record_deliveries=True)
    as_controller.reset(seed=1, options=options)
    over = False
    while not over:
        _, _, terminated, truncated, _ = as_controller.step(np.zeros(len(NAMES), np.float32))
        over = terminated or truncated
    np.testing.assert_array_equal(preset, as_controller.deliveries())
    environment.reset(seed=1)
    environment.step(np.full(len(NAMES), 0.3, np.float32))
    for name, value in fixed.items():
        assert environment.parameters()[name] == [value]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (
            {"coordinates": ("gama",)},
            r"'gama' is no coordinate; did you mean gamma\? there are: all, gain_cycle, gamma",
        ),
        ({"coordinates": ("beta", "beta")}, "'beta' is named twice"),
        ({"coordinates": ("gain_cycle", "gain_2")}, "'gain_2' is named twice"),
        ({"coordinates": ("startup_gain=2",)}, "there are none"),
        ({"coordinates": ("beta", "theta=2")}, "'theta=2' fixes no parameter; there are gamma, "),
        ({"coordinates": ("beta", "cwnd_gain=2", "cwnd_gain=3")}, "'cwnd_gain' is fixed twice"),
        ({"coordinates": ("beta", "startup_gain=2x")}, "needs a number after the ="),
        (
            {"coordinates": ("beta", "startup_gain=20")},
            "'startup_gain=20' is outside the range, 1.1 to 10",
        ),
        ({"coordinates": ("beta", "gain_cycle=2")}, "'gain_cycle=2' fixes no parameter"),
        (
            {"coordinates": ("bandwidth_window", "bandwidth_window_rounds=10")},
            "'bandwidth_window_rounds' cannot be moved by actions and",
        ),
        ({"coordinates": ("beta", "gamma", "beta=0.3")}, "'beta' cannot be moved by actions and"),
        ({"coordinates": "beta"}, "give a list of names"),
        ({"coordinates": ("theta",), "controller": "ibcca"}, "leave one of the two out"),
        ({"environment": "window", "coordinates": ("beta",)}, "cannot be taken in part"),
    ],
)
def test_coordinates_that_do_not_fit_are_refused(arguments, text):
    with pytest.raises(ValueError, match=text):
        quicgym.Decisions(**arguments)
