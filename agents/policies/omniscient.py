"""A yardstick that no sender can be: it reads the network's capacity and how many flows share it.

`quicgym evaluate --policy omniscient tuning bbr` shows how far the others are from it. Not even
this policy earns 1 everywhere: packets are lost at random, and competing flows overflow the queue.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from quicgym import _core
from quicgym.envs.actions import action_space
from quicgym.envs.batch import EpisodeBatch
from quicgym.envs.decisions import Decisions
from quicgym.envs.scenarios.conversion import nanoseconds, network
from quicgym.envs.scenarios.fields import LINK_HEADER_BYTES, ScenarioError
from quicgym.envs.scenarios.model import Scenario

_LARGEST_WINDOW_BYTES = 1e8
_QUEUE_SHARE = 0.5
"""How much of the queue all flows fill together: what waits is carried when the rate jumps up."""
_PACING_GAIN = 1.25


class Omniscient:
    """Gives each flow an equal share of what the link carries in the next 100 ms.

    Where all flows are the policy's, their windows are what the path holds and half of the queue.
    Next to other controllers the flow keeps sending its share, whatever they do.
    """

    name = "omniscient"
    options: dict[str, Any] | None = {"controller": "external"}
    decisions = Decisions()

    def __init__(self) -> None:
        """Knows no network yet."""
        self.reset()

    def reset(self) -> None:
        """Forgets the networks of the episodes before."""
        self._networks: dict[int, _core.Scenario] = {}

    def __call__(self, observations: np.ndarray) -> np.ndarray:
        """Returns actions that the controller `external` ignores, one for each row."""
        shape = action_space(self.decisions.environment).shape or ()
        return np.zeros((*observations.shape[:-1], *shape))

    def steer(self, batch: EpisodeBatch) -> None:
        """Sets the rates of the policy's flows until the next decision.

        Raises:
            ScenarioError: The network is a chain or a wireless LAN, so that a fair share is not
                the capacity over the number of flows.
        """
        columns = batch.columns()
        with np.errstate(divide="ignore", invalid="ignore"):
            queue_s = columns["queue_bytes"] * 8e-6 / columns["capacity_mbps"]
            path_s = columns["flow_rtt_ms"] / 1e3 - queue_s  # NaN before the first RTT
        path_s = path_s.reshape(-1, batch.agent_count)
        for index in np.flatnonzero(batch.selected).tolist():
            episode, simulation = batch.episodes[index], batch.simulation(index)
            assert episode is not None
            scenario = episode.scenario
            if index not in self._networks:
                _check(scenario)
                self._networks[index] = network(scenario)
            step_s = self.decisions.decision_interval_ms / 1e3
            until = [simulation.now, simulation.now + nanoseconds(step_s)]
            _, carried = _core.capacity_bytes(self._networks[index], 0, until)
            flows = max(1, _running(scenario, simulation, until[1]))
            packet_bytes = scenario.max_datagram_bytes
            # Capacities count the headers, pacing rates do not.
            rate = carried / step_s / flows * packet_bytes / (packet_bytes + LINK_HEADER_BYTES)
            flows_here = [flow for _, flow in scenario.single_flows()]
            controllers = [flow.controller for flow in flows_here]
            is_alone = all(
                flow.controller is None for flow in flows_here if flow.direction == "forward"
            )
            places = [place for place, controller in enumerate(controllers) if controller is None]
            for agent, place in enumerate(places):
                rates, window_bytes = rate, _LARGEST_WINDOW_BYTES
                if is_alone and np.isfinite(path_s[index, agent]):
                    room_bytes = _QUEUE_SHARE * _queue_bytes(scenario) / flows
                    lowest_s = simulation.statistics(place)["lowest_rtt"] / 1e9
                    window_bytes = rate * max(lowest_s, path_s[index, agent]) + room_bytes
                    rates = _PACING_GAIN * rate
                window_bytes = min(window_bytes, _LARGEST_WINDOW_BYTES)
                values = {"pacing_rate": [max(rates, 1.0)], "window_bytes": [window_bytes]}
                simulation.set_parameters(place, values)


def _running(scenario: Scenario, simulation: _core.Simulation, until: int) -> int:
    """Returns how many flows on the forward path have data to send before that moment, in ns."""
    running = 0
    for place, (_, flow) in enumerate(scenario.single_flows()):
        if flow.direction != "forward":
            continue
        totals = simulation.statistics(place)
        has_stopped = flow.stop_s is not None and nanoseconds(flow.stop_s) <= simulation.now
        running += totals["start"] < until and totals["completion"] is None and not has_stopped
    return running


def _queue_bytes(scenario: Scenario) -> float:
    queue = scenario.links["bottleneck"].queue  # in packets or bytes, also where it is given in BDP
    return float(queue.limit * (1 if queue.unit == "bytes" else scenario.max_datagram_bytes))


def _check(scenario: Scenario) -> None:
    for name, is_there in (("chain", bool(scenario.chain)), ("wifi", scenario.wifi is not None)):
        if is_there:
            raise ScenarioError(
                f"{scenario.name}: {name}: the policy omniscient knows networks with one wired "
                f"bottleneck; take the scenario out of the suite, or omniscient out of --policy"
            )
