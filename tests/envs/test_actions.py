"""The mapping from actions to parameters, its inverse, and the presets."""

import math

import gymnasium
import numpy as np
import pytest
from helpers import environments as helper
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from quicgym import Simulation, _core, controllers
from quicgym.envs import action_effect as module
from quicgym.envs import environments, find_environment
from quicgym.envs.action_effect import action_effect, differs
from quicgym.envs.actions import (
    PRESETS,
    WINDOW_EXPONENTS,
    action_parameters,
    preset_action,
)
from quicgym.envs.decisions import Decisions
from quicgym.envs.observations import observation_names

ALL = "tuning[all]"
SPACE = _core.find_action_space(ALL)
tuning_actions = arrays.arrays(
    np.float32, len(SPACE.coordinates), elements=st.floats(-1, 1, width=32)
)


def test_the_presets_and_their_order():
    assert PRESETS[:5] == ("bbr", "bbr-smooth", "bbr-extended", "bbr-combined", "ebcc")


@pytest.mark.parametrize("preset", PRESETS)
def test_a_presets_action_stands_for_exactly_its_parameters(preset):
    parameters = controllers.find(preset).complete()
    set_by_action = action_parameters(preset_action(preset))
    assert set_by_action == {name: parameters[name] for name in set_by_action}
    others = {name: value for name, value in parameters.items() if name not in set_by_action}
    bbr = controllers.find("bbr").complete()
    assert others == {name: bbr[name] for name in others}


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("engine", ["native", pytest.param("ns3", marks=pytest.mark.ns3)])
def test_a_preset_as_policy_is_the_controller_packet_by_packet(preset, engine):
    scenario = helper.scenario(flows=2, duration_s=6)
    # The presets that average the RTT would go beyond the safe envelope.
    environment = find_environment("tuning")(
        scenario, engine=engine, record_deliveries=True, safe_envelope=False
    )
    rows = helper.play(environment, [preset_action(preset)] * 100, seed=5)
    deliveries, seed = environment.deliveries(), environment.episode_seed
    controller = {"controller": preset}
    as_controller = helper.play(environment, [preset_action("bbr")] * 100, 5, controller)
    environment.close()
    assert rows[-1][3]
    assert helper.same(rows[1:], as_controller[1:])
    with Simulation(
        scenario, engine, seed, [preset, "cubic"], record_deliveries=True
    ) as simulation:
        simulation.run()
        assert np.array_equal(deliveries, simulation.deliveries())


@given(tuning_actions)
def test_every_action_is_a_valid_set_of_parameters(action):
    parameters = controllers.find("bbr").complete(action_parameters(action, space=ALL))
    assert 1 <= len(parameters["gain_cycle"]) <= 64


@example(np.array([0.5] * 17 + [-1], np.float32))  # a bandwidth window of no whole number
@given(tuning_actions)
def test_the_mapping_can_be_inverted(action):
    parameters = action_parameters(action, space=ALL)
    again = action_parameters(np.array(SPACE.encode(parameters), np.float32), space=ALL)
    assert again.keys() == parameters.keys()
    for name, values in parameters.items():
        # Near its infinity, gamma's last digits are lost in single precision.
        tolerance = 1e-6 * max(1.0, parameters["gamma"][0] / 30) if name == "gamma" else 1e-6
        for value, other in zip(values, again[name], strict=True):
            # Values have four digits after the point.
            assert value == other or math.isclose(value, other, rel_tol=tolerance, abs_tol=2e-4)


def test_zero_is_bbr_and_steps_go_both_ways():
    bbr = controllers.find("bbr").complete()
    at_zero = action_parameters(np.zeros(18), space=ALL)
    assert at_zero == {name: bbr[name] for name in at_zero}
    low, high = (action_parameters(end * np.ones(18), space=ALL) for end in (-1, 1))
    assert low["gamma"] == [math.inf] and high["gamma"] == [0]
    assert low["beta"] == [0] and high["beta"] == [1]
    assert low["alpha"] == high["alpha"] == [0.999]
    assert low["smoothing_updates_rtprop"] == [0] and high["smoothing_updates_rtprop"] == [1]
    assert low["gain_cycle"] == [0.625]
    assert high["gain_cycle"] == [2.5, 1.5, *[2.0] * 6, *[1.0] * 56]
    assert low["cwnd_gain"] == [0.5] and high["cwnd_gain"] == [8]
    assert low["startup_gain"] == [1.4425] and high["startup_gain"] == [5.77]
    assert low["rtprop_window_s"] == [1.25] and high["rtprop_window_s"] == [80]
    assert low["probe_rtt_duration_ms"] == [20] and high["probe_rtt_duration_ms"] == [2000]
    assert low["bandwidth_window_rounds"] == [1] and high["bandwidth_window_rounds"] == [264]


@given(arrays.arrays(np.float32, 18, elements=st.floats(-0.5, 0.5, width=32)))
def test_noise_around_zero_leaves_the_averaged_rtt_off(action):
    # With the least weight of the average BBR's window follows the latest RTT.
    parameters = action_parameters(action, space=ALL)
    assert parameters["alpha"] == [0] and parameters["smoothing_updates_rtprop"] == [1]


