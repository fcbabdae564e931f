"""What agents do: the coordinates of actions, and the presets among them.

Every coordinate a is in [-1, 1]. In the space "tuning" they stand for parameters of `bbr`:

| coordinate                 | parameter                            | at -1 | at 0   | at 1     |
|----------------------------|--------------------------------------|-------|--------|----------|
| `gamma`                    | 30 (1 + a) / (1 - a) packets         | 0     | 30     | infinity |
| `beta`                     | (1 + a) / 2                          | 0     | 0.5    | 1        |
| `alpha`                    | 1 - 10^(-1.5 (1 + a)), to 3 decimals | 0     | 0.968  | 0.999    |
| `smoothing_updates_rtprop` | (1 + a) / 2; on from 0.5             | off   | on     | on       |
| `cycle_length`             | 1 + 3.5 (1 + a) phases, rounded      | 1     | 5      | 8        |
| `entry_gain_minimum`       | 1 + a                                | 0     | 1      | 2        |
| `gain_1` … `gain_8`        | 1 + a / 2                            | 0.5   | 1      | 1.5      |

Gains beyond the cycle's length are not used. All presets of the BBR family are points of the space.

In the space "rate" the window and the pacing rate of `external` are multiplied by 2^a. In the space
"switching" an action is the place of a controller in `quicgym.controllers.switching_members()`, in
"window" that of an exponent x in WINDOW_EXPONENTS: the window of `guided` is multiplied by 2^x.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium.spaces import Box, Discrete, Space

from quicgym import _core
from quicgym.controllers import catalogue, find, switching_members

ACTION_VERSION = 1
"""Rises when a coordinate of an action changes its meaning, scale or place."""
TUNING_COORDINATES: tuple[str, ...] = tuple(_core.action_coordinates(_core.ActionKind.tuning))
RATE_COORDINATES: tuple[str, ...] = tuple(_core.action_coordinates(_core.ActionKind.rate))
COORDINATES = {
    "tuning": TUNING_COORDINATES,
    "rate": RATE_COORDINATES,
    "switching": tuple(_core.action_coordinates(_core.ActionKind.switching)),
    "window": tuple(_core.action_coordinates(_core.ActionKind.window)),
}
"""Names by the kind of action."""
WINDOW_EXPONENTS: tuple[float, ...] = tuple(_core.WINDOW_EXPONENTS)
"""The choices of the space "window"."""
PRESETS = tuple(entry.name for entry in catalogue() if "bbr" in (entry.name, entry.preset_of))
"""The controllers that are points of the space "tuning"."""


def choices(kind: str) -> tuple[str, ...]:
    """Returns the names of an action's choices; none where it has coordinates."""
    if kind == "switching":
        return switching_members()
    return tuple(f"{exponent:+g}" for exponent in WINDOW_EXPONENTS) if kind == "window" else ()


def action_space(kind: str) -> Space:
    """Returns the space of one agent's actions."""
    if choices(kind):
        return Discrete(len(choices(kind)))
    return Box(-1.0, 1.0, (len(COORDINATES[kind]),), np.float32)


def action_parameters(action: np.ndarray) -> dict[str, list[float]]:
    """Returns the parameters of `bbr` that an action of Tuning-v0 sets.

    Args:
        action: Shape (14,), from -1 to 1; see this module's table.

    Raises:
        ValueError: Wrong shape, or a coordinate that is not from -1 to 1.
    """
    action = np.asarray(action, dtype=np.float32)
    if action.shape != (len(TUNING_COORDINATES),) or not np.all(np.abs(action) <= 1):
        raise ValueError(
            f"action = {action}: give {len(TUNING_COORDINATES)} numbers from -1 to 1, "
            f"for {', '.join(TUNING_COORDINATES)}"
        )
    return dict(_core.decode_tuning(action.tolist()))


def preset_action(controller: str, **parameters: Any) -> np.ndarray:
    """Returns the action of Tuning-v0 that makes the agent's flow the given controller.

    Taken from an episode's first step on, it gives the trace of that controller, packet by packet.

    Args:
        controller: One of PRESETS.
        **parameters: Others than the preset's own, such as gamma=60.

    Returns:
        Shape (14,), float32.

    Raises:
        ValueError: Not a preset, an unknown parameter, or a value outside the space.
    """
    if controller not in PRESETS:
        raise ValueError(
            f"controller {controller!r} is not a point of the action space; there are: "
            f"{', '.join(PRESETS)}. Run any controller with reset(options={{'controller': ...}})"
        )
    values = find(controller).complete(parameters)
    fixed = {
        name: value
        for name, value in find("bbr").complete().items()
        if name not in (*TUNING_COORDINATES, "gain_cycle")
    }
    for name, value in fixed.items():
        if values[name] != value:
            raise ValueError(
                f"parameter {name!r} of {controller!r} = {values[name]}: the action space keeps it "
                f"at {value}"
            )
    action = _core.encode_tuning(values)
    if action is None:
        raise ValueError(
            f"{controller} with {parameters}: outside the action space; "
            "give gains from 0.5 to 1.5, at most 8 of them, and entry_gain_minimum from 0 to 2"
        )
    return np.array(action, dtype=np.float32)
