"""AggreVaTe for coordinates of a Box: learn where to set them from what constant settings earn.

Paths are drawn; each is played with constant actions, which differ from the action that the policy
began with in one coordinate, and then by the current policy. At the decisions that the policy met,
the value of a setting is the mean reward that its own episode has from that time on. The network is
then made to choose the coordinate whose value, averaged over a bell around it, is the highest on
average over all decisions so far with what was observed there. So a setting is not judged by a
single episode, in which chance decides, but by those of all paths that look alike.

Several coordinates are learned side by side, each as if the others stayed where they began. Those
that are not named never move.

Ross and Bagnell, "Reinforcement and Imitation Learning via Interactive No-Regret Learning", 2014.
There an expert plays on from the decision; here constant settings stand for it, which were played
from the beginning and have a value at every decision on the path.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from gymnasium.spaces import Box

from quicgym.agents.algorithms.replay import (
    ReplayAlgorithm,
    Trajectories,
    check_counts,
    check_decisions,
    check_one_flow,
)
from quicgym.envs.actions import find_action_space
from quicgym.envs.episodes import EpisodeChoice
from quicgym.envs.sb3 import Sb3VecEnv
from quicgym.yaml_files import closest

_MOST = 1.0  # of an advantage, in rewards: an episode in which everything goes wrong weighs no more


class CoordinateAggrevate(ReplayAlgorithm):
    """Trains a policy of an environment whose actions are settings, such as Tuning or Scale.

    Args:
        policy: "MlpPolicy".
        env: With one open flow in each simulation.
        learning_rate: A number, or a schedule.
        values: The settings that are compared, from -1 to 1 and rising, by coordinate.
        paths: That are drawn in an iteration.
        rollouts: Episodes of the policy on each of them, with seeds of their own.
        width: Standard deviation of the bell, as a multiple of the distance of two settings.
        exploration: Highest probability of random settings at a decision; episodes have one each,
            from 0 on.
        keep_fraction: Share of the decisions in the policy's episodes that is learned from.
        n_updates: Of the weights in an iteration.
        batch_size: Decisions in an update.
        weight_decay: Of AdamW, for all layers but the last.
        policy_kwargs: Of the policy.
        seed: Of the weights.
        device: Of the network.

    Attributes:
        observations: Of all iterations, preprocessed as the network's features take them; float32,
            shape (n, features).
        advantages: Of the settings there, less the mean of the coordinate's; float32, shape
            (n, settings).
        base: The action that the policy began with; float32, shape (coordinates,); NaN before that.

    Raises:
        ValueError: An argument is not valid.
    """

    def __init__(
        self,
        policy: str,
        env: Sb3VecEnv,
        learning_rate: Any = 1e-3,
        values: Mapping[str, Sequence[float]] | None = None,
        paths: int = 64,
        rollouts: int = 3,
        width: float = 0.5,
        exploration: float = 0.1,
        keep_fraction: float = 0.15,
        n_updates: int = 400,
        batch_size: int = 1024,
        weight_decay: float = 0.1,
        policy_kwargs: dict[str, Any] | None = None,
        seed: int | None = None,
        device: str = "auto",
    ) -> None:
        """Makes the network; nothing has been played."""
        check_counts(paths=paths, rollouts=rollouts, n_updates=n_updates, batch_size=batch_size)
        if not 0 <= exploration <= 1:
            raise ValueError(f"exploration = {exploration}: give a probability")
        if not 0 < keep_fraction <= 1:
            raise ValueError(f"keep_fraction = {keep_fraction}: give a share above 0")
        if not width > 0:
            raise ValueError(f"width = {width}: give a number above 0")
        check_one_flow(env, "coordinate-aggrevate")
        self._settings = _settings(env, values)
        self._width = width
        self._weight_decay = weight_decay
        super().__init__(
            policy,
            env,
            learning_rate,
            policy_kwargs=policy_kwargs,
            seed=seed,
            device=device,
            action_spaces=(Box,),
        )
        self._paths, self._rollouts = paths, rollouts
        self._exploration, self._keep_fraction = exploration, keep_fraction
        self._updates, self._batch_size = n_updates, batch_size
        self.observations = self._preprocess(np.zeros_like(self._batch.observations[:0]))
        self.advantages = torch.zeros(0, sum(len(numbers) for _, numbers in self._settings))
        self.base = torch.full((self.action_space.shape or (0,)), torch.nan)

    def _setup_model(self) -> None:
        super()._setup_model()
        # The last layer holds the coordinates that are not learned: nothing may pull at them.
        last: Any = self.policy.action_net
        of_last = {id(parameter) for parameter in last.parameters()}
        others = [p for p in self.policy.parameters() if id(p) not in of_last]
        self.policy.optimizer = torch.optim.AdamW(
            [{"params": others, "weight_decay": self._weight_decay},
             {"params": list(last.parameters()), "weight_decay": 0.0}],
            lr=self.lr_schedule(1.0),
        )  # fmt: skip

    def _act(self, preprocessed: torch.Tensor) -> torch.Tensor:
        outputs: torch.Tensor = self.policy.action_net(self._latent(preprocessed))
        return outputs

    def collect_rollouts(self, rng: np.random.Generator) -> Iterator[np.ndarray]:
        """Plays newly drawn paths; yields the mean rewards of the policy's episodes.

        Raises:
            ScenarioError: There is no decision to learn from.
        """
        if self.base.isnan().any():
            with torch.inference_mode():
                nothing = self._preprocess(np.zeros_like(self._batch.observations[:1]))
                self.base = self._act(nothing)[0].clamp(-1.0, 1.0).cpu().clone()
        paths = [self._batch.source.draw(rng, None) for _ in range(self._paths)]
        constant = self.play_settings(paths)
        episodes = [
            EpisodeChoice(path.scenario, int(rng.integers(2**63)))
            for path in paths
            for _ in range(self._rollouts)
        ]
        exploration = rng.random(len(episodes)) * self._exploration
        features, places = [], []

        def decide(part: slice, step: int, runs: np.ndarray) -> np.ndarray:
            seen = self._preprocess(self._batch.observations[: len(runs)])
            kept = np.flatnonzero(
                self._takes_effect(runs) & (rng.random(len(runs)) < self._keep_fraction)
            )
            features.append(seen[kept])
            places.append((np.full(len(kept), step), part.start + kept))
            with torch.inference_mode():
                actions = self._act(seen).clamp(-1.0, 1.0).cpu().numpy()
            explores = rng.random(len(runs)) < exploration[part]
            for coordinate, numbers in self._settings:
                drawn = rng.choice(numbers, size=len(runs))
                actions[:, coordinate] = np.where(explores, drawn, actions[:, coordinate])
            return actions

        trajectories = self._play(episodes, decide)
        yield trajectories.mean_rewards()
        steps, of_episodes = (np.concatenate(column) for column in zip(*places, strict=True))
        check_decisions(len(steps), episodes)
        values = constant.values_of_groups(
            of_episodes // self._rollouts,
            self.advantages.shape[1],
            trajectories.times_s[steps, of_episodes],
        )
        self.observations = torch.cat([self.observations, torch.cat(features)])
        advantages = torch.from_numpy(self.advantages_of(values)).float()
        self.advantages = torch.cat([self.advantages, advantages])

    def play_settings(self, paths: Sequence[EpisodeChoice]) -> Trajectories:
        """Plays each path with each setting; the settings of a path are side by side."""
        base = self.base.numpy()
        actions = []
        for coordinate, numbers in self._settings:
            for number in numbers:
                actions.append(base.copy())
                actions[-1][coordinate] = number
        table = np.array(actions)
        episodes = [path for path in paths for _ in actions]

        def decide(part: slice, step: int, runs: np.ndarray) -> np.ndarray:
            chosen: np.ndarray = table[np.arange(part.start, part.stop) % len(table)]
            return chosen

        return self._play(episodes, decide)

    def advantages_of(self, values: np.ndarray) -> np.ndarray:
        """Returns values less the mean over the settings of the same coordinate, within bounds."""
        parts, first = [], 0
        for _, numbers in self._settings:
            part = values[:, first : first + len(numbers)]
            parts.append(part - part.mean(axis=1, keepdims=True))
            first += len(numbers)
        return np.concatenate(parts, axis=1).clip(-_MOST, _MOST)

    def expected(self, actions: torch.Tensor, advantages: torch.Tensor) -> torch.Tensor:
        """Returns what actions are worth: the mean over bells around their coordinates.

        Args:
            actions: Shape (rows, coordinates).
            advantages: Of the settings, shape (rows, settings).

        Returns:
            Sum over the coordinates that are learned, of shape (rows,).
        """
        total, first = torch.zeros(len(actions), device=actions.device), 0
        for coordinate, numbers in self._settings:
            grid = torch.tensor(numbers, dtype=torch.float32, device=actions.device)
            deviation = self._width * (grid[-1] - grid[0]) / (len(grid) - 1)
            # Beyond the ends the bell stands at the end.
            place = actions[:, coordinate].clamp(grid[0], grid[-1])
            # A gradient there, too, that leads back.
            place = place + 0.1 * (actions[:, coordinate] - actions[:, coordinate].detach())
            weights = (-((place[:, None] - grid) ** 2) / (2 * deviation**2)).softmax(dim=1)
            total = total + (weights * advantages[:, first : first + len(grid)]).sum(dim=1)
            first += len(grid)
        return total

    def train(self) -> None:
        """Learns from all comparisons so far."""
        worth = []
        for _ in range(self._updates):
            chosen = torch.randint(len(self.observations), (self._batch_size,))
            actions = self._act(self.observations[chosen])
            expected = self.expected(actions, self.advantages[chosen].to(self.device)).mean()
            self.policy.optimizer.zero_grad()
            (-expected).backward()
            self.policy.optimizer.step()
            worth.append(expected.item())
        self._n_updates += self._updates
        self.logger.record("train/expected_advantage", float(np.mean(worth)))
        self.logger.record("train/comparisons", len(self.observations))


def _settings(
    env: Sb3VecEnv, values: Mapping[str, Sequence[float]] | None
) -> list[tuple[int, np.ndarray]]:
    """Returns the place and the settings of each coordinate that is learned."""
    environment = env.environments.environment
    space = find_action_space(environment.action_space_name)
    if space.is_relative or space.choices:
        raise ValueError(
            f"the actions of {environment.id} are no settings that can be held; "
            "take Tuning or Scale"
        )
    if not values:
        raise ValueError(
            f"values = {values!r}: give a list of settings for one or more of "
            f"{', '.join(space.coordinates)}"
        )
    settings = []
    for name, numbers in values.items():
        if name not in space.coordinates:
            raise ValueError(
                f"values: no coordinate {name!r}; {closest(name, tuple(space.coordinates))}"
            )
        grid = np.array(numbers, dtype=np.float32)
        rises = grid.ndim == 1 and len(grid) > 1 and bool((np.diff(grid) > 0).all())
        if not rises or not (np.abs(grid) <= 1).all():
            raise ValueError(
                f"values.{name} = {numbers}: give two numbers or more from -1 to 1, in rising order"
            )
        settings.append((space.coordinates.index(name), grid))
    return settings
