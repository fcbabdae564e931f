"""Controllers by name: quicgym's own, those of packages, and those named by their place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from importlib.metadata import EntryPoint
from typing import Any

from quicgym import _core, plugins
from quicgym.controllers import choices
from quicgym.controllers.choices import is_place, load, parse_parameters
from quicgym.controllers.description import ControllerInfo
from quicgym.controllers.plugins import describe_entry, describe_plugin
from quicgym.controllers.python_controller import describe


@cache
def catalogue() -> tuple[ControllerInfo, ...]:
    """Returns quicgym's own controllers, in the order in which tables show them."""
    return tuple(describe_entry(entry) for entry in _core.catalogue())


@cache
def baselines() -> tuple[str, ...]:
    """Returns the names of quicgym's own controllers that decide by themselves.

    They are in the order in which evaluations show them.
    """
    return tuple(_core.baselines())


def registered() -> Mapping[str, tuple[EntryPoint, ...]]:
    """Returns the entry points of installed packages by name, without importing any.

    A name that a controller of quicgym has keeps its meaning: that entry point is left out with a
    RuntimeWarning. An entry is a subclass of quicgym.Controller, or a capsule of C++.
    """
    return plugins.registered("controller", tuple(own.name for own in catalogue()))


def names() -> list[str]:
    """Returns the names of all controllers: quicgym's own, then the registered ones."""
    return [*(controller.name for controller in catalogue()), *registered()]


def split_parameters(name: str) -> tuple[str, str]:
    """Returns what names a controller, and the text of its parameters; that is empty for none."""
    own_name, colon, text = name.partition(":")
    if colon and own_name in names():
        return own_name, text
    return choices.split_parameters(name)


def find(name: str) -> ControllerInfo:
    """Returns the controller of that name; imports it where it is not one of quicgym.

    Args:
        name: The name as users give it, see quicgym.controllers.choices.

    Raises:
        KeyError: If there is none; the message lists those that exist.
        ImportError: If a registered one, or one that is named by its place, cannot be used; the
            message names the entry point or the place and the reason.
        ValueError: If it has no parameter of a given name, or not with this value.
    """
    own_name, text = split_parameters(name)
    if own_name != name:
        info = find(own_name)
        given = parse_parameters(text)
        info.complete(given)  # checks them
        return replace(info, name=f"{info.name}:{text}", given=given)
    for controller in catalogue():
        if controller.name == name:
            return controller
    if name in registered():
        return _load(name)
    if is_place(name):
        return load(name)
    raise KeyError(f"no controller is named '{name}'; there are: {', '.join(names())}")


@cache
def _load(name: str) -> ControllerInfo:
    def describe_any(loaded: Any) -> ControllerInfo:
        is_capsule = type(loaded).__name__ == "PyCapsule"  # the type has no name in Python
        info = describe_plugin(loaded) if is_capsule else describe(loaded)
        return replace(info, name=name, own_name=name)

    info: ControllerInfo = plugins.load("controller", name, describe_any)
    return info
