"""`quicgym compare`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from quicgym.cli import options

EXAMPLES = (
    "quicgym compare results/train/ppo-seed0 results/evaluation",
    "quicgym compare results/train/* --logdir results/compare-algorithms",
)


def compare(
    runs: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN", help="Folders of `quicgym train`, `evaluate` or `baselines`."
        ),
    ],
    logdir: Annotated[
        Path, typer.Option(metavar="DIR", help="Where TensorBoard's files are written.")
    ] = Path("results/compare"),
    force: Annotated[
        bool, typer.Option("--force", help="Move what is in DIR aside, whatever it is.")
    ] = False,
) -> None:
    """Write agents and baselines for TensorBoard, under the same tags: their curves overlay.

    Training runs have their curves over the environment steps, policies of an evaluation level
    lines beside them. All must have been evaluated on one suite, for one reward.
    docs/how-to/comparison.md has the tags.
    """
    try:
        from quicgym.agents.evaluation.compare import run_compare
    except ImportError as error:  # without the extra `train`
        print(f"quicgym: {error}", file=sys.stderr)
        raise typer.Exit(2) from None
    raise typer.Exit(run_compare(runs, logdir, force=force, command=options.command_line()))
