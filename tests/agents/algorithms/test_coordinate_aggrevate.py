"""AggreVaTe for coordinates: what constant settings earn, and that a policy chooses by it."""

from __future__ import annotations

import numpy as np
import pytest
from helpers import environments as helper
from helpers.training import NEEDS_TRAIN, make_trainer

from quicgym.envs.observations import observation_names
from quicgym.envs.scenarios.flows import Flow

pytestmark = NEEDS_TRAIN

ALONE = helper.scenario(duration_s=3.0, flow_list=(Flow(name="agent"),))
VALUES = {"cwnd_gain": [-1, 0, 1], "startup_gain": [-0.5, 0.5]}


def make(simulations=8, scenario=ALONE, id="quicgym/Tuning-v1", **arguments):
    arguments = {"paths": 4, "rollouts": 2, "n_updates": 1, "values": VALUES, **arguments}
    if id == "quicgym/Tuning-v1":
        arguments["environment"] = {"coordinates": ("all",), **arguments.get("environment", {})}
    return make_trainer("coordinate-aggrevate", id, simulations, scenario, **arguments)


def begun(model):
    """The model with all coordinates at 0, as `start.preset: bbr` would have it."""
    import torch

    with torch.no_grad():
        model.actor.action.weight.zero_()
        model.actor.action.bias.zero_()
    return model


def names():
    from quicgym.envs.actions import find_action_space

    return list(find_action_space("tuning[all]").coordinates)


def test_each_setting_differs_from_the_first_action_in_its_coordinate_alone(monkeypatch):
    model = begun(make(simulations=20))
    batch = model.batch
    given, step = [], batch.step

    def remember():
        given.append(batch.actions.copy())
        step()

    monkeypatch.setattr(batch, "step", remember)
    model.collect(np.random.default_rng(1))
    window, startup = names().index("cwnd_gain"), names().index("startup_gain")
    settings = np.zeros((5, 18), np.float32)
    settings[:3, window] = [-1, 0, 1]
    settings[3:, startup] = [-0.5, 0.5]
    assert np.array_equal(given[0], np.tile(settings, (4, 1)))  # four paths side by side
    assert np.array_equal(model.base, np.zeros(18))


def test_advantages_are_differences_to_the_mean_of_their_coordinate():
    model = begun(make())
    values = np.array([[1.0, 2.0, 3.0, 5.0, 5.0], [0.0, 0.0, 9.0, -4.0, 4.0]])
    expected = [[-1, 0, 1, 0, 0], [-3, -3, 6, -4, 4]]
    assert model.advantages_of(values).tolist() == expected


def test_the_best_setting_is_a_mean_weighted_by_advantages_over_the_temperature():
    import torch

    model = begun(make(temperature=0.1))
    advantages = torch.tensor([[0.0, 0.0, 0.0, 0.0, 0.1], [0.0, 9.0, 0.0, 9.0, 0.0]])
    e = np.e
    settings = [[0.0, (0.5 * e - 0.5) / (e + 1)], [0.0, -0.5]]
    assert model.best_settings(advantages).numpy() == pytest.approx(np.array(settings), abs=1e-6)


def test_agents_of_an_episode_hold_the_same_setting_and_share_what_is_learned_from():
    flows = (Flow(name="a"), Flow(name="b"), Flow(name="c", controller="cubic"))
    both = helper.scenario(duration_s=3.0, flow_list=flows)
    model = begun(make(scenario=both, values={"cwnd_gain": [-0.5, 0.5]}, keep_fraction=1.0))
    rewards = model.collect(np.random.default_rng(1))
    assert len(rewards) == 4 * 2
    assert model.step == 2 * 4 * (2 + 2) * 30
    decisions = 2 * 4 * 2 * 30
    assert 0.4 * decisions < len(model.observations) < 0.6 * decisions


def test_it_goes_to_the_setting_that_earns_most_and_leaves_the_others_alone():
    import torch

    model = begun(make(values={"cwnd_gain": [-1, -0.5, 0, 0.5, 1]}, n_updates=300,
                       learning_rate=3e-3, keep_fraction=1.0))  # fmt: skip
    model.collect(np.random.default_rng(1))
    model.advantages[:] = torch.tensor([0.0, 0.5, 0.0, -0.5, -1.0])
    model.update()
    actions = model._act(model.observations[:50])
    window = names().index("cwnd_gain")
    assert np.abs(actions[:, window] + 0.5).max() < 0.2
    assert not np.delete(actions, window, axis=1).any()


def test_where_settings_are_worth_something_else_it_learns_to_tell():
    import torch

    model = begun(make(values={"cwnd_gain": [-1, 0, 1]}, n_updates=400, learning_rate=3e-3,
                       keep_fraction=1.0))  # fmt: skip
    model.collect(np.random.default_rng(1))
    age = model.observations[:, observation_names(4, "tuning").index("age")]
    late = age > age.median()
    better = torch.tensor([0.5, 0.0, -0.5])
    model.advantages[:] = torch.where(late[:, None], better, better.flip(0))
    model.update()
    window = names().index("cwnd_gain")
    chosen = model._act(model.observations)[:, window]
    late = late.numpy()
    assert chosen[late].mean() < -0.3 < 0.3 < chosen[~late].mean()


def test_exploration_takes_settings_that_are_compared():
    model = begun(make(keep_fraction=1.0, exploration=1.0))
    model.collect(np.random.default_rng(1))
    shown = model.observations[:, -18:]
    window = names().index("cwnd_gain")
    assert set(shown[:, window].tolist()) == {-1.0, 0.0, 1.0}
    assert len(model.observations) == len(model.advantages) > 100


@pytest.mark.parametrize(
    ("id", "arguments", "message"),
    [
        ("quicgym/Tuning-v1", {"values": {}}, "give a list of settings for one or more of gamma"),
        ("quicgym/Tuning-v1", {"values": {"cwnd": [0, 1]}}, "no coordinate 'cwnd'.*cwnd_gain"),
        ("quicgym/Tuning-v1", {"values": {"beta": [1, 0]}}, "values = .*beta: .*rising"),
        ("quicgym/Tuning-v1", {"values": {"beta": [0, 2]}}, "from -1 to 1"),
        ("quicgym/Tuning-v1", {"temperature": 0}, "temperature = 0"),
        ("quicgym/Rate-v1", {"values": {"window": [0, 1]}}, "no settings.*take Tuning"),
    ],
)
def test_what_cannot_be_compared_is_named(id, arguments, message):
    with pytest.raises(ValueError, match=message):
        make(id=id, **arguments)
