"""The configuration of a sweep of hyperparameters: a YAML of configs/sweeps, or a user's.

name: my-sweep
training: tuning-ppo
changes: {steps: 3_000_000}
scheduler: asha
hyperparameters:
  hyperparameters.gamma: {minimum: 0.9, maximum: 0.999}
  network.hidden_sizes: {values: [[32], [64], [64, 64]]}
samples: 16
grace_steps: 500_000
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import Field, model_validator

from quicgym.agents.training.configuration import (
    TRAINING,
    ConfigError,
    TrainingConfig,
    changed,
    read_fields,
    value_of,
)
from quicgym.agents.tuning.space import Setting, ValueRange, draws
from quicgym.envs.scenarios.fields import Name
from quicgym.validation import StrictModel, validated

SWEPT = ("hyperparameters", "network", "start", "environment")
# Fields by which trials are compared, or that change no policy.
_NOT_SWEPT = ("environment.reward", "environment.threads")
_OF_SCHEDULER = {
    "asha": ("grace_steps", "reduction_factor", "search"),
    "pbt": ("perturbation_steps",),
}


class SweptField(ValueRange):
    """The values of one training field: a range, or a list of any values that the field takes."""

    @staticmethod
    def text(value: Any) -> str:
        """Returns a value as messages, tables and the command line have it."""
        if isinstance(value, str) and value_of(value) == value:
            return value
        return json.dumps(value, separators=(",", ":"))

    @property
    def ends(self) -> tuple[float, float]:
        """The minimum and the maximum of a range."""
        minimum, maximum = super().ends
        return (int(minimum), int(maximum)) if self.scale == "whole" else (minimum, maximum)

    def number(self, value: float) -> float:
        """Returns a drawn number of a range as it is used."""
        # Stable-Baselines3 takes no 3.0 for 3 epochs.
        return int(value) if self.scale == "whole" else super().number(value)


class HyperparameterSweep(StrictModel):
    """A sweep of hyperparameters.

    Attributes:
        name: Name of the sweep; results go to results/sweeps/<name>.
        description: The question.
        training: Training whose hyperparameters are swept: one of `training_names()`, or a
            YAML's path.
        changes: Fields of the training that differ in all trials, such as {steps: 3_000_000}.
        scheduler: Scheduler of the trials. "asha" (asynchronous successive halving, Li et al.,
            MLSys 2020) stops bad trials early. With "pbt" (population-based training, Jaderberg et
            al., 2017) bad trials continue from good ones, with hyperparameters near theirs.
        hyperparameters: The fields that are swept.
        samples: Trials; with pbt the population.
        seed: Seed of the draws. Each trial's training has the seed of `training`.
        grace_steps: Number of steps before which asha stops no trial.
        reduction_factor: Reduction factor of asha: one of so many trials continues at each of its
            milestones.
        search: Source of asha's settings: independent draws, or Optuna's tree-structured Parzen
            estimator.
        perturbation_steps: Number of steps after which pbt may replace a trial.
    """

    name: Name
    description: str = ""
    training: str
    changes: dict[str, Any] = {}
    scheduler: Literal["asha", "pbt"]
    hyperparameters: dict[str, SweptField] = Field(min_length=1)
    samples: int = Field(ge=2, le=10_000)
    seed: int = Field(default=0, ge=0, le=2**32 - 1)
    grace_steps: int | None = Field(default=None, ge=1)
    reduction_factor: float = Field(default=3, gt=1)
    search: Literal["random", "optuna"] = "random"
    perturbation_steps: int | None = Field(default=None, ge=1)

    @model_validator(mode="before")
    @classmethod
    def _dotted(cls, data: Any) -> Any:
        if isinstance(data, dict) and isinstance(data.get("hyperparameters"), dict):
            return {**data, "hyperparameters": _flat(data["hyperparameters"])}
        return data

    def draws(self) -> list[Setting]:
        """Returns the settings of independent draws, in the order of their trials."""
        return draws(self.hyperparameters, self.samples, self.seed)


RANGE_FIELDS = set(SweptField.model_fields)


@dataclass(frozen=True)
class TrainingSweep:
    """A sweep of hyperparameters, and the training that it is for."""

    config: HyperparameterSweep
    file: str
    fields: Mapping[str, Any]
    """Fields of the training, as its YAML and `changes` have them."""
    training: TrainingConfig

    def trial(self, setting: Setting) -> TrainingConfig:
        """Returns what a trial trains, on one thread; ConfigError where the setting is wrong."""
        data = _nested({**_flat(self.fields), **setting, "environment.threads": 1})
        return validated(TrainingConfig, data, self.file, ConfigError)

    def train_command(self, setting: Setting) -> str:
        """Returns the command that trains with a setting."""
        changes = {**_flat(self.config.changes), **setting}
        texts = [f"{name}={SweptField.text(value)}" for name, value in changes.items()]
        return shlex.join(["quicgym", "train", self.config.training, *texts])


def training_sweep(data: dict[str, Any], changes: Sequence[str], file: str) -> TrainingSweep:
    """Returns the sweep of a YAML's fields, with changes; ConfigError where it is not valid."""
    if isinstance(data.get("hyperparameters"), dict):
        data = {**data, "hyperparameters": _nested(data["hyperparameters"])}
    config = validated(HyperparameterSweep, changed(data, changes), file, ConfigError)
    try:
        fields = read_fields(config.training, TRAINING, "training configuration")
        fields = _nested({**_flat(fields), **_flat(config.changes)})
        training_file = f"{config.training} with changes"
        training = validated(TrainingConfig, fields, training_file, ConfigError)
    except ConfigError as error:
        raise ConfigError(f"{file}: training: {error}") from None
    sweep = TrainingSweep(config, file, fields, training)
    _check_scheduler(sweep)
    _check_fields(sweep)
    return sweep


