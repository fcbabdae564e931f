"""How large a run may be, so that a wrong number is an error and does not fill the machine."""

from __future__ import annotations

from quicgym.envs.scenarios.fields import ScenarioError
from quicgym.envs.scenarios.model import Scenario

MOST_FLOWS = 20_000
"""A flow takes about 64 KiB."""
MOST_ROWS = 5_000_000
"""Rows of traces, which take about 400 bytes each with their tables."""


def check_size(scenario: Scenario, trace_interval_ms: float | None) -> None:
    """Raises ScenarioError where a run has too many flows or too many rows of traces.

    Args:
        scenario: Scenario of the run.
        trace_interval_ms: Interval between two rows of the traces, in ms; None: no traces.
    """
    flows = _flows(scenario)
    if flows > MOST_FLOWS:
        raise ScenarioError(
            f"{scenario.name}: has {flows:,} flows, and a run has at most {MOST_FLOWS:,}; make "
            "flows.count smaller"
        )
    if trace_interval_ms is not None and _rows(scenario, trace_interval_ms) > MOST_ROWS:
        raise ScenarioError(
            f"{scenario.name}: traces of {flows} flows with trace_interval_ms = "
            f"{trace_interval_ms:g} for duration_s = {scenario.duration_s:g} have more than "
            f"{MOST_ROWS:,} rows; make trace_interval_ms larger or None, or duration_s shorter"
        )


def fitting_interval_ms(scenario: Scenario, interval_ms: float) -> float:
    """Returns the wanted interval between two rows of traces, or the next one that is allowed."""
    factor = _rows(scenario, interval_ms) / MOST_ROWS
    steps = (step * 10**power for power in range(9) for step in (1, 2, 5))
    return interval_ms * next(step for step in steps if step >= factor)


def _flows(scenario: Scenario) -> int:
    return sum(flow.count for flow in scenario.flows)


def _rows(scenario: Scenario, interval_ms: float) -> float:
    return _flows(scenario) * scenario.duration_s * 1e3 / interval_ms
