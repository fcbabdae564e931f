"""Published policies: what is trained is what is loaded, and what is wrong is refused."""

from __future__ import annotations

import json
import resource
import warnings
from hashlib import sha256

import gymnasium
import numpy as np
import pytest
from helpers.training import NEEDS_TRAIN, make_trainer

import quicgym
from quicgym import _core
from quicgym.agents.policies.by_name import pretrained_names
from quicgym.benchmarks.leaderboard import load_entries
from quicgym.envs.registration import find_environment
from quicgym.yaml_files import CONFIGS

pytestmark = NEEDS_TRAIN

CASES = [
    ("ppo", "quicgym/Tuning-v1"),
    ("ppo", "quicgym/Window-v1"),
    ("sac", "quicgym/Rate-v1"),
    ("td3", "quicgym/Tuning-v1"),
    ("dqn", "quicgym/Window-v1"),
]


def make(algorithm="ppo", environment="quicgym/Tuning-v1", hidden=(12,), **arguments):
    """Returns an untrained model of Stable-Baselines3, and it as a policy of ours."""
    from quicgym.agents.algorithms.registry import find
    from quicgym.agents.algorithms.stable_baselines3 import Sb3Trainer
    from quicgym.agents.policies.learned import LearnedPolicy
    from quicgym.agents.policies.networks import Architecture
    from quicgym.envs.actions import choices
    from quicgym.envs.decisions import Decisions
    from quicgym.envs.sb3 import make_sb3

    decisions = Decisions(environment)
    output = "argmax" if choices(environment) else find(algorithm).output
    architecture = Architecture((16,), hidden, "tanh", output)
    environments = make_sb3(environment, 11, privileged="privileged_critic" in arguments)
    trainer = Sb3Trainer(
        find(algorithm), environments, architecture, decisions, {}, seed=3, device="cpu",
        **arguments,
    )  # fmt: skip
    return trainer, LearnedPolicy("test", decisions, trainer.export()), architecture


def drawn(policy, rows):
    """Returns observations of a policy's space."""
    space = policy.decisions.observation_space
    space.seed(0)
    return np.array([space.sample() for _ in range(rows)])


@pytest.fixture
def published(tmp_path):
    from quicgym.agents.policies.learned import save_policy

    _, policy, architecture = make()
    path = tmp_path / "test.json"
    save_policy(path, policy, architecture, {"command": "quicgym train"})
    return path


def edit(path, **changes):
    data = json.loads(path.read_text())
    data.update(changes)
    path.write_text(json.dumps(data))


@pytest.mark.parametrize(("algorithm", "environment"), CASES)
def test_the_exported_network_acts_as_the_trained_one(algorithm, environment):
    from quicgym.agents.algorithms.stable_baselines3 import parts_of

    trainer, policy, architecture = make(algorithm, environment)
    model = trainer.model
    if architecture.output == "argmax":
        # Untrained, it prefers by so little that rounding could decide.
        for last in (parts_of(model.policy)[-1], policy.actor.action):
            last.weight.data.mul_(100)
    model.observation_space.seed(1)
    observations = np.array([model.observation_space.sample() for _ in range(20)])
    expected, _ = model.predict(observations, deterministic=True)
    actions = policy(observations)
    assert np.allclose(actions, expected, atol=1e-6)
    assert actions.shape == expected.shape
    assert np.allclose(policy(observations[0]), expected[0], atol=1e-6)


@pytest.mark.parametrize(
    ("algorithm", "environment", "arguments"),
    [
        ("aggrevate", "quicgym/Window-v1", {}),
        (
            "coordinate-aggrevate",
            "quicgym/Tuning-v1",
            {"settings": [{"gain_1": -1}, {}, {"gain_1": 1}]},
        ),
        ("grpo", "quicgym/Window-v1", {}),
        ("grpo", "quicgym/Rate-v1", {}),
    ],
)
def test_a_policy_acts_as_the_network_of_an_algorithm_of_quicgym(algorithm, environment, arguments):
    import torch

    from quicgym.agents.policies.learned import LearnedPolicy
    from quicgym.envs.decisions import Decisions

    trainer = make_trainer(algorithm, environment, 2, "ebcc-single", **arguments)
    trainer.actor.action.weight.data.mul_(100)
    policy = LearnedPolicy("test", Decisions(environment, history_length=4), trainer.export())
    observations = drawn(policy, 20)
    with torch.inference_mode():
        outputs = trainer.outputs(torch.from_numpy(observations))
    expected = outputs.argmax(dim=1) if trainer.batch.choices else outputs.clamp(-1, 1)
    assert np.allclose(policy(observations), expected, atol=1e-5)


