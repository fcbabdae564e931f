"""`quicgym controllers`."""

from __future__ import annotations

import sys
from fnmatch import fnmatchcase
from typing import Annotated

import typer

from quicgym import controllers as catalogue
from quicgym.benchmarks import options
from quicgym.console import wide_console
from quicgym.envs.scenarios.fields import ScenarioError
from quicgym.yaml_files import closest

EXAMPLES = ("quicgym controllers", "quicgym controllers bbr3", "quicgym controllers 'bbr*' cubic")


def controllers(
    name: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME]...",
            autocompletion=options.complete_controllers,
            help="List only these controllers; 'bbr*' is every one that begins with bbr. Default: "
            "all.",
        ),
    ] = None,
) -> None:
    """List the controllers and their parameters with defaults, ranges and units.

    Controllers that other installed packages bring stand at the end.
    """
    from rich.table import Table

    known = catalogue.names()
    for pattern in name or ():
        if not any(fnmatchcase(entry, pattern) for entry in known):
            raise ScenarioError(f"no controller {pattern!r}; {closest(pattern, known)}")
    output = Table(box=None, pad_edge=False)
    for heading in ("controller, parameter", "default", "range", "unit", "what it is"):
        output.add_column(heading, no_wrap=heading != "what it is")
    unusable = []
    for each in known:
        if name and not any(fnmatchcase(each, pattern) for pattern in name):
            continue
        try:
            entry = catalogue.find(each)
        except ImportError as error:
            unusable.append(str(error))
            continue
        output.add_row(entry.name, "", "", "", _about(entry.description, entry.source))
        for parameter in entry.parameters:
            default = ", ".join(
                parameter.choices[int(number)] if parameter.choices else f"{number:g}"
                for number in parameter.default
            )
            limits = f"{parameter.minimum:g} to {parameter.maximum:g}"
            if parameter.choices:
                limits = "a name"  # the description has all of them
            text = _about(parameter.description, parameter.source)
            output.add_row(f"  {parameter.name}", default, limits, parameter.unit, text)
    wide_console().print(output)
    for problem in unusable:
        print(f"quicgym: {problem}", file=sys.stderr)


def _about(description: str, source: str) -> str:
    return f"{description} ({source})" if source else description
