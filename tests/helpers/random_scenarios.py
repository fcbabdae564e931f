"""Random scenarios that only the native engine runs, from those of both."""

from __future__ import annotations

from typing import Any

import numpy as np

from quicgym import Scenario
from quicgym.benchmarks.random_networks import random_chain, random_network

APPLICATIONS: list[dict[str, Any]] = [
    {"kind": "bulk"},
    {"kind": "transfer", "size_bytes": 300_000},
    {"kind": "constant-rate", "rate_mbps": 3.0},
    {"kind": "on-off", "rate_mbps": 4.0, "on_s": 0.2, "off_s": 0.1},
    {"kind": "request-response", "responses": "web-search", "think_s": 0.05},
    {
        "kind": "web-page",
        "objects": [
            {"name": "page", "size_bytes": 30_000},
            {"name": "style", "size_bytes": 60_000, "after": ["page"]},
            {"name": "picture", "size_bytes": 200_000, "after": ["page", "style"]},
        ],
    },
    {"kind": "video", "rates_mbps": [0.5, 1, 2], "chunk_s": 0.2, "reservoir_s": 0.3,
     "cushion_s": 1.0, "max_buffer_s": 2.0},
    {"kind": "real-time-media", "rates_mbps": [0.3, 1, 3]},
]  # fmt: skip
KINDS = ("both", "dualpi2", "sfq", "fragments", "chain")


def native_network(number: int) -> Scenario:
    """Anything that the native engine simulates, with the agent's flow first; same by number."""
    rng = np.random.default_rng([number, *b"native"])
    kind = str(rng.choice(KINDS))
    if kind == "chain":
        network = random_chain("codel", number, everything=True)
    else:
        discipline = kind if kind in ("dualpi2", "sfq") else None
        network = random_network(number, discipline, "everything")
    fields = network.model_dump(exclude_none=True)
    flows = [{}, *fields["flows"][: rng.integers(0, 4)]]
    for flow in flows:
        flow["application"] = APPLICATIONS[int(rng.integers(len(APPLICATIONS)))]
        flow["burst_retransmission"] = bool(flow) and bool(rng.random() < 0.5)
    flows[0]["start_s"] = 0.05
    if kind == "fragments":
        fields["access"]["mtu_bytes"] = 800
        for way in ("bottleneck", "reverse"):
            fields[way] |= {"reordering": False, "reroutes": ()}
    return Scenario.model_validate(fields | {"flows": flows})
