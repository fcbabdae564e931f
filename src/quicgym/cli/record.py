"""`quicgym record`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from quicgym.cli import options

EXAMPLES = (
    "quicgym record --policy window random --suite worlds --seeds 100 --out datasets",
    "quicgym record --policy bbr ebcc --suite training-50 --out datasets",
)


def record(
    policy: Annotated[
        list[str],
        typer.Option(
            metavar="NAME",
            autocompletion=options.complete_policies,
            help="A published policy, a policy's JSON, a training run's folder, an object of a "
            "Python file (agent.py:policy; runs the file), random, or a controller that the "
            "environment has as an action; one or more.",
        ),
    ],
    out: Annotated[Path, typer.Option(metavar="DIR", help="The folder of Minari's datasets.")],
    suite: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            autocompletion=options.complete_suites,
            help="A scenario, a distribution, of which each seed draws a scenario, a suite that is "
            "not held out, or a YAML's path.",
        ),
    ] = "training-50",
    seeds: Annotated[
        int,
        typer.Option(
            min=1,
            metavar="N",
            help="Records N seeds from 2,000,000 on. `quicgym evaluate` begins at 0.",
        ),
    ] = 100,
    dataset: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Minari's name of the dataset. Default: quicgym/ENVIRONMENT-SUITE-v0.",
        ),
    ] = None,
    environment: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="The environment of controllers and of random. Default: that of the first "
            "learned policy, or Tuning-v1.",
        ),
    ] = None,
    trust_zip: options.TrustZip = False,
) -> None:
    """Record episodes of policies as a Minari dataset, for offline reinforcement learning.

    Episodes are played side by side on the native engine. Each agent's flow of each of them is an
    episode of the dataset, whose metadata has policy, scenario, seed and flow.
    docs/how-to/offline.md has examples.
    """
    from quicgym.agents.evaluation.recording import MINARI_FOLDER
    from quicgym.agents.evaluation.recording import record as record_dataset

    name, episodes, steps = record_dataset(
        policy,
        suite,
        seeds,
        out,
        dataset,
        environment=environment,
        trust_zip=trust_zip,
        command=options.command_line(),
    )
    print(f"{out}: the dataset {name} has {episodes:,} episodes of {steps:,} steps; load it with")
    load = f"import minari; minari.load_dataset('{name}')"
    print(f'  {MINARI_FOLDER}={out.resolve()} python -c "{load}"')
