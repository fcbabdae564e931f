"""Cellular-like traces: the rate process has the statistics that it states."""

from __future__ import annotations

import numpy as np
import pytest

from quicgym.envs.scenarios.cellular_trace import (
    MODELS,
    PACKET_BITS,
    TICK_MS,
    CellularModel,
    cellular_trace,
    packet_rates,
)

HOUR_MS = 3_600_000
STEADY = CellularModel(mean_mbps=6.0, between_outages_s=1e12)


@pytest.fixture(scope="module")
def rates() -> np.ndarray:
    """Three hours without an outage: 2,000 times as long as the rate remembers."""
    return packet_rates(STEADY, 3 * HOUR_MS, np.random.default_rng(1))


def test_the_rate_is_uniform_between_0_and_twice_its_mean(rates: np.ndarray) -> None:
    peak = 2 * 6e6 / PACKET_BITS
    assert STEADY.peak_packets_per_s == pytest.approx(peak)
    assert rates.min() >= 0 and rates.max() <= peak
    quantiles = np.quantile(rates, np.linspace(0.1, 0.9, 9)) / peak
    assert quantiles == pytest.approx(np.linspace(0.1, 0.9, 9), abs=0.03)


def test_the_rate_moves_as_a_brownian_motion(rates: np.ndarray) -> None:
    ticks = rates[::TICK_MS]
    peak = STEADY.peak_packets_per_s
    # Reflections apart, whose share is small, a change has the variance volatility² · time.
    inside = (ticks[:-10] > 0.3 * peak) & (ticks[:-10] < 0.7 * peak)
    for steps in (1, 5, 10):
        change = (ticks[steps:][: len(inside)] - ticks[:-steps][: len(inside)])[inside]
        deviation = 0.4 * (peak / 2) * np.sqrt(steps * TICK_MS / 1e3)
        assert change.std() == pytest.approx(deviation, rel=0.02)
        assert abs(change.mean()) < 0.02 * deviation * np.sqrt(steps)


def test_the_rate_forgets_its_past_within_the_stated_time(rates: np.ndarray) -> None:
    ticks = rates[::TICK_MS] - rates.mean()
    peak = STEADY.peak_packets_per_s
    constant_s = 2 * peak**2 / (np.pi * 0.4 * peak / 2) ** 2
    assert constant_s == pytest.approx(5, rel=0.02)
    # The first term of the series is 96/π⁴ of the variance, and all that is left after a while.
    for seconds in (4, 8):
        lag = seconds * 1000 // TICK_MS
        correlation = np.mean(ticks[lag:] * ticks[:-lag]) / ticks.var()
        expected = 96 / np.pi**4 * np.exp(-seconds / constant_s)
        assert correlation == pytest.approx(expected, abs=0.05)


@pytest.mark.parametrize("name", MODELS)
def test_outages_have_their_share_and_length_and_the_mean_makes_up_for_them(name: str) -> None:
    model = MODELS[name]
    path = packet_rates(model, 3 * HOUR_MS, np.random.default_rng(2))
    gone = path == 0
    assert gone.mean() == pytest.approx(model.outage_share, rel=0.15)
    edges = np.flatnonzero(np.diff(gone.astype(int)))
    lengths_s = np.diff(edges)[int(gone[0]) :: 2] / 1e3  # from the first edge into an outage
    assert lengths_s.mean() == pytest.approx(model.outage_s, rel=0.1)
    assert np.median(lengths_s) == pytest.approx(np.log(2) * model.outage_s, rel=0.15)
    assert path.mean() * PACKET_BITS / 1e6 == pytest.approx(model.mean_mbps, rel=0.04)


def test_a_trace_begins_in_an_outage_as_often_as_any_moment_lies_in_one() -> None:
    model = CellularModel(mean_mbps=6.0, outage_s=1.0, between_outages_s=1.0)
    begins = [packet_rates(model, 1, np.random.default_rng(seed))[0] for seed in range(200)]
    assert np.mean([rate == 0 for rate in begins]) == pytest.approx(0.5, abs=0.1)


def test_packets_go_in_a_poisson_process_of_that_rate() -> None:
    still = CellularModel(mean_mbps=12.0, volatility=0.0, between_outages_s=1e12)
    times = cellular_trace(still, 600_000, 3)
    rate = packet_rates(still, 1, np.random.default_rng(3))[0]
    counts = np.bincount((times - 1) // 10, minlength=60_000)
    assert counts.mean() == pytest.approx(rate / 100, rel=0.02)
    assert counts.var() == pytest.approx(counts.mean(), rel=0.05)


@pytest.mark.parametrize("mean_mbps", [0.001, 2, 100])
@pytest.mark.parametrize("duration_ms", [1, 100, 12_345])
def test_a_trace_is_in_order_and_as_long_as_asked(mean_mbps: float, duration_ms: int) -> None:
    for seed in range(5):
        times = cellular_trace(CellularModel(mean_mbps), duration_ms, seed)
        assert times[0] >= 1 and times[-1] == duration_ms
        assert (np.diff(times) >= 0).all()
