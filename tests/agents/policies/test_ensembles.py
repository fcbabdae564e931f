"""Several policies as one network."""

import numpy as np
import pytest

from quicgym.agents.policies.architecture import Architecture
from quicgym.agents.policies.ensemble import joined
from quicgym.agents.policies.stored_network import StoredNetwork
from quicgym.envs.decisions import Decisions


def network(seed, environment="window", sizes=((8,), (6, 4)), output="argmax", **arguments):
    decisions = Decisions(environment, history_length=4, **arguments)
    architecture = Architecture(*sizes, "relu", output)
    shape = architecture.arguments(decisions)
    rng, tensors, inputs = np.random.default_rng(seed), {}, shape["observation_size"]
    layers = [(f"features.layers.{2 * i}", size) for i, size in enumerate(sizes[0])]
    layers += [(f"hidden.{2 * i}", size) for i, size in enumerate(sizes[1])]
    for name, size in [*layers, ("action", shape["outputs"])]:
        tensors[f"{name}.weight"] = rng.normal(size=(size, inputs)).astype(np.float32)
        tensors[f"{name}.bias"] = rng.normal(size=size).astype(np.float32)
        inputs = size
    return StoredNetwork(architecture, decisions, tensors)


def observations(member):
    space = member.decisions.observation_space
    return np.random.default_rng(1).normal(size=(200, *space.shape)).astype(np.float32)


def logits(member, seen):
    values = seen.astype(np.float64)
    names = [name.removesuffix(".weight") for name in member.tensors if name.endswith("weight")]
    for name in names:
        values = values @ member.tensors[f"{name}.weight"].T + member.tensors[f"{name}.bias"]
        values = values if name == "action" else np.maximum(values, 0)
    return values


def test_an_ensemble_chooses_by_the_sum_of_the_members_log_probabilities():
    members = [network(seed) for seed in range(3)]
    seen = observations(members[0])
    log_probabilities = 0.0
    for member in members:
        values = logits(member, seen)
        log_probabilities += values - np.log(np.exp(values).sum(axis=1, keepdims=True))
    chosen = joined(members).in_cpp(seen)
    assert np.array_equal(chosen, log_probabilities.argmax(axis=1))
    assert any(not np.array_equal(chosen, member.in_cpp(seen)) for member in members)


def test_in_a_box_an_ensemble_takes_the_mean_of_the_members():
    members = [
        network(seed, "tuning", sizes=((8 + seed,), (5,)), output="tanh") for seed in range(2)
    ]
    seen = observations(members[0])
    expected = np.tanh(np.mean([logits(member, seen) for member in members], axis=0))
    together = joined(members)
    assert together.architecture.extractor_sizes == (17,)
    assert together.in_cpp(seen) == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (network(1, decision_interval_ms=50), "decision_interval_ms = 50, of the first member 100"),
        (network(1, observations="recent"), "observations = 'recent'"),
        (network(1, sizes=((8,), (6,))), "numbers of layers"),
        (network(1, "tuning", output="clip"), "environment = 'tuning'"),
    ],
)
def test_members_that_do_not_fit_are_refused(other, words):
    with pytest.raises(ValueError, match=words):
        joined([network(0), other])
