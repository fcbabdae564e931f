"""`quicgym record`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from quicgym.benchmarks import options

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
            help="Record these: a published policy, a policy's JSON, a training run's folder, an "
            "object of a Python file (agent.py:policy, which runs the file), `random`, or a "
            "controller that is an action of the environment.",
        ),
    ],
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="Write the dataset to this folder of Minari's.")
    ],
    suite: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            autocompletion=options.complete_suites,
            help="Play these networks: a distribution, from which each seed draws a scenario, a "
            "scenario, a suite that is not held out, or the path of a YAML file.",
        ),
    ] = "training-50",
    seeds: Annotated[
        int,
        typer.Option(
            min=1,
            metavar="N",
            help="Record N seeds from 2,000,000 on, which no evaluation plays because `quicgym "
            "evaluate` begins at 0.",
        ),
    ] = 100,
    dataset: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Name of the dataset in Minari. Default: quicgym/ENVIRONMENT-SUITE-v0.",
        ),
    ] = None,
    environment: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Environment for controllers and `random`. Default: that of the first learned "
            "policy, or Tuning-v1.",
        ),
    ] = None,
    trust_zip: options.TrustZip = False,
) -> None:
    """Record episodes of policies as a Minari dataset, for offline reinforcement learning.

    Episodes are played side by side on the native engine. Every flow of an agent becomes an episode
    of the dataset, with policy, scenario, seed and flow in its metadata. docs/how-to/offline.md has
    examples.
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
