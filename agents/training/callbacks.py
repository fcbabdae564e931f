"""What happens between the rollouts of a training: progress, evaluations, checkpoints.

At every evaluation a checkpoint is written, and all random generators and all simulations begin
anew from a seed that comes from the run's seed and the number of steps so far. So a checkpoint
needs no state of simulations, and a run that was killed and resumed ends with the very same weights
as one that was not.
"""

from __future__ import annotations

import math
import os
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import KVWriter, Logger
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm

from quicgym import __version__, _core
from quicgym.agents.algorithms.advantage_regression import AdvantageRegression
from quicgym.agents.evaluation.rollouts import METRICS, play_all
from quicgym.agents.evaluation.statistics import interquartile_mean
from quicgym.agents.evaluation.summary import evaluate_here
from quicgym.agents.evaluation.tensorboard import EvaluationWriter
from quicgym.agents.policies.learned import LearnedPolicy, save_policy
from quicgym.agents.policies.stable_baselines3 import export_policy
from quicgym.agents.training.configuration import TrainingConfig
from quicgym.agents.training.folder import RunFolder
from quicgym.agents.training.model import architecture_of, decisions_of
from quicgym.console import say
from quicgym.envs.rewards import Reward
from quicgym.envs.sb3 import Sb3VecEnv
from quicgym.errors import UserError


class TrainingError(UserError):
    """Training cannot go on; what was reached is kept. The text says where, and what to do."""


@dataclass
class _Best:
    """The best policy so far."""

    reward: float = -math.inf
    step: int = 0
    weights: dict[str, torch.Tensor] = field(default_factory=dict)


