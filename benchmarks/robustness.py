"""How a policy does on the worst networks of a suite, beside CUBIC and BBR there.

On each network a policy is compared with the better of the two, each a mean over the seeds:

- A collapse: less than half of its throughput share, or a loss rate more than 10 points above
  that of both.
- Behind: a reward more than 0.1 below.

Power is goodput over mean RTT, the geometric mean over the networks on which both were measured.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

REFERENCES = ("cubic", "bbr")
_LEAST_SHARE = 0.5
_MORE_LOSS = 0.1
_BEHIND = 0.1


@dataclass(frozen=True)
class Robustness:
    """A policy on the networks of a suite.

    `collapses` counts networks. `behind` is the share of them on which its reward is more than 0.1
    below the better one's, and `worst` the largest such difference. Power is in Mbit/s per s.
    """

    collapses: int
    behind: float
    worst: float
    power: float | None


def robustness(
    cells: Sequence[Mapping[str, Any]], references: Sequence[Sequence[Mapping[str, Any]]]
) -> Robustness:
    """Compares a policy with others, network by network.

    `cells` are the policy's means of reward, throughput_share, loss_rate, goodput_mbps and
    mean_rtt_ms on each network, `references` those of CUBIC and BBR in the same order.
    """
    collapses, differences, powers = 0, [], []
    for own, *others in zip(cells, *references, strict=True):
        share = max(other["throughput_share"] for other in others)
        loss = max(other["loss_rate"] for other in others)
        collapses += (
            own["throughput_share"] < _LEAST_SHARE * share or own["loss_rate"] > loss + _MORE_LOSS
        )
        differences.append(own["reward"] - max(other["reward"] for other in others))
        if own["goodput_mbps"] and own["mean_rtt_ms"]:
            powers.append(math.log(1e3 * own["goodput_mbps"] / own["mean_rtt_ms"]))
    behind = sum(difference < -_BEHIND for difference in differences) / len(differences)
    power = math.exp(math.fsum(powers) / len(powers)) if powers else None
    return Robustness(collapses, behind, min(differences), power)
