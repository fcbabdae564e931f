"""Names the features of observations, with their bounds and their order.

There are several layouts. Each ends with the action that is in force: its coordinates, or a 1 in
the place of the choice.

The layout "spans" sums up the last decision interval, the one before, the two before that, the four
before those and so on, `history_length` intervals in all. The state follows. Ratios are given as
logarithms (sim/environment/spans_observation.cpp).
"""

from __future__ import annotations

import numpy as np
from gymnasium.spaces import Box, Space

from quicgym import _core
from quicgym.envs.actions import find_action_space
from quicgym.envs.registration import environment_name, environments

OBSERVATION_VERSION = 1
"""Rises when an element of an observation changes its meaning, scale or place."""


def observation_names(
    history_length: int,
    environment: str,
    observations: str | None = None,
) -> tuple[str, ...]:
    """Returns the name of every element of an observation.

    Frames carry their age in decision intervals, such as rtt[0] for the latest; spans the first age
    and the one after the last, such as rtt[4:8].

    Args:
        history_length: Decisions that the observation looks back on.
        environment: An environment's name, such as "tuning", or its id; or the name of an action
            space.
        observations: Their layout; None: the environment's.
    """
    space = find_action_space(environment)
    names = [name for name, _, _ in _elements(history_length, environment, observations)]
    names += [f"action_{name}" for name in space.choices or space.coordinates]
    return tuple(names)


def in_short(space: Space) -> str:
    """Returns a space in a few words: the bounds of all elements would fill a screen."""
    if not isinstance(space, Box):
        return str(space)
    return f"{space.shape} from {space.low.min():g} to {space.high.max():g}"


def observation_space(
    history_length: int,
    environment: str,
    observations: str | None = None,
) -> Box:
    """Returns the space: float32, finite and bounded; arguments as `observation_names` has them."""
    space = find_action_space(environment)
    shown = len(space.choices or space.coordinates)
    elements = _elements(history_length, environment, observations)
    lowest = 0.0 if space.choices else -1.0
    low = [*(minimum for _, minimum, _ in elements), *[lowest] * shown]
    high = [*(maximum for _, _, maximum in elements), *[1.0] * shown]
    return Box(np.array(low, np.float32), np.array(high, np.float32), dtype=np.float32)


def layout_of(environment: str) -> str:
    """Returns the layout of an environment's observations; of an action space's name "spans"."""
    known = environments().get(environment_name(environment))
    return known.observations if known is not None else "spans"


def _elements(
    history_length: int, environment: str, observations: str | None
) -> list[tuple[str, float, float]]:
    elements: list[tuple[str, float, float]] = _core.observation_elements(
        observations or layout_of(environment), history_length
    )
    return elements
