"""Group relative policy optimization: a policy gradient with replays of a path for its baseline.

The return of an episode depends far more on the path that was drawn than on what the policy did.
So each path is played several times, with the same seed: its episodes differ by the actions that
the policy drew, and by nothing else. The advantage of a decision is the return from there on, less
the mean of that over the path's episodes at the same time, and no network has to learn the values
of paths. (How much of the variance that takes out is `train/explained_variance` in
TensorBoard.) Weights follow PPO's clipped objective.

A path's advantages are divided by their norm, the root of the sum of their squares, plus the median
of all paths' norms. Otherwise paths on which every action counts for much would drown the others,
and paths with many decisions those with few: n independent advantages of one size move the weights
as far as their norm, which is √n of one.

With a critic (quicgym.agents.algorithms.group_critic) an advantage does not wait for the end of the
episode: what the next states are worth, next to those of the other replays, is known before, and
generalized advantage estimation weighs both.

Mao et al., "Variance Reduction for Reinforcement Learning in Input-Driven Environments", ICLR 2019,
have the baseline; Shao et al., "DeepSeekMath", 2024, section 4.1, have it without a value network,
and the name; Schulman et al., "Proximal Policy Optimization Algorithms", 2017, have the objective,
and "High-Dimensional Continuous Control Using Generalized Advantage Estimation", ICLR 2016, the
estimate.
"""

from __future__ import annotations

import math
from collections import defaultdict
from typing import Annotated, Any, NamedTuple

import numpy as np
import torch
from gymnasium.spaces import Box
from pydantic import Field
from torch.distributions import Categorical, Distribution, Independent, Normal

from quicgym.agents.algorithms.episodes import check_decisions
from quicgym.agents.algorithms.group_critic import GroupCritic, States
from quicgym.agents.algorithms.trainer import (
    Count,
    EpisodeTrainer,
    Positive,
    Rate,
    Schedule,
    Settings,
    Share,
)
from quicgym.agents.policies.architecture import Architecture
from quicgym.envs.info import INFO_COLUMNS
from quicgym.envs.privileged import privileged_inputs

_MOST = 4.0  # standard deviations of an advantage
_MAX_GRADIENT_NORM = 0.5


class GrpoSettings(Settings):
    """The hyperparameters of `Grpo`.

    Attributes:
        paths: How many are drawn in an iteration.
        replays: Episodes of the policy on each path.
        gamma: Discount of what is earned after a decision of the path's mean length. It is one of
            time, since decisions may last an RTT, and rewards count by their time.
        gae_lambda: With a critic, the factor of generalized advantage estimation: 1 waits for all
            that follows, 0 for one reward.
        n_epochs: How often an iteration's decisions are learned from.
        batch_size: Decisions in an update.
        clip_range: How far the ratio of probabilities, new to old, may be from 1.
        ent_coef: Weight of the entropy.
    """

    learning_rate: Rate = Schedule(1e-4)
    paths: Count = 64
    replays: Annotated[int, Field(strict=True, ge=2)] = 4
    gamma: Share = 0.98
    gae_lambda: Share = 0.95
    n_epochs: Count = 2
    batch_size: Count = 4096
    clip_range: Positive = 0.2
    ent_coef: float = 0.0


class Decisions(NamedTuple):
    """Data from which an iteration learns, with a row for each decision."""

    observations: torch.Tensor
    actions: torch.Tensor
    log_probabilities: torch.Tensor
    advantages: torch.Tensor


class Compared(NamedTuple):
    """Rewards of episodes less the mean of their group, of shape (steps, episodes).

    Attributes:
        rewards: What a step earned, integrals of the reward, less what the mean return lost in it.
        returns: Discounted sums of these from there on.
        explained_variance: The share of the variance of returns that the groups' means explain.
    """

    rewards: np.ndarray
    returns: np.ndarray
    explained_variance: float


