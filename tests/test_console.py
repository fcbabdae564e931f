"""What commands write where nobody watches."""

from __future__ import annotations

import os
import subprocess
import sys

PROGRAM = """
from quicgym.console import progress_bar

with progress_bar() as progress:
    task = progress.add_task("episodes", total=2)
    progress.advance(task, 2)
"""


def test_a_pipe_gets_no_progress_bar_also_from_jupyter() -> None:
    # FORCE_COLOR, which Jupyter sets, makes rich take a pipe for a terminal.
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, "FORCE_COLOR": "1", "CLICOLOR_FORCE": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
