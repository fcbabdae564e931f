"""The yardstick that knows the network."""

from __future__ import annotations

from typing import Any

import pytest

from quicgym import Scenario, ScenarioError
from quicgym.agents.evaluation.rollouts import play
from quicgym.agents.policies import find_policy


def scenario(**fields: Any) -> Scenario:
    link = {"rate_mbps": 20, "delay_ms": 20, "queue": {"limit": 60}}
    return Scenario.model_validate(
        {
            **{"name": "known", "duration_s": 20, "bottleneck": link, "flows": [{"count": 3}]},
            **{"access": {"rate_mbps": 1000, "delay_ms": 0}, **fields},
        }
    )


def test_flows_that_know_the_network_share_it_equally_and_lose_nothing() -> None:
    metrics = play(find_policy("omniscient"), scenario()).evaluation
    assert metrics["loss_rate"] == 0
    assert metrics["throughput_share"] > 0.97
    assert metrics["jain"] > 0.999


def test_a_rate_that_changes_is_followed_at_once() -> None:
    steps = [{"at_s": at, "rate_mbps": mbps} for at, mbps in ((5, 4), (10, 40), (15, 1))]
    link = {"rate_mbps": 20, "delay_ms": 20, "queue": {"limit": 60}, "rate_schedule": steps}
    metrics = play(find_policy("omniscient"), scenario(bottleneck=link)).evaluation
    hand_coded = [
        play(find_policy(name), scenario(bottleneck=link)).evaluation
        for name in ("bbr", "bbr3", "cubic")
    ]
    assert metrics["reward"] > max(other["reward"] for other in hand_coded)
    assert metrics["throughput_share"] > 0.95


def test_next_to_a_controller_it_sends_its_share() -> None:
    flows = [{}, {"controller": "cubic"}]
    run = play(find_policy("omniscient"), scenario(flows=flows, duration_s=40))
    ours, cubic = (flow.goodput_mbps for flow in run.flows)
    assert 0.4 < ours / (ours + cubic) < 0.6


def test_a_flow_on_the_way_back_takes_nothing_from_its_share() -> None:
    flows = [{}, {"controller": "cubic", "direction": "backward"}]
    metrics = play(find_policy("omniscient"), scenario(flows=flows)).evaluation
    assert metrics["throughput_share"] > 0.9


def test_a_network_whose_fair_shares_it_does_not_know_is_refused() -> None:
    link = {"rate_mbps": 20, "delay_ms": 20, "queue": {"limit": 60}}
    with pytest.raises(ScenarioError, match="chain"):
        play(find_policy("omniscient"), scenario(chain=[{**link, "reverse": link}], reverse=link))
