"""Descriptions of controllers in C++: quicgym's own, and those of extension modules."""

from __future__ import annotations

from typing import Any

from quicgym import _core
from quicgym.controllers.description import ControllerInfo, Parameter, check_name


def describe_entry(entry: dict[str, Any]) -> ControllerInfo:
    """Returns a controller as the catalogue of C++ describes it."""
    parameters = tuple(_parameter(**parameter) for parameter in entry["parameters"])
    return ControllerInfo(**{**entry, "parameters": parameters})


def describe_plugin(capsule: Any) -> ControllerInfo:
    """Returns a controller of an extension module; TypeError where it is for another version."""
    info = describe_entry(_core.describe_plugin(capsule))
    check_name("the extension module", info.name)
    return ControllerInfo(
        name=info.name,
        description=info.description,
        source=info.source,
        parameters=info.parameters,
        plugin=capsule,
    )


def _parameter(default: list[float], is_list: bool, **fields: Any) -> Parameter:
    return Parameter(default=default if is_list else default[0], **fields)
