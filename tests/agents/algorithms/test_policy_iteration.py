"""Direct policy iteration: what it compares, and that it learns from it."""

from __future__ import annotations

import numpy as np
import pytest
from helpers import environments as helper
from helpers.training import NEEDS_TRAIN, learned

from quicgym.agents.evaluation.rollouts import play
from quicgym.agents.policies.policy import Decisions
from quicgym.envs.actions import choices
from quicgym.envs.observations import observation_names
from quicgym.envs.scenarios.fields import ScenarioError
from quicgym.envs.scenarios.flows import Flow

pytestmark = NEEDS_TRAIN

CONTROLLERS = ["newreno", "bbr", "ibcca"]
# One open flow, and one that keeps the queue full.
SCENARIO = helper.scenario(
    duration_s=3.0, flow_list=(Flow(name="agent"), Flow(name="other", controller="cubic"))
)
SELF_PLAY = helper.scenario(
    duration_s=3.0, flow_list=(Flow(name="agent"), Flow(name="too", start_s=0.2))
)


def make(simulations=6, scenario=SCENARIO, environment="quicgym/Switch-v0", **arguments):
    from quicgym.agents.algorithms.dpi import DirectPolicyIteration
    from quicgym.agents.algorithms.registry import find
    from quicgym.agents.policies.networks import Architecture
    from quicgym.agents.policies.stable_baselines3 import policy_arguments
    from quicgym.envs.sb3 import make_sb3

    environments = make_sb3(
        environment,
        simulations,
        scenario=scenario,
        per_flow=True,
        decision_interval_ms=500,
        reward_interval_ms=100,
        history_length=2,
    )
    architecture = Architecture("mlp", (16,), (16,), "tanh", "argmax")
    return DirectPolicyIteration(
        "MlpPolicy",
        environments,
        **{"controllers": CONTROLLERS, "comparisons": 5, "n_updates": 1, **arguments},
        policy_kwargs=policy_arguments(find("dpi"), architecture, 2, None),
        seed=1,
        device="cpu",
    )


class Scripted:
    """One controller up to the first observation of anything, another from there on."""

    name, options = "scripted", None
    decisions = Decisions("switch", 500.0, None, 2)

    def __init__(self, first, then):
        self.first, self.then = (choices("switch").index(name) for name in (first, then))

    def __call__(self, observations):
        return np.where(observations[..., :16].any(axis=-1), self.then, self.first)


@pytest.mark.parametrize("scenario", [SCENARIO, SELF_PLAY], ids=["one agent", "two agents"])
@pytest.mark.parametrize(
    ("weights", "scripted"),
    [
        # Nothing is known yet: the policy goes on with what it prefers, at the second decision.
        ([1], lambda compared: Scripted(compared, "ibcca")),
        # From the second decision on to the end.
        ([0, 1], lambda compared: Scripted("ibcca", compared)),
    ],
)
def test_a_comparison_is_what_each_controller_earns_in_the_same_episode(
    weights, scripted, scenario
):
    model = make(scenario=scenario, decision_weights=weights, exploration=0.0)
    batch = model.get_env().environments.batch
    agents = batch.agent_count
    model.bias_towards(choices("switch").index("ibcca"))
    learned(model, 1)
    np.random.seed(5)
    rng = np.random.default_rng(np.random.randint(2**31, size=4))
    rows = []
    for count in (2, 2, 1):  # two episodes fit side by side
        episodes = [batch.source.draw(rng, None) for _ in range(count)]
        rng.choice(len(weights), size=count, p=weights)
        rng.random((count, len(weights), agents))
        rng.choice(len(CONTROLLERS), (count, len(weights), agents))
        rng.integers(np.full(count, agents))
        rows += [
            [
                play(scripted(name), scenario, seed=episode.seed).metrics["reward"]
                for name in CONTROLLERS
            ]
            for episode in episodes
        ]
    expected = np.array(rows) - np.mean(rows, axis=1, keepdims=True)
    assert np.allclose(model.advantages.numpy(), expected, atol=1e-6)
    assert np.abs(expected).max() > 0.01
    known = model.observations[:, :16].any(dim=1)
    assert known.all() if weights == [0, 1] else not known.any()


def test_the_observation_is_the_one_at_the_decision():
    model = learned(make(decision_weights=[1, 1, 1], comparisons=30), 1)
    in_force = model.observations[:, -len(choices("switch")) :]
    assert (in_force.sum(dim=1) == 1).all()
    later = model.observations[model.observations[:, :16].any(dim=1)]
    assert 10 < len(later) < 30
    assert (later[:, 8:16].abs().sum(dim=1) > 0).all()


def test_only_decisions_with_a_weight_are_compared():
    model = learned(make(decision_weights=[0, 0, 1], comparisons=10), 1)
    assert (model.observations[:, :16].abs().reshape(10, 2, 8).sum(dim=2) > 0).all()
    model = learned(make(decision_weights=[1, 0, 0], comparisons=10), 1)
    assert not model.observations[:, :16].any()


