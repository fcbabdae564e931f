"""`quicgym import-agent`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

EXAMPLES = (
    "quicgym import-agent orca Orca/models/model.ckpt-1283529 --out orca.json",
    "quicgym import-agent aurora saved_models/icml_paper_model --out aurora.json",
    "quicgym evaluate --policy aurora.json old=aurora.json:variant=published-client",
)


def import_agent(
    agent: Annotated[
        str, typer.Argument(metavar="AGENT", help="The agent: aurora, orca, indigo or astraea.")
    ],
    checkpoint: Annotated[
        Path,
        typer.Argument(
            metavar="PATH",
            help="The TensorFlow checkpoint that the authors published: its .index file, its path "
            "without .index, its folder, or the folder of a saved model.",
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(
            metavar="FILE.json",
            help="Write the description to this file, and the weights next to it.",
        ),
    ],
    force: Annotated[bool, typer.Option("--force", help="Replace FILE.json if it exists.")] = False,
) -> None:
    """Convert the published weights of another project's agent; TensorFlow is not needed.

    Afterwards you can name FILE.json wherever a controller or policy is expected: in evaluate,
    checklist, baselines, real, and in scenarios. docs/how-to/authors-agents.md says where to get
    the weights.
    """
    from quicgym.agents.policies.import_agent import import_agent as write

    if out.exists() and not force:
        raise typer.BadParameter(f"{out} exists; give another name, or --force")
    description, weights = write(agent, checkpoint, out)
    print(f"{description} and {weights} are written; name {description} as a controller or policy")
