"""AggreVaTe for coordinates of a Box: learn where to set them from what constant settings earn.

Each path is played with constant actions, which differ from the action that the policy began with
in one coordinate. A second network learns to predict the advantages of the settings. The policy
learns to act as the predictions say: at the mean of the settings, weighted by the exponential of
their predicted advantages.

Several coordinates are learned side by side, each as if the others stayed where they began. Those
that are not named never move.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from pydantic import field_validator

from quicgym.agents.algorithms.aggrevate import HUBER_DELTA, Aggrevate, AggrevateSettings
from quicgym.agents.algorithms.episodes import Trajectories
from quicgym.agents.algorithms.trainer import Positive
from quicgym.agents.policies.networks import Actor
from quicgym.envs.actions import find_action_space
from quicgym.envs.episodes import EpisodeChoice
from quicgym.yaml_files import closest


class CoordinateAggrevateSettings(AggrevateSettings):
    """The hyperparameters of `CoordinateAggrevate`.

    Attributes:
        values: The settings that are compared, from -1 to 1 and rising, by coordinate.
        temperature: Temperature of the weights, in units of reward. Settings whose advantages
            differ by one temperature have weights that differ by a factor of e.
    """

    values: Mapping[str, tuple[float, ...]] = {}
    temperature: Positive = 0.01

    @field_validator("values")
    @classmethod
    def _rise(cls, values: Mapping[str, tuple[float, ...]]) -> Mapping[str, tuple[float, ...]]:
        for name, numbers in values.items():
            rises = len(numbers) > 1 and bool((np.diff(numbers) > 0).all())
            if not rises or not (np.abs(numbers) <= 1).all():
                raise ValueError(f"{name}: give two numbers or more from -1 to 1, in rising order")
        return values


class CoordinateAggrevate(Aggrevate[CoordinateAggrevateSettings]):
    """Trains a policy of an environment whose actions are settings, such as Tuning.

    Where an episode has several agents, all hold the same setting.

    Attributes:
        base: The action that the policy began with; float32, shape (coordinates,); NaN before that.
        predictor: Predicts the advantages of settings.
    """

    Settings = CoordinateAggrevateSettings
    kept = (*Aggrevate.kept, "base", "predictor", "predictor_optimizer")

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        """Makes the second network; see `EpisodeTrainer` for the arguments."""
        super().__init__(*arguments, **keywords)
        self._grids = self._find_grids()
        settings = sum(len(grid) for _, grid in self._grids)
        self.advantages = torch.zeros(0, settings)
        self.base = torch.full((self.actor.action.out_features,), torch.nan)
        self.predictor = _Predictor(self.actor, settings).to(self.device)
        rate = self.settings.learning_rate.first
        self.optimizer = torch.optim.Adam(self.actor.parameters(), lr=rate, eps=1e-5)
        self.predictor_optimizer = torch.optim.AdamW(
            self.predictor.parameters(), lr=rate, weight_decay=self.settings.weight_decay
        )

    def _find_grids(self) -> list[tuple[int, np.ndarray]]:
        """Returns the place and the settings of each coordinate that is learned."""
        values = self.settings.values
        space = find_action_space(self.batch.source.decisions.interface.action_space)
        if space.is_relative or space.choices:
            raise ValueError(
                f"the actions of {space.name} are no settings that can be held; take Tuning"
            )
        if not values:
            raise ValueError(
                "values: is missing; give a list of settings for one or more of "
                f"{', '.join(space.coordinates)}"
            )
        for name in values:
            if name not in space.coordinates:
                raise ValueError(
                    f"values: no coordinate {name!r}; {closest(name, tuple(space.coordinates))}"
                )
        return [
            (space.coordinates.index(name), np.array(numbers, dtype=np.float32))
            for name, numbers in values.items()
        ]

    def collect(self, rng: np.random.Generator) -> np.ndarray:
        """Plays new paths with each setting, then by the policy."""
        if self.base.isnan().any():
            nothing = torch.zeros(1, self.batch.observations.shape[1])
            self.base = torch.from_numpy(self._act(nothing)[0].copy())
        paths = self.episodes.draw(self.settings.paths, rng)
        constant = self.play_settings(paths)

        def explore(actions: np.ndarray, where: np.ndarray) -> np.ndarray:
            for coordinate, numbers in self._grids:
                drawn = rng.choice(numbers, size=len(actions))
                actions[:, coordinate] = np.where(where, drawn, actions[:, coordinate])
            return actions

        own = self.play_policy(paths, rng, act=self._act, explore=explore)
        settings = self.advantages.shape[1]
        values = constant.values_of_groups(own.paths, settings, own.times_s)
        self.add(own.observations, self.advantages_of(values))
        return own.mean_rewards

    def _act(self, observations: torch.Tensor) -> np.ndarray:
        with torch.inference_mode():
            actions: np.ndarray = self.outputs(observations).clamp(-1.0, 1.0).cpu().numpy()
        return actions

    def play_settings(self, paths: Sequence[EpisodeChoice]) -> Trajectories:
        """Plays each path with each setting; the settings of a path are side by side."""
        base = self.base.numpy()
        actions = []
        for coordinate, numbers in self._grids:
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
        ends = np.cumsum([len(numbers) for _, numbers in self._grids])[:-1]
        parts = np.split(values, ends, axis=1)
        return np.concatenate([part - part.mean(axis=1, keepdims=True) for part in parts], axis=1)

    def best_settings(self, advantages: torch.Tensor) -> torch.Tensor:
        """Returns where to set the learned coordinates, shape (rows, coordinates)."""
        parts = advantages.split([len(numbers) for _, numbers in self._grids], dim=1)
        columns = [
            (part / self.settings.temperature).softmax(dim=1)
            @ torch.from_numpy(numbers).to(part.device)
            for part, (_, numbers) in zip(parts, self._grids, strict=True)
        ]
        return torch.stack(columns, dim=1)

    def update(self) -> dict[str, float]:
        """Learns from all decisions so far."""
        for group in self.predictor_optimizer.param_groups:
            group["lr"] = self.optimizer.param_groups[0]["lr"]
        coordinates = [coordinate for coordinate, _ in self._grids]
        losses, distances = [], []
        for _ in range(self.settings.n_updates):
            drawn = torch.randint(len(self.observations), (self.settings.batch_size,))
            observed = self.observations[drawn].to(self.device)
            advantages = self.advantages[drawn].to(self.device)
            predicted = self.predictor(observed)
            loss = torch.nn.functional.huber_loss(predicted, advantages, delta=HUBER_DELTA)
            self.predictor_optimizer.zero_grad()
            loss.backward()
            self.predictor_optimizer.step()
            best = self.best_settings(predicted.detach())
            distance = torch.nn.functional.mse_loss(self.outputs(observed)[:, coordinates], best)
            self.optimizer.zero_grad()
            distance.backward()
            self.optimizer.step()
            losses.append(loss.item())
            distances.append(distance.item())
        return {
            "loss": float(np.mean(losses)),
            "policy_loss": float(np.mean(distances)),
            "comparisons": len(self.observations),
        }


class _Predictor(torch.nn.Module):
    """Advantages of settings, from observations; its layers are like the policy's."""

    def __init__(self, actor: Actor, settings: int) -> None:
        super().__init__()
        self.features = copy.deepcopy(actor.features)
        self.hidden = copy.deepcopy(actor.hidden)
        self.last = torch.nn.Linear(actor.action.in_features, settings)
        torch.nn.init.zeros_(self.last.weight)
        torch.nn.init.zeros_(self.last.bias)

    def forward(self, observations: torch.Tensor) -> torch.Tensor:
        """Maps (rows, observation size) to (rows, settings)."""
        advantages: torch.Tensor = self.last(self.hidden(self.features(observations)))
        return advantages
