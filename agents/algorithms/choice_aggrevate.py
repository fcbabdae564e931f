"""AggreVaTe for choices: learn which controller to run from what each earns on the same path.

Each path is played once with every controller from its beginning to its end. The value of a choice
at a decision of the policy is the mean reward of that controller's episode from that time on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from quicgym.agents.algorithms.aggrevate import AggrevateSettings, ChoiceRegression
from quicgym.agents.algorithms.episodes import Trajectories
from quicgym.agents.algorithms.trainer import Count, NotNegative
from quicgym.envs.episodes import EpisodeChoice
from quicgym.yaml_files import closest


class ChoiceAggrevateSettings(AggrevateSettings):
    """The hyperparameters of `ChoiceAggrevate`.

    Attributes:
        controllers: The controllers that are compared and chosen, by name; None: all.
        margin: Reward by which another controller has to be better than the one in force.
    """

    controllers: tuple[str, ...] | None = None
    margin: NotNegative = 0.0
    rollouts: Count = 2
    keep_fraction: Annotated[float, Field(gt=0, le=1)] = 1.0
    n_updates: Count = 100


class ChoiceAggrevate(ChoiceRegression[ChoiceAggrevateSettings]):
    """Trains a policy of Switch. All agents of an episode have the controller that is compared."""

    Settings = ChoiceAggrevateSettings

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        """Finds the controllers; see `EpisodeTrainer` for the arguments."""
        super().__init__(*arguments, **keywords)
        self.compare(self._places(self.settings.controllers))
        first = self.batch.observation_names.index(f"action_{self.batch.choices[0]}")
        self._in_force = first + self.choices

    def _places(self, names: Sequence[str] | None) -> np.ndarray:
        """Returns the places of controllers in the action space; None: of all."""
        members = self.batch.choices
        chosen = list(members if names is None else names)
        for name in chosen:
            if name not in members:
                raise ValueError(f"controllers: no choice {name!r}; {closest(name, members)}")
        if len(set(chosen)) < max(2, len(chosen)):
            raise ValueError(f"controllers = {chosen}: give two or more, each once")
        return np.array([members.index(name) for name in chosen])

    def collect(self, rng: np.random.Generator) -> np.ndarray:
        """Plays new paths with each controller, then by the policy."""
        paths = self.episodes.draw(self.settings.paths, rng)
        constant = self.play_choices(paths)
        own = self.play_policy(
            paths,
            rng,
            act=self.best,
            explore=lambda actions, where: np.where(
                where, rng.choice(self.choices, len(actions)), actions
            ),
            note=lambda rows: self.batch.observations[rows][:, self._in_force],
        )
        values = constant.values_of_groups(own.paths, len(self.choices), own.times_s)
        advantages = values - values.mean(axis=1, keepdims=True)
        self.add(own.observations, advantages + self.settings.margin * own.notes)
        return own.mean_rewards

    def play_choices(self, paths: Sequence[EpisodeChoice]) -> Trajectories:
        """Plays each path with each controller; the controllers of a path are side by side."""
        episodes = [path for path in paths for _ in self.choices]

        def decide(step: int, rows: np.ndarray, of_episodes: np.ndarray) -> np.ndarray:
            chosen: np.ndarray = self.choices[of_episodes % len(self.choices)]
            return chosen

        return self.play(episodes, decide)
