"""Controllers in the TCP of a kernel: what `quicgym link --controller` loads."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from types import TracebackType
from typing import Protocol, Self

from quicgym import plugins
from quicgym.errors import UserError


class LoadedController(Protocol):
    """A controller that the kernel has, as a context manager that ends the registration.

    Attributes:
        controller: Name that was asked for.
        kernel_name: Name by which sockets select the controller with TCP_CONGESTION.
        description: The program that runs, and its place.
    """

    controller: str
    kernel_name: str
    description: str

    def __enter__(self) -> Self:
        """Returns the controller itself."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Ends the registration; connections keep the controller to their end."""


class Kernel(Protocol):
    """A kernel that takes controllers for its TCP."""

    def controllers(self) -> dict[str, str]:
        """Returns the names of the controllers that run in the kernel alone, and what they are."""

    def load(
        self, controller: str, parameters: Mapping[str, float] | None = None
    ) -> LoadedController:
        """Registers a controller. Connections use it only where they select it.

        Args:
            controller: Name of a controller.
            parameters: Values in place of the controller's own, by the names of `quicgym
                controllers`.

        Raises:
            UserError: There is none of this name, or the system does not take it.
        """

    def load_for_system(self, controller: str) -> str:
        """Registers a controller until `unload`; returns its name for TCP_CONGESTION.

        Args:
            controller: Name of a controller.

        Raises:
            UserError: There is none of this name, or the system does not take it.
        """

    def loaded(self) -> dict[str, str]:
        """Returns what load_for_system has registered: name for TCP_CONGESTION -> controller."""

    def unload(self, kernel_name: str) -> None:
        """Ends a registration of load_for_system.

        Args:
            kernel_name: Name for TCP_CONGESTION, or that of the controller.

        Raises:
            UserError: Nothing of this name is registered so.
        """


def find_kernel() -> Kernel:
    """Returns the kernel of this system, which a package registers under the system's name.

    Raises:
        UserError: None is installed, or it cannot be loaded.
    """
    name = platform.system().lower()
    if name not in plugins.installed("kernel"):
        raise UserError(
            "controllers in the kernel's TCP are a package of their own, which is not installed; "
            f"run `pip install . ./real/{name}` in a checkout of quicgym"
        )
    kernel: Kernel = plugins.load("kernel", name)
    return kernel
