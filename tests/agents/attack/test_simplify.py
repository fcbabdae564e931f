"""Steps from a network to a simpler one."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from quicgym import Scenario
from quicgym.agents.attack.simplify import changed, parts, roundings
from quicgym.envs.scenarios.links import Link, Queue
from quicgym.envs.scenarios.suites import load_entry


def drawn(seed: int, distribution: str = "worlds") -> Scenario:
    return load_entry(distribution).sample(np.random.default_rng(seed))


# Of the first forty networks, those that have every world and every kind of step among them.
@pytest.mark.parametrize("seed", (0, 1, 3, 4, 5, 9, 20, 21, 25))
def test_all_steps_together_leave_one_flow_on_a_plain_link(seed: int) -> None:
    network = drawn(seed)
    rng = np.random.default_rng(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # such as ECN where no queue marks
        for _ in range(1000):
            steps = list((parts(network) | roundings(network)).values())
            if not steps:
                break
            after = changed(network, steps[rng.integers(len(steps))])
            assert after is not None and after != network
            network = after
    link = network.bottleneck
    assert link is not None and link.rate_mbps is not None
    assert link == Link(
        rate_mbps=float(f"{link.rate_mbps:.1g}"),
        delay_ms=link.delay_ms,
        queue=Queue(limit=int(float(f"{link.queue.limit:.1g}"))),
    )
    assert network.reverse is None and network.short_flows == ()
    (flow,) = network.flows
    assert flow.controller is None and flow.start_s == 0 and not flow.ecn
    assert network.duration_s < 10


def test_the_way_back_keeps_its_bursts_and_follows_the_way_there() -> None:
    network = next(
        network
        for network in (drawn(seed, "stress-training") for seed in range(100))
        if network.reverse and network.reverse.opens_every_ms
    )
    steps = {what: step for what, step in roundings(network).items() if "1 digits" in what}
    for step in steps.values():
        network = changed(network, step) or network
    link, back = network.bottleneck, network.reverse
    assert link is not None and back is not None and back.opens_every_ms is not None
    assert (link.rate_mbps, link.delay_ms) == (back.rate_mbps, back.delay_ms)
    assert back.opens_every_ms == float(f"{back.opens_every_ms:.1g}")
    assert network.base_rtt_ms == pytest.approx(float(f"{network.base_rtt_ms:.1g}"))
