"""Training: Stable-Baselines3 over the native vector environment, one policy for every flow."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch
from stable_baselines3.common.base_class import BaseAlgorithm

from quicgym import __version__, _core
from quicgym.agents.evaluation.summary import evaluate_here
from quicgym.agents.evaluation.tensorboard import EvaluationWriter
from quicgym.agents.policies.learned import LearnedPolicy
from quicgym.agents.training.callbacks.base import RunCallback, RunCallbacks
from quicgym.agents.training.callbacks.checkpoints import CheckpointCallback
from quicgym.agents.training.callbacks.evaluation import EvaluationCallback
from quicgym.agents.training.callbacks.finite import FiniteCallback, TrainingError
from quicgym.agents.training.callbacks.logging import LoggingCallback
from quicgym.agents.training.callbacks.progress import ProgressCallback
from quicgym.agents.training.callbacks.reseeding import ReseedingCallback
from quicgym.agents.training.callbacks.schedules import ExplorationSchedule
from quicgym.agents.training.callbacks.threads import ThreadsCallback
from quicgym.agents.training.checkpoints import load_newest, read_checkpoint
from quicgym.agents.training.configuration import TrainingConfig, with_current_names
from quicgym.agents.training.folder import RunFolder
from quicgym.agents.training.model import (
    check_hyperparameters,
    make_environments,
    make_model,
    trained_on,
)
from quicgym.console import say
from quicgym.envs.rewards import Reward
from quicgym.envs.sb3 import Sb3VecEnv
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
            training = _Training(config, folder, environments, suite, command, on_evaluation)
            return training.run(model, state)
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
    state = load_newest(folder)
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
    stored = with_current_names(description["config"])
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


@dataclass(frozen=True)
class _Training:
    """The arguments of `train`, with the environments and the suite that they mean."""

    config: TrainingConfig
    folder: RunFolder
    environments: Sb3VecEnv
    suite: list[tuple[Any, int]]
    command: str
    on_evaluation: Callable[[int, float, Path], None] | None

    def run(self, model: BaseAlgorithm, state: Mapping[str, Any] | None) -> float:
        """Trains, from a checkpoint's state if there is one; returns the best policy's reward."""
        config, folder = self.config, self.folder
        interval_steps = config.evaluation.interval_steps
        step = 0 if state is None else state["step"]
        threads = ThreadsCallback()
        finite = FiniteCallback(folder, interval_steps)
        try:
            with (
                closing(EvaluationWriter(folder.tensorboard, step + 1 if state else None)) as file,
                ProgressCallback(config.name, config.steps, step) as progress,
            ):
                evaluation = EvaluationCallback(
                    config, folder, self.suite, self.command, file, progress
                )
                checkpoints = CheckpointCallback(
                    config.entry, folder, evaluation, interval_steps, self.on_evaluation
                )
                reseeding = ReseedingCallback(config.seed, self.environments, interval_steps)
                callbacks = RunCallbacks(
                    [threads, finite, *_schedules(config), progress, evaluation, checkpoints]
                    + [reseeding, LoggingCallback(file, step)]
                )
                callbacks.init_callback(model)
                if state is not None:
                    callbacks.resume(state)
                    say(f"{folder.directory}: going on from step {step:,}")
                if config.steps > step:
                    model.learn(config.steps - step, callbacks, reset_num_timesteps=False)
                callbacks.finish()
                self._evaluate(evaluation.publish())
                return evaluation.best_reward
        except ValueError as error:
            # PyTorch's distributions refuse what a network gives that is no longer finite.
            if "Expected parameter" not in str(error):
                raise
            finite.act(model.num_timesteps)
            raise finite.error("the network's output is not finite") from error
        except OSError as error:
            raise TrainingError(
                f"step {model.num_timesteps:,}: {folder.directory} cannot be written to "
                f"({error.strerror or error}). Training stops; {folder.last_checkpoint()}. "
                "Make room and go on with --resume"
            ) from error
        finally:
            threads.restore()

    def _evaluate(self, policy: LearnedPolicy) -> None:
        evaluation, environment = self.config.evaluation, self.config.environment
        evaluate_here(
            policy,
            evaluation.suite,
            evaluation.seeds,
            self.folder.evaluation,
            reward=Reward(environment.reward),
            threads=environment.threads or len(os.sched_getaffinity(0)),
            command=self.command,
        )


def _schedules(config: TrainingConfig) -> list[RunCallback]:
    start = config.start
    if start.std is None or start.final_std is None:
        return []
    return [ExplorationSchedule(start.std, start.final_std, config.steps)]
