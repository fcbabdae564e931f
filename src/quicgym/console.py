"""Where tables are printed."""

from rich.console import Console


def wide_console() -> Console:
    """Returns standard output; lines of a file or pipe are not folded at 80 columns."""
    console = Console()
    return console if console.is_terminal else Console(width=160)
