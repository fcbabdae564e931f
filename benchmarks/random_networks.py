"""Random dumbbells, with a discipline or a feature of paths, and chains; the same by number.

What two engines or two runs are compared on: values at which much happens at once, and paths that
no training would draw. The networks of trainings and suites are those of distributions.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from quicgym import controllers
from quicgym.envs import Scenario
from quicgym.envs.scenarios.links import DISCIPLINES as KNOWN

DURATION_S = 2.0
DISCIPLINES = tuple(name for name, entry in KNOWN.items() if entry.in_ns3)
"""Queue disciplines that both engines have."""
DISCIPLINES_OF = {
    "ce-threshold": tuple(name for name in DISCIPLINES if KNOWN[name].has_ce_threshold)
}
"""By feature of paths: the queue disciplines, where not every one has it."""


def random_network(
    number: int,
    discipline: str | None = None,
    feature: str | None = None,
    folder: Path | None = None,
) -> Scenario:
    """Returns network `number` of a discipline, of a feature, or of both; see `draw_network`."""
    name = "-".join(part for part in (feature, discipline) if part)
    rng = np.random.default_rng([number, *name.encode()])
    return draw_network(rng, f"{name}-{number}", discipline, feature, folder)


def draw_network(
    rng: np.random.Generator,
    name: str,
    discipline: str | None = None,
    feature: str | None = None,
    folder: Path | None = None,
) -> Scenario:
    """Draws a network with a discipline, with a feature, or with both.

    1 to 6 flows, controllers of the whole catalogue, queues in packets and bytes, with and without
    ECN, random loss, rates that change or fail. Half of the ways back have the discipline too, and
    the feature, but "backward" and "short-flows" are of the flows, and "ack-aggregation" of the way
    back alone. The discipline None is any that both engines have. The feature "trace" writes files
    into `folder`.
    """
    queue = discipline or str(rng.choice(DISCIPLINES_OF.get(feature or "", DISCIPLINES)))
    description: dict[str, Any] = {
        "name": name,
        "duration_s": DURATION_S,
        "bottleneck": _link(rng, queue),
        "reverse": _link(rng, queue if rng.random() < 0.5 else "drop-tail"),
        "access": {"rate_mbps": _rate_mbps(rng), "delay_ms": _delay_ms(rng)},
        "flows": [_flow(rng) for _ in range(rng.integers(1, 7))],
        "max_datagram_bytes": int(rng.integers(1200, 1473)),
    }
    if feature is not None:
        FEATURES[feature](rng, description, folder or Path())
    for flow in description["flows"]:
        way = "reverse" if flow.get("direction") == "backward" else "bottleneck"
        # Without a queue that marks, a flow's ECN would be a warning.
        flow["ecn"] = flow["ecn"] and description[way]["queue"]["ecn_marking"]
    return Scenario.model_validate(description)


def random_chain(discipline: str, number: int, *, everything: bool = False) -> Scenario:
    """Returns chain `number` of a discipline; see `draw_chain`."""
    name = f"chain-{discipline}"
    rng = np.random.default_rng([number, *name.encode()])
    return draw_chain(rng, f"{name}-{number}", discipline, everything=everything)


def draw_chain(
    rng: np.random.Generator, name: str, discipline: str, *, everything: bool = False
) -> Scenario:
    """Draws a chain with a discipline.

    2 to 4 bottlenecks in a row, drawn as those of `random_network` with a way back each. One flow
    passes the whole chain in each direction, each hop has a separate flow, and up to three more
    pass any part of the chain; all but the first go either way. With `everything` the links have
    any of the features that the links of a chain can have.
    """
    hops = int(rng.integers(2, 5))
    ways = [
        (_link(rng, discipline), _link(rng, discipline if rng.random() < 0.5 else "drop-tail"))
        for _ in range(hops)
    ]
    parts = [(1, hops), (1, hops), *((hop, hop) for hop in range(1, hops + 1))]
    for _ in range(rng.integers(0, 4)):
        first, last = sorted(int(end) for end in rng.integers(1, hops + 1, 2))
        parts.append((first, last))
    flows = []
    for index, (first, last) in enumerate(parts):
        is_backward = index == 1 or (index > 1 and bool(rng.random() < 0.5))
        flow = _flow(rng) | {"first_hop": first, "last_hop": last}
        if is_backward:
            flow["direction"] = "backward"
        queues = [way[is_backward]["queue"] for way in ways[first - 1 : last]]
        flow["ecn"] &= any(queue["ecn_marking"] for queue in queues)
        flows.append(flow)
    if everything:
        for link in (link for way in ways for link in way):
            _some_features(rng, link)
    (bottleneck, reverse), *others = ways
    return Scenario.model_validate(
        {
            "name": name,
            "duration_s": DURATION_S,
            "bottleneck": bottleneck,
            "reverse": reverse,
            "chain": [hop | {"reverse": back} for hop, back in others],
            "access": {"rate_mbps": _rate_mbps(rng), "delay_ms": _delay_ms(rng)},
            "flows": flows,
            "max_datagram_bytes": int(rng.integers(1200, 1473)),
        }
    )


# Round numbers are drawn often: equal delays and rates make much happen in the same nanosecond.
def _rate_mbps(rng: np.random.Generator) -> float:
    return float(rng.choice([5.0, 10.0, 20.0]) if rng.random() < 0.5 else rng.uniform(0.5, 50))


def _delay_ms(rng: np.random.Generator) -> float:
    return float(rng.choice([0.0, 1.0, 10.0]) if rng.random() < 0.5 else rng.uniform(0, 50))


def _link(rng: np.random.Generator, discipline: str) -> dict[str, Any]:
    in_bytes = KNOWN[discipline].counts_bytes and rng.random() < 0.5
    limit = rng.integers(1502, 300_000) if in_bytes else rng.integers(1, 201)
    can_mark = KNOWN[discipline].can_mark
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


def _times_s(rng: np.random.Generator) -> list[float]:
    """Moments at which something changes; round ones coincide with others."""
    count = int(rng.integers(1, 5))
    times = rng.choice([0.5, 1.0, 1.5], count) if rng.random() < 0.3 else rng.uniform(0, 2, count)
    return sorted({float(time) for time in times if time > 0})


def _outage(rng: np.random.Generator, link: dict[str, Any]) -> None:
    link["rate_schedule"] = [
        {"at_s": time, "rate_mbps": 0.0 if rng.random() < 0.5 else _rate_mbps(rng)}
        for time in _times_s(rng)
    ]


def _openings(rng: np.random.Generator, link: dict[str, Any]) -> None:
    often = rng.random() < 0.5
    link["opens_every_ms"] = float(rng.choice([1.0, 5.0, 10.0]) if often else rng.uniform(0.1, 100))


def _delay_schedule(rng: np.random.Generator, link: dict[str, Any]) -> None:
    link["delay_schedule"] = [{"at_s": time, "delay_ms": _delay_ms(rng)} for time in _times_s(rng)]


def _jitter(rng: np.random.Generator, link: dict[str, Any]) -> None:
    if rng.random() < 0.5:
        link["jitter"] = {"kind": "uniform", "max_ms": _delay_ms(rng)}
    else:
        mean_ms, deviation_ms = _delay_ms(rng), _delay_ms(rng)
        link["jitter"] = {"kind": "normal", "mean_ms": mean_ms, "deviation_ms": deviation_ms}


def _reordering(rng: np.random.Generator, link: dict[str, Any]) -> None:
    _jitter(rng, link)
    if rng.random() < 0.5:
        _delay_schedule(rng, link)
    link["reordering"] = True


def _policer(rng: np.random.Generator, link: dict[str, Any]) -> None:
    link["policer"] = {
        "rate_mbps": _rate_mbps(rng),
        "burst_bytes": int(rng.integers(1502, 200_000)),
    }


def _shaper(rng: np.random.Generator, link: dict[str, Any]) -> None:
    link["shaper"] = {
        "rate_mbps": _rate_mbps(rng),
        "burst_bytes": int(rng.integers(1502, 200_000)),
    }


def _losses(rng: np.random.Generator) -> list[Any]:
    """Nothing, independent losses and losses in bursts."""
    return [
        None,
        {"kind": "bernoulli", "probability": float(rng.uniform(0, 0.1))},
        {
            "kind": "gilbert-elliott",
            "good_to_bad": float(rng.uniform(0, 0.1)),
            "bad_to_good": float(rng.uniform(0.1, 1)),
        },
    ]


def _loss_schedule(rng: np.random.Generator, link: dict[str, Any]) -> None:
    losses = _losses(rng)
    link["loss_schedule"] = [
        {"at_s": time, "loss": losses[int(rng.integers(len(losses)))]} for time in _times_s(rng)
    ]


def _reroutes(rng: np.random.Generator, link: dict[str, Any]) -> None:
    link.pop("rate_schedule", None)
    link["reroutes"] = []
    path = link["rate_mbps"], link["delay_ms"]
    for time in _times_s(rng):
        # Two equal paths deliver in the same nanosecond, and engines differ in the order.
        while (drawn := (_rate_mbps(rng), _delay_ms(rng))) == path:
            pass
        path = drawn
        link["reroutes"].append({"at_s": time, "rate_mbps": path[0], "delay_ms": path[1]})


def _some_features(rng: np.random.Generator, link: dict[str, Any]) -> None:
    """Any of what links have together, and losses in bursts."""
    link["loss"] = _losses(rng)[int(rng.integers(3))]
    for draw in (_outage, _openings, _delay_schedule, _jitter, _policer, _shaper, _loss_schedule):
        if rng.random() < 0.4:
            draw(rng, link)


Draw = Callable[[np.random.Generator, dict[str, Any]], None]
Feature = Callable[[np.random.Generator, dict[str, Any], Path], None]


def _of_links(draw: Draw) -> Feature:
    """The feature of the bottleneck, and of half of the ways back."""

    def add(rng: np.random.Generator, description: dict[str, Any], _: Path) -> None:
        draw(rng, description["bottleneck"])
        if rng.random() < 0.5:
            draw(rng, description["reverse"])

    return add


def _ack_aggregation(rng: np.random.Generator, description: dict[str, Any], _: Path) -> None:
    _openings(rng, description["reverse"])


def _ce_threshold(rng: np.random.Generator, description: dict[str, Any], _: Path) -> None:
    threshold_ms = float(
        rng.choice([0.5, 1.0, 5.0]) if rng.random() < 0.5 else rng.uniform(0.01, 9)
    )
    description["bottleneck"]["queue"] |= {"ecn_marking": True, "ce_threshold_ms": threshold_ms}
    for flow in description["flows"]:
        if rng.random() < 0.5:
            flow["controller"] = "prague"


def _backward(rng: np.random.Generator, description: dict[str, Any], _: Path) -> None:
    flows = description["flows"]
    for flow in flows:
        flow["direction"] = str(rng.choice(["forward", "backward"]))
    flows[int(rng.integers(len(flows)))]["direction"] = "backward"


def _trace(rng: np.random.Generator, description: dict[str, Any], folder: Path) -> None:
    for name in ("bottleneck", "reverse")[: 1 if rng.random() < 0.5 else 2]:
        # Gaps in ms; without one, another 1500 bytes leave in the same millisecond.
        gaps = rng.integers(0, rng.choice([2, 4, 13]), rng.integers(1, 201))
        path = folder / f"{description['name']}-{name}.trace"
        path.write_text("\n".join(str(1 + time) for time in np.cumsum(gaps)))
        link = {**description[name], "trace": str(path)}
        description[name] = {
            field: value for field, value in link.items() if not field.startswith("rate_")
        }


def _short_flows(rng: np.random.Generator, description: dict[str, Any], _: Path) -> None:
    description["short_flows"] = [
        {
            "arrivals_per_s": float(rng.uniform(0.5, 8)),
            "sizes": int(rng.integers(1, 20_001)),
            "controller": str(rng.choice(["cubic", "bbr", "newreno", "prague"])),
        }
        for _ in range(rng.integers(1, 3))
    ]


def _everything(rng: np.random.Generator, description: dict[str, Any], folder: Path) -> None:
    for way in ("bottleneck", "reverse"):
        link = description[way]
        _some_features(rng, link)
        if rng.random() < 0.2:
            link.pop("delay_schedule", None)
            _reroutes(rng, link)
        else:
            delays_change = "jitter" in link or "delay_schedule" in link
            link["reordering"] = delays_change and bool(rng.random() < 0.5)
    _backward(rng, description, folder)
    if rng.random() < 0.3:
        _short_flows(rng, description, folder)
    for flow in description["flows"]:
        flow["send_buffer_bytes"] = int(rng.choice([10_000, 2**20]))
        flow["start_jitter_ms"] = float(rng.choice([0.0, rng.uniform(0, 50)]))


FEATURES: dict[str, Feature] = {
    "outage": _of_links(_outage),
    "trace": _trace,
    "opening": _of_links(_openings),
    "ack-aggregation": _ack_aggregation,
    "delay-schedule": _of_links(_delay_schedule),
    "jitter": _of_links(_jitter),
    "reordering": _of_links(_reordering),
    "policer": _of_links(_policer),
    "shaper": _of_links(_shaper),
    "loss-schedule": _of_links(_loss_schedule),
    "reroutes": _of_links(_reroutes),
    "ce-threshold": _ce_threshold,
    "backward": _backward,
    "short-flows": _short_flows,
    "everything": _everything,
}
"""Features that both engines have, by name, as functions that add one to a network."""