class Grpo(EpisodeTrainer[GrpoSettings]):
    """Trains a policy that draws its actions. Agents of an episode earn the same.

    `log_std` is the logarithm of the standard deviation of a Box's actions, by coordinate. With
    `critic`, the sizes of its layers, a value network is trained as well.
    """

    Settings = GrpoSettings
    kept = (*EpisodeTrainer.kept, "log_std")
    decisions: Decisions
    critic: GroupCritic | None = None

    def __init__(
        self, *arguments: Any, critic: Architecture | None = None, **keywords: Any
    ) -> None:
        """Makes the optimizer; see `EpisodeTrainer` for the other arguments."""
        super().__init__(*arguments, **keywords)
        self._is_box = isinstance(self.batch.action_space, Box)
        coordinates = self.actor.action.out_features if self._is_box else 0
        first = torch.full((coordinates,), math.log(self.std), device=self.device)
        self.log_std = torch.nn.Parameter(first)
        self._weights = [self.log_std, *self.actor.parameters()]
        rate = self.settings.learning_rate.first
        self.optimizer = torch.optim.Adam(self._weights, lr=rate, eps=1e-5)
        if critic is not None:
            size = self.batch.observations.shape[1]
            self.critic = GroupCritic(critic, size, self.device)
            self.kept = (*self.kept, "critic")
        elif "gae_lambda" in self.settings.model_fields_set:
            raise ValueError(
                "hyperparameters.gae_lambda needs network.privileged_critic=true; leave one out, "
                "or set the other"
            )

    def collect(self, rng: np.random.Generator) -> np.ndarray:
        """Plays each of some new paths several times; the policy draws its actions."""
        settings = self.settings
        paths = self.episodes.draw(settings.paths, rng)
        episodes = [path for path in paths for _ in range(settings.replays)]
        observations, actions, log_probabilities, places = [], [], [], []
        states: list[States] = []

        def decide(step: int, rows: np.ndarray, of_episodes: np.ndarray) -> np.ndarray:
            seen = torch.from_numpy(self.batch.observations[rows])
            with torch.inference_mode():
                distribution = self.distribution(seen)
                drawn = distribution.rsample() if self._is_box else distribution.sample()
                probable = distribution.log_prob(drawn).cpu()
            drawn = drawn.cpu()
            kept = np.flatnonzero(self.episodes.takes_effect(rows))
            observations.append(seen[kept])
            actions.append(drawn[kept])
            log_probabilities.append(probable[kept])
            places.append((np.full(len(kept), step), of_episodes[kept]))
            if self.critic is not None:
                known = np.hstack([seen.numpy(), self._privileged(rows)])
                states.append(States(known, np.full(len(rows), step), of_episodes))
            return drawn.numpy().clip(-1.0, 1.0) if self._is_box else drawn.numpy()

        trajectories = self.play(episodes, decide)
        steps, of_episodes = (np.concatenate(column) for column in zip(*places, strict=True))
        check_decisions(len(steps), episodes)
        times = _in_steps(trajectories.times_s, settings.replays)
        rewards = np.diff(trajectories.returns, axis=0)
        discounts = settings.gamma ** np.diff(times, axis=0)
        self._compared = compare_replays(times, rewards, discounts, settings.replays)
        advantages = self._advantages(states, times, discounts)[steps, of_episodes]
        advantages = (advantages / (advantages.std() + 1e-12)).clip(-_MOST, _MOST)
        self.decisions = Decisions(
            torch.cat(observations),
            torch.cat(actions),
            torch.cat(log_probabilities),
            torch.from_numpy(advantages).float(),
        )
        return trajectories.mean_rewards()

    def _privileged(self, rows: np.ndarray) -> np.ndarray:
        """Returns what only the simulator knows of these rows' states."""
        return privileged_inputs(dict(zip(INFO_COLUMNS, self.batch.info[rows].T, strict=True)))

    def _advantages(
        self, states: list[States], times: np.ndarray, discounts: np.ndarray
    ) -> np.ndarray:
        """Returns the advantages of all steps of all episodes; see `compare_replays`."""
        rewards, returns, _ = self._compared
        if self.critic is None:
            return returns
        settings = self.settings
        whole = States(*(np.concatenate(column) for column in zip(*states, strict=True)))
        values = self.critic.values(whole, times, settings.gamma, settings.replays)
        self._value_explained_variance = _explained_variance(times, returns, returns - values)
        return generalized_advantages(rewards, values, discounts, settings.gae_lambda)

    def distribution(self, observations: torch.Tensor) -> Distribution:
        """Returns the policy's distribution of actions for observations."""
        outputs = self.outputs(observations)
        if not self._is_box:
            return Categorical(logits=outputs)
        return Independent(Normal(outputs, torch.ones_like(outputs) * self.log_std.exp()), 1)

    def update(self) -> dict[str, float]:
        """Follows PPO's clipped objective over the decisions of the last iteration."""
        settings, decisions = self.settings, self.decisions
        log: dict[str, list[float]] = defaultdict(list)
        for _ in range(settings.n_epochs):
            for part in torch.randperm(len(decisions.observations)).split(settings.batch_size):
                observations, actions, old, advantages = (
                    column[part].to(self.device) for column in decisions
                )
                distribution = self.distribution(observations)
                log_ratio = distribution.log_prob(actions) - old
                ratio = log_ratio.exp()
                clipped = ratio.clamp(1 - settings.clip_range, 1 + settings.clip_range)
                loss = -torch.minimum(ratio * advantages, clipped * advantages).mean()
                entropy_loss = -distribution.entropy().mean()
                self.optimizer.zero_grad()
                (loss + settings.ent_coef * entropy_loss).backward()
                torch.nn.utils.clip_grad_norm_(self._weights, _MAX_GRADIENT_NORM)
                self.optimizer.step()
                with torch.no_grad():
                    log["policy_gradient_loss"].append(loss.item())
                    log["entropy_loss"].append(entropy_loss.item())
                    log["approx_kl"].append((ratio - 1 - log_ratio).mean().item())
                    log["clip_fraction"].append((clipped != ratio).float().mean().item())
        means = {name: float(np.mean(values)) for name, values in log.items()}
        means["explained_variance"] = self._compared.explained_variance
        if self.critic is not None:
            means["value_explained_variance"] = self._value_explained_variance
            means["value_loss"] = self.critic.update(
                self._compared.returns, settings.n_epochs, settings.batch_size
            )
        return means

    def set_exploration(self, log_std: float) -> None:
        """Sets the logarithm of exploration's standard deviation, which is learned no more."""
        self.log_std.requires_grad_(False)
        self.log_std.fill_(log_std)


