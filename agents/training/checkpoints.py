"""Checkpoints: the states at which a training resumes, as PyTorch files that run no code."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from zipfile import ZIP_STORED, ZipFile

import torch

from quicgym.agents.training.folder import RunFolder
from quicgym.errors import RunError
from quicgym.input_files import MOST_CHECKPOINT_BYTES, open_input
from quicgym.output_folders import write_atomically

KEPT = 2


def save_checkpoint(folder: RunFolder, step: int, state: Mapping[str, Any]) -> Path:
    """Writes a checkpoint, then removes all but the newest ones; after OSError all are there."""
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
    """Returns what a checkpoint has, no larger than its file; RunError where it is none."""
    try:
        with open_input(path, MOST_CHECKPOINT_BYTES) as file:
            # PyTorch writes neither compressed members nor, since 1.6, anything but archives.
            with ZipFile(file) as archive:
                if any(member.compress_type != ZIP_STORED for member in archive.infolist()):
                    raise ValueError("a part of it is compressed")
            file.seek(0)
            state: dict[str, Any] = torch.load(file, map_location="cpu", weights_only=True)
    except Exception as error:  # what PyTorch makes of a damaged file is of any kind
        raise RunError(f"{path}: is no checkpoint: {error}") from error
    return state
