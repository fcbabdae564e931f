"""GRPO: what replays of a path are compared by, and that a policy learns from it."""

from __future__ import annotations

import numpy as np
import pytest
from helpers import environments as helper
from helpers.training import NEEDS_TRAIN, learned, made, make_trainer, write_config

import quicgym
from quicgym.agents.training.configuration import load_training
from quicgym.agents.training.folder import RunFolder
from quicgym.envs.observations import observation_names
from quicgym.envs.scenarios.fields import ScenarioError
from quicgym.envs.scenarios.flows import Flow

pytestmark = NEEDS_TRAIN

ALONE = helper.scenario(duration_s=3.0, flow_list=(Flow(name="agent"),))


def make(simulations=8, scenario=ALONE, id="quicgym/Window-v1", **arguments):
    arguments = {"paths": 4, "replays": 2, "batch_size": 64, **arguments}
    return make_trainer("grpo", id, simulations, scenario, **arguments)


def collected(model, seed=1):
    """What one iteration learns from."""
    import torch

    torch.manual_seed(seed)
    rewards = model.collect(np.random.default_rng(seed))
    return rewards, model.decisions


def compared(rewards, gamma=0.98, lengths=1.0):
    """The advantages of pairs of episodes, and how much their means explain.

    `lengths` are those of the steps, in decision intervals.
    """
    from quicgym.agents.algorithms.grpo import compare_replays

    lengths = np.broadcast_to(lengths, rewards.shape)
    times = np.vstack([np.zeros(rewards.shape[1]), lengths.cumsum(axis=0)])
    found = compare_replays(times, rewards, gamma**lengths, 2)
    return found.returns, found.explained_variance


def test_an_advantage_is_what_followed_less_the_mean_of_the_path_s_replays():
    rewards = np.array([[0.0, 0.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0]])
    advantages, _ = compared(rewards, gamma=0.5)
    # To go: 0.5, 1 and 0 on the first path, 0.25, 0.5 and 1 in the second's second replay.
    spreads = np.array([(0.25**2 + 0.5**2) / 3, (0.125**2 + 0.25**2 + 0.5**2) / 3]) ** 0.5
    first, second = spreads + spreads.mean()
    assert advantages[:, 0] == pytest.approx(np.array([0.25, 0.5, 0.0]) / first)
    assert advantages[:, 3] == pytest.approx(np.array([0.125, 0.25, 0.5]) / second)
    assert advantages[:, :2].sum(axis=1) == pytest.approx(np.zeros(3))


def test_what_a_path_earns_whatever_is_done_there_makes_no_advantage():
    rewards = np.random.default_rng(2).normal(size=(20, 8))
    of_paths = np.repeat(np.random.default_rng(3).normal(size=(20, 4)) * 100, 2, axis=1)
    with_paths, explained_variance = compared(rewards + of_paths)
    assert compared(rewards)[0] == pytest.approx(with_paths)
    assert 0.99 < explained_variance < 1


def test_who_makes_decisions_last_longer_has_no_advantage():
    lengths = np.ones((40, 4))
    lengths[:20, 0], lengths[20:, 0] = 2.0, 0.0  # twenty decisions in the time of forty
    earned_at_the_same_rate = 0.3 * lengths
    assert compared(earned_at_the_same_rate, lengths=lengths)[1] > 0.999


def test_a_path_on_which_much_is_at_stake_does_not_drown_the_others():
    rewards = np.random.default_rng(2).normal(size=(20, 8))
    rewards[:, :2] *= 1000
    spreads = compared(rewards)[0].std(axis=0)
    assert spreads.max() < 10 * spreads.min()


def test_a_path_of_many_decisions_does_not_drown_one_of_few():
    rewards = np.random.default_rng(2).normal(size=(400, 8))
    rewards[20:, :4] = 0.0
    lengths = np.ones((400, 8))
    lengths[20:, :4] = 0.0  # the first two paths have ended
    advantages, _ = compared(rewards, gamma=0.5, lengths=lengths)
    norms = np.sqrt((advantages**2).sum(axis=0).reshape(4, 2).sum(axis=1))
    assert norms.max() < 3 * norms.min()  # of 20 and 400 decisions, √20 = 4.5 times as many


