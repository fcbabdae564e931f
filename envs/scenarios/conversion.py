"""From the scenario models to the plain structures of sim/scenario.hpp, which both engines read.

A field of a model goes to the member of the same name, without its unit:

| field | member | value |
|---|---|---|
| `…_mbps` | `…_bits_per_second` | whole bits per second |
| `…_s`, `…_ms` | `…` | whole nanoseconds |
| `…_m` | `…_metres` | as it is |
| any other | the same name | as it is; a part as its structure, several as a list |

The structure has the model's name, or its `core_type`. None leaves the member's default. Where a
field differs from the rule, its annotation says so: `Core("…")` names the member, and may convert
the value; `INLINE` puts the fields of a part into the structure around it; `Outside("…")` says who
else reads a field that is no member.

A new field is a line of a model, and in sim/scenario.hpp a member and its name in the structure's
QUICGYM_FIELDS. Nothing here changes. tests/envs/scenarios/test_conversion.py checks that each field
has its member, and each member its field.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from quicgym import _core
from quicgym.envs.scenarios.fields import INLINE, CheckedModel, Core, Outside
from quicgym.envs.scenarios.paths import flow_control_window_bytes
from quicgym.envs.scenarios.sizes import GivenSizes, size_points

if TYPE_CHECKING:
    from quicgym.controllers import ControllerInfo
    from quicgym.envs.scenarios.flows import Flow
    from quicgym.envs.scenarios.model import Scenario
    from quicgym.envs.scenarios.short_flows import ShortFlows


def nanoseconds(seconds: float) -> int:
    """Returns a time in s as whole ns."""
    return round(seconds * 1e9)


UNITS: dict[str, tuple[str, Callable[[float], float] | None]] = {
    "_mbps": ("_bits_per_second", lambda mbps: round(mbps * 1e6)),
    "_ms": ("", lambda milliseconds: nanoseconds(milliseconds / 1e3)),
    "_s": ("", nanoseconds),
    "_m": ("_metres", None),
}
"""End of the member's name and function to its value, by the end of a field's name."""


class Step(NamedTuple):
    """How one field goes to C++; without `convert` as the value's type says."""

    field: str
    member: str
    convert: Callable[[Any], Any] | None


@cache
def steps_of(model: type[CheckedModel]) -> tuple[tuple[Step, ...], tuple[str, ...]]:
    """Returns how the fields of a model go to C++, and the fields whose parts go there instead."""
    steps, inlined = [], []
    for name, field in model.model_fields.items():
        marks = [mark for mark in field.metadata if isinstance(mark, Core | Outside)]
        if INLINE in field.metadata:
            inlined.append(name)
        elif not marks:
            steps.append(_by_the_rule(name))
        elif isinstance(mark := marks[-1], Core):
            steps.append(Step(name, mark.member, mark.convert or _by_the_rule(name).convert))
    return tuple(steps), tuple(inlined)


def _by_the_rule(name: str) -> Step:
    for end, (member_end, convert) in UNITS.items():
        if name.endswith(end):
            return Step(name, name.removesuffix(end) + member_end, convert)
    return Step(name, name, None)


def structure(model: CheckedModel) -> Any:
    """Returns a part of a scenario as its C++ structure."""
    core = getattr(_core, type(model).core_type or type(model).__name__)()
    fill(core, model)
    return core


def core_points(sizes: GivenSizes) -> list[_core.SizePoint]:
    """Returns the points of a distribution of sizes as the engines read them."""
    return [structure(row) for row in size_points(sizes)]


def fill(core: Any, model: CheckedModel) -> None:
    """Sets the members that a part of a scenario has fields for."""
    steps, inlined = steps_of(type(model))
    for field, member, convert in steps:
        value = getattr(model, field)
        if value is None:
            continue
        if convert is not None:
            value = convert(value)
        elif isinstance(value, CheckedModel):
            value = structure(value)
        elif isinstance(value, tuple):
            value = [structure(part) for part in value]
        elif isinstance(value, str):
            default = getattr(core, member)
            if isinstance(default, enum.Enum):
                value = type(default)[value.replace("-", "_")]
        setattr(core, member, value)
    for name in inlined:
        if (part := getattr(model, name)) is not None:
            fill(core, part)


