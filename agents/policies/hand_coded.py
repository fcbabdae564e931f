"""Hand-coded policies: what learned ones are measured against, in the same environments.

Controllers that are no point of the action space run by `options`, which the episode is reset with;
their actions are ignored.

    policy = baseline("cubic")
    observation, info = environment.reset(seed=1, options=policy.options)
    environment.step(policy(observation))
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from gymnasium.spaces import Space

from quicgym import controllers
from quicgym.agents.policies.policy import ConstantPolicy
from quicgym.controllers import choices
from quicgym.envs import actions
from quicgym.envs.actions import preset_action
from quicgym.envs.decisions import Decisions
from quicgym.envs.registration import environment_name
from quicgym.envs.scenarios.fields import ScenarioError
from quicgym.envs.simulation.controller_choice import ControllerChoice, find_controller

BASELINES = controllers.baselines()
"""The hand-coded controllers: all of quicgym's but those that something else steers."""
STEERED = tuple(sorted(entry.name for entry in controllers.catalogue() if entry.steered))


def preset_policy(controller: str, **parameters: Any) -> ConstantPolicy:
    """Returns a controller of the BBR family as a policy of Tuning; see `preset_action`."""
    return ConstantPolicy(controller, preset_action(controller, **parameters))


def controller_policy(
    controller: ControllerChoice, space: Space, **parameters: Any
) -> ConstantPolicy:
    """Returns any controller as a policy of any environment, by the options of reset.

    What the actions of `space` are does not matter. `parameters` replace the controller's own.
    """
    name = find_controller(controller).name
    if parameters:
        name += ":" + ",".join(f"{key}={_text(value)}" for key, value in parameters.items())
    rest = np.zeros(space.shape or (), dtype=space.dtype)
    options: dict[str, Any] = {"controller": controller}
    if parameters:
        options["parameters"] = parameters
    return ConstantPolicy(name, rest, options)


def baseline(
    controller: ControllerChoice, environment: str = "tuning", **parameters: Any
) -> ConstantPolicy:
    """Returns any controller as a policy, such as "ibcca" or "cubic+".

    `quicgym evaluate` and `quicgym compare` know the policy by its `name`. In an agent's loop,
    `reset` takes its `options`, and the actions that it returns are ignored.

    Args:
        controller: A name from `quicgym show controllers`, or a subclass of `quicgym.Controller`.
        environment: The name or id of the environment whose agent's flow the controller runs.
        **parameters: Parameters that replace the controller's own, such as theta=0.8.

    Raises:
        ScenarioError: There is no such controller.
        ValueError: There is no such environment or parameter.
    """
    if isinstance(controller, str):
        find_controller(controller).complete(parameters)
    policy = controller_policy(controller, actions.action_space(environment), **parameters)
    return replace(policy, decisions=Decisions(environment_name(environment)))


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return "/".join(f"{number:g}" for number in value) if np.ndim(value) else f"{value:g}"


def parse_parameters(text: str) -> dict[str, Any]:
    """Returns what `choices.parse_parameters` does; ScenarioError where the text is wrong."""
    try:
        return choices.parse_parameters(text)
    except ValueError as error:
        raise ScenarioError(str(error)) from None
