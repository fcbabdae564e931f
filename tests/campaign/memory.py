"""The memory of random scenarios, against the estimate by which too large ones are refused."""

from __future__ import annotations

import warnings
from collections.abc import Set
from functools import cache

from helpers.memory import peak_bytes

from campaign.part import Found, Part, numbered
from campaign.scenarios import random_scenario
from quicgym import Run
from quicgym.envs import Scenario, Simulation, load_scenario
from quicgym.envs.simulation.memory import estimate, total_bytes

INTERVAL_MS = 10.0
SLACK_BYTES = 2**24
"""Memory that a process takes for its first run and its first table."""


def check(number: int) -> Found:
    """Runs scenario `number` with traces, in a process of its own."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of ECN where no queue marks
        scenario = random_scenario(number)
    estimated = total_bytes(estimate(scenario, trace_interval_ms=INTERVAL_MS))
    _import_all()
    taken = peak_bytes(lambda: _run_with_tables(scenario))
    found = Found({"measured scenarios": 1})
    if taken > estimated + SLACK_BYTES:
        text = f"{taken} bytes were taken, {estimated:.0f} estimated"
        found.failures.append(f"{number} ({scenario.name}): {text}")
    return found


@cache
def _import_all() -> None:
    _run_with_tables(load_scenario("ebcc-single").model_copy(update={"duration_s": 2.0}))


def _run_with_tables(scenario: Scenario) -> None:
    with Simulation(
        scenario,
        controllers="cubic" if scenario.has_open_flow else None,
        trace_interval_ms=INTERVAL_MS,
        marks=(),
    ) as simulation:
        simulation.run()
        run = Run.of(simulation)
        run.to_dict()
        run.traces()


def _run(first: int, until: float, jobs: int, wanted: Set[str]) -> tuple[Found, int]:
    return numbered(check, first, until, jobs)


PART = Part(
    name="memory",
    title="memory of random scenarios against the estimate",
    goals={"measured scenarios": 10**4},
    share=0.5,
    run=_run,
)
