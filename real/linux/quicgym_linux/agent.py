"""Controllers and policies of the C interface, which drive kernel TCP from a thread."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import quicgym
from quicgym import controllers
from quicgym.agents.policies.by_name import policy_description, pretrained_names
from quicgym.agents.policies.hand_coded import parse_parameters
from quicgym.errors import UserError
from quicgym.yaml_files import closest
from quicgym_linux._loader import Agent, Program


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
        name, text = controllers.split_parameters(choice)
        policy = policy_description(choice)
        if policy is None and name not in controllers.names():
            known = [*controllers.names(), *pretrained_names()]
            raise UserError(
                f"unknown controller {choice!r}; {closest(choice, known)}; or give the path of a "
                "learned policy's description (.json)"
            )
        values = (
            {} if policy is not None else {**(parse_parameters(text) if text else {}), **parameters}
        )
        lists = {
            key: [float(one) for one in (value if isinstance(value, list) else [value])]
            for key, value in values.items()
        }
        try:
            self._agent = Agent(
                program, str(library), name, lists, "" if policy is None else str(policy)
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
