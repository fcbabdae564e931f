"""AggreVaTe over fixed windows: learn what windows are worth where the policy comes by.

For a path whose rate and flows are known, the best window is easily found: play the episode once
with each of a row of windows. A policy does not know the path. So paths are drawn; each is played
with fixed windows, from a small part of the path's fair share to a multiple of it, and then by the
policy of the day. At the decisions that the policy met, every factor that it could have chosen is
worth what the window that it leads to has earned as a fixed one from that time on; the window, that
is, to which it leads when it is taken a few times. So factors have windows far away in view, where
the difference is large, and the policy goes there in steps, deciding anew at each. What factors are
worth is what the network learns to predict from the observation, over all decisions so far; the
policy chooses the one with the highest prediction.

Of what cannot be observed, such as the number of the other flows, a prediction is the mean over
what it may be. A window that is worth trying for what it would show is worth no more than others
here: finding out about a path is left to slow start.

Ross and Bagnell, "Reinforcement and Imitation Learning via Interactive No-Regret Learning", 2014.
There an expert plays on from the decision; here fixed windows stand for it, which were played from
the beginning and tell of every decision on the path.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch

from quicgym.agents.algorithms.advantage_regression import AdvantageRegression
from quicgym.agents.algorithms.replay import (
    Course,
    check_counts,
    check_decisions,
    check_one_flow,
)
from quicgym.envs.actions import WINDOW_EXPONENTS
from quicgym.envs.batch import INFO_COLUMNS
from quicgym.envs.episodes import EpisodeChoice
from quicgym.envs.sb3 import Sb3VecEnv
from quicgym.envs.scenarios.fair_share import fair_window_bytes

_EXPONENTS = np.array(WINDOW_EXPONENTS)
_WINDOW = INFO_COLUMNS.index("flow_window_bytes")


class Aggrevate(AdvantageRegression):
    """Trains a policy of Window-v0.

    Args:
        policy: "MlpPolicy".
        env: With one open flow in each simulation.
        learning_rate: A number, or a schedule.
        paths: That are drawn in an iteration.
        visits: Episodes of the policy on each of them, with seeds of their own.
        windows: The fixed ones, as powers of 2 of `fair_window_bytes`, in rising order.
        repeats: How often a factor is taken to come to the window that it is worth.
        exploration: Highest probability of a random factor at a decision; episodes have one each,
            from 0 on.
        kept: Share of the decisions in the policy's episodes that is learned from.
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
        paths: int = 128,
        visits: int = 3,
        windows: Sequence[float] = (-4, -2.5, -1.5, -0.75, 0, 0.75, 1.5, 2.25, 3),
        repeats: int = 3,
        exploration: float = 0.1,
        kept: float = 0.15,
        n_updates: int = 400,
        batch_size: int = 1024,
        weight_decay: float = 1.0,
        policy_kwargs: dict[str, Any] | None = None,
        seed: int | None = None,
        device: str = "auto",
    ) -> None:
        """Makes the network; nothing has been played."""
        check_counts(paths=paths, visits=visits, repeats=repeats)
        grid = np.array(windows, dtype=np.float64)
        if grid.ndim != 1 or len(grid) < 2 or not (np.diff(grid) > 0).all():
            raise ValueError(f"windows = {windows}: give two exponents or more, in rising order")
        if not 0 <= exploration <= 1:
            raise ValueError(f"exploration = {exploration}: give a probability")
        if not 0 < kept <= 1:
            raise ValueError(f"kept = {kept}: give a share above 0")
        check_one_flow(env, "aggrevate")
        super().__init__(
            policy,
            env,
            learning_rate,
            np.arange(len(_EXPONENTS)),
            n_updates=n_updates,
            batch_size=batch_size,
            weight_decay=weight_decay,
            policy_kwargs=policy_kwargs,
            seed=seed,
            device=device,
        )
        self._paths, self._visits, self._windows = paths, visits, grid
        self._in_view = repeats * _EXPONENTS
        self._exploration, self._kept = exploration, kept
        # Begins small: a window that only grows takes for ever to simulate.
        self._lean_towards(WINDOW_EXPONENTS.index(-0.125))

    def _collect(self, random: np.random.Generator) -> Iterator[np.ndarray]:
        paths = [self._batch.source.draw(random, None) for _ in range(self._paths)]
        fair_bytes = np.array([fair_window_bytes(path.scenario) for path in paths])
        fixed = self._play_fixed(paths, fair_bytes)
        visits = [
            EpisodeChoice(path.scenario, int(random.integers(2**63)))
            for path in paths
            for _ in range(self._visits)
        ]
        wanders = random.random(len(visits)) * self._exploration
        condensed, places, windows_bytes = [], [], []

        def decide(part: slice, step: int, runs: np.ndarray) -> np.ndarray:
            seen = self._condense(self._batch.observations[: len(runs)])
            keeps = self._takes_effect(runs) & (random.random(len(runs)) < self._kept)
            kept = np.flatnonzero(keeps)
            condensed.append(seen[kept])
            places.append((np.full(len(kept), step), part.start + kept))
            windows_bytes.append(self._batch.info[kept, _WINDOW])
            strays = random.random(len(runs)) < wanders[part]
            strayed = random.integers(len(_EXPONENTS), size=len(runs))
            return np.where(strays, strayed, self._best(seen))

        course = self._play(visits, decide)
        yield course.means()
        steps, of_visits = (np.concatenate(column) for column in zip(*places, strict=True))
        check_decisions(len(steps), visits)
        path = of_visits // self._visits
        worth = self._worth(fixed, path, course.times_s[steps, of_visits])
        shares = np.concatenate(windows_bytes) / fair_bytes[path]
        self._add(torch.cat(condensed), self._advantages(worth, shares))

    def _play_fixed(self, paths: Sequence[EpisodeChoice], fair_bytes: np.ndarray) -> Course:
        """Plays each path with each window; the windows of a path are side by side."""
        episodes = [path for path in paths for _ in self._windows]
        targets = (fair_bytes[:, None] * 2.0**self._windows).ravel()

        def decide(part: slice, step: int, runs: np.ndarray) -> np.ndarray:
            window_bytes = self._batch.info[: len(runs), _WINDOW]
            missing = np.log2(targets[part] / window_bytes)
            nearest: np.ndarray = np.abs(missing[:, None] - _EXPONENTS).argmin(axis=1)
            return nearest

        return self._play(episodes, decide)

    def _worth(self, fixed: Course, path: np.ndarray, times_s: np.ndarray) -> np.ndarray:
        """Returns what the windows earned from these times on, of shape (times, windows)."""
        result = np.empty((len(path), len(self._windows)))
        for number in np.unique(path):
            here = path == number
            for window in range(len(self._windows)):
                episode = number * len(self._windows) + window
                result[here, window] = fixed.means_from(episode, times_s[here])
        return result

    def _advantages(self, worth: np.ndarray, shares: np.ndarray) -> np.ndarray:
        """Returns how much better than on average each factor is at windows of these shares.

        Between the windows that were played their worth is interpolated, beyond it is the last's.
        """
        place = np.interp(
            np.log2(shares)[:, None] + self._in_view, self._windows, np.arange(len(self._windows))
        )
        below = np.minimum(place.astype(np.int64), len(self._windows) - 2)
        above = place - below
        rows = np.arange(len(shares))[:, None]
        result: np.ndarray = worth[rows, below] * (1 - above) + worth[rows, below + 1] * above
        return result - result.mean(axis=1, keepdims=True)