def _check_scheduler(sweep: TrainingSweep) -> None:
    config, training = sweep.config, sweep.training
    for scheduler, names in _OF_SCHEDULER.items():
        for name in names:
            if scheduler != config.scheduler and name in config.model_fields_set:
                raise ConfigError(
                    f"{sweep.file}: {name} = {getattr(config, name)!r}: belongs to the scheduler "
                    f"{scheduler}, and this one is {config.scheduler}; leave it out"
                )
    name = "grace_steps" if config.scheduler == "asha" else "perturbation_steps"
    steps = getattr(config, name)
    if steps is None:
        raise ConfigError(
            f"{sweep.file}: {name}: is missing; the scheduler {config.scheduler} needs it"
        )
    if steps >= training.steps:
        raise ConfigError(
            f"{sweep.file}: {name} = {steps:,}: has to be below the training's steps, "
            f"{training.steps:,}, or the scheduler has nothing to do"
        )
    interval = training.evaluation.interval_steps
    if config.scheduler == "pbt" and steps % interval:
        raise ConfigError(
            f"{sweep.file}: perturbation_steps = {steps:,}: is no multiple of the training's "
            f"evaluation.interval_steps, {interval:,}, when there are checkpoints; change one"
        )


def _check_fields(sweep: TrainingSweep) -> None:
    config, algorithm = sweep.config, sweep.training.entry
    for name, field in config.hyperparameters.items():
        where = f"{sweep.file}: hyperparameters.{name}"
        if name.partition(".")[0] not in SWEPT or "." not in name or name in _NOT_SWEPT:
            raise ConfigError(
                f"{where}: cannot be swept; give fields of the training's "
                f"{', '.join(SWEPT)}, but for {' and '.join(_NOT_SWEPT)}"
            )
        owner, _, last = name.partition(".")
        known = algorithm.mutable
        is_mutable = owner == SWEPT[0] and last in known
        if config.scheduler == "pbt" and not is_mutable:
            raise ConfigError(
                f"{where}: cannot change during a run, as pbt does; give some of "
                f"{', '.join(f'hyperparameters.{entry}' for entry in known)}; or use asha"
            )
        for value in field.limits:
            try:
                sweep.trial({name: value})
            except ConfigError as error:
                text = str(error).removeprefix(f"{sweep.file}: ")
                raise ConfigError(f"{where} = {field.text(value)}: {text}") from None


def _flat(data: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Returns {"network": {"hidden_sizes": VALUE}} as {"network.hidden_sizes": VALUE}.

    A range or a list of values, such as {"values": [1, 2]}, stays as it is.
    """
    flat: dict[str, Any] = {}
    for key, value in data.items():
        nested = isinstance(value, dict) and value and not set(value) & RANGE_FIELDS
        flat |= _flat(value, f"{prefix}{key}.") if nested else {f"{prefix}{key}": value}
    return flat


def _nested(data: Mapping[str, Any]) -> dict[str, Any]:
    """Returns {"a.b": 1, "a": {"c": 2}} as {"a": {"b": 1, "c": 2}}."""
    nested: dict[str, Any] = {}
    for key, value in data.items():
        *parents, last = str(key).split(".")
        inner = nested
        for parent in parents:
            entry = inner.setdefault(parent, {})
            if not isinstance(entry, dict):
                entry = inner[parent] = {}
            inner = entry
        if isinstance(value, dict) and isinstance(inner.get(last), dict):
            inner[last] |= value
        else:
            inner[last] = dict(value) if isinstance(value, dict) else value
    return nested
