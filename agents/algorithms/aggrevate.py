"""AggreVaTe over fixed windows: learn the values of windows at the decisions that a policy meets.

For a path whose rate and flows are known, the best window is easily found: play the episode once
with each of a row of windows. A policy does not know the path. So paths are drawn; each is played
with fixed windows, from a small part of the path's fair share to a multiple of it, and then by the
current policy. At the decisions that the policy met, the value of a factor that it could have
chosen is the mean reward that a fixed window has from that time on: the window to which the factor
leads when it is held for a few decisions. So factors have windows far away in view, where the
difference is large, and the policy goes there in steps, deciding anew at each. The network learns
to predict the values of factors from the observation, over all decisions so far; the policy chooses
the factor with the highest prediction.

Of what cannot be observed, such as the number of the other flows, a prediction is the mean over
what it may be. That trying a window would show something adds nothing to its value here: finding
out about a path is left to slow start.

Ross and Bagnell, "Reinforcement and Imitation Learning via Interactive No-Regret Learning", 2014.
There an expert plays on from the decision; here fixed windows stand for it, which were played from
the beginning and have a value at every decision on the path.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from quicgym.agents.algorithms.advantage_regression import AdvantageRegression
from quicgym.agents.algorithms.own_decisions import Sampling, play_policy
from quicgym.agents.algorithms.replay import Trajectories, check_counts
from quicgym.envs.actions import WINDOW_EXPONENTS
from quicgym.envs.episodes import EpisodeChoice
from quicgym.envs.info import INFO_COLUMNS
from quicgym.envs.sb3 import Sb3VecEnv
from quicgym.envs.scenarios.fair_share import fair_window_bytes

_EXPONENTS = np.array(WINDOW_EXPONENTS)
_WINDOW = INFO_COLUMNS.index("flow_window_bytes")


class Aggrevate(AdvantageRegression):
    """Trains a policy of Window.

    Args:
        policy: "MlpPolicy".
        env: The environments. Where an episode has several agents, all hold the same window.
        learning_rate: A number, or a schedule.
        paths: That are drawn in an iteration.
        rollouts: Episodes of the policy on each of them, with seeds of their own.
        windows: The fixed ones, as powers of 2 of `fair_window_bytes`, in rising order.
        hold: For how many decisions a factor is held to come to the window whose value it has.
        exploration: Highest probability of a random factor at a decision; episodes have one each,
            from 0 on.
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
        paths: int = 128,
        rollouts: int = 3,
        windows: Sequence[float] = (-4, -2.5, -1.5, -0.75, 0, 0.75, 1.5, 2.25, 3),
        hold: int = 3,
        exploration: float = 0.1,
        keep_fraction: float = 0.15,
        n_updates: int = 400,
        batch_size: int = 1024,
        weight_decay: float = 1.0,
        policy_kwargs: dict[str, Any] | None = None,
        seed: int | None = None,
        device: str = "auto",
    ) -> None:
        """Makes the network; nothing has been played."""
        self._sampling = Sampling(paths, rollouts, exploration, keep_fraction)
        check_counts(hold=hold)
        grid = np.array(windows, dtype=np.float64)
        if grid.ndim != 1 or len(grid) < 2 or not (np.diff(grid) > 0).all():
            raise ValueError(f"windows = {windows}: give two exponents or more, in rising order")
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
        self._windows = grid
        self._in_view = hold * _EXPONENTS
        # Begins small: a window that only grows takes for ever to simulate.
        self.bias_towards(WINDOW_EXPONENTS.index(-0.125))

    def collect_rollouts(self, rng: np.random.Generator) -> Iterator[np.ndarray]:
        """Plays newly drawn paths; yields the mean rewards of the policy's episodes.

        Raises:
            ScenarioError: There is no decision to learn from.
        """
        paths = [self.batch.source.draw(rng, None) for _ in range(self._sampling.paths)]
        fair_bytes = np.array([fair_window_bytes(path.scenario) for path in paths])
        fixed = self.play_fixed_windows(paths, fair_bytes)
        own = play_policy(
            self,
            paths,
            self._sampling,
            rng,
            act=self._best,
            explore=lambda actions, where: np.where(
                where, rng.integers(len(_EXPONENTS), size=len(actions)), actions
            ),
            note=lambda rows: self.batch.info[rows, _WINDOW],
        )
        yield own.mean_rewards
        values = self.window_values(fixed, own.paths, own.times_s)
        self._add(own.features, self.factor_advantages(values, own.notes / fair_bytes[own.paths]))

    def play_fixed_windows(
        self, paths: Sequence[EpisodeChoice], fair_bytes: np.ndarray
    ) -> Trajectories:
        """Plays each path with each window; the windows of a path are side by side.

        Args:
            paths: To be played.
            fair_bytes: `fair_window_bytes` of each.
        """
        episodes = [path for path in paths for _ in self._windows]
        targets = (fair_bytes[:, None] * 2.0**self._windows).ravel()

        def decide(step: int, rows: np.ndarray, of_episodes: np.ndarray) -> np.ndarray:
            window_bytes = self.batch.info[rows, _WINDOW]
            missing = np.log2(targets[of_episodes] / window_bytes)
            nearest: np.ndarray = np.abs(missing[:, None] - _EXPONENTS).argmin(axis=1)
            return nearest

        return self.play(episodes, decide)

    def window_values(
        self, fixed: Trajectories, path: np.ndarray, times_s: np.ndarray
    ) -> np.ndarray:
        """Returns the mean rewards of windows from these times on, of shape (times, windows).

        Args:
            fixed: What `play_fixed_windows` has returned.
            path: The path of each time, by its place there.
            times_s: In the simulation.
        """
        return fixed.values_of_groups(path, len(self._windows), times_s)

    def factor_advantages(self, values: np.ndarray, shares: np.ndarray) -> np.ndarray:
        """Returns how much better than on average each factor is at windows of these shares.

        Between the windows that were played values are interpolated, beyond them they are the last
        one's.

        Args:
            values: Of the windows, of shape (decisions, windows).
            shares: The window in force at each decision, as a multiple of the fair one.
        """
        place = np.interp(
            np.log2(shares)[:, None] + self._in_view, self._windows, np.arange(len(self._windows))
        )
        below = np.minimum(place.astype(np.int64), len(self._windows) - 2)
        above = place - below
        rows = np.arange(len(shares))[:, None]
        result: np.ndarray = values[rows, below] * (1 - above) + values[rows, below + 1] * above
        return result - result.mean(axis=1, keepdims=True)
