"""What a configuration makes: environments, algorithms, and where policies begin."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from helpers import environments as helper
from helpers.training import NEEDS_TRAIN, Unwatched, learned, made, write_config
from hypothesis import given, settings
from hypothesis import strategies as st

import quicgym
from quicgym import Simulation
from quicgym.agents.policies.by_name import PRETRAINED
from quicgym.agents.policies.learned import load_policy
from quicgym.agents.training.configuration import ConfigError, load_training, training_names
from quicgym.envs.actions import action_parameters
from quicgym.envs.registration import find_environment

pytestmark = NEEDS_TRAIN


@pytest.mark.parametrize("name", training_names())
def test_the_shipped_configurations_are_what_the_algorithms_take(name):
    from quicgym.agents.training.model import make_trainer

    smaller = ["environment.simulations=4", "environment.scenario=ebcc-single"]
    # Two begin with a run of the user's.
    start = ["start={}"] if name in ("window", "tuning") else []
    config = load_training(name, [*smaller, *start])
    trainer = make_trainer(config)
    model = getattr(trainer, "model", trainer)
    assert type(model) is config.entry.implementation_class
    trainer.close()


def test_td3_explores_with_the_std_of_the_configuration(here):
    _, trainer = made(here, "start.std=0.25", algorithm="td3")
    noise = np.array([trainer.model.action_noise() for _ in range(400)])
    assert noise.shape == (400, 13) and noise.std() == pytest.approx(0.25, rel=0.1)
    assert made(here, "start.std=null", algorithm="td3")[1].model.action_noise is None


PRESET_STARTS = [
    ("ppo", "quicgym/Tuning-v1", "ebcc", {}),
    ("ppo", "quicgym/Tuning-v1", "bbr-combined", {}),
    ("ppo", "quicgym/Tuning-v1", "ebcc", {"gamma": 60, "beta": 0.341, "alpha": 0}),
    ("grpo", "quicgym/Tuning-v1", "bbr-smooth", {}),
]


def start_of(algorithm, environment, preset, parameters):
    """Returns the policy that a training begins with, without exploration, and the preset."""
    from quicgym.agents.training.policies import policy_of

    changes = {
        "environment.id": environment,
        "environment.scenario": "./rival.yaml",
        "start": {"preset": preset, "parameters": parameters},
    }
    texts = [f"{name}={json.dumps(value)}" for name, value in changes.items()]
    config, trainer = made(Path(), *texts, algorithm=algorithm)
    trainer.close()
    return policy_of(trainer, config), find_environment(environment).preset_action(
        preset, **parameters
    )


@pytest.mark.parametrize(("algorithm", "environment", "preset", "parameters"), PRESET_STARTS)
def test_a_policy_that_starts_at_a_preset_acts_exactly_as_it(
    algorithm, environment, preset, parameters, here
):
    policy, action = start_of(algorithm, environment, preset, parameters)
    size = policy.decisions.observation_space.shape[0]

    @settings(max_examples=30, deadline=None)
    @given(st.integers(0, 2**32 - 1), st.floats(0, 1e6))
    def check(seed, scale):
        import torch

        observations = scale * np.random.default_rng(seed).normal(size=(2, size))
        observations = observations.astype(np.float32)
        expected = np.tile(action, (2, *[1] * action.ndim))
        assert np.array_equal(policy(observations), expected)
        with torch.inference_mode():
            chosen = policy.actor(torch.from_numpy(observations)).numpy()
        assert np.array_equal(chosen, expected)

    check()


@pytest.mark.parametrize(("algorithm", "environment", "preset", "parameters"), PRESET_STARTS)
def test_its_episode_is_the_preset_s_packet_by_packet(
    algorithm, environment, preset, parameters, here
):
    policy, action = start_of(algorithm, environment, preset, parameters)
    if parameters:  # as float32 has them
        parameters = {
            name: value if name == "gain_cycle" else value[0]
            for name, value in action_parameters(action).items()
        }
    scenario = helper.scenario(flows=2, duration_s=3)
    arguments = {**policy.decisions.arguments, "record_deliveries": True}
    # The safe envelope bounds a preset, too, where it loses a tenth of its packets for two seconds.
    arguments["safe_envelope"] = False
    played = gymnasium.make(environment, scenario=scenario, **arguments).unwrapped
    observation, _ = played.reset(seed=5)
    ended = False
    while not ended:
        observation, _, _, ended, _ = played.step(policy(observation))
    alone = scenario.model_copy(update={"controller_parameters": {preset: parameters}})
    with Simulation(
        alone, "native", played.episode_seed, [preset, "cubic"], record_deliveries=True
    ) as simulation:
        simulation.run()
        assert np.array_equal(played.deliveries(), simulation.deliveries())


@pytest.mark.parametrize("algorithm", ["sac", "td3"])
def test_tanh_comes_as_near_to_a_preset_as_it_can(algorithm, here):
    policy, action = start_of(algorithm, "quicgym/Tuning-v1", "ebcc", {"gamma": 0})
    size = policy.decisions.observation_space.shape[0]
    observations = np.random.default_rng(0).normal(0, 1e3, (20, size)).astype(np.float32)
    inside = np.abs(action) < 1
    actions = policy(observations)
    assert np.abs(actions - action)[:, inside].max() <= 2e-7
    assert np.abs(actions)[:, ~inside] == pytest.approx(0.9999, abs=1e-6)
    assert (np.sign(actions) == np.sign(action))[:, ~inside].all()


@pytest.mark.parametrize(
    "change",
    [
        {"reward": "power"},
        {"reward_per_flow": True},
        {"decision_interval_ms": 500.0, "reward_interval_ms": 250.0},
        {"decision_interval_rtts": 3.0},
    ],
    ids=lambda change: ", ".join(change),
)
def test_training_steps_the_environments_of_its_configuration(change, here):
    changes = [f"environment.{name}={value}" for name, value in change.items()]
    ours = made(here, *changes)[1].model.get_env()
    theirs = quicgym.make_vec(
        "quicgym/Tuning-v1",
        4,
        scenario="./pair.yaml",
        per_flow=True,
        autoreset_mode="SameStep",
        **{"reward_interval_ms": 100, **change},
    )
    ours.seed(3)
    first, info = theirs.reset(seed=3)
    assert np.array_equal(ours.reset(), first)
    actions = np.tile(quicgym.preset_action("bbr"), (8, 1))
    actions[::2] = quicgym.preset_action("ebcc", gamma=5)
    for _ in range(2):
        observations, rewards, _, _ = ours.step(actions)
        begins_s = info["time_s"].copy()
        expected, expected_rewards, _, _, info = theirs.step(actions)
        assert np.array_equal(observations, expected)
        ends_s = info.get("final_info", info)["time_s"]  # all rows end together
        by_time = expected_rewards * (ends_s - begins_s) / 0.1
        assert np.allclose(rewards, by_time, rtol=1e-6)


def test_rows_without_an_agent_are_no_part_of_what_is_logged(here):
    (here / "one.py").write_text(
        "import numpy as np\none = lambda info: np.ones(len(info['jain']))"
    )
    changes = [
        "scenario=self-play-50",
        "simulations=16",
        "id=quicgym/Window-v1",
        "reward=one.py:one",
    ]
    _, trainer = made(
        here,
        *(f"environment.{change}" for change in changes),
        "hyperparameters.n_steps=250",
        "hyperparameters.batch_size=1000",
        "start.std=null",
    )
    watch, rows = Unwatched(), trainer.model.n_envs
    trainer.reseed(np.random.SeedSequence(5))
    trainer.learn(250 * rows, 250 * rows, watch)
    assert not trainer.model.get_env().unwrapped.environments.batch.has_agent.all()
    logged = {name: value for (_, name), value in watch.values.items()}
    assert logged["rollout/reward"] == 1.0
    assert logged["rollout/ep_rew_mean"] == logged["rollout/ep_len_mean"] > 0


def test_the_reward_of_a_rollout_is_a_mean_over_time_however_long_decisions_are(here):
    (here / "one.py").write_text(
        "import numpy as np\none = lambda info: np.ones(len(info['jain']))"
    )
    _, trainer = made(here, "environment.decision_interval_rtts=3", "environment.reward=one.py:one")
    watch = Unwatched()
    trainer.reseed(np.random.SeedSequence(5))
    trainer.learn(160, 160, watch)
    logged = [value for (_, name), value in watch.values.items() if name == "rollout/reward"]
    assert logged == pytest.approx([1.0] * len(logged)) and logged


def test_targets_of_several_steps_end_where_episodes_are_cut_off(here):
    _, trainer = made(here, "hyperparameters.n_steps=3", algorithm="sac")
    for until in (160, 320):
        trainer.reseed(np.random.SeedSequence(until))
        trainer.learn(until, 320, Unwatched())
    buffer = trainer.model.replay_buffer
    goes_on = (buffer.observations[1:] == buffer.next_observations[:-1]).all(axis=2)
    ends = (buffer.dones + buffer.timeouts)[:-1] > 0
    filled = buffer.pos - 1
    assert not goes_on[:filled].all()
    assert (goes_on | ends)[:filled].all()


def test_a_linear_schedule_falls_over_the_run_in_whatever_parts_it_is_learned(here):
    changes = ("hyperparameters.learning_rate=linear_4e-4", "hyperparameters.gamma=0.9")
    _, trainer = made(here, *changes)
    assert trainer.model.gamma == 0.9 and trainer.model.lr_schedule(1.0) == 4e-4
    trainer.reseed(np.random.SeedSequence(1))
    rates = []
    for until in (80, 240, 320):
        trainer.learn(until, 320, Unwatched())
        rates.append(trainer.model.policy.optimizer.param_groups[0]["lr"])
    assert rates == pytest.approx([4e-4, 2e-4, 1e-4])  # of the beginnings of the rollouts


def test_a_rollout_that_ends_past_the_steps_still_learns_with_a_positive_rate(here):
    from quicgym.agents.algorithms.trainer import Schedule

    _, trainer = made(here, "hyperparameters.learning_rate=linear_4e-4")
    trainer.reseed(np.random.SeedSequence(1))
    rates = []
    for until in (80, 100):
        trainer.learn(until, 100, Unwatched())
        rates.append(trainer.model.policy.optimizer.param_groups[0]["lr"])
    assert rates == pytest.approx([4e-4, 0.8e-4])
    assert Schedule(4e-4, falls=True).at(-0.1) == 0


def test_the_exploration_of_dqn_falls_over_the_run_in_whatever_parts_it_is_learned(here):
    _, trainer = made(here, "hyperparameters.exploration_fraction=1.0", algorithm="dqn")
    trainer.reseed(np.random.SeedSequence(1))
    rates = []
    for until in (80, 240, 320):
        trainer.learn(until, 320, Unwatched())
        rates.append(trainer.model.exploration_rate)
    assert rates == pytest.approx([1 - 0.95 * share for share in (0.25, 0.75, 1)])


def test_ppo_learns_from_rows_with_an_agent_alone_and_counts_no_others():
    from quicgym.agents.training.model import make_trainer

    changes = [
        "environment={id: tuning, scenario: coexistence, simulations: 3, threads: 1}",
        "hyperparameters={n_steps: 8, batch_size: 16, n_epochs: 1, learning_rate: 0.0}",
        "evaluation.suite=validation",
    ]  # fmt: skip
    trainer = make_trainer(load_training("tuning-ppo", changes))
    model = trainer.model
    watch = Unwatched()
    trainer.learn(1, 1, watch)
    rows = model.rollout_buffer.observations
    size = trainer.export().features.layers[0].in_features
    assert rows.ndim == 2 and len(rows) == 8 * 9  # flattened by the update
    agents = rows[:, :size].any(axis=-1).sum()
    assert 8 * 3 <= agents < len(rows)
    assert trainer.step == agents
    updates = list(model.rollout_buffer.get(16))
    values, returns = (
        np.concatenate([getattr(samples, name) for samples in updates])
        for name in ("old_values", "returns")
    )
    (explained,) = (
        value for (_, name), value in watch.values.items() if name == "train/explained_variance"
    )
    assert explained == pytest.approx(1 - (returns - values).var() / returns.var(), abs=1e-4)
    for samples in updates:  # nothing was learned, so each row is what the policy did in it
        values, densities, _ = model.policy.evaluate_actions(samples.observations, samples.actions)
        assert values.flatten().tolist() == pytest.approx(samples.old_values.tolist(), abs=1e-5)
        assert densities.tolist() == pytest.approx(samples.old_log_prob.tolist(), abs=1e-5)
    learned = [samples.observations[:, :size] for samples in updates]
    assert {len(samples) for samples in learned[:-1]} == {16}
    assert sum(map(len, learned)) == agents
    assert all(samples.any(dim=1).all() for samples in learned)
    trainer.close()


@pytest.mark.parametrize("name", ["window", "tuning"])
def test_a_training_from_a_policy_begins_with_its_actions(name, here):
    from quicgym.agents.training.model import make_trainer

    policy = load_policy(name)
    trainer = make_trainer(load_training(str(write_config(here)), begin_with=name))
    size = policy.decisions.observation_space.shape[0]
    observations = np.random.default_rng(1).uniform(0, 1, (64, size)).astype(np.float32)
    own = trainer.export().in_cpp(observations)
    assert np.asarray(own) == pytest.approx(np.asarray(policy(observations)), abs=1e-5)
    trainer.close()


def test_a_policy_with_the_guard_is_not_trained_on_without_it(here):
    from quicgym.agents.training.model import make_trainer

    own = PRETRAINED / "window.json"
    data = json.loads(own.read_text())
    guarded = here / own.name
    guarded.write_text(json.dumps({**data, "guard": True}))
    shutil.copy(own.with_suffix(".safetensors"), here)
    config = load_training(str(write_config(here)), begin_with=str(guarded))
    with pytest.raises(ConfigError, match="guard"):
        make_trainer(config)


@pytest.mark.parametrize("name", ["window", "tuning"])
def test_a_second_training_without_its_first_says_how_to_run_that(name, here):
    from quicgym.agents.training.model import make_trainer

    changes = [f"start.policy=results/train/{name}-start-seed3"]
    with pytest.raises(ConfigError, match=f"`quicgym train {name}-start seed=3` writes"):
        make_trainer(load_training(name, [*changes, "environment.simulations=4"]))


@pytest.mark.ns3
@pytest.mark.parametrize("algorithm", ["ppo", "grpo"])
def test_a_training_over_ns3_is_the_one_over_the_native_engine(algorithm, here):
    begun, trained = {}, {}
    for engine in ("native", "ns3"):
        changes = [f"environment.engine={engine}", "environment.simulations=2"]
        changes += ["environment.threads=null", "hyperparameters.batch_size=20"]
        _, trainer = made(here, *changes, algorithm=algorithm)
        begun[engine] = weights_of(trainer)
        trained[engine] = weights_of(learned(trainer, 80))
        trainer.close()
    assert not np.array_equal(trained["ns3"], begun["ns3"])
    np.testing.assert_array_equal(trained["ns3"], trained["native"])


def weights_of(trainer):
    tensors = trainer.export().state_dict().values()
    return np.concatenate([tensor.detach().numpy().ravel() for tensor in tensors])


def test_threads_are_refused_over_ns3_which_has_processes(here):
    with pytest.raises(ConfigError, match="threads = 1: ns-3 has a process for each simulation"):
        made(here, "environment.engine=ns3")
