"""Evaluations during a training, and the best policy so far, which is published."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from quicgym import __version__, _core
from quicgym.agents.evaluation.rollouts import play_all
from quicgym.agents.evaluation.statistics import interquartile_mean
from quicgym.agents.evaluation.tensorboard import EvaluationWriter
from quicgym.agents.policies.learned import LearnedPolicy, save_policy
from quicgym.agents.policies.stable_baselines3 import export_policy
from quicgym.agents.training.callbacks.base import PeriodicCallback
from quicgym.agents.training.callbacks.progress import ProgressCallback
from quicgym.agents.training.configuration import TrainingConfig
from quicgym.agents.training.folder import RunFolder
from quicgym.agents.training.model import architecture_of, decisions_of
from quicgym.envs.rewards import Reward


@dataclass
class _Best:
    """The best policy so far."""

    reward: float = -math.inf
    step: int = 0
    weights: dict[str, torch.Tensor] = field(default_factory=dict)


class EvaluationCallback(PeriodicCallback):
    """Measures the policy on the evaluation's suite, and publishes the best one so far.

    Args:
        config: What is trained.
        folder: Of the run.
        suite: Scenarios and seeds.
        command: The command line, to be kept with the policy.
        writer: Of the run's event file.
        progress: Where results are shown.

    Attributes:
        last_reward: Interquartile mean of the last evaluation's rewards; NaN before the first.
    """

    def __init__(
        self,
        config: TrainingConfig,
        folder: RunFolder,
        suite: list[tuple[Any, int]],
        command: str,
        writer: EvaluationWriter,
        progress: ProgressCallback,
    ) -> None:
        """Takes what is measured, and where results go."""
        super().__init__(config.evaluation.interval_steps)
        self._config = config
        self._folder = folder
        self._suite = suite
        self._command = command
        self._writer = writer
        self._progress = progress
        self._best = _Best()
        self._records: list[dict[str, Any]] = []
        self.last_reward = math.nan

    @property
    def best_reward(self) -> float:
        """Of the best policy on the suite."""
        return self._best.reward

    def state(self) -> dict[str, Any]:
        """Returns what a checkpoint keeps of the best policy."""
        return {"best": dict(self._best.__dict__)}

    def resume(self, state: Mapping[str, Any]) -> None:
        """Takes the best policy from a checkpoint, and the results up to it from the folder."""
        super().resume(state)
        self._best = _Best(**state["best"])
        self._records = [
            record for record in self._folder.evaluations() if record["step"] <= state["step"]
        ]

    def act(self, step: int) -> None:
        """Measures the policy."""
        policy = self._policy()
        reward = Reward(self._config.environment.reward)
        threads = self._config.environment.threads or len(os.sched_getaffinity(0))
        episodes = play_all(policy, self._suite, threads=threads, reward=reward)
        records = [
            {
                "step": step,
                "scenario": scenario.name,
                "seed": seed,
                **episode.metrics,
            }
            for (scenario, seed), episode in zip(self._suite, episodes, strict=True)
        ]
        self._records += records
        rewards = np.array([record["reward"] for record in records])
        self.last_reward = float(interquartile_mean(rewards))
        if self.last_reward > self._best.reward:
            self._best = _Best(self.last_reward, step, policy.actor.state_dict())
        self._writer.evaluation(step, records)
        self._folder.write_evaluations(self._records)
        self.publish()
        self._progress.evaluated(
            step,
            f"reward {self.last_reward:.4f} on {self._config.evaluation.suite} "
            f"(best {self._best.reward:.4f})",
        )

    def publish(self) -> LearnedPolicy:
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
