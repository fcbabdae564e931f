"""`quicgym submit`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from quicgym.cli import options

EXAMPLES = (
    "quicgym submit runs/ppo --name 'My PPO' --note 'PPO, trained on worlds'",
    "quicgym submit agent.py:policy --name mine --include weights.pt --jobs 4 --resume",
    "quicgym submit agent.onnx --name mine",
    "quicgym submit build/mine.so:mine --name Mine --suite heldout --league ccbench",
)


def submit(
    policy: Annotated[
        str,
        typer.Argument(
            metavar="POLICY",
            help="A policy's JSON, a training run's folder, an ONNX file, an object of a Python "
            "file (agent.py:policy; runs the file), a controller in C++ (library.so:name), an "
            "agent that `quicgym import-agent` wrote, a model of Stable-Baselines3 (.zip), or a "
            "name that `quicgym evaluate` takes.",
        ),
    ],
    name: Annotated[str, typer.Option(metavar="NAME", help="The name in tables, and of the file.")],
    note: Annotated[
        str,
        typer.Option(
            metavar="TEXT", help="Where the policy comes from, and what it was trained on."
        ),
    ] = "",
    suite: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="May be given again. Default: all suites of the leaderboard; none with --league.",
        ),
    ] = None,
    league: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="May be given again. Default: all leagues; none with --suite."
        ),
    ] = None,
    seeds: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="N", help="Of each suite. Default: as many as the leaderboard has."
        ),
    ] = None,
    include: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="A file that the policy reads; may be given again."),
    ] = None,
    jobs: options.Jobs = None,
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="Where the runs and NAME.zip are written.")
    ] = Path("results/submission"),
    resume: options.Resume = False,
    address: options.Address = None,
    trust_zip: options.TrustZip = False,
) -> None:
    """Write one archive with a policy and its results on all suites and leagues.

    The archive has the policy's files, seeds, versions, every result, and a digest. Everybody can
    run the results again by `quicgym verify`: the same seed gives the same bytes.
    docs/how-to/submit.md says how to send an archive in.
    """
    from quicgym.benchmarks.submission.run import run_submit
    from quicgym.jobs import workers_of

    status = run_submit(
        policy,
        name=name,
        note=note,
        directory=out,
        suites=suite or (),
        leagues=league or (),
        seeds=seeds,
        include=include or (),
        workers=workers_of(jobs, address),
        resume=resume,
        trust_zip=trust_zip,
        command=options.command_line(),
    )
    raise typer.Exit(status)
