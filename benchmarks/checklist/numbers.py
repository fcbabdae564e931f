"""The numbers that a checklist can ask for: each is declared once.

They are computed from the totals of every flow over a part of an episode, and from what the
bottleneck could have carried in it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from quicgym.envs.scenarios.fields import LINK_HEADER_BYTES
from quicgym.envs.simulation.metrics import jain, mean_of, ratio

Totals = Mapping[str, Any]
"""Of a flow, as SimulatedFlow.statistics has them."""
COUNTED = (
    "sent_packets", "sent_bytes", "received_packets", "received_bytes", "dropped_packets",
    "goodput_bytes", "queue_samples", "queue_delay_sum_seconds", "one_way_delay_sum_seconds",
)  # fmt: skip
"""Those of them that add up over time."""


@dataclass(frozen=True)
class Measured:
    """A part of an episode.

    Attributes:
        agents: The totals of the flows that have the policy.
        others: Of the others.
        transfer_s: How long each transfer of the policy's took.
        short_flow_s: How long each short flow took that came in this part.
        duration_s: How long it is.
        capacity_bits: What the bottleneck could have carried, headers included.
    """

    agents: Sequence[Totals]
    others: Sequence[Totals]
    transfer_s: Sequence[float | None]
    """None: it was not complete at the end."""
    short_flow_s: Sequence[float]
    """Infinite: it was not complete at the end."""
    duration_s: float
    capacity_bits: float

    @property
    def flows(self) -> list[Totals]:
        """All flows."""
        return [*self.agents, *self.others]


@dataclass(frozen=True)
class Number:
    """The declaration of a number.

    Attributes:
        title: With the unit.
        formula: In words.
        compute: The value; None where nothing was measured.
    """

    title: str
    formula: str
    compute: Callable[[Measured], float | None]


def _sum(flows: Sequence[Totals], name: str) -> float:
    return float(sum(flow[name] for flow in flows))


def _mbps(flows: Sequence[Totals], name: str, duration_s: float) -> float | None:
    return ratio(_sum(flows, name) * 8e-6, duration_s * len(flows))


def _utilisation(of: Measured) -> float | None:
    headers = LINK_HEADER_BYTES * _sum(of.flows, "received_packets")
    return ratio(8 * (_sum(of.flows, "received_bytes") + headers), of.capacity_bits)


def _offered_load(of: Measured) -> float | None:
    headers = LINK_HEADER_BYTES * _sum(of.agents, "sent_packets")
    return ratio(8 * (_sum(of.agents, "sent_bytes") + headers), of.capacity_bits)


def _smallest_share(of: Measured) -> float | None:
    goodputs = [flow["goodput_bytes"] for flow in of.flows]
    return ratio(min(goodputs) * len(goodputs), sum(goodputs))


def _transfer_time_s(of: Measured) -> float | None:
    return None if None in of.transfer_s else mean_of(of.transfer_s)


def _short_flow_s(of: Measured, quantile: float) -> float | None:
    if not of.short_flow_s:
        return None
    found = float(np.quantile(of.short_flow_s, quantile, method="higher"))
    return found if math.isfinite(found) else None


NUMBERS: dict[str, Number] = {
    "utilisation": Number(
        "utilisation",
        "bits that all receivers got, headers included / what the bottleneck could carry",
        _utilisation,
    ),
    "offered_load": Number(
        "offered load",
        "bits that the policy's flows sent, headers included / what the bottleneck could carry",
        _offered_load,
    ),
    "sent_packets": Number(
        "packets sent",
        "by each of the policy's flows, on average",
        lambda of: ratio(_sum(of.agents, "sent_packets"), len(of.agents)),
    ),
    "loss_percent": Number(
        "loss (%)",
        "100 · packets of the policy's flows that the network dropped / those that they sent",
        lambda of: ratio(100 * _sum(of.agents, "dropped_packets"), _sum(of.agents, "sent_packets")),
    ),
    "others_loss_percent": Number(
        "loss of the others (%)",
        "the same of the other flows",
        lambda of: ratio(100 * _sum(of.others, "dropped_packets"), _sum(of.others, "sent_packets")),
    ),
    "queue_delay_ms": Number(
        "queueing delay (ms)",
        "mean time in the bottleneck's queue of all packets that left it",
        lambda of: ratio(
            1e3 * _sum(of.flows, "queue_delay_sum_seconds"), _sum(of.flows, "queue_samples")
        ),
    ),
    "others_one_way_delay_ms": Number(
        "one-way delay of the others (ms)",
        "mean of receiving − sending time of the other flows' packets",
        lambda of: ratio(
            1e3 * _sum(of.others, "one_way_delay_sum_seconds"), _sum(of.others, "received_packets")
        ),
    ),
    "goodput_mbps": Number(
        "goodput (Mbps)",
        "of the policy's flows, on average",
        lambda of: _mbps(of.agents, "goodput_bytes", of.duration_s),
    ),
    "others_goodput_mbps": Number(
        "goodput of the others (Mbps)",
        "of the other flows, on average",
        lambda of: _mbps(of.others, "goodput_bytes", of.duration_s),
    ),
    "jain": Number(
        "Jain's index",
        "(Σ x)² / (n · Σ x²) over the goodputs of the policy's flows",
        lambda of: jain(flow["goodput_bytes"] for flow in of.agents),
    ),
    "smallest_share": Number(
        "smallest share",
        "smallest goodput of any flow / mean goodput of all flows",
        _smallest_share,
    ),
    "transfer_time_s": Number(
        "completion time (s)",
        "mean of the policy's transfers; none where one is not complete",
        _transfer_time_s,
    ),
    "short_flow_median_s": Number(
        "short flows, median (s)",
        "median completion time of the short flows that arrived",
        lambda of: _short_flow_s(of, 0.5),
    ),
    "short_flow_p95_s": Number(
        "short flows, 95th percentile (s)",
        "95th percentile of it; none where more than 5% are not complete",
        lambda of: _short_flow_s(of, 0.95),
    ),
}


def difference(later: Totals, earlier: Totals | None) -> dict[str, float]:
    """Returns what came between two readings of a flow's totals; None: since the start."""
    if earlier is None:
        return {name: later[name] for name in COUNTED}
    return {name: later[name] - earlier[name] for name in COUNTED}