def compare_replays(
    times: np.ndarray, rewards: np.ndarray, discounts: np.ndarray, group_size: int
) -> Compared:
    """Compares rewards within groups of episodes that have the path and its seed in common.

    `times` have the shape (steps + 1, episodes), with groups side by side; an episode's stands
    still after its end. `rewards` are integrals over steps, and `discounts` what a step of its
    length makes of what follows it, of shape (steps, episodes). Decisions of replays are at other
    times as soon as their RTTs differ, so the mean is that of the returns at the same time.
    """
    to_go = generalized_advantages(rewards, np.zeros_like(rewards), discounts, 1.0)
    to_go = np.vstack([to_go, np.zeros((1, to_go.shape[1]))])
    means = _means_at(times, to_go, group_size)
    means[times == times[-1]] = 0.0  # nothing follows an episode's end
    differences = (to_go - means)[:-1]
    groups = differences.reshape(len(rewards), -1, group_size)
    norms = np.sqrt((groups**2).sum(axis=(0, 2)) * (groups.shape[1] / _goes_on(times).sum()))
    scales = np.repeat(norms + np.median(norms) + 1e-12, group_size)
    return Compared(
        (rewards + discounts * means[1:] - means[:-1]) / scales,
        differences / scales,
        _explained_variance(times, to_go[:-1], differences),
    )


def _goes_on(times: np.ndarray) -> np.ndarray:
    """Returns in which steps an episode goes on, of shape (steps, episodes)."""
    return np.diff(times, axis=0) > 0


def _explained_variance(times: np.ndarray, values: np.ndarray, rest: np.ndarray) -> float:
    """Returns the share of the variance of values that is not in the rest, until episodes end."""
    goes_on = _goes_on(times)
    return float(1 - rest[goes_on].var() / (values[goes_on].var() + 1e-12))


def _in_steps(times_s: np.ndarray, group_size: int) -> np.ndarray:
    """Returns times in mean steps of their group, for which discounts are.

    Rewards count by the length of steps, so by the number of steps a policy that makes an RTT
    longer, and its steps with it, would have higher returns.
    """
    steps_s = np.diff(times_s, axis=0).reshape(len(times_s) - 1, -1, group_size)
    mean_s = steps_s.sum(axis=(0, 2)) / (steps_s > 0).sum(axis=(0, 2))
    times: np.ndarray = times_s / np.repeat(mean_s, group_size)
    return times


def _means_at(times: np.ndarray, values: np.ndarray, group_size: int) -> np.ndarray:
    """Returns the mean over each episode's group of values at its own times, interpolated."""
    means = np.empty_like(values)
    for first in range(0, values.shape[1], group_size):
        group = range(first, first + group_size)
        at = times[:, group]
        interpolated = [np.interp(at, times[:, member], values[:, member]) for member in group]
        means[:, group] = np.mean(interpolated, axis=0)
    return means


def generalized_advantages(
    rewards: np.ndarray, values: np.ndarray, discounts: np.ndarray, gae_lambda: float
) -> np.ndarray:
    """Returns the sums of the steps' surprises, each counting discount · gae_lambda times the last.

    All arrays have the shape (steps, episodes). After the last step nothing is earned.
    """
    advantages = np.zeros_like(rewards)
    advantage, value_after = np.zeros((2, rewards.shape[1]))
    for step in reversed(range(len(rewards))):
        surprise = rewards[step] + discounts[step] * value_after - values[step]
        advantages[step] = advantage = surprise + discounts[step] * gae_lambda * advantage
        value_after = values[step]
    return advantages
