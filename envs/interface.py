"""Where an agent and its flow meet: what actions do to which controller, and what is observed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

OutOfRange = Literal["clip", "error"]


@dataclass(frozen=True)
class Interface:
    """What an environment's classes say, and its arguments may change.

    Attributes:
        action_space: The name of the action space in C++ (sim/environment).
        controller: The name of the controller of the agent's flow.
        observations: The name of their layout in C++ (sim/environment).
        scales: Actions are factors for the controller's window and pacing rate.
        safe_envelope: Window and pacing rate are bounded by what was delivered of late
            (controllers/envelope.hpp).
        out_of_range: "clip": a coordinate outside [-1, 1] becomes the nearest end. "error": it is a
            ValueError.

    Raises:
        ValueError: There is no such `out_of_range`.
    """

    action_space: str
    controller: str
    observations: str
    scales: bool
    safe_envelope: bool
    out_of_range: OutOfRange

    def __post_init__(self) -> None:
        """Checks what users give."""
        known = get_args(OutOfRange)
        if self.out_of_range not in known:
            raise ValueError(f"out_of_range = {self.out_of_range!r}: give one of {known}")
