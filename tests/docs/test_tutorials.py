"""The tutorials of docs/tutorials: every cell runs, in order, as the site runs it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.processes import run_program

FOLDER = Path(__file__).parents[2] / "docs" / "tutorials"
PAGES = {page.stem: page for page in FOLDER.glob("*.md")}
CELL = re.compile(r"^```\{code-cell\}[^\n]*\n(.*?)^```$", re.S | re.M)
MARKS = {
    "own-controller": [pytest.mark.long],
    "read-an-evaluation": [pytest.mark.long],
    "train-a-policy": [pytest.mark.long, pytest.mark.train],
    "which-environment": [pytest.mark.train],
}
"""Of tutorials that need PyTorch, or long on a slow machine."""


def program(page: Path) -> str:
    """The page's cells as one Python program.

    Without IPython: options of a cell and magics are left out, and a line that begins with `!` runs
    as a command of the shell, whose failure ends the program.
    """
    lines = [
        "import os, subprocess, sys",
        "os.environ['PATH'] = os.path.dirname(sys.executable) + os.pathsep + os.environ['PATH']",
    ]
    for cell in CELL.findall(page.read_text(encoding="utf-8")):
        for line in cell.replace("\\\n", " ").splitlines():
            command = re.match(r"(\s*)!(.*)", line)
            if command:
                line = f"{command[1]}subprocess.run({command[2]!r}, shell=True, check=True)"
            if not line.startswith((":", "%")):
                lines.append(line)
    return "\n".join(lines)


@pytest.mark.parametrize("name", [pytest.param(name, marks=MARKS.get(name, ())) for name in PAGES])
def test_every_cell_of_a_tutorial_runs(name: str, tmp_path: Path) -> None:
    cells = tmp_path / "cells.py"
    cells.write_text(program(PAGES[name]), encoding="utf-8")
    done = run_program(cells, tmp_path)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]


def test_a_tutorial_has_cells_and_a_cell_that_raises_fails(tmp_path: Path) -> None:
    assert all(CELL.search(page.read_text(encoding="utf-8")) for page in PAGES.values())
    page = tmp_path / "page.md"
    page.write_text("```{code-cell} ipython3\n:tags: [a]\n!exit 3\n```\n", encoding="utf-8")
    assert subprocess.run([sys.executable, "-c", program(page)]).returncode != 0
