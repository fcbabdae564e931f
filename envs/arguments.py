"""Misspelt arguments of the environments: an error that suggests the right one."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import ParamSpec, TypeVar

from quicgym.envs.decisions import Decisions
from quicgym.yaml_files import closest

_P = ParamSpec("_P")
_T = TypeVar("_T")


def suggests_arguments(function: Callable[_P, _T]) -> Callable[_P, _T]:
    """Decorates a function so that an argument it does not have is a TypeError with a suggestion.

    A last parameter `**decisions` stands for the fields of Decisions, and the signature shows them.
    """
    signature = inspect.signature(function)
    parameters = list(signature.parameters.values())
    if parameters[-1].name == "decisions":
        _, *shared = inspect.signature(Decisions).parameters.values()
        parameters[-1:] = [entry.replace(kind=entry.KEYWORD_ONLY) for entry in shared]

    @functools.wraps(function)
    def checked(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        check_arguments(kwargs, known)
        return function(*args, **kwargs)

    vars(checked)["__signature__"] = signature.replace(parameters=parameters)
    known = keywords(checked)
    return checked


def keywords(function: Callable[..., object]) -> tuple[str, ...]:
    """Returns the names of a function's arguments, but for `self` and `**`."""
    return tuple(
        name
        for name, parameter in inspect.signature(function).parameters.items()
        if name != "self" and parameter.kind is not parameter.VAR_KEYWORD
    )


def check_arguments(given: Iterable[str], known: Iterable[str]) -> None:
    """Raises TypeError for the first given name that is not known, in Python's own words.

    TorchRL's GymEnv tries arguments, and knows by these words that one is not there.
    """
    known = tuple(known)
    for name in given:
        if name not in known:
            raise TypeError(f"unexpected keyword argument {name!r}; {closest(name, known)}")
