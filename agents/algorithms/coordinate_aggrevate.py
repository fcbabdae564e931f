"""AggreVaTe for coordinates of a Box: learn where to set them from what constant settings earn.

Each path is played with several settings: the policy that training began with, but for one or more
coordinates. Where it began with an action, these have other values throughout; where it began with
a trained policy, they are shifted throughout. So the effect of a setting adds up over an episode,
and it is judged by all paths that look alike. A second network learns to predict the advantages of
the settings. The policy learns to act as the predictions say: at the mean of the settings, weighted
by the exponential of their predicted advantages. Coordinates that no setting names stay as they
began.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import numpy as np
import torch
from pydantic import Field

from quicgym.agents.algorithms.aggrevate import HUBER_DELTA, Aggrevate, AggrevateSettings
from quicgym.agents.algorithms.episodes import Trajectories
from quicgym.agents.algorithms.trainer import Positive
from quicgym.agents.policies.networks import Actor
from quicgym.envs.actions import find_action_space
from quicgym.envs.episodes import EpisodeChoice
from quicgym.yaml_files import closest

Coordinate = Annotated[float, Field(ge=-1, le=1)]


class CoordinateAggrevateSettings(AggrevateSettings):
    """The hyperparameters of `CoordinateAggrevate`.

    Attributes:
        settings: What is compared. Each setting has coordinates' values, or after `start.policy`
            shifts of what the policy has there; shifted actions are clipped to [-1, 1].
        temperature: Temperature of the weights, in units of reward. Settings whose advantages
            differ by one temperature have weights that differ by a factor of e.
    """

    settings: tuple[Mapping[str, Coordinate], ...] = ()
    temperature: Positive = 0.01


class CoordinateAggrevate(Aggrevate[CoordinateAggrevateSettings]):
    """Trains a policy of an environment whose actions are settings, such as Tuning.

    Where an episode has several agents, all hold the same setting.

    Attributes:
        first: The policy that training began with.
        shifts: Whether settings are shifts of its actions.
        predictor: Predicts the advantages of settings.
    """

    Settings = CoordinateAggrevateSettings
    kept = (*Aggrevate.kept, "first", "predictor", "predictor_optimizer")
    shifts = False

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        """Makes the second network; see `EpisodeTrainer` for the arguments."""
        super().__init__(*arguments, **keywords)
        self._numbers, self._named = (part.to(self.device) for part in self._find_settings())
        self.advantages = torch.zeros(0, len(self._numbers))
        self.first = copy.deepcopy(self.actor)
        self.predictor = _Predictor(self.actor, len(self._numbers)).to(self.device)
        rate = self.settings.learning_rate.first
        self.optimizer = torch.optim.Adam(self.actor.parameters(), lr=rate, eps=1e-5)
        self.predictor_optimizer = torch.optim.AdamW(
            self.predictor.parameters(), lr=rate, weight_decay=self.settings.weight_decay
        )

    def _find_settings(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Returns each setting's numbers, and which it has; shape (settings, coordinates)."""
        settings = self.settings.settings
        space = find_action_space(self.batch.source.decisions.interface.action_space)
        if space.is_relative or space.choices:
            raise ValueError(
                f"the actions of {space.name} are no settings that can be held; take Tuning"
            )
        names = space.coordinates
        if len(settings) < 2:
            raise ValueError(
                f"settings: give two or more, each with some of {', '.join(names)}, such as "
                f"[{{{names[0]}: -0.2}}, {{}}, {{{names[0]}: 0.2}}]"
            )
        for name in (name for setting in settings for name in setting):
            if name not in names:
                raise ValueError(f"settings: no coordinate {name!r}; {closest(name, names)}")
        numbers = [[setting.get(name, 0.0) for name in names] for setting in settings]
        named = [[name in setting for name in names] for setting in settings]
        return torch.tensor(numbers), torch.tensor(named)

    def begin_at(self, action: np.ndarray) -> None:
        """Makes the untrained policy take an action, whatever it observes."""
        super().begin_at(action)
        self._begin(shifts=False)

    def begin_with(self, actor: Actor, temperature: float) -> None:
        """Gives the untrained policy the weights of another, outputs divided by `temperature`."""
        super().begin_with(actor, temperature)
        self._begin(shifts=True)

    def _begin(self, *, shifts: bool) -> None:
        self.shifts = shifts
        self.first.load_state_dict(self.actor.state_dict())

    def collect(self, rng: np.random.Generator) -> np.ndarray:
        """Plays new paths with each setting, then by the policy."""
        paths = self.episodes.draw(self.settings.paths, rng)
        constant = self.play_settings(paths)

        def act(observations: torch.Tensor) -> np.ndarray:
            with torch.inference_mode():
                actions: np.ndarray = self.actor(observations.to(self.device)).cpu().numpy()
            return actions

        def explore(actions: np.ndarray, where: np.ndarray) -> np.ndarray:
            drawn = torch.from_numpy(rng.integers(len(self._numbers), size=len(actions)))
            other = self._with(torch.from_numpy(actions).to(self.device), drawn.to(self.device))
            explored: np.ndarray = np.where(where[:, None], other.cpu().numpy(), actions)
            return explored

        own = self.play_policy(paths, rng, act=act, explore=explore)
        values = constant.values_of_groups(own.paths, len(self._numbers), own.times_s)
        self.add(own.observations, values - values.mean(axis=1, keepdims=True))
        return own.mean_rewards

    def play_settings(self, paths: Sequence[EpisodeChoice]) -> Trajectories:
        """Plays each path with each setting; the settings of a path are side by side."""
        settings = len(self._numbers)
        episodes = [path for path in paths for _ in range(settings)]

        def decide(step: int, rows: np.ndarray, of_episodes: np.ndarray) -> np.ndarray:
            seen = torch.from_numpy(self.batch.observations[rows]).to(self.device)
            held = torch.from_numpy(of_episodes % settings).to(self.device)
            with torch.inference_mode():
                chosen: np.ndarray = self._with(self.first(seen), held).cpu().numpy()
            return chosen

        return self.play(episodes, decide)

    def _with(self, actions: torch.Tensor, settings: torch.Tensor | slice) -> torch.Tensor:
        """Returns actions with the settings of these places; (..., coordinates)."""
        if self.shifts:
            return (actions + self._numbers[settings]).clamp(-1.0, 1.0)
        return torch.where(self._named[settings], self._numbers[settings], actions)

    def best_actions(self, observations: torch.Tensor, advantages: torch.Tensor) -> torch.Tensor:
        """Returns how to act where settings have these advantages, shape (rows, coordinates)."""
        with torch.no_grad():
            actions = self.first.outputs(observations)  # which may be past the ends of the space
        held = self._with(actions.clamp(-1.0, 1.0)[:, None], slice(None))
        weights = (advantages / self.settings.temperature).softmax(dim=1)
        best = torch.einsum("rs,rsc->rc", weights, held)
        return torch.where(self._named.any(dim=0), best, actions)

    def update(self) -> dict[str, float]:
        """Learns from all decisions so far."""
        for group in self.predictor_optimizer.param_groups:
            group["lr"] = self.optimizer.param_groups[0]["lr"]
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
            best = self.best_actions(observed, predicted.detach())
            distance = (self.outputs(observed) - best).square().sum(dim=1).mean()
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
