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
        typer.Argument(help="What to do.", show_default=False),
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

    `load` prints the name by which programs select the controller with TCP_CONGESTION, such as
    `iperf3 --congestion NAME`. Nothing is made the system's default. The controller stays until
    `unload` or the next start of the machine. Needs quicgym-linux, Linux 6.10 or newer, and root.
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
