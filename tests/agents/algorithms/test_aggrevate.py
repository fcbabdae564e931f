"""AggreVaTe: what fixed windows are worth, and that a policy learns it from what it meets."""

from __future__ import annotations

import numpy as np
import pytest
from helpers import environments as helper
from helpers.training import NEEDS_TRAIN, learned, make_trainer

from quicgym.envs.actions import WINDOW_EXPONENTS
from quicgym.envs.info import INFO_COLUMNS
from quicgym.envs.observations import observation_names
from quicgym.envs.scenarios.fair_share import fair_window_bytes
from quicgym.envs.scenarios.fields import ScenarioError
from quicgym.envs.scenarios.flows import Flow
from quicgym.envs.scenarios.links import RateStep

pytestmark = NEEDS_TRAIN

ALONE = helper.scenario(duration_s=3.0, flow_list=(Flow(name="agent"),))


def make(simulations=8, scenario=ALONE, **arguments):
    windows = [-3, -1, 0, 1, 3]
    arguments = {"paths": 4, "rollouts": 2, "n_updates": 1, "windows": windows, **arguments}
    free = {"safe_envelope": False}  # which would bound the largest of these windows
    return make_trainer(
        "aggrevate", "quicgym/Window-v1", simulations, scenario, environment=free, **arguments
    )


def paths(model, count):
    return model.episodes.draw(count, np.random.default_rng(3))


def rollouts(model):
    """The mean rewards of the policy's episodes in one iteration."""
    return model.collect(np.random.default_rng(1))


def test_a_fixed_window_is_what_its_name_says_to_the_end():
    model = make(simulations=5)
    fair_bytes = fair_window_bytes(ALONE)
    model.play_fixed_windows(paths(model, 1), np.array([fair_bytes]))
    windows = model.batch.info[:, INFO_COLUMNS.index("flow_window_bytes")]
    expected = np.maximum(fair_bytes * 2.0 ** np.array([-3, -1, 0, 1, 3]), 2400)
    assert np.abs(np.log2(windows / expected)).max() < 0.02  # half of the smallest step, rounded


def test_alone_on_a_path_a_small_window_wastes_it_and_a_large_one_overflows_the_queue():
    model = make()
    fixed = model.play_fixed_windows(paths(model, 3), np.full(3, fair_window_bytes(ALONE)))
    rewards = fixed.mean_rewards().reshape(3, 5)
    assert (rewards[:, 2] > rewards[:, 0] + 0.2).all()
    assert (rewards[:, 2] > rewards[:, 4] + 0.2).all()


def test_what_a_window_earns_from_a_time_on_leaves_out_what_came_before():
    from quicgym.agents.algorithms.episodes import Trajectories

    times_s = np.array([[2.0, 2.0], [3.0, 4.0], [4.0, 4.0], [6.0, 4.0]])  # the second ends at 4 s
    returns = np.array([[0.0, 0.0], [1.0, 1.0], [1.0, 1.0], [5.0, 1.0]])
    trajectories = Trajectories(times_s, returns, 5)
    assert trajectories.mean_rewards() == pytest.approx([1.25, 0.5])
    assert trajectories.values(0, np.array([2.0, 3.0, 3.5, 5.0])) == pytest.approx(
        [1.25, 4 / 3, 4 / 2.5, 2.0]
    )
    assert trajectories.values(0, np.array([4.0, 7.0])) == pytest.approx(
        [2.0, 2.0]
    )  # the last step
    assert trajectories.values(1, np.array([2.0, 3.0, 5.0])) == pytest.approx([0.5, 0.5, 0.5])


def test_on_a_path_that_becomes_slower_a_large_window_is_worth_less_from_then_on():
    link = ALONE.bottleneck.model_copy(
        update={"rate_schedule": (RateStep(at_s=1.5, rate_mbps=2.0),)}
    )
    slower = ALONE.model_copy(update={"bottleneck": link})
    model = make(scenario=slower, windows=[-3, -2, -1, 0, 1, 3])
    fixed = model.play_fixed_windows(paths(model, 1), np.array([fair_window_bytes(slower)]))
    values = model.window_values(fixed, np.array([0, 0]), np.array([0.0, 2.0]))
    smaller, fair, twice = values.T[2:5]  # a half, the whole and twice the share at the beginning
    assert fair[0] > smaller[0] + 0.1
    assert fair[1] < smaller[1] + 0.01
    assert twice[1] < twice[0] - 0.1


def test_parts_that_end_sooner_stand_still():
    model = make(simulations=3)
    fixed = model.play_fixed_windows(paths(model, 1), np.array([fair_window_bytes(ALONE)]))
    assert fixed.times_s.shape == fixed.returns.shape == (31, 5)  # in two parts
    assert (fixed.times_s[-1] == 3.0).all()


def test_scenarios_in_which_slow_start_never_ends_are_named():
    brief = helper.scenario(duration_s=0.3, flow_list=(Flow(name="agent"),))
    with pytest.raises(ScenarioError, match="slow start was not over in any of 8 episodes"):
        learned(make(scenario=brief), 1)


