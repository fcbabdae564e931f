"""Where tables and messages are printed."""

import sys

from rich.console import Console


def wide_console() -> Console:
    """Returns standard output; lines of a file or pipe are not folded at 80 columns."""
    console = Console()
    return console if console.is_terminal else Console(width=160)


def say(text: str) -> None:
    """Prints a message to standard error, where it does not mix with results."""
    print(text, file=sys.stderr, flush=True)
