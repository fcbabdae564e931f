"""A training run: its folder, its beginning, its end; one policy for every flow."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

from quicgym import __version__, _core
from quicgym.agents.algorithms.trainer import Trainer
from quicgym.agents.evaluation.tensorboard import EvaluationWriter
from quicgym.agents.evaluation.training_summary import Summary
from quicgym.agents.policies.by_name import find_policy
from quicgym.agents.policies.learned import load_policy
from quicgym.agents.training.checkpoints import load_newest, read_checkpoint
from quicgym.agents.training.comparison import compare
from quicgym.agents.training.configuration import (
    ConfigError,
    TrainingConfig,
)
from quicgym.agents.training.evaluation import Evaluations
from quicgym.agents.training.folder import RunFolder
from quicgym.agents.training.loop import Loop, TrainingError
from quicgym.agents.training.model import check_hyperparameters, make_trainer
from quicgym.agents.training.policies import policy_of, write_policy
from quicgym.agents.training.progress import TrainingProgress
from quicgym.agents.training.worlds import World, measure_controllers
from quicgym.console import say
from quicgym.envs.rewards import FileReward, find_reward
from quicgym.envs.scenarios.fields import errors_at
from quicgym.envs.scenarios.suites import (
    SELECTION_SEED,
    SuiteEntry,
    content_of,
    episodes_of,
    load_entry,
    load_suite,
    parts_of,
    refuse_held_out,
)
from quicgym.errors import RunError, UserError
from quicgym.output_folders import check_resumable, digest, locked

LONGEST_VALUES = 100
"""Characters of two values that a message shows; of longer ones it names the field alone."""


def train(
    config: TrainingConfig,
    directory: Path,
    command: str,
    *,
    resume: bool = False,
    checkpoint: Path | None = None,
    on_evaluation: Callable[[int, float, Path], None] | None = None,
    trial: bool = False,
) -> Outcome:
    """Trains a policy, with a progress bar on standard error.

    Args:
        config: Configuration of the training.
        directory: Folder of the run.
        command: The command line, to be kept with the run.
        resume: Whether to continue from the newest checkpoint in `directory`.
        checkpoint: Checkpoint of another run with the same network, at which the new run begins.
        on_evaluation: Called after each evaluation with the step, the interquartile mean reward
            and the checkpoint's path.
        trial: Whether the run is one of many that are compared by what training has led to. The
            start is then not its best policy, and there is no summary at its end.

    Raises:
        ConfigError: A hyperparameter or a controller does not exist, or is not valid; or the suite
            may not choose.
        RunError: The folder holds another run, nothing to resume, or is in use.
        ScenarioError: The scenario or the suite is not valid.
        TrainingError: The loss is no number, or a checkpoint cannot be written.
    """
    check_hyperparameters(config)
    _check_controllers(config)
    folder = RunFolder(directory)
    if resume and folder.is_new:
        say(f"{directory}: no run has begun there; training begins at step 0")
        resume = False
    if resume:
        check_resumable(directory)
        folder.description()  # before anything is made there
    with errors_at("evaluation.suite"):
        entries = parts_of(load_suite(config.evaluation.suite))
    refuse_held_out("evaluation.suite", config.evaluation.suite, ConfigError, entries)
    with errors_at("environment.scenario"):
        scenario = load_entry(config.environment.scenario)
    trainer = make_trainer(config)
    try:
        inputs = {
            "environment.scenario": digest(content_of([scenario])),
            "evaluation.suite": digest(content_of(entries)),
        }
        reward = find_reward(config.environment.reward)
        if isinstance(reward, FileReward):
            inputs["environment.reward"] = reward.sha256
        with locked(directory):
            state = _open(folder, config, inputs, command, resume)
            if checkpoint is not None:
                state = read_checkpoint(checkpoint)
            if not trial:
                _note_what_does_not_fit(config, trainer.rollout_steps)
            training = _Training(
                config, folder, trainer, scenario, entries, command, on_evaluation, trial
            )
            return training.run(state)
    finally:
        trainer.close()


def _check_controllers(config: TrainingConfig) -> None:
    """Raises ConfigError where one of `evaluation.controllers` does not exist."""
    for choice in config.evaluation.controllers:
        try:
            find_policy(choice)
        except UserError as error:
            raise ConfigError(
                f"{config.name}: evaluation.controllers = {choice!r}: {error}"
            ) from None


def _note_what_does_not_fit(config: TrainingConfig, rollout: int | None) -> None:
    """Says which steps become more, because rollouts are finished, and whether any update is made.

    A twentieth more is not worth a word.
    """
    fields = {"steps": config.steps, "evaluation.interval_steps": config.evaluation.interval_steps}
    rollout = rollout or 1
    whole = {name: -(-steps // rollout) * rollout for name, steps in fields.items()}
    longer = [
        f"{name} = {steps:,} becomes {whole[name]:,}"
        for name, steps in fields.items()
        if whole[name] > 1.05 * steps
    ]
    if longer:
        say(
            f"note: {' and '.join(longer)}: a rollout has {rollout:,} steps and is always "
            "finished; lower environment.simulations or hyperparameters.n_steps to shorten it"
        )
    first = config.hyperparameters.get("learning_starts", 0)
    if first >= config.steps:
        say(
            f"note: steps = {config.steps:,}: learning begins after "
            f"hyperparameters.learning_starts = {first:,} steps, so nothing will be learned; give "
            "more steps, or lower it"
        )


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
    state = load_newest(folder)
    made = 0 if state is None else state["step"]
    # The last iteration of a finished run may have made a few more than it was to make.
    if config.steps < min(made, description["config"]["steps"]):
        raise RunError(
            f"{folder.directory}: steps = {config.steps:,}, and the run has made "
            f"{made:,}; give at least as many, which ends it there"
        )
    folder.describe(
        {
            **description,
            "config": fields,
            "resumed": [*description.get("resumed", []), command],
        }
    )
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
    if not folder.is_new:
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
    before = _that_stay(stored)
    differing = list(_differences(_that_stay(fields), before))
    if differing:
        raise RunError(
            f"{folder.directory}: holds another run ({'; '.join(differing)}); resume with its own "
            "configuration, or give another folder with --out"
        )
    for name, identity in inputs.items():
        if description["inputs"].get(name) != identity:
            part, attribute = name.split(".")
            raise RunError(
                f"{folder.directory}: its {name} {getattr(getattr(config, part), attribute)!r} is "
                "not what it was when the run began; restore it, or begin anew with --out"
            )
    if description["commit"] != _core.commit:
        say(
            f"note: {folder.directory} was begun with the commit {description['commit']}, this is "
            f"{_core.commit}: it may not end as it would have"
        )


def _differences(fields: Any, before: Any, place: str = "") -> Iterator[str]:
    """Yields each field that differs, by its place in the configuration; values that are short."""
    if fields == before:
        return
    if isinstance(fields, Mapping) and isinstance(before, Mapping):
        for name in {**fields, **before}:
            inner = f"{place}.{name}" if place else name
            yield from _differences(fields.get(name), before.get(name), inner)
        return
    values = f" = {fields!r}, there {before!r}"
    yield place + (values if len(values) < LONGEST_VALUES else " differs")


def _that_stay(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the fields that a resumed run has to have as before."""
    evaluation = {**fields["evaluation"]}
    evaluation.pop("comparison_paths", None)
    kept = {name: value for name, value in fields.items() if name != "steps"}
    return {**kept, "evaluation": evaluation}


