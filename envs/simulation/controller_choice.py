"""Which controller each flow of a scenario has."""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence
from functools import cache

from quicgym.controllers import Controller, ControllerInfo, describe, find, is_place, names
from quicgym.envs.scenarios.conversion import parameters_of
from quicgym.envs.scenarios.fields import ScenarioError
from quicgym.envs.scenarios.flows import TCP_CONTROLLERS, Flow
from quicgym.envs.scenarios.model import Scenario
from quicgym.envs.scenarios.short_flows import ShortFlows
from quicgym.yaml_files import closest

ControllerChoice = str | type[Controller]
"""A controller's name, or a class of a user's."""


class IdleEcnWarning(UserWarning):
    """Something of Explicit Congestion Notification (ECN) that changes nothing in a scenario."""


def resolve_controllers(
    scenario: Scenario, controllers: ControllerChoice | Sequence[ControllerChoice] | None
) -> tuple[ControllerInfo, ...]:
    """Returns the controller of every single flow, and then of every entry of short flows.

    `controllers` is one for all flows that name none, or a list of one for each of them.
    ScenarioError where one is unknown or cannot be loaded, or where their number is wrong.
    """
    flows = _connections(scenario)
    open_flows = [name for name, flow in flows.items() if flow.controller is None]
    if controllers is None:
        controllers = []
    elif isinstance(controllers, str | type):
        controllers = [controllers] * len(open_flows)
    elif not isinstance(controllers, Sequence):
        raise ScenarioError(
            f"controllers = {controllers!r}: give a name, a subclass of quicgym.Controller, or a "
            "list of these; one in C++ goes by the name of its entry point"
        )
    if len(controllers) != len(open_flows):
        raise ScenarioError(
            f"{scenario.name}: {len(open_flows)} of its flows name no controller "
            f"({', '.join(open_flows[:10])}{', ...' if len(open_flows) > 10 else ''}), "
            f"and {len(controllers)} are given; "
            "give one for all of them, or a list of one for each"
        )
    given = iter(controllers)
    return tuple(
        _tcp_controller(flow.controller or next(given))
        if isinstance(flow, Flow) and flow.transport == "tcp"
        else _controller_of(scenario, name, flow)
        if flow.controller is not None
        else find_controller(next(given))
        for name, flow in flows.items()
    )


def _controller_of(scenario: Scenario, name: str, flow: Flow | ShortFlows) -> ControllerInfo:
    assert flow.controller is not None
    info = find_controller(flow.controller)
    if is_place(flow.controller):  # of which reading the scenario has checked nothing
        try:
            info.complete({key: value for key, value in flow.parameters.items()})
        except ValueError as error:
            raise ScenarioError(f"{scenario.name}: flow {name}: {error}") from None
    return info


def _tcp_controller(controller: ControllerChoice) -> ControllerInfo:
    if controller not in TCP_CONTROLLERS:
        known = closest(str(controller), TCP_CONTROLLERS)
        raise ScenarioError(f"unknown controller of ns-3's TCP {controller!r}; {known}")
    return ControllerInfo(str(controller), "", "ns-3", ())


def warn_of_idle_ecn(scenario: Scenario, controllers: Sequence[ControllerInfo]) -> None:
    """Warns of senders whose path has none of the marks that they ask for, and of idle marking.

    `controllers` are those of `resolve_controllers`.
    """
    connections = _connections(scenario)
    over: dict[str, bool] = {}
    unmarked: dict[str, ControllerInfo] = {}
    for (name, flow), info in zip(connections.items(), controllers, strict=True):
        path = scenario.path_of(flow)
        asks = _asks_for_l4s(scenario, flow, info)
        if asks and not any(link.queue.marks for link in path.values()):
            unmarked[name] = info
        for field in path:
            over[field] = over.get(field, False) or flow.ecn or asks
    for name, info in unmarked.items():
        path = scenario.path_of(connections[name])
        remedy = f"set {next(iter(path))}.queue.ecn_marking" if path else "take another controller"
        warnings.warn(
            f"{scenario.name}: {name} has the controller {info.name}, which asks for marks, and no "
            f"queue on its path marks, so it responds to losses alone; {remedy}",
            IdleEcnWarning,
            stacklevel=3,
        )
    for field, link in scenario.links.items():
        if link.queue.ecn_marking and not over.get(field, False):
            warnings.warn(
                f"{scenario.name}: {field}.queue.ecn_marking = True: changes nothing, because no "
                "flow over it sends packets that can be marked; set ecn of a flow, or leave it out",
                IdleEcnWarning,
                stacklevel=3,
            )


def lacks_marks(scenario: Scenario, info: ControllerInfo) -> bool:
    """Whether a controller would ask for marks on a path without them, in an open flow's place."""
    return any(
        flow.controller is None
        and _asks_for_l4s(scenario, flow, info)
        and not any(link.queue.marks for link in scenario.path_of(flow).values())
        for flow in _connections(scenario).values()
    )


def _asks_for_l4s(scenario: Scenario, flow: Flow | ShortFlows, info: ControllerInfo) -> bool:
    if isinstance(flow, Flow) and flow.transport == "tcp":
        return False
    return _wants_l4s(info, json.dumps(parameters_of(scenario, flow, info)))


@cache
def _wants_l4s(info: ControllerInfo, parameters: str) -> bool:
    return info.wants_l4s(json.loads(parameters))


def _connections(scenario: Scenario) -> dict[str, Flow | ShortFlows]:
    """Returns every single flow, and then every entry of short flows, by name."""
    return {**dict(scenario.single_flows()), **dict(scenario.named_short_flows())}


def find_controller(controller: ControllerChoice) -> ControllerInfo:
    """Returns what describes a controller, given by name or class; ScenarioError: there is none."""
    try:
        return find(controller) if isinstance(controller, str) else describe(controller)
    except KeyError:
        known = closest(str(controller), names())
        raise ScenarioError(f"unknown controller {controller!r}; {known}") from None
    except (ImportError, TypeError, ValueError) as error:
        raise ScenarioError(str(error)) from error
