"""Parity: both engines deliver the same packets at the same nanosecond."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from rich.console import Console
from rich.table import Table

from quicgym.benchmarks.papers.paper import load_paper
from quicgym.benchmarks.random_networks import random_chain, random_network
from quicgym.console import wide_console
from quicgym.envs import Scenario, Simulation, load_scenario
from quicgym.envs.simulation.controller_choice import resolve_controllers
from quicgym.envs.simulation.simulation import check_engine

DEFAULT_SCENARIOS = ("ebcc-single", "ebcc-flows-3", "ebcc-flows-5")
"""1, 3 and 5 flows."""


@dataclass(frozen=True)
class Comparison:
    """Two delivery traces, compared."""

    scenario: str
    controller: str | None
    flows: int
    deliveries: int
    """On the native engine."""
    difference: str | None
    """The first one; None: equal to the nanosecond."""


def compare(scenario: Scenario, controller: str | None, seed: int = 0) -> Comparison:
    """Runs both engines and compares (flow, packet number, time in ns) of every delivery.

    Of short flows the records of all transfers are compared.
    """
    native, ns3 = (_records(scenario, controller, engine, seed) for engine in ("native", "ns3"))
    difference = first_difference(native[0], ns3[0])
    for entry, (one, other) in enumerate(zip(native[1], ns3[1], strict=True)):
        if difference is None and not np.array_equal(one, other):
            difference = f"transfers of short_flows.{entry}: native {len(one)}, ns-3 {len(other)}"
    return Comparison(
        scenario.name,
        controller,
        len(list(scenario.single_flows())),
        len(native[0]),
        difference,
    )


def _records(
    scenario: Scenario, controller: str | None, engine: str, seed: int
) -> tuple[np.ndarray, list[np.ndarray]]:
    """Returns the deliveries, and the transfers of each entry of short flows."""
    with Simulation(
        scenario, engine, seed, controller, trace_interval_ms=None, record_deliveries=True
    ) as simulation:
        simulation.run()
        entries = range(len(scenario.short_flows))
        return simulation.deliveries(), [simulation.transfers(entry) for entry in entries]


def first_difference(native: np.ndarray, ns3: np.ndarray) -> str | None:
    """Returns a text on the first delivery that differs, or None."""
    common = min(len(native), len(ns3))
    differs = np.zeros(common, dtype=bool)
    for name in ("flow", "packet_number", "time", "sent"):
        differs |= native[name][:common] != ns3[name][:common]
    if differs.any():
        index = int(np.argmax(differs))
    elif len(native) != len(ns3):
        index = common
    else:
        return None
    return f"delivery {index}: native {_show(native, index)}, ns-3 {_show(ns3, index)}"


def _show(deliveries: np.ndarray, index: int) -> str:
    if index >= len(deliveries):
        return "has no more"
    row = deliveries[index]
    times = f"sent at {row['sent']} ns, there at {row['time']} ns"
    return f"flow {row['flow']} packet {row['packet_number']}, {times}"


def run_parity(scenarios: Sequence[str], controllers: Sequence[str]) -> int:
    """Compares and prints every combination; returns the exit status, 1 for any difference.

    No scenarios means those with 1, 3 and 5 flows, and no controllers those of the paper's tables.
    """
    check_engine("ns3")
    combinations = list(_combinations(scenarios or DEFAULT_SCENARIOS, controllers))
    output = Table(title="Delivery traces, native and ns-3", title_justify="left")
    for heading in ("scenario", "controller"):
        output.add_column(heading)
    for heading in ("flows", "deliveries"):
        output.add_column(heading, justify="right")
    output.add_column("result", overflow="fold")
    results = []
    console = Console(stderr=True)
    with console.status("") as status:
        for scenario, controller in combinations:
            status.update(f"{scenario.name}, {controller}")
            results.append(compare(scenario, controller))
    for result in results:
        output.add_row(
            result.scenario,
            result.controller or "its flows' own",
            str(result.flows),
            str(result.deliveries),
            result.difference or "equal to the nanosecond",
        )
    wide_console().print(output)
    different = sum(result.difference is not None for result in results)
    print(f"{len(results) - different} of {len(results)} equal")
    return 1 if different else 0


def run_random_parity(
    disciplines: Sequence[str], features: Sequence[str], pairs: int, *, chains: bool = False
) -> int:
    """Compares random networks of each kind; returns the exit status.

    A kind is a queue discipline, a feature of paths, or both. Its `pairs` of runs have the same
    networks every time. `chains` takes chains of bottlenecks in place of dumbbells, without
    features.
    """
    check_engine("ns3")
    output = Table(title="Delivery traces, native and ns-3", title_justify="left")
    output.add_column("random networks")
    for heading in ("networks", "deliveries"):
        output.add_column(heading, justify="right")
    output.add_column("result", overflow="fold")
    different = 0
    kinds = product(dict.fromkeys(features) or [None], dict.fromkeys(disciplines) or [None])
    with Console(stderr=True).status("") as status, TemporaryDirectory() as folder:
        for feature, discipline in kinds:
            kind = ", ".join(part for part in (feature, discipline) if part)
            deliveries = 0
            differences = []
            for number in range(pairs):
                status.update(f"{kind}: {number + 1} of {pairs}")
                with warnings.catch_warnings(action="ignore", category=UserWarning):
                    # Nobody has written these networks, so no advice on them is due.
                    if chains and discipline is not None:
                        scenario = random_chain(discipline, number)
                    else:
                        scenario = random_network(number, discipline, feature, Path(folder))
                    scenario.check_engine("ns3")
                    result = compare(scenario, None, seed=number)
                deliveries += result.deliveries
                if result.difference is not None:
                    differences.append(f"network {number}: {result.difference}")
            equal = f"{pairs - len(differences)} of {pairs} equal to the nanosecond"
            output.add_row(
                kind, str(pairs), f"{deliveries:,}", "\n".join([equal, *differences[:3]])
            )
            different += len(differences)
    wide_console().print(output)
    return 1 if different else 0


def _combinations(
    scenarios: Sequence[str], controllers: Sequence[str]
) -> Iterator[tuple[Scenario, str | None]]:
    for name in dict.fromkeys(scenarios):
        scenario = load_scenario(name)
        scenario.check_engine("native")
        scenario.check_engine("ns3")
        names = list(dict.fromkeys(controllers)) or list(load_paper("ebcc").algorithms)
        for controller in names if scenario.has_open_flow else [None]:
            resolve_controllers(scenario, controller)
            yield scenario, controller