class TrainingCallback(BaseCallback):
    """Between rollouts: progress, evaluation, checkpoints, and a new start of all randomness."""

    def __init__(
        self,
        config: TrainingConfig,
        folder: RunFolder,
        environments: Sb3VecEnv,
        suite: list[tuple[Any, int]],
        command: str,
        on_evaluation: Callable[[int, float, Path], None] | None,
    ) -> None:
        """Takes the arguments of `training.run.train`; `suite` is scenarios and seeds."""
        super().__init__()
        self._on_evaluation = on_evaluation
        self._config = config
        self._folder = folder
        self._environments = environments
        self._suite = suite
        self._command = command
        self._best = _Best()
        self._records: list[dict[str, Any]] = []
        self._earned: list[float] = []
        self._next_evaluation = 0
        self._evaluated_at = -1
        self._resumed_at: int | None = None
        self._console = Console(stderr=True)
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.completed:,} of {task.total:,} steps"),
            TextColumn("{task.fields[rate]}"),
            TimeRemainingColumn(),
            console=self._console,
            disable=not self._console.is_terminal,
        )
        self._task = self._progress.add_task(config.name, total=config.steps, rate="")

    @property
    def best_reward(self) -> float:
        """Of the best policy on the suite."""
        return self._best.reward

    def __enter__(self) -> TrainingCallback:
        """Shows the progress and opens the event file."""
        self._begin_time, self._begin_step = time.monotonic(), self._resumed_at or 0
        self._torch_threads = torch.get_num_threads()
        purge = None if self._resumed_at is None else self._resumed_at + 1
        self._writer = EvaluationWriter(self._folder.tensorboard, purge_step=purge)
        self._progress.start()
        return self

    def __exit__(self, *exception: object) -> None:
        """Closes both."""
        self._progress.stop()
        self._writer.close()
        torch.set_num_threads(self._torch_threads)

    def restore(self, model: BaseAlgorithm, state: Mapping[str, Any]) -> None:
        """Puts a model where a checkpoint was taken."""
        model.set_parameters(state["parameters"], exact_match=True, device=model.device)
        with torch.no_grad():
            for name, variable in _variables(model).items():
                variable.copy_(state["variables"][name])
        model.num_timesteps = self._resumed_at = state["step"]
        model._n_updates = state["updates"]
        if isinstance(model, OffPolicyAlgorithm):
            _restore_replay(model, state["replay"])
        if isinstance(model, AdvantageRegression):
            model.observations, model.advantages = state["comparisons"]
        self._best = _Best(**state["best"])
        self._records = [
            record for record in self._folder.evaluations() if record["step"] <= state["step"]
        ]
        self._next_evaluation = self._evaluated_at = state["step"]
        say(f"{self._folder.directory}: going on from step {state['step']:,}")

    def _init_callback(self) -> None:
        self.model.set_logger(Logger(folder=None, output_formats=[_ScalarWriter(self._writer)]))

    def _on_rollout_start(self) -> None:
        # A rollout's small batches gain nothing by threads, which wait where simulations could run.
        torch.set_num_threads(1)
        if self._broken_losses():
            self.check_finite()
        step = self.num_timesteps
        self._progress.update(self._task, completed=step, rate=self._rate())
        self._set_std(step)
        if step < self._next_evaluation:
            return
        if step > self._evaluated_at:
            self._keep()
        self._next_evaluation = step + self._config.evaluation.interval_steps
        self._begin_anew(step)

    def _set_std(self, step: int) -> None:
        start = self._config.start
        if start.std is None or start.final_std is None:
            return
        share = min(1.0, step / self._config.steps)
        policy: Any = self.model.policy
        policy.log_std.requires_grad_(False)
        policy.log_std.fill_(math.log(start.std) + share * math.log(start.final_std / start.std))

    def _on_rollout_end(self) -> None:
        torch.set_num_threads(self._torch_threads)
        if self._earned:
            self.logger.record("rollout/reward", float(np.mean(self._earned)))
            self._earned.clear()
        self.logger.record("time/steps_per_second", self._steps_per_second())

    def _on_step(self) -> bool:
        # The rollout's buffer has more: PPO adds to an episode's end the value of what follows.
        self._earned.append(float(self.locals["rewards"].mean()))
        return True

    def finish(self) -> None:
        """Evaluates and keeps what the last rollouts have taught."""
        if self.model is not None and self.num_timesteps > self._evaluated_at:
            self._keep()
            self.logger.dump(self.num_timesteps)  # what the last update has recorded
        self._progress.update(self._task, completed=self._config.steps)
        evaluate_here(
            self._publish(),
            self._config.evaluation.suite,
            self._config.evaluation.seeds,
            self._folder.evaluation,
            reward=Reward(self._config.environment.reward),
            threads=self._threads(),
            command=self._command,
        )

    def check_finite(self) -> None:
        """Raises TrainingError where the last update has left something that is no number."""
        broken = self._broken_losses()
        if not all(torch.isfinite(weight).all() for weight in self.model.policy.parameters()):
            broken.append("the network's weights are not finite")
        if broken:
            raise self.not_finite("; ".join(broken))

    def _broken_losses(self) -> list[str]:
        return [
            f"{name} is {value}"
            for name, value in self.logger.name_to_value.items()
            if name.startswith("train/") and "loss" in name and not np.isfinite(value)
        ]

    def not_finite(self, what: str) -> TrainingError:
        """Returns the error for numbers that are none."""
        return TrainingError(
            f"step {self.model.num_timesteps:,}: {what}. Training stops; "
            f"{self._last_checkpoint()}. Lower hyperparameters.learning_rate"
        )

    def not_written(self, error: OSError) -> TrainingError:
        """Returns the error for a disk that is full, or worse."""
        return TrainingError(
            f"step {self.model.num_timesteps:,}: {self._folder.directory} cannot be written to "
            f"({error.strerror or error}). Training stops; {self._last_checkpoint()}. "
            "Make room and go on with --resume"
        )

    def _last_checkpoint(self) -> str:
        checkpoints = self._folder.checkpoints()
        return (
            f"the last checkpoint is {checkpoints[-1]}" if checkpoints else "there is no checkpoint"
        )

    def _keep(self) -> None:
        """Evaluates, keeps the best policy, and writes a checkpoint."""
        self.check_finite()
        step = self.num_timesteps
        policy = self._policy()
        reward = Reward(self._config.environment.reward)
        episodes = play_all(policy, self._suite, threads=self._threads(), reward=reward)
        records = [
            {
                "step": step,
                "scenario": scenario.name,
                "seed": seed,
                **{name: episode.metrics[name] for name in METRICS},
            }
            for (scenario, seed), episode in zip(self._suite, episodes, strict=True)
        ]
        self._records += records
        result = float(interquartile_mean(np.array([record["reward"] for record in records])))
        if result > self._best.reward:
            self._best = _Best(result, step, policy.actor.state_dict())
        self._writer.evaluation(step, records)
        self._folder.write_evaluations(self._records)
        self._publish()
        # Last, because what a checkpoint promises has to be there.
        checkpoint = self._folder.save_checkpoint(step, self._state())
        self._evaluated_at = step
        self._console.print(
            f"step {step:>12,}  reward {result:.4f} on {self._config.evaluation.suite} "
            f"(best {self._best.reward:.4f})  {self._rate()}",
            highlight=False,
        )
        if self._on_evaluation is not None:
            self._on_evaluation(step, result, checkpoint)

    def _state(self) -> dict[str, Any]:
        state = {
            "step": self.num_timesteps,
            "updates": self.model._n_updates,
            "parameters": self.model.get_parameters(),
            "variables": {name: value.detach() for name, value in _variables(self.model).items()},
            "best": dict(self._best.__dict__),
        }
        if isinstance(self.model, OffPolicyAlgorithm):
            state["replay"] = _replay(self.model)
        if isinstance(self.model, AdvantageRegression):
            state["comparisons"] = [self.model.observations, self.model.advantages]
        return state

    def _threads(self) -> int:
        return self._config.environment.threads or len(os.sched_getaffinity(0))

    def _publish(self) -> LearnedPolicy:
        """Writes the best policy, and returns it."""
        policy = self._policy()
        policy.actor.load_state_dict(self._best.weights)
        save_policy(
            self._folder.policy_path,
            policy,
            architecture_of(self._config),
            {
                "command": self._command,
                "config": self._config.model_dump(mode="json"),
                "seed": self._config.seed,
                "step": self._best.step,
                "reward": self._best.reward,
                "version": __version__,
                "commit": _core.commit,
            },
        )
        return policy

    def _policy(self) -> LearnedPolicy:
        config = self._config
        return export_policy(self.model, config.name, architecture_of(config), decisions_of(config))

    def _begin_anew(self, step: int) -> None:
        """Seeds everything random from the run's seed and the step."""
        words = np.random.SeedSequence([self._config.seed, step]).generate_state(4)
        seeds = [int(word) for word in words]
        random.seed(seeds[0])
        np.random.seed(seeds[1])
        torch.manual_seed(seeds[2])
        model: Any = self.model
        model.action_space.seed(seeds[2])
        self._environments.seed(seeds[3])
        model._last_obs = self._environments.reset()
        model._last_episode_starts = np.ones(self._environments.num_envs, dtype=bool)

    def _steps_per_second(self) -> float:
        elapsed = time.monotonic() - self._begin_time
        return (self.num_timesteps - self._begin_step) / max(elapsed, 1e-9)

    def _rate(self) -> str:
        rate = self._steps_per_second()
        return f"{rate:,.0f} steps/s" if rate > 0 else ""


