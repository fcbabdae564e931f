"""`quicgym publish`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from quicgym.benchmarks import options

EXAMPLES = (
    "quicgym publish results/train/window-seed0",
    "quicgym publish results/train/tuning-ppo-seed3 --name ppo-best",
    "quicgym publish runs/ppo --evaluation results/evaluation --out my-policies",
)


def publish(
    run: Annotated[
        Path, typer.Argument(metavar="RUN", help="The folder that `quicgym train` has written.")
    ],
    name: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Publish the policy under this name. Default: the run's name with its seed.",
        ),
    ] = None,
    evaluation: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="The folder of the `quicgym evaluate` that backs the policy. Default: evaluate it "
            "on heldout with 5 seeds, into RUN/heldout.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Write the policy and its leaderboard.yaml to this folder. Default: into the "
            "checkout of quicgym around the current folder.",
        ),
    ] = None,
    jobs: options.Jobs = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replace a policy that has this name.")
    ] = False,
) -> None:
    """Publish the best policy of a training run, with its line of the leaderboard.

    You get the weights and a description that has their checksum, the training, and the evaluation
    that backs the policy. The command refuses a run that learned nothing according to its
    summary.json. In a checkout the files go to agents/policies/pretrained and the line to
    configs/leaderboard.yaml. docs/how-to/training.md explains it.
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
