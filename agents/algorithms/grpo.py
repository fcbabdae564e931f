"""Group relative policy optimization: a policy gradient with replays of a path for its baseline.

The return of an episode depends far more on the path that was drawn than on what the policy did.
So each path is played several times, with the same seed: its episodes differ by the actions that
the policy drew, and by nothing else. The advantage of a decision is the return from there on, less
the mean of that over the path's episodes at the same decision, and no network has to learn the
values of paths. (How much of the variance that takes out is `train/explained_variance` in
TensorBoard.) Weights follow PPO's clipped objective.

A path's advantages are divided by their spread, plus the median of all paths' spreads: a few paths
on which every action counts for much would drown the others.

Mao et al., "Variance Reduction for Reinforcement Learning in Input-Driven Environments", ICLR 2019,
have the baseline; Shao et al., "DeepSeekMath", 2024, section 4.1, have it without a value network,
and the name; Schulman et al., "Proximal Policy Optimization Algorithms", 2017, have the objective.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from gymnasium.spaces import Box
from stable_baselines3.common.distributions import Distribution

from quicgym.agents.algorithms.replay import ReplayAlgorithm, check_counts, check_decisions
from quicgym.envs.sb3 import Sb3VecEnv

_MOST = 4.0  # standard deviations of an advantage
_MAX_GRADIENT_NORM = 0.5


class Decisions(NamedTuple):
    """What is learned from; a row for each decision."""

    features: torch.Tensor
    actions: torch.Tensor
    log_probabilities: torch.Tensor
    advantages: torch.Tensor


class Grpo(ReplayAlgorithm):
    """Trains a policy with exploration, with the interface of Stable-Baselines3's algorithms.

    Args:
        policy: "MlpPolicy".
        env: The environments. Agents of an episode earn the same, and learn from it alike.
        learning_rate: A number, or a schedule.
        paths: That are drawn in an iteration.
        replays: Episodes of the policy on each of them.
        gamma: Discount of rewards from one decision to the next.
        n_epochs: How often an iteration's decisions are learned from.
        batch_size: Decisions in an update.
        clip_range: Of the probability's ratio, new to old.
        ent_coef: Weight of the entropy.
        policy_kwargs: Of the policy.
        seed: Of the weights.
        device: Of the network.

    Attributes:
        decisions: Of the last iteration.

    Raises:
        ValueError: An argument is not valid.
    """

    decisions: Decisions

    def __init__(
        self,
        policy: str,
        env: Sb3VecEnv,
        learning_rate: Any = 1e-4,
        paths: int = 64,
        replays: int = 4,
        gamma: float = 0.98,
        n_epochs: int = 2,
        batch_size: int = 4096,
        clip_range: float = 0.2,
        ent_coef: float = 0.0,
        policy_kwargs: dict[str, Any] | None = None,
        seed: int | None = None,
        device: str = "auto",
    ) -> None:
        """Makes the network; nothing has been played."""
        check_counts(paths=paths, replays=replays, n_epochs=n_epochs, batch_size=batch_size)
        if replays < 2:
            raise ValueError(f"replays = {replays}: give two or more, to be compared")
        if not 0 <= gamma <= 1:
            raise ValueError(f"gamma = {gamma}: give a discount from 0 to 1")
        if not clip_range > 0:
            raise ValueError(f"clip_range = {clip_range}: give a number above 0")
        super().__init__(
            policy, env, learning_rate, policy_kwargs=policy_kwargs, seed=seed, device=device
        )
        self._paths, self._replays, self._gamma = paths, replays, gamma
        self._epochs, self.batch_size = n_epochs, batch_size
        self._clip_range, self._entropy_weight = clip_range, ent_coef

    def collect_rollouts(self, rng: np.random.Generator) -> Iterator[np.ndarray]:
        """Plays newly drawn paths; yields the episodes' mean rewards.

        Raises:
            ScenarioError: There is no decision to learn from.
        """
        paths = [self.batch.source.draw(rng, None) for _ in range(self._paths)]
        episodes = [path for path in paths for _ in range(self._replays)]
        features, actions, log_probabilities, places = [], [], [], []

        def decide(step: int, rows: np.ndarray, of_episodes: np.ndarray) -> np.ndarray:
            seen = self.preprocess(self.batch.observations[rows])
            with torch.inference_mode():
                distribution = self.distribution(seen)
                drawn = distribution.get_actions()
                probable = distribution.log_prob(drawn).cpu()
            drawn = drawn.cpu()
            kept = np.flatnonzero(self.takes_effect(rows))
            features.append(seen[kept])
            actions.append(drawn[kept])
            log_probabilities.append(probable[kept])
            places.append((np.full(len(kept), step), of_episodes[kept]))
            return drawn.numpy().clip(-1.0, 1.0) if self._is_box else drawn.numpy()

        trajectories = self.play(episodes, decide)
        yield trajectories.mean_rewards()
        steps, of_episodes = (np.concatenate(column) for column in zip(*places, strict=True))
        check_decisions(len(steps), episodes)
        advantages, self._explained_variance = group_advantages(
            np.diff(trajectories.returns, axis=0), self._replays, self._gamma
        )
        advantages = advantages[steps, of_episodes]
        advantages = (advantages / (advantages.std() + 1e-12)).clip(-_MOST, _MOST)
        self.decisions = Decisions(
            torch.cat(features),
            torch.cat(actions),
            torch.cat(log_probabilities),
            torch.from_numpy(advantages).float(),
        )

    @property
    def _is_box(self) -> bool:
        return isinstance(self.action_space, Box)

    def distribution(self, features: torch.Tensor) -> Distribution:
        """Returns the policy's distribution of actions for preprocessed observations."""
        outputs = self.policy.action_net(self._latent(features))
        deviations = (self.policy.log_std,) if self._is_box else ()
        return self.policy.action_dist.proba_distribution(outputs, *deviations)

    def train(self) -> None:
        """Updates the weights by the decisions of the last iteration."""
        decisions = self.decisions
        log: dict[str, list[float]] = defaultdict(list)
        for _ in range(self._epochs):
            for part in torch.randperm(len(decisions.features)).split(self.batch_size):
                features, actions, old, advantages = (
                    column[part].to(self.device) for column in decisions
                )
                distribution = self.distribution(features)
                log_ratio = distribution.log_prob(actions) - old
                ratio = log_ratio.exp()
                clipped = ratio.clamp(1 - self._clip_range, 1 + self._clip_range)
                loss = -torch.minimum(ratio * advantages, clipped * advantages).mean()
                entropy = distribution.entropy()
                assert entropy is not None  # which only squashed distributions lack
                entropy_loss = -entropy.mean()
                self.policy.optimizer.zero_grad()
                (loss + self._entropy_weight * entropy_loss).backward()
                torch.nn.utils.clip_grad_norm_(self.policy.parameters(), _MAX_GRADIENT_NORM)
                self.policy.optimizer.step()
                with torch.no_grad():
                    log["policy_gradient_loss"].append(loss.item())
                    log["entropy_loss"].append(entropy_loss.item())
                    log["approx_kl"].append((ratio - 1 - log_ratio).mean().item())
                    log["clip_fraction"].append((clipped != ratio).float().mean().item())
            self._n_updates += 1
        self.logger.record("train/explained_variance", self._explained_variance)
        for name, values in log.items():
            self.logger.record(f"train/{name}", float(np.mean(values)))


def group_advantages(
    rewards: np.ndarray, group_size: int, gamma: float
) -> tuple[np.ndarray, float]:
    """Compares returns within groups of episodes that have the path and its seed in common.

    Args:
        rewards: Integrals over steps, of shape (steps, episodes); groups are side by side.
        group_size: Episodes in a group.
        gamma: Discount of rewards from one step to the next.

    Returns:
        Advantages, of the same shape, and the share of the variance of returns that their groups'
        means explain.
    """
    returns = np.zeros_like(rewards)
    following = np.zeros(rewards.shape[1])
    for step in reversed(range(len(rewards))):
        returns[step] = following = rewards[step] + gamma * following
    groups = returns.reshape(len(rewards), -1, group_size)
    groups = groups - groups.mean(axis=2, keepdims=True)
    explained_variance = 1 - groups.var() / (returns.var() + 1e-12)
    spreads = np.sqrt((groups**2).mean(axis=(0, 2), keepdims=True))
    groups /= spreads + np.median(spreads) + 1e-12
    return groups.reshape(rewards.shape), float(explained_variance)