def test_an_advantage_with_a_critic_is_what_the_values_did_not_foresee():
    from quicgym.agents.algorithms.grpo import generalized_advantages

    rewards = np.random.default_rng(2).normal(size=(6, 3))
    discounts = np.full((6, 3), 0.9)
    to_go = generalized_advantages(rewards, np.zeros_like(rewards), discounts, 1.0)
    assert to_go[-1] == pytest.approx(rewards[-1])
    assert to_go[:-1] == pytest.approx(rewards[:-1] + 0.9 * to_go[1:])
    assert generalized_advantages(rewards, to_go, discounts, 0.5) == pytest.approx(np.zeros((6, 3)))
    values = np.random.default_rng(3).normal(size=(6, 3))
    after = np.vstack([values[1:], np.zeros((1, 3))])
    assert generalized_advantages(rewards, values, discounts, 0.0) == pytest.approx(
        rewards + 0.9 * after - values
    )
    assert generalized_advantages(rewards, values, discounts, 1.0) == pytest.approx(to_go - values)


def test_a_critic_learns_by_how_much_a_state_is_better_than_those_of_the_replays():
    import torch

    from quicgym.agents.algorithms.group_critic import GroupCritic, States
    from quicgym.agents.policies.architecture import Architecture
    from quicgym.envs.privileged import PRIVILEGED

    rng = np.random.default_rng(4)
    steps, episodes = (axis.ravel() for axis in np.mgrid[:30, :8])
    columns = 2 + len(PRIVILEGED)
    torch.manual_seed(1)
    critic = GroupCritic(Architecture((16,), (16,)), 2, torch.device("cpu"))

    def draw():
        seen = rng.uniform(0, 1, size=(len(steps), columns)).astype(np.float32)
        seen[:, 0] += 10 * (episodes // 4)  # what a path's replays have in common says nothing
        better = seen[:, 0].reshape(30, 2, 4)
        returns = (better - better.mean(axis=2, keepdims=True)).reshape(30, 8)
        return States(seen, steps, episodes), returns

    for _ in range(60):
        states, returns = draw()
        before = critic.values(states, np.mgrid[:31, :8][0], 0.9, 4)
        critic.update(returns, 2, 32)
    states, returns = draw()
    values = critic.values(states, np.mgrid[:31, :8][0], 0.9, 4)
    assert before.reshape(30, 2, 4).sum(axis=2) == pytest.approx(np.zeros((30, 2)), abs=1e-5)
    assert (returns - values).var() < 0.2 * returns.var()


def test_an_episode_that_has_ended_is_worth_nothing():
    import torch

    from quicgym.agents.algorithms.group_critic import GroupCritic, States
    from quicgym.agents.policies.architecture import Architecture
    from quicgym.envs.privileged import PRIVILEGED

    critic = GroupCritic(Architecture((4,), (4,)), 1, torch.device("cpu"))
    with torch.no_grad():
        critic.network[-1].weight.fill_(1.0)
    steps, episodes = np.array([0, 0, 1]), np.array([0, 1, 1])  # the first ends after one step
    seen = np.random.default_rng(1).normal(size=(3, 1 + len(PRIVILEGED))).astype(np.float32)
    times = np.array([[0.0, 0.0], [1.0, 1.0], [1.0, 2.0]])
    values = critic.values(States(seen, steps, episodes), times, 1.0, 2)
    assert values[1, 0] == 0
    assert values[0, 0] == pytest.approx(-values[0, 1]) != 0


def test_a_critic_compares_replays_at_the_same_time():
    import torch

    from quicgym.agents.algorithms.group_critic import GroupCritic, States
    from quicgym.agents.policies.architecture import Architecture
    from quicgym.envs.privileged import PRIVILEGED

    critic = GroupCritic(Architecture((4,), (4,)), 1, torch.device("cpu"))
    with torch.no_grad():
        critic.network[-1].weight.normal_()
    times = np.array([[0.0, 0.0], [1.0, 2.0], [2.0, 4.0], [3.0, 4.0], [4.0, 4.0]])
    steps, episodes = np.array([0, 1, 2, 3, 0, 1]), np.array([0, 0, 0, 0, 1, 1])
    of_times = np.random.default_rng(1).normal(size=(2, 1 + len(PRIVILEGED))).astype(np.float32)
    seen = of_times[(times[steps, episodes] // 2).astype(int)]
    values = critic.values(States(seen, steps, episodes), times, 1.0, 2)
    assert values == pytest.approx(np.zeros((4, 2)), abs=1e-6)


def test_replays_differ_by_the_policy_s_choices_alone():
    import torch

    model = make(scenario=ALONE.model_copy(update={"duration_s": 1.0}))
    with torch.no_grad():  # a policy that never hesitates
        model.actor.action.weight.mul_(1e6)
    rewards, decisions = collected(model)
    assert (rewards[::2] == rewards[1::2]).all()
    assert not decisions.advantages.any()


def test_all_decisions_are_counted_and_those_after_slow_start_learned_from():
    model = make()
    _, decisions = collected(model)
    names = observation_names(1, "window")
    slow_start = names.index("slow_start") - len(names)
    assert model.step == 8 * 30
    assert 100 < len(decisions.observations) < 8 * 30
    assert not decisions.observations[:, slow_start].any()
    assert len({len(column) for column in decisions}) == 1


def test_decisions_of_a_flow_that_is_not_running_are_not_learned_from():
    flows = Flow(name="first"), Flow(name="second", stop_s=1.0)
    model = make(scenario=helper.scenario(duration_s=3.0, flow_list=flows))
    _, decisions = collected(model)
    assert model.step == 8 * 60
    assert 8 * 10 < len(decisions.observations) <= 8 * (30 + 10)


def test_agents_of_an_episode_learn_from_what_they_earned_together():
    model = make(scenario=helper.scenario(flows=2))
    rewards, decisions = collected(model)
    assert len(rewards) == 8
    assert 8 * 20 < len(decisions.observations) < model.step <= 2 * 8 * 20


def test_more_episodes_than_simulations_are_played_in_parts():
    import torch

    whole, parts = make(simulations=8), make(simulations=3)
    for model in (whole, parts):
        with torch.no_grad():
            model.actor.action.weight.mul_(1e6)
    assert (collected(whole)[0] == collected(parts)[0]).all()
    ours, theirs = whole.decisions, parts.decisions
    assert len(ours.observations) == len(theirs.observations)
    assert torch.equal(ours.observations.sort(dim=0)[0], theirs.observations.sort(dim=0)[0])


def test_the_update_raises_the_probability_of_what_went_better():
    model = make(paths=8, replays=4, n_epochs=1, learning_rate=1e-3)
    _, decisions = collected(model)
    model.update()
    after = model.distribution(decisions.observations).log_prob(decisions.actions)
    change = (after - decisions.log_probabilities).detach()
    better = decisions.advantages > 1
    worse = decisions.advantages < -1
    assert better.sum() > 20 and worse.sum() > 20
    assert change[better].mean() > change[worse].mean() + 1e-3


def test_the_learning_rate_follows_its_schedule():
    model = learned(make(learning_rate="linear_1e-3"), 480)
    assert model.step == 480  # in two iterations
    assert model.optimizer.param_groups[0]["lr"] == pytest.approx(0.5e-3)


def flattened(model):
    import torch

    return torch.cat([weights.detach().flatten() for weights in model.network.parameters()])


def test_what_has_become_likely_enough_is_not_made_likelier():
    import torch

    model = make(n_epochs=1)
    _, decisions = collected(model)
    moved = decisions.log_probabilities - 1  # so that all are e times as probable now
    better, worse = torch.ones_like(moved), -torch.ones_like(moved)
    before = flattened(model)
    model.decisions = decisions._replace(log_probabilities=moved, advantages=better)
    model.update()
    assert torch.equal(flattened(model), before)
    model.decisions = decisions._replace(log_probabilities=moved, advantages=worse)
    model.update()
    assert not torch.equal(flattened(model), before)


def test_entropy_is_rewarded():
    import torch

    model = make(n_epochs=1, ent_coef=10.0, learning_rate=1e-2)
    with torch.no_grad():
        model.actor.action.bias[0] = 2.0
    _, decisions = collected(model)
    before = model.distribution(decisions.observations).entropy().mean()
    model.update()
    assert model.distribution(decisions.observations).entropy().mean() > before + 0.01


def test_an_iteration_is_learned_from_as_often_as_asked(monkeypatch):
    model = make(n_epochs=3)
    batches = []
    train_on = model.distribution

    def remember(features):
        batches.append(len(features))
        return train_on(features)

    monkeypatch.setattr(model, "distribution", remember)
    _, decisions = collected(model)
    batches.clear()
    model.update()
    assert sum(batches) == 3 * len(decisions.observations)
    assert max(batches) == 64


def test_advantages_have_one_scale_in_every_iteration():
    _, decisions = collected(make(paths=8, replays=4))
    assert decisions.advantages.std() == pytest.approx(1, abs=0.1)
    assert decisions.advantages.abs().max() <= 4


@pytest.mark.parametrize("privileged_critic", [False, True])
def test_it_learns_to_fill_the_path_and_no_more(privileged_critic):
    model = make(
        16,
        paths=4,
        replays=8,
        n_epochs=4,
        batch_size=256,
        learning_rate=3e-3,
        gamma=0.9,
        privileged_critic=privileged_critic,
    )
    untrained, _ = collected(model)
    learned(model, 20_000)
    own, _ = collected(model)
    assert own.mean() > untrained.mean() + 0.1


def test_actions_of_a_box_stay_in_it():
    model = learned(make(id="quicgym/Tuning-v1", n_epochs=1), 1)
    assert model.decisions.actions.abs().max() > 1  # drawn, and clipped where they are taken
    assert np.abs(model.batch.actions).max() == 1


def test_scenarios_in_which_slow_start_never_ends_are_named():
    brief = helper.scenario(duration_s=0.3, flow_list=(Flow(name="agent"),))
    with pytest.raises(ScenarioError, match="slow start was not over in any of 8 episodes"):
        learned(make(scenario=brief), 1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"paths": 0}, "paths = 0"),
        ({"replays": 1}, "replays = 1: .*at least 2"),
        ({"gamma": 1.1}, "gamma = 1.1"),
        ({"clip_range": 0}, "clip_range = 0"),
        ({"n_epochs": 0.5}, "n_epochs = 0.5"),
        ({"gae_lambda": 0.9}, "gae_lambda needs network.privileged_critic=true"),
        ({"gae_lambda": 1.5, "privileged_critic": True}, "gae_lambda = 1.5"),
    ],
)
def test_wrong_arguments_are_answered_with_the_remedy(arguments, message):
    with pytest.raises(ValueError, match=message):
        make(**arguments)


