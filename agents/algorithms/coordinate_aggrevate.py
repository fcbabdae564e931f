"""AggreVaTe for coordinates of a Box: learn where to set them from what constant settings earn.

Paths are drawn; each is played with constant actions, which differ from the action that the policy
began with in one coordinate, and then by the current policy. At the decisions that the policy met,
the value of a setting is the mean reward that its own episode has from that time on. A network
learns to predict how much better than the coordinate's mean each setting is, from the observation,
over all decisions so far. So a setting is not judged by a single episode, in which chance decides,
but by those of all paths that look alike. The policy learns to act as the predictions say: at the
mean of the settings, weighted by the exponential of their predicted advantages.

Where an environment has a preference, each term of the reward has a value of its own. So what was
played once serves every preference: another one is drawn whenever it is learned from.

Several coordinates are learned side by side, each as if the others stayed where they began. Those
that are not named never move.

Ross and Bagnell, "Reinforcement and Imitation Learning via Interactive No-Regret Learning", 2014.
There an expert plays on from the decision; here constant settings stand for it, which were played
from the beginning and have a value at every decision on the path.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import torch
from gymnasium.spaces import Box

from quicgym.agents.algorithms.own_decisions import Sampling, play_policy
from quicgym.agents.algorithms.replay import ReplayAlgorithm, Trajectories, check_counts
from quicgym.envs.actions import find_action_space
from quicgym.envs.episodes import EpisodeChoice
from quicgym.envs.preferences import PREFERENCE_TERMS, Preference
from quicgym.envs.sb3 import Sb3VecEnv
from quicgym.yaml_files import closest

_HUBER_DELTA = 0.2  # of rewards: episodes in which everything goes wrong weigh no more


class CoordinateAggrevate(ReplayAlgorithm):
    """Trains a policy of an environment whose actions are settings, such as Tuning or Scale.

    Args:
        policy: "MlpPolicy".
        env: The environments. Where an episode has several agents, all hold the same setting.
        learning_rate: A number, or a schedule.
        values: The settings that are compared, from -1 to 1 and rising, by coordinate.
        paths: That are drawn in an iteration.
        rollouts: Episodes of the policy on each of them, with seeds of their own.
        temperature: In rewards: settings whose advantages differ by it have weights that differ by
            a factor of e.
        exploration: Highest probability of random settings at a decision; episodes have one each,
            from 0 on.
        keep_fraction: Share of the decisions in the policy's episodes that is learned from; in one
            with several agents each has its part of that.
        n_updates: Of the weights in an iteration.
        batch_size: Decisions in an update.
        weight_decay: Of AdamW, for the network that predicts.
        policy_kwargs: Of the policy.
        seed: Of the weights.
        device: Of the network.

    Attributes:
        observations: Of all iterations, preprocessed as the network's features take them; float32,
            shape (n, features).
        advantages: Of the settings there, less the mean of the coordinate's; float32, shape
            (n, terms, settings), of each term of the reward that a preference weighs; without one
            the reward is the only term.
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
        temperature: float = 0.01,
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
        check_counts(n_updates=n_updates, batch_size=batch_size)
        if not temperature > 0:
            raise ValueError(f"temperature = {temperature}: give a reward above 0")
        self._settings = _settings(env, values)
        self._temperature = temperature
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
        self._updates, self.batch_size = n_updates, batch_size
        self.observations = self.preprocess(np.zeros_like(self.batch.observations[:0]))
        terms = 1 if self._preference is None else len(PREFERENCE_TERMS)
        settings = sum(len(numbers) for _, numbers in self._settings)
        self.advantages = torch.zeros(0, terms, settings)
        self.base = torch.full((self.action_space.shape or (0,)), torch.nan)

    def _setup_model(self) -> None:
        super()._setup_model()
        policy: Any = self.policy
        self.predictor = _Predictor(policy, sum(len(numbers) for _, numbers in self._settings))
        self.predictor.to(self.device)
        self.predictor_optimizer = torch.optim.AdamW(
            self.predictor.parameters(), lr=self.lr_schedule(1.0), weight_decay=self._weight_decay
        )

    def _get_torch_save_params(self) -> tuple[list[str], list[str]]:
        names, tensors = super()._get_torch_save_params()
        return [*names, "predictor", "predictor_optimizer"], tensors

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
                nothing = self.preprocess(np.zeros_like(self.batch.observations[:1]))
                self.base = self._act(nothing)[0].clamp(-1.0, 1.0).cpu().clone()
        paths = [self.batch.source.draw(rng, None) for _ in range(self._sampling.paths)]
        constant = self.play_settings(paths)

        def act(seen: torch.Tensor) -> np.ndarray:
            with torch.inference_mode():
                actions: np.ndarray = self._act(seen).clamp(-1.0, 1.0).cpu().numpy()
            return actions

        def explore(actions: np.ndarray, where: np.ndarray) -> np.ndarray:
            for coordinate, numbers in self._settings:
                drawn = rng.choice(numbers, size=len(actions))
                actions[:, coordinate] = np.where(where, drawn, actions[:, coordinate])
            return actions

        own = play_policy(self, paths, self._sampling, rng, act=act, explore=explore)
        yield own.mean_rewards
        settings = self.advantages.shape[2]
        advantages = [
            self.advantages_of(term.values_of_groups(own.paths, settings, own.times_s))
            for term in constant.by_term()
        ]
        self.observations = torch.cat([self.observations, own.features])
        self.advantages = torch.cat(
            [self.advantages, torch.from_numpy(np.stack(advantages, axis=1)).float()]
        )

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

        def decide(step: int, rows: np.ndarray, of_episodes: np.ndarray) -> np.ndarray:
            chosen: np.ndarray = table[of_episodes % len(table)]
            return chosen

        return self.play(episodes, decide)

    def advantages_of(self, values: np.ndarray) -> np.ndarray:
        """Returns values less the mean over the settings of the same coordinate."""
        parts, first = [], 0
        for _, numbers in self._settings:
            part = values[:, first : first + len(numbers)]
            parts.append(part - part.mean(axis=1, keepdims=True))
            first += len(numbers)
        return np.concatenate(parts, axis=1)

    @property
    def _preference(self) -> Preference | Literal["random"] | None:
        return self.batch.source.preference

    def _weighed(
        self, observed: torch.Tensor, advantages: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Returns observations and advantages, shape (rows, settings), under other preferences."""
        observed, advantages = observed.to(self.device), advantages.to(self.device)
        if self._preference is None:
            return observed, advantages[:, 0]
        if self._preference == "random":
            uniform = torch.distributions.Dirichlet(torch.ones(len(PREFERENCE_TERMS)))
            weights = uniform.sample((len(observed),)).to(self.device)
        else:
            weights = observed[:, -len(PREFERENCE_TERMS) :]
        observed = torch.cat([observed[:, : -len(PREFERENCE_TERMS)], weights], dim=1)
        return observed, torch.einsum("rt,rts->rs", weights, advantages)

    def best_settings(self, advantages: torch.Tensor) -> torch.Tensor:
        """Returns where to set the coordinates that are learned.

        Args:
            advantages: Of the settings, shape (rows, settings).

        Returns:
            Shape (rows, coordinates that are learned).
        """
        columns, first = [], 0
        for _, numbers in self._settings:
            grid = torch.tensor(numbers, dtype=torch.float32, device=advantages.device)
            part = advantages[:, first : first + len(grid)]
            columns.append((part / self._temperature).softmax(dim=1) @ grid)
            first += len(grid)
        return torch.stack(columns, dim=1)

    def train(self) -> None:
        """Learns from all comparisons so far."""
        self._update_learning_rate(self.predictor_optimizer)
        coordinates = [coordinate for coordinate, _ in self._settings]
        losses, distances = [], []
        for _ in range(self._updates):
            chosen = torch.randint(len(self.observations), (self.batch_size,))
            observed, advantages = self._weighed(self.observations[chosen], self.advantages[chosen])
            predicted = self.predictor(observed)
            loss = torch.nn.functional.huber_loss(predicted, advantages, delta=_HUBER_DELTA)
            self.predictor_optimizer.zero_grad()
            loss.backward()
            self.predictor_optimizer.step()
            best = self.best_settings(predicted.detach())
            distance = torch.nn.functional.mse_loss(self._act(observed)[:, coordinates], best)
            self.policy.optimizer.zero_grad()
            distance.backward()
            self.policy.optimizer.step()
            losses.append(loss.item())
            distances.append(distance.item())
        self._n_updates += self._updates
        self.logger.record("train/loss", float(np.mean(losses)))
        self.logger.record("train/policy_loss", float(np.mean(distances)))
        self.logger.record("train/comparisons", len(self.observations))


class _Predictor(torch.nn.Module):
    """Advantages of settings, from preprocessed observations; as large as the policy.

    Args:
        policy: Whose layers it has, with weights of its own.
        settings: Their number.
    """

    def __init__(self, policy: Any, settings: int) -> None:
        super().__init__()
        self.features = copy.deepcopy(policy.pi_features_extractor.features)
        self.hidden = copy.deepcopy(policy.mlp_extractor.policy_net)
        self.last = torch.nn.Linear(policy.mlp_extractor.latent_dim_pi, settings)
        torch.nn.init.zeros_(self.last.weight)
        torch.nn.init.zeros_(self.last.bias)

    def forward(self, preprocessed: torch.Tensor) -> torch.Tensor:
        """Maps (rows, what `preprocess` returns) to (rows, settings)."""
        advantages: torch.Tensor = self.last(self.hidden(self.features.encode(preprocessed)))
        return advantages


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