def test_a_policy_needs_nothing_of_what_its_critic_saw():
    from quicgym.envs.privileged import PRIVILEGED

    trainer, policy, _ = make("ppo", "quicgym/Window-v1", privileged_critic=True)
    model = trainer.model
    model.observation_space.seed(1)
    observations = np.array([model.observation_space.sample() for _ in range(20)])
    expected, _ = model.predict(observations, deterministic=True)
    assert np.array_equal(policy(observations[:, : -len(PRIVILEGED)]), expected)
    values = model.policy.predict_values(model.policy.obs_to_tensor(observations)[0])
    observations[:, -len(PRIVILEGED) :] = 1 - observations[:, -len(PRIVILEGED) :]
    others = model.policy.predict_values(model.policy.obs_to_tensor(observations)[0])
    assert (values != others).all()


def test_exploration_keeps_a_preset_s_ends_of_the_ranges():
    trainer, _, _ = make("ppo")
    preset = quicgym.preset_action("ebcc", gamma=0)
    trainer.begin_at(preset)
    bias = trainer.model.policy.action_net.bias.detach().numpy()
    at_the_end = np.abs(preset) == 1
    assert at_the_end.any() and not at_the_end.all()
    assert bias[at_the_end] == pytest.approx(1.3 * preset[at_the_end])  # actions are clipped
    assert bias[~at_the_end] == pytest.approx(preset[~at_the_end])


@pytest.mark.parametrize(
    ("algorithm", "environment", "action", "networks"),
    [
        ("td3", "quicgym/Tuning-v1", quicgym.preset_action("ebcc"), ("actor", "actor_target")),
        ("dqn", "quicgym/Window-v1", np.array(3), ("q_net", "q_net_target")),
    ],
)
def test_what_a_target_network_does_first_is_the_start_too(
    algorithm, environment, action, networks
):
    import torch

    trainer, _, _ = make(algorithm, environment)
    trainer.begin_at(action)
    ours, target = (getattr(trainer.model.policy, name).state_dict() for name in networks)
    assert all(torch.equal(target[name], tensor) for name, tensor in ours.items())


def test_a_preferred_choice_is_drawn_nine_times_out_of_ten():
    import torch

    trainer, _, _ = make("ppo", "quicgym/Window-v1")
    trainer.begin_at(np.array(3))
    observations = torch.zeros(1, trainer.model.observation_space.shape[0])
    probabilities = trainer.model.policy.get_distribution(observations).distribution.probs
    assert probabilities[0, 3].item() == pytest.approx(0.9, abs=0.01)


def test_a_policy_begun_with_is_as_hesitant_as_its_temperature_says():
    import torch

    trainer, policy, _ = make("ppo", "quicgym/Window-v1")
    with torch.no_grad():
        policy.actor.action.bias.normal_()
    trainer.begin_with(policy.actor, 0.25)
    observations = torch.rand(5, trainer.model.observation_space.shape[0])
    with torch.no_grad():
        outputs = policy.actor.outputs(observations)
    logits = trainer.model.policy.get_distribution(observations).distribution.logits
    expected = (outputs / 0.25).log_softmax(dim=1)
    assert torch.allclose(logits, expected, atol=1e-5)


def test_a_policy_is_loaded_as_it_was_saved(published):
    _, policy, _ = make()
    loaded = quicgym.load_policy(published)
    observations = drawn(policy, 5)
    assert np.array_equal(loaded(observations), policy(observations))
    assert loaded.decisions == policy.decisions and loaded.name == "test"


def refused(path, *words):
    with pytest.raises(quicgym.PolicyError) as caught:
        quicgym.load_policy(path)
    for word in words:
        assert word in str(caught.value)


