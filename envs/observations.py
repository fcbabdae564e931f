"""What agents see: the features of an observation, their bounds and their order.

An observation holds `history_length` frames, oldest first, one per decision interval; then the
state; then the coordinates of the action that is in force. The tables are those of
sim/environment/observation.hpp.
"""

from __future__ import annotations

import numpy as np
from gymnasium.spaces import Box

from quicgym import _core

FRAME_FEATURES: tuple[tuple[str, float, str], ...] = tuple(_core.FRAME_FEATURES)
"""Name, maximum and meaning; the minimum is 0, which also stands for "not known yet"."""
STATE_FEATURES: tuple[tuple[str, float, str], ...] = tuple(_core.STATE_FEATURES)


def observation_names(history_length: int, coordinates: tuple[str, ...]) -> tuple[str, ...]:
    """Returns the name of every element of an observation.

    Frames carry their age in decision intervals, such as rtt[0] for the latest.
    """
    frames = [
        f"{name}[{age}]" for age in reversed(range(history_length)) for name, _, _ in FRAME_FEATURES
    ]
    state = [name for name, _, _ in STATE_FEATURES]
    return (*frames, *state, *(f"action_{name}" for name in coordinates))


def observation_space(history_length: int, coordinates: tuple[str, ...]) -> Box:
    """Returns the space: float32, finite and bounded."""
    frame = [maximum for _, maximum, _ in FRAME_FEATURES]
    state = [maximum for _, maximum, _ in STATE_FEATURES]
    high = np.array([*frame * history_length, *state, *(1.0 for _ in coordinates)], np.float32)
    low = np.zeros_like(high)
    low[len(high) - len(coordinates) :] = -1.0
    return Box(low, high, dtype=np.float32)
