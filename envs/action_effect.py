"""Measures the effect of an environment's actions, so that a change does not go unnoticed.

A learned policy keeps its worth only as long as its actions do what they did in training. This
depends on the controller that it steers and on the safe envelope, which change between versions.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

from quicgym.envs.batch import EpisodeBatch
from quicgym.envs.decisions import Decisions
from quicgym.envs.episodes import EpisodeChoice, EpisodeSource
from quicgym.envs.scenarios.flows import Flow
from quicgym.envs.scenarios.links import Access, BernoulliLoss, Link, Queue, RateStep
from quicgym.envs.scenarios.model import Scenario

_HELD = 10  # decisions that an action lasts, and over which an effect is averaged
_PATH = Scenario(
    name="action-effect",
    duration_s=12,
    bottleneck=Link(
        rate_mbps=12,
        delay_ms=20,
        queue=Queue(limit=60),
        loss=BernoulliLoss(probability=0.01),
        rate_schedule=(RateStep(at_s=4, rate_mbps=3), RateStep(at_s=8, rate_mbps=12)),
    ),
    access=Access(rate_mbps=100, delay_ms=5),
    flows=(Flow(),),
)
TOLERANCE = 0.02
"""The largest relative difference of an effect that another compiler may make."""


@cache
def action_effect(
    environment: str, controller: str | None = None, coordinates: tuple[str, ...] | None = None
) -> tuple[float, ...]:
    """Returns the throughput, in Mbps, and the RTT, in ms, that fixed actions lead to on one path.

    The path loses packets and has a rate that falls and rises. The actions are drawn once for all,
    and many are at the ends of their ranges.

    Args:
        environment: The environment's name.
        controller: The controller that actions tune or scale; None: the environment's.
        coordinates: Names of the coordinates of an action; None: the environment's own.
    """
    decisions = Decisions(environment, controller=controller, coordinates=coordinates)
    source = EpisodeSource(_PATH, "native", decisions)
    batch = EpisodeBatch(source, 1, 1, reward="fair-throughput")
    random = np.random.default_rng(0)
    batch.begin_chosen([0], [EpisodeChoice(_PATH, seed=1)])
    batch.selected[:] = True
    rows: list[np.ndarray] = []
    while not (batch.truncations[0] or batch.terminations[0]):
        if len(rows) % _HELD == 0:
            if batch.choices:
                batch.actions[...] = random.integers(len(batch.choices))
            else:
                batch.actions[...] = random.uniform(-1.5, 1.5, batch.actions.shape).clip(-1, 1)
        batch.step()
        info = batch.columns()
        rows.append(np.nan_to_num([info["throughput_mbps"][0], info["rtt_ms"][0]]))
    batch.close()
    means = [np.mean(rows[begin : begin + _HELD], axis=0) for begin in range(0, len(rows), _HELD)]
    return tuple(round(float(value), 4) for value in np.concatenate(means))


def differs(recorded: Sequence[float], now: Sequence[float]) -> bool:
    """Returns whether two effects differ by more than a compiler can make them differ."""
    return len(recorded) != len(now) or not np.allclose(recorded, now, rtol=TOLERANCE)
