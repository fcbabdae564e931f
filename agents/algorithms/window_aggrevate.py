"""AggreVaTe over fixed windows.

The settings are windows, from a small part of the path's fair share to a multiple of it. The value
of a factor that the policy could have chosen is that of the window to which the factor leads when
it is held for a few decisions. So factors have windows far away in view, where the difference is
large, and the policy goes there in steps, deciding anew at each.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
import torch
from pydantic import AfterValidator

from quicgym.agents.algorithms.aggrevate import HUBER_DELTA, Aggrevate, AggrevateSettings
from quicgym.agents.algorithms.episodes import Trajectories
from quicgym.agents.algorithms.trainer import Count
from quicgym.envs.actions import WINDOW_EXPONENTS
from quicgym.envs.episodes import EpisodeChoice
from quicgym.envs.info import INFO_COLUMNS
from quicgym.envs.scenarios.fair_share import fair_window_bytes

_EXPONENTS = np.array(WINDOW_EXPONENTS)
_WINDOW = INFO_COLUMNS.index("flow_window_bytes")
_PREFERRED = 0.05  # a prediction that is above all others at first


def _rising(windows: tuple[float, ...]) -> tuple[float, ...]:
    if len(windows) < 2 or not (np.diff(windows) > 0).all():
        raise ValueError("give two exponents or more, in rising order")
    return windows


class WindowAggrevateSettings(AggrevateSettings):
    """The hyperparameters of `WindowAggrevate`.

    Attributes:
        windows: The fixed windows, as powers of 2 of `fair_window_bytes`, in rising order.
        hold: Number of decisions for which a factor is held to reach the window whose value it has.
    """

    paths: Count = 128
    windows: Annotated[tuple[float, ...], AfterValidator(_rising)] = (
        (-4, -2.5, -1.5, -0.75, 0, 0.75) + (1.5, 2.25, 3)
    )  # fmt: skip
    hold: Count = 3


class WindowAggrevate(Aggrevate[WindowAggrevateSettings]):
    """Trains a policy of Window, which takes the factor with the highest predicted advantage.

    Where an episode has several agents, all hold the same window.
    """

    Settings = WindowAggrevateSettings

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        """Begins with a policy that takes smaller windows; see `EpisodeTrainer`."""
        super().__init__(*arguments, **keywords)
        self.advantages = torch.zeros(0, len(_EXPONENTS))
        last = self.actor.action
        with torch.no_grad():
            last.weight.mul_(0.01)
            last.bias.fill_(0.0)
        self.optimizer = torch.optim.AdamW(
            self.actor.parameters(),
            lr=self.settings.learning_rate.first,
            weight_decay=self.settings.weight_decay,
        )
        self._windows = np.array(self.settings.windows)
        self._in_view = self.settings.hold * _EXPONENTS
        # Begins small: a window that only grows takes for ever to simulate.
        self.begin_at(np.array(WINDOW_EXPONENTS.index(-0.125)))

    def begin_at(self, action: np.ndarray) -> None:
        """Makes the untrained policy take an action."""
        last = self.actor.action
        with torch.no_grad():
            last.weight.zero_()
            last.bias[int(action)] += _PREFERRED

    def best(self, observations: torch.Tensor) -> np.ndarray:
        """Returns the choice with the highest prediction for each observation."""
        with torch.inference_mode():
            predictions = self.outputs(observations)
        best: np.ndarray = predictions.argmax(dim=1).cpu().numpy()
        return best

    def update(self) -> dict[str, float]:
        """Learns from all decisions so far."""
        losses = []
        for _ in range(self.settings.n_updates):
            drawn = torch.randint(len(self.observations), (self.settings.batch_size,))
            loss = torch.nn.functional.huber_loss(
                self.outputs(self.observations[drawn]),
                self.advantages[drawn].to(self.device),
                delta=HUBER_DELTA,
            )
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            losses.append(loss.item())
        return {"loss": float(np.mean(losses)), "comparisons": len(self.observations)}

    def collect(self, rng: np.random.Generator) -> np.ndarray:
        """Plays new paths with each window, then by the policy."""
        paths = self.episodes.draw(self.settings.paths, rng)
        fair_bytes = np.array([fair_window_bytes(path.scenario) for path in paths])
        fixed = self.play_fixed_windows(paths, fair_bytes)
        own = self.play_policy(
            paths,
            rng,
            act=self.best,
            explore=lambda actions, where: np.where(
                where, rng.integers(len(_EXPONENTS), size=len(actions)), actions
            ),
            note=lambda rows: self.batch.info[rows, _WINDOW],
        )
        values = self.window_values(fixed, own.paths, own.times_s)
        self.add(
            own.observations, self.factor_advantages(values, own.notes / fair_bytes[own.paths])
        )
        return own.mean_rewards

    def play_fixed_windows(
        self, paths: Sequence[EpisodeChoice], fair_bytes: np.ndarray
    ) -> Trajectories:
        """Plays each path with each multiple of `fair_bytes`; a path's are side by side."""
        episodes = [path for path in paths for _ in self._windows]
        targets = (fair_bytes[:, None] * 2.0**self._windows).ravel()

        def decide(step: int, rows: np.ndarray, of_episodes: np.ndarray) -> np.ndarray:
            window_bytes = self.batch.info[rows, _WINDOW]
            missing = np.log2(targets[of_episodes] / window_bytes)
            nearest: np.ndarray = np.abs(missing[:, None] - _EXPONENTS).argmin(axis=1)
            return nearest

        return self.play(episodes, decide)

    def window_values(
        self, fixed: Trajectories, path: np.ndarray, times_s: np.ndarray
    ) -> np.ndarray:
        """Returns the mean rewards of windows from times in s on, of shape (times, windows).

        `fixed` are the episodes of `play_fixed_windows`, and `path` the place there of each time's
        path.
        """
        return fixed.values_of_groups(path, len(self._windows), times_s)

    def factor_advantages(self, values: np.ndarray, shares: np.ndarray) -> np.ndarray:
        """Returns how much better than on average each factor is at windows of these shares.

        `values` has shape (decisions, windows), and `shares` the window in force at each decision
        as a multiple of the fair one. Between the windows that were played values are interpolated,
        beyond them they are the last one's.
        """
        place = np.interp(
            np.log2(shares)[:, None] + self._in_view, self._windows, np.arange(len(self._windows))
        )
        below = np.minimum(place.astype(np.int64), len(self._windows) - 2)
        above = place - below
        rows = np.arange(len(shares))[:, None]
        result: np.ndarray = values[rows, below] * (1 - above) + values[rows, below + 1] * above
        return result - result.mean(axis=1, keepdims=True)
