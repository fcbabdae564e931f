"""Scenario fields and engine capabilities: each is declared once, and nothing is forgotten."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args

import pytest
from pydantic import BaseModel

from quicgym import Scenario, ScenarioError, Simulation, _core
from quicgym.envs.scenarios.conversion import network, steps_of, structure
from quicgym.envs.scenarios.fields import INLINE, CheckedModel, DelayMs, Outside, Probability
from quicgym.envs.scenarios.flows import Flow
from quicgym.envs.scenarios.links import BernoulliLoss, Link, RateStep

STRUCTURES = (
    "Scenario", "Link", "RateStep", "DelayStep", "LossStep", "Reroute", "Jitter", "Policer",
    "Shaper", "LossModel", "Wifi", "Flow", "Application", "ShortFlows", "SizePoint", "PageObject",
)  # fmt: skip
FILLED_OTHERWISE = {
    # With defaults, and queues that are counted.
    *(("Scenario", member) for member in ("bottleneck", "chain", "reverse", "reverse_chain")),
    ("Scenario", "flows"),
    ("PageObject", "after"),  # by number
    ("Scenario", "short_flows"),
    *(("ShortFlows", member) for member in ("flow", "arrivals_per_second", "sizes")),
    *(("Flow", member) for member in ("name", "controller", "parameters")),
    *(("Flow", member) for member in ("guard", "safe_envelope")),  # of an environment's interface
    # Arguments of Simulation.
    *(
        ("Scenario", member)
        for member in ("trace_interval", "record_deliveries", "pcap_prefix", "flow_monitor_path")
    ),
}


def models_in(annotation: Any) -> Iterator[type[CheckedModel]]:
    if isinstance(annotation, type) and issubclass(annotation, CheckedModel):
        yield annotation
    for argument in get_args(annotation):
        yield from models_in(argument)


def members_reached(model: type[CheckedModel], core_name: str) -> set[tuple[str, str]]:
    steps, inlined = steps_of(model)
    reached = {(core_name, step.member) for step in steps}
    for name, field in model.model_fields.items():
        for part in models_in(field.annotation):
            inside = core_name if name in inlined else part.core_type or part.__name__
            reached |= members_reached(part, inside)
    return reached


def bound_members() -> set[tuple[str, str]]:
    return {
        (name, member)
        for name in STRUCTURES
        for member in vars(getattr(_core, name))
        if not member.startswith(("_", "set_"))
    }


def test_every_field_has_its_member_and_every_member_its_field() -> None:
    reached = members_reached(Scenario, "Scenario")
    assert reached - bound_members() == set(), "no such member in sim/scenario.hpp"
    assert bound_members() - reached == FILLED_OTHERWISE, "no field of a model sets it"


def test_every_field_is_converted_inlined_or_read_elsewhere() -> None:
    def check(model: type[CheckedModel]) -> None:
        steps, inlined = steps_of(model)
        outside = {
            name
            for name, field in model.model_fields.items()
            if any(isinstance(mark, Outside) for mark in field.metadata)
        }
        assert {step.field for step in steps} | set(inlined) | outside == set(model.model_fields)
        for field in model.model_fields.values():
            for part in models_in(field.annotation):
                check(part)

    check(Scenario)
    assert INLINE in Link.model_fields["queue"].metadata


def test_a_new_field_needs_nothing_but_its_two_declarations() -> None:
    class TwoStates(BernoulliLoss):
        """With a field for a member that this model had none for."""

        loss_in_bad: Probability = 0.0

    core = structure(TwoStates(probability=0.5, loss_in_bad=0.25))
    assert (core.probability, core.loss_in_bad) == (0.5, 0.25)


def test_a_field_that_has_no_member_is_an_error() -> None:
    class Longer(RateStep):
        """With a field that sim/scenario.hpp does not know."""

        core_type = "RateStep"

        ramp_ms: DelayMs = 1.0

    with pytest.raises(AttributeError, match="ramp"):
        structure(Longer(at_s=1, rate_mbps=1))


@pytest.mark.parametrize(
    ("model", "member", "value"),
    [
        (RateStep(at_s=1e-9 + 1.5, rate_mbps=0.0123456), "at", 1_500_000_001),
        (RateStep(at_s=1, rate_mbps=0.0123456), "rate_bits_per_second", 12_346),
        (Link(rate_mbps=1, delay_ms=0.1), "delay", 100_000),
        (Flow(stop_s=3.0), "stop", 3_000_000_000),
        (Flow(), "stop", _core.Flow().stop),
        (Flow(transport="tcp"), "transport", _core.Transport.tcp),
    ],
)
def test_units_and_defaults(model: BaseModel, member: str, value: Any) -> None:
    assert isinstance(model, CheckedModel)
    assert getattr(structure(model), member) == value


NETWORK: dict[str, Any] = {
    "name": "mine",
    "duration_s": 2,
    "bottleneck": {"rate_mbps": 15, "delay_ms": 10},
    "access": {"rate_mbps": 50, "delay_ms": 20},
    "flows": [{"controller": "cubic", "count": 2}, {"controller": "cubic"}],
}
WIFI = {
    "standard": "802.11n", "band_ghz": 5, "channel_width_mhz": 40, "mcs": 7,
    "short_guard_interval": False, "max_ampdu_bytes": 65535, "distance_m": 1,
    "path_loss_exponent": 3, "queue": {"limit_packets": 500, "max_delay_ms": 500},
    "wired": {"rate_mbps": 1000, "delay_ms": 0, "queue_packets": 100},
}  # fmt: skip
DUALPI2 = {"rate_mbps": 15, "delay_ms": 10, "queue": {"discipline": "dualpi2"}}
NEEDS: dict[str, tuple[dict[str, Any], list[str]]] = {
    "queue-discipline": (
        {"bottleneck": DUALPI2, "reverse": DUALPI2},
        ["bottleneck.queue.discipline = dualpi2", "reverse.queue.discipline = dualpi2"],
    ),
    "wireless-lan": ({"bottleneck": None, "wifi": WIFI}, ["wifi"]),
    "tcp": (
        {"flows": [{"count": 3}, {"transport": "tcp", "controller": "cubic"}]},
        ["flows.1.transport = tcp"],
    ),
    "fragmentation": (
        {
            "access": {"rate_mbps": 100, "delay_ms": 1, "mtu_bytes": 1400},
            "flows": [{}],
            "short_flows": [],
        },
        ["flows.0.access.mtu_bytes"],
    ),
}
"""By capability: what needs it, and the fields that the errors then name."""
OPTIONS = {"packet-capture": ("pcap_prefix", "x"), "flow-monitor": ("flow_monitor_path", "x.xml")}


@pytest.mark.parametrize("capability", _core.capabilities(), ids=lambda entry: entry.name)
def test_each_capability_is_refused_by_the_engine_that_lacks_it(
    capability: _core.Capability,
) -> None:
    lacking, having = ("native", "ns3") if capability.ns3 else ("ns3", "native")
    assert capability.native != capability.ns3
    if capability.name in OPTIONS:
        name, value = OPTIONS[capability.name]
        scenario = Scenario.model_validate(NETWORK)
        with pytest.raises(ScenarioError, match=f"cannot do {name}; use the engine ns3"):
            Simulation(scenario, lacking, **{name: value})  # type: ignore[arg-type]
        core = network(scenario)
        setattr(core, name, value)
        fields = [name]
    else:
        changes, fields = NEEDS[capability.name]
        scenario = Scenario.model_validate({**NETWORK, **changes})
        scenario.check_engine(having)  # type: ignore[arg-type]
        with pytest.raises(ScenarioError) as error:
            scenario.check_engine(lacking)  # type: ignore[arg-type]
        assert str(error.value) == (
            f"mine: the engine {lacking} cannot do {', '.join(fields)}; use the engine {having}"
        )
        core = network(scenario)
    assert _core.lacking(core, _core.Engine[lacking]) == fields
    if lacking == "native":
        with pytest.raises(ValueError, match=f"{fields[0]}: .* runs on the ns3 engine only"):
            _core.NativeSimulation(core, 0)