def test_training_goes_on_from_another_policy(tmp_path, monkeypatch):
    from quicgym.agents.training.run import train

    monkeypatch.chdir(tmp_path)
    train(load_training(str(write_config(tmp_path, "aggrevate"))), tmp_path / "first", "")
    start = ("start.policy=first", "start.temperature=0.01", "steps=1")
    second = load_training(str(write_config(tmp_path, "grpo")), start)
    train(second, tmp_path / "second", "")
    first = quicgym.load_policy(tmp_path / "first").description.training["step"]
    rewards = RunFolder(tmp_path / "first").curve()
    assert RunFolder(tmp_path / "second").curve()[0] == rewards[first]
    published = quicgym.load_policy(tmp_path / "second").description
    assert published.training["config"]["start"]["policy"] == "first"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            (
                "start.policy=window",
                "environment.decision_interval_rtts=1",
                "environment.observations=recent",
            ),
            r"network.extractor_sizes = \(256,\), here \(16,\); .* begin with another policy",
        ),
        (
            ("start.policy=window", "environment.decision_interval_ms=50"),
            "environment.decision_interval_ms = 100.0, here 50.0",
        ),
        (("start.policy=windw",), "did you mean window?"),
        (("start.temperature=0.1",), "start.temperature is for a start.policy"),
        (
            ("start.policy=window", "algorithm=aggrevate"),
            "start.policy is for ppo, coordinate-aggrevate and grpo",
        ),
    ],
)
def test_a_policy_that_cannot_be_begun_with_is_named(changes, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(quicgym.UserError, match=message):
        made(tmp_path, "hyperparameters={}", *changes, algorithm="grpo")
