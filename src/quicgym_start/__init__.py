"""The program `quicgym`, outside the package: what happens before its commands are imported."""

from __future__ import annotations

import os
import signal
import sys


def main() -> None:
    """Imports the commands and runs one. Ctrl-C ends the import without a traceback."""
    _open_closed_streams()
    handler = signal.getsignal(signal.SIGINT)
    if handler is signal.default_int_handler:  # else whoever started the program ignores Ctrl-C
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from quicgym.cli import main as run

    signal.signal(signal.SIGINT, handler)
    run()


def _open_closed_streams() -> None:
    """Lets nothing be read or written where a shell has closed a stream, as by `2>&-`.

    Otherwise the next file that is opened would take the stream's place.
    """
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))
