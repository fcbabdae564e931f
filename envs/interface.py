"""Where an agent and its flow meet: what actions do to which controller, and what is observed."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Interface:
    """What an environment's class says of an agent and its flow.

    Attributes:
        action_space: The name of the action space in C++ (sim/environment).
        controller: The name of the controller of the agent's flow.
        observations: The name of the observations' layout in C++ (sim/environment).
        scales: Actions are factors for the controller's window and pacing rate.
    """

    action_space: str
    controller: str
    observations: str
    scales: bool
