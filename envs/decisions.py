"""Declares what the agents of an environment decide, how often, and what they observe.

Constructors of environments, training configurations and policies take these fields from here.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, get_args

from gymnasium.spaces import Box
from pydantic import Field

from quicgym import _core
from quicgym.envs.interface import Interface
from quicgym.envs.observations import observation_space
from quicgym.envs.registration import find_environment
from quicgym.envs.simulation.series import REWARD_INTERVAL_MS
from quicgym.validation import check_number

if TYPE_CHECKING:
    from quicgym.envs.environment import CongestionControlEnv

OutOfRange = Literal["clip", "error"]
_RANGES = {
    "decision_interval_ms": (1, 60_000),
    "decision_interval_rtts": (0.1, 1000),
    "history_length": (1, 1000),
    "reward_interval_ms": (1, 60_000),
}
_ENVIRONMENTS_OWN: Any = None
"""The default of a field that takes the environment's own value, or that of evaluations."""


@dataclass(frozen=True)
class Decisions:
    """Describes what an agent decides, how often, and what it observes.

    Every field but `environment` is a keyword argument of the environments, of `quicgym.make_vec`
    and of the parallel environment.

    Attributes:
        environment: The environment's name, such as "tuning"; an id or a class becomes the name.
        decision_interval_ms: The time between two decisions, from 1 to 60000 ms.
        decision_interval_rtts: The time between two decisions in smoothed RTTs, from 0.1 to 1000,
            where that is longer than `decision_interval_ms`. Before the first RTT sample an RTT is
            333 ms. None: `decision_interval_ms` holds.
        history_length: The number of decisions that an observation looks back on, from 1 to 1000;
            None: the environment's `default_history_length`.
        observations: The name of the layout of observations, such as "recent"; None: the
            environment's.
        controller: The name of the controller that actions tune or scale; None: the environment's.
        coordinates: In Tuning, the coordinates of an action by name, in this order; those that are
            not named stay at 0. "gain_cycle" stands for the cycle's length, the least gain of the
            phase that it begins with, and its eight gains, and "all" for every coordinate.
            "startup_gain=2" is no coordinate: it keeps this parameter at 2. None: gamma, beta,
            gain_cycle and alpha.
        reward_interval_ms: Reward and `info` are means over intervals of this length, from 1 to
            60000 ms; None: 100, as in an evaluation, so that longer decisions earn the same for the
            same packets. With 60000 they are taken from decision to decision.
        safe_envelope: Window and pacing rate are bounded by what was delivered of late
            (controllers/envelope.hpp); None: as the environment says.
        guard: An agent that leaves its path empty gets a floor under its window
            (controllers/guard.hpp).
        out_of_range: "clip": a coordinate outside [-1, 1] becomes the nearest end. "error": such a
            coordinate raises a ValueError. None: as the environment says.
        interface: The action space, the agent's controller and the layout of observations.

    Raises:
        ValueError: There is no such environment, the environment does not take the controller, or
            another field is not valid.
    """

    environment: str = "tuning"
    decision_interval_ms: float = 100.0
    decision_interval_rtts: float | None = None
    history_length: int = _ENVIRONMENTS_OWN
    observations: str = _ENVIRONMENTS_OWN
    controller: str | None = None
    coordinates: tuple[str, ...] | None = None
    reward_interval_ms: float = _ENVIRONMENTS_OWN
    safe_envelope: bool = _ENVIRONMENTS_OWN
    guard: bool = False
    out_of_range: OutOfRange = _ENVIRONMENTS_OWN
    interface: Interface = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Checks the fields, and puts the environment's own values in the places of None."""
        environment = find_environment(self.environment).variant(self.controller, self.coordinates)
        for name, value in (
            ("environment", environment.environment),
            ("coordinates", None if self.coordinates is None else tuple(self.coordinates)),
        ):
            object.__setattr__(self, name, value)
        for name, default in (
            ("history_length", environment.default_history_length),
            ("observations", environment.observations),
            ("safe_envelope", environment.safe_envelope),
            ("out_of_range", environment.out_of_range),
            ("reward_interval_ms", REWARD_INTERVAL_MS),
        ):
            if getattr(self, name) is None:
                object.__setattr__(self, name, default)
        for name, (smallest, largest) in _RANGES.items():
            value = getattr(self, name)
            if value is not None:
                check_number(name, value, smallest, largest, whole=name == "history_length")
        for name in ("safe_envelope", "guard"):
            if not isinstance(getattr(self, name), bool):
                raise ValueError(f"{name} = {getattr(self, name)!r}: give True or False")
        if not isinstance(self.observations, str):
            raise ValueError(f"observations = {self.observations!r}: give the name of a layout")
        interface = replace(environment.interface(), observations=self.observations)
        object.__setattr__(self, "interface", interface)
        _core.observation_elements(self.observations, 1)  # raises where there is no such layout
        known = get_args(OutOfRange)
        if self.out_of_range not in known:
            raise ValueError(f"out_of_range = {self.out_of_range!r}: give one of {known}")

    @classmethod
    def of(
        cls, environment: str | type[CongestionControlEnv], arguments: Mapping[str, Any]
    ) -> Decisions:
        """Returns the decisions for an environment's name, id or class, and for its arguments."""
        chosen: Any = environment
        return cls(chosen, **arguments)

    @property
    def observation_space(self) -> Box:
        """The space of one row of observations."""
        return observation_space(
            self.history_length, self.interface.action_space, self.interface.observations
        )

    @property
    def arguments(self) -> dict[str, Any]:
        """The keyword arguments with which the environment is made."""
        return {name: getattr(self, name) for name in DECISION_ARGUMENTS}


DECISION_ARGUMENTS = tuple(inspect.signature(Decisions).parameters)[1:]
"""The names of the fields that are keyword arguments of the environments."""


def declared(name: str) -> Any:
    """Returns a field of Decisions, with its default and its range, for a pydantic model."""
    smallest, largest = _RANGES.get(name, (None, None))
    return Field(default=getattr(Decisions, name), ge=smallest, le=largest)
