"""Cellular-like rates as mahimahi traces: a doubly stochastic Poisson process with outages.

After the model of a cellular link that Sprout infers with (Winstein, Sivaraman and Balakrishnan,
"Stochastic Forecasts Achieve High Throughput and Low Delay over Cellular Networks", NSDI 2013,
section 3): packets may go in a Poisson process whose rate is a Brownian motion, and outages have
exponential lengths. What we had to add, so that a trace has a mean and can be as long as one likes:

- The rate is reflected at 0 and at its peak, and so uniform between them at every moment.
- Sprout's rate moves by 200 packets per second per √s in a range of 0 to 1000: 0.4 of its mean per
  √s. We keep that share for every mean. The rate forgets its past with a time constant of
  2 peak² / (π² volatility²), 5 s for 0.4 of the mean.
- Sprout's outages begin where the rate reaches 0. Ours begin at any moment, after exponential
  times, so that their share is a parameter; the peak makes up for them in the mean.

A trace is a sample: the mean of a short one differs from the process's.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

TICK_MS = 20
"""The rate stands still for this long; Sprout's tick."""
PACKET_BITS = 1500 * 8
"""Size of the packet that one line of a mahimahi trace lets go."""
MOST_PACKETS = 20_000_000


@dataclass(frozen=True)
class CellularModel:
    """The parameters of the rate process.

    Attributes:
        mean_mbps: Mean rate, outages included.
        volatility: Standard deviation of the rate's change within a second, as a share of half its
            peak, where no reflection comes in between.
        outage_s: Mean length of an outage.
        between_outages_s: Mean time from the end of one outage to the start of the next.
    """

    mean_mbps: float
    volatility: float = 0.4
    outage_s: float = 1.0
    between_outages_s: float = 60.0

    @property
    def outage_share(self) -> float:
        """The share of time that is outage."""
        return self.outage_s / (self.outage_s + self.between_outages_s)

    @property
    def peak_packets_per_s(self) -> float:
        """Where the rate is reflected."""
        return 2 * self.mean_mbps * 1e6 / PACKET_BITS / (1 - self.outage_share)


MODELS = {
    # Outages of a second are Sprout's; how often they come, and the mean rates, are ours.
    "lte": CellularModel(mean_mbps=12.0),
    "3g": CellularModel(mean_mbps=2.0, between_outages_s=20.0),
}


def reflected(values: np.ndarray, peak: float) -> np.ndarray:
    """Returns values between 0 and a peak, at which those beyond are reflected."""
    return np.abs((values + peak) % (2 * peak) - peak)


def packet_rates(model: CellularModel, duration_ms: int, rng: np.random.Generator) -> np.ndarray:
    """Draws a path of the rate: packets per second in each millisecond; 0 in an outage."""
    peak = model.peak_packets_per_s
    ticks = -(-duration_ms // TICK_MS)
    step = model.volatility * peak / 2 * np.sqrt(TICK_MS / 1e3)
    free = rng.uniform(0, peak) + np.cumsum(rng.normal(0, step, ticks))
    rates = np.repeat(reflected(free, peak), TICK_MS)[:duration_ms]
    rates[_outages(model, duration_ms, rng)] = 0.0
    return rates


def _outages(model: CellularModel, duration_ms: int, rng: np.random.Generator) -> np.ndarray:
    """Which milliseconds are outage; the start is as likely in one as any other moment."""
    outage = np.zeros(duration_ms, dtype=bool)
    in_outage = rng.uniform() < model.outage_share
    begin = 0.0
    while begin < duration_ms:
        mean_s = model.outage_s if in_outage else model.between_outages_s
        end = begin + rng.exponential(mean_s * 1e3)
        if in_outage:
            outage[round(begin) : round(end)] = True
        begin, in_outage = end, not in_outage
    return outage


def cellular_trace(model: CellularModel, duration_ms: int, seed: int) -> np.ndarray:
    """Generates a trace.

    Args:
        model: The rate process.
        duration_ms: Length of the trace in ms, after which it repeats.
        seed: Seed of the trace. Equal seeds give equal traces with the same NumPy; a later one may
            draw anew.

    Returns:
        The moments at which a packet may go, whole ms from 1 to `duration_ms` in ascending order,
        int64. The last one is always `duration_ms`, since it is the trace's length.

    Raises:
        ValueError: The trace would have more than 20 million lines.
    """
    expected = model.mean_mbps * 1e3 * duration_ms / PACKET_BITS
    if not expected <= MOST_PACKETS:  # nan, too
        raise ValueError(
            f"{model.mean_mbps:g} Mbps for {duration_ms / 1e3:g} s are {expected:.3g} lines; "
            f"at most {MOST_PACKETS:.3g} are written: choose a lower rate or a shorter duration"
        )
    rng = np.random.default_rng(seed)
    counts = rng.poisson(packet_rates(model, duration_ms, rng) / 1e3)
    counts[-1] = max(counts[-1], 1)
    return np.repeat(np.arange(1, duration_ms + 1), counts)
