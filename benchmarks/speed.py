"""Speed: CPU nanoseconds per delivered packet, everything in one process and one go.

CPU time of the process (time.process_time) around the run alone; building the network is not in
it. The rounds go over all measurements in turn, so that a slow spell of the machine does not hit
one of them alone, and each reports its fastest round. The first round warms up.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from typing import Literal

from rich.console import Console
from rich.table import Table

from quicgym import _core, controllers
from quicgym.console import wide_console
from quicgym.envs import Scenario, Simulation
from quicgym.envs.scenario import Access, EngineName, Flow, Link, Queue
from quicgym.envs.simulation import ns3_version

ROUNDS = 6
BARE_LOOP_PACKETS = 2_000_000


@dataclass(frozen=True)
class Measurement:
    """One line of the report."""

    name: str
    cpu_ns_per_packet: float
    packets: int


def speed_scenario(flows: int, rate_mbps: float, duration_s: float) -> Scenario:
    """The base network of the eBCC paper, queue and access links scaled with the rate."""
    return Scenario(
        name=f"speed-{flows}x{rate_mbps:g}mbps",
        duration_s=duration_s,
        bottleneck=Link(
            rate_mbps=rate_mbps, delay_ms=10, queue=Queue(limit=round(100 * rate_mbps / 15))
        ),
        access=Access(rate_mbps=rate_mbps * 50 / 15, delay_ms=20),
        flows=(Flow(count=flows, start_jitter_ms=50),),
        max_datagram_bytes=1400,
    )


def _simulate(scenario: Scenario, controller: str, engine: EngineName) -> tuple[float, int]:
    with Simulation(scenario, engine, 0, controller, trace_interval_ms=None) as simulation:
        begin = time.process_time_ns()
        simulation.run()
        spent = time.process_time_ns() - begin
        packets = sum(flow.statistics["received_packets"] for flow in simulation.flows)
    return spent / packets, packets


def _bare_loop() -> tuple[float, int]:
    return _core.bare_loop(BARE_LOOP_PACKETS), BARE_LOOP_PACKETS


def measure() -> list[Measurement]:
    """Measures everything; ns-3 only where this build has it."""
    tasks: dict[str, Callable[[], tuple[float, int]]] = {"bare-loop": _bare_loop}
    single = speed_scenario(1, 15, 20)
    for entry in controllers.catalogue():
        tasks[f"native-{entry.name}-1x15mbps"] = partial(_simulate, single, entry.name, "native")
    for controller in ("newreno", "bbr"):
        for flows, rate, label in ((10, 100.0, "10x100mbps"), (100, 1000.0, "100x1gbps")):
            scenario = speed_scenario(flows, rate, 20)
            tasks[f"native-{controller}-{label}"] = partial(
                _simulate, scenario, controller, "native"
            )
    tasks["native-bbr-1x15mbps-400s"] = partial(
        _simulate, speed_scenario(1, 15, 400), "bbr", "native"
    )
    if ns3_version() is not None:
        tasks["ns3-bbr-1x15mbps"] = partial(_simulate, speed_scenario(1, 15, 20), "bbr", "ns3")
    best: dict[str, tuple[float, int]] = {}
    with Console(stderr=True).status("") as status:
        for number in range(ROUNDS):
            for name, task in tasks.items():
                status.update(f"round {number + 1} of {ROUNDS}: {name}")
                result = task()
                if number > 0:
                    best[name] = min(best.get(name, result), result)
    return [Measurement(name, cost, packets) for name, (cost, packets) in best.items()]


def run_speed(format: Literal["table", "json"]) -> int:
    """Measures and prints; returns the exit status."""
    measurements = measure()
    if format == "json":
        print(json.dumps({"measurements": [asdict(entry) for entry in measurements]}, indent=1))
        return 0
    output = Table(title="CPU time per delivered packet", title_justify="left")
    output.add_column("measurement")
    for heading in ("ns per packet", "times bare-loop", "packets"):
        output.add_column(heading, justify="right")
    for entry in measurements:
        ratio = entry.cpu_ns_per_packet / measurements[0].cpu_ns_per_packet
        output.add_row(
            entry.name, f"{entry.cpu_ns_per_packet:,.1f}", f"{ratio:,.1f}", f"{entry.packets:,}"
        )
    wide_console().print(output)
    costs = {entry.name: entry.cpu_ns_per_packet for entry in measurements}
    growth = costs["native-bbr-1x15mbps-400s"] / costs["native-bbr-1x15mbps"]
    print(f"400 s cost per packet {growth:.2f} times what 20 s cost")
    if "ns3-bbr-1x15mbps" in costs:
        ratio = costs["ns3-bbr-1x15mbps"] / costs["native-bbr-1x15mbps"]
        print(f"ns-3 costs {ratio:.0f} times the native engine")
    else:
        print("ns-3 is left out: this build does not have it")
    return 0
