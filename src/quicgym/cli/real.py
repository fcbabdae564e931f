"""`quicgym real`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from quicgym.benchmarks import options

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
            help="Run these networks: names from `quicgym show scenarios` or paths of YAML files.",
        ),
    ],
    controller: Annotated[
        list[str],
        typer.Option(
            metavar="NAME",
            autocompletion=options.complete_policies,
            help="Use these controllers: quicgym's, your own (file.py:Class, library.so:name), "
            "learned policies, or the stack's own.",
        ),
    ],
    stack: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Use this QUIC stack. Default: the first by name of those that are installed.",
        ),
    ] = None,
    clock: Annotated[
        str | None,
        typer.Option(
            metavar="virtual|real",
            help="Run in virtual time or over UDP sockets in real time. Default: virtual, if the "
            "stack can.",
        ),
    ] = None,
    seeds: options.Seeds = 1,
    from_s: options.From = None,
    until_s: options.Until = None,
    compare: Annotated[
        bool,
        typer.Option(
            "--compare",
            help="Also run the simulator and the virtual clock, and print how much they differ.",
        ),
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Store the results in this folder, for `quicgym compare`."
        ),
    ] = None,
    qlog: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Write qlog files to DIR, with a folder for each run, also the simulator's.",
        ),
    ] = None,
) -> None:
    """Run a scenario with a real QUIC stack, in virtual time or over UDP sockets.

    The network is the scenario's, so you see how far a controller in the simulator agrees with the
    same controller in a real stack. A learned policy decides on the sender's own clock. Real time
    needs Linux. An audit says whether a run in real time is valid, and an invalid one is repeated
    up to two times. docs/how-to/real.md explains the differences.
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
