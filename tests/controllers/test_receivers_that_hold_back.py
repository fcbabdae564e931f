"""Receivers that grant little, or acknowledge rarely, do not mislead a controller's model."""

from __future__ import annotations

import pytest
from helpers.ack_rounds import MILLISECOND, Driver

import quicgym
from quicgym import Run, Scenario, _core


def run(controller: str, rate_mbps: float, rtt_ms: float, **flow: object) -> Run:
    scenario = Scenario.model_validate(
        {
            "name": "receiver",
            "duration_s": 20,
            "access": {"rate_mbps": 2000, "delay_ms": 0.5},
            "bottleneck": {
                "rate_mbps": rate_mbps,
                "delay_ms": rtt_ms / 2 - 1,
                "queue": {"limit": 200},
            },
            "flows": [flow],
        }
    )
    return quicgym.run(scenario, controller, seed=0, trace_interval_ms=50)


@pytest.mark.parametrize("window_bytes", [400_000, 1_000_000])
@pytest.mark.parametrize("controller", ["bbr", "ebcc", "bbr3"])
def test_waiting_for_flow_control_does_not_hold_bbr_in_startup(
    controller: str, window_bytes: int
) -> None:
    """draft-ietf-ccwg-bbr-06, CheckIfApplicationLimited: only without unsent data."""
    trace = run(controller, 20, 50, flow_control_window_bytes=window_bytes).trace(0)
    assert (trace["mode"] == "startup").mean() < 0.2


@pytest.mark.parametrize("window_bytes", [100_000, 200_000])
@pytest.mark.parametrize("controller", ["newreno", "cubic", "vegas"])
def test_a_window_that_flow_control_leaves_unused_does_not_grow(
    controller: str, window_bytes: int
) -> None:
    """RFC 9002 7.8; the window may reach twice what is used in slow start."""
    trace = run(controller, 200, 50, flow_control_window_bytes=window_bytes).trace(0)
    assert trace["window_bytes"].max() < 3 * window_bytes


@pytest.mark.parametrize("controller", ["bbr", "bbr3", "ebcc", "ibcca", "copa"])
def test_the_model_takes_the_rtt_with_the_ack_delay(controller: str) -> None:
    """draft-ietf-ccwg-bbr-06: RS.rtt = Now() - P.send_time; Copa's code measures the same."""
    driver = Driver(_core.make_controller(controller))
    driver.ack(measured_rtt=120 * MILLISECOND, rtt=20 * MILLISECOND, rate=1e6, round_start=True)
    assert driver.controller.snapshot.round_trip_estimate == 120 * MILLISECOND


@pytest.mark.parametrize("controller", ["cubic", "vegas", "bbr", "ebcc", "ibcca", "bbr3"])
@pytest.mark.parametrize(("mbps", "rtt_ms", "packets"), [(50, 20, 20), (100, 50, 80)])
def test_an_ack_for_many_packets_leaves_most_of_the_capacity(
    controller: str, mbps: float, rtt_ms: float, packets: int
) -> None:
    """As draft-ietf-quic-ack-frequency allows: several ACKs per round trip."""
    acks = {"ack_eliciting_threshold": packets, "max_ack_delay_ms": 25}
    assert run(controller, mbps, rtt_ms, ack_frequency=acks).metrics["goodput_mbps"] > 0.7 * mbps


@pytest.mark.filterwarnings("ignore:receiver. flows.0.ack_frequency")
@pytest.mark.parametrize(
    "controller", ["bbr:extra_acked_gain=1", "ibcca:extra_acked_gain=1", "bbr3"]
)
def test_bbr_does_not_starve_where_acks_are_rarer_than_round_trips(controller: str) -> None:
    acks = {"ack_eliciting_threshold": 200, "max_ack_delay_ms": 100}
    assert run(controller, 50, 20, ack_frequency=acks).metrics["goodput_mbps"] > 5
