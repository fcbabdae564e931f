"""Learned policies are pickled and copied."""

import copy
import pickle

import numpy as np
import pytest

import quicgym

COPIES = {
    "pickle": lambda policy: pickle.loads(pickle.dumps(policy)),
    "deepcopy": copy.deepcopy,
}


@pytest.mark.parametrize("name", ["window", "tuning"])
@pytest.mark.parametrize("copied", COPIES.values(), ids=COPIES)
def test_a_copy_decides_as_its_original(name, copied):
    policy = quicgym.load_policy(name)
    size = quicgym.make_vec(policy.decisions.environment, num_envs=1, observations="recent")
    observations = np.random.default_rng(0).normal(
        size=(16, size.single_observation_space.shape[0])
    )
    before = policy(observations)
    other = copied(policy)
    np.testing.assert_array_equal(other(observations), before)
    assert (other.name, other.decisions) == (policy.name, policy.decisions)
    assert other.description.sha256 == policy.description.sha256
