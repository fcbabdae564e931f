"""The window with which a flow takes an equal part of its path."""

import pytest
from helpers import environments as helper

from quicgym.envs.scenarios.fair_share import fair_window_bytes
from quicgym.envs.scenarios.fields import ScenarioError
from quicgym.envs.scenarios.flows import Flow
from quicgym.envs.scenarios.links import Access


def test_the_fair_share_is_an_equal_part_of_the_bandwidth_delay_product(tmp_path):
    shared = helper.scenario(
        flow_list=(
            Flow(name="agent", extra_delay_ms=5),
            Flow(name="other", controller="cubic", extra_delay_ms=50),
        )
    )
    # 8 Mbps for two, 40 ms of the scenario and 10 ms of the agent's own.
    assert fair_window_bytes(shared) == pytest.approx(8e6 / 8 / 2 * 0.05)
    trace = tmp_path / "link.trace"
    trace.write_text("1\n2\n")
    traced = shared.bottleneck.model_copy(update={"rate_mbps": None, "trace": trace})
    both = {"bottleneck": traced, "reverse": shared.bottleneck}
    # Two packets of 1500 bytes in 2 ms.
    assert fair_window_bytes(shared.model_copy(update=both)) == pytest.approx(12e6 / 8 / 2 * 0.05)
    taken = helper.scenario(flow_list=(Flow(name="other", controller="cubic"),))
    with pytest.raises(ScenarioError, match="names its controller"):
        fair_window_bytes(taken)


def test_the_agent_s_own_access_links_are_those_that_count():
    own = Flow(name="agent", access=Access(rate_mbps=50, delay_ms=15))
    # 10 ms of the bottleneck and 15 at either end, there and back.
    assert fair_window_bytes(helper.scenario(flow_list=(own,))) == pytest.approx(8e6 / 8 * 0.08)
