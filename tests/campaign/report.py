"""The report of all runs of the campaign: a record of each run as JSON, and the page."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from campaign.part import Found, Part
from quicgym.output_folders import write_atomically

FORMAT = "quicgym-campaign-1"
SHOWN_FAILURES = 5
"""Of one run."""


@dataclass(frozen=True)
class Run:
    """One run of one part: its numbers and times, and what `Found` has."""

    part: str
    first: int
    after: int  # the next run begins with this number
    machine_s: float  # time of the run, times its processes
    cpu_s: float  # CPU time of all processes: less than machine_s where others compute too
    version: str  # of quicgym, with the commit
    counts: dict[str, int]
    measured: dict[str, float] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    restarted: list[str] = field(default_factory=list)
    spent_s: dict[str, float] = field(default_factory=dict)


class Report:
    """The runs that a JSON file holds, and the page beside it, such as reliability.md."""

    def __init__(self, page: Path) -> None:
        """Reads the runs so far; none where there is no file."""
        self._page = page
        self._file = page.with_suffix(".json")
        self.runs: list[Run] = []
        if self._file.exists():
            document = json.loads(self._file.read_text(encoding="utf-8"))
            if document.get("format") != FORMAT:
                raise ValueError(f"{self._file}: is no report of a campaign; give another --report")
            self.runs = [Run(**run) for run in document["runs"]]

    def next_number(self, part: Part) -> int:
        """Returns the number that a part goes on from: no scenario is run twice."""
        return max((run.after for run in self.runs if run.part == part.name), default=0)

    def short_of(self, part: Part) -> set[str]:
        """Returns the counts of a part that have not reached their goals."""
        runs = self._of(part)
        return {thing for thing, goal in part.goals.items() if _reached(thing, runs) < goal}

    def add(self, run: Run, parts: list[Part]) -> None:
        """Adds a run, and writes both files."""
        self.runs.append(run)
        document = {"format": FORMAT, "runs": [asdict(entry) for entry in self.runs]}
        text = json.dumps(document, indent=1) + "\n"
        self._page.parent.mkdir(parents=True, exist_ok=True)
        write_atomically({self._file: text, self._page: self.page(parts)})

    def page(self, parts: list[Part]) -> str:
        """Returns the page."""
        lines = [
            "# Reliability",
            "",
            "This page says what `make fuzz` has done so far. The runs are in",
            f"`results/reports/{self._file.name}`, with numbers, versions and machine time.",
            "Rates and the time for the rest are of CPU time. A part that divides its time notes",
            "that of each count, and runs that noted it tell the rate. Otherwise the time is the",
            "whole part's. A count that began anew has no rate: its rest is in its own unit.",
            "",
            "| part | to reach | reached | rate | time for the rest |",
            "|---|---|---|---|---|",
            *(row for part in parts for row in self._goals(part)),
            "",
            "## Parts",
            "",
            "Numbers are seeds. A later run goes on with the next number. `--first N` repeats",
            "number N.",
            "",
            "| part | what it does | numbers | machine time | CPU time | failures |",
            "|---|---|---|---|---|---|",
            *(self._part(part) for part in parts),
            "",
        ]
        lines += [*self._figures(parts), *self._failures(parts), *self._versions()]
        return "\n".join(lines) + "\n"

    def _of(self, part: Part) -> list[Run]:
        return [run for run in self.runs if run.part == part.name]

    def _part(self, part: Part) -> str:
        runs = self._of(part)
        numbers = f"{runs[0].first} to {max(run.after for run in runs) - 1}" if runs else "none"
        machine_s, cpu_s = sum(run.machine_s for run in runs), sum(run.cpu_s for run in runs)
        failures = sum(len(run.failures) for run in runs)
        return (
            f"| {part.name} | {part.title} | {numbers} | {_duration(machine_s)} | "
            f"{_duration(cpu_s)} | {failures} |"
        )

    def _goals(self, part: Part) -> list[str]:
        runs = self._of(part)
        rows: list[str] = []
        for thing, goal in part.goals.items():
            counting = _counting(thing, runs)
            reached = _reached(thing, runs)
            timed = [run for run in counting if thing in run.spent_s] or counting
            used_s = max(0.1, sum(run.spent_s.get(thing, run.cpu_s) for run in timed))
            per_s = sum(run.counts[thing] for run in timed) / used_s
            rate = rest = "not measured"
            if any(thing in run.restarted for run in runs):  # no rate tells when it begins anew
                rate, rest = "begins anew", f"at least {goal - reached:,}"
            elif per_s:
                rate = f"{3600 * per_s:,.0f} per hour"
                rest = _duration((goal - reached) / per_s)
            name = part.name if not rows else ""
            rest = rest if reached < goal else "none"
            rows.append(f"| {name} | {goal:,} {thing} | {reached:,} | {rate} | {rest} |")
        return rows

    def _figures(self, parts: list[Part]) -> list[str]:
        runs = [run for part in parts for run in self._of(part)]
        measured = {name: value for run in runs for name, value in run.measured.items()}
        others = {
            name: _reached(name, self._of(part))
            for part in parts
            for name in sorted({n for run in self._of(part) for n in run.counts} - set(part.goals))
        }
        if not measured and not others:
            return []
        rows = [f"| {name} | {value:,.6g} |" for name, value in measured.items()]
        rows += [f"| {name}, in all | {count:,} |" for name, count in others.items()]
        return ["## Other figures", "", "| figure | value |", "|---|---|", *rows, ""]

    def _failures(self, parts: list[Part]) -> list[str]:
        lines = []
        for run in (run for part in parts for run in self._of(part)):
            where = f"- {run.part}, {run.version}: "
            lines += [f"{where}`{text}`" for text in run.failures[:SHOWN_FAILURES]]
            more = len(run.failures) - SHOWN_FAILURES
            lines += [f"{where}{more} more are in {self._file.name}"] if more > 0 else []
        if not lines:
            return ["There was no failure.", ""]
        return ["## Failures", "", *lines, ""]

    def _versions(self) -> list[str]:
        versions = list(dict.fromkeys(run.version for run in self.runs))
        if not versions:
            return []
        return [f"The runs are of {len(versions)} versions, from {versions[0]} to {versions[-1]}."]


def _reached(thing: str, runs: list[Run]) -> int:
    return sum(run.counts[thing] for run in _counting(thing, runs))


def _counting(thing: str, runs: list[Run]) -> list[Run]:
    """Returns the runs that have a count, from the last that let it begin anew."""
    counting: list[Run] = []
    for run in runs:
        if thing in run.counts:
            counting = [*([] if thing in run.restarted else counting), run]
    return counting


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    if seconds < 7200:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 48 * 3600 else f"{seconds / 86400:.1f} days"


def summary(found: Found) -> str:
    """Returns what was found, in a line."""
    counts: list[Any] = [f"{count:,} {name}" for name, count in found.counts.items()]
    return ", ".join([*counts, f"{len(found.failures)} failures"])
