"""Errors that a user can mend: their text is all that the command line shows of them."""

from __future__ import annotations

EXTRA_PACKAGES = {
    "examples": ("lz4", "ormsgpack", "tensordict", "torchrl", "tree"),
    "multi": ("pettingzoo",),
    "ns3gym": ("google", "zmq"),
    "offline": ("minari",),
    "onnx": ("onnxruntime",),
    "reports": ("jinja2", "matplotlib", "pandas", "pyarrow", "scipy", "tensorboard"),
    "sweep": ("optuna", "ray"),
    "train": ("safetensors", "stable_baselines3", "torch"),
}
"""Extra -> the packages that it installs, by the names that are imported."""


class UserError(Exception):
    """Raised if a request cannot be fulfilled; the text says why, and what to do."""


class RunError(UserError, ValueError):
    """A run's folder cannot be used as asked; the text says why, and what to do."""


class PolicyError(UserError, ValueError):
    """A policy's files are not what they should be; the text says which, and why."""


class RewardError(UserError, ValueError):
    """A reward function of a file cannot be used; the text names file, function and remedy."""


class ClusterError(UserError, ValueError):
    """A Ray cluster cannot be used, or goes away; the text says which, why, and what to do."""


class MissingExtraError(UserError, ImportError):
    """A part of quicgym that an extra installs is not there."""

    def __init__(self, what: str, extra: str = "train") -> None:
        """Says what needs the extra, a key of EXTRA_PACKAGES, and how to get it."""
        in_dev = extra not in {"sweep", "train", "examples"}
        command = "make setup" if in_dev else f"make setup EXTRAS=dev,{extra}"
        first = (
            "; without a GPU, first run `pip install torch --index-url "
            "https://download.pytorch.org/whl/cpu`, because PyTorch with CUDA takes 6 GB"
        )
        super().__init__(
            f"{what}; in a checkout of quicgym, install the extra `{extra}`: "
            f"pip install '.[{extra}]', or `{command}`{first if extra == 'train' else ''}"
        )
        self._arguments = (what, extra)

    def __reduce__(self) -> tuple[type[MissingExtraError], tuple[str, str]]:
        """Lets another process make the error from what is missing, not from the whole text."""
        return type(self), self._arguments


def missing_extra(error: ImportError) -> MissingExtraError | None:
    """Returns the error that names the extra; None where a package of no extra is missing."""
    package = (error.name or "").partition(".")[0]
    for extra, packages in EXTRA_PACKAGES.items():
        if package in packages:
            return MissingExtraError(f"there is no {error.name}", extra)
    return None
