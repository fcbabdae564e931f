"""What algorithms that play whole episodes have in common: the network, the loop, the playing.

Stable-Baselines3's own algorithms see a stream of steps from episodes that the environments draw.
Those here draw the episodes themselves, so that one can be played again: with another window, with
another controller, or with the policy's other choices.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
import torch
from gymnasium.spaces import Space
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.policies import ActorCriticPolicy

from quicgym.envs.episodes import EpisodeChoice
from quicgym.envs.info import INFO_COLUMNS
from quicgym.envs.preferences import PREFERENCE_TERMS, preference_terms
from quicgym.envs.sb3 import Sb3VecEnv
from quicgym.envs.scenarios.fields import ScenarioError

_TIME = INFO_COLUMNS.index("time_s")

Decide = Callable[[int, np.ndarray, np.ndarray], np.ndarray]
"""What `ReplayAlgorithm.play` asks: step, rows that act, their episodes; returns their actions."""


class Trajectories(NamedTuple):
    """Episodes: a column for each, a row for its beginning and for the end of each step.

    Attributes:
        times_s: In the simulation; stands still after the episode's end.
        returns: Integral of the reward over time since the beginning, in reward · s.
        of_terms: The same of each term of the reward `preference`, before it is weighted; a third
            axis for the terms. None where there is no preference.
    """

    times_s: np.ndarray
    returns: np.ndarray
    of_terms: np.ndarray | None = None

    def by_term(self) -> list[Trajectories]:
        """Returns the same episodes with each term as their reward; without terms, themselves."""
        if self.of_terms is None:
            return [self]
        columns = np.moveaxis(self.of_terms, 2, 0)
        return [Trajectories(self.times_s, returns) for returns in columns]

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
        """Returns `values` of all episodes of a group at each of some times.

        Args:
            groups: The group of each time; its episodes are side by side.
            size: Episodes in a group.
            times_s: In the simulation, of the same shape as `groups`.

        Returns:
            Shape (times, size).
        """
        result = np.empty((len(groups), size))
        for group in np.unique(groups):
            here = groups == group
            for member in range(size):
                result[here, member] = self.values(group * size + member, times_s[here])
        return result


class ReplayAlgorithm(BaseAlgorithm):
    """The interface of Stable-Baselines3's algorithms, around iterations of playing and learning.

    What is used here with a leading underscore are the hooks that BaseAlgorithm has for subclasses.

    Args:
        policy: "MlpPolicy".
        env: The environments.
        learning_rate: A number, or a schedule.
        policy_kwargs: Of the policy.
        seed: Of the weights.
        device: Of the network.
        action_spaces: That the algorithm knows; None: all.
    """

    policy_aliases = {"MlpPolicy": ActorCriticPolicy}
    policy: ActorCriticPolicy

    def __init__(
        self,
        policy: str,
        env: Sb3VecEnv,
        learning_rate: Any,
        *,
        policy_kwargs: dict[str, Any] | None,
        seed: int | None,
        device: str,
        action_spaces: tuple[type[Space], ...] | None = None,
    ) -> None:
        """Makes the network; nothing has been played."""
        super().__init__(
            policy,
            env,
            learning_rate,
            policy_kwargs=policy_kwargs,
            seed=seed,
            device=device,
            support_multi_env=True,
            supported_action_spaces=action_spaces,
        )
        self.batch = env.environments.batch
        # Its place in observations, where actions have no effect in slow start.
        self._slow_start: int | None = None
        if not env.environments.environment.acts_in_slow_start:
            self._slow_start = self.batch.observation_names.index("slow_start")
        self._setup_model()

    def _setup_model(self) -> None:
        self._setup_lr_schedule()
        self.set_random_seed(self.seed)
        policy: Any = self.policy_class(
            self.observation_space, self.action_space, self.lr_schedule, **self.policy_kwargs
        )
        self.policy = policy.to(self.device)

    def learn(
        self,
        total_timesteps: int,
        callback: Any = None,
        log_interval: int = 1,
        tb_log_name: str = "run",
        reset_num_timesteps: bool = True,
        progress_bar: bool = False,
    ) -> Self:
        """Plays and learns until so many decisions have been made, those of replays included."""
        total, callback = self._setup_learn(
            total_timesteps, callback, reset_num_timesteps, tb_log_name, progress_bar
        )
        callback.on_training_start(locals(), globals())
        while self.num_timesteps < total:
            callback.on_rollout_start()
            self._update_current_progress_remaining(self.num_timesteps, total)
            rng = np.random.default_rng(np.random.randint(2**31, size=4))
            rewards = np.concatenate(list(self.collect_rollouts(rng)))
            callback.update_locals({"rewards": rewards})
            if not callback.on_step():
                break
            callback.on_rollout_end()
            # As Stable-Baselines3 does: what the update records is for the callback to see first.
            self.logger.dump(self.num_timesteps)
            self.policy.set_training_mode(True)
            self._update_learning_rate(self.policy.optimizer)
            self.train()
            self.policy.set_training_mode(False)
        callback.on_training_end()
        return self

    @abstractmethod
    def collect_rollouts(self, rng: np.random.Generator) -> Iterator[np.ndarray]:
        """Plays what is learned from; yields the mean rewards of the policy's own choices."""

    @abstractmethod
    def train(self) -> None:
        """Updates the weights by what was played."""

    def _get_torch_save_params(self) -> tuple[list[str], list[str]]:
        return ["policy", "policy.optimizer"], []

    def _times(self) -> np.ndarray:
        """The time in each simulation, in s: that of its first row, which has an agent."""
        times_s: np.ndarray = self.batch.info[:: self.batch.agent_count, _TIME].copy()
        return times_s

    def takes_effect(self, rows: np.ndarray) -> np.ndarray:
        """Returns in which of these rows an action has an effect."""
        if self._slow_start is None:
            return np.ones(len(rows), dtype=np.bool_)
        effect: np.ndarray = self.batch.observations[rows, self._slow_start] == 0
        return effect

    def agents_beside(self, rows: np.ndarray) -> np.ndarray:
        """Returns how many agents the episode of each of these rows has, itself included."""
        agents = self.batch.agent_count
        counts: np.ndarray = self.batch.has_agent.reshape(-1, agents).sum(axis=1)[rows // agents]
        return counts

    @property
    def _features(self) -> Any:
        return self.policy.pi_features_extractor.features

    def preprocess(self, observations: np.ndarray) -> torch.Tensor:
        """Returns what the network's features make of observations without weights, to be kept."""
        preprocessed: torch.Tensor = self._features.preprocess(torch.from_numpy(observations))
        return preprocessed

    def _latent(self, preprocessed: torch.Tensor) -> torch.Tensor:
        """What the network's last layer makes its outputs of."""
        features = self._features.encode(preprocessed.to(self.device))
        return self.policy.mlp_extractor.forward_actor(features)

    def play(self, episodes: Sequence[EpisodeChoice], decide: Decide) -> Trajectories:
        """Plays episodes to their ends; what agents earn in an episode is their mean.

        Args:
            episodes: As many as there are simulations are played side by side.
            decide: Is told the number of the step, the rows of `batch` whose agents act now, and
                which of the episodes each is in; returns an action for each.
        """
        batch, agents = self.batch, self.batch.agent_count
        all_times_s, all_returns, all_terms = [], [], []
        weighs = batch.source.preference is not None
        actions = np.zeros((len(batch.rewards), *(batch.action_space.shape or ())))
        for first in range(0, len(episodes), len(batch.selected)):
            part = episodes[first : first + len(batch.selected)]
            count = len(part)
            batch.begin_chosen(range(count), part)
            batch.selected[:] = np.arange(len(batch.selected)) < count
            has_agent = batch.has_agent[: count * agents].reshape(count, agents)
            times_s, returns = [self._times()[:count]], [np.zeros(count)]
            of_terms = [np.zeros((count, len(PREFERENCE_TERMS)))]
            while batch.selected.any():
                rows = np.flatnonzero(np.repeat(batch.selected, agents) & batch.has_agent)
                actions[rows] = decide(len(returns) - 1, rows, first + rows // agents)
                batch.set_actions(actions)
                batch.step()
                times_s.append(self._times()[:count])  # stands still where an episode has ended
                seconds = times_s[-1] - times_s[-2]
                rewards = batch.rewards[: count * agents].reshape(count, agents)
                returns.append(returns[-1] + rewards.mean(axis=1, where=has_agent) * seconds)
                if weighs:
                    terms = preference_terms(batch.info[: count * agents : agents])
                    of_terms.append(of_terms[-1] + terms * seconds[:, None])
                self.num_timesteps += len(rows)
                batch.selected[:] &= ~(batch.terminations | batch.truncations)
            all_times_s.append(np.stack(times_s))
            all_returns.append(np.stack(returns))
            all_terms.append(np.stack(of_terms))
        return Trajectories(
            _side_by_side(all_times_s),
            _side_by_side(all_returns),
            _side_by_side(all_terms) if weighs else None,
        )


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
    padded = [
        np.pad(part, [(0, rows - len(part)), *[(0, 0)] * (part.ndim - 1)], mode="edge")
        for part in parts
    ]
    return np.concatenate(padded, axis=1)


def check_counts(**counts: int) -> None:
    """Raises ValueError for an argument that is no whole number above 0."""
    for argument, value in counts.items():
        if int(value) != value or value < 1:
            raise ValueError(f"{argument} = {value}: give a whole number above 0")
