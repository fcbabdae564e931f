"""AggreVaTe for choices: learn which controller to run from what each earns on the same path.

Paths are drawn; each is played once with every controller from its beginning to its end, and then
by the current policy. At the decisions that the policy met, the value of a choice is the mean
reward that its own episode has from that time on. The network learns to predict how much better
than the mean each choice is, from the observation, over all decisions so far; the policy takes the
choice with the highest prediction.

Ross and Bagnell, "Reinforcement and Imitation Learning via Interactive No-Regret Learning", 2014.
There an expert plays on from the decision; here the controllers stand for it, each of which has
played from the beginning.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from quicgym.agents.algorithms.advantage_regression import AdvantageRegression, places_of
from quicgym.agents.algorithms.own_decisions import Sampling, play_policy
from quicgym.agents.algorithms.replay import Trajectories
from quicgym.envs.episodes import EpisodeChoice
from quicgym.envs.sb3 import Sb3VecEnv


class ChoiceAggrevate(AdvantageRegression):
    """Trains a policy of Switch.

    Args:
        policy: "MlpPolicy".
        env: The environments. Where an episode has several agents, all of them have what is
            compared.
        learning_rate: A number, or a schedule.
        controllers: That are compared and chosen, by name; None: all of the environment's.
        paths: That are drawn in an iteration.
        rollouts: Episodes of the policy on each of them, with seeds of their own.
        margin: Of reward, by which another controller has to be better than the one in force.
        exploration: Highest probability of a random controller at a decision; episodes have one
            each, from 0 on.
        keep_fraction: Share of the decisions in the policy's episodes that is learned from; in one
            with several agents each has its part of that.
        n_updates: Of the weights in an iteration.
        batch_size: Decisions in an update.
        weight_decay: Of AdamW.
        policy_kwargs: Of the policy.
        seed: Of the weights.
        device: Of the network.

    Raises:
        ValueError: An argument is not valid.
    """

    def __init__(
        self,
        policy: str,
        env: Sb3VecEnv,
        learning_rate: Any = 1e-3,
        controllers: Sequence[str] | None = None,
        paths: int = 64,
        rollouts: int = 2,
        margin: float = 0.0,
        exploration: float = 0.1,
        keep_fraction: float = 1.0,
        n_updates: int = 100,
        batch_size: int = 1024,
        weight_decay: float = 1.0,
        policy_kwargs: dict[str, Any] | None = None,
        seed: int | None = None,
        device: str = "auto",
    ) -> None:
        """Makes the network; nothing has been played."""
        self._sampling = Sampling(paths, rollouts, exploration, keep_fraction)
        if margin < 0:
            raise ValueError(f"margin = {margin}: give a reward of 0 or more")
        super().__init__(
            policy,
            env,
            learning_rate,
            places_of(controllers, env),
            n_updates=n_updates,
            batch_size=batch_size,
            weight_decay=weight_decay,
            policy_kwargs=policy_kwargs,
            seed=seed,
            device=device,
        )
        self._margin = margin
        first = self.batch.observation_names.index(f"action_{self.batch.choices[0]}")
        self._in_force = first + self._choices

    def collect_rollouts(self, rng: np.random.Generator) -> Iterator[np.ndarray]:
        """Plays newly drawn paths; yields the mean rewards of the policy's episodes.

        Raises:
            ScenarioError: There is no decision to learn from.
        """
        paths = [self.batch.source.draw(rng, None) for _ in range(self._sampling.paths)]
        constant = self.play_choices(paths)
        own = play_policy(
            self,
            paths,
            self._sampling,
            rng,
            act=self._best,
            explore=lambda actions, where: np.where(
                where, rng.choice(self._choices, len(actions)), actions
            ),
            note=lambda rows: self.batch.observations[rows][:, self._in_force],
        )
        yield own.mean_rewards
        values = constant.values_of_groups(own.paths, len(self._choices), own.times_s)
        advantages = values - values.mean(axis=1, keepdims=True)
        self._add(own.features, advantages + self._margin * own.notes)

    def play_choices(self, paths: Sequence[EpisodeChoice]) -> Trajectories:
        """Plays each path with each controller; the controllers of a path are side by side."""
        episodes = [path for path in paths for _ in self._choices]

        def decide(step: int, rows: np.ndarray, of_episodes: np.ndarray) -> np.ndarray:
            chosen: np.ndarray = self._choices[of_episodes % len(self._choices)]
            return chosen

        return self.play(episodes, decide)
