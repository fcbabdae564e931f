"""The environments by name. Each registers itself; everything else looks them up here."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated

import gymnasium
from pydantic import AfterValidator

from quicgym import plugins
from quicgym.yaml_files import closest

if TYPE_CHECKING:
    from quicgym.envs.environment import CongestionControlEnv

_registered: dict[str, type[CongestionControlEnv]] = {}


def environments() -> Mapping[str, type[CongestionControlEnv]]:
    """Returns the environments by name, in the order in which they were registered."""
    return MappingProxyType(_registered)


def environment_ids() -> tuple[str, ...]:
    """Returns Gymnasium's ids of the environments, such as "quicgym/Tuning-v1"."""
    return tuple(environment.id for environment in _registered.values())


def environment_id(name: str) -> str:
    """Returns Gymnasium's id: "window" has "quicgym/Window-v1"."""
    return f"quicgym/{''.join(part.capitalize() for part in name.split('_'))}-v1"


def environment_name(name_or_id: str) -> str:
    """Returns the name for a name or an id; what is neither comes back as it is."""
    for name, environment in _registered.items():
        if name_or_id == environment.id:
            return name
    return name_or_id


def find_environment(
    name_or_id: str | type[CongestionControlEnv],
) -> type[CongestionControlEnv]:
    """Returns the class of an environment.

    Args:
        name_or_id: Such as "tuning" or "quicgym/Tuning-v1"; or the class itself. A package names
            its class by an entry point of the group `quicgym.environments`.

    Raises:
        ValueError: There is none of this name.
    """
    if isinstance(name_or_id, type):
        return name_or_id
    for name in plugins.installed("environment"):
        if name_or_id in (name, environment_id(name)) and name not in _registered:
            plugins.load("environment", name)  # which registers the class
    try:
        return _registered[environment_name(name_or_id)]
    except KeyError:
        raise unknown_environment(name_or_id) from None


EnvironmentId = Annotated[str, AfterValidator(lambda name: find_environment(name).id)]
"""The type of a field in a file: a name or an id, which becomes the id."""


def unknown_environment(name_or_id: str) -> ValueError:
    """Returns the error for an unknown name or id."""
    known = tuple(_registered) if name_or_id.isidentifier() else environment_ids()
    return ValueError(f"unknown environment {name_or_id!r}; {closest(name_or_id, known)}")


def register(environment: type[CongestionControlEnv]) -> None:
    """Registers an environment with Gymnasium and with quicgym.

    ValueError if the class's name belongs to another environment, or is not a valid name.
    """
    name = environment.environment
    if not name.isidentifier() or name != name.lower():
        raise ValueError(
            f"{environment.__qualname__}.environment = {name!r}: give a lower-case name such as "
            "'tuning'"
        )
    known = _registered.get(name)
    place = (environment.__module__, environment.__qualname__)
    if known is not None and (known.__module__, known.__qualname__) != place:
        raise ValueError(
            f"{environment.__qualname__}.environment = {name!r}: is the name of "
            f"{known.__module__}.{known.__qualname__}; give another"
        )
    _registered[name] = environment
    gymnasium.register(
        id=environment.id,
        entry_point=f"{environment.__module__}:{environment.__name__}",
        vector_entry_point=f"quicgym.envs.vector:{name}_vector_env",
    )
