"""Speed: CPU time per delivered packet and per environment step, all in one process and one go.

CPU time of the process (time.process_time) around the run alone; building the network is not in
it, but where environments are stepped, the resets between episodes are. The rounds go over all
measurements in turn, so that a slow spell of the machine does not hit one of them alone, and each
reports its fastest round. The first round warms up. The long simulation and the short ones that it
is compared with run in turn within a round, because such a spell can last for several seconds.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Literal, NamedTuple

import gymnasium
import numpy as np
from rich.table import Table

from quicgym import _core, controllers
from quicgym.console import progress_bar, wide_console
from quicgym.envs import Scenario, Simulation, load_scenario, make_vec, preset_action
from quicgym.envs.scenarios.engines import EngineName
from quicgym.envs.scenarios.flows import Flow
from quicgym.envs.scenarios.links import DISCIPLINES, Access, DisciplineName, Link, Queue
from quicgym.envs.scenarios.short_flows import ShortFlows
from quicgym.envs.simulation.controller_choice import lacks_marks
from quicgym.envs.simulation.simulation import ns3_version

ROUNDS = 6
BARE_LOOP_PACKETS = 2_000_000
SHORT_S, LONG_S = 20.0, 400.0
"""Lengths of two simulations whose cost per packet is compared; it should not grow with age."""
VECTOR_ROWS = 32
STEP_BUDGET = {"vec-native-tuning": 6400, "gym-native-tuning": 3800, "gym-ns3-tuning": 190}
"""Steps per round: whole episodes, so that the same share of resets is in each."""
Costs = dict[str, tuple[float, int]]
"""By a measurement's name: CPU time in ns per packet or step, and how many of them."""


class Kind(NamedTuple):
    """A table of the report: its title, and the unit of cost and what is counted.

    `key` and `counted` are the fields in JSON, `heading` that of the column. `cost` makes the
    column's number of CPU nanoseconds.
    """

    title: str
    key: str
    heading: str
    counted: str
    digits: int
    cost: Callable[[float], float]


PACKETS = Kind(
    "CPU time per delivered packet", "cpu_ns_per_packet", "ns per packet", "packets", 1, float
)
SHORT_FLOWS = Kind(
    "CPU time per short flow of one packet: connection, handshake, transfer, close and record",
    "cpu_us_per_flow", "µs per flow", "flows", 2, lambda ns: ns / 1e3,
)  # fmt: skip
STEPS = Kind(
    "Environment steps of 100 ms, one thread: Tuning-v1 on ebcc-single",
    "steps_per_cpu_second", "steps per CPU second", "steps", 0, lambda ns: 1e9 / ns,
)  # fmt: skip


def speed_scenario(
    flows: int,
    rate_mbps: float,
    duration_s: float,
    discipline: DisciplineName = "drop-tail",
) -> Scenario:
    """The base network of the eBCC paper, queue and access links scaled with the rate."""
    queue = Queue(limit=round(100 * rate_mbps / 15), discipline=discipline)
    return Scenario(
        name=f"speed-{flows}x{rate_mbps:g}mbps",
        duration_s=duration_s,
        bottleneck=Link(rate_mbps=rate_mbps, delay_ms=10, queue=queue),
        access=Access(rate_mbps=rate_mbps * 50 / 15, delay_ms=20),
        flows=(Flow(count=flows, start_jitter_ms=50),),
        max_datagram_bytes=1400,
    )


PATHS: dict[str, dict[str, object]] = {
    "outages": {
        "rate_schedule": [
            {"at_s": float(second), "rate_mbps": 15.0 * (second % 5 > 0)} for second in range(1, 20)
        ]
    },
    "openings": {"opens_every_ms": 20.0},
    "trace": {"rate_mbps": None, "trace": "lte:mean_mbps=6,duration_s=60,seed=0"},
    "delay-schedule": {
        "delay_schedule": [
            {"at_s": float(second), "delay_ms": 5.0 + 10.0 * (second % 2)}
            for second in range(1, 20)
        ]
    },
    "jitter": {"jitter": {"kind": "normal", "mean_ms": 5.0, "deviation_ms": 3.0}},
    "reordering": {"jitter": {"kind": "uniform", "max_ms": 5.0}, "reordering": True},
    "policer": {"policer": {"rate_mbps": 15.0, "burst_bytes": 150_000}},
}
"""Features whose cost is measured: fields of the link, by the end of the measurement's name."""


