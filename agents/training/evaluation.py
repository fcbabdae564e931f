"""Evaluations during a training, and the best policy so far, which is published."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from quicgym.agents.algorithms.trainer import Trainer
from quicgym.agents.evaluation.rollouts import play_all
from quicgym.agents.evaluation.statistics import interquartile_mean
from quicgym.agents.evaluation.summary import keep_runs
from quicgym.agents.evaluation.tensorboard import EvaluationWriter
from quicgym.agents.policies.learned import LearnedPolicy
from quicgym.agents.training.configuration import TrainingConfig
from quicgym.agents.training.folder import RunFolder
from quicgym.agents.training.policies import policy_of, write_policy
from quicgym.agents.training.progress import TrainingProgress
from quicgym.agents.training.worlds import World, Worlds
from quicgym.envs.rewards import find_reward
from quicgym.envs.scenarios.suites import SELECTION_SEED
from quicgym.envs.simulation.run import Run


@dataclass
class _Best:
    """The best policy so far."""

    reward: float = -math.inf
    step: int = 0
    score: float = -math.inf  # by which it was chosen
    rewards: list[float] = field(default_factory=list)  # on the suite
    weights: dict[str, torch.Tensor] = field(default_factory=dict)


class Evaluations:
    """Measures a policy on the evaluation's suite, and publishes the best one so far.

    `last_reward` is the interquartile mean of the last evaluation's rewards; NaN before the first.
    `worlds` has the rewards of `evaluation.controllers` on the suite; with None, the highest
    interquartile mean is the best. With `start_counts` the policy at step 0 may be the best one.
    Without, it is only until the next evaluation, so that the best reward is one that training has
    led to.
    """

    def __init__(
        self,
        config: TrainingConfig,
        trainer: Trainer,
        folder: RunFolder,
        suite: list[tuple[Any, int]],
        worlds: Worlds | None,
        command: str,
        writer: EvaluationWriter,
        progress: TrainingProgress,
        *,
        start_counts: bool = True,
    ) -> None:
        """Takes what is measured, and where results go."""
        self._config = config
        self._reward = find_reward(config.environment.reward)
        self._trainer = trainer
        self._folder = folder
        self._suite = suite
        self._worlds = worlds
        self._command = command
        self._writer = writer
        self._progress = progress
        self._start_counts = start_counts
        self._best = _Best()
        self._best_runs: list[Run] | None = None
        self._records: list[dict[str, Any]] = []
        self.last_reward = math.nan

    @property
    def best_reward(self) -> float:
        """Interquartile mean reward of the best policy on the suite."""
        return self._best.reward

    @property
    def best_step(self) -> int:
        """Step at which the best policy was evaluated."""
        return self._best.step

    @property
    def best_worlds(self) -> list[World]:
        """How the best policy did in each world; empty without controllers to compare it with."""
        return self._worlds.compare(np.array(self._best.rewards)) if self._worlds else []

    def state(self) -> dict[str, Any]:
        """Returns what a checkpoint keeps of the best policy."""
        return {"best": dict(self._best.__dict__)}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Takes the best policy from a checkpoint, and the results up to it from the folder."""
        best = _Best(**state["best"])
        if not isinstance(best.step, int) or not math.isfinite(best.reward + best.score):
            raise ValueError("the best policy's step, reward or score is no number")
        policy_of(self._trainer, self._config).actor.load_state_dict(best.weights)  # raises
        self._best = best
        self._records = [
            record for record in self._folder.evaluations() if record["step"] <= state["step"]
        ]

    def measure(self) -> None:
        """Measures the policy."""
        step = self._trainer.step
        self._progress.evaluating(self._config.evaluation.suite)
        policy = policy_of(self._trainer, self._config)
        runs = self._play(policy)
        records = [
            {
                "step": step,
                "scenario": scenario.name,
                "seed": seed,
                **run.evaluation,
            }
            for (scenario, seed), run in zip(self._suite, runs, strict=True)
        ]
        self._records += records
        rewards = np.array([record["reward"] for record in records])
        self.last_reward = float(interquartile_mean(rewards))
        worlds = self._worlds.compare(rewards) if self._worlds else []
        worst = min(worlds, key=lambda world: world.difference.value, default=None)
        score = self.last_reward if worst is None else worst.difference.value
        replaces_start = step > 0 == self._best.step and not self._start_counts
        if score > self._best.score or replaces_start:
            weights = policy.actor.state_dict()
            self._best = _Best(self.last_reward, step, score, rewards.tolist(), weights)
            self._best_runs = runs
        self._writer.evaluation(step, records)
        self._folder.write_evaluations(self._records)
        self.publish()
        text = f"IQM reward {self.last_reward:.4f} on {self._config.evaluation.suite}"
        if worst is None:
            text += f" (best {self._best.reward:.4f})"
        else:
            text += f"; worst world {worst.name}: {score:+.4f} to {worst.best}"
            text += f" (best {self._best.score:+.4f})"
        self._progress.evaluated(step, text)

    def keep_best(self) -> None:
        """Writes the best policy and its evaluation.

        Its runs are those by which it was chosen. They are played again only where an earlier
        process has chosen it.
        """
        policy, evaluation = self.publish(), self._config.evaluation
        keep_runs(
            self._best_runs or self._play(policy),
            policy.name,
            evaluation.suite,
            evaluation.seeds,
            self._folder.evaluation,
            first_seed=SELECTION_SEED,
            reward=self._reward,
            command=self._command,
        )

    def _play(self, policy: LearnedPolicy) -> list[Run]:
        threads = self._config.environment.threads or len(os.sched_getaffinity(0))
        return play_all(policy, self._suite, threads=threads, reward=self._reward)

    def publish(self) -> LearnedPolicy:
        """Writes the best policy, and returns it."""
        policy = policy_of(self._trainer, self._config)
        policy.actor.load_state_dict(self._best.weights)
        write_policy(
            self._folder.policy_path,
            policy,
            self._config,
            self._command,
            self._best.step,
            self._best.reward,
        )
        return policy