def test_the_window_has_a_gain():
    action = preset_action("bbr", space=ALL, cwnd_gain=1.1, gain_cycle=[1.06, 0.82, 1, 1])
    parameters = action_parameters(action, space=ALL)
    assert parameters["cwnd_gain"] == [1.1]
    assert parameters["gain_cycle"] == [1.06, 0.82, 1, 1]


def test_presets_take_other_parameters_within_the_space():
    assert action_parameters(preset_action("ebcc", gamma=60))["gamma"][0] == pytest.approx(60)
    for parameters, message in [
        ({"gama": 60}, "no parameter 'gama'"),
        ({"gain_cycle": [3.0, 0.5]}, "outside the action space 'tuning'"),
        ({"gain_cycle": [1.0] * 65}, "outside the action space 'tuning'"),
        ({"cwnd_gain": 9}, "outside the action space 'tuning'"),
    ]:
        with pytest.raises(ValueError, match=message):
            preset_action("ebcc", **parameters)
    with pytest.raises(ValueError, match="'cubic' is not a point.*quicgym.baseline"):
        preset_action("cubic")


@pytest.mark.parametrize("action", [np.zeros(3), np.full(13, 2.0), np.full(13, np.nan)])
def test_what_is_no_action_has_no_parameters(action):
    with pytest.raises(ValueError, match="give 13 numbers from -1 to 1, for gamma, beta"):
        action_parameters(action)


def test_rate_scales_window_and_pacing_rate_by_powers_of_two():
    environment = find_environment("rate")(helper.scenario(loss=0), safe_envelope=False)
    _, info = environment.reset(seed=1)
    assert info["flow_window_bytes"] == 12_000
    *_, info = environment.step(np.array([0, 1], np.float32))
    assert info["flow_pacing_rate_mbps"] == pytest.approx(1.25 * 12_000 * 8e-6 / 0.04, rel=0.2)
    rate = info["flow_pacing_rate_mbps"]
    *_, info = environment.step(np.array([1, -0.5], np.float32))
    assert info["flow_window_bytes"] == 24_000
    assert info["flow_pacing_rate_mbps"] == pytest.approx(rate * 2**-0.5)
    for _ in range(8):
        *_, info = environment.step(np.array([-1, 0], np.float32))
    assert info["flow_window_bytes"] == 2_400
    assert info["flow_pacing_rate_mbps"] == pytest.approx(rate * 2**-0.5)


def test_nothing_but_the_agent_moves_the_window():
    scenario = helper.scenario(loss=0.2, duration_s=4)
    environment = find_environment("rate")(scenario, safe_envelope=False)
    rows = helper.play(environment, [np.zeros(2, np.float32)] * 100, seed=1)
    assert {row[4]["flow_window_bytes"] for row in rows} == {12_000}
    assert environment.statistics(0)["congestion_events"] > 10


SLOW_START = observation_names(128, "window").index("slow_start")
SAME = WINDOW_EXPONENTS.index(0.0)


def after_slow_start(**arguments):
    """Window without its envelope, at the first decision that finds slow start over."""
    arguments = {"scenario": helper.scenario(loss=0, duration_s=10)} | arguments
    environment = find_environment("window")(**arguments, safe_envelope=False)
    observation, info = environment.reset(seed=1)
    while observation[SLOW_START]:
        observation, *_, info = environment.step(SAME)
    return environment, info


def scaled(window, exponent):
    return min(max(window * 2**exponent, 2_400), 1e8)


def test_the_factors_of_window():
    assert WINDOW_EXPONENTS == (
        *(-1 / 2**n for n in range(6)),
        0,
        *(1 / 2**n for n in reversed(range(6))),
    )
    environment = gymnasium.make("quicgym/Window-v1")
    assert environment.action_space == gymnasium.spaces.Discrete(13)


@pytest.mark.parametrize("action", [0, 5, 7, 12])
def test_a_factor_multiplies_the_window_once(action):
    environment, info = after_slow_start()
    before = info["flow_window_bytes"]
    observation, *_, info = environment.step(action)
    window = int(scaled(before, WINDOW_EXPONENTS[action]))
    assert 2_400 < window < 1e8
    assert info["flow_window_bytes"] == window
    shown = observation[-13:]
    assert shown[action] == 1.0 == shown.sum()
    # Once for each decision; between two nothing moves it, and the last digits are cut off.
    *_, info = environment.step(action)
    assert info["flow_window_bytes"] == int(scaled(window, WINDOW_EXPONENTS[action]))
    *_, info = environment.step(SAME)
    assert info["flow_window_bytes"] == int(scaled(window, WINDOW_EXPONENTS[action]))


@pytest.mark.parametrize("action, end", [(0, 2_400), (12, 100_000_000)])
def test_the_window_stays_in_its_range(action, end):
    environment, info = after_slow_start(decision_interval_ms=1)
    while info["flow_window_bytes"] != end:
        before = info["flow_window_bytes"]
        *_, info = environment.step(action)
        assert info["flow_window_bytes"] == int(scaled(before, WINDOW_EXPONENTS[action]))
    *_, info = environment.step(action)
    assert info["flow_window_bytes"] == end


