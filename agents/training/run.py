"""Training: Stable-Baselines3 over the native vector environment, one policy for every flow."""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch
from stable_baselines3.common.base_class import BaseAlgorithm

from quicgym import __version__, _core
from quicgym.agents.training.callbacks import TrainingCallback
from quicgym.agents.training.configuration import TrainingConfig
from quicgym.agents.training.folder import RunFolder, read_checkpoint
from quicgym.agents.training.model import (
    check_hyperparameters,
    make_environments,
    make_model,
    trained_on,
)
from quicgym.console import say
from quicgym.envs.scenarios.suites import content_of, episodes_of, load_suite
from quicgym.errors import RunError
from quicgym.output_folders import LOCK_FILE, digest, locked


def train(
    config: TrainingConfig,
    directory: Path,
    command: str,
    *,
    resume: bool = False,
    checkpoint: Path | None = None,
    on_evaluation: Callable[[int, float, Path], None] | None = None,
) -> float:
    """Trains a policy, with a progress bar on standard error.

    Args:
        config: What to train.
        directory: Of the run.
        command: The command line, to be kept with the run.
        resume: Go on from the newest checkpoint in `directory`.
        checkpoint: Of another run, with the same network: the new run begins there.
        on_evaluation: Called after each evaluation with the step, the interquartile mean reward
            and the checkpoint's path.

    Returns:
        The best policy's interquartile mean reward on the evaluation's suite.

    Raises:
        ConfigError: A hyperparameter does not exist, or is not valid.
        RunError: The folder holds another run, nothing to resume, or is in use.
        ScenarioError: The scenario or the suite is not valid.
        TrainingError: The loss is no number, or a checkpoint cannot be written.
    """
    check_hyperparameters(config)
    folder = RunFolder(directory)
    if resume:
        folder.description()  # before anything is made there
    entries = load_suite(config.evaluation.suite)
    suite = episodes_of(entries, config.evaluation.seeds)
    environments = make_environments(config)
    try:
        model = make_model(config, environments)
        inputs = {
            "environment.scenario": digest(content_of([trained_on(environments)])),
            "evaluation.suite": digest(content_of(entries)),
        }
        with locked(directory):
            state = _open(folder, config, inputs, command, resume)
            if checkpoint is not None:
                state = read_checkpoint(checkpoint)
            training = TrainingCallback(config, folder, environments, suite, command, on_evaluation)
            training.model = model
            if state is not None:
                training.restore(model, state)
            _learn(model, config, training)
            return training.best_reward
    finally:
        environments.close()


def _open(
    folder: RunFolder,
    config: TrainingConfig,
    inputs: Mapping[str, str],
    command: str,
    resume: bool,
) -> dict[str, Any] | None:
    """Prepares the folder; returns the checkpoint to go on from."""
    fields = config.model_dump(mode="json")
    if not resume:
        _begin_folder(folder, config, fields, inputs, command)
        return None
    description = folder.description()
    _check_same(folder, config, fields, inputs, description)
    folder.describe(
        {
            **description,
            "config": fields,
            "resumed": [*description.get("resumed", []), command],
        }
    )
    state = folder.load_checkpoint()
    if state is None:
        say(f"{folder.directory}: has no checkpoint yet; training begins at step 0")
    return state


def _begin_folder(
    folder: RunFolder,
    config: TrainingConfig,
    fields: Mapping[str, Any],
    inputs: Mapping[str, str],
    command: str,
) -> None:
    if any(path.name != LOCK_FILE for path in folder.directory.iterdir()):
        raise RunError(
            f"{folder.directory}: is not empty; go on with the run in it with --resume, or "
            "give another folder with --out"
        )
    try:
        folder.describe(
            {
                "format": "quicgym-run-1",
                "kind": "training",
                "name": config.name,
                "command": command,
                "config": fields,
                "seed": config.seed,
                "inputs": inputs,
                "version": __version__,
                "commit": _core.commit,
                "python": platform.python_version(),
                "torch": torch.__version__,
                "started": datetime.now(UTC).isoformat(timespec="seconds"),
            }
        )
    except OSError as error:
        raise RunError(
            f"{folder.directory}: cannot be written to ({error.strerror}); "
            "give another folder with --out"
        ) from None


def _check_same(
    folder: RunFolder,
    config: TrainingConfig,
    fields: Mapping[str, Any],
    inputs: Mapping[str, str],
    description: Mapping[str, Any],
) -> None:
    """Raises RunError where the folder's run is not the one to go on with."""
    stored = description["config"]
    differing = [
        f"{name} = {value!r}, there {stored.get(name)!r}"
        for name, value in fields.items()
        if stored.get(name) != value and name != "steps"
    ]
    if differing:
        raise RunError(
            f"{folder.directory}: holds another run ({'; '.join(differing)}); resume with its own "
            "configuration, or give another folder with --out"
        )
    for name, identity in description.get("inputs", {}).items():
        if inputs.get(name) != identity:
            part, attribute = name.split(".")
            raise RunError(
                f"{folder.directory}: its {name} {getattr(getattr(config, part), attribute)!r} is "
                "not what it was when the run began; restore it, or begin anew with --out"
            )
    if config.steps < stored["steps"]:
        raise RunError(
            f"{folder.directory}: steps = {config.steps:,}, there {stored['steps']:,}: a run can "
            "only be made longer"
        )
    if description["commit"] != _core.commit:
        say(
            f"note: {folder.directory} was begun with the commit {description['commit']}, this is "
            f"{_core.commit}: it may not end as it would have"
        )


def _learn(model: BaseAlgorithm, config: TrainingConfig, training: TrainingCallback) -> None:
    remaining = config.steps - model.num_timesteps
    try:
        with training:
            if remaining > 0:
                model.learn(remaining, callback=training, reset_num_timesteps=False)
            training.finish()
    except ValueError as error:
        # PyTorch's distributions refuse what a network gives that is no longer finite.
        if "Expected parameter" not in str(error):
            raise
        training.check_finite()
        raise training.not_finite("the network's output is not finite") from error
    except OSError as error:
        raise training.not_written(error) from error
