"""Short scenarios and episodes that the tests of the environments share."""

from __future__ import annotations

import numpy as np

from quicgym import Scenario
from quicgym.envs.scenario import Access, BernoulliLoss, Flow, Link, Queue


def scenario(flows=1, duration_s=2.0, loss=0.002, rate_mbps=8.0, **fields) -> Scenario:
    """A link of 8 Mbps and 40 ms with a queue of one BDP and a little random loss."""
    return Scenario(
        name="short",
        duration_s=duration_s,
        bottleneck=Link(
            rate_mbps=rate_mbps,
            delay_ms=10,
            queue=Queue(limit=35),
            loss=BernoulliLoss(probability=loss) if loss else None,
        ),
        access=Access(rate_mbps=50, delay_ms=5),
        flows=fields.pop("flow_list", (Flow(count=flows, start_s=0.1, start_jitter_ms=50),)),
        **fields,
    )


def actions(space, count, seed=0):
    """Random actions that are the same for every caller."""
    space.seed(seed)
    return [space.sample() for _ in range(count)]


def rest(space):
    """An action of the space, made of zeros."""
    return np.zeros(space.shape, space.dtype)


def play(environment, chosen, seed=None, options=None):
    """One episode, or as much of it as there are actions: (observation, reward, end, info) rows."""
    observation, info = environment.reset(seed=seed, options=options)
    rows = [(observation, 0.0, False, False, info)]
    for action in chosen:
        rows.append(environment.step(action))
        if rows[-1][2] or rows[-1][3]:
            break
    return rows


def same(first, second) -> bool:
    """Whether two episodes are the same, bit for bit."""
    return len(first) == len(second) and all(
        np.array_equal(a[0], b[0]) and a[1:] == b[1:] for a, b in zip(first, second, strict=True)
    )