class _ScalarWriter(KVWriter):
    """Stable-Baselines3's records into our event file."""

    def __init__(self, writer: EvaluationWriter) -> None:
        self._writer = writer

    def write(self, key_values: dict[str, Any], key_excluded: Any, step: int = 0) -> None:
        values = {name: float(value) for name, value in key_values.items()}
        ours = ("time/steps_per_second",)
        self._writer.scalars(
            step,
            {
                name: value
                for name, value in values.items()
                if name in ours or not name.startswith("time/")
            },
        )

    def close(self) -> None:
        pass


def _variables(model: BaseAlgorithm) -> dict[str, torch.Tensor]:
    """What is learned outside of networks: the logarithm of SAC's entropy coefficient."""
    _, names = model._get_torch_save_params()
    return {name: getattr(model, name) for name in names}


_REPLAY = ("observations", "next_observations", "actions", "rewards", "dones", "timeouts")


def _replay(model: OffPolicyAlgorithm) -> dict[str, Any]:
    buffer: Any = model.replay_buffer
    filled = buffer.buffer_size if buffer.full else buffer.pos
    arrays = {name: torch.from_numpy(getattr(buffer, name)[:filled]) for name in _REPLAY}
    return {**arrays, "position": buffer.pos, "full": buffer.full}


def _restore_replay(model: OffPolicyAlgorithm, state: Mapping[str, Any]) -> None:
    buffer: Any = model.replay_buffer
    for name in _REPLAY:
        array = state[name].numpy()
        getattr(buffer, name)[: len(array)] = array
    buffer.pos, buffer.full = state["position"], state["full"]
