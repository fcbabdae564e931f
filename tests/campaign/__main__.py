"""`make fuzz BUDGET_S=3600`: runs the parts of the campaign."""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

from campaign import fuzzing, parity, scenarios
from campaign.part import Part
from quicgym.console import say
from quicgym.output_folders import write_atomically

PARTS: list[Part] = [scenarios.PART, parity.PART, fuzzing.PART]
NUMBERS = Path("results/campaign.json")
"""The next number of each part: what was checked is not checked again."""


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
    parser.add_argument("--first", type=int, help="begin with this number: repeats a failure")
    options = parser.parse_args(arguments)
    if options.budget_s <= 0 or options.jobs < 1:
        parser.error("--budget-s has to be above 0, and --jobs 1 or more")
    chosen = [part for part in PARTS if not options.part or part.name in options.part]
    numbers = json.loads(NUMBERS.read_text()) if NUMBERS.exists() else {}
    shares = sum(part.share for part in chosen)
    failed = False
    for part in chosen:
        if lacking := part.missing():
            say(f"{part.name}: left out: {lacking}")
            failed = True
            continue
        first = numbers.get(part.name, 0) if options.first is None else options.first
        began = time.monotonic()
        found, after = part.run(first, began + options.budget_s * part.share / shares, options.jobs)
        say(f"{part.name}, {first} to {after - 1}: {found} in {time.monotonic() - began:.0f} s")
        for text in found.failures:
            say(f"  {text}")
        failed |= bool(found.failures)
        if options.first is None:
            numbers[part.name] = after
            NUMBERS.parent.mkdir(parents=True, exist_ok=True)
            write_atomically({NUMBERS: json.dumps(numbers)})
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