@pytest.mark.parametrize("action", [0, 5, 7, 12])
def test_factors_wait_until_slow_start_is_over(action):
    scenario = helper.scenario(loss=0)
    arguments = {"scenario": scenario, "decision_interval_ms": 20, "record_deliveries": True}
    environment = find_environment("window")(**arguments, safe_envelope=False)

    def slow_start(chosen):
        observation, info = environment.reset(seed=1)
        assert not observation[-13:].any()
        windows, in_force = [], []
        while observation[SLOW_START]:
            windows.append(info["flow_window_bytes"])
            observation, *_, info = environment.step(chosen)
            in_force.append(observation[-13:].argmax())
        assert set(in_force) == {chosen}
        return [*windows, info["flow_window_bytes"]], environment.deliveries()

    (left_alone, deliveries), (windows, others) = slow_start(SAME), slow_start(action)
    assert len(set(windows)) > 3
    assert windows == left_alone and np.array_equal(deliveries, others)
    *_, info = environment.step(action)
    assert info["flow_window_bytes"] == int(scaled(windows[-1], WINDOW_EXPONENTS[action]))


@pytest.mark.parametrize("engine", ["native", pytest.param("ns3", marks=pytest.mark.ns3)])
def test_a_factor_of_one_is_the_controller_packet_by_packet(engine):
    scenario = helper.scenario(flows=2, duration_s=4)
    environment = find_environment("window")(
        scenario, engine=engine, record_deliveries=True, safe_envelope=False
    )
    rows = helper.play(environment, [SAME] * 100, seed=5)
    deliveries, seed = environment.deliveries(), environment.episode_seed
    environment.close()
    assert rows[0][0][SLOW_START] and not rows[-1][0][SLOW_START] and rows[-1][3]
    with Simulation(
        scenario, engine, seed, ["guided", "cubic"], record_deliveries=True
    ) as simulation:
        simulation.run()
        assert np.array_equal(deliveries, simulation.deliveries())


def test_after_slow_start_nothing_but_the_agent_moves_the_window():
    environment, info = after_slow_start(scenario=helper.scenario(loss=0.2, duration_s=4))
    before = info["flow_window_bytes"]
    seen, over = set(), False
    while not over:
        *_, over, info = environment.step(SAME)
        seen.add(info["flow_window_bytes"])
    assert seen == {before}
    assert environment.statistics(0)["congestion_events"] > 10


def test_a_scenarios_own_parameters_outside_the_space_give_way_to_any_action():
    scenario = helper.scenario(controller_parameters={"bbr": {"gain_cycle": (3.0, 0.5)}})
    environment = find_environment("tuning")(scenario)
    observation, _ = environment.reset(seed=1)
    assert np.all(observation[-13:] == 0)
    assert environment.parameters()["gain_cycle"] == [3.0, 0.5]
    environment.step(np.zeros(13, np.float32))
    in_force = environment.parameters()
    expected = action_parameters(np.zeros(13))
    assert {name: in_force[name] for name in expected} == expected


def test_rate_stays_below_the_largest_window_and_pacing_rate():
    scenario = helper.scenario(loss=0)
    environment = find_environment("rate")(scenario, decision_interval_ms=5, safe_envelope=False)
    environment.reset(seed=1)
    for _ in range(12):
        environment.step(np.zeros(2, np.float32))
    for _ in range(20):
        *_, info = environment.step(np.ones(2, np.float32))
    assert info["flow_window_bytes"] == 100_000_000
    assert info["flow_pacing_rate_mbps"] == 80_000


def test_the_action_that_is_shown_leaves_the_parameters_as_they_are():
    # So large a gamma loses digits in the action's single precision.
    scenario = helper.scenario(controller_parameters={"bbr": {"gamma": 1e10 / 3}})
    environment = find_environment("tuning")(scenario)
    observation, _ = environment.reset(seed=1)
    shown = observation[-13:]
    assert action_parameters(shown)["gamma"] != [1e10 / 3]
    environment.step(shown)
    assert environment.parameters()["gamma"] == [1e10 / 3]


@pytest.mark.parametrize("environment", sorted(environments()))
def test_an_effect_is_repeated_and_notices_whether_there_is_a_safe_envelope(
    environment, monkeypatch
):
    before = action_effect(environment)
    action_effect.cache_clear()
    assert action_effect(environment) == before
    enveloped = find_environment(environment).safe_envelope
    monkeypatch.setattr(
        module,
        "Decisions",
        lambda name, **fields: Decisions(name, **fields, safe_envelope=not enveloped),
    )
    action_effect.cache_clear()
    changed = action_effect(environment)
    action_effect.cache_clear()
    assert differs(before, changed)


def test_an_effect_is_of_the_controller_that_actions_tune():
    assert differs(action_effect("tuning"), action_effect("tuning", "cubic"))
