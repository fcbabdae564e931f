"""`quicgym real`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from quicgym.cli import options

EXAMPLES = (
    "quicgym real --scenario ebcc-single --controller bbr",
    "quicgym real --scenario ebcc-single --controller bbr window --seeds 5 --compare",
    "quicgym real --scenario my-network.yaml --controller cubic --compare --out results/real",
    "quicgym real --scenario ebcc-single --controller bbr --stack noq --compare --qlog results",
)


def real(
    scenario: Annotated[
        list[str],
        typer.Option(
            metavar="NAME",
            autocompletion=options.complete_scenarios,
            help="A name from `quicgym scenarios` or a YAML's path; one or more.",
        ),
    ],
    controller: Annotated[
        list[str],
        typer.Option(
            metavar="NAME",
            autocompletion=options.complete_policies,
            help="A controller, a learned policy, or one of the stack's own; one or more.",
        ),
    ],
    stack: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="A QUIC stack that is installed. Default: the first of them by name.",
        ),
    ] = None,
    clock: Annotated[
        str | None,
        typer.Option(metavar="virtual|real", help="Default: virtual, where the stack has it."),
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Runs the seeds 0 to N-1.", metavar="N")] = 1,
    from_s: options.From = None,
    until_s: options.Until = None,
    compare: Annotated[
        bool,
        typer.Option(
            "--compare",
            help="Also run the simulator and the virtual clock, and print the gaps.",
        ),
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Where rows are stored, for `quicgym compare`."),
    ] = None,
    qlog: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Where a folder of qlog files of each run goes, the simulator's too.",
        ),
    ] = None,
) -> None:
    """Run a scenario with a real QUIC stack, in virtual time or over UDP sockets.

    The network is the scenario's. A learned policy decides on the sender's own clock. Real time
    needs Linux. The audit says whether a run in real time is valid; an invalid one is repeated,
    three runs at most. docs/how-to/real.md explains the gaps.
    """
    from quicgym.envs.simulation.window import Window
    from quicgym.real.comparison import run_real

    status = run_real(
        scenarios=scenario,
        controllers=controller,
        stack=stack,
        clock=clock,
        seeds=seeds,
        window=Window(from_s, until_s),
        compare=compare,
        directory=out,
        qlog=qlog,
        command=options.command_line(),
    )
    raise typer.Exit(status)
