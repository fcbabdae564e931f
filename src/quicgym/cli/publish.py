"""`quicgym publish`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from quicgym.cli import options

EXAMPLES = (
    "quicgym publish results/train/window-seed0",
    "quicgym publish results/train/ppo-seed3 --name ppo-best",
    "quicgym publish runs/ppo --evaluation results/evaluation --out my-policies",
)


def publish(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a `quicgym train`.")],
    name: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="The policy's name. Default: the run's, with its seed.",
        ),
    ] = None,
    evaluation: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="The `quicgym evaluate` that backs the policy. Default: one on heldout with 5 "
            "seeds is run, into RUN/heldout.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Where the policy and its leaderboard.yaml are written. Default: into the "
            "checkout of quicgym around the current folder.",
        ),
    ] = None,
    jobs: options.Jobs = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a policy of this name.")] = False,
) -> None:
    """Publish the best policy of a training run, with a line of the leaderboard.

    The description has the checksum of the weights, the training and the evaluation that backs the
    policy. A run in which nothing was learned, by its summary.json, is refused. In a checkout the
    files go to agents/policies/pretrained, the line to configs/leaderboard.yaml.
    docs/how-to/training.md has more.
    """
    from quicgym.benchmarks.publish import publish as publish_run

    status = publish_run(
        run,
        name=name,
        evaluation=evaluation,
        out=out,
        force=force,
        workers=jobs or os.cpu_count() or 1,
        command=options.command_line(),
    )
    raise typer.Exit(status)
