"""PyTorch's threads, between rollouts and updates."""

from __future__ import annotations

import torch

from quicgym.agents.training.callbacks.base import RunCallback


class ThreadsCallback(RunCallback):
    """Takes one thread for rollouts, and all for updates.

    A rollout's small batches gain nothing by threads, which wait where simulations could run.
    """

    def __init__(self) -> None:
        """Keeps the number of threads."""
        super().__init__()
        self._threads = torch.get_num_threads()

    def restore(self) -> None:
        """Sets the number of threads that there was at first."""
        torch.set_num_threads(self._threads)

    def _on_rollout_start(self) -> None:
        torch.set_num_threads(1)

    def _on_rollout_end(self) -> None:
        self.restore()
