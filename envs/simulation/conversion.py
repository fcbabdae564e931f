"""From the scenario models to the plain structures that both engines read."""

from __future__ import annotations

from collections.abc import Sequence

from quicgym import _core
from quicgym.controllers import Controller, ControllerInfo, describe, find, names
from quicgym.envs.scenarios.applications import Application, Bursts, ConstantRate, OnOff, Transfer
from quicgym.envs.scenarios.fields import ScenarioError
from quicgym.envs.scenarios.flows import TCP_CONTROLLERS, Flow
from quicgym.envs.scenarios.links import BernoulliLoss, GilbertElliottLoss, Link
from quicgym.envs.scenarios.model import Scenario
from quicgym.envs.scenarios.traces import read_mahimahi
from quicgym.envs.scenarios.wifi import Wifi
from quicgym.yaml_files import closest

ControllerChoice = str | type[Controller]
"""A controller's name, or a class of a user's."""


def nanoseconds(seconds: float) -> int:
    """Returns a time in s as whole ns."""
    return round(seconds * 1e9)


def _bits_per_second(mbps: float) -> int:
    return round(mbps * 1e6)


def to_core(scenario: Scenario, controllers: Sequence[ControllerInfo]) -> _core.Scenario:
    """Fills the C++ structures.

    Args:
        scenario: Checked by its model.
        controllers: One per single flow, as `resolve_controllers` returns them.
    """
    core = _core.Scenario()
    for field, link in scenario.links.items():
        setattr(core, field, _link(link))
    if scenario.wifi is not None:
        core.wifi = _wifi(scenario.wifi)
    core.flows = [
        _flow(scenario, name, flow, controller)
        for (name, flow), controller in zip(scenario.single_flows(), controllers, strict=True)
    ]
    return core


def resolve_controllers(
    scenario: Scenario, controllers: ControllerChoice | Sequence[ControllerChoice] | None
) -> tuple[ControllerInfo, ...]:
    """Returns the controller of every single flow.

    Args:
        scenario: Flows that name their own controller keep it.
        controllers: A name or class for all the other flows, or a list of one for each of them.

    Raises:
        ScenarioError: Unknown name, a controller that cannot be loaded, a wrong number of them, or
            a flow without a controller.
    """
    flows = list(scenario.single_flows())
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
            f"({', '.join(open_flows)}), and {len(controllers)} are given; "
            "give one for all of them, or a list of one for each"
        )
    given = iter(controllers)
    return tuple(
        _tcp_controller(flow.controller or next(given))
        if flow.transport == "tcp"
        else find_controller(flow.controller or next(given))
        for _, flow in flows
    )


def _tcp_controller(controller: ControllerChoice) -> ControllerInfo:
    if controller not in TCP_CONTROLLERS:
        known = closest(str(controller), TCP_CONTROLLERS)
        raise ScenarioError(f"unknown controller of ns-3's TCP {controller!r}; {known}")
    return ControllerInfo(str(controller), "", "ns-3", ())


def find_controller(controller: ControllerChoice) -> ControllerInfo:
    """Returns what describes a controller that is given by name or class.

    Raises:
        ScenarioError: There is none of this name, or it cannot be loaded.
    """
    try:
        return find(controller) if isinstance(controller, str) else describe(controller)
    except KeyError:
        known = closest(str(controller), names())
        raise ScenarioError(f"unknown controller {controller!r}; {known}") from None
    except (ImportError, TypeError, ValueError) as error:
        raise ScenarioError(str(error)) from error


def _link(link: Link) -> _core.Link:
    core = _core.Link()
    core.delay = nanoseconds(link.delay_ms / 1e3)
    core.queue_limit = link.queue.limit
    core.queue_unit = getattr(_core.QueueUnit, link.queue.unit)
    core.queue_discipline = link.queue.discipline
    core.ecn_marking = link.queue.ecn_marking
    if link.rate_mbps is not None:
        core.rate_bits_per_second = _bits_per_second(link.rate_mbps)
    if link.trace is not None:
        core.delivery_opportunities_ms = read_mahimahi(link.trace)
    steps = []
    for step in link.rate_schedule:
        core_step = _core.RateStep()
        core_step.at = nanoseconds(step.at_s)
        core_step.rate_bits_per_second = _bits_per_second(step.rate_mbps)
        steps.append(core_step)
    core.rate_schedule = steps
    core.loss = _loss(link.loss)
    return core


