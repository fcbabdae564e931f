"""Random networks as hypothesis draws them: bounds come often, and what fails is made small."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from hypothesis import reject
from hypothesis import strategies as st
from pydantic import ValidationError

from quicgym import Scenario
from quicgym.benchmarks.random_networks import DISCIPLINES, draw_chain, draw_network


class Drawn:
    """What random_networks asks a generator of NumPy for."""

    def __init__(self, random: Random) -> None:
        self.random = random.random
        self._random = random

    def uniform(self, least: float, most: float, size: int | None = None) -> Any:
        draws = [self._random.uniform(least, most) for _ in range(1 if size is None else size)]
        return draws[0] if size is None else np.array(draws)

    def integers(self, first: int, end: int | None = None, size: int | None = None) -> Any:
        if end is None:
            first, end = 0, first
        draws = [self._random.randrange(first, end) for _ in range(1 if size is None else size)]
        return draws[0] if size is None else np.array(draws)

    def choice(self, options: Any, size: int | None = None, p: Any = None) -> Any:
        options = range(options) if isinstance(options, int) else list(options)
        draws = self._random.choices(options, p, k=1 if size is None else size)
        return draws[0] if size is None else np.array(draws)


NUMBERS = count()
"""One for each name, so that no file of a trace is written twice."""


def _drawn(draw_one: Callable[[Any, str], Scenario]) -> st.SearchStrategy[Scenario]:
    def drawn(random: Random) -> Scenario:
        try:
            return draw_one(Drawn(random), f"network-{next(NUMBERS)}")
        except ValidationError:  # two steps of a schedule at the same time
            reject()

    return st.randoms().map(drawn)


def networks(
    discipline: str | None, feature: str | None = None, folder: Path | None = None
) -> st.SearchStrategy[Scenario]:
    """Networks of a discipline, of a feature, or of both; see `draw_network`."""
    return _drawn(lambda rng, name: draw_network(rng, name, discipline, feature, folder))


def chains(discipline: str) -> st.SearchStrategy[Scenario]:
    """Chains of a discipline with any features of their links."""
    return _drawn(lambda rng, name: draw_chain(rng, name, discipline, everything=True))


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


def _native_network(rng: Any, name: str) -> Scenario:
    kind = str(rng.choice(KINDS))
    if kind == "chain":
        network = draw_chain(rng, name, str(rng.choice(DISCIPLINES)), everything=True)
    else:
        discipline = kind if kind in ("dualpi2", "sfq") else None
        network = draw_network(rng, name, discipline, "everything")
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


native_networks: st.SearchStrategy[Scenario] = _drawn(_native_network)
"""Anything that the native engine simulates, with the agent's flow first."""
