"""`quicgym train`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from quicgym.benchmarks import options
from quicgym.console import say

if TYPE_CHECKING:
    from quicgym.agents.training.configuration import TrainingConfig

EXAMPLES = (
    "quicgym train window-start",
    "quicgym train tuning-ppo seed=1 steps=2e6 hyperparameters.learning_rate=3e-4",
    "quicgym train my-config.yaml --out results/mine",
    "quicgym train window-start --resume",
    "quicgym train tuning-ppo --from window hyperparameters.learning_rate=1e-5",
)


def train(
    config: Annotated[
        str,
        typer.Argument(
            metavar="CONFIG",
            autocompletion=options.complete_configs("training"),
            help=f"The training: {options.config_names('training')}, or a YAML file of that form.",
        ),
    ],
    changes: options.Changes = None,
    begin_with: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="POLICY",
            help="Start from the weights, network and environment of this policy: a published "
            "policy's name, the path of a description, or a run's folder.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Write the run to this folder. Default: results/train/NAME-seedSEED.",
        ),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue from the newest checkpoint in DIR.")
    ] = False,
    device: Annotated[
        str | None,
        typer.Option(
            metavar="auto|cpu|cuda", help="Train on this device. Default: the configuration's."
        ),
    ] = None,
) -> None:
    """Train a policy, evaluate it on the way, and keep checkpoints.

    Afterwards `quicgym evaluate --policy DIR` plays the best policy, which is in DIR/policy, and
    `tensorboard --logdir DIR/tensorboard` shows the curves. If a run was interrupted or killed,
    --resume continues it, and on a CPU it ends with the very same weights.

    At the end the policies that training started with, chose and ended with are compared on
    evaluation.comparison_paths new networks. DIR/summary.json says whether anything was learned.
    """
    from quicgym.agents.training.configuration import load_training

    settings = load_training(
        config,
        [*(changes or ()), *([f"device={device}"] if device else ())],
        begin_with=begin_with,
    )
    # PyTorch's threads wait for one another for microseconds; GNU OpenMP's own limit is
    # milliseconds, in which simulations or other programs could use the core.
    os.environ.setdefault("GOMP_SPINCOUNT", "10000")
    from quicgym.agents.training.run import train as train_policy

    directory = out or Path("results/train") / f"{settings.name}-seed{settings.seed}"
    command = options.command_line()
    try:
        outcome = train_policy(settings, directory, command, resume=resume)
    except KeyboardInterrupt:
        again = command if resume else f"{command} --resume"
        say(f"{_so_far(directory, settings)}; continue with\n  {again}")
        raise typer.Exit(130) from None
    if outcome.summary is not None:
        from quicgym.agents.evaluation.training_summary import print_summary

        print_summary(outcome.summary)
    if outcome.worlds:
        from quicgym.agents.training.worlds import print_worlds

        print_worlds(outcome.worlds, outcome.step)
    print(
        f"{directory}: the best policy's IQM reward is {outcome.reward:.4f} on the networks of "
        f"{settings.evaluation.suite} by which it was chosen"
    )


def _so_far(directory: Path, config: TrainingConfig) -> str:
    """Returns what an interrupted run has reached, and where --resume continues."""
    from quicgym.agents.training.folder import RunFolder

    folder = RunFolder(directory)
    checkpoints = folder.checkpoints()
    if not checkpoints:
        return "interrupted: there is no checkpoint yet, so --resume begins at step 0"
    curve = folder.curve()
    best = max(curve, key=curve.__getitem__)
    last = max(curve)
    text = f"interrupted: reward on {config.evaluation.suite} "
    text += ", ".join(
        f"{curve[step]:.4f} {name} (step {step:,})"
        for name, step in (("at the start", min(curve)), ("at best", best), ("last", last))
    )
    if best == min(curve) < last:
        text += "; no evaluation was better than the start"
    text += "; start, best and last policy are compared when training is finished"
    step = folder.step_of(checkpoints[-1])
    return f"{text}\nthe last checkpoint in {directory} is of step {step:,}"
