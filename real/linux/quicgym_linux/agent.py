"""Controllers and policies of the C interface, which drive kernel TCP from a thread."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import quicgym
from quicgym import controllers
from quicgym.agents.policies.by_name import policy_description, unknown_controller
from quicgym.controllers import ControllerInfo
from quicgym.envs.simulation.controller_choice import find_controller
from quicgym.errors import UserError
from quicgym.real.hosted_controller import specification_of
from quicgym.real.stacks import Steering
from quicgym_linux._loader import Agent, Program


def _find(choice: str, name: str) -> ControllerInfo:
    if name not in controllers.names() and not controllers.is_place(choice):
        raise unknown_controller(choice)
    info = find_controller(choice)
    if info.python_class is not None:
        warnings.warn(
            f"{choice}: is in Python, whose time the connections wait for each window; write the "
            "controller in C++ where the link is fast",
            stacklevel=2,
        )
    return info


class Steered:
    """The agent of a program that is loaded, as a part of what Loaded closes."""

    def __init__(self, program: Program, choice: str, parameters: Mapping[str, Any]) -> None:
        """Starts the agent.

        Args:
            program: The program `steered`.
            choice: Name of a controller, also with parameters, or of a policy, or a path.
            parameters: Values in place of the controller's own.

        Raises:
            UserError: There is no such controller or policy.
        """
        self._choice = choice
        library = Path(quicgym.get_library_dir()) / "libquicgym-controller.so"
        name, _ = controllers.split_parameters(choice)
        policy = policy_description(choice)
        specification, values = 0, {}
        if policy is None:
            info = _find(choice, name)
            values = info.numbers({**info.given, **parameters})
            if not info.is_own:
                specification = specification_of(Steering(name, "user", values))
        try:
            self._agent = Agent(
                program,
                str(library),
                name,
                specification,
                values,
                "" if policy is None else str(policy),
            )
        except ValueError as error:
            raise UserError(f"controller {choice!r}: {error}") from error

    def close(self) -> None:
        """Ends the agent; Reno takes over where connections go on.

        Raises:
            UserError: The agent had stopped before, so that connections had Reno.
        """
        self._agent.close()
        if self._agent.problem:
            raise UserError(
                f"the agent of controller {self._choice!r} stopped, and its connections had Reno "
                f"from then on: {self._agent.problem}"
            )
