"""Checkpoints: everything that a training goes on from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm

from quicgym.agents.algorithms.registry import Algorithm
from quicgym.agents.training.callbacks.base import PeriodicCallback
from quicgym.agents.training.callbacks.evaluation import EvaluationCallback
from quicgym.agents.training.folder import RunFolder
from quicgym.agents.training.stable_baselines3_state import set_update_count, update_count


class CheckpointCallback(PeriodicCallback):
    """Writes a checkpoint after each evaluation.

    Args:
        algorithm: That is trained.
        folder: Of the run.
        evaluation: Whose best policy a checkpoint has too.
        interval_steps: Between two checkpoints; that of the evaluations.
        on_evaluation: Called with the step, the evaluation's reward and the checkpoint's path.
    """

    def __init__(
        self,
        algorithm: Algorithm,
        folder: RunFolder,
        evaluation: EvaluationCallback,
        interval_steps: int,
        on_evaluation: Callable[[int, float, Path], None] | None,
    ) -> None:
        """Takes what is written, and where."""
        super().__init__(interval_steps)
        self._algorithm = algorithm
        self._folder = folder
        self._evaluation = evaluation
        self._on_evaluation = on_evaluation

    def resume(self, state: Mapping[str, Any]) -> None:
        """Puts the model where the checkpoint was taken."""
        super().resume(state)
        restore(self.model, self._algorithm, state)

    def act(self, step: int) -> None:
        """Writes a checkpoint."""
        state = {**state_of(self.model, self._algorithm), **self._evaluation.state()}
        path = self._folder.save_checkpoint(step, {"step": step, **state})
        if self._on_evaluation is not None:
            self._on_evaluation(step, self._evaluation.last_reward, path)


def state_of(model: BaseAlgorithm, algorithm: Algorithm) -> dict[str, Any]:
    """Returns what training goes on from, besides the step."""
    state = {
        "updates": update_count(model),
        "parameters": model.get_parameters(),
        "tensors": {name: tensor.detach() for name, tensor in _tensors(model, algorithm).items()},
    }
    if isinstance(model, OffPolicyAlgorithm):
        state["replay"] = _replay(model)
    return state


def restore(model: BaseAlgorithm, algorithm: Algorithm, state: Mapping[str, Any]) -> None:
    """Puts a model where `state_of` was called."""
    model.set_parameters(state["parameters"], exact_match=True, device=model.device)
    tensors = state["tensors"] if "tensors" in state else _former_tensors(state)
    for name, tensor in _tensors(model, algorithm).items():
        if tensor.requires_grad:  # an optimizer has it too
            with torch.no_grad():
                tensor.copy_(tensors[name])
        else:
            setattr(model, name, tensors[name])
    model.num_timesteps = state["step"]
    set_update_count(model, state["updates"])
    if isinstance(model, OffPolicyAlgorithm):
        _restore_replay(model, state["replay"])


def _tensors(model: BaseAlgorithm, algorithm: Algorithm) -> dict[str, torch.Tensor]:
    """What is learned outside of networks; SAC's entropy coefficient may be fixed instead."""
    tensors = {name: getattr(model, name) for name in algorithm.state}
    return {name: tensor for name, tensor in tensors.items() if tensor is not None}


def _former_tensors(state: Mapping[str, Any]) -> dict[str, torch.Tensor]:
    """Returns the tensors of a checkpoint from before algorithms had a registry."""
    comparisons = zip(("observations", "advantages"), state.get("comparisons", ()), strict=False)
    return {**state["variables"], **dict(comparisons)}


_REPLAY = ("observations", "next_observations", "actions", "rewards", "dones", "timeouts")


def _replay(model: OffPolicyAlgorithm) -> dict[str, Any]:
    buffer: Any = model.replay_buffer
    filled = buffer.buffer_size if buffer.full else buffer.pos
    arrays = {name: torch.from_numpy(getattr(buffer, name)[:filled]) for name in _REPLAY}
    return {**arrays, "position": buffer.pos, "full": buffer.full}


def _restore_replay(model: OffPolicyAlgorithm, state: Mapping[str, Any]) -> None:
    buffer: Any = model.replay_buffer
    for name in _REPLAY:
        array = state[name].numpy()
        getattr(buffer, name)[: len(array)] = array
    buffer.pos, buffer.full = state["position"], state["full"]