def test_a_factor_is_worth_what_the_window_that_it_leads_to_has_earned():
    model = make(windows=[-1, 0, 1], hold=2)
    values = np.array([[0.0, 1.0, 0.5]])
    fair, double = model.factor_advantages(np.repeat(values, 2, axis=0), np.array([1.0, 2.0]))
    by_exponent = dict(zip(WINDOW_EXPONENTS, fair, strict=True))
    relative = {exponent: value - by_exponent[0.0] for exponent, value in by_exponent.items()}
    assert relative[-0.25] == pytest.approx(-0.5)
    assert relative[0.25] == pytest.approx(-0.25)
    assert relative[-1.0] == relative[-0.5] == pytest.approx(-1.0)  # beyond what was played
    assert relative[1.0] == relative[0.5] == pytest.approx(-0.5)
    assert sum(by_exponent.values()) == pytest.approx(0.0)
    assert WINDOW_EXPONENTS[double.argmax()] == -0.5  # which has to be taken twice


def test_decisions_in_slow_start_are_not_learned_from():
    model = learned(make(keep_fraction=1.0), 1)
    names = observation_names(1, "window")
    slow_start = names.index("slow_start") - len(names)
    assert len(model.observations) > 100
    assert not model.observations[:, slow_start].any()
    assert len(model.observations) == len(model.advantages)


def test_a_part_of_the_decisions_is_kept_and_all_are_counted():
    whole, part = learned(make(keep_fraction=1.0), 1), learned(make(keep_fraction=0.25), 1)
    assert whole.step == part.step == 4 * (5 + 2) * 30
    assert 0.15 < len(part.observations) / len(whole.observations) < 0.35


def test_an_untrained_policy_takes_a_window_that_becomes_smaller():
    import torch

    model = make()
    greedy = model.best(torch.zeros(model.batch.observations.shape))
    assert {WINDOW_EXPONENTS[choice] for choice in greedy} == {-0.125}


@pytest.mark.parametrize(("exploration", "fewest", "most"), [(0.0, 1, 1), (1.0, 8, 13)])
def test_some_episodes_explore(exploration, fewest, most):
    model = learned(make(keep_fraction=1.0, exploration=exploration), 1)
    last = model.observations[:, -len(WINDOW_EXPONENTS) :]
    chosen = last[last.sum(dim=1) == 1].argmax(dim=1)
    assert fewest <= len(set(chosen.tolist())) <= most


def test_rollouts_are_on_the_paths_that_were_played_with_seeds_of_their_own(monkeypatch):
    model = make(simulations=20, keep_fraction=1.0)
    batch = model.batch
    played, compared = [], []
    begin, values_of = batch.begin_chosen, model.window_values

    def remember(rows, episodes):
        played.append(list(episodes))
        return begin(rows, episodes)

    def remember_paths(fixed, path, times_s):
        compared.append(path)
        return values_of(fixed, path, times_s)

    monkeypatch.setattr(batch, "begin_chosen", remember)
    monkeypatch.setattr(model, "window_values", remember_paths)
    model.collect(np.random.default_rng(1))
    fixed, own = played
    on_each_path = [path.scenario for path in fixed[::5] for _ in range(2)]
    assert [episode.scenario for episode in own] == on_each_path
    seeds = {episode.seed for episode in own}
    assert len(seeds) == 8 and not seeds & {path.seed for path in fixed}
    assert compared[0][-8:].tolist() == [0, 0, 1, 1, 2, 2, 3, 3]  # of the last decision


def test_agents_of_an_episode_hold_the_same_window():
    model = make(scenario=helper.scenario(flows=2, duration_s=3.0), keep_fraction=1.0)
    fixed = model.play_fixed_windows(paths(model, 2), np.full(2, 10_000.0))
    assert fixed.returns.shape[1] == 2 * 5
    batch = model.batch
    held = batch.info[:, INFO_COLUMNS.index("flow_window_bytes")].reshape(-1, 2)[:10]
    assert np.allclose(np.log2(held[:, 0] / held[:, 1]), 0, atol=0.1)
    learned(model, 1)
    assert len(model.observations) > 0


def test_it_learns_to_fill_the_path_and_no_more():
    model = make(16, paths=8, n_updates=150, batch_size=128, keep_fraction=1.0, learning_rate=3e-3)
    untrained = rollouts(model).mean()
    learned(model, 6000)
    own = rollouts(model).mean()
    fixed = model.play_fixed_windows(paths(model, 3), np.full(3, fair_window_bytes(ALONE)))
    best = fixed.mean_rewards().max()
    assert own > untrained + 0.2
    assert own > 0.8 * best


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"paths": 0}, "paths = 0"),
        ({"windows": [0]}, "two exponents or more"),
        ({"windows": [0, 1, 1]}, "in rising order"),
        ({"exploration": -0.1}, "exploration = -0.1"),
        ({"keep_fraction": 0}, "keep_fraction = 0"),
    ],
)
def test_wrong_arguments_are_answered_with_the_remedy(arguments, message):
    with pytest.raises(ValueError, match=message):
        make(**arguments)
