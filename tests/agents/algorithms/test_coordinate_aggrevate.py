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
SETTINGS = [{}, {"cwnd_gain": -1}, {"cwnd_gain": 0.5, "startup_gain": -0.5}]


def make(simulations=8, scenario=ALONE, id="quicgym/Tuning-v1", **arguments):
    arguments = {"paths": 4, "rollouts": 2, "n_updates": 1, "settings": SETTINGS, **arguments}
    if id == "quicgym/Tuning-v1":
        arguments["environment"] = {"coordinates": ("all",), **arguments.get("environment", {})}
    return make_trainer("coordinate-aggrevate", id, simulations, scenario, **arguments)


def begun(model, **coordinates):
    """The model with these coordinates and all others at 0, as `start.preset` would have it."""
    action = np.zeros(18, np.float32)
    for name, value in coordinates.items():
        action[names().index(name)] = value
    model.begin_at(action)
    return model


def names():
    from quicgym.envs.actions import find_action_space

    return list(find_action_space("tuning[all]").coordinates)


def gone_on(model):
    """The model after the start with a policy whose actions depend on what it sees; the policy."""
    import torch

    policy = make().actor
    with torch.no_grad():
        policy.action.weight.mul_(30)
    model.begin_with(policy, 1.0)
    return model, policy


def chosen_by(policy, observations):
    import torch

    with torch.inference_mode():
        return policy(torch.as_tensor(observations)).numpy()


def played(model, monkeypatch):
    """The batch's observations and actions at every step of an iteration."""
    batch = model.batch
    seen, step = [], batch.step

    def remember():
        seen.append((batch.observations.copy(), batch.actions.copy()))
        step()

    monkeypatch.setattr(batch, "step", remember)
    model.collect(np.random.default_rng(1))
    return seen


def test_each_setting_differs_from_the_first_action_in_its_coordinates_alone(monkeypatch):
    model = begun(make(simulations=12), gain_1=0.25, cwnd_gain=0.75)
    window, startup = names().index("cwnd_gain"), names().index("startup_gain")
    expected = np.zeros((3, 18), np.float32)
    expected[:, names().index("gain_1")] = 0.25
    expected[:, window] = [0.75, -1, 0.5]
    expected[2, startup] = -0.5
    first = played(model, monkeypatch)[0][1]
    assert np.array_equal(first, np.tile(expected, (4, 1)))  # four paths side by side


def test_after_a_policy_settings_are_shifts_of_what_training_began_with(monkeypatch):
    import torch

    model, policy = gone_on(make(simulations=12))
    with torch.no_grad():
        model.actor.action.bias.add_(9.0)  # as if much had been learned
    observations, given = played(model, monkeypatch)[20]
    expected = chosen_by(policy, observations).reshape(4, 3, 18)
    window, startup = names().index("cwnd_gain"), names().index("startup_gain")
    expected[:, 1, window] -= 1
    expected[:, 2, window] += 0.5
    expected[:, 2, startup] -= 0.5
    assert np.allclose(given.reshape(4, 3, 18), expected.clip(-1, 1), atol=1e-6)


def test_the_best_action_is_a_mean_weighted_by_advantages_over_the_temperature():
    import torch

    model = begun(make(temperature=0.1), gain_1=0.25)
    nothing = torch.zeros(2, model.batch.observations.shape[1])
    best = model.best_actions(nothing, torch.tensor([[0.0, 0.0, 0.1], [0.0, 9.0, 0.0]]))
    e = np.e
    window, startup = names().index("cwnd_gain"), names().index("startup_gain")
    expected = np.zeros((2, 18))
    expected[:, names().index("gain_1")] = 0.25
    expected[0, [window, startup]] = np.array([-1 + 0.5 * e, -0.5 * e]) / (2 + e)
    expected[1, window] = -1
    assert best.numpy() == pytest.approx(expected, abs=1e-6)


def test_after_a_policy_the_best_action_is_a_mean_of_its_shifted_actions():
    import torch

    model, policy = gone_on(make(temperature=0.1))
    observations = torch.rand(20, model.batch.observations.shape[1])
    best = model.best_actions(observations, torch.tensor([[0.0, 0.0, 9.0]]).repeat(20, 1))
    window, startup = names().index("cwnd_gain"), names().index("startup_gain")
    shift = np.zeros(18, np.float32)
    shift[[window, startup]] = [0.5, -0.5]
    expected = (chosen_by(policy, observations) + shift).clip(-1, 1)
    assert np.allclose(best.numpy().clip(-1, 1), expected, atol=1e-6)


