"""What holds for every controller on every network of the suite `stress`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pytest

from quicgym import Simulation, controllers
from quicgym.envs import Scenario

CONTROLLERS = controllers.names()
SHORT_S = 8.0
"""All flows have begun, and the first has left Startup."""


def check(controller: str, networks: Iterable[Scenario], until_s: float | None = None) -> None:
    for network in networks:
        smallest = 2 * network.max_datagram_bytes  # RFC 9002 7.2
        with Simulation(network, controllers=controller, trace_interval_ms=100.0) as simulation:
            simulation.run_until(until_s or network.duration_s)
            for flow in simulation.flows:
                where = f"{controller} as {flow.name} in {network.name}"
                trace = simulation.trace(flow.index)
                assert np.all(trace["window_bytes"] >= smallest), where
                assert np.all(np.isfinite(trace["pacing_rate"])), where
                assert np.all(trace["pacing_rate"] > 0), where
                # What was sent is acknowledged, declared lost or in flight; acknowledgements
                # themselves and the handshake are neither.
                known = trace["in_flight_bytes"] + trace["delivered_bytes"] + trace["lost_bytes"]
                assert np.all(known <= trace["sent_bytes"]), where


@pytest.mark.long
@pytest.mark.parametrize("controller", CONTROLLERS)
def test_invariants_hold_on_all_of_stress(controller: str, stress: Sequence[Scenario]) -> None:
    check(controller, stress)


@pytest.mark.parametrize("controller", CONTROLLERS)
def test_invariants_hold_where_a_part_of_stress_begins(
    controller: str, stress: Sequence[Scenario]
) -> None:
    # Each controller on other networks than the one before it.
    check(controller, stress[CONTROLLERS.index(controller) :: 32], SHORT_S)
