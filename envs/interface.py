"""Where an agent and its flow meet: what actions do to which controller, and what is observed."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Interface:
    """Holds what an environment says about an agent and its flow; see CongestionControlEnv."""

    action_space: str
    controller: str
    observations: str
