"""What only the network knows, as inputs of a critic in training."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

PRIVILEGED = (
    "throughput_share",
    "loss_rate",
    "jain",
    "rtt_ratio / 10",
    "active_flows / 8",
    "queue / capacity in s",
    "flow's throughput / throughput",
)
"""Inputs of a critic that only the network knows, computed from `info`; each is at most 1."""
_BEFORE_MEASURED = {"jain": 1.0, "rtt_ratio": 1.0}
"""Values that a critic sees in the place of NaN; all others are 0 then."""


def privileged_inputs(info: Mapping[str, np.ndarray]) -> np.ndarray:
    """Returns the columns of PRIVILEGED, float32, shape (rows, len(PRIVILEGED)).

    `info` has an array of shape (rows,) for each of INFO_COLUMNS.
    """

    def known(name: str) -> np.ndarray:
        return np.nan_to_num(info[name], nan=_BEFORE_MEASURED.get(name, 0.0))

    throughput = np.maximum(known("throughput_mbps"), 1e-9)
    capacity = np.maximum(known("capacity_mbps"), 1e-9)
    columns = (
        known("throughput_share"),
        known("loss_rate"),
        known("jain"),
        known("rtt_ratio") / 10,
        known("active_flows") / 8,
        known("queue_bytes") * 8e-6 / capacity,
        known("flow_throughput_mbps") / throughput,
    )
    return np.clip(np.stack(columns, axis=1), 0.0, 1.0).astype(np.float32)
