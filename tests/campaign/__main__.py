"""`make fuzz BUDGET_S=3600`: searches for failures for as long as it is given."""

from __future__ import annotations

import argparse
import sys
import time

from campaign import fuzzing, scenarios
from quicgym.console import say

PARTS = {"scenarios": scenarios, "fuzzing": fuzzing}
"""By name, modules with `run(first, until, jobs)` and `missing()`, which says what they lack."""


def main(arguments: list[str] | None = None) -> int:
    """Runs the campaign; returns the exit status, 1 for any failure."""
    parser = argparse.ArgumentParser(prog="python -m campaign", description=__doc__)
    parser.add_argument(
        "--budget-s", type=float, default=600.0, help="seconds for all parts together (600)"
    )
    parser.add_argument("--part", choices=PARTS, help="only this part")
    parser.add_argument("--jobs", type=int, default=1, help="processes (1)")
    parser.add_argument(
        "--first", type=int, help="begin with this number: repeats a failure (the time in seconds)"
    )
    options = parser.parse_args(arguments)
    chosen = [options.part] if options.part else [*PARTS]
    first = int(time.time()) if options.first is None else options.first
    failed = False
    for name in chosen:
        part = PARTS[name]
        if lacking := part.missing():
            say(f"{name}: left out: {lacking}")
            failed = True
            continue
        began = time.monotonic()
        found = part.run(first, began + options.budget_s / len(chosen), options.jobs)
        say(f"{name} from {first} on: {found} in {time.monotonic() - began:.0f} s")
        for text in found.failures:
            say(f"  {text}")
        failed |= bool(found.failures)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
