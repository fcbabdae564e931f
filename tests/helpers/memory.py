"""How much memory this process holds, and how much some work takes."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from multiprocessing import get_context
from pathlib import Path


def resident_bytes() -> int:
    """The resident size, from /proc."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def peak_bytes(work: Callable[[], object]) -> int:
    """How far a process of its own grows while it does some work, in bytes."""
    context = get_context("fork")
    ends = context.SimpleQueue()

    def measure() -> None:
        ctypes.CDLL(None).malloc_trim(0)  # what this process has freed would be used again unseen
        Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
        before = resident_bytes()
        work()
        status = Path("/proc/self/status").read_text()
        ends.put(int(status.partition("VmHWM:")[2].split()[0]) * 1024 - before)

    process = context.Process(target=measure)
    process.start()
    process.join()
    assert process.exitcode == 0, f"ended with {process.exitcode}"
    return int(ends.get())
