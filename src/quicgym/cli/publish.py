"""`quicgym publish`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from quicgym.cli import options

EXAMPLES = (
    "quicgym publish results/train/window-v1-grpo-seed0",
    "quicgym publish results/train/ppo-seed3 --name ppo-best",
    "quicgym publish --ensemble results/train/window-seed0 results/train/window-seed1",
    "quicgym publish --ensemble window results/train/window-seed1 --name window-pair",
    "quicgym publish runs/ppo --evaluation results/evaluation --out my-policies",
)


def publish(
    runs: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN",
            help="The folder of a `quicgym train`; with --ensemble also a published policy.",
        ),
    ],
    ensemble: Annotated[
        bool,
        typer.Option(
            "--ensemble",
            help="Publish several RUNs as one policy, which acts by the sum of their votes.",
        ),
    ] = False,
    name: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="The policy's name. Default: the run's, with its seed; an ensemble's without.",
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

    With --ensemble the best policies of several runs become one network. On new paths of the
    evaluations' suite it is compared with its members, and refused where one of them earns more.
    The description has the checksum of the weights, the training and the evaluation that backs the
    policy. A run in which nothing was learned, by its summary.json, is refused. In a checkout the
    files go to agents/policies/pretrained, the line to configs/leaderboard.yaml.
    docs/how-to/training.md has more.
    """
    from quicgym.benchmarks.publish import publish as publish_run

    status = publish_run(
        runs,
        ensemble=ensemble,
        name=name,
        evaluation=evaluation,
        out=out,
        force=force,
        workers=jobs or os.cpu_count() or 1,
        command=options.command_line(),
    )
    raise typer.Exit(status)
