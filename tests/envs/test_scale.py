"""Scale-v1: factors for a controller that goes on deciding."""

import gymnasium
import numpy as np
import pytest
from helpers import environments as helper

from quicgym import controllers
from quicgym.envs.scale import ScaleEnv
from quicgym.envs.scenarios.fields import ScenarioError

DECIDING = [entry.name for entry in controllers.catalogue() if not entry.steered]


@pytest.mark.parametrize("controller", DECIDING)
@pytest.mark.parametrize("engine", ["native", pytest.param("ns3", marks=pytest.mark.ns3)])
def test_unscaled_it_is_the_controller_packet_by_packet(controller, engine):
    environment = ScaleEnv(
        helper.scenario(flows=2, duration_s=3),
        engine=engine,
        controller=controller,
        record_deliveries=True,
        safe_envelope=False,
    )
    played = []
    alone = ScaleEnv.variant(controller).preset_action(controller)
    for options in (None, {"controller": controller}):
        helper.play(environment, [alone] * 50, seed=3, options=options)
        played.append(environment.deliveries())
    environment.close()
    assert len(played[0]) > 500 and np.array_equal(*played)


def test_factors_are_powers_of_four_of_what_the_controller_has_and_do_not_add_up():
    environment = gymnasium.make(
        "quicgym/Scale-v1", scenario=helper.scenario(loss=0), controller="external"
    ).unwrapped
    environment.reset(seed=1)
    *_, info = environment.step(np.zeros(2))
    window, rate = info["flow_window_bytes"], info["flow_pacing_rate_mbps"]
    for _ in range(3):
        *_, info = environment.step(np.array([0.5, -1]))
        assert info["flow_window_bytes"] == 2 * window
        assert info["flow_pacing_rate_mbps"] == pytest.approx(rate / 4, rel=0.3)
    *_, info = environment.step(np.zeros(2))
    assert info["flow_window_bytes"] == window


def test_the_window_has_two_datagrams_at_least():
    environment = ScaleEnv(helper.scenario(loss=0.3), controller="newreno")
    rows = helper.play(environment, [-np.ones(2)] * 100, seed=1)
    assert min(row[4]["flow_window_bytes"] for row in rows[1:]) == 2400


def test_a_controller_that_there_is_not_is_named():
    with pytest.raises(ScenarioError, match="cubik"):
        ScaleEnv(controller="cubik")
    with pytest.raises(ValueError, match="'vegas' with {}.*scale 'cubic'"):
        ScaleEnv.preset_action("vegas")