def _wifi(wifi: Wifi) -> _core.Wifi:
    core = _core.Wifi()
    core.channel_width_mhz = wifi.channel_width_mhz
    core.mcs = wifi.mcs
    core.short_guard_interval = wifi.short_guard_interval
    core.max_ampdu_bytes = wifi.max_ampdu_bytes
    core.distance_metres = wifi.distance_m
    core.path_loss_exponent = wifi.path_loss_exponent
    core.queue_packets = wifi.queue.limit_packets
    core.queue_max_delay = nanoseconds(wifi.queue.max_delay_ms / 1e3)
    wired = _core.Link()
    wired.rate_bits_per_second = _bits_per_second(wifi.wired.rate_mbps)
    wired.delay = nanoseconds(wifi.wired.delay_ms / 1e3)
    wired.queue_limit = wifi.wired.queue_packets
    core.wired = wired
    return core


def _loss(loss: BernoulliLoss | GilbertElliottLoss | None) -> _core.LossModel:
    core = _core.LossModel()
    if isinstance(loss, BernoulliLoss):
        core.kind = _core.LossKind.bernoulli
        core.probability = loss.probability
    elif isinstance(loss, GilbertElliottLoss):
        core.kind = _core.LossKind.gilbert_elliott
        core.good_to_bad = loss.good_to_bad
        core.bad_to_good = loss.bad_to_good
        core.loss_in_good = loss.loss_in_good
        core.loss_in_bad = loss.loss_in_bad
    return core


def _flow(scenario: Scenario, name: str, flow: Flow, controller: ControllerInfo) -> _core.Flow:
    core = _core.Flow()
    core.name = name
    core.transport = getattr(_core.Transport, flow.transport)
    core.controller = controller.name
    if controller.python_class is not None:
        core.set_python_controller(controller)
    elif controller.plugin is not None:
        core.set_plugin_controller(controller.plugin)
    parameters = flow.parameters
    if flow.controller is None and flow.transport == "quic":
        parameters = scenario.controller_parameters.get(controller.name, {})
    core.parameters = {
        key: list(value) if isinstance(value, tuple) else [value]
        for key, value in parameters.items()
    }
    core.application = _application(flow.application)
    core.start = nanoseconds(flow.start_s)
    core.start_jitter = nanoseconds(flow.start_jitter_ms / 1e3)
    if flow.stop_s is not None:
        core.stop = nanoseconds(flow.stop_s)
    access = flow.access or scenario.access
    core.access_rate_bits_per_second = _bits_per_second(access.rate_mbps)
    core.access_delay = nanoseconds(access.delay_ms / 1e3)
    core.extra_delay = nanoseconds(flow.extra_delay_ms / 1e3)
    core.max_datagram_bytes = flow.max_datagram_bytes or scenario.max_datagram_bytes
    core.flow_control_window_bytes = flow.flow_control_window_bytes
    core.send_buffer_bytes = flow.send_buffer_bytes
    core.ecn = flow.ecn
    return core


def _application(application: Application) -> _core.Application:
    core = _core.Application()
    core.kind = getattr(_core.ApplicationKind, application.kind.replace("-", "_"))
    if isinstance(application, Transfer):
        core.size_bytes = application.size_bytes
    if isinstance(application, ConstantRate | Bursts | OnOff):
        core.rate_bits_per_second = _bits_per_second(application.rate_mbps)
    if isinstance(application, Bursts):
        core.burst_rate_bits_per_second = _bits_per_second(application.burst_rate_mbps)
        core.burst_duration = nanoseconds(application.burst_duration_s)
        core.burst_period = nanoseconds(application.burst_period_s)
        core.burst_count = application.burst_count
    if isinstance(application, OnOff):
        core.on_duration = nanoseconds(application.on_s)
        core.off_duration = nanoseconds(application.off_s)
    return core
