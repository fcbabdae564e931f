"""What a part of the campaign is, and what one run of it found."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from importlib.util import find_spec
from itertools import count, islice


@dataclass
class Found:
    """What a run of a part has done so far."""

    counts: dict[str, int] = field(default_factory=dict)  # by what is counted, with the unit
    failures: list[str] = field(default_factory=list)  # each with the number that repeats it
    measured: dict[str, int] = field(default_factory=dict)  # the latest value counts

    def add(self, other: Found) -> None:
        """Adds what another one has done."""
        for name, more in other.counts.items():
            self.counts[name] = self.counts.get(name, 0) + more
        self.failures += other.failures
        self.measured |= other.measured

    def __str__(self) -> str:
        """Says it in a line."""
        counts = [f"{count:,} {name}" for name, count in (self.counts | self.measured).items()]
        return ", ".join([*counts, f"{len(self.failures)} failures"])


@dataclass(frozen=True)
class Part:
    """A part of the campaign.

    Attributes:
        name: Name for `--part`.
        share: Share of the budget, in proportion to those of other parts.
        run: Takes the first number, the end as time.monotonic() tells it and the number of
            processes. Returns what was found, and the number to go on from.
        missing: Says what the part lacks here, if anything.
    """

    name: str
    share: float
    run: Callable[[int, float, int], tuple[Found, int]]
    missing: Callable[[], str | None] = lambda: None


def numbered(
    check: Callable[[int], Found], first: int, until: float, jobs: int, *, chunk: int = 8
) -> tuple[Found, int]:
    """Checks numbers from `first` on until the time is over; at least one is checked.

    Args:
        check: Checks one number; a function of a module, because other processes call it.
        first: The first number.
        until: Time as of time.monotonic() after which no check begins.
        jobs: Number of processes.
        chunk: Number of numbers that a process is given at a time.

    Returns:
        What was found, and the first number that was not checked.
    """
    found, number = Found(), first
    if jobs == 1:
        while number == first or time.monotonic() < until:
            found.add(checked(check, number))
            number += 1
        return found, number
    with ProcessPoolExecutor(jobs) as pool:
        chunks = (range(begin, begin + chunk) for begin in count(first, chunk))
        waiting = [pool.submit(_all, check, numbers) for numbers in islice(chunks, 2 * jobs)]
        number += 2 * jobs * chunk
        while waiting:
            found.add(waiting.pop(0).result())
            if time.monotonic() < until:
                waiting.append(pool.submit(_all, check, next(chunks)))
                number += chunk
    return found, number


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
    """Returns a text for a list of failures: in one line, no more than 400 characters."""
    return " ".join(str(text).split())[:400]


def _is_installed(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:  # the package that it is in
        return False


def packages_missing(*names: str) -> str | None:
    """Returns which of these packages are not installed; None where all are."""
    missing = [name for name in names if not _is_installed(name)]
    return f"{', '.join(missing)} is not installed" if missing else None
