"""`quicgym compare`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from quicgym.benchmarks import options

EXAMPLES = (
    "quicgym compare results/train/rate-ppo-seed0 results/evaluation",
    "quicgym compare results/train/rate-* --logdir results/compare-algorithms",
)


def compare(
    runs: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN",
            help="Folders that `quicgym train`, `evaluate` or `baselines` has written.",
        ),
    ],
    logdir: Annotated[
        Path, typer.Option(metavar="DIR", help="Write TensorBoard's files to this folder.")
    ] = Path("results/compare"),
    force: Annotated[
        bool, typer.Option("--force", help="Move the contents of DIR aside, whatever they are.")
    ] = False,
) -> None:
    """Overlay the curves of agents and baselines in TensorBoard.

    A training run becomes a curve over its environment steps, and every policy of an evaluation a
    level line next to it. All must have been evaluated on the same networks for the same reward.
    Those of rate-ppo, for example, are played by `quicgym evaluate --suite training-50 --first-seed
    3000000 --seeds 128`. The mixture `worlds` of other trainings is evaluated only by them, so name
    policies that are to be level lines there in evaluation.controllers.

    Afterwards run `tensorboard --logdir DIR`. docs/how-to/comparison.md lists the tags.
    """
    try:
        from quicgym.agents.evaluation.compare import run_compare
    except ImportError as error:  # without the extra `train`
        print(f"quicgym: {error}", file=sys.stderr)
        raise typer.Exit(2) from None
    raise typer.Exit(run_compare(runs, logdir, force=force, command=options.command_line()))
