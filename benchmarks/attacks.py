"""The worst network of every hand-coded controller and published policy.

`make reports ARGS=attacks` writes of each policy its attack.json, its network and the picture into
results/reports/attacks, and beside this folder attack-networks.md, the table of all. The
leaderboard reads the JSON files.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
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
its 95% interval over ten seeds. The network is the one that was found. The sentence is about the
simplest network that keeps at least half of the difference. [The report](hard-tests.md) of the
documentation explains the causes.

| policy | trials | behind | simplest network |
|---|---|---|---|
"""


def table(documents: Sequence[dict[str, Any]]) -> str:
    """Returns the page with a row for each attack.json, the worst first."""
    from quicgym.agents.attack.attack import words

    documents = sorted(
        documents, key=lambda each: each["found"]["difference"] if each["found"] else 0.0
    )
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
    pages: Path = Path("results/reports/attacks"),
    out: Path = Path("results/attacks"),
) -> None:
    """Attack controllers and policies, and write the pages of the results."""
    from quicgym.agents.attack.attack import ATTACK_FILE, WORST_FILE, run_attack  # needs Optuna

    for name in policy or [*BASELINES, *pretrained_names()]:
        directory = out / file_name(name)
        status = run_attack(
            name,
            directory=directory,
            trials=trials,
            workers=jobs or os.cpu_count() or 1,
            figure_format="svg",
            resume=resume,
            command=f"quicgym attack {name} --trials {trials} --figures svg",
        )
        if status:
            raise typer.Exit(status)
        pages.mkdir(parents=True, exist_ok=True)
        stem = pages / file_name(name)
        for file, end in ((ATTACK_FILE, ".json"), ("worst.svg", ".svg"), (WORST_FILE, ".yaml")):
            copy = stem.with_name(stem.name + end)
            copy.unlink(missing_ok=True)
            if (directory / file).exists():
                shutil.copyfile(directory / file, copy)
    documents = [read_json(path, ("policy", "found")) for path in sorted(pages.glob("*.json"))]
    write_atomically({pages.parent / "attack-networks.md": table(documents)})
