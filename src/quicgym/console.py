"""Where tables and messages are printed."""

import sys

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn


def wide_console() -> Console:
    """Returns standard output, on which no number of a table is cut.

    Where a terminal is narrower than a table, the terminal folds its lines.
    """
    return Console(width=max(Console().width, 160))


def say(text: str) -> None:
    """Prints a message to standard error, where it does not mix with results."""
    print(text, file=sys.stderr, flush=True)


def progress_bar(*columns: TextColumn) -> Progress:
    """Returns a bar on standard error that counts what is done; silent where that is no terminal.

    Args:
        columns: Shown after the time left; their fields are given to `add_task`.
    """
    console = Console(stderr=True)
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        *columns,
        console=console,
        disable=not console.is_terminal,
    )
