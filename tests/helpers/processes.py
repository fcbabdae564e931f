"""Processes: programs that start with their imports made, and those of a test, by a mark."""

from __future__ import annotations

import multiprocessing
import os
import runpy
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path


def marked(mark: str) -> list[int]:
    """Returns this machine's other processes that have `mark`, NAME=VALUE, in their environment."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and int(folder.name) != os.getpid():
            with suppress(OSError):
                if mark.encode() in (folder / "environ").read_bytes().split(b"\0"):
                    found.append(int(folder.name))
    return found


def left_after(mark: str, seconds: float) -> list[int]:
    """Waits until no process has the mark; returns those that have it all the same."""
    deadline = time.monotonic() + seconds
    while (left := marked(mark)) and time.monotonic() < deadline:
        time.sleep(0.05)
    return left


def only_child(process: int) -> int | None:
    """Returns the one child of a process; None without any."""
    children = [
        int(child)
        for task in Path(f"/proc/{process}/task").iterdir()
        for child in (task / "children").read_text().split()
    ]
    return children[0] if len(children) == 1 else None


_PROCESSES = multiprocessing.get_context("forkserver")
_PROCESSES.set_forkserver_preload(["gymnasium", "matplotlib.pyplot", "pandas", "quicgym.cli"])


def _run(program: Path, arguments: list[str], folder: Path, output: Path) -> None:
    os.chdir(folder)
    os.environ["MPLBACKEND"] = "agg"
    sys.argv = [str(program), *arguments]
    with output.open("w") as file, output.with_suffix(".err").open("w") as errors:
        os.dup2(file.fileno(), 1)
        os.dup2(errors.fileno(), 2)
    sys.stdout, sys.stderr = open(1, "w"), open(2, "w")
    runpy.run_path(str(program), run_name="__main__")


def run_program(
    program: Path, folder: Path, *arguments: str, timeout_s: float = 560
) -> subprocess.CompletedProcess[str]:
    """Runs a Python program in a folder.

    Args:
        program: The program's file.
        folder: The folder in which it runs.
        arguments: The program's arguments.
        timeout_s: Seconds after which the test fails.
    """
    output = folder / f".{program.stem}.out"
    process = _PROCESSES.Process(target=_run, args=(program, list(arguments), folder, output))
    process.start()
    process.join(timeout_s)
    if process.is_alive():
        process.kill()
        raise TimeoutError(f"{program} runs for more than {timeout_s} s")
    texts = (path.read_text() for path in (output, output.with_suffix(".err")))
    return subprocess.CompletedProcess([str(program), *arguments], process.exitcode or 0, *texts)
