"""Policies of Window-v1 that look at nothing: the least that an agent has to beat.

quicgym evaluate --policy window_policies.py:keep window_policies.py:random --suite training-50
"""

import numpy as np

from quicgym import Decisions
from quicgym.agents.policies import RandomPolicy
from quicgym.envs.actions import WINDOW_EXPONENTS, action_space

decisions = Decisions("quicgym/Window-v1")
random = RandomPolicy(action_space("window"), seed=0, decisions=decisions)


def keep(observations):
    """Leaves the window as slow start has found it."""
    return np.full(len(observations), WINDOW_EXPONENTS.index(0.0))