def path_scenarios() -> dict[str, Scenario]:
    """One flow at 15 Mbps over a path with each feature, by the end of the measurement's name."""
    plain = speed_scenario(1, 15, SHORT_S).model_dump(exclude_none=True)
    link = plain["bottleneck"]
    changes: dict[str, dict[str, object]] = {
        name: {"bottleneck": {**link, **fields}} for name, fields in PATHS.items()
    }
    changes["trace"]["reverse"] = link  # without it the bottleneck's rate would be the default
    changes["ack-aggregation"] = {"reverse": {**link, "opens_every_ms": 20.0}}
    changes["chain-of-3"] = {"chain": [link, link]}
    changes["backward"] = {
        "reverse": link,
        "flows": [
            {**flow, "direction": "backward", "controller": "bbr"} for flow in plain["flows"]
        ],
    }
    return {name: Scenario.model_validate({**plain, **fields}) for name, fields in changes.items()}


def _begin(scenario: Scenario, controller: str, engine: EngineName) -> Simulation:
    return Simulation(scenario, engine, 0, controller, trace_interval_ms=None)


def _run_until(simulation: Simulation, time_s: float) -> int:
    """Returns the CPU time in ns."""
    begin = time.process_time_ns()
    simulation.run_until(time_s)
    return time.process_time_ns() - begin


def _received_packets(simulation: Simulation) -> int:
    return sum(flow.statistics["received_packets"] for flow in simulation.flows)


def _simulate(name: str, scenario: Scenario, controller: str, engine: EngineName) -> Costs:
    with _begin(scenario, controller, engine) as simulation:
        spent = _run_until(simulation, scenario.duration_s)
        packets = _received_packets(simulation)
    return {name: (spent / packets, packets)}


def _short_and_long() -> Costs:
    """One flow for LONG_S, and as many for SHORT_S as take as long together."""
    spent = packets = long_spent = 0
    short = speed_scenario(1, 15, SHORT_S)
    with _begin(speed_scenario(1, 15, LONG_S), "bbr", "native") as long_simulation:
        for number in range(1, round(LONG_S / SHORT_S) + 1):
            with _begin(short, "bbr", "native") as simulation:
                spent += _run_until(simulation, SHORT_S)
                packets += _received_packets(simulation)
            long_spent += _run_until(long_simulation, number * SHORT_S)
        long_packets = _received_packets(long_simulation)
    return {
        "native-bbr-1x15mbps": (spent / packets, packets),
        "native-bbr-1x15mbps-400s": (long_spent / long_packets, long_packets),
    }


def _short_flows(name: str, duration_s: float) -> Costs:
    """A thousand arrivals per second on an idle link."""
    scenario = speed_scenario(1, 100, duration_s)
    last = Flow(controller="cubic", start_s=duration_s - 0.01)
    arriving = ShortFlows(arrivals_per_s=1000.0, sizes=1000, controller="cubic")
    scenario = scenario.model_copy(update={"flows": (last,), "short_flows": (arriving,)})
    with Simulation(scenario, "native", 0, trace_interval_ms=None) as simulation:
        spent = _run_until(simulation, duration_s)
        flows = len(simulation.transfers())
    return {name: (spent / flows, flows)}


def short_flow_tasks() -> list[Callable[[], Costs]]:
    """Short flows in a short and in a long simulation: what has gone costs nothing."""
    return [
        partial(_short_flows, "native-short-flow", SHORT_S),
        partial(_short_flows, "native-short-flow-400s", LONG_S),
    ]


def _bare_loop() -> Costs:
    return {"bare-loop": (_core.bare_loop(BARE_LOOP_PACKETS), BARE_LOOP_PACKETS)}


def _step_vector(name: str) -> Costs:
    """One thread, the action of `bbr`, which keeps the link saturated."""
    environments = make_vec("tuning", VECTOR_ROWS, scenario="ebcc-single", num_threads=1)
    environments.reset(seed=0)
    actions = np.tile(preset_action("bbr"), (VECTOR_ROWS, 1))
    calls = STEP_BUDGET[name] // VECTOR_ROWS
    begin = time.process_time_ns()
    for _ in range(calls):
        environments.step(actions)
    spent = time.process_time_ns() - begin
    environments.close()
    return {name: (spent / (calls * VECTOR_ROWS), calls * VECTOR_ROWS)}


def _step_single(name: str, engine: EngineName) -> Costs:
    """Steps what gymnasium.make gives, without the checker, which is for development only."""
    steps = STEP_BUDGET[name]
    environment = gymnasium.make(
        "quicgym/Tuning-v1", scenario="ebcc-single", engine=engine, disable_env_checker=True
    )
    environment.reset(seed=0)
    action = preset_action("bbr")
    begin = time.process_time_ns()
    for _ in range(steps):
        _, _, terminated, truncated, _ = environment.step(action)
        if terminated or truncated:
            environment.reset()
    spent = time.process_time_ns() - begin
    environment.close()
    return {name: (spent / steps, steps)}


