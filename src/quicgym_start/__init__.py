"""The program `quicgym`, outside the package: what happens before its commands are imported."""

from __future__ import annotations

import signal


def main() -> None:
    """Imports the commands and runs one. Ctrl-C ends the import without a traceback."""
    handler = signal.getsignal(signal.SIGINT)
    if handler is signal.default_int_handler:  # else whoever started the program ignores Ctrl-C
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from quicgym.cli import main as run

    signal.signal(signal.SIGINT, handler)
    run()
