"""A value network that tells a state's prospects from those of the same path's other replays.

Replays of a path differ by what the policy drew, and soon one has a longer queue or a lower rate
than the others. So the network sees a state, what only the simulator knows, and how both differ
from the replays' mean at the same decision, and predicts by how much the return from there on will
differ from theirs. Only training uses it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn

from quicgym.agents.policies.architecture import Architecture
from quicgym.agents.policies.networks import dense
from quicgym.envs.privileged import PRIVILEGED

_LEARNING_RATE = 1e-3
_MAX_GRADIENT_NORM = 0.5


class States(NamedTuple):
    """The states of all agents at all steps of some episodes, with a row for each.

    Attributes:
        seen: Observations and `privileged_inputs`, shape (rows, columns).
        steps: The step of each row.
        episodes: The episode of each row; replays of a path are side by side.
    """

    seen: np.ndarray
    steps: np.ndarray
    episodes: np.ndarray


class GroupCritic:
    """The value network and its optimizer; `architecture` has the sizes of its layers."""

    def __init__(
        self, architecture: Architecture, observation_size: int, device: torch.device
    ) -> None:
        """Makes a network that expects no difference."""
        sizes = (*architecture.extractor_sizes, *architecture.hidden_sizes)
        inputs = 2 * (observation_size + len(PRIVILEGED)) + 1
        last = nn.Linear(sizes[-1], 1)
        nn.init.zeros_(last.weight)
        nn.init.zeros_(last.bias)
        self.network = nn.Sequential(dense(inputs, sizes, architecture.activation), last).to(device)
        self.optimizer = torch.optim.Adam(self.network.parameters(), lr=_LEARNING_RATE, eps=1e-5)
        self._device = device

    def values(self, states: States, left: np.ndarray, replays: int) -> np.ndarray:
        """Returns the value of each step of each episode less its group's mean.

        An episode's value is the mean of its agents', and 0 after its end. `left` is the discount
        of what is earned at the episode's end, of the shape (steps, episodes).
        """
        shape = left.shape
        self._states, self._inputs = states, _inputs(states, left, replays)
        with torch.inference_mode():
            parts = [self.network(part.to(self._device)) for part in self._inputs.split(1 << 16)]
        sums, agents = np.zeros(shape), np.zeros(shape)
        at = (states.steps, states.episodes)
        np.add.at(sums, at, torch.cat(parts).squeeze(1).numpy(force=True))
        np.add.at(agents, at, 1)
        groups = (sums / np.maximum(agents, 1)).reshape(shape[0], -1, replays)
        values: np.ndarray = (groups - groups.mean(axis=2, keepdims=True)).reshape(shape)
        return np.where(agents > 0, values, 0.0)

    def update(self, returns: np.ndarray, n_epochs: int, batch_size: int) -> float:
        """Learns the returns of the states of the last `values`; returns the mean squared error."""
        targets = torch.from_numpy(returns[self._states.steps, self._states.episodes]).float()
        losses = []
        for _ in range(n_epochs):
            for part in torch.randperm(len(targets)).split(batch_size):
                inputs, target = (
                    column[part].to(self._device) for column in (self._inputs, targets)
                )
                loss = nn.functional.mse_loss(self.network(inputs).squeeze(1), target)
                self.optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(self.network.parameters(), _MAX_GRADIENT_NORM)
                self.optimizer.step()
                losses.append(loss.item())
        return float(np.mean(losses))

    def state_dict(self) -> dict[str, Any]:
        """Returns what a checkpoint needs."""
        return {"network": self.network.state_dict(), "optimizer": self.optimizer.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restores what `state_dict` has returned."""
        self.network.load_state_dict(state["network"])
        self.optimizer.load_state_dict(state["optimizer"])


def _inputs(states: States, left: np.ndarray, replays: int) -> torch.Tensor:
    """Returns states, their differences from the replays' mean, and the discount of the end."""
    groups = states.episodes // replays
    beyond = left[states.steps, states.episodes]
    seen = torch.from_numpy(states.seen)
    cells = torch.from_numpy(states.steps * (groups.max() + 1) + groups)
    sums = torch.zeros(int(cells.max()) + 1, seen.shape[1]).index_add_(0, cells, seen)
    rows = torch.bincount(cells).clamp(min=1)
    means = sums / rows[:, None]
    return torch.cat([seen, seen - means[cells], torch.from_numpy(beyond).float()[:, None]], dim=1)
