"""Which controller each flow of a scenario has."""

from __future__ import annotations

from collections.abc import Sequence

from quicgym.controllers import Controller, ControllerInfo, describe, find, is_place, names
from quicgym.envs.scenarios.fields import ScenarioError
from quicgym.envs.scenarios.flows import TCP_CONTROLLERS, Flow
from quicgym.envs.scenarios.model import Scenario
from quicgym.envs.scenarios.short_flows import ShortFlows
from quicgym.yaml_files import closest

ControllerChoice = str | type[Controller]
"""A controller's name, or a class of a user's."""


def resolve_controllers(
    scenario: Scenario, controllers: ControllerChoice | Sequence[ControllerChoice] | None
) -> tuple[ControllerInfo, ...]:
    """Returns the controller of every single flow, and then of every entry of short flows.

    `controllers` is one for all flows that name none, or a list of one for each of them.
    ScenarioError where one is unknown or cannot be loaded, or where their number is wrong.
    """
    flows: list[tuple[str, Flow | ShortFlows]] = [
        *scenario.single_flows(),
        *scenario.named_short_flows(),
    ]
    open_flows = [name for name, flow in flows if flow.controller is None]
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
        for name, flow in flows
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


def find_controller(controller: ControllerChoice) -> ControllerInfo:
    """Returns what describes a controller, given by name or class; ScenarioError: there is none."""
    try:
        return find(controller) if isinstance(controller, str) else describe(controller)
    except KeyError:
        known = closest(str(controller), names())
        raise ScenarioError(f"unknown controller {controller!r}; {known}") from None
    except (ImportError, TypeError, ValueError) as error:
        raise ScenarioError(str(error)) from error
