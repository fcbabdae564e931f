"""How many steps per second a training makes, where its time goes, and what of it is PPO's own.

    python benchmarks/studies/training_speed.py
    python benchmarks/studies/training_speed.py ppo environment.scenario=ebcc-single --steps 2e6

Steps per second say as much of the machine as of the code. So the same training runs once more, in
turn with the first, on environments that cost nothing: what is left is Stable-Baselines3 and
PyTorch. Evaluations and the start are in neither. `quicgym train` sets GOMP_SPINCOUNT=10000 before
PyTorch is there; set it here to measure the same.
"""

from __future__ import annotations

import time
from collections import Counter
from typing import Annotated, Any

import numpy as np
import torch
import typer
from rich.progress import TextColumn
from rich.table import Table
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import VecEnv, VecEnvWrapper
from stable_baselines3.common.vec_env.base_vec_env import VecEnvStepReturn

from quicgym.agents.algorithms.registry import BUILT_IN
from quicgym.agents.algorithms.trainer import EpisodeTrainer
from quicgym.agents.training.configuration import ConfigError, TrainingConfig, load_training
from quicgym.agents.training.model import (
    check_hyperparameters,
    make_environments,
    sb3_trainer,
)
from quicgym.console import progress_bar, wide_console

ROUNDS = 4
PARTS = ("simulations", "rest of rollouts", "updates")


class _Timed(VecEnvWrapper):
    """Counts the time that steps take."""

    def __init__(self, environments: VecEnv) -> None:
        super().__init__(environments)
        self.spent_s = 0.0

    def reset(self) -> Any:
        return self.venv.reset()

    def step_wait(self) -> VecEnvStepReturn:
        begin = time.perf_counter()
        result = self.venv.step_wait()
        self.spent_s += time.perf_counter() - begin
        return result


class _Still(_Timed):
    """Environments in which nothing happens, and which cost nothing."""

    def reset(self) -> Any:
        shape = (self.num_envs, *(self.observation_space.shape or ()))
        self._observations = np.zeros(shape, np.float32)
        return self._observations

    def step_async(self, actions: np.ndarray) -> None:
        pass

    def step_wait(self) -> VecEnvStepReturn:
        rows = self.num_envs
        none = np.zeros(rows, np.float32)
        return self._observations, none, none.astype(bool), [{} for _ in range(rows)]


class _Stopwatch(BaseCallback):
    """Tells rollouts from updates; PyTorch has its threads where `quicgym train` gives them."""

    def __init__(self) -> None:
        super().__init__()
        self.rollouts_s = 0.0
        self._threads = torch.get_num_threads()

    def _on_rollout_start(self) -> None:
        torch.set_num_threads(1)
        self._begin = time.perf_counter()

    def _on_rollout_end(self) -> None:
        torch.set_num_threads(self._threads)
        self.rollouts_s += time.perf_counter() - self._begin

    def _on_step(self) -> bool:
        return True


class Trained:
    """A training in several parts, and the time that each of PARTS took, in s."""

    def __init__(self, config: TrainingConfig, environments: _Timed) -> None:
        """Makes the model; the environments are the caller's to close."""
        self._model = sb3_trainer(config, environments, check_hyperparameters(config)).model
        self._model.learn(1)  # one rollout, which begins the episodes, and warms up
        self._environments = environments
        self.spent_s: Counter[str] = Counter()
        self.steps = 0

    def go_on(self, steps: int) -> None:
        """Trains for at least as many steps."""
        watch, simulated_s = _Stopwatch(), self._environments.spent_s
        before, begin = self._model.num_timesteps, time.perf_counter()
        self._model.learn(steps, callback=watch, reset_num_timesteps=False)
        elapsed_s = time.perf_counter() - begin
        simulated_s = self._environments.spent_s - simulated_s
        parts = (simulated_s, watch.rollouts_s - simulated_s, elapsed_s - watch.rollouts_s)
        self.spent_s.update(dict(zip(PARTS, parts, strict=True)))
        self.steps += self._model.num_timesteps - before

    @property
    def steps_per_second(self) -> float:
        """By the clock."""
        return self.steps / sum(self.spent_s.values())


def training_speed(
    config: Annotated[str, typer.Argument(help="A name from configs/training, or a YAML.")] = "ppo",
    changes: Annotated[
        list[str] | None, typer.Argument(metavar="[KEY=VALUE]...", help="Fields to change.")
    ] = None,
    steps: Annotated[float, typer.Option(min=1, help="Of each of the two trainings.")] = 1e6,
) -> None:
    """Print the speed of a training and of its learning alone, and where the time goes."""
    try:
        chosen = load_training(config, changes or ())
        check_hyperparameters(chosen)
    except ConfigError as error:
        raise typer.BadParameter(str(error)) from error
    if issubclass(chosen.entry.implementation_class, EpisodeTrainer):
        others = [
            entry.name
            for entry in BUILT_IN.values()
            if not issubclass(entry.implementation_class, EpisodeTrainer)
        ]
        raise typer.BadParameter(
            f"{config} trains with {chosen.algorithm}, which plays its episodes itself; "
            f"this measures {', '.join(others)}"
        )
    environments = make_environments(chosen)
    try:
        trainings = {
            chosen.name: Trained(chosen, _Timed(environments)),
            "on environments that cost nothing": Trained(chosen, _Still(environments)),
        }
        with progress_bar(TextColumn("rounds")) as progress:
            for _ in progress.track(range(ROUNDS), description=chosen.name):
                for training in trainings.values():
                    training.go_on(round(steps / ROUNDS))
    finally:
        environments.close()
    table = Table(title="Steps per second of training", title_justify="left")
    for column in ("training", "steps/s", *(f"{part} (%)" for part in PARTS), "steps"):
        table.add_column(column, justify="left" if column == "training" else "right")
    for name, training in trainings.items():
        total_s = sum(training.spent_s.values())
        shares = (f"{100 * training.spent_s[part] / total_s:.0f}" for part in PARTS)
        table.add_row(name, f"{training.steps_per_second:,.0f}", *shares, f"{training.steps:,}")
    wide_console().print(table)
    whole, alone = (training.steps_per_second for training in trainings.values())
    print(f"the whole is {whole / alone:.2f} times as fast as its learning alone")


if __name__ == "__main__":
    typer.run(training_speed)
