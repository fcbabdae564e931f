"""AggreVaTe: learn the values of settings at the decisions that a policy meets.

For a path that is known, the best setting is easily found: play the episode once with each. A
policy does not know the path. So paths are drawn; each is played with constant settings, and then
by the current policy. At the decisions that the policy met, the value of a setting is the mean
reward that its own episode has from that time on. A network learns to predict from the observation
how much better than the mean each setting is, over all decisions so far. So a setting is not judged
by a single episode, in which chance decides, but by those of all paths that look alike.

This file has what both forms share: their hyperparameters, and the decisions of the policy. The
settings are windows in `window_aggrevate.py`, and coordinates of a Box in
`coordinate_aggrevate.py`.

Of what cannot be observed, such as the number of the other flows, a prediction is the mean over
what it may be. Finding out about a path has no value here: that is left to slow start.

Ross and Bagnell, "Reinforcement and Imitation Learning via Interactive No-Regret Learning", 2014.
There an expert plays on from the decision; here constant settings stand for it, which were played
from the beginning and have a value at every decision on the path.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Annotated, Any, NamedTuple, TypeVar

import numpy as np
import torch
from pydantic import Field

from quicgym.agents.algorithms.episodes import check_decisions
from quicgym.agents.algorithms.trainer import (
    Count,
    EpisodeTrainer,
    NotNegative,
    Settings,
    Share,
)
from quicgym.envs.episodes import EpisodeChoice

HUBER_DELTA = 0.2  # of rewards: episodes in which everything goes wrong weigh no more


class AggrevateSettings(Settings):
    """The hyperparameters that both forms have.

    Attributes:
        paths: How many are drawn in an iteration.
        rollouts: Episodes of the policy on each path, with seeds of their own.
        exploration: Highest probability of a random action at a decision; episodes have one each,
            from 0 on.
        keep_fraction: Share of the decisions that is learned from; in an episode with several
            agents each has its part of that.
        n_updates: Updates of the weights in an iteration.
        batch_size: Decisions in an update.
        weight_decay: Weight decay of the optimizer AdamW.
    """

    paths: Count = 64
    rollouts: Count = 3
    exploration: Share = 0.1
    keep_fraction: Annotated[float, Field(gt=0, le=1)] = 0.15
    n_updates: Count = 400
    batch_size: Count = 1024
    weight_decay: NotNegative = 1.0


AnySettings = TypeVar("AnySettings", bound=AggrevateSettings)


class OwnDecisions(NamedTuple):
    """Decisions of the policy's episodes; arrays have a row for each.

    A row has observations, what `note` returned, the place of the path, and simulated
    times in s.

    `mean_rewards` are those of the episodes, shape (paths · rollouts,).
    """

    observations: torch.Tensor
    notes: np.ndarray
    paths: np.ndarray
    times_s: np.ndarray
    mean_rewards: np.ndarray


class Aggrevate(EpisodeTrainer[AnySettings]):
    """Common base of both forms: decisions of the policy, with a value for each setting.

    `observations` are those of all iterations.
    `advantages` are the settings' values there less the mean, a row for each observation. Both are
    float32.
    """

    kept = (*EpisodeTrainer.kept, "observations", "advantages")
    advantages: torch.Tensor

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        """Begins without decisions; see `EpisodeTrainer` for the arguments."""
        super().__init__(*arguments, **keywords)
        self.observations = torch.from_numpy(self.batch.observations[:0].copy())

    def play_policy(
        self,
        paths: Sequence[EpisodeChoice],
        rng: np.random.Generator,
        *,
        act: Callable[[torch.Tensor], np.ndarray],
        explore: Callable[[np.ndarray, np.ndarray], np.ndarray],
        note: Callable[[np.ndarray], np.ndarray] = lambda rows: rows,
    ) -> OwnDecisions:
        """Plays the policy on paths, with a few random actions.

        `act` returns the policy's actions for observations, `explore` actions with
        random ones where a mask says so, and `note` what else is to be known of rows of the batch.
        ScenarioError where the episodes have no decision to learn from.
        """
        batch, settings = self.batch, self.settings
        episodes = [
            replace(path, seed=int(rng.integers(2**63)))
            for path in paths
            for _ in range(settings.rollouts)
        ]
        exploration = rng.random(len(episodes)) * settings.exploration
        observations, notes, places = [], [], []

        def decide(step: int, rows: np.ndarray, of_episodes: np.ndarray) -> np.ndarray:
            seen = torch.from_numpy(batch.observations[rows])
            chance = rng.random(len(rows)) * self.episodes.agents_beside(rows)
            takes_effect = self.episodes.takes_effect(rows)
            kept = np.flatnonzero((chance < settings.keep_fraction) & takes_effect)
            observations.append(seen[kept])
            notes.append(note(rows[kept]))
            places.append((np.full(len(kept), step), of_episodes[kept]))
            return explore(act(seen), rng.random(len(rows)) < exploration[of_episodes])

        trajectories = self.play(episodes, decide)
        steps, of_episodes = (np.concatenate(column) for column in zip(*places, strict=True))
        check_decisions(len(steps), episodes)
        return OwnDecisions(
            torch.cat(observations),
            np.concatenate(notes),
            of_episodes // settings.rollouts,
            trajectories.times_s[steps, of_episodes],
            trajectories.mean_rewards(),
        )

    def add(self, observations: torch.Tensor, advantages: np.ndarray) -> None:
        """Adds decisions to those that are learned from."""
        self.observations = torch.cat([self.observations, observations])
        self.advantages = torch.cat([self.advantages, torch.from_numpy(advantages).float()])
