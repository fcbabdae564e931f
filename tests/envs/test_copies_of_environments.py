"""Environments cannot be pickled or copied, and say what to do instead."""

import copy
import pickle

import pytest

import quicgym
from quicgym.envs.environment import CongestionControlEnv
from quicgym.envs.parallel import ParallelCongestionControlEnv
from quicgym.envs.window import WindowEnv

MADE = {
    "single": lambda: WindowEnv(scenario="ebcc-single"),
    "vector": lambda: quicgym.make_vec("window", scenario="training-50", num_envs=2),
    "parallel": lambda: ParallelCongestionControlEnv("window"),
}


@pytest.mark.parametrize("make", MADE.values(), ids=MADE)
@pytest.mark.parametrize("copied", [pickle.dumps, copy.deepcopy, copy.copy])
def test_a_copy_is_refused_with_the_remedy(make, copied):
    with pytest.raises(TypeError, match="make another one with the same arguments"):
        copied(make())


def test_the_class_is_pickled():
    assert pickle.loads(pickle.dumps(CongestionControlEnv)) is CongestionControlEnv
