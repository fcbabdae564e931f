"""quicgym's controllers in the kernel's TCP: what `quicgym link --controller` asks for."""

from __future__ import annotations

import errno
import re
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from quicgym.agents.policies.by_name import policy_description
from quicgym.errors import UserError
from quicgym_linux import holder
from quicgym_linux._loader import Program
from quicgym_linux.agent import Steered
from quicgym_linux.checks import check_system, explain
from quicgym_linux.programs import PROGRAMS, constants_of, read_object
from quicgym_linux.window_policy import for_kernel

AVAILABLE = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
LONGEST_NAME = 15
"""TCP_CA_NAME_MAX without the zero at the end."""
MOST_NUMBERS = 1000
IN_KERNEL = "kernel:"
"""Before the name of a policy: the network is computed in the kernel, in integers."""
BY_AGENT = "agent:"
"""Before the name of a controller that is a program by itself: the agent steers all the same."""


class Closable(Protocol):
    """A resource that a controller needs while it is loaded, such as an agent."""

    def close(self) -> None:
        """Ends it."""


class Loaded:
    """A controller that is registered with the kernel until `close`, or the end of the process.

    Attributes:
        controller: Name that was asked for.
        kernel_name: Name for TCP_CONGESTION, at most 15 characters.
        description: The program that runs, and its place.
    """

    def __init__(
        self, controller: str, kernel_name: str, description: str, parts: Sequence[Closable] = ()
    ) -> None:
        """Takes what belongs to the controller; `parts` are closed in this order."""
        self.controller = controller
        self.kernel_name = kernel_name
        self.description = description
        self._parts = list(parts)

    def close(self) -> None:
        """Ends the registration. Connections that run keep the controller to their end."""
        parts, self._parts = self._parts, []
        with ExitStack() as stack:
            for part in reversed(parts):
                stack.callback(part.close)

    def __enter__(self) -> Self:
        """Returns the controller itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Closes the controller."""
        self.close()


def register(
    controller: str,
    object_name: str,
    constants: Mapping[str, Sequence[int]],
    contents: Mapping[str, bytes] | None = None,
) -> tuple[Program, str]:
    """Loads a program under a free name; returns the program and the name.

    Args:
        controller: Name of the controller, for the program's name and for errors.
        object_name: Name of the compiled program.
        constants: Values of the program's constants.
        contents: Bytes for the program's maps.

    Raises:
        UserError: The kernel refuses the program.
    """
    check_system()
    content = read_object(object_name)
    for name in free_names(controller):
        try:
            return Program(content, name, constants, contents or {}), name
        except OSError as error:
            if error.errno != errno.EEXIST:
                raise explain(error, controller) from error
    raise UserError(f"{MOST_NUMBERS} controllers like {controller!r} are loaded; unload some")


def free_names(controller: str) -> list[str]:
    """Returns names of which no controller of the kernel has one, with ascending numbers.

    Args:
        controller: Name of the controller; names of the kernel are global, and at most 15
            characters long.
    """
    # The kernel takes letters, digits, "_" and ".".
    stem = re.sub(r"[^A-Za-z0-9_.]", "_", controller.replace("+", "_plus"))
    taken = AVAILABLE.read_text(encoding="utf-8").split()
    names = (f"qg{number}_{stem}"[:LONGEST_NAME] for number in range(1, MOST_NUMBERS + 1))
    return [name for name in names if name not in taken]


def _load_policy(controller: str) -> Loaded:
    """Loads a policy that is wholly in the kernel."""
    name = controller.removeprefix(IN_KERNEL)
    path = policy_description(name)
    if path is None:
        raise UserError(
            f"{controller!r}: there is no policy {name!r}; give a published policy's name, or the "
            "path of a description (.json) or of a training's folder"
        )
    policy = for_kernel(path)
    program, kernel_name = register(
        policy.name, "window_policy", policy.constants, {"networks": policy.network}
    )
    description = (
        f"policy {policy.name}, wholly in the kernel; the verifier followed "
        f"{program.verified_instructions:,} instructions of a million"
    )
    return Loaded(controller, kernel_name, description, [program])


class LinuxKernel:
    """See quicgym.real.kernels.Kernel."""

    name = "linux"

    def controllers(self) -> dict[str, str]:
        """Returns the controllers that are programs by themselves, and descriptions."""
        return {name: program.description for name, program in PROGRAMS.items()}

    def load(self, controller: str, parameters: Mapping[str, float] | None = None) -> Loaded:
        """See quicgym.real.kernels.Kernel.load."""
        if controller.startswith(IN_KERNEL):
            return _load_policy(controller)
        name = controller.removeprefix(BY_AGENT)
        if name == controller and name in PROGRAMS:
            known = PROGRAMS[name]
            constants = constants_of(name, parameters or {})
            program, kernel_name = register(name, known.object, constants)
            return Loaded(controller, kernel_name, f"{known.description}, in the kernel", [program])
        program, kernel_name = register(Path(name).stem, "steered", {})
        try:
            agent = Steered(program, name, parameters or {})
        except UserError:
            program.close()
            raise
        description = "steered by the agent, a thread of this process"
        return Loaded(controller, kernel_name, description, [agent, program])

    def load_for_system(self, controller: str) -> str:
        """See quicgym.real.kernels.Kernel.load_for_system."""
        check_system()
        return holder.start(controller)

    def loaded(self) -> dict[str, str]:
        """See quicgym.real.kernels.Kernel.loaded."""
        return holder.held()

    def unload(self, kernel_name: str) -> None:
        """See quicgym.real.kernels.Kernel.unload."""
        holder.end(kernel_name)


KERNEL = LinuxKernel()
