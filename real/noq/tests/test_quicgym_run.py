"""quicgym.run finds the stack, and its results are those of a simulation."""

from __future__ import annotations

import pytest
from runs import short

import quicgym


def test_a_run_has_the_metrics_and_the_reward_of_a_simulation(tmp_path):
    scenario = short(tmp_path)
    result = quicgym.run(scenario, "newreno", stack="noq", clock="virtual")
    simulated = quicgym.run(scenario, "newreno")
    assert result.engine == "noq-virtual"
    for name in ("goodput_mbps", "mean_rtt_ms", "mean_one_way_delay_ms", "mean_queue_delay_ms"):
        ours, theirs = getattr(result.flows[0], name), getattr(simulated.flows[0], name)
        assert ours == pytest.approx(theirs, rel=0.03), name
    assert 0 < result.to_dict()["reward"] < 1


def test_noqs_own_controller_is_named_in_the_result(tmp_path):
    result = quicgym.run(short(tmp_path), "noq-cubic", stack="noq", clock="virtual")
    assert result.flows[0].controller == "noq-cubic"
