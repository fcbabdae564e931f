"""What a part of the campaign has found."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Found:
    """What a part has done so far, and what failed."""

    counts: dict[str, int] = field(default_factory=dict)  # by what is counted, with the unit
    failures: list[str] = field(default_factory=list)  # each with the number that repeats it

    def add(self, other: Found) -> None:
        """Adds what another one has done."""
        for name, more in other.counts.items():
            self.counts[name] = self.counts.get(name, 0) + more
        self.failures += other.failures

    def __str__(self) -> str:
        """Says it in a line."""
        counts = [f"{count:,} {name}" for name, count in self.counts.items()]
        return ", ".join([*counts, f"{len(self.failures)} failures"])


def one_line(text: object) -> str:
    """Returns a text for a list of failures: in one line, no more than 400 characters."""
    return " ".join(str(text).split())[:400]
