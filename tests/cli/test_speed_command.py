from __future__ import annotations

import json

import pytest
from conftest import Command

from quicgym import controllers
from quicgym.benchmarks import speed
from quicgym.envs.simulation.simulation import ns3_version


@pytest.mark.filterwarnings("error::quicgym.envs.simulation.controller_choice.IdleEcnWarning")
def test_speed_measures_everything(quicgym: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(speed, "ROUNDS", 2)  # the second is the first that counts
    monkeypatch.setattr(speed, "BARE_LOOP_PACKETS", 100_000)
    monkeypatch.setitem(speed.STEP_BUDGET, "gym-native-tuning", 380)
    done = quicgym("speed", "--format", "json")
    document = json.loads(done.stdout)
    assert set(document) == {"measurements"}
    measured = {entry["name"]: entry for entry in document["measurements"]}
    expected = {
        "bare-loop",
        *(f"native-{entry.name}-1x15mbps" for entry in controllers.catalogue()),
        *(
            f"native-{controller}-{load}"
            for controller in ("newreno", "bbr")
            for load in ("10x100mbps", "100x1gbps")
        ),
        "native-bbr-1x15mbps-400s",
        *(
            f"native-newreno-10x100mbps-{discipline}"
            for discipline in ("fifo", "codel", "dualpi2", "fq-codel", "pie", "red", "sfq")
        ),
        *(f"native-{controller}-bursts" for controller in ("ibcca", "cubic", "ibcca-cubic")),
        *(
            f"native-bbr-1x15mbps-{feature}"
            for feature in (
                *("outages", "openings", "trace", "delay-schedule", "jitter", "reordering"),
                *("policer", "ack-aggregation", "backward", "chain-of-3"),
            )
        ),
    }
    environments = {"vec-native-tuning", "gym-native-tuning"}
    if ns3_version() is not None:
        expected.add("ns3-bbr-1x15mbps")
        environments.add("gym-ns3-tuning")
    short_flows = {"native-short-flow", "native-short-flow-400s"}
    assert set(measured) == expected | short_flows | environments
    for name in short_flows:
        assert set(measured[name]) == {"name", "cpu_us_per_flow", "flows"}
        assert measured[name]["flows"] > 10_000
        assert 0 < measured[name]["cpu_us_per_flow"] < 10
    for name in environments:
        assert set(measured[name]) == {"name", "steps_per_cpu_second", "steps"}
        assert measured[name]["steps_per_cpu_second"] > 10
    for name in expected:
        entry = measured[name]
        assert set(entry) == {"name", "cpu_ns_per_packet", "packets"}
        assert entry["cpu_ns_per_packet"] > 0
        assert entry["packets"] > 1_000
    # Loose, for a machine with other work: the targets are measured by hand.
    short, long = (
        measured[name]["cpu_ns_per_packet"]
        for name in ("native-bbr-1x15mbps", "native-bbr-1x15mbps-400s")
    )
    assert long < 1.5 * short
