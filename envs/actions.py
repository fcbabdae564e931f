"""Describes the actions of agents: their coordinates, and the presets among them.

Every coordinate a is in [-1, 1]. In the space "tuning" they stand for parameters of `bbr`: 0 is
BBR, and a step has about the same effect everywhere. An action of the environment Tuning has
`gamma`, `beta`, the gain cycle (`cycle_length`, `entry_gain_minimum` and the eight gains) and
`alpha`, in this order; `coordinates=("all",)` adds the others:

| coordinate           | parameter                              | at -1 | at 0   | at 1     |
|----------------------|----------------------------------------|-------|--------|----------|
| `gamma`              | 30 (1 - a) / a packets, ∞ from 0 down  | ∞     | ∞      | 0        |
| `beta`               | a, 0 from 0 down                       | 0     | 0      | 1        |
| `alpha`              | 1 - 10^(3 - 6 abs a), 0 in the middle  | 0.999 | 0      | 0.999    |
| `cycle_length`       | 8 · 8^a phases, rounded                | 1     | 8      | 64       |
| `entry_gain_minimum` | 1 + a                                  | 0     | 1      | 2        |
| `gain_1` … `gain_8`  | 2^a times BBR's gain; later ones are 1 | half  | BBR's  | twice    |
| `cwnd_gain`          | 2 · 4^a                                | 0.5   | 2      | 8        |
| `startup_gain`       | 2.885 · 2^a                            | 1.443 | 2.885  | 5.77     |
| `rtprop_window`      | 10 · 8^a s                             | 1.25  | 10     | 80       |
| `probe_rtt_duration` | 200 · 10^a ms                          | 20    | 200    | 2000     |
| `bandwidth_window`   | (cycle length + 2) · 4^a rounds        | 1/4   | BBR's  | 4 times  |

In a space "tuning:CONTROLLER" the coordinates are all parameters of that controller, each over the
range and scale that the catalogue gives it: see `controller_action`.

`alpha` has three decimals and is 0 up to abs a = 1/2; below 0 RTprop keeps its first sample
(`smoothing_updates_rtprop`). The least weight lets BBR's window follow the latest RTT, so noise
around 0 must not bring it.

In the space "rate" the window and the pacing rate of `external` are multiplied by 2^a. In "window"
an action is the place of an exponent x in WINDOW_EXPONENTS: the window of `guided` is multiplied by
2^x.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from gymnasium.spaces import Box, Discrete, Space

from quicgym import _core
from quicgym.controllers import catalogue, find
from quicgym.envs.registration import environment_name, environments, unknown_environment
from quicgym.yaml_files import closest

ACTION_VERSION = 1
"""Rises when a coordinate of an action changes its meaning, scale or place."""
WINDOW_EXPONENTS = tuple(float(choice) for choice in _core.find_action_space("window").choices)
"""The choices of the space "window"."""
PRESETS = tuple(entry.name for entry in catalogue() if "bbr" in (entry.name, entry.preset_of))
"""The controllers that are points of Tuning's action space."""


def find_action_space(name: str) -> _core.ActionSpace:
    """Returns what the C++ side knows of an action space.

    Args:
        name: An environment's name, such as "tuning", its id, or the action space's name.

    Raises:
        ValueError: There is none of this name.
    """
    known = environment_name(name)
    environment = environments().get(known)
    whole = known.partition("[")[0]
    if environment is None and whole not in (space.name for space in _core.action_spaces()):
        raise unknown_environment(name)
    return _core.find_action_space(environment.action_space_name if environment else known)


def choices(name: str) -> tuple[str, ...]:
    """Returns the names of an action's choices; none where it has coordinates.

    Args:
        name: An environment's name, such as "tuning", its id, or an action space's name.
    """
    return tuple(find_action_space(name).choices)


def action_space(name: str) -> Space:
    """Returns the space of one agent's actions; `name` as `choices` has it."""
    space = find_action_space(name)
    if space.choices:
        return Discrete(len(space.choices))
    return Box(-1.0, 1.0, (len(space.coordinates),), np.float32)


def action_parameters(action: np.ndarray, *, space: str = "tuning") -> dict[str, list[float]]:
    """Returns the parameters of `bbr` that an action of Tuning sets.

    Args:
        action: Shape (coordinates,), from -1 to 1; see this module's table.
        space: The environment's name, or a part of its space that `part_of_space` names.

    Raises:
        ValueError: Wrong shape, or a coordinate that is not from -1 to 1.
    """
    chosen = find_action_space(space)
    action = np.asarray(action, dtype=np.float32)
    if action.shape != (len(chosen.coordinates),) or not np.all(np.abs(action) <= 1):
        raise ValueError(
            f"action = {action}: give {len(chosen.coordinates)} numbers from -1 to 1, "
            f"for {', '.join(chosen.coordinates)}"
        )
    return dict(chosen.decode(action.tolist()))


