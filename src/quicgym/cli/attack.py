"""`quicgym attack`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from quicgym.benchmarks import options
from quicgym.plot_style import FigureFormat

EXAMPLES = (
    "quicgym attack bbr",
    "quicgym attack runs/mine --against cubic bbr bbr3 --trials 200",
    "quicgym attack copa --distribution wireless --budget-s 3600 --out results/copa",
)


def attack(
    policy: Annotated[
        str,
        typer.Argument(
            metavar="CONTROLLER_OR_POLICY",
            autocompletion=options.complete_policies,
            help="The policy to attack: a controller, also with parameters (ebcc:gamma=60), a "
            "published policy, a policy's JSON, a training run's folder, or an object of a Python "
            "file (agent.py:policy, which runs the file).",
        ),
    ],
    against: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            autocompletion=options.complete_policies,
            help="Compare it with these, named in the same way. Default: cubic, bbr and bbr3.",
        ),
    ] = None,
    distribution: Annotated[
        str,
        typer.Option(metavar="NAME", help="Draw the networks from this distribution or mixture."),
    ] = "worlds",
    trials: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Try this many networks. The same number and seed give the same result.",
        ),
    ] = None,
    budget_s: Annotated[
        float | None,
        typer.Option(
            "--budget-s",
            min=0,
            metavar="S",
            help="Search for this many seconds, so the number of networks depends on the machine. "
            "Default: 600, unless you give --trials.",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="Random seed of the search.")] = 0,
    jobs: options.Jobs = None,
    format: Annotated[
        options.DocumentFormat, typer.Option(help="Print the result in this form.")
    ] = options.DocumentFormat.table,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Write the results to this folder.  [default: results/attacks/POLICY]",
        ),
    ] = None,
    figures: options.Figures = FigureFormat.png,
    resume: options.Resume = False,
    trust_zip: options.TrustZip = False,
) -> None:
    """Find the network on which a policy loses most against the best of other policies.

    Optuna searches among networks that training may draw. The worst one is then made as simple as
    possible and run with ten new seeds. You get that network (worst.yaml), its time series as a
    picture (worst.png), and attack.json. The command needs the extra `sweep`;
    docs/how-to/hard-tests.md explains it.
    """
    from quicgym.agents.attack.attack import AGAINST, run_attack
    from quicgym.output_folders import file_name

    status = run_attack(
        policy,
        directory=out or Path("results/attacks") / file_name(policy),
        against=against or AGAINST,
        distribution=distribution,
        trials=trials,
        budget_s=budget_s,
        seed=seed,
        workers=jobs or os.cpu_count() or 1,
        format=format.value,
        figure_format=figures.value,
        resume=resume,
        trust_zip=trust_zip,
        command=options.command_line(),
    )
    raise typer.Exit(status)
