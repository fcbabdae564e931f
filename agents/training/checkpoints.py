"""Checkpoints: the states at which a training resumes, as PyTorch files that run no code."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from quicgym.agents.training.folder import RunFolder
from quicgym.console import say
from quicgym.errors import RunError
from quicgym.output_folders import write_atomically

KEPT = 2


def save_checkpoint(folder: RunFolder, step: int, state: Mapping[str, Any]) -> Path:
    """Writes a checkpoint, then removes all but the newest ones; after OSError all are there.

    This one stays, whatever else is in the folder, because a damaged file may have a later step.
    """
    path = folder.checkpoint(step)

    def save(target: Path) -> None:
        try:
            torch.save(dict(state), target)
        except RuntimeError as error:  # which is what PyTorch makes of a full disk
            raise OSError(str(error).splitlines()[0]) from error

    write_atomically({path: save})
    for old in [other for other in folder.checkpoints() if other != path][: 1 - KEPT]:
        old.unlink()
    return path


def load_newest(folder: RunFolder) -> dict[str, Any] | None:
    """Returns the newest checkpoint that can be read, and names newer ones; None: there is none.

    Raises:
        RunError: There are checkpoints, but none that can be read.
    """
    problems: list[str] = []
    measured = {record["step"] for record in folder.evaluations()}
    for path in reversed(folder.checkpoints()):
        try:
            state = read_checkpoint(path)
            if state["step"] not in measured:  # an evaluation is written before its checkpoint
                raise RunError(
                    f"{path}: is of step {state['step']:,}, of which "
                    f"{folder.evaluations_path.name} has no evaluation"
                )
        except RunError as error:
            problems.append(str(error))
            continue
        for problem in problems:
            say(f"note: {problem}; an older one takes its place")
        return state
    if problems:
        raise RunError(
            f"{'; '.join(problems)}; restore one of these files, or begin anew in another folder "
            "with --out"
        )
    return None


def read_checkpoint(path: Path) -> dict[str, Any]:
    """Returns what a checkpoint has; RunError where it is none."""
    try:
        state: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
        step = state.get("step") if isinstance(state, dict) else None
        if not isinstance(step, int) or step < 0 or not isinstance(state.get("best"), dict):
            raise ValueError("it has no step or no best policy")
    except Exception as error:  # what PyTorch makes of a damaged file is of any kind
        reason = str(error) or type(error).__name__
        raise RunError(f"{path}: is no checkpoint: {reason}") from error
    return state
