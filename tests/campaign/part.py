"""What a part of the campaign is, and what one run of it found."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from importlib.util import find_spec
from itertools import islice
from typing import Any


@dataclass
class Found:
    """What a run of a part has done so far.

    Attributes:
        counts: How many of each thing, by its name with the unit.
        failures: One text for each failure, with the number or seed that repeats it.
        measured: Figures that are no counts, by name with the unit: the latest value counts.
    """

    counts: dict[str, int] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    measured: dict[str, float] = field(default_factory=dict)

    def add(self, other: Found) -> None:
        """Adds what another one has done."""
        for name, count in other.counts.items():
            self.counts[name] = self.counts.get(name, 0) + count
        self.failures += other.failures
        self.measured |= other.measured


@dataclass(frozen=True)
class Part:
    """A part of the campaign.

    Attributes:
        name: As `--part` takes it.
        title: What it does, in a few words.
        goals: How many of each of `Found.counts` are to be reached.
        share: Of the budget, in proportion to the other parts'. 0: only where it is named, and as
            long as it takes.
        run: Runs it: from which number on, until when as time.monotonic() tells it, and on how
            many processes; returns what was found, and the number to go on from.
        missing: Says what the part lacks here, if anything.
        in_real_time: Whether it waits most of the time, so that its CPU time says little.
    """

    name: str
    title: str
    goals: dict[str, int]
    share: float
    run: Callable[[int, float, int], tuple[Found, int]]
    missing: Callable[[], str | None] = lambda: None
    in_real_time: bool = False


def numbered(
    check: Callable[[int], Found], first: int, until: float, jobs: int, *, chunk: int = 8
) -> tuple[Found, int]:
    """Checks numbers from `first` on until the time is over.

    Args:
        check: Of one number; a function of a module, for other processes call it.
        first: The first number.
        until: No check begins after this, as time.monotonic() tells it.
        jobs: Processes.
        chunk: How many numbers a process is given at a time.

    Returns:
        What was found, and the first number that was not checked. At least one is.
    """
    found, number = Found(), first
    if jobs == 1:
        while number == first or time.monotonic() < until:
            found.add(checked(check, number))
            number += 1
        return found, number
    with ProcessPoolExecutor(jobs) as pool:
        chunks = _chunks(first, chunk)
        waiting = [pool.submit(_all, check, numbers) for numbers in islice(chunks, 2 * jobs)]
        number += 2 * jobs * chunk
        for future in _in_order(waiting):
            found.add(future.result())
            if time.monotonic() < until:
                waiting.append(pool.submit(_all, check, next(chunks)))
                number += chunk
    return found, number


def _in_order(waiting: list[Any]) -> Iterator[Any]:
    while waiting:
        yield waiting.pop(0)


def _chunks(first: int, size: int) -> Iterator[range]:
    while True:
        yield range(first, first + size)
        first += size


def _all(check: Callable[[int], Found], numbers: range) -> Found:
    found = Found()
    for number in numbers:
        found.add(checked(check, number))
    return found


def checked(check: Callable[[int], Found], number: int) -> Found:
    """Returns what a check of a number found; an exception is a failure of this number."""
    try:
        return check(number)
    except Exception as error:
        return Found(failures=[f"{number}: {type(error).__name__}: {one_line(error)}"])


def one_line(text: object) -> str:
    """Returns a text for a list of failures: in one line, no more than 400 characters.

    The page shows it as code, so it has no backquote.
    """
    return " ".join(str(text).replace("`", "'").split())[:400]


def _is_installed(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:  # the package that it is in
        return False


def packages_missing(*names: str) -> str | None:
    """Returns which of these packages are not installed; None where all are."""
    missing = [name for name in names if not _is_installed(name)]
    return f"{', '.join(missing)} is not installed" if missing else None