def test_the_controller_in_force_is_credited_the_margin():
    plain, credited = learned(make(), 1), learned(make(margin=0.05), 1)
    places = [choices("switch").index(name) for name in CONTROLLERS]
    in_force = plain.observations[:, -len(choices("switch")) :][:, places]
    later = plain.observations[:, :16].any(dim=1, keepdim=True)
    assert later.any() and not later.all()
    expected = 0.05 * in_force * later  # at first nothing is lost by choosing another
    assert np.allclose(credited.advantages - plain.advantages, expected, atol=1e-6)


def in_force(model):
    """The controllers in force at the decisions that were compared, as places."""
    return model.observations[:, -len(choices("switch")) :].argmax(dim=1).numpy()


def test_before_a_comparison_controllers_are_tried_at_random():
    found = {}
    for exploration in (0.0, 1.0):
        model = make(decision_weights=[0, 0, 1], comparisons=12, exploration=exploration)
        model.bias_towards(choices("switch").index("ibcca"))
        found[exploration] = set(in_force(learned(model, 1)))
    places = [choices("switch").index(name) for name in CONTROLLERS]
    assert found == {0.0: {places[2]}, 1.0: set(places)}


def test_each_agent_is_sampled_in_some_of_the_comparisons():
    flows = (Flow(name="agent"), Flow(name="far", extra_delay_ms=100))
    model = make(
        scenario=helper.scenario(duration_s=2.0, flow_list=flows),
        decision_weights=[0, 1],
        comparisons=12,
    )
    min_rtt = observation_names(2, "switch").index("min_rtt")
    far = learned(model, 1).observations[:, min_rtt].numpy() > 0.4  # log10(40) / 5 and of 240
    assert far.any() and not far.all()


def test_the_update_is_the_one_that_was_asked_for():
    import torch

    model = learned(make(weight_decay=0.5), 1)
    assert model.policy.optimizer.param_groups[0]["weight_decay"] == 0.5
    model.advantages = torch.full_like(model.advantages, 10.0)
    model.train()
    # Huber's loss: beyond 0.2 it grows in proportion, so that a disaster does not outweigh all.
    assert model.logger.name_to_value["train/loss"] == pytest.approx(0.2 * (10 - 0.1), abs=0.1)


def chosen(model, observations):
    return model.predict(observations, deterministic=True)[0]


def test_it_learns_to_choose_what_earns_more():
    model = make(30, comparisons=40, decision_weights=[0, 1], n_updates=60, learning_rate=5e-3)
    model.bias_towards(choices("switch").index("bbr"))
    places = np.array([choices("switch").index(name) for name in CONTROLLERS])
    assert (chosen(model, np.zeros((3, 36), dtype=np.float32)) == places[1]).all()
    learned(model, 6000)
    taken = chosen(model, model.observations.numpy())[:, None] == places
    assert taken.any(axis=1).all()  # never one that is not compared
    always = model.advantages.mean(dim=0)  # what each would earn, chosen always
    assert always[1] < 0
    assert model.advantages.numpy()[taken].mean() > max(0.05, 0.95 * always.max())


def test_what_is_not_compared_stays_ruled_out_however_strong_the_decay():
    model = learned(make(n_updates=300, weight_decay=1.0, learning_rate=1e-2), 60)
    bias = model.policy.action_net.bias.detach().numpy()
    others = ~np.isin(np.arange(len(bias)), [choices("switch").index(x) for x in CONTROLLERS])
    assert (bias[others] == -10).all()


def test_where_no_episode_comes_to_a_comparison_it_says_so():
    with pytest.raises(ScenarioError, match="no episode of 5 lasted .* earlier ones"):
        learned(make(decision_weights=[*[0] * 30, 1]), 1)


def test_it_counts_every_decision_that_was_simulated():
    model = learned(make(comparisons=2), 1)
    assert model.num_timesteps == 2 * len(CONTROLLERS) * 6


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"controllers": ["ibcca", "cubik"]}, "no choice 'cubik'; did you mean cubic"),
        ({"controllers": ["ibcca"]}, "give two or more"),
        ({"controllers": ["ibcca", "ibcca"]}, "each once"),
        ({"comparisons": 0}, "comparisons = 0"),
        ({"decision_weights": []}, "decision_weights = "),
        ({"decision_weights": [0, 0]}, "one above 0"),
        ({"decision_weights": [1, -1]}, "decision_weights = "),
        ({"margin": -1}, "margin = -1"),
        ({"exploration": 2}, "exploration = 2"),
        ({"simulations": 2}, "environment.simulations = 2"),
    ],
)
def test_wrong_arguments_are_answered_with_the_remedy(arguments, message):
    with pytest.raises(ValueError, match=message):
        make(**arguments)


def test_the_controllers_of_switch_v1_are_compared_there_alone():
    four = ["bbr3", "copa", "vivace", "prague"]
    model = make(environment="quicgym/Switch-v1", controllers=four)
    rewards = np.concatenate(list(model.collect_rollouts(np.random.default_rng(1))))
    assert len(rewards) == len(model.observations) and (rewards > 0).all()
    model.bias_towards(choices("switch_v1").index("prague"))
    with pytest.raises(ValueError, match="'cubic' is none of those compared: bbr3"):
        model.bias_towards(choices("switch_v1").index("cubic"))
    with pytest.raises(ValueError, match="no choice 'copa'"):
        make(controllers=["copa", "cubic"])
