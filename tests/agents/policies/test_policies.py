"""Hand-coded policies in single and vector environments."""

import dataclasses

import gymnasium
import numpy as np
import pytest
from helpers import environments as helper

import quicgym
from quicgym.agents.evaluation.rollouts import play
from quicgym.agents.policies.by_name import find_policy
from quicgym.agents.policies.hand_coded import controller_policy, preset_policy
from quicgym.agents.policies.policy import ConstantPolicy, RandomPolicy
from quicgym.envs import ENVIRONMENTS, ScenarioError, load_scenario
from quicgym.envs.scenarios.flows import Flow


def earned(environment, policy, seed=3):
    observation, _ = environment.reset(seed=seed, options=policy.options)
    rewards = []
    while True:
        observation, reward, terminated, truncated, _ = environment.step(policy(observation))
        rewards.append(reward)
        if terminated or truncated:
            return rewards


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_every_policy_gives_actions_of_the_space(name):
    vector = quicgym.make_vec(name, num_envs=3, scenario=helper.scenario())
    space = vector.single_action_space
    policies = [
        RandomPolicy(space, seed=1),
        controller_policy("cubic", space),
        ConstantPolicy("middle", np.zeros(space.shape, space.dtype)),
    ]
    for policy in policies:
        observations, _ = vector.reset(seed=1, options=policy.options)
        assert vector.action_space.contains(policy(observations))
        vector.step(policy(observations))
        assert space.contains(policy(observations[0]))


def test_a_policy_in_an_environment_without_its_arguments_says_how_to_make_the_right_one():
    policy = quicgym.load_policy("window")
    for environment in (
        gymnasium.make("quicgym/Window-v1", scenario=helper.scenario()),
        quicgym.make_vec("window", 2, scenario=helper.scenario()),
    ):
        observations, _ = environment.reset(seed=1)
        with pytest.raises(quicgym.PolicyError) as refusal:
            policy(observations)
    expected, given = policy.decisions.observation_space.shape[0], observations.shape[1]
    assert f"window: an observation has {expected} numbers, not {given}" in str(refusal.value)
    remedy = "gymnasium.make('quicgym/Window-v1', **policy.decisions.arguments)"
    assert remedy in str(refusal.value)
    observations, _ = eval(remedy).reset(seed=1)
    policy(observations)


@pytest.mark.parametrize("name", ["ebcc", "random", "window"])
def test_a_policy_is_shown_in_one_line(name):
    text = repr(find_policy(name))
    assert name in text and "quicgym/" in text
    assert "\n" not in text and len(text) < 100


def test_random_policies_follow_their_seed():
    environment = gymnasium.make("quicgym/Rate-v1", scenario=helper.scenario())
    space = environment.action_space
    first = earned(environment, RandomPolicy(space, seed=1))
    assert first == earned(environment, RandomPolicy(space, seed=1))
    assert first != earned(environment, RandomPolicy(space, seed=2))


@pytest.mark.parametrize("engine", ["native", pytest.param("ns3", marks=pytest.mark.ns3)])
def test_a_flow_that_starts_between_two_decisions_begins_with_its_action(engine):
    policy = preset_policy("bbr-extended")
    flows = (Flow(name="first"), Flow(name="second", start_s=0.33))
    scenario = helper.scenario(flow_list=flows, loss=0)
    slow = dataclasses.replace(policy.decisions, decision_interval_ms=1500.0, safe_envelope=False)
    policy = dataclasses.replace(policy, decisions=slow)
    own, theirs = play(policy, scenario, engine=engine), play(find_policy(policy.name), scenario)
    for metric in ("goodput_mbps", "loss_percent", "mean_rtt_ms", "jain"):
        assert own.metrics[metric] == pytest.approx(theirs.metrics[metric], rel=1e-12)


def test_parameters_in_the_reset_options_are_the_controller_s():
    scenario = load_scenario("ebcc-flows-3")
    with_option = play(find_policy("ebcc:gamma=60,beta=0.7"), scenario, seed=3).metrics
    changed = scenario.model_copy(
        update={"controller_parameters": {"ebcc": {"gamma": 60.0, "beta": 0.7}}}
    )
    assert with_option == play(find_policy("ebcc"), changed, seed=3).metrics
    assert with_option != play(find_policy("ebcc"), scenario, seed=3).metrics


def test_parameters_without_a_controller_are_refused():
    environment = gymnasium.make("quicgym/Tuning-v1")
    with pytest.raises(ScenarioError, match="name their controller"):
        environment.reset(seed=0, options={"parameters": {"gamma": 60}})


@pytest.mark.parametrize("controller", ["ibcca", "cubic+", "bbr"])
def test_a_baseline_earns_in_an_agent_s_loop_what_its_controller_earns(controller):
    environment = gymnasium.make("quicgym/Tuning-v1", scenario=helper.scenario(flows=2))
    policy = quicgym.baseline(controller)
    assert policy.name == controller
    by_options = controller_policy(controller, environment.action_space)
    assert earned(environment, policy) == earned(environment, by_options)
    assert environment.unwrapped.parameters() == {
        name: pytest.approx(values)
        for name, values in quicgym.controllers.find(controller).complete().items()
    }


def test_a_baseline_has_the_parameters_that_it_is_given():
    environment = gymnasium.make("quicgym/Window-v1", scenario=helper.scenario(flows=2))
    policy = quicgym.baseline("cubic+", "quicgym/Window-v1", theta=0.8)
    assert policy.name == "cubic+:theta=0.8"
    assert policy.decisions.environment == "window"
    earned(environment, policy)
    assert environment.unwrapped.parameters()["theta"] == [0.8]


def test_a_baseline_is_evaluated_as_the_controller_of_its_name_is(tmp_path):
    file = tmp_path / "agent.py"
    file.write_text("import quicgym\nagent = quicgym.baseline('ibcca')\n")
    policies = (quicgym.baseline("ibcca"), find_policy("ibcca"), find_policy(f"{file}:agent"))
    scenario = helper.scenario(flows=2)
    ours, named, of_file = (play(policy, scenario, seed=3).evaluation for policy in policies)
    assert ours == named == of_file
    assert ours != play(find_policy("bbr"), scenario, seed=3).evaluation


def test_what_is_no_baseline_is_refused():
    with pytest.raises(ScenarioError, match="'ibca'.*ibcca"):
        quicgym.baseline("ibca")
    with pytest.raises(ValueError, match="theta"):
        quicgym.baseline("bbr", theta=1)
    with pytest.raises(ValueError, match="did you mean window"):
        quicgym.baseline("bbr", "Windo")
    with pytest.raises(ValueError, match=r"quicgym.baseline\('ibcca'\)"):
        quicgym.preset_action("ibcca")