@dataclass(frozen=True)
class Outcome:
    """The outcome of a training; `reward`, `step` and `worlds` are the best policy's.

    A trial has no summary, and there are no worlds without `evaluation.controllers`.
    """

    reward: float
    summary: Summary | None
    step: int
    worlds: Sequence[World]


@dataclass(frozen=True)
class _Training:
    """The arguments of `train`, with what they mean."""

    config: TrainingConfig
    folder: RunFolder
    trainer: Trainer
    scenario: SuiteEntry
    suite: Sequence[SuiteEntry]
    command: str
    on_evaluation: Callable[[int, float, Path], None] | None
    trial: bool

    def run(self, state: Mapping[str, Any] | None) -> Outcome:
        """Trains, from a checkpoint's state if there is one; TrainingError says what failed."""
        try:
            evaluations = self._train(state)
            summary = None if self.trial else self._summarize(evaluations.best_step)
        except OSError as error:
            raise TrainingError(
                f"step {self.trainer.step:,}: {self.folder.directory} cannot be written to "
                f"({error.strerror or error}). Training stops; {self.folder.last_checkpoint()}. "
                "Make room and go on with --resume"
            ) from error
        step, worlds = evaluations.best_step, evaluations.best_worlds
        return Outcome(evaluations.best_reward, summary, step, worlds)

    def _train(self, state: Mapping[str, Any] | None) -> Evaluations:
        config, folder, trainer = self.config, self.folder, self.trainer
        step = 0 if state is None else state["step"]
        if not self.trial:
            self._keep_start()
        with (
            closing(EvaluationWriter(folder.tensorboard, step + 1 if state else None)) as file,
            TrainingProgress(config.name, config.steps, step) as progress,
        ):
            evaluation = config.evaluation
            worlds = None
            if evaluation.controllers:
                worlds = measure_controllers(
                    evaluation.controllers,
                    self.suite,
                    evaluation.seeds,
                    folder.controllers_path,
                    threads=self._threads,
                    reward=find_reward(config.environment.reward),
                )
            cells = episodes_of(self.suite, evaluation.seeds, SELECTION_SEED)
            evaluations = Evaluations(
                config,
                trainer,
                folder,
                cells,
                worlds,
                self.command,
                file,
                progress,
                start_counts=not self.trial,
            )
            if state is not None:
                say(f"{folder.directory}: going on from the checkpoint of step {step:,}")
            Loop(config, trainer, folder, evaluations, file, progress, self.on_evaluation).run(
                state
            )
            evaluations.keep_best()
        return evaluations

    def _keep_start(self) -> None:
        """Writes the policy that training starts with, which the untrained model still has."""
        path = self.folder.start_path
        if not path.exists():
            policy = policy_of(self.trainer, self.config)
            write_policy(path, policy, self.config, self.command, step=0)

    def _summarize(self, best_step: int) -> Summary:
        """Compares start, best and last policy, unless that has been done."""
        config, folder, step = self.config, self.folder, self.trainer.step
        write_policy(folder.last_path, policy_of(self.trainer, config), config, self.command, step)
        policies = {
            "start": (0, load_policy(folder.start_path)),
            "best": (best_step, load_policy(folder.policy_path)),
            "last": (step, load_policy(folder.last_path)),
        }
        summary = compare(
            config,
            policies,
            self.suite,
            self.scenario,
            self._threads,
            Summary.read(folder.summary_path),
        )
        summary.write(folder.summary_path)
        return summary

    @property
    def _threads(self) -> int:
        return self.config.environment.threads or len(os.sched_getaffinity(0))