def step_tasks() -> list[Callable[[], Costs]]:
    """The environments; ns-3 only where this build has it."""
    tasks: list[Callable[[], Costs]] = [
        partial(_step_vector, "vec-native-tuning"),
        partial(_step_single, "gym-native-tuning", "native"),
    ]
    if ns3_version() is not None:
        tasks.append(partial(_step_single, "gym-ns3-tuning", "ns3"))
    return tasks


def packet_tasks() -> list[Callable[[], Costs]]:
    """Networks, controllers and disciplines; ns-3 only where this build has it."""
    tasks: list[Callable[[], Costs]] = [_bare_loop, _short_and_long]
    short = speed_scenario(1, 15, SHORT_S)
    marking = speed_scenario(1, 15, SHORT_S, "dualpi2")  # for controllers that ask for marks
    for entry in controllers.catalogue():
        if entry.name != "bbr":
            name = f"native-{entry.name}-1x15mbps"
            scenario = marking if lacks_marks(short, entry) else short
            tasks.append(partial(_simulate, name, scenario, entry.name, "native"))
    for controller in ("newreno", "bbr"):
        for flows, rate, label in ((10, 100.0, "10x100mbps"), (100, 1000.0, "100x1gbps")):
            name = f"native-{controller}-{label}"
            scenario = speed_scenario(flows, rate, SHORT_S)
            tasks.append(partial(_simulate, name, scenario, controller, "native"))
    for discipline in [name for name in DISCIPLINES if name != "drop-tail"]:
        name = f"native-newreno-10x100mbps-{discipline}"
        scenario = speed_scenario(10, 100.0, SHORT_S, discipline)
        tasks.append(partial(_simulate, name, scenario, "newreno", "native"))
    # The IBCCA paper asks what its switch costs, so compare it with the two controllers alone.
    bursts = load_scenario("beyond-ibcca-burst-42")
    for controller in ("ibcca", "cubic", "ibcca-cubic"):
        name = f"native-{controller}-bursts"
        tasks.append(partial(_simulate, name, bursts, controller, "native"))
    for feature, scenario in path_scenarios().items():
        name = f"native-bbr-1x15mbps-{feature}"
        tasks.append(partial(_simulate, name, scenario, "bbr", "native"))
    if ns3_version() is not None:
        tasks.append(partial(_simulate, "ns3-bbr-1x15mbps", short, "bbr", "ns3"))
    return tasks


def _best(title: str, tasks: Sequence[Callable[[], Costs]]) -> Costs:
    """Runs every task in every round; the lowest cost of each measurement, and what it counted."""
    best: Costs = {}
    with progress_bar() as progress:
        bar = progress.add_task(title, total=ROUNDS * len(tasks))
        for number in range(ROUNDS):
            for task in tasks:
                for name, cost in task().items():
                    if number > 0:
                        best[name] = min(best.get(name, cost), cost)
                progress.advance(bar)
    return best


def run_speed(format: Literal["table", "json"]) -> int:
    """Measures and prints; returns the exit status."""
    measured = {
        kind: _best(kind.counted, tasks)
        for kind, tasks in (
            (PACKETS, packet_tasks()), (SHORT_FLOWS, short_flow_tasks()), (STEPS, step_tasks()),
        )
    }  # fmt: skip
    if format == "json":
        entries = [
            {"name": name, kind.key: kind.cost(ns), kind.counted: count}
            for kind, costs in measured.items()
            for name, (ns, count) in costs.items()
        ]
        print(json.dumps({"measurements": entries}, indent=1))
        return 0
    bare_loop = measured[PACKETS]["bare-loop"][0]
    for kind, costs in measured.items():
        times = ["times bare-loop"] if kind is PACKETS else []
        output = Table(title=kind.title, title_justify="left")
        output.add_column("measurement")
        for heading in (kind.heading, *times, kind.counted):
            output.add_column(heading, justify="right")
        for name, (ns, count) in costs.items():
            ratio = [f"{ns / bare_loop:,.1f}"] if times else []
            output.add_row(name, f"{kind.cost(ns):,.{kind.digits}f}", *ratio, f"{count:,}")
        wide_console().print(output)
    costs = measured[PACKETS]
    growth = costs["native-bbr-1x15mbps-400s"][0] / costs["native-bbr-1x15mbps"][0]
    print(f"400 s cost per packet {growth:.2f} times what 20 s cost")
    if "ns3-bbr-1x15mbps" in costs:
        ratio_of_ns3 = costs["ns3-bbr-1x15mbps"][0] / costs["native-bbr-1x15mbps"][0]
        print(f"ns-3 costs {ratio_of_ns3:.0f} times the native engine")
    else:
        print("ns-3 is left out: this build does not have it")
    return 0
