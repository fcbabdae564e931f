"""Controllers in the TCP of a kernel: what `quicgym link --controller` loads."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import entry_points
from types import TracebackType
from typing import Protocol, Self

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
    """Returns the kernel for which a distribution is installed.

    Raises:
        UserError: None is installed, or it cannot be loaded.
    """
    for entry in entry_points(group="quicgym.kernels"):
        try:
            kernel: Kernel = entry.load()
        except ImportError as error:
            raise UserError(
                f"{entry.value} cannot be loaded: {error}; install quicgym-linux again"
            ) from error
        return kernel
    raise UserError(
        "controllers in the kernel's TCP need quicgym-linux; run `pip install quicgym-linux`, or "
        "in a checkout `pip install ./real/linux`, which needs clang and libbpf"
    )
