"""The numbers of a checklist, against values computed by hand."""

from __future__ import annotations

import math
from typing import Any

import pytest

from quicgym.benchmarks.checklist.numbers import COUNTED, NUMBERS, Measured, difference


def totals(**counts: float) -> dict[str, Any]:
    return {**dict.fromkeys(COUNTED, 0.0), **counts}


AGENT = totals(
    sent_packets=1000,
    sent_bytes=1_200_000,
    received_packets=900,
    received_bytes=1_080_000,
    dropped_packets=100,
    goodput_bytes=1_000_000,
    queue_samples=900,
    queue_delay_sum_seconds=9.0,
)
OTHER = totals(
    sent_packets=300,
    sent_bytes=360_000,
    received_packets=297,
    received_bytes=356_400,
    dropped_packets=3,
    goodput_bytes=250_000,
    queue_samples=300,
    queue_delay_sum_seconds=3.0,
    one_way_delay_sum_seconds=29.7,
)
MEASURED = Measured(
    [AGENT],
    [OTHER],
    transfer_s=[1.0, 2.0],
    short_flow_s=[0.1, 0.2, 0.3],
    duration_s=10.0,
    capacity_bits=20e6,
)


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        ("utilisation", 8 * (1_080_000 + 356_400 + 30 * 1197) / 20e6),
        ("offered_load", 8 * (1_200_000 + 30 * 1000) / 20e6),
        ("sent_packets", 1000),
        ("loss_percent", 10.0),
        ("others_loss_percent", 1.0),
        ("queue_delay_ms", 10.0),
        ("others_one_way_delay_ms", 100.0),
        ("goodput_mbps", 0.8),
        ("others_goodput_mbps", 0.2),
        ("jain", 1.0),
        ("smallest_share", 0.4),
        ("transfer_time_s", 1.5),
        ("short_flow_median_s", 0.2),
        ("short_flow_p95_s", 0.3),
    ],
)
def test_a_number_is_its_formula(number: str, expected: float) -> None:
    assert NUMBERS[number].compute(MEASURED) == pytest.approx(expected)


def test_every_number_has_a_case() -> None:
    cases = next(
        mark.args[1]
        for mark in test_a_number_is_its_formula.pytestmark  # type: ignore[attr-defined]
    )
    assert {name for name, _ in cases} == set(NUMBERS)


@pytest.mark.parametrize("number", NUMBERS)
def test_nothing_is_measured_where_no_packet_was(number: str) -> None:
    nothing = Measured([totals()], [], [], [], duration_s=1.0, capacity_bits=0.0)
    assert NUMBERS[number].compute(nothing) in (None, 0.0)


def test_a_part_is_what_came_after_the_part_before() -> None:
    assert difference(AGENT, AGENT) == dict.fromkeys(COUNTED, 0.0)
    assert difference(AGENT, None) == {name: AGENT[name] for name in COUNTED}


def test_what_is_not_complete_is_no_completion_time() -> None:
    lost = Measured([AGENT], [], [1.0, None], [0.1] * 9 + [math.inf], 1.0, 1.0)
    assert NUMBERS["transfer_time_s"].compute(lost) is None
    assert NUMBERS["short_flow_median_s"].compute(lost) == 0.1
    assert NUMBERS["short_flow_p95_s"].compute(lost) is None
