"""Finds what installed packages add to quicgym. No other module reads entry points.

A package names an object in its pyproject.toml; the name on the left is what users type:

    [project.entry-points."quicgym.controllers"]
    mine = "my_package:Mine"

The groups are `quicgym.controllers`, `quicgym.algorithms`, `quicgym.environments`,
`quicgym.stacks`, `quicgym.kernels`, `quicgym.commands` and `quicgym.reports`. quicgym itself uses
`quicgym.runners`, where a lower layer calls a higher one. Each module that looks something up says
what an entry must be. An object is imported when somebody asks for it by name.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from types import MappingProxyType
from typing import Any, Literal

from quicgym.errors import UserError

Kind = Literal[
    "controller", "algorithm", "environment", "stack", "kernel", "command", "report", "runner"
]
"""The group of a kind is its plural: `quicgym.controllers`."""


class PluginError(UserError, ImportError):
    """Raised if an installed package's addition cannot be used; names the entry point and why."""


@cache
def installed(kind: Kind) -> Mapping[str, tuple[EntryPoint, ...]]:
    """Returns the entry points of a kind by name, in alphabetical order, without importing any.

    This reads the files of every installed package, so it happens once.
    """
    found: dict[str, tuple[EntryPoint, ...]] = {}
    for entry in entry_points(group=f"quicgym.{kind}s"):
        found[entry.name] = (*found.get(entry.name, ()), entry)
    return MappingProxyType(dict(sorted(found.items())))


def registered(kind: Kind, own: tuple[str, ...] = ()) -> Mapping[str, tuple[EntryPoint, ...]]:
    """Returns those of `installed` whose names are not `own`: names that quicgym has itself.

    Such a name keeps its meaning, and the entry point is left out with a RuntimeWarning.
    """
    found = installed(kind)
    taken = found.keys() & set(own)
    for entry in (entry for name in taken for entry in found[name]):
        warnings.warn(
            f"{title(kind, entry)} is refused: quicgym has a {kind} of this name; register it "
            "under another one",
            RuntimeWarning,
            stacklevel=3,
        )
    return {name: found[name] for name in found if name not in taken}


def load(kind: Kind, name: str, check: Callable[[Any], Any] = lambda plugin: plugin) -> Any:
    """Imports what is registered under a name, and returns what `check` makes of it.

    Args:
        kind: What it adds.
        name: One of `installed`.
        check: Raises any exception where the object is not what it should be.

    Raises:
        PluginError: Several packages register the name, the import fails, or the check does.
    """
    entry, *others = installed(kind)[name]
    if others:
        packages = " and ".join(package(other) for other in (entry, *others))
        raise PluginError(f"{kind} {name!r} is registered by {packages}; keep one of them")
    try:
        return check(entry.load())
    except Exception as error:  # whatever the package's modules raise
        reason = f"{type(error).__name__}: {error}"
        raise PluginError(f"{title(kind, entry)} cannot be loaded: {reason}") from error


def load_all(kind: Kind, own: tuple[str, ...] = ()) -> dict[str, Any]:
    """Imports all of a kind by name. What cannot be used is named on stderr and left out.

    Args:
        kind: What they add.
        own: See `registered`.
    """
    found = {}
    for name in registered(kind, own):
        try:
            found[name] = load(kind, name)
        except PluginError as error:
            print(f"quicgym: {error}", file=sys.stderr)
    return found


def title(kind: Kind, entry: EntryPoint) -> str:
    """Returns how messages name an entry point."""
    return f"{kind} {entry.name!r} (entry point {entry.value} of {package(entry)})"


def package(entry: EntryPoint) -> str:
    """Returns the name of the distribution that registers an entry point."""
    return entry.dist.name if entry.dist else "an unknown package"
