"""Learned policies are pickled and copied."""

import copy
import pickle

import numpy as np
import pytest

import quicgym
from quicgym.envs.observations import observation_names

COPIES = {
    "pickle": lambda policy: pickle.loads(pickle.dumps(policy)),
    "deepcopy": copy.deepcopy,
}


@pytest.mark.parametrize("name", ["window", "tuning"])
@pytest.mark.parametrize("copied", COPIES.values(), ids=COPIES)
def test_a_copy_decides_as_its_original(name, copied):
    policy = quicgym.load_policy(name)
    decisions = policy.decisions
    names = observation_names(
        decisions.history_length, decisions.interface.action_space, decisions.observations
    )
    observations = np.random.default_rng(0).normal(size=(16, len(names)))
    before = policy(observations)
    other = copied(policy)
    np.testing.assert_array_equal(other(observations), before)
    assert (other.name, other.decisions) == (policy.name, policy.decisions)
    assert other.description.sha256 == policy.description.sha256
