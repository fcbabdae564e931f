"""Group relative policy optimization: a policy gradient with replays of a path for its baseline.

What an episode earns depends far more on the path that was drawn than on what the policy did there.
So each path is played several times, with the same seed: its episodes differ by the actions that
the policy drew, and by nothing else. The advantage of a decision is what was earned from there on,
less the mean of that over the path's episodes at the same decision, and no network has to learn
what paths are worth. (How much of the variance that takes out is `train/explained_variance` in
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

from quicgym.agents.algorithms.replay import (
    ReplayAlgorithm,
    check_counts,
    check_decisions,
    check_one_flow,
)
from quicgym.envs.sb3 import Sb3VecEnv

_MOST = 4.0  # standard deviations of an advantage
_MAX_GRADIENT_NORM = 0.5


class _Decisions(NamedTuple):
    """What is learned from; a row for each decision."""

    condensed: torch.Tensor
    actions: torch.Tensor
    log_probabilities: torch.Tensor
    advantages: torch.Tensor


class Grpo(ReplayAlgorithm):
    """Trains a policy with exploration, with the interface of Stable-Baselines3's algorithms.

    Args:
        policy: "MlpPolicy".
        env: With one open flow in each simulation.
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

    Raises:
        ValueError: An argument is not valid.
    """

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
        check_one_flow(env, "grpo")
        super().__init__(
            policy, env, learning_rate, policy_kwargs=policy_kwargs, seed=seed, device=device
        )
        self._paths, self._replays, self._gamma = paths, replays, gamma
        self._epochs, self._batch_size = n_epochs, batch_size
        self._clip_range, self._entropy_weight = clip_range, ent_coef

    def _collect(self, random: np.random.Generator) -> Iterator[np.ndarray]:
        paths = [self._batch.source.draw(random, None) for _ in range(self._paths)]
        episodes = [path for path in paths for _ in range(self._replays)]
        condensed, actions, log_probabilities, places = [], [], [], []

        def decide(part: slice, step: int, runs: np.ndarray) -> np.ndarray:
            seen = self._condense(self._batch.observations[: len(runs)])
            with torch.inference_mode():
                distribution = self._distribution(seen)
                drawn = distribution.get_actions()
                probable = distribution.log_prob(drawn).cpu()
            drawn = drawn.cpu()
            kept = np.flatnonzero(self._takes_effect(runs))
            condensed.append(seen[kept])
            actions.append(drawn[kept])
            log_probabilities.append(probable[kept])
            places.append((np.full(len(kept), step), part.start + kept))
            return drawn.numpy().clip(-1.0, 1.0) if self._is_box else drawn.numpy()

        course = self._play(episodes, decide)
        yield course.means()
        steps, of_episodes = (np.concatenate(column) for column in zip(*places, strict=True))
        check_decisions(len(steps), episodes)
        advantages = self._advantages(np.diff(course.earned, axis=0))[steps, of_episodes]
        advantages = (advantages / (advantages.std() + 1e-12)).clip(-_MOST, _MOST)
        self._decisions = _Decisions(
            torch.cat(condensed),
            torch.cat(actions),
            torch.cat(log_probabilities),
            torch.from_numpy(advantages).float(),
        )

    def _advantages(self, rewards: np.ndarray) -> np.ndarray:
        """From what steps have earned, of shape (steps, episodes)."""
        to_go = np.zeros_like(rewards)
        following = np.zeros(rewards.shape[1])
        for step in reversed(range(len(rewards))):
            to_go[step] = following = rewards[step] + self._gamma * following
        groups = to_go.reshape(len(rewards), -1, self._replays)
        groups = groups - groups.mean(axis=2, keepdims=True)
        self._explained_variance = 1 - groups.var() / (to_go.var() + 1e-12)
        spreads = np.sqrt((groups**2).mean(axis=(0, 2), keepdims=True))
        groups /= spreads + np.median(spreads) + 1e-12
        return groups.reshape(rewards.shape)

    @property
    def _is_box(self) -> bool:
        return isinstance(self.action_space, Box)

    def _distribution(self, condensed: torch.Tensor) -> Distribution:
        return self.policy._get_action_dist_from_latent(self._latent(condensed))

    def _train(self) -> None:
        decisions = self._decisions
        log: dict[str, list[float]] = defaultdict(list)
        for _ in range(self._epochs):
            for part in torch.randperm(len(decisions.condensed)).split(self._batch_size):
                condensed, actions, old, advantages = (
                    column[part].to(self.device) for column in decisions
                )
                distribution = self._distribution(condensed)
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
