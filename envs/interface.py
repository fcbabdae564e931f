"""Where an agent and its flow meet: what actions do to which controller, and what is observed."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Interface:
    """What an environment's class says of an agent and its flow, see CongestionControlEnv."""

    action_space: str
    controller: str
    observations: str
