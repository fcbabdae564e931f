"""Packets that overtake one another: when QUIC takes that for loss (RFC 9002 6.1), and when not."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest
from helpers.endpoints import (
    MILLISECOND,
    SECOND,
    Late,
    application,
    constant_rate,
    make_link,
    make_scenario,
    with_window,
)

import quicgym
from quicgym import Scenario, _core

EVERY_10_MS, EVERY_20_MS = 928_800, 464_400
"""Rates of an application, by how often they fill a packet."""


def losses_when_one_is_late(rate: int, late_ms: float, rtt_ms: int) -> int:
    """How many packets the sender declares lost; the network loses none."""
    pair = Late(
        constant_rate(rate),
        lambda direction, index: (
            int(late_ms * MILLISECOND) if (direction, index) == ("data", 400) else 0
        ),
        rtt_ms * MILLISECOND // 2,
    ).run_until(12 * SECOND)
    return int(pair.sender.statistics()["declared_lost_packets"])


@pytest.mark.parametrize(("late_ms", "lost"), [(5, 0), (15, 0), (25, 0), (35, 1), (95, 1)])
def test_a_packet_that_three_later_ones_overtake_is_taken_for_lost(late_ms: int, lost: int) -> None:
    # RFC 9002 6.1.1: kPacketThreshold is 3. The time threshold is far away: an eighth of 1 s.
    assert losses_when_one_is_late(EVERY_10_MS, late_ms, rtt_ms=1000) == lost


@pytest.mark.parametrize(("late_ms", "lost"), [(19, 0), (24.5, 0), (25.5, 1), (39, 1)])
def test_a_packet_an_eighth_of_the_rtt_late_is_taken_for_lost_when_one_overtook_it(
    late_ms: float, lost: int
) -> None:
    # RFC 9002 6.1.2: kTimeThreshold is 9/8, here 225 ms. Only one packet overtakes the late one.
    assert losses_when_one_is_late(EVERY_20_MS, late_ms, rtt_ms=200) == lost


def jittery(
    max_ms: float, reordering: bool, loss: float = 0.0, adaptive: bool = False
) -> tuple[list[int], dict[str, Any]]:
    """The order in which packets came, one sent every 10 ms, and what the flow's totals grew by.

    Without the first 3 s, in which the sender catches up with the handshake.
    """
    link = make_link(delay=400 * MILLISECOND)
    link.jitter.kind = _core.JitterKind.uniform
    link.jitter.max = int(max_ms * MILLISECOND)
    link.reordering = reordering
    link.loss.kind, link.loss.probability = _core.LossKind.bernoulli, loss
    kind = application("constant_rate", rate_bits_per_second=EVERY_10_MS)
    flow = with_window(1_000_000, application=kind, stop=30 * SECOND, adaptive_reordering=adaptive)
    scenario = make_scenario([flow], link, record_deliveries=True)
    simulation = _core.NativeSimulation(scenario, 1)
    simulation.run_until(3 * SECOND)
    before, known = simulation.statistics(0), len(simulation.deliveries()) // 24
    simulation.run_until(40 * SECOND)
    rows = [row[:3] for row in struct.iter_unpack("<QQqq", simulation.deliveries())]
    totals = simulation.statistics(0)
    counts = ("sent", "received", "dropped", "declared_lost", "spuriously_lost")
    return [number for _, number, _ in rows[known:]], {
        f"{name}_packets": totals[f"{name}_packets"] - before[f"{name}_packets"] for name in counts
    }


def overtaken(numbers: list[int], by: int) -> int:
    """How many packets come after one that was sent at least so many later."""
    largest, count = -1, 0
    for number in numbers:
        count += largest >= number + by
        largest = max(largest, number)
    return count


def test_jitter_without_reordering_keeps_the_order_and_looks_like_no_loss() -> None:
    numbers, totals = jittery(50, reordering=False)
    assert len(numbers) > 2000 and numbers == sorted(numbers)
    assert totals["declared_lost_packets"] == totals["dropped_packets"] == 0


def test_reordering_by_less_than_three_packets_looks_like_no_loss() -> None:
    # 19 ms are less than two packets; an eighth of the RTT is 61 ms.
    numbers, totals = jittery(19, reordering=True)
    assert overtaken(numbers, by=1) > 200 and overtaken(numbers, by=3) == 0
    assert totals["declared_lost_packets"] == totals["dropped_packets"] == 0


def test_reordering_by_three_packets_and_more_looks_like_loss_to_a_fixed_threshold() -> None:
    numbers, totals = jittery(60, reordering=True)
    assert totals["dropped_packets"] == 0
    # A packet may still be in the ACK that tells of the third one after it.
    assert 0.3 * overtaken(numbers, 3) < totals["declared_lost_packets"] <= overtaken(numbers, 3)
    assert totals["spuriously_lost_packets"] == totals["declared_lost_packets"]


def test_a_sender_that_adapts_takes_hardly_any_reordering_for_loss() -> None:
    """RFC 9002 6.1.1 by RFC 8985 6.2."""
    numbers, totals = jittery(60, reordering=True, adaptive=True)
    assert overtaken(numbers, by=3) > 400
    assert totals["declared_lost_packets"] == totals["spuriously_lost_packets"] < 20


def test_losses_among_reordered_packets_are_all_found_and_none_counts_as_spurious() -> None:
    numbers, totals = jittery(60, reordering=True, loss=0.05, adaptive=True)
    spurious = totals["spuriously_lost_packets"]
    lost = totals["declared_lost_packets"] - spurious
    assert lost == pytest.approx(totals["dropped_packets"], abs=5)
    assert spurious < 0.1 * lost


def test_every_packet_on_a_reordering_and_lossy_path_is_received_or_dropped() -> None:
    numbers, totals = jittery(60, reordering=True, loss=0.05)
    assert totals["dropped_packets"] == pytest.approx(0.05 * totals["sent_packets"], rel=0.3)
    assert len(set(numbers)) == len(numbers)


def test_packets_that_arrive_late_after_a_burst_of_losses_all_count_as_spurious() -> None:
    # A burst is one run of lost numbers, in the middle of which a recovery period begins.
    loss = {"kind": "gilbert-elliott", "good_to_bad": 0.01, "bad_to_good": 0.1}
    jitter = {"kind": "uniform", "max_ms": 60}
    link = {"rate_mbps": 20, "delay_ms": 10, "queue": {"limit": 100}, "loss": loss}
    flow = {"controller": "external", "parameters": {"window_bytes": 150_000}}
    scenario = {
        "name": "bursts", "duration_s": 20, "access": {"rate_mbps": 1000, "delay_ms": 1},
        "bottleneck": {**link, "jitter": jitter, "reordering": True},
        "flows": [{**flow, "stop_s": 18, "adaptive_reordering": False}],
    }  # fmt: skip
    total = quicgym.run(Scenario.model_validate(scenario)).totals[0]
    spurious = total["declared_lost_packets"] - total["dropped_packets"]
    assert total["spuriously_lost_packets"] == pytest.approx(spurious, rel=0.002)


@pytest.mark.parametrize("controller", ["newreno", "cubic", "bbr"])
def test_flows_adapt_to_reordering_unless_their_threshold_is_fixed(controller: str) -> None:
    link = {"rate_mbps": 3.4, "delay_ms": 15, "queue": {"limit": 100}, "reordering": True}
    link["jitter"] = {"kind": "uniform", "max_ms": 40}
    access = {"rate_mbps": 100, "delay_ms": 2.5}
    scenario = {"name": "jitter", "duration_s": 20, "bottleneck": link, "access": access}

    def mean_over_seeds(metric: str, **flow: Any) -> float:
        network = Scenario.model_validate({**scenario, "flows": [flow]})
        return float(
            np.mean(
                [quicgym.run(network, controller, seed=seed).metrics[metric] for seed in range(6)]
            )
        )

    adapts, fixed = (
        mean_over_seeds("goodput_mbps", **flow) for flow in ({}, {"adaptive_reordering": False})
    )
    assert adapts > 2.5 > 1.5 > fixed
    adapts, fixed = (
        mean_over_seeds("spurious_loss_percent", **flow)
        for flow in ({}, {"adaptive_reordering": False})
    )
    assert adapts < 1 < fixed
