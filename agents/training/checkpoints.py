"""Checkpoints: what a training goes on from, as files of PyTorch that run no code when loaded."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm

from quicgym.agents.algorithms.registry import Algorithm
from quicgym.agents.training.folder import RunFolder
from quicgym.agents.training.stable_baselines3_state import set_update_count, update_count
from quicgym.errors import RunError
from quicgym.output_folders import write_atomically

KEPT = 2


def save_checkpoint(folder: RunFolder, step: int, state: Mapping[str, Any]) -> Path:
    """Writes a checkpoint, then removes all but the newest ones.

    Raises:
        OSError: It cannot be written; those that were there before still are.
    """
    path = folder.checkpoint(step)

    def save(target: Path) -> None:
        try:
            torch.save(dict(state), target)
        except RuntimeError as error:  # which is what PyTorch makes of a full disk
            raise OSError(str(error).splitlines()[0]) from error

    write_atomically({path: save})
    for old in folder.checkpoints()[:-KEPT]:
        old.unlink()
    return path


def load_newest(folder: RunFolder) -> dict[str, Any] | None:
    """Returns the newest checkpoint that can be read; None where there is none."""
    for path in reversed(folder.checkpoints()):
        try:
            return read_checkpoint(path)
        except RunError:
            continue
    return None


def read_checkpoint(path: Path) -> dict[str, Any]:
    """Returns what a checkpoint has; RunError where it cannot be read."""
    try:
        state: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
    except (OSError, RuntimeError, ValueError, EOFError, pickle.UnpicklingError) as error:
        raise RunError(f"{path}: is no checkpoint: {error}") from error
    return state


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
    tensors = state["tensors"]
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
