"""What commands write where nobody watches."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from quicgym.console import print_by_columns

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


def test_a_table_of_a_long_name_cuts_neither_the_name_nor_a_number(
    capsys: pytest.CaptureFixture[str],
) -> None:
    name, interval = "bbr:" + "gain=1," * 40, "0.9607 to 0.9703"
    print_by_columns(["policy", "IQM", "95% interval"], [[name, "0.9655", interval]])
    printed = capsys.readouterr().out
    assert name in printed
    assert interval in printed
