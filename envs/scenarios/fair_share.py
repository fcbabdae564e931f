"""The window with which a flow takes an equal part of its path."""

from __future__ import annotations

from quicgym.envs.scenarios.fields import ScenarioError
from quicgym.envs.scenarios.model import Scenario


def fair_window_bytes(scenario: Scenario) -> float:
    """Returns an equal part of the bottleneck's rate, times the first open flow's empty RTT.

    A trace counts with its mean rate, a schedule with what it begins with. ScenarioError
    where the bottleneck is a wireless LAN, there is a chain, or no flow is open.
    """
    if scenario.chain:
        raise ScenarioError(
            f"{scenario.name}: a chain has no rate that all flows share equally; give a scenario "
            "without chain"
        )
    link, flows = (
        scenario.bottleneck,
        [flow for _, flow in scenario.single_flows() if flow.direction == "forward"],
    )
    if link is None:
        raise ScenarioError(
            f"{scenario.name}: a wireless LAN has no rate, and so no fair share; give a scenario "
            "with a bottleneck"
        )
    agent = next((flow for flow in flows if flow.controller is None), None)
    if agent is None:
        raise ScenarioError(
            f"{scenario.name}: every flow names its controller; leave out the one of a flow"
        )
    access = agent.access or scenario.access
    links_ms = link.delay_ms + scenario.links["reverse"].delay_ms
    rtt_s = 1e-3 * (links_ms + 2 * (2 * access.delay_ms + agent.extra_delay_ms))
    return link.first_rate_mbps * 125e3 / len(flows) * rtt_s
