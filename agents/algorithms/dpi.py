"""Direct policy iteration: learn to choose by comparing every choice on the same episode.

A simulator can do what a network cannot: play an episode again, the same up to a decision, and go
on differently. In each iteration episodes are drawn; each is played by the current policy up to
one decision, and from there to its end once with every controller. How much better or worse the
episode went with each than on average is what the network learns to predict from the observation
at that decision, over all comparisons so far. The policy chooses the controller with the highest
prediction.

Path, competitors and random losses are the same on both sides of a comparison, so most of what
makes rewards differ between episodes cancels, which a policy gradient has to average away. A choice
that is kept to the end makes the difference as large as it can be. The first decision is another
matter. Nothing has been observed there that differs between paths, and the value of a controller
depends on the choices that follow. So the current policy goes on after the first decision.

Where several flows of an episode have the policy, all of them take the controller that is compared:
what the policy chooses for one of them it chooses for the others, which observe much the same.

Lazaric, Ghavamzadeh and Munos, "Analysis of Classification-based Policy Iteration Algorithms",
JMLR 17, 2016; here as regression of the differences, with choices that are kept and comparisons
from all iterations.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from quicgym.agents.algorithms.advantage_regression import AdvantageRegression, places_of
from quicgym.agents.algorithms.replay import check_counts
from quicgym.envs.sb3 import Sb3VecEnv
from quicgym.envs.scenarios.fields import ScenarioError


class DirectPolicyIteration(AdvantageRegression):
    """Trains a policy of Switch-v0 or Switch-v1.

    Args:
        policy: "MlpPolicy".
        env: With at least as many simulations as controllers.
        learning_rate: A number, or a schedule.
        controllers: That are compared and chosen, by name; None: all of the environment's.
        comparisons: Episodes that are drawn in an iteration.
        decision_weights: How often the first decision is the one from which controllers are
            compared, the second and so on, in proportion.
        margin: Of reward, by which another controller has to be better than the one in force, from
            the second decision on.
        exploration: Probability of a random controller at each decision before it.
        n_updates: Of the weights in an iteration.
        batch_size: Comparisons in an update.
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
        comparisons: int = 128,
        decision_weights: Sequence[float] = (1.0, 1.0, 1.0, 1.0),
        margin: float = 0.0,
        exploration: float = 0.3,
        n_updates: int = 32,
        batch_size: int = 256,
        weight_decay: float = 0.03,
        policy_kwargs: dict[str, Any] | None = None,
        seed: int | None = None,
        device: str = "auto",
    ) -> None:
        """Makes the network; nothing has been compared."""
        places = places_of(controllers, env)
        check_counts(comparisons=comparisons)
        weights = np.array(decision_weights, dtype=np.float64)
        if weights.ndim != 1 or not (weights >= 0).all() or not 0 < weights.sum() < np.inf:
            raise ValueError(f"decision_weights = {decision_weights}: give numbers, one above 0")
        if margin < 0:
            raise ValueError(f"margin = {margin}: give a reward of 0 or more")
        if not 0 <= exploration <= 1:
            raise ValueError(f"exploration = {exploration}: give a probability")
        simulations = env.environments.simulations
        if simulations < len(places):
            raise ValueError(
                f"{len(places)} controllers are compared side by side, and environment.simulations "
                f"= {simulations}; give at least as many"
            )
        super().__init__(
            policy,
            env,
            learning_rate,
            places,
            n_updates=n_updates,
            batch_size=batch_size,
            weight_decay=weight_decay,
            policy_kwargs=policy_kwargs,
            seed=seed,
            device=device,
        )
        self._comparisons, self._weights = comparisons, weights / weights.sum()
        self._margin, self._exploration = margin, exploration
        first = self.batch.observation_names.index(f"action_{self.batch.choices[0]}")
        self._in_force = first + self._choices

    def collect_rollouts(self, rng: np.random.Generator) -> Iterator[np.ndarray]:
        """Compares controllers in newly drawn episodes; yields the mean rewards of its own choices.

        Raises:
            ScenarioError: No episode has lasted to a decision that is compared.
        """
        side_by_side = len(self.batch.selected) // len(self._choices)
        for first in range(0, self._comparisons, side_by_side):
            yield self._compare_some(rng, min(side_by_side, self._comparisons - first))
        if not len(self.observations):
            raise ScenarioError(
                f"decision_weights: no episode of {self._comparisons} lasted to the decision that "
                "was to be compared; give weight to earlier ones"
            )

    def _compare_some(self, rng: np.random.Generator, count: int) -> np.ndarray:
        # Arrays have a row per episode; where they have more axes, replays come next, then agents.
        batch, choices = self.batch, self._choices
        replays, agents = count * len(choices), batch.agent_count
        shape = (count, len(choices), agents)
        rows = replays * agents
        episodes = [batch.source.draw(rng, None) for _ in range(count)]
        decisions = len(self._weights)
        branch = rng.choice(decisions, size=count, p=self._weights)
        explores = rng.random((count, decisions, agents)) < self._exploration
        explored = rng.choice(choices, (count, decisions, agents))
        is_kept = branch > 0
        is_compared = np.zeros(count, dtype=np.bool_)  # not if the episode ended before
        policys_choice = np.zeros(count, dtype=np.int64)
        observations = np.zeros((count, batch.observations.shape[1]), dtype=np.float32)
        rewards = np.zeros(shape[:2])

        batch.begin_chosen(range(replays), [episode for episode in episodes for _ in choices])
        has_agent = batch.has_agent[:rows].reshape(shape)
        # Of the agents in an episode, one is sampled, from whose observation is learned.
        sampled_agent = rng.integers(has_agent[:, 0].sum(axis=1))
        sampled = (np.arange(count), 0, sampled_agent)
        batch.selected[:] = np.arange(len(batch.selected)) < replays
        actions = np.zeros(len(batch.observations), dtype=np.int64)
        begin_s = now_s = self._times()[:replays].reshape(shape[:2])
        for decision in itertools.count():
            runs = batch.selected[:replays].reshape(shape[:2]).copy()
            if not runs.any():
                break
            seen = batch.observations[:rows]
            greedy = self._best(self.preprocess(seen)).reshape(shape)
            here = (branch == decision) & runs[:, 0]
            is_compared |= here
            observations[here] = seen.reshape(*shape, -1)[sampled][here]
            policys_choice[here] = greedy[sampled][here]
            in_comparison = np.where(is_kept, decision >= branch, decision == branch)
            chosen = np.where(in_comparison[:, None, None], choices[:, None], greedy)
            if decision < decisions:
                explores_now = explores[:, decision] & (decision < branch)[:, None]
                chosen = np.where(explores_now[:, None], explored[:, decision, None], chosen)
            actions[:rows] = chosen.ravel()
            batch.set_actions(actions)
            batch.step()
            before_s, now_s = now_s, self._times()[:replays].reshape(shape[:2])
            mean_rewards = batch.rewards[:rows].reshape(shape).mean(axis=2, where=has_agent)
            # Time stands still where the episode is over.
            rewards += mean_rewards * (now_s - before_s)
            self.num_timesteps += int((runs[:, :, None] & has_agent).sum())
            batch.selected[:] &= ~(batch.terminations | batch.truncations)

        rewards = (rewards / (now_s - begin_s))[is_compared]
        observations = observations[is_compared]
        in_force = observations[:, self._in_force]
        advantages = rewards - rewards.mean(axis=1, keepdims=True)
        advantages += self._margin * in_force * is_kept[is_compared, None]
        self._add(self.preprocess(observations), advantages)
        own: np.ndarray = rewards[policys_choice[is_compared, None] == choices]
        return own
