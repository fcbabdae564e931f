"""`quicgym conformance`."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from quicgym.cli.options import command_line

EXAMPLES = (
    "quicgym conformance bbr3",
    "quicgym conformance bbr3 --stack noq",
    "quicgym conformance bbr3 --controller my.py:MyBbr --case A.5 --case A.21",
)


class ConformanceFormat(StrEnum):
    """How verdicts are printed."""

    table = "table"
    json = "json"


def conformance(
    specification: Annotated[
        str, typer.Argument(metavar="SPECIFICATION", help="bbr3: the draft's 22 test cases.")
    ],
    controller: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="A controller, or one of the stack's own.  [default: that of SPECIFICATION; with "
            "--stack the stack's own, such as noq-bbr3]",
        ),
    ] = None,
    stack: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="A QUIC stack with a virtual clock: aioquic, noq."),
    ] = None,
    case: Annotated[
        list[str] | None,
        typer.Option(metavar="SECTION", help="A case, such as A.5; repeat it. Default: all."),
    ] = None,
    format: Annotated[
        ConformanceFormat, typer.Option(help="What is printed on standard output.")
    ] = ConformanceFormat.table,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Where conformance.json and the qlog files go.  [default: "
            "results/conformance/SPECIFICATION]",
        ),
    ] = None,
) -> None:
    """Run a specification's test cases with a controller or a real QUIC stack.

    A verdict for each case, and its qlog files. The verdicts come from what any stack reports:
    pacing rate, window, data in flight. The exit status is 1 where a case fails.
    docs/how-to/conformance.md has more.
    """
    from quicgym.benchmarks.conformance.run import run_conformance

    status = run_conformance(
        specification,
        controller,
        stack,
        out or Path("results/conformance") / specification,
        case or (),
        format.value,
        command_line(),
    )
    raise typer.Exit(status)
