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

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

from quicgym.agents.advantage_regression import AdvantageRegression, check_counts
from quicgym.envs.actions import WINDOW_EXPONENTS
from quicgym.envs.batch import INFO_COLUMNS
from quicgym.envs.episodes import EpisodeChoice
from quicgym.envs.fair_share import fair_window_bytes
from quicgym.envs.observations import observation_names
from quicgym.envs.sb3 import Sb3VecEnv
from quicgym.envs.scenario import ScenarioError

_EXPONENTS = np.array(WINDOW_EXPONENTS)
_WINDOW = INFO_COLUMNS.index("flow_window_bytes")
_Decide = Callable[[slice, np.ndarray, np.ndarray], np.ndarray]


class _Course(NamedTuple):
    """What episodes have earned: a column for each, a row for the beginning and for each step."""

    times_s: np.ndarray
    earned: np.ndarray  # reward · s, since the beginning

    def means(self) -> np.ndarray:
        """Returns the mean reward of each episode, over its time."""
        result: np.ndarray = self.earned[-1] / (self.times_s[-1] - self.times_s[0])
        return result

    def means_from(self, episode: int, times_s: np.ndarray) -> np.ndarray:
        """Returns the mean reward of an episode from these times to its end."""
        at_s, earned = self.times_s[:, episode], self.earned[:, episode]
        begin_s = np.minimum(times_s, at_s[at_s < at_s[-1]][-1])  # its last step at least
        result: np.ndarray = earned[-1] - np.interp(begin_s, at_s, earned)
        return result / (at_s[-1] - begin_s)


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
        if env.environments.batch.agent_count > 1:
            raise ValueError("aggrevate needs scenarios with one open flow each")
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
        names = observation_names(1, "window")
        self._slow_start = names.index("slow_start") - len(names)  # from the end
        # Begins small: a window that only grows takes for ever to simulate.
        self._lean_towards(WINDOW_EXPONENTS.index(-0.125))

    def _compare(self, random: np.random.Generator) -> Iterator[np.ndarray]:
        paths = [self._batch.source.draw(random, None) for _ in range(self._paths)]
        fair_bytes = np.array([fair_window_bytes(path.scenario) for path in paths])
        fixed = self._play_fixed(paths, fair_bytes)
        visits = [
            EpisodeChoice(path.scenario, int(random.integers(2**63)))
            for path in paths
            for _ in range(self._visits)
        ]
        wanders = random.random(len(visits)) * self._exploration
        kept, kept_paths, kept_times_s, windows_bytes = [], [], [], []

        def decide(part: slice, runs: np.ndarray, now_s: np.ndarray) -> np.ndarray:
            rows = self._batch.observations[: len(runs)]
            condensed = self._condense(rows)
            keeps = runs & (rows[:, self._slow_start] == 0)  # there no action has an effect
            keeps &= random.random(len(rows)) < self._kept
            kept.append(condensed[torch.from_numpy(keeps)])
            kept_paths.append(np.arange(part.start, part.stop)[keeps] // self._visits)
            kept_times_s.append(now_s[keeps])
            windows_bytes.append(self._batch.info[: len(rows), _WINDOW][keeps])
            strays = random.random(len(rows)) < wanders[part]
            strayed = random.integers(len(_EXPONENTS), size=len(rows))
            return np.where(strays, strayed, self._best(condensed))

        yield self._play(visits, decide).means()
        if not any(map(len, kept)):
            raise ScenarioError(
                f"{visits[0].scenario.name}: slow start was not over in any of {len(visits)} "
                "episodes, so there is nothing to learn from; give scenarios that last longer"
            )
        path = np.concatenate(kept_paths)
        worth = self._worth(fixed, path, np.concatenate(kept_times_s))
        shares = np.concatenate(windows_bytes) / fair_bytes[path]
        self._add(torch.cat(kept), self._advantages(worth, shares))

    def _play_fixed(self, paths: Sequence[EpisodeChoice], fair_bytes: np.ndarray) -> _Course:
        """Plays each path with each window; the windows of a path are side by side."""
        episodes = [path for path in paths for _ in self._windows]
        targets = (fair_bytes[:, None] * 2.0**self._windows).ravel()

        def decide(part: slice, runs: np.ndarray, now_s: np.ndarray) -> np.ndarray:
            window_bytes = self._batch.info[: len(runs), _WINDOW]
            missing = np.log2(targets[part] / window_bytes)
            nearest: np.ndarray = np.abs(missing[:, None] - _EXPONENTS).argmin(axis=1)
            return nearest

        return self._play(episodes, decide)

    def _worth(self, fixed: _Course, path: np.ndarray, times_s: np.ndarray) -> np.ndarray:
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

    def _play(self, episodes: Sequence[EpisodeChoice], decide: _Decide) -> _Course:
        """Plays episodes to their ends.

        Args:
            episodes: As many as there are simulations are played side by side.
            decide: Returns an action for each episode of a part, which is the one in `_batch`; is
                told which of them still run, and their times.
        """
        batch = self._batch
        all_times_s, all_earned = [], []
        actions = np.zeros(len(batch.selected), dtype=np.int64)
        for first in range(0, len(episodes), len(batch.selected)):
            part = slice(first, min(first + len(batch.selected), len(episodes)))
            count = part.stop - first
            batch.begin_chosen(range(count), episodes[part])
            batch.selected[:] = np.arange(len(batch.selected)) < count
            times_s, earned = [self._times()[:count]], [np.zeros(count)]
            while batch.selected.any():
                runs = batch.selected[:count].copy()
                actions[:count] = decide(part, runs, times_s[-1])
                batch.set_actions(actions)
                batch.step()
                times_s.append(self._times()[:count])  # stands still where an episode has ended
                earned.append(earned[-1] + batch.rewards[:count] * (times_s[-1] - times_s[-2]))
                self.num_timesteps += int(runs.sum())
                batch.selected[:] &= ~(batch.terminations | batch.truncations)
            all_times_s.append(np.stack(times_s))
            all_earned.append(np.stack(earned))
        return _Course(_side_by_side(all_times_s), _side_by_side(all_earned))


def _side_by_side(parts: Sequence[np.ndarray]) -> np.ndarray:
    """Joins columns; those that are shorter keep their last value."""
    rows = max(map(len, parts))
    return np.concatenate(
        [np.pad(part, ((0, rows - len(part)), (0, 0)), mode="edge") for part in parts], axis=1
    )
