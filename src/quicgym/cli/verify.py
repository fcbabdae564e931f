"""`quicgym verify`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from quicgym.cli import options

EXAMPLES = (
    "quicgym verify mine.zip",
    "quicgym verify mine.zip --all --jobs 4",
    "quicgym verify mine.zip --trust-code --seed 7",
)


def verify(
    archive: Annotated[
        Path, typer.Argument(metavar="ARCHIVE", help="What `quicgym submit` has written.")
    ],
    everything: Annotated[
        bool, typer.Option("--all", help="Run everything again, not a random tenth.")
    ] = False,
    seed: Annotated[
        int | None,
        typer.Option(
            min=0, metavar="N", help="Which runs are drawn. Default: others each time; printed."
        ),
    ] = None,
    jobs: options.Jobs = None,
    format: Annotated[
        options.DocumentFormat, typer.Option(help="What is printed on standard output.")
    ] = options.DocumentFormat.table,
    address: options.Address = None,
    trust_code: Annotated[
        bool,
        typer.Option(
            "--trust-code",
            help="Verify a Python file, a library or a .zip, which runs code in the archive.",
        ),
    ] = False,
) -> None:
    """Run a random tenth of a submission again, and compare every byte of the results.

    The exit status is 0 where all bytes are the same, and 1 where they are not.
    """
    from quicgym.benchmarks.submission.run import run_verify
    from quicgym.jobs import workers_of

    status = run_verify(
        archive,
        everything=everything,
        seed=seed,
        workers=workers_of(jobs, address),
        trust_code=trust_code,
        format=format.value,
    )
    raise typer.Exit(status)
