"""Policies of Window-v1 that look at nothing: the least that an agent has to beat.

`sometimes` is for datasets: it tries all choices, on paths on which the window is mostly kept.

quicgym evaluate --policy window_policies.py:keep window_policies.py:random --suite training-50
"""

import numpy as np

from quicgym import Decisions
from quicgym.agents.policies import RandomPolicy
from quicgym.envs.actions import WINDOW_EXPONENTS, action_space

decisions = Decisions("quicgym/Window-v1")
random = RandomPolicy(action_space("window"), seed=0, decisions=decisions)


KEEP = WINDOW_EXPONENTS.index(0.0)


def keep(observations):
    """Leaves the window as slow start has found it."""
    return np.full(len(observations), KEEP)


class Sometimes:
    """Leaves the window as it is, but takes a random choice in one of four decisions."""

    def reset(self):
        """Starts the stream of draws again."""
        self._random = np.random.default_rng(0)

    def __call__(self, observations):
        """Returns a choice for each row of observations."""
        rows = len(observations)
        choices = self._random.integers(len(WINDOW_EXPONENTS), size=rows)
        return np.where(self._random.random(rows) < 0.25, choices, KEEP)


sometimes = Sometimes()
