"""What agents see: the features of an observation, their bounds and their order.

An observation holds `history_length` frames, oldest first, one per decision interval; then the
state; then the action that is in force: its coordinates, or a 1 in the place of the controller that
was chosen. The tables are those of sim/environment/observation.hpp.
"""

from __future__ import annotations

import numpy as np
from gymnasium.spaces import Box

from quicgym import _core
from quicgym.envs.actions import find_action_space

OBSERVATION_VERSION = 1
"""Rises when an element of an observation changes its meaning, scale or place."""
FRAME_FEATURES: tuple[tuple[str, float, str], ...] = tuple(_core.FRAME_FEATURES)
"""Name, maximum and meaning; the minimum is 0, which also stands for "not known yet"."""
STATE_FEATURES: tuple[tuple[str, float, str], ...] = tuple(_core.STATE_FEATURES)


def observation_names(history_length: int, environment: str) -> tuple[str, ...]:
    """Returns the name of every element of an observation.

    Frames carry their age in decision intervals, such as rtt[0] for the latest.

    Args:
        history_length: Frames in the observation.
        environment: Its name, such as "tuning", or its id; or the name of an action space.
    """
    frames = [
        f"{name}[{age}]" for age in reversed(range(history_length)) for name, _, _ in FRAME_FEATURES
    ]
    state = [name for name, _, _ in STATE_FEATURES]
    space = find_action_space(environment)
    shown = space.choices or space.coordinates
    return (*frames, *state, *(f"action_{name}" for name in shown))


def observation_space(history_length: int, environment: str) -> Box:
    """Returns the space: float32, finite and bounded; arguments as `observation_names` has them."""
    space = find_action_space(environment)
    shown = len(space.choices or space.coordinates)
    frame = [maximum for _, maximum, _ in FRAME_FEATURES]
    state = [maximum for _, maximum, _ in STATE_FEATURES]
    high = np.array([*frame * history_length, *state, *[1.0] * shown], np.float32)
    low = np.zeros_like(high)
    if not space.choices:
        low[len(high) - shown :] = -1.0
    return Box(low, high, dtype=np.float32)
