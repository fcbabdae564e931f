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
    agent: Annotated[str, typer.Argument(metavar="AGENT", help="aurora, orca, indigo or astraea.")],
    checkpoint: Annotated[
        Path,
        typer.Argument(
            metavar="PATH",
            help="The TensorFlow checkpoint that the authors publish: its .index file, its path "
            "without .index, its folder, or the folder of a saved model.",
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(metavar="FILE.json", help="The description; the weights go beside it."),
    ],
    force: Annotated[bool, typer.Option("--force", help="Replace FILE.json.")] = False,
) -> None:
    """Read the published weights of another project's agent, without TensorFlow.

    FILE.json can then be named wherever a controller or policy is: in evaluate, checklist,
    baselines, real, and in scenarios. docs/how-to/authors-agents.md says where the weights are.
    """
    from quicgym.agents.policies.import_agent import import_agent as write

    if out.exists() and not force:
        raise typer.BadParameter(f"{out} exists; give another name, or --force")
    description, weights = write(agent, checkpoint, out)
    print(f"{description} and {weights} are written; name {description} as a controller or policy")
