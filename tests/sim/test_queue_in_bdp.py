"""A queue limit in BDP gives the same queue as one in bytes or packets, on each engine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from quicgym import Scenario, Simulation
from quicgym.envs.scenarios.engines import EngineName
from quicgym.envs.scenarios.links import Queue
from quicgym.envs.scenarios.words import network_in_words

# 10 Mbps and 2 · (10 + 2 · 2.5) = 30 ms: a BDP of 37,500 bytes.
PATH: dict[str, Any] = {
    "name": "path",
    "duration_s": 4,
    "access": {"rate_mbps": 100, "delay_ms": 2.5},
    "flows": [{"controller": "cubic"}, {"controller": "cubic", "extra_delay_ms": 30}],
}


def path(queue: dict[str, Any], **more: Any) -> Scenario:
    link = {"rate_mbps": 10, "delay_ms": 10, "queue": queue}
    return Scenario.model_validate({**PATH, "bottleneck": link, **more})


def deliveries(scenario: Scenario, engine: EngineName) -> np.ndarray:
    with Simulation(scenario, engine, record_deliveries=True) as simulation:
        simulation.run()
        return simulation.deliveries()


@pytest.mark.parametrize("engine", ["native", pytest.param("ns3", marks=pytest.mark.ns3)])
@pytest.mark.parametrize(
    ("discipline", "explicit"),
    [
        ("drop-tail", {"limit": 18_750, "unit": "bytes"}),
        ("fq-codel", {"limit": 15}),  # which counts packets: 18,750 bytes / 1230 bytes
    ],
)
def test_half_a_bdp_is_the_explicit_limit(
    engine: EngineName, discipline: str, explicit: dict[str, Any]
) -> None:
    found = deliveries(path({"limit": 0.5, "unit": "bdp", "discipline": discipline}), engine)
    expected = deliveries(path({**explicit, "discipline": discipline}), engine)
    np.testing.assert_array_equal(found, expected)
    other = deliveries(path({"limit": 1, "unit": "bdp", "discipline": discipline}), engine)
    assert len(other) != len(expected)


def test_every_link_has_its_own_rate_and_the_lowest_base_rtt() -> None:
    bdp = {"limit": 2, "unit": "bdp"}
    scenario = path(
        bdp,
        reverse={"rate_mbps": 1, "delay_ms": 10, "queue": bdp},
        chain=[{"rate_mbps": 5, "delay_ms": 0, "queue": bdp}],
    )
    limits = {field: link.queue for field, link in scenario.links.items()}
    expected = {"bottleneck": 75_000, "reverse": 7500, "chain.0": 37_500, "chain.0.reverse": 37_500}
    assert limits == {field: Queue(limit=limit, unit="bytes") for field, limit in expected.items()}
    assert scenario.queue_limit == 75_000
    assert "queue of 2 BDP" in network_in_words(scenario)


def test_of_a_trace_the_mean_rate_counts(tmp_path: Path) -> None:
    trace = tmp_path / "steady.trace"
    trace.write_text("1\n2\n3\n4\n")  # 1500 bytes each ms: 12 Mbps
    link = {"trace": trace, "delay_ms": 10, "queue": {"limit": 1, "unit": "bdp"}}
    scenario = path({}, bottleneck=link, reverse={"rate_mbps": 1, "delay_ms": 10})
    assert scenario.queue_limit == 45_000


def test_a_change_of_the_path_changes_the_limit() -> None:
    scenario = path({"limit": 1, "unit": "bdp"})
    assert scenario.bottleneck is not None
    faster = scenario.bottleneck.model_copy(update={"rate_mbps": 20})
    assert scenario.model_copy(update={"bottleneck": faster}).queue_limit == 75_000
