"""What agents earn: one definition for learned agents and hand-coded controllers.

All rewards are computed from what happened since the last decision over all flows of the
environment. Rates count bytes on the wire, headers included.

| name              | reward                                                                  |
|-------------------|-------------------------------------------------------------------------|
| `fair-throughput` | throughput share - 5 · loss rate - 1 · (1 - Jain)                       |
| `delay`           | throughput share - 5 · loss rate - 1 · (RTT ratio - 1)                  |
| `power`           | throughput share / RTT ratio                                            |
| `aurora`          | 10 · packets per second - 1000 · RTT in s - 2000 · loss rate            |
| `orca`            | (packets - 5 · drops) per second / highest packets per second / delay'  |
| `preference`      | 4 · (p_throughput · throughput share - p_loss · 5 · loss rate           |
|                   | - p_fairness · 1 · (1 - Jain) - p_delay · 1 · (RTT ratio - 1))          |

Throughput share is what reached the receivers over what the bottleneck could have sent, the loss
rate what the network dropped over what it dropped or delivered, the RTT ratio the mean of each RTT
sample over its flow's minimum; delay' is the RTT ratio, but 1 up to 1.25. Aurora's is from Jay et
al. (ICML 2019), section 4.1, Orca's from Abbasloo et al. (SIGCOMM 2020). p is the episode's
preference (quicgym.envs.preferences), which sums to 1: with equal parts of throughput, loss and
fairness the reward is 4/3 of `fair-throughput`, with delay in fairness's place 4/3 of `delay`.

With a reward per flow, a flow's throughput share is its throughput over an equal part of the
bottleneck's capacity, Jain's index stays the common one, and all else is the flow's own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from quicgym import _core
from quicgym.yaml_files import closest

REWARDS: tuple[str, ...] = tuple(_core.REWARDS)

RewardFunction = Callable[[Mapping[str, np.ndarray]], np.ndarray]
"""From the columns of `info`, each of shape (rows,), to the rewards, of shape (rows,).

The rows are those of the agents whose episode has moved on.
"""


@dataclass(frozen=True)
class Reward:
    """A reward by name, with weights of its own.

    Attributes:
        name: One of REWARDS.
        loss_weight: In fair-throughput, delay and preference.
        fairness_weight: In fair-throughput and preference.
        delay_weight: In delay and preference.
    """

    name: str = "fair-throughput"
    loss_weight: float = 5.0
    fairness_weight: float = 1.0
    delay_weight: float = 1.0

    def __post_init__(self) -> None:
        """Raises ValueError for an unknown name or a weight that is not a finite number."""
        if self.name not in REWARDS:
            raise ValueError(f"unknown reward {self.name!r}; {closest(self.name, REWARDS)}")
        for field in ("loss_weight", "fairness_weight", "delay_weight"):
            if not np.isfinite(getattr(self, field)):
                raise ValueError(f"{field} = {getattr(self, field)}: give a finite number")

    def to_core(self) -> _core.RewardSettings:
        """Fills the C++ structure."""
        settings = _core.RewardSettings()
        settings.kind = _core.REWARDS[self.name]
        settings.loss_weight = self.loss_weight
        settings.fairness_weight = self.fairness_weight
        settings.delay_weight = self.delay_weight
        return settings
