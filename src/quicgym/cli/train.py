"""`quicgym train`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from quicgym.cli.options import ChangesArgument, command_line, config_names
from quicgym.console import say

EXAMPLES = (
    "quicgym train switch-dpi",
    "quicgym train ppo seed=1 steps=2e6 hyperparameters.learning_rate=3e-4",
    "quicgym train my-config.yaml --out results/mine",
    "quicgym train switch-dpi --resume",
)


def train(
    config: Annotated[
        str,
        typer.Argument(
            metavar="CONFIG",
            help=f"{config_names('training')}, or a YAML of that form.",
        ),
    ],
    changes: ChangesArgument = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="The run's folder. Default: results/train/NAME-seedSEED."),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on from the newest checkpoint in DIR.")
    ] = False,
    device: Annotated[
        str | None, typer.Option(metavar="auto|cpu|cuda", help="Default: the configuration's.")
    ] = None,
) -> None:
    """Train a policy with Stable-Baselines3; evaluate it on the way, and keep checkpoints.

    A run that was interrupted or killed goes on with --resume, and ends with the very same weights
    (on a CPU). The best policy is in DIR/policy, for `quicgym evaluate --policy DIR`; curves are in
    DIR/tensorboard.
    """
    from quicgym.agents.training.configuration import load_training

    settings = load_training(config, [*(changes or ()), *([f"device={device}"] if device else ())])
    # PyTorch's threads wait for one another for microseconds; GNU OpenMP's own limit is
    # milliseconds, in which simulations or other programs could use the core.
    os.environ.setdefault("GOMP_SPINCOUNT", "10000")
    from quicgym.agents.training.run import train as train_policy

    directory = out or Path("results/train") / f"{settings.name}-seed{settings.seed}"
    command = command_line()
    try:
        reward = train_policy(settings, directory, command, resume=resume)
    except KeyboardInterrupt:
        if any((directory / "checkpoints").glob("*.pt")):
            again = command if resume else f"{command} --resume"
            say(
                f"interrupted: the last checkpoint is kept in {directory}; continue with\n  {again}"
            )
        else:
            say("interrupted: there is no checkpoint yet, begin anew")
        raise typer.Exit(130) from None
    print(f"{directory}: reward {reward:.4f} on the suite {settings.evaluation.suite}")
