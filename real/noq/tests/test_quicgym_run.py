"""quicgym.run finds the stack, and its results are those of a simulation."""

from __future__ import annotations

import pytest
from helpers.packages import compile_example
from runs import short

import quicgym
from quicgym.real.stacks import StackError


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


FIXED = '''
import quicgym
from quicgym.controllers import Parameter


class Fixed(quicgym.Controller):
    """A window of so many packets."""

    parameters = (Parameter("packets", 20.0, 2.0, 1000.0),)

    def on_ack(self, event):
        self.window_bytes = int(self.packets * self.max_datagram_bytes)

    def on_loss(self, event):
        pass
'''


def test_users_controllers_run_in_python_and_in_a_library(tmp_path):
    (tmp_path / "mine.py").write_text(FIXED)
    compile_example(tmp_path / "libmine.so")
    scenario = short(
        tmp_path,
        flows="flows: [{controller: mine.py:Fixed, parameters: {packets: 8}}, "
        "{controller: mine.py:Fixed}, {controller: libmine.so:aimd}]",
    )
    result = quicgym.run(scenario, stack="noq", clock="virtual")
    names = [flow.controller for flow in result.flows]
    assert names == ["mine.py:Fixed", "mine.py:Fixed", "libmine.so:aimd"]
    simulated = quicgym.run(scenario)
    expected = (8, 20, simulated.flows[2].mean_window_packets)
    for flow, packets in zip(result.flows, expected, strict=True):
        assert flow.mean_window_packets == pytest.approx(packets, rel=0.2)


def test_a_users_controller_that_fails_ends_the_run(tmp_path):
    (tmp_path / "mine.py").write_text(FIXED.replace("int(self", "1 / 0 * (self"))
    with pytest.raises(StackError, match="division by zero"):
        quicgym.run(short(tmp_path), f"{tmp_path}/mine.py:Fixed", stack="noq", clock="virtual")