def to_core(scenario: Scenario, controllers: Sequence[ControllerInfo]) -> _core.Scenario:
    """Returns a scenario as the engines read it.

    Args:
        scenario: Scenario that its model has checked.
        controllers: Controllers from `resolve_controllers`: one per single flow, and then one per
            entry of short flows.
    """
    core = _links(scenario)
    window_bytes = flow_control_window_bytes(scenario)
    controller_of = iter(controllers)
    flows = []
    for name, flow in scenario.single_flows():
        single = _flow(scenario, flow, window_bytes)
        single.name = name
        _give_controller(single, scenario, flow, next(controller_of))
        flows.append(single)
    core.flows = flows
    short_flows = []
    for name, entry in scenario.named_short_flows():
        arrivals = _short_flows(scenario, entry, window_bytes)
        connection = arrivals.flow
        connection.name = name
        _give_controller(connection, scenario, entry, next(controller_of))
        arrivals.flow = connection
        short_flows.append(arrivals)
    core.short_flows = short_flows
    return core


def network(scenario: Scenario) -> _core.Scenario:
    """Returns a scenario with its flows as they are listed, without `count` and controllers."""
    core = _links(scenario)
    window_bytes = flow_control_window_bytes(scenario)
    core.flows = [_flow(scenario, flow, window_bytes) for flow in scenario.flows]
    core.short_flows = [
        _short_flows(scenario, entry, window_bytes) for entry in scenario.short_flows
    ]
    return core


def with_every_flow(scenario: Scenario) -> _core.Scenario:
    """Returns a scenario with its single flows, `count` written out, without controllers."""
    core = _links(scenario)
    window_bytes = flow_control_window_bytes(scenario)
    core.flows = [_flow(scenario, flow, window_bytes) for _, flow in scenario.single_flows()]
    return core


def _links(scenario: Scenario) -> _core.Scenario:
    core: _core.Scenario = structure(scenario)
    links = [structure(link) for link in scenario.links.values()]
    if links:
        core.bottleneck, *core.chain = links[::2]
        core.reverse, *core.reverse_chain = links[1::2]
    return core


def _short_flows(scenario: Scenario, entry: ShortFlows, window_bytes: int) -> _core.ShortFlows:
    core = _core.ShortFlows()
    core.flow = _flow(scenario, entry, window_bytes)
    core.arrivals_per_second = entry.arrivals_per_second
    core.sizes = core_points(entry.sizes)
    return core


def _flow(scenario: Scenario, flow: Flow | ShortFlows, window_bytes: int) -> _core.Flow:
    core = _core.Flow()
    core.flow_control_window_bytes = window_bytes
    core.max_datagram_bytes = scenario.max_datagram_bytes
    fill(core, scenario.access)
    fill(core, flow)
    return core


def _give_controller(
    core: _core.Flow, scenario: Scenario, flow: Flow | ShortFlows, controller: ControllerInfo
) -> None:
    core.controller = controller.own_name
    if controller.python_class is not None:
        core.set_python_controller(controller)
    elif controller.plugin is not None:
        core.set_plugin_controller(controller.plugin)
    core.parameters = controller.numbers(parameters_of(scenario, flow, controller))


def parameters_of(
    scenario: Scenario, flow: Flow | ShortFlows, controller: ControllerInfo
) -> dict[str, Any]:
    """Returns the parameters that a flow's controller has in place of its defaults."""
    if flow.controller is None and getattr(flow, "transport", "quic") == "quic":
        return {**scenario.controller_parameters.get(controller.own_name, {}), **controller.given}
    return {**controller.given, **flow.parameters}
