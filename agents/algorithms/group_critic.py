"""A value network that tells a state's prospects from those of the same path's other replays.

Replays of a path differ by what the policy drew, and soon one has a longer queue or a lower rate
than the others. So the network sees a state, what only the simulator knows, and how both differ
from the replays' mean at the same time, and predicts by how much the return from there on will
differ from theirs. Only training uses it.
"""

from __future__ import annotations

from collections.abc import Sequence
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

    def values(self, states: States, times: np.ndarray, gamma: float, replays: int) -> np.ndarray:
        """Returns the value of each step of each episode less its group's mean at that time.

        An episode's value is the mean of its agents', and 0 after its end. `times` have the shape
        (steps + 1, episodes), and stand still after an episode's end; `gamma` is the discount of a
        unit of them.
        """
        shape = len(times) - 1, times.shape[1]
        left = gamma ** (times[-1] - times[:-1])
        others = [_steps_of(member, times, replays) for member in range(replays)]
        self._states, self._inputs = states, _inputs(states, left, others)
        with torch.inference_mode():
            parts = [self.network(part.to(self._device)) for part in self._inputs.split(1 << 16)]
        at = states.steps, states.episodes
        values = _mean_of_agents(torch.cat(parts).cpu(), at, shape)[0].squeeze(2).numpy()
        means = np.mean([values[of_other] for of_other in others], axis=0)
        result: np.ndarray = np.where(np.diff(times, axis=0) > 0, values - means, 0.0)
        return result

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


def _inputs(
    states: States, left: np.ndarray, others: Sequence[tuple[np.ndarray, np.ndarray]]
) -> torch.Tensor:
    """Returns states, their differences from the replays' mean, and the discount of the end."""
    at = states.steps, states.episodes
    seen = torch.from_numpy(states.seen)
    of_steps, is_known = _mean_of_agents(seen, at, left.shape)
    sums, counts = torch.zeros_like(seen), torch.zeros(len(seen), 1)
    for steps, episodes in others:
        of_other = steps[at], episodes[at]
        sums += of_steps[of_other]
        counts += is_known[of_other]
    beyond = torch.from_numpy(left[at]).float()[:, None]
    return torch.cat([seen, seen - sums / counts, beyond], dim=1)


def _steps_of(member: int, times: np.ndarray, replays: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns where each step's path has been played a certain time: its step then, and episode."""
    begun = times[:-1]
    episodes = np.arange(begun.shape[1]) // replays * replays + member
    steps = [
        np.searchsorted(begun[:, other], own, side="right") - 1
        for own, other in zip(begun.T, episodes, strict=True)
    ]
    return np.stack(steps, axis=1), np.broadcast_to(episodes, begun.shape)


def _mean_of_agents(
    rows: torch.Tensor, at: tuple[np.ndarray, np.ndarray], shape: tuple[int, ...]
) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns the mean of the rows of each step and episode, 0 without any, and whether it has."""
    cells = torch.from_numpy(at[0] * shape[1] + at[1])
    counts = torch.bincount(cells, minlength=shape[0] * shape[1])[:, None]
    sums = torch.zeros(len(counts), rows.shape[1]).index_add_(0, cells, rows)
    return (sums / counts.clamp(min=1)).view(*shape, -1), (counts > 0).view(*shape, 1)