def tuned_space(controller: str) -> str:
    """Returns the name of the action space that tunes a controller.

    Args:
        controller: One of quicgym's own that decides by itself, such as "ibcca" or "cubic+".

    Raises:
        ValueError: There is none of this name, or its parameters cannot be tuned.
    """
    name = f"tuning:{controller}"
    spaces = {space.name for space in _core.action_spaces()}
    if name in spaces:
        return name
    tunable = ", ".join(space.partition(":")[2] for space in sorted(spaces) if ":" in space)
    try:
        info = find(controller)
    except (KeyError, ValueError) as error:
        raise ValueError(f"controller = {controller!r}: {error.args[0]}") from None
    if not info.is_own:
        reason = (
            "it is not one of quicgym's own, whose catalogue says how ranges become coordinates"
        )
    elif info.steered:
        reason = "an agent decides in its place by other actions"
    else:
        reason = "a parameter's range has no end, and no scale that covers it"
    raise ValueError(
        f"controller = {controller!r}: cannot be tuned, {reason}; give one of {tunable}"
    )


def controller_action(controller: str, **parameters: Any) -> np.ndarray:
    """Returns the action of Tuning-v1 with this `controller` that sets these parameters.

    Args:
        controller: Such as "ibcca".
        **parameters: Others than the controller's own, such as theta=0.8.

    Returns:
        Shape (coordinates,), float32, from -1 to 1. What it sets has about five digits.

    Raises:
        ValueError: The controller cannot be tuned, a parameter is unknown or out of range, or a
            list has another length than the default.
    """
    tuned_space(controller)
    info = find(controller)
    values = info.complete(parameters)
    coordinates = []
    for parameter in info.parameters:
        numbers = values[parameter.name]
        if len(numbers) != len(parameter.default):
            raise ValueError(
                f"parameter {parameter.name!r} of {controller!r} = {numbers}: an action has "
                f"{len(parameter.default)} numbers for it; give as many"
            )
        coordinates += [_core.coordinate_of(controller, parameter.name, v) for v in numbers]
    return np.array(coordinates, dtype=np.float32)


def controller_parameters(controller: str, action: np.ndarray) -> dict[str, list[float]]:
    """Returns the parameters that an action of Tuning-v1 with this `controller` sets.

    Raises:
        ValueError: The controller cannot be tuned, or the action is not of its space.
    """
    coordinates = tuple(_core.find_action_space(tuned_space(controller)).coordinates)
    action = np.asarray(action, dtype=np.float32)
    if action.shape != (len(coordinates),) or not np.all(np.abs(action) <= 1):
        raise ValueError(
            f"action = {action}: give {len(coordinates)} numbers from -1 to 1, "
            f"for {', '.join(coordinates)}"
        )
    rest: Iterator[float] = iter(action.tolist())
    return {
        parameter.name: [
            _core.value_at(controller, parameter.name, next(rest)) for _ in parameter.default
        ]
        for parameter in find(controller).parameters
    }


def part_of_space(name: str, coordinates: Sequence[str]) -> str:
    """Returns the name of the action space that has some coordinates of another.

    Args:
        name: The action space's name, such as "tuning", or a part of it.
        coordinates: Names of coordinates, or "gain_cycle", or "all". "startup_gain=2" keeps that
            parameter at this value, where an action cannot change it.

    Raises:
        ValueError: A coordinate is unknown or named twice, there is none, or a fixed parameter is
            unknown, outside its range, or moved as well.
    """
    if isinstance(coordinates, str):
        raise ValueError(f"coordinates = {coordinates!r}: give a list of names")
    whole = name.partition("[")[0]
    part = f"{whole}[{','.join(coordinates)}]"
    known = ["all", "gain_cycle", *_core.find_action_space(f"{whole}[all]").coordinates]
    for chosen in coordinates:
        if chosen not in known and "=" not in chosen:
            raise ValueError(f"coordinates: {chosen!r} is no coordinate; {closest(chosen, known)}")
    _core.find_action_space(part)  # raises
    return part


def presets_of(space: str) -> tuple[str, ...]:
    """Returns which of PRESETS are points of a part of "tuning", but for what the part fixes."""
    chosen = _core.find_action_space(space)
    return tuple(
        name for name in PRESETS if chosen.encode(find(name).complete() | chosen.fixed) is not None
    )


def preset_action(controller: str, /, *, space: str = "tuning", **parameters: Any) -> np.ndarray:
    """Returns the action of Tuning that makes the agent's flow the given controller.

    Taken from an episode's first step on, it gives the trace of that controller, packet by packet.

    Args:
        controller: One of PRESETS.
        space: The environment's name, or a part of its space that `part_of_space` names. What this
            part fixes is part of the preset.
        **parameters: Others than the preset's own, such as gamma=60.

    Returns:
        Shape (coordinates,), float32.

    Raises:
        ValueError: Not a preset, an unknown parameter, or a value outside the space.
    """
    if controller not in PRESETS:
        raise ValueError(
            f"controller {controller!r} is not a point of the action space; there are: "
            f"{', '.join(PRESETS)}. quicgym.baseline({controller!r}) is any controller as a policy"
        )
    chosen = find_action_space(space)
    values = find(controller).complete(chosen.fixed | parameters)
    tuned = chosen.decode([0.0] * len(chosen.coordinates))
    for name, value in find("bbr").complete().items():
        if name not in tuned and values[name] != value:
            raise ValueError(
                f"parameter {name!r} of {controller!r} = {values[name]}: the action space keeps it "
                f"at {value}"
            )
    action = chosen.encode(values)
    if action is None:
        raise ValueError(
            f"{controller} with {parameters}: outside the action space {space!r}; the table of "
            "quicgym.envs.actions has its ends, and space='tuning[all]' all parameters"
        )
    return np.array(action, dtype=np.float32)
