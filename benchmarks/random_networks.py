"""Random dumbbells with a queue discipline, the same for the same number."""

from __future__ import annotations

from typing import Any

import numpy as np

from quicgym import controllers
from quicgym.envs import Scenario

DURATION_S = 2.0


def random_network(discipline: str, number: int) -> Scenario:
    """Returns network `number` of a discipline.

    1 to 6 flows, controllers of the whole catalogue, queues in packets and bytes, with and without
    ECN, random loss, rates that change or fail. Half of the ways back have the discipline too.
    """
    rng = np.random.default_rng([number, *discipline.encode()])
    description: dict[str, Any] = {
        "name": f"{discipline}-{number}",
        "duration_s": DURATION_S,
        "bottleneck": _link(rng, discipline),
        "reverse": _link(rng, discipline if rng.random() < 0.5 else "drop-tail"),
        "access": {"rate_mbps": _rate_mbps(rng), "delay_ms": _delay_ms(rng)},
        "flows": [_flow(rng) for _ in range(rng.integers(1, 7))],
        "max_datagram_bytes": int(rng.integers(1200, 1473)),
    }
    # Without a queue that marks, a flow's ECN would be a warning.
    if not description["bottleneck"]["queue"]["ecn_marking"]:
        for flow in description["flows"]:
            flow["ecn"] = False
    return Scenario.model_validate(description)


# Round numbers are drawn often: equal delays and rates make much happen in the same nanosecond.
def _rate_mbps(rng: np.random.Generator) -> float:
    return float(rng.choice([5.0, 10.0, 20.0]) if rng.random() < 0.5 else rng.uniform(0.5, 50))


def _delay_ms(rng: np.random.Generator) -> float:
    return float(rng.choice([0.0, 1.0, 10.0]) if rng.random() < 0.5 else rng.uniform(0, 50))


def _link(rng: np.random.Generator, discipline: str) -> dict[str, Any]:
    in_bytes = discipline != "fq-codel" and rng.random() < 0.5
    limit = rng.integers(1502, 300_000) if in_bytes else rng.integers(1, 201)
    can_mark = discipline not in ("drop-tail", "fifo")
    link: dict[str, Any] = {
        "rate_mbps": _rate_mbps(rng),
        "delay_ms": _delay_ms(rng),
        "queue": {
            "limit": int(limit),
            "unit": "bytes" if in_bytes else "packets",
            "discipline": discipline,
            "ecn_marking": can_mark and rng.random() < 0.5,
        },
    }
    if rng.random() < 0.4:
        link["loss"] = {"kind": "bernoulli", "probability": float(rng.uniform(0, 0.05))}
    if rng.random() < 0.4:
        times = np.sort(rng.uniform(0.1, DURATION_S, 2))
        rates = [0.0 if rng.random() < 0.3 else _rate_mbps(rng) for _ in times]
        link["rate_schedule"] = [
            {"at_s": float(time), "rate_mbps": rate}
            for time, rate in zip(times, rates, strict=True)
        ]
    return link


def _flow(rng: np.random.Generator) -> dict[str, Any]:
    names = [entry.name for entry in controllers.catalogue()]
    applications: list[dict[str, Any]] = [
        {"kind": "bulk"},
        {"kind": "transfer", "size_bytes": int(rng.integers(1, 2_000_000))},
        {"kind": "constant-rate", "rate_mbps": float(rng.uniform(0.1, 20))},
    ]
    return {
        "controller": str(rng.choice(names)),
        "application": applications[rng.choice(3, p=[0.5, 0.25, 0.25])],
        "start_s": float(rng.choice([0.0, 0.5]) if rng.random() < 0.5 else rng.uniform(0, 0.5)),
        "extra_delay_ms": float(rng.choice([0.0, 1.0, 13.7])),
        "ecn": bool(rng.random() < 0.5),
    }
