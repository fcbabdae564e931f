"""The command `quicgym`: one file per command, errors and exit status here."""

from __future__ import annotations

import io
import os
import platform
import re
import sys
from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from itertools import chain
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from quicgym import __version__, _core, plugins
from quicgym.console import PLAIN_TEXT, show_warnings_as_notes
from quicgym.envs.simulation.simulation import ns3_version
from quicgym.errors import UserError, missing_extra
from quicgym.output_folders import DISK_ERRORS

COMPLETE = "_QUICGYM_COMPLETE"
"""What a shell that completes a line sets in the environment."""
MOST_CHARACTERS = 200
"""The longest description of a command in `quicgym --help`."""


class _Groups(TyperGroup):
    """Shows the commands in groups."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        width = max(map(len, self.commands))
        for title, names in COMMANDS.items():
            with formatter.section(title):
                formatter.write_dl(
                    [
                        (f"{command.name:{width}}", command.get_short_help_str(MOST_CHARACTERS))
                        for command in (self.commands[name.replace("_", "-")] for name in names)
                    ]
                )


app = typer.Typer(
    cls=_Groups,
    help="Compare hand-coded QUIC congestion controllers with learned agents on one reward.\n\n"
    "The hand-coded ones come from four papers (eBCC, IBCCA, Cubic+ and NewReno+, BBR variants) "
    "and from the standards. The agents tune γ, β, the gain cycle and the RTT smoothing α of a "
    "BBR-like controller, or the window. All are simulated on the same networks, and the reward "
    "counts throughput, loss and fairness.\n\n"
    "Begin with `quicgym baselines`, which takes about a minute. `quicgym show` lists the names "
    "that commands take, and `quicgym COMMAND --help` has examples.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(show: bool) -> None:
    if show:
        print(f"quicgym {__version__}")
        print(f"commit {_core.commit}")
        print(f"ns-3 {ns3_version() or 'not installed'}")
        print(f"Python {platform.python_version()}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            callback=_version,
            is_eager=True,
            help="Show the versions of quicgym, ns-3 and Python, and quicgym's git commit.",
        ),
    ] = False,
) -> None:
    pass


def _epilog(examples: Sequence[str]) -> str:
    return "Examples:\n\n\b\n" + "\n".join(f"  {example}" for example in examples)


COMMANDS: dict[str, tuple[str, ...]] = {  # the groups and the order of `quicgym --help`
    "Compare": (
        "baselines", "papers", "evaluate", "coexist", "league", "checklist", "attack", "compare",
        "plot",
    ),
    "Train": ("train", "sweep", "import_agent"),
    "Simulate": ("show", "serve", "parity", "speed"),
    "Real networks": ("real", "link"),
}  # fmt: skip


def _add(function: Callable[..., None], name: str) -> None:
    examples = getattr(sys.modules[function.__module__], "EXAMPLES", None)
    app.command(name.replace("_", "-"), epilog=_epilog(examples) if examples else None)(function)


for _name in chain(*COMMANDS.values()):
    _add(getattr(import_module(f"quicgym.cli.{_name}"), _name), _name)
# Other packages' commands are functions with annotations of typer; their modules may have EXAMPLES.
_others = plugins.load_all("command", tuple(chain(*COMMANDS.values())))
for _name, _command in _others.items():
    _add(_command, _name)
if _others:
    COMMANDS["Other packages"] = tuple(_others)


@cache
def group() -> TyperGroup:
    """Returns all commands with their options, which takes 25 ms the first time."""
    commands = typer.main.get_command(app)
    assert isinstance(commands, TyperGroup)
    return commands


def spread(arguments: Sequence[str]) -> list[str]:
    """Returns the arguments with `--scenario a b` written as `--scenario a --scenario b`.

    Everything after `--` stays as it is, because these are another program's arguments.
    """
    several = (
        "--scenario", "--controller", "--paper", "--policy", "--policies", "--field", "--suite",
        "--versus", "--beside", "--counts", "--queues", "--rtts", "--rates", "--discipline",
        "--against", "--columns",
    )  # fmt: skip
    result: list[str] = []
    option = ""
    for index, argument in enumerate(arguments):
        if argument == "--":
            return [*result, *arguments[index:]]
        if argument.startswith("-"):
            option = argument if argument in several else ""
        elif option and result[-1] != option:
            result.append(option)
        result.append(argument)
    return result


def _refuse_other_bytes(arguments: Sequence[str]) -> None:
    for argument in arguments:
        if argument != argument.encode(errors="ignore").decode():
            raise UserError(
                f"{ascii(argument)}: is not UTF-8, so no file could name it; give another name"
            )


def _spread_completion() -> None:
    """Spreads a line that a shell wants completed, which it gives in the environment."""
    for name in {"COMP_WORDS", "_TYPER_COMPLETE_ARGS"} & {*os.environ}:  # bash, and all others
        words = re.split(r"\s", os.environ[name])
        words = spread(words[: int(os.environ.get("COMP_CWORD", len(words))) + 1])
        os.environ |= {name: " ".join(words), "COMP_CWORD": str(len(words) - 1)}


def main() -> None:
    """Runs the command; bad input ends with exit status 2 and a message, without a traceback."""
    show_warnings_as_notes()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=PLAIN_TEXT)
    if COMPLETE in os.environ:
        _spread_completion()
    try:
        _refuse_other_bytes(sys.argv)
        group()(spread(sys.argv[1:]), prog_name="quicgym")
    except UserError as error:
        print(f"quicgym: {error}", file=sys.stderr)
        sys.exit(2)
    except OSError as error:
        remedy = DISK_ERRORS.get(error.errno or 0)
        if remedy is None:
            raise
        where = f"{error.filename}: " if error.filename else ""
        print(
            f"quicgym: {where}{error.strerror}; {remedy}. Finished runs are kept: if the "
            "command has --resume, it continues from them",
            file=sys.stderr,
        )
        sys.exit(1)
    except ModuleNotFoundError as error:
        missing = missing_extra(error)
        if missing is None:
            raise
        print(f"quicgym: {missing}", file=sys.stderr)
        sys.exit(2)
