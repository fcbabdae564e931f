"""The names of the YAML files in a folder of quicgym's own data."""

from __future__ import annotations

from importlib.resources.abc import Traversable


def yaml_names(folder: Traversable) -> list[str]:
    """Returns the names without their ending, sorted."""
    names = (entry.name for entry in folder.iterdir())
    return sorted(name.removesuffix(".yaml") for name in names if name.endswith(".yaml"))
