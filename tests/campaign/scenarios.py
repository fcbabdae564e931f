"""Random scenarios over the documented range, and what must hold in each of them."""

from __future__ import annotations

import math
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from itertools import pairwise
from multiprocessing import get_context
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import numpy as np

from campaign.found import Found, one_line
from quicgym import Run, controllers
from quicgym.benchmarks.random_networks import DISCIPLINES, FEATURES, random_chain, random_network
from quicgym.envs import Scenario, Simulation
from quicgym.envs.scenarios.fields import LINK_HEADER_BYTES

MOST_PACKETS = 30_000
"""That the bottleneck can pass in a wide scenario; its duration follows from that."""
CHUNK = 8
"""Scenarios of a process between two looks at the clock."""


def random_scenario(number: int) -> Scenario:
    """Returns scenario `number`: half of the short ones are wide, the others those of the parity.

    Wide: rates from 0.03 to 3000 Mbps, delays from 0 to 1.5 s, queues from one packet to 100,000,
    any loss, any controller, every kind of application and of acknowledging.
    """
    rng = np.random.default_rng([number, *b"campaign"])
    if number % 2 == 0:
        return _wide(rng, number)
    if number % 8 == 1:
        return random_chain(str(rng.choice(DISCIPLINES)), number)
    feature = str(rng.choice(list(FEATURES)))
    return random_network(number, None, feature, _trace_folder())


@cache
def _trace_folder() -> Path:
    return Path(mkdtemp(prefix="quicgym-campaign-"))


def _log(rng: np.random.Generator, least: float, most: float) -> float:
    return float(10 ** rng.uniform(math.log10(least), math.log10(most)))


def _delay_ms(rng: np.random.Generator) -> float:
    return 0.0 if rng.random() < 0.1 else _log(rng, 0.01, 1500)


def _loss(rng: np.random.Generator) -> dict[str, Any] | None:
    draw = rng.random()
    if draw < 0.5:
        return None
    if draw < 0.8:
        # 1 is drawn as well: nothing arrives.
        return {"kind": "bernoulli", "probability": min(1.0, _log(rng, 1e-5, 1.5))}
    share = rng.uniform(0, 1, 3)
    return {
        "kind": "gilbert-elliott",
        "good_to_bad": float(share[0]),
        "bad_to_good": float(share[1]),
        "loss_in_bad": float(share[2]),
    }


def _wide_link(rng: np.random.Generator, rate_mbps: float, packet_bytes: int) -> dict[str, Any]:
    limit = round(_log(rng, 1, 100_000))
    unit = "bytes" if rng.random() < 0.3 else "packets"
    link: dict[str, Any] = {
        "rate_mbps": rate_mbps,
        "delay_ms": _delay_ms(rng),
        "queue": {
            "limit": limit * packet_bytes if unit == "bytes" else limit,
            "unit": unit,
            "discipline": "drop-tail" if rng.random() < 0.6 else str(rng.choice(["codel", "pie"])),
        },
    }
    if (loss := _loss(rng)) is not None:
        link["loss"] = loss
    return link


def _application(rng: np.random.Generator, rate_mbps: float) -> dict[str, Any]:
    kinds: list[dict[str, Any]] = [
        {"kind": "bulk"},
        {"kind": "transfer", "size_bytes": round(_log(rng, 1, 1e7))},
        {"kind": "constant-rate", "rate_mbps": max(0.001, rate_mbps * _log(rng, 0.001, 3))},
    ]
    return kinds[rng.choice(3, p=[0.6, 0.25, 0.15])]


def _wide(rng: np.random.Generator, number: int) -> Scenario:
    rate_mbps = _log(rng, 0.03, 3000)
    datagram_bytes = int(rng.integers(1200, 1473))
    packet_bytes = datagram_bytes + LINK_HEADER_BYTES
    packets = _log(rng, 10, MOST_PACKETS)
    duration_s = min(1000.0, max(0.01, packets * packet_bytes * 8 / (rate_mbps * 1e6)))
    names = [entry.name for entry in controllers.catalogue()]
    flows = []
    for _ in range(rng.integers(1, 9)):
        flow: dict[str, Any] = {
            "controller": str(rng.choice(names)),
            "application": _application(rng, rate_mbps),
            "start_s": float(rng.uniform(0, duration_s / 2)),
            "extra_delay_ms": _delay_ms(rng) if rng.random() < 0.3 else 0.0,
            "send_buffer_bytes": round(_log(rng, 1200, 1e7)),
            "flow_control_window_bytes": round(_log(rng, 5000, 1e8)),
            "burst_retransmission": bool(rng.random() < 0.1),
        }
        if rng.random() < 0.3:
            flow["ack_frequency"] = {
                "ack_eliciting_threshold": int(rng.integers(0, 50)),
                "max_ack_delay_ms": _log(rng, 0.01, 1000),
                "reordering_threshold": int(rng.integers(0, 2)),
            }
        flows.append(flow)
    return Scenario.model_validate(
        {
            "name": f"wide-{number}",
            "duration_s": duration_s,
            "bottleneck": _wide_link(rng, rate_mbps, packet_bytes),
            "reverse": _wide_link(rng, _log(rng, 0.03, 3000), packet_bytes),
            "access": {"rate_mbps": _log(rng, 0.1, 10_000), "delay_ms": _delay_ms(rng) / 10},
            "flows": flows,
            "max_datagram_bytes": datagram_bytes,
        }
    )


