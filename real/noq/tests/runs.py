"""Runs of the stack itself, below `quicgym.run`."""

from __future__ import annotations

from pathlib import Path

from quicgym import _core, controllers, load_scenario
from quicgym.agents import policies
from quicgym.real.network import to_network
from quicgym.real.stacks import FlowPlan, Steering, find_stack

SECOND = 10**9
INTERVAL = SECOND // 10
POLICIES = Path(policies.__file__).parent / "pretrained"

TEXT = """
name: short
duration_s: 3
max_datagram_bytes: 1300
bottleneck:
  rate_mbps: 6
  delay_ms: 15
  queue: {limit: 30, unit: packets, discipline: drop-tail}
access: {rate_mbps: 50, delay_ms: 5}
flows: [{}]
"""


def short(folder: Path, text: str = "", flows: str = "flows: [{}]"):
    """6 Mbps, 50 ms; `text` is indented below the bottleneck."""
    path = folder / "short.yaml"
    lines = TEXT.replace("flows: [{}]", flows)
    path.write_text(lines.replace("access:", f"{text}\naccess:") if text else lines)
    return load_scenario(path)


def policy(name: str) -> Steering:
    return Steering(title=name, name=name, kind="policy", policy=POLICIES / f"{name}.json")


def catalogue(name: str, **parameters) -> Steering:
    return Steering(title=name, name=name, kind="controller", parameters=parameters)


def of_scenario(scenario, name: str) -> Steering:
    """The controller with the scenario's parameters, which `quicgym.run` gives it as well."""
    parameters = scenario.controller_parameters.get(name, {})
    return catalogue(name, **controllers.find(name).numbers(parameters))


def own(name: str) -> Steering:
    return Steering(title=name, name=name, kind="own")


def plans(scenario, steering: Steering, seed: int = 1, **changes) -> list[FlowPlan]:
    """Returns the plan of each flow of the scenario, all with the same steering."""
    return [
        FlowPlan(
            **{
                "steering": steering,
                "seed": seed,
                "start": flow.start,
                "stop": flow.stop,
                "size_bytes": None,
                "max_datagram_bytes": flow.max_datagram_bytes,
                "flow_control_window_bytes": flow.flow_control_window_bytes,
                "ack_eliciting_threshold": flow.ack_eliciting_threshold,
                "max_ack_delay": flow.max_ack_delay,
                "ecn": flow.ecn,
                **changes,
            }
        )
        for flow in to_network(scenario).flows
    ]


def run(
    scenario, flows, *, network=None, clock="virtual", progress=None, deadline_s=60.0, qlog=None
):
    """One run to the scenario's end; returns its records."""
    if network is None:
        network = _core.EmulatedNetwork(to_network(scenario), flows[0].seed)
    return find_stack("noq").run(
        flows,
        network,
        clock=clock,
        duration=round(scenario.duration_s * SECOND),
        interval=INTERVAL,
        progress=progress or (lambda time, received, rtts: None),
        deadline_s=deadline_s,
        qlog=qlog,
    )


def goodput_mbps(scenario, plan, record) -> float:
    active = min(round(scenario.duration_s * SECOND), plan.stop) - plan.start
    return int(record.rows["goodput_bytes"][-1]) * 8e3 / active


def mean_rtt_ms(record) -> float:
    return float(record.rtt[:, 1].mean()) / 1e6
