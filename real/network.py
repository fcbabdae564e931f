"""A scenario's network without its flows: what packets of real programs pass."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from quicgym import _core
from quicgym.envs.scenarios.conversion import with_every_flow
from quicgym.envs.scenarios.fields import ScenarioError
from quicgym.envs.scenarios.files import load_scenario
from quicgym.envs.scenarios.model import Scenario


def as_scenario(scenario: Scenario | str | Path) -> Scenario:
    """Returns a scenario that is given by name, path or itself."""
    return scenario if isinstance(scenario, Scenario) else load_scenario(scenario)


def to_network(scenario: Scenario) -> _core.Scenario:
    """Returns what an emulated network reads: links, and a path for each single flow.

    ScenarioError where the scenario has something that only a simulation can do.
    """
    core = with_every_flow(scenario)
    try:
        _core.EmulatedNetwork(core, 0)
    except ValueError as error:
        raise ScenarioError(
            f"{scenario.name}: {error}; take a scenario without it, the real network has links only"
        ) from error
    return core


@dataclass(frozen=True)
class Replay:
    """The fates of packets that were sent at given times.

    Attributes:
        arrivals_ns: Shape (packets,), when each arrived at the other host; -1 where it did not.
        fates: Shape (packets,), text: delivered, dropped (by a queue or a policer), lost (at
            random, on a link) or held (by a link that stays silent).
    """

    arrivals_ns: NDArray[np.int64]
    fates: NDArray[np.str_]


def replay(
    scenario: Scenario | str | Path,
    times_ns: ArrayLike,
    wire_bytes: ArrayLike,
    *,
    paths: ArrayLike = 0,
    backward: ArrayLike = False,
    ecn: ArrayLike = 0,
    seed: int = 0,
) -> Replay:
    """Passes packets that were sent at given times through a scenario's network.

    The relay (`quicgym.real.Relay`) computes the same from the kernel's timestamps, and the native
    engine from what its endpoints send: all three agree to the nanosecond.

    Args:
        scenario: A name, a path or a scenario.
        times_ns: Shape (packets,), when each left its host, ascending, counted from the start.
        wire_bytes: Their sizes with all headers: a UDP payload and 30 bytes.
        paths: The flow of the scenario, from 0, whose hosts they go between.
        backward: Whether they go from the receivers' side to the senders'.
        ecn: Their codepoints (RFC 3168): 0, 1 for ECT(1), 2 for ECT(0), 3 for CE.
        seed: Seed of the network's random numbers.

    Raises:
        ScenarioError: The scenario has something that only a simulation can do.
        ValueError: Lengths differ, times go backwards, or a path does not exist.
    """
    times = np.ascontiguousarray(times_ns, np.int64)

    def column(values: ArrayLike, kind: type) -> Any:
        given: NDArray[Any] = np.asarray(values, kind)
        if given.ndim == 0:
            given = np.full(times.shape, given)
        return np.ascontiguousarray(given)

    arrivals, fates = _core.replay(
        to_network(as_scenario(scenario)),
        seed,
        times,
        column(wire_bytes, np.uint32),
        column(paths, np.uint32),
        column(backward, np.bool_),
        column(ecn, np.uint8),
    )
    names = np.array([fate.name for fate in _core.Fate])
    delivered = fates == _core.Fate.delivered.value
    return Replay(np.where(delivered, arrivals, -1), names[fates])