def test_advantages_are_differences_to_the_mean_of_the_settings():
    model = begun(make(keep_fraction=1.0))
    model.collect(np.random.default_rng(1))
    assert model.advantages.shape[1] == 3
    assert np.abs(model.advantages.sum(dim=1).numpy()).max() < 1e-6
    assert model.advantages.abs().max() > 0.01


def test_agents_of_an_episode_hold_the_same_setting_and_share_what_is_learned_from():
    flows = (Flow(name="a"), Flow(name="b"), Flow(name="c", controller="cubic"))
    both = helper.scenario(duration_s=3.0, flow_list=flows)
    model = begun(make(scenario=both, settings=[{}, {"cwnd_gain": -0.5}], keep_fraction=1.0))
    rewards = model.collect(np.random.default_rng(1))
    assert len(rewards) == 4 * 2
    assert model.step == 2 * 4 * (2 + 2) * 30
    decisions = 2 * 4 * 2 * 30
    assert 0.4 * decisions < len(model.observations) < 0.6 * decisions


def test_it_goes_to_the_setting_that_earns_most_and_leaves_the_others_alone():
    import torch

    model = begun(make(settings=[{"cwnd_gain": value} for value in (-1, -0.5, 0, 0.5, 1)],
                       n_updates=300, learning_rate=3e-3, keep_fraction=1.0))  # fmt: skip
    model.collect(np.random.default_rng(1))
    model.advantages[:] = torch.tensor([0.0, 0.5, 0.0, -0.5, -1.0])
    model.update()
    actions = chosen_by(model.actor, model.observations)
    window = names().index("cwnd_gain")
    assert np.abs(actions[:, window] + 0.5).max() < 0.2
    assert not np.delete(actions, window, axis=1).any()


def test_where_settings_are_worth_something_else_it_learns_to_tell():
    import torch

    model = begun(make(settings=[{"cwnd_gain": value} for value in (-1, 0, 1)], n_updates=400,
                       learning_rate=3e-3, keep_fraction=1.0))  # fmt: skip
    model.collect(np.random.default_rng(1))
    age = model.observations[:, observation_names(4, "tuning").index("age")]
    late = age > age.median()
    better = torch.tensor([0.5, 0.0, -0.5])
    model.advantages[:] = torch.where(late[:, None], better, better.flip(0))
    model.update()
    window = names().index("cwnd_gain")
    chosen = chosen_by(model.actor, model.observations)[:, window]
    late = late.numpy()
    assert chosen[late].mean() < -0.3 < 0.3 < chosen[~late].mean()


def test_exploration_takes_settings_that_are_compared():
    model = begun(make(settings=[{"cwnd_gain": value} for value in (-1, 0, 1)], keep_fraction=1.0,
                       exploration=1.0))  # fmt: skip
    model.collect(np.random.default_rng(1))
    shown = model.observations[:, -18:]
    window = names().index("cwnd_gain")
    assert set(shown[:, window].tolist()) == {-1.0, 0.0, 1.0}
    assert len(model.observations) == len(model.advantages) > 100


@pytest.mark.parametrize(
    ("id", "arguments", "message"),
    [
        ("quicgym/Tuning-v1", {"settings": []}, "give two or more, each with some of gamma"),
        ("quicgym/Tuning-v1", {"settings": [{"beta": 0.5}]}, "give two or more"),
        ("quicgym/Tuning-v1", {"settings": [{}, {"cwnd": 1}]}, "no coordinate 'cwnd'.*cwnd_gain"),
        ("quicgym/Tuning-v1", {"settings": [{}, {"beta": 2}]}, r"settings\.1\.beta = 2"),
        ("quicgym/Tuning-v1", {"temperature": 0}, "temperature = 0"),
        ("quicgym/Rate-v1", {"settings": [{}, {"window": 1}]}, "no settings.*take Tuning"),
    ],
)
def test_what_cannot_be_compared_is_named(id, arguments, message):
    with pytest.raises(ValueError, match=message):
        make(id=id, **arguments)
