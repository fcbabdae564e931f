"""`quicgym linux`."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from quicgym.errors import UserError

EXAMPLES = (
    "quicgym linux list",
    "sudo quicgym linux load cubic+",
    "sudo quicgym linux unload cubic+",
)


def linux(
    action: Annotated[
        Literal["list", "load", "unload"],
        typer.Argument(
            help="List the controllers, or load or unload one of them.", show_default=False
        ),
    ],
    controller: Annotated[
        str | None,
        typer.Argument(
            metavar="CONTROLLER",
            help="The controller's name; `unload` also takes the kernel's name of it.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Load controllers into the TCP of this machine's kernel.

    `load` prints the name by which programs select the controller with TCP_CONGESTION, for example
    `iperf3 --congestion NAME`. The system's default does not change, and the controller stays until
    `unload` or until the machine restarts. You need Linux 6.10 or newer, and root.
    """
    from quicgym.real.kernels import find_kernel

    if (controller is None) != (action == "list"):
        what = "takes no CONTROLLER" if action == "list" else "needs a CONTROLLER"
        raise UserError(f"`quicgym linux {action}` {what}; see `quicgym linux --help`")
    kernel = find_kernel()
    if controller is None:
        controllers = kernel.controllers()
        width = max(map(len, controllers))
        for name, description in controllers.items():
            print(f"{name:{width}}  {description}")
        for kernel_name, name in kernel.loaded().items():
            print(f"loaded: {name} as {kernel_name}")
    elif action == "load":
        print(kernel.load_for_system(controller))
    else:
        kernel.unload(controller)
