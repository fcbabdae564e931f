"""The decisions that a policy meets on drawn paths, which AggreVaTe's three forms learn from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import torch

from quicgym.agents.algorithms.replay import ReplayAlgorithm, check_counts, check_decisions
from quicgym.envs.episodes import EpisodeChoice
from quicgym.envs.preferences import Preference


@dataclass(frozen=True)
class Sampling:
    """How many paths are played, and which decisions on them are learned from.

    Attributes:
        paths: That are drawn in an iteration.
        rollouts: Episodes of the policy on each of them, with seeds of their own.
        exploration: Highest probability of a random action at a decision; episodes have one each,
            from 0 on.
        keep_fraction: Share of the decisions that is learned from; in an episode with several
            agents each has its part of that.

    Raises:
        ValueError: A number is not valid.
    """

    paths: int
    rollouts: int
    exploration: float
    keep_fraction: float

    def __post_init__(self) -> None:
        """Checks the numbers."""
        check_counts(paths=self.paths, rollouts=self.rollouts)
        if not 0 <= self.exploration <= 1:
            raise ValueError(f"exploration = {self.exploration}: give a probability")
        if not 0 < self.keep_fraction <= 1:
            raise ValueError(f"keep_fraction = {self.keep_fraction}: give a share above 0")


class OwnDecisions(NamedTuple):
    """Decisions of the policy's episodes; arrays have a row for each.

    Attributes:
        features: Observations, preprocessed.
        notes: What `note` returned for their rows.
        paths: The path that each was made on, by its place.
        times_s: In the simulation.
        mean_rewards: Of the episodes; shape (paths · rollouts,).
    """

    features: torch.Tensor
    notes: np.ndarray
    paths: np.ndarray
    times_s: np.ndarray
    mean_rewards: np.ndarray


def play_policy(
    algorithm: ReplayAlgorithm,
    paths: Sequence[EpisodeChoice],
    sampling: Sampling,
    rng: np.random.Generator,
    *,
    act: Callable[[torch.Tensor], np.ndarray],
    explore: Callable[[np.ndarray, np.ndarray], np.ndarray],
    note: Callable[[np.ndarray], np.ndarray] = lambda rows: rows,
) -> OwnDecisions:
    """Plays the policy on paths, with a few random actions.

    Args:
        algorithm: Whose policy it is.
        paths: That the settings were compared on.
        sampling: How often, and what is kept.
        rng: Of all draws.
        act: Returns the policy's actions for preprocessed observations.
        explore: Returns actions with random ones where a mask says so.
        note: Returns what else is to be known of rows of the batch.

    Raises:
        ScenarioError: There is no decision to learn from.
    """
    batch = algorithm.batch
    random_preference = batch.source.preference == "random"
    episodes = [
        replace(
            path,
            seed=int(rng.integers(2**63)),
            preference=Preference.draw(rng) if random_preference else path.preference,
        )
        for path in paths
        for _ in range(sampling.rollouts)
    ]
    exploration = rng.random(len(episodes)) * sampling.exploration
    features, notes, places = [], [], []

    def decide(step: int, rows: np.ndarray, of_episodes: np.ndarray) -> np.ndarray:
        seen = algorithm.preprocess(batch.observations[rows])
        keeps = rng.random(len(rows)) * algorithm.agents_beside(rows) < sampling.keep_fraction
        kept = np.flatnonzero(keeps & algorithm.takes_effect(rows))
        features.append(seen[kept])
        notes.append(note(rows[kept]))
        places.append((np.full(len(kept), step), of_episodes[kept]))
        return explore(act(seen), rng.random(len(rows)) < exploration[of_episodes])

    trajectories = algorithm.play(episodes, decide)
    steps, of_episodes = (np.concatenate(column) for column in zip(*places, strict=True))
    check_decisions(len(steps), episodes)
    return OwnDecisions(
        torch.cat(features),
        np.concatenate(notes),
        of_episodes // sampling.rollouts,
        trajectories.times_s[steps, of_episodes],
        trajectories.mean_rewards(),
    )