def test_a_policy_whose_actions_did_something_else_in_training_is_loaded_with_a_warning(published):
    effect = json.loads(published.read_text())["action_effect"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        quicgym.load_policy(published)
        edit(published, action_effect=[1.001 * value for value in effect])  # another compiler
        quicgym.load_policy(published)
    edit(published, action_effect=[1.1 * value for value in effect])
    with pytest.warns(UserWarning, match="Tuning-v1 do something else at this commit"):
        quicgym.load_policy(published)
    edit(published, action_effect=["much"])
    refused(published, "action_effect", "give a list of numbers")


def test_a_description_of_a_huge_network_needs_no_memory(published):
    data = json.loads(published.read_text())
    data["architecture"]["hidden_sizes"] = [64_000, 64_000]  # 16 GB
    edit(published, architecture=data["architecture"])
    tracked = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    refused(published, "hidden.0", "(64000, 16)")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < tracked + 100_000  # kB


def test_a_disk_that_becomes_full_leaves_the_policy_that_was_there(published, monkeypatch):
    from quicgym.agents.policies.learned import save_policy

    before = {path.name: path.read_bytes() for path in published.parent.iterdir()}
    _, other, architecture = make(algorithm="td3")
    _, _, architecture = make()

    def full(path, *arguments, **options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(type(published), "write_text", full)  # the second of the two files
    with pytest.raises(OSError, match="No space left"):
        save_policy(published, other, architecture, {})
    assert {path.name: path.read_bytes() for path in published.parent.iterdir()} == before
    quicgym.load_policy(published)


def test_other_weights_than_the_description_s_are_refused(published):
    file = published.with_suffix(".safetensors")
    file.write_bytes(b"not a tensor")
    refused(published, "SHA-256", "get both files again")
    edit(published, sha256=sha256(b"not a tensor").hexdigest())
    refused(published, "is no safetensors file")


def test_files_that_are_not_there_are_named(published, tmp_path):
    published.with_suffix(".safetensors").unlink()
    refused(published, "test.safetensors", "No such file")
    refused(tmp_path / "none.json", "none.json", "No such file")
    refused("tuning-pppo", "unknown policy")


def test_a_zip_of_stable_baselines3_needs_a_flag_and_warns(tmp_path):
    trainer, policy, _ = make()
    trainer.model.save(tmp_path / "model.zip")
    refused(tmp_path / "model.zip", "runs code", "trust_zip")
    with pytest.warns(UserWarning, match="runs code"):
        loaded = quicgym.load_policy(tmp_path / "model.zip", trust_zip=True)
    observations = drawn(policy, 5)
    assert np.allclose(loaded(observations), policy(observations), atol=1e-6)


@pytest.mark.parametrize("content", [None, b"", b"PK\x05\x06" + bytes(18), b"not a zip"])
def test_a_zip_that_is_no_model_is_refused(content, tmp_path):
    path = tmp_path / "other.zip"
    if content is not None:
        path.write_bytes(content)
    with warnings.catch_warnings():
        warnings.simplefilter("error" if content is None else "ignore")
        with pytest.raises(quicgym.PolicyError, match="other.zip: is no "):
            quicgym.load_policy(path, trust_zip=True)


def test_the_published_policies_are_those_of_the_leaderboard():
    entries = load_entries(CONFIGS / "leaderboard.yaml")
    assert set(pretrained_names()) == {entry.policy for entry in entries if entry.kind == "learned"}


ENDED_EARLY = ("window",)
"""Their trainings were ended before the configured number of steps."""


@pytest.mark.parametrize("name", pretrained_names())
def test_a_published_policy_is_of_the_shipped_configuration(name):
    from quicgym.agents.training.configuration import (
        TrainingConfig,
        load_training,
        training_names,
    )

    training = quicgym.load_policy(name).description.training
    config = TrainingConfig.model_validate(training["config"])
    seed, trained = training["seed"], config.name
    changes = [f"seed={seed}"]
    if f"{trained}-start" in training_names():
        changes.append(f"start.policy=results/train/{trained}-start-seed{seed}")
    expected = load_training(trained, changes)
    # Threads change no result.
    threads = {"threads": expected.environment.threads}
    config = config.model_copy(
        update={"environment": config.environment.model_copy(update=threads)}
    )
    assert name == trained
    if trained in ENDED_EARLY:
        assert config.steps < expected.steps
        config = config.model_copy(update={"steps": expected.steps})
    assert config == expected


@pytest.mark.parametrize("name", pretrained_names())
def test_a_published_policy_names_no_folder_of_the_machine_that_made_it(name):
    description = quicgym.load_policy(name).description
    documents = (description.training, description.evaluation or {})
    commands = [about["command"] for about in documents if "command" in about]
    assert commands
    assert not [word for text in commands for word in text.split() if word.startswith("/")]


@pytest.mark.parametrize("name", pretrained_names())
def test_a_published_policy_uses_the_link_and_shares_it(name):
    from quicgym.agents.evaluation.rollouts import play, play_all

    policy = quicgym.load_policy(name)
    alone = play(policy, quicgym.load_scenario("ebcc-single")).metrics
    assert alone["throughput_share"] > 0.85
    scenario = quicgym.load_scenario("ebcc-flows-3")
    three = play_all(policy, [(scenario, seed) for seed in range(8)], threads=1)
    # Of IBCCA's eight runs the mean is 0.92, and one of them 0.78.
    assert np.mean([episode.metrics["jain"] for episode in three]) > 0.8
    assert np.mean([episode.metrics["loss_percent"] for episode in three]) < 10


def recorded_observations(policy, scenario, decisions):
    """What the policy sees in an episode, of shape (decisions, observation size)."""
    seen = []
    environment = gymnasium.make(
        find_environment(policy.decisions.environment).id,
        scenario=scenario,
        **policy.decisions.arguments,
    )
    observation, _ = environment.reset(seed=1)
    for _ in range(decisions):
        seen.append(observation)
        observation, _, ended, truncated, _ = environment.step(policy(observation))
        if ended or truncated:
            break
    environment.close()
    return np.array(seen)


@pytest.mark.parametrize("name", pretrained_names())
def test_a_published_policy_acts_as_its_network_in_pytorch(name):
    import torch

    policy = quicgym.load_policy(name)
    recorded = recorded_observations(policy, "ebcc-single", 100)
    observations = np.concatenate([drawn(policy, 100), recorded])
    with torch.inference_mode():
        expected = policy.actor(torch.from_numpy(observations)).numpy()
    assert len(np.unique(expected.round(3), axis=0)) > 1
    assert np.allclose(policy(observations), expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("hidden", [(), (7,), (9, 5)])
@pytest.mark.parametrize("activation", ["tanh", "relu"])
@pytest.mark.parametrize(
    ("environment", "history"),
    [
        ("tuning", 128), ("window", 3), ("rate", 1),
    ],
)  # fmt: skip
def test_a_random_network_acts_as_in_pytorch(environment, history, activation, hidden):
    import torch

    from quicgym.agents.policies.networks import Actor, Architecture
    from quicgym.envs.decisions import Decisions

    decisions = Decisions(environment, history_length=history)
    interface = decisions.interface
    chooses = bool(_core.find_action_space(interface.action_space).choices)
    for output in ("argmax",) if chooses else ("clip", "tanh"):
        torch.manual_seed(history)
        actor = Actor(Architecture((8, 6), hidden, activation, output), decisions)
        space = decisions.observation_space
        space.seed(history)
        observations = np.array([space.sample() for _ in range(50)])
        with torch.inference_mode():
            values = actor.action(actor.hidden(actor.features(torch.from_numpy(observations))))
            expected = actor(torch.from_numpy(observations)).numpy()
        actions = actor.in_cpp(observations)
        if chooses:  # rounding decides between outputs that are level
            best, second = values.topk(2, dim=1).values.T
            clear = (best - second > 1e-5).numpy()
            actions, expected = actions[clear], expected[clear]
            assert clear.sum() > 40
        assert np.allclose(actions, expected, rtol=0, atol=1e-5)


def test_an_action_does_not_depend_on_the_rows_beside_it():
    _, policy, _ = make("ppo", "quicgym/Window-v1")
    observations = drawn(policy, 50)
    together = policy(observations)
    assert np.array_equal(together, [policy(row) for row in observations])
    assert np.array_equal(policy(observations[::2]), together[::2])  # also where rows are not dense


def with_tensors(**others):
    """The argument `tensors`: of other shapes where one is given, without those that are None."""
    shapes = {
        "features.layers.0.weight": (2, 8), "features.layers.0.bias": (2,),
        "action.weight": (3, 2), "action.bias": (3,),
    } | others  # fmt: skip
    tensors = {name: np.zeros(of, np.float32) for name, of in shapes.items() if of is not None}
    return {"tensors": tensors}


def network(**changes):
    """A network of one frame, with what differs."""
    arguments = {
        "extractor_sizes": [2], "hidden_sizes": [], "activation": "relu",
        "output": "clip", "observation_size": 8, "outputs": 3,
        **with_tensors(), **changes,
    }  # fmt: skip
    return _core.PolicyNetwork(**arguments)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"activation": "gelu"}, "activation = 'gelu'; use tanh, relu or leaky-relu"),
        ({"output": "sample"}, "output = 'sample'; use clip, tanh, linear or argmax"),
        ({"hidden_sizes": [4]}, "has no tensor 'hidden.0.weight'"),
        ({"outputs": 4}, r"'action.weight' has the shape \(3, 2\); .* needs \(4, 2\)"),
        (with_tensors(**{"action.bias": None}), "has no tensor 'action.bias'"),
        (with_tensors(**{"action.bias": (2,)}), r"'action.bias' has .* \(2,\); .* \(3,\)"),
        (with_tensors(**{"features.layers.0.weight": (2, 9)}), r"has the shape \(2, 9\)"),
        (with_tensors(**{"features.layers.0.weight": (0, 8)}), r"has the shape \(0, 8\)"),
        (with_tensors(**{"more": (1,)}), "tensor 'more' is not in the architecture"),
    ],
)
def test_a_network_whose_parts_do_not_fit_is_refused(changes, message):
    assert network()(np.ones((2, 8), np.float32)).shape == (2, 3)
    with pytest.raises(ValueError, match=message):
        network(**changes)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_weights_that_are_not_finite_are_refused(value):
    tensors = with_tensors()["tensors"]
    tensors["action.bias"][1] = value
    with pytest.raises(ValueError, match="tensor 'action.bias' has values that are not finite"):
        network(tensors=tensors)