def check(number: int) -> Found:
    """Runs scenario `number` twice, the second time in steps, and checks both."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of ECN where no queue marks
        scenario = random_scenario(number)
        rng = np.random.default_rng([number, *b"steps"])
        whole = Simulation(scenario, seed=number, marks=(), record_deliveries=True)
        again = Simulation(scenario, seed=number, record_deliveries=True)
    whole.run()
    for end_s in sorted(rng.uniform(0, scenario.duration_s, rng.integers(0, 20))):
        again.run_until(float(end_s))
    again.run()
    failures = [*_violations(scenario, whole), *_differences(whole, again)]
    packets = sum(flow.statistics["sent_packets"] for flow in whole.flows)
    return Found(
        {"scenarios": 1, "packets": 2 * packets},
        [f"{number} ({scenario.name}): {text}" for text in failures],
    )


def _differences(whole: Simulation, again: Simulation) -> list[str]:
    """Where two runs of the same seed differ."""
    if not np.array_equal(whole.deliveries(), again.deliveries()):
        return ["deliveries differ between a run at once and one in steps"]
    found = []
    for one, two in zip(whole.flows, again.flows, strict=True):
        if one.statistics != two.statistics:
            found.append(f"{one.name}: statistics differ between a run at once and one in steps")
    return found


def _violations(scenario: Scenario, simulation: Simulation) -> list[str]:
    found = []
    propagation_ns = _propagation_ns(scenario)
    received_bits = {"forward": 0, "backward": 0}
    for (_, model), flow in zip(scenario.single_flows(), simulation.flows, strict=True):
        total = flow.statistics
        for name, value in total.items():
            if isinstance(value, int | float) and not 0 <= value < math.inf:
                found.append(f"{flow.name}: {name} = {value}")
        under_way = total["sent_packets"] - total["received_packets"] - total["dropped_packets"]
        if under_way < 0:
            found.append(f"{flow.name}: {-under_way} more packets came out than went in")
        for less, more in (("received_bytes", "sent_bytes"), ("goodput_bytes", "received_bytes")):
            if total[less] > total[more]:
                found.append(f"{flow.name}: {less} = {total[less]} > {more} = {total[more]}")
        if total["rtt_samples"]:
            least_ns = propagation_ns[flow.name]
            if total["lowest_rtt"] < least_ns:
                found.append(f"{flow.name}: RTT {total['lowest_rtt']} ns below {least_ns} ns")
            if total["rtt_sum_seconds"] < total["rtt_samples"] * total["lowest_rtt"] * 1e-9 - 1e-6:
                found.append(f"{flow.name}: the mean RTT is below the lowest")
        packets = total["received_packets"] * LINK_HEADER_BYTES
        received_bits[model.direction] += 8 * (total["received_bytes"] + packets)
    found += _beyond_capacity(scenario, received_bits)
    for name, value in Run.of(simulation).metrics.items():
        if value is not None and not math.isfinite(value):
            found.append(f"{name} = {value}")
    return found


def _propagation_ns(scenario: Scenario) -> dict[str, int]:
    """The least time of each flow's packets and their acknowledgements on the wires, in ns."""
    least = {}
    ways = list(scenario.links.values())
    for name, flow in scenario.single_flows():
        access_ms = (flow.access or scenario.access).delay_ms
        both_ms = 4 * access_ms + 2 * flow.extra_delay_ms
        for hop in scenario.hops_of(flow):
            for link in ways[2 * hop : 2 * hop + 2]:
                both_ms += min(link.delays_ms)
        least[name] = math.floor(both_ms * 1e6) - 10  # each delay is rounded to whole ns
    return least


def _beyond_capacity(scenario: Scenario, received_bits: dict[str, int]) -> list[str]:
    """Where more came through a single bottleneck than its rate lets through."""
    found = []
    for (field, link), bits in zip(scenario.links.items(), received_bits.values(), strict=False):
        if scenario.chain or link.trace is not None or link.rate_mbps is None:
            continue
        steps = [(0.0, link.rate_mbps), *((s.at_s, s.rate_mbps) for s in link.rate_schedule)]
        ends = [*steps, (scenario.duration_s, 0.0)]
        sending = [(begin, end, rate) for (begin, rate), (end, _) in pairwise(ends)]
        # What waits on a path that is left goes on there.
        sending += [(step.at_s, scenario.duration_s, step.rate_mbps) for step in link.reroutes]
        possible = sum(
            rate * 1e6 * max(0.0, min(end, scenario.duration_s) - begin)
            for begin, end, rate in sending
        )
        # A packet that has begun before the rate falls goes on at the old one.
        if bits > possible + 8 * 66_000 * len(steps):
            found.append(f"{field}: {bits} bits came through, {possible:.0f} are possible")
    return found


def _checked(number: int) -> Found:
    """Checks scenario `number`; an exception is a failure of it."""
    try:
        return check(number)
    except Exception as error:
        return Found(failures=[f"{number}: {type(error).__name__}: {one_line(error)}"])


def run(first: int, until: float, jobs: int) -> Found:
    """Checks scenarios from `first` on until the time is over, one chunk at least."""
    found, number = Found(), first
    # Forked processes see a `check` that a test has replaced.
    with ProcessPoolExecutor(jobs, get_context("fork")) as pool:
        checked = map if jobs == 1 else pool.map
        while number == first or time.monotonic() < until:
            numbers = range(number, number + CHUNK * jobs)
            for one in checked(_checked, numbers):
                found.add(one)
            number = numbers.stop
    return found


def missing() -> str | None:
    """Returns what this machine lacks: nothing."""
    return None
