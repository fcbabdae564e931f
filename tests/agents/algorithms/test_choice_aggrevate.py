"""AggreVaTe for choices: what is compared, what it learns from, and that it chooses by it."""

from __future__ import annotations

import numpy as np
import pytest
from helpers import environments as helper
from helpers.training import NEEDS_TRAIN, learned, make_trainer

from quicgym.agents.evaluation.rollouts import play
from quicgym.agents.policies.by_name import find_policy
from quicgym.envs.actions import choices
from quicgym.envs.scenarios.flows import Flow

pytestmark = NEEDS_TRAIN

CONTROLLERS = ["newreno", "bbr", "prague"]
PLACES = [choices("switch").index(name) for name in CONTROLLERS]
ALONE = helper.scenario(duration_s=3.0, flow_list=(Flow(name="agent"),))
BOTH = helper.scenario(duration_s=3.0, flow_list=(Flow(name="a"), Flow(name="b")))


def make(scenario=ALONE, simulations=8, **arguments):
    arguments = {"paths": 4, "rollouts": 2, "n_updates": 1, "controllers": CONTROLLERS, **arguments}
    environment = {"decision_interval_ms": 500, "reward_interval_ms": 100}
    return make_trainer("choice-aggrevate", "quicgym/Switch-v1", simulations, scenario,
                      environment=environment, **arguments)  # fmt: skip


def paths(model, count):
    return model.episodes.draw(count, np.random.default_rng(3))


def in_force(model):
    names = model.batch.observation_names
    return [names.index(f"action_{name}") for name in CONTROLLERS]


def test_what_is_compared_are_the_controllers_alone_on_the_path():
    model = make()
    (path,) = paths(model, 1)
    own = model.play_choices([path]).mean_rewards()
    alone = [play(find_policy(name), path.scenario, seed=path.seed) for name in CONTROLLERS]
    assert own == pytest.approx([episode.metrics["reward"] for episode in alone])


def test_decisions_have_an_advantage_for_each_controller_whose_mean_is_zero():
    model = make()
    rewards = model.collect(np.random.default_rng(1))
    assert len(rewards) == 8
    assert model.step == 4 * (3 + 2) * 6
    assert model.advantages.shape == (8 * 6, 3)
    assert model.advantages.sum(dim=1).abs().max() < 1e-5


def test_the_margin_is_for_the_controller_in_force():
    import torch

    plain, margin = make(), make(margin=0.25)
    for model in (plain, margin):
        model.collect(np.random.default_rng(1))
    shown = margin.observations[:, in_force(margin)]
    assert 0 < shown.sum() <= len(shown)
    assert torch.allclose(margin.advantages - plain.advantages, 0.25 * shown, atol=1e-6)


def test_agents_of_an_episode_share_what_is_learned_from():
    model = make(BOTH)
    model.collect(np.random.default_rng(1))
    assert model.step == 2 * 4 * (3 + 2) * 6
    assert 0.3 * 96 < len(model.observations) < 0.7 * 96


@pytest.mark.parametrize(("exploration", "expected"), [(0.0, {1}), (1.0, {0, 1, 2})])
def test_exploration_takes_controllers_that_are_compared(exploration, expected):
    model = make(exploration=exploration, paths=8)
    model.begin_at(np.array(PLACES[1]))
    model.collect(np.random.default_rng(1))
    shown = model.observations[:, in_force(model)]
    chosen = shown[shown.sum(dim=1) == 1].argmax(dim=1)
    assert expected <= set(chosen.tolist()) <= expected | {0}  # NewReno is where it begins


def test_it_takes_the_controller_that_earns_most_on_paths_like_this():
    import torch

    model = make(BOTH, n_updates=300, learning_rate=3e-3)
    model.collect(np.random.default_rng(1))
    model.advantages[:] = torch.tensor([-0.1, 0.3, -0.2])
    model.update()
    assert set(model.best(model.observations).tolist()) == {PLACES[1]}


def test_a_trained_policy_earns_as_much_as_the_best_controller():
    lossy = helper.scenario(duration_s=3.0, loss=0.05, flow_list=(Flow(name="agent"),))
    model = make(lossy, 16, paths=8, n_updates=100, learning_rate=3e-3, batch_size=64)
    learned(model, 600)
    model.settings = model.settings.model_copy(update={"exploration": 0.0})
    own = model.collect(np.random.default_rng(9)).mean()
    each = model.play_choices(paths(model, 8)).mean_rewards().reshape(8, 3).mean(axis=0)
    assert each.max() > each.min() + 0.1
    assert own > each.max() - 0.1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"paths": 0}, "paths = 0"),
        ({"rollouts": 1.5}, "rollouts = 1.5"),
        ({"margin": -1}, "margin = -1"),
        ({"exploration": 2}, "exploration = 2"),
        ({"keep_fraction": 0}, "keep_fraction = 0"),
        ({"controllers": ["bbr"]}, "two or more, each once"),
        ({"controllers": ["bbr", "bbr"]}, "two or more, each once"),
        ({"controllers": ["bbr", "bbr4"]}, "no choice 'bbr4'"),
    ],
)
def test_wrong_arguments_are_answered_with_the_remedy(arguments, message):
    with pytest.raises(ValueError, match=message):
        make(**arguments)
