"""Congestion controllers: names, parameters, ranges, units and sources.

quicgym's own are C++, and this package only describes them. Users write theirs by subclassing
Controller.
"""

from quicgym._core import AckEvent, EcnEvent, LossEvent, Random, RateSample
from quicgym.controllers.choices import (
    ControllerFileError,
    absolute,
    file_of,
    is_agent,
    is_place,
    refuse_place,
    without_folder,
)
from quicgym.controllers.description import ControllerInfo, Parameter
from quicgym.controllers.python_controller import Controller, ControllerError, describe
from quicgym.controllers.registry import (
    baselines,
    catalogue,
    find,
    names,
    registered,
    split_parameters,
)

__all__ = [
    "AckEvent",
    "Controller",
    "ControllerError",
    "ControllerFileError",
    "ControllerInfo",
    "EcnEvent",
    "LossEvent",
    "Parameter",
    "Random",
    "RateSample",
    "absolute",
    "baselines",
    "catalogue",
    "describe",
    "file_of",
    "find",
    "is_agent",
    "is_place",
    "names",
    "refuse_place",
    "registered",
    "split_parameters",
    "without_folder",
]
