"""Where tables and messages are printed.

rich is imported where something is printed with it: importing quicgym takes a tenth less then.
"""

from __future__ import annotations

import codecs
import sys
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, TextColumn
    from rich.table import Table

WIDTH_OF_FILES = 160
"""Characters of a line where standard output is no terminal."""
PLAIN_TEXT = "quicgym-plain-text"
"""How a stream treats letters that its encoding does not have: a minus sign becomes a hyphen."""
_IN_PLAIN_TEXT = str.maketrans(
    {"−": "-", "–": "-", "×": "x", "µ": "u", "≤": "<=", "≥": ">=", "±": "+-", "→": "->", "…": "..."}
)


def _in_plain_text(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = error.object[error.start : error.end].translate(_IN_PLAIN_TEXT)
    return text.encode("ascii", "replace").decode(), error.end


codecs.register_error(PLAIN_TEXT, _in_plain_text)


def wide_console() -> Console:
    """Returns standard output, on which no number of a table is cut.

    Where a terminal is narrower than a table, the terminal folds its lines.
    """
    from rich.console import Console

    return Console(width=max(Console().width, WIDTH_OF_FILES))


def print_whole(table: Table) -> None:
    """Prints a table with all its columns, on lines as long as these need."""
    from rich.console import Console
    from rich.measure import Measurement

    console = wide_console()
    unlimited = console.options.update(width=sys.maxsize)
    needed = Measurement.get(console, unlimited, table).maximum
    Console(width=max(console.width, needed)).print(table)


def terminal_width() -> int:
    """Returns how many characters a line of standard output has room for."""
    from rich.console import Console

    console = Console()
    return console.width if console.is_terminal else max(console.width, WIDTH_OF_FILES)


def print_by_columns(
    headings: Sequence[str], rows: Sequence[Sequence[str]], *, width: int | None = None
) -> None:
    """Prints a table; columns for which a terminal has no room follow below, with the first again.

    Headings have one line or more; the first column names the rows. `width` is in characters; None:
    the terminal's.
    """
    from rich.cells import cell_len
    from rich.table import Table

    room = terminal_width() if width is None else width
    columns = [
        max(cell_len(line) for text in (heading, *cells) for line in text.split("\n"))
        for heading, *cells in zip(headings, *rows, strict=True)
    ]
    first = 1
    while first < len(headings):
        last, used = first + 1, columns[0] + 2 + columns[first]
        while last < len(headings) and used + 2 + columns[last] <= room:
            used += 2 + columns[last]
            last += 1
        table = Table(box=None, pad_edge=False)
        table.add_column(headings[0], no_wrap=True)
        for heading in headings[first:last]:
            table.add_column(heading, justify="right", no_wrap=True)
        for row in rows:
            table.add_row(row[0], *row[first:last])
        if first > 1:
            print()
        print_whole(table)
        first = last


def count_of(number: int, noun: str) -> str:
    """Returns "1 seed" or "2 seeds"."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def say(text: str) -> None:
    """Prints a message to standard error, where it does not mix with results."""
    print(text, file=sys.stderr, flush=True)


def show_warnings_as_notes() -> None:
    """Shows from now on what warns a user as a note: a line of our code says nothing to them."""
    shown = warnings.showwarning

    def show(message: Warning | str, category: type[Warning], *rest: Any, **more: Any) -> None:
        if issubclass(category, UserWarning):
            say(f"note: {message}")
        else:
            shown(message, category, *rest, **more)

    warnings.showwarning = show


def progress_bar(*columns: TextColumn) -> Progress:
    """Returns a bar on standard error that counts what is done; silent where that is no terminal.

    `columns` are shown after the time left; their fields are given to `add_task`.
    """
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    # Not console.is_terminal, which Jupyter's FORCE_COLOR makes true for a pipe and for a file.
    is_terminal = sys.stderr.isatty()
    # Quiet as well: rich before 15 ends a disabled bar with an empty line.
    console = Console(stderr=True, quiet=not is_terminal)
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        *columns,
        console=console,
        disable=not is_terminal,
    )
