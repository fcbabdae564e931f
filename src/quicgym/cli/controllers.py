"""`quicgym controllers`."""

from __future__ import annotations

import sys

from rich.table import Table

from quicgym import controllers as catalogue
from quicgym.console import wide_console


def controllers() -> None:
    """List the controllers and their parameters, those of installed packages at the end."""
    output = Table(box=None, pad_edge=False)
    for heading in ("controller, parameter", "default", "range", "unit", "what it is"):
        output.add_column(heading, no_wrap=heading != "what it is")
    unusable = []
    for name in catalogue.names():
        try:
            entry = catalogue.find(name)
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
