"""Episodes of an algorithm's own choice: drawn once, and played as often as it asks.

An episode can be played again with another window, with another controller, or with other actions
of the policy. Path, competitors and random losses stay the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from quicgym.envs.batch import EpisodeBatch
from quicgym.envs.episodes import EpisodeChoice
from quicgym.envs.info import INFO_COLUMNS
from quicgym.envs.scenarios.fields import ScenarioError

_TIME = INFO_COLUMNS.index("time_s")
_ACTIVE = INFO_COLUMNS.index("active")

Decide = Callable[[int, np.ndarray, np.ndarray], np.ndarray]
"""Maps a step's number, the rows that act and the episode of each to an action for each row."""


@dataclass(frozen=True)
class Trajectories:
    """Episodes: a column for each, a row for its beginning and for the end of each step.

    Attributes:
        times_s: Simulated time in s; it stands still after the episode's end.
        returns: Integral of the reward over time since the beginning, in reward · s.
        decisions: How many decisions all agents made.
    """

    times_s: np.ndarray
    returns: np.ndarray
    decisions: int

    def mean_rewards(self) -> np.ndarray:
        """Returns the mean reward of each episode, over its time."""
        result: np.ndarray = self.returns[-1] / (self.times_s[-1] - self.times_s[0])
        return result

    def values(self, episode: int, times_s: np.ndarray) -> np.ndarray:
        """Returns the mean reward of an episode from these times to its end."""
        at_s, returns = self.times_s[:, episode], self.returns[:, episode]
        begin_s = np.minimum(times_s, at_s[at_s < at_s[-1]][-1])  # its last step at least
        result: np.ndarray = returns[-1] - np.interp(begin_s, at_s, returns)
        return result / (at_s[-1] - begin_s)

    def values_of_groups(self, groups: np.ndarray, size: int, times_s: np.ndarray) -> np.ndarray:
        """Returns `values` of all episodes of a group at each of some times, shape (times, size).

        `groups` has the group of each of `times_s`, in s; the `size` episodes of a group are side
        by side.
        """
        result = np.empty((len(groups), size))
        for group in np.unique(groups):
            here = groups == group
            for member in range(size):
                result[here, member] = self.values(group * size + member, times_s[here])
        return result


class Episodes:
    """Draws and plays episodes on a batch, as many side by side as the batch has simulations."""

    def __init__(self, batch: EpisodeBatch, *, acts_in_slow_start: bool) -> None:
        """Plays nothing yet."""
        self.batch = batch
        self._slow_start: int | None = None  # its place in observations
        if not acts_in_slow_start:
            self._slow_start = batch.observation_names.index("slow_start")

    def draw(self, count: int, rng: np.random.Generator) -> list[EpisodeChoice]:
        """Returns newly drawn paths, each with a seed."""
        return [self.batch.source.draw(rng, None) for _ in range(count)]

    def takes_effect(self, rows: np.ndarray) -> np.ndarray:
        """Returns in which of these rows the flow is running and obeys an action."""
        effect: np.ndarray = self.batch.info[rows, _ACTIVE] > 0
        if self._slow_start is not None:
            effect &= self.batch.observations[rows, self._slow_start] == 0
        return effect

    def agents_beside(self, rows: np.ndarray) -> np.ndarray:
        """Returns how many agents the episode of each of these rows has, itself included."""
        agents = self.batch.agent_count
        counts: np.ndarray = self.batch.has_agent.reshape(-1, agents).sum(axis=1)[rows // agents]
        return counts

    def play(self, episodes: Sequence[EpisodeChoice], decide: Decide) -> Trajectories:
        """Plays episodes to their ends; what agents earn in an episode is their mean.

        `decide` takes the step's number, the rows of `batch` whose agents act now, and the episode
        of each row; it returns an action for each row.
        """
        batch, agents, decisions = self.batch, self.batch.agent_count, 0
        all_times_s, all_returns = [], []
        actions = np.zeros((len(batch.rewards), *(batch.action_space.shape or ())))
        for first in range(0, len(episodes), len(batch.selected)):
            part = episodes[first : first + len(batch.selected)]
            count = len(part)
            batch.begin_chosen(range(count), part)
            batch.selected[:] = np.arange(len(batch.selected)) < count
            has_agent = batch.has_agent[: count * agents].reshape(count, agents)
            times_s, returns = [self._times_s(count)], [np.zeros(count)]
            while batch.selected.any():
                rows = np.flatnonzero(np.repeat(batch.selected, agents) & batch.has_agent)
                actions[rows] = decide(len(returns) - 1, rows, first + rows // agents)
                batch.set_actions(actions)
                batch.step()
                times_s.append(self._times_s(count))  # stands still where an episode has ended
                seconds = times_s[-1] - times_s[-2]
                rewards = batch.rewards[: count * agents].reshape(count, agents)
                returns.append(returns[-1] + rewards.mean(axis=1, where=has_agent) * seconds)
                decisions += len(rows)
                batch.selected[:] &= ~(batch.terminations | batch.truncations)
            all_times_s.append(np.stack(times_s))
            all_returns.append(np.stack(returns))
        return Trajectories(_side_by_side(all_times_s), _side_by_side(all_returns), decisions)

    def _times_s(self, count: int) -> np.ndarray:
        """The time in the first simulations, in s: that of the first row of each."""
        times_s: np.ndarray = self.batch.info[: count * self.batch.agent_count, _TIME]
        return times_s[:: self.batch.agent_count].copy()


def check_decisions(decisions: int, episodes: Sequence[EpisodeChoice]) -> None:
    """Raises ScenarioError where there is nothing to learn from."""
    if not decisions:
        raise ScenarioError(
            f"{episodes[0].scenario.name}: slow start was not over in any of {len(episodes)} "
            "episodes, so there is nothing to learn from; give scenarios that last longer"
        )


def _side_by_side(parts: Sequence[np.ndarray]) -> np.ndarray:
    """Joins columns; those that are shorter keep their last value."""
    rows = max(map(len, parts))
    padded = [np.pad(part, [(0, rows - len(part)), (0, 0)], mode="edge") for part in parts]
    return np.concatenate(padded, axis=1)
