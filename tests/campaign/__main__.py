"""`make fuzz BUDGET_S=3600`: runs the parts of the campaign, and writes the report."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from campaign import fuzzing, parity, scenarios
from campaign.part import Part, cpu_s
from campaign.report import SHOWN_FAILURES, Report, Run, summary
from quicgym import __version__, _core
from quicgym.console import say

PARTS: list[Part] = [scenarios.PART, parity.PART, fuzzing.PART]
REPORT = Path("results/reports/reliability.md")


def main(arguments: list[str] | None = None) -> int:
    """Runs the campaign; returns the exit status, 1 for any failure."""
    parser = argparse.ArgumentParser(prog="python -m campaign", description=__doc__)
    parser.add_argument(
        "--budget-s", type=float, default=600.0, help="seconds for all parts together (600)"
    )
    parser.add_argument(
        "--part",
        action="append",
        choices=[part.name for part in PARTS],
        help="only this part; may be given again",
    )
    parser.add_argument("--jobs", type=int, default=1, help="processes (1)")
    parser.add_argument(
        "--first", type=int, help="begin with this number, and write no report: repeats a failure"
    )
    parser.add_argument(
        "--report", type=Path, default=REPORT, help=f"the page; the runs go beside it ({REPORT})"
    )
    options = parser.parse_args(arguments)
    if options.budget_s <= 0 or options.jobs < 1:
        parser.error("--budget-s has to be above 0, and --jobs 1 or more")
    chosen = [part for part in PARTS if not options.part or part.name in options.part]
    report = Report(options.report)
    shares = sum(part.share for part in chosen)
    failed = False
    for part in chosen:
        if lacking := part.missing():
            say(f"{part.name}: left out: {lacking}")
            failed = True
            continue
        first = report.next_number(part) if options.first is None else options.first
        began, used_s = time.monotonic(), cpu_s()
        until = began + options.budget_s * part.share / shares
        # A number is repeated whatever has reached its goal, and so it is where all have.
        short = report.short_of(part) if options.first is None else set()
        found, after = part.run(first, until, options.jobs, short or part.goals.keys())
        say(f"{part.name}: {summary(found)} in {time.monotonic() - began:.0f} s")
        for text in found.failures[:SHOWN_FAILURES]:
            say(f"  {text}")
        failed |= bool(found.failures)
        if options.first is None:
            machine_s = (time.monotonic() - began) * options.jobs
            version = f"{__version__} ({_core.commit})"
            times = (round(machine_s, 1), round(cpu_s() - used_s, 1))
            report.add(Run(part.name, first, after, *times, version, **vars(found)), PARTS)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
