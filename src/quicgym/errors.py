"""Errors that a user can mend: their text is all that the command line shows of them."""

from __future__ import annotations

TRAIN_PACKAGES = ("optuna", "ray", "safetensors", "stable_baselines3", "tensorboard", "torch")
"""What the extra `train` installs."""


class UserError(Exception):
    """What was asked cannot be done; the text says why, and what to do."""


class RunError(UserError, ValueError):
    """A run's folder cannot be used as asked; the text says why, and what to do."""


class PolicyError(UserError, ValueError):
    """A policy's files are not what they should be; the text says which, and why."""


class MissingExtraError(UserError, ImportError):
    """A part of quicgym that an extra installs is not there."""

    def __init__(self, what: str) -> None:
        """Says how to get it."""
        super().__init__(
            f"{what}; install quicgym with the extra `train`: pip install 'quicgym[train]', or "
            "`make setup EXTRAS=dev,ns3,train` in a checkout"
        )
        self._what = what

    def __reduce__(self) -> tuple[type[MissingExtraError], tuple[str]]:
        """As another process makes it: from what is missing, not from the whole text."""
        return type(self), (self._what,)