@pytest.mark.parametrize("lstm_size", [0, 4])
@pytest.mark.parametrize("activation", ["relu", "tanh"])
@pytest.mark.parametrize("output", ["clip", "tanh", "linear"])
def test_finite_weights_give_numbers_or_are_refused(lstm_size, activation, output):
    """Sums that overflow were infinities of both signs, and the action no number."""
    shapes = {"features.layers.0.weight": (2, lstm_size or 8)}
    if lstm_size:
        shapes |= {
            "lstm.weight_ih_l0": (16, 8), "lstm.bias_ih_l0": (16,),
            "lstm.weight_hh_l0": (16, 4), "lstm.bias_hh_l0": (16,),
        }  # fmt: skip
    rng = np.random.default_rng(1)
    observations = rng.choice([-1e9, 0.0, 1e9], (20, 8)).astype(np.float32)
    refused = 0
    for exponent in range(39):
        tensors = with_tensors(**shapes)["tensors"]
        for tensor in tensors.values():
            tensor[...] = 10.0**exponent * rng.uniform(-3, 3, tensor.shape)
        arguments = {"activation": activation, "output": output, "lstm_size": lstm_size}
        try:
            made = network(**arguments, tensors=tensors)
        except ValueError as error:
            assert "has values so large that a sum may not be finite" in str(error)
            refused += 1
        else:
            assert np.isfinite(
                made(observations) if not lstm_size else made.unroll(observations)[0]
            ).all()
    assert 8 <= refused < 39 - 8


def test_an_observation_of_another_size_is_refused():
    with pytest.raises(ValueError, match="an observation has 8 numbers, not 9"):
        network()(np.ones((2, 9), np.float32))
