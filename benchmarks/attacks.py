"""The worst network of every hand-coded controller and published policy.

`make reports ARGS=attacks` attacks each policy in a folder of results/reports/attacks, and writes
attack-networks.md next to it, the table of all. The leaderboard reads the folders, too.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from quicgym.agents.policies.by_name import pretrained_names
from quicgym.agents.policies.hand_coded import BASELINES
from quicgym.benchmarks import options
from quicgym.output_folders import file_name, read_json, write_atomically

HEADER = """\
# Networks that attacks found

| | |
|---|---|
| version | quicgym {version}, commit {commit} |
| command | `make reports ARGS=attacks`: `quicgym attack POLICY --trials N`, seed 0 |

"Behind" is the mean reward of the best of {others} minus that of the policy, with
its 95% interval over ten seeds by which nothing was chosen. The network is the one that was
found. The sentence is about the simplest network that keeps at least half of the difference.
[The report](hard-tests.md) of the documentation explains the causes.

| policy | trials | behind | simplest network |
|---|---|---|---|
"""


def read_attacks(folder: Path) -> list[dict[str, Any]]:
    """Returns the attack.json of each policy in a folder, which may be missing.

    Raises:
        RunError: A file is damaged.
    """
    return [read_json(path, ("policy", "found")) for path in sorted(folder.glob("*/attack.json"))]


def worst_difference(document: Mapping[str, Any]) -> float:
    """Returns the reward on the worst network minus that of the best of the others."""
    return float(document["found"]["difference"]) if document["found"] else 0.0


def table(documents: Sequence[dict[str, Any]]) -> str:
    """Returns the page with a row for each attack.json, the worst first."""
    from quicgym.agents.attack.attack import words

    documents = sorted(documents, key=worst_difference)
    others = dict.fromkeys(name for each in documents for name in each["against"])
    first = documents[0]
    lines = []
    for document in documents:
        policy, found = document["policy"], document["found"]
        behind = f"`{policy}` | {document['trials']} | –"
        if found is not None:
            behind = (
                f"`{policy}` | {document['trials']} | {-found['difference']:.2f} "
                f"[{-found['high']:.2f}, {-found['low']:.2f}]"
            )
        lines.append(f"| {behind} | {words(document)} |")
    about = HEADER.format(
        version=first["version"], commit=first["commit"], others=", ".join(sorted(others))
    )
    return about + "\n".join(lines) + "\n"


def attacks(
    policy: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Attack this policy. You may repeat it. Default: all controllers and published "
            "policies.",
        ),
    ] = None,
    trials: Annotated[
        int, typer.Option(min=1, metavar="N", help="Try this many networks for each policy.")
    ] = 128,
    jobs: options.Jobs = None,
    resume: options.Resume = False,
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="Write a folder for each policy to this folder.")
    ] = Path("results/reports/attacks"),
) -> None:
    """Attack controllers and policies, and write the pages of the results."""
    from quicgym.agents.attack.attack import run_attack  # needs Optuna

    for name in policy or [*BASELINES, *pretrained_names()]:
        folder = out / file_name(name)
        status = run_attack(
            name,
            directory=folder,
            trials=trials,
            workers=jobs or os.cpu_count() or 1,
            figure_format="svg",
            resume=resume and folder.exists(),
            command=f"quicgym attack {name} --trials {trials} --figures svg",
        )
        if status:
            raise typer.Exit(status)
    write_atomically({out.parent / "attack-networks.md": table(read_attacks(out))})
