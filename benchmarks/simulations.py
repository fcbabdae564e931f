"""The simulations that the papers' experiments ask for, as jobs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from quicgym.agents.evaluation.jobs import RunJob
from quicgym.envs import Scenario, ScenarioError
from quicgym.envs.scenarios.engines import EngineName
from quicgym.envs.simulation.controller_choice import (
    find_controller,
    resolve_controllers,
    warn_of_idle_ecn,
)
from quicgym.envs.simulation.window import WHOLE, Window

TRACES_FOLDER = "traces"
WIRELESS_RATE_MBPS = 100.0
"""What the wireless LAN of ibcca-single carries."""


def packets_of(scenario: Scenario) -> float:
    """Returns how many packets a scenario carries where its link is full all the time."""
    link = scenario.bottleneck
    if link is None:
        rate_mbps = WIRELESS_RATE_MBPS
    else:
        rate_mbps = link.first_rate_mbps  # as if it never changed
    return rate_mbps * 1e6 / 8 * scenario.duration_s / scenario.max_datagram_bytes


def make_jobs(
    scenarios: Iterable[Scenario],
    controllers: Sequence[str],
    engine: EngineName,
    seeds: int,
    trace_folder: Path | None = None,
    *,
    window: Window = WHOLE,
    measures: Sequence[str] = (),
) -> list[RunJob]:
    """Returns every combination; only the first seed keeps its time series, in `trace_folder`.

    The controllers are for flows that name none. `measures` are metrics in addition to those of
    every run. ScenarioError where a scenario does not fit the engine or the window, or a controller
    does not exist.
    """
    jobs = []
    for scenario in scenarios:
        scenario.check_engine(engine)
        window.check(scenario)
        shown: dict[str | None, str | None] = {}
        for controller in controllers if scenario.has_open_flow else [None]:
            warn_of_idle_ecn(scenario, resolve_controllers(scenario, controller))
            name = controller and find_controller(controller).name
            if shown.setdefault(name, controller) != controller:
                raise ScenarioError(
                    f"{shown[name]} and {controller}: results show both as {name!r}; rename one "
                    "of the files"
                )
            jobs += [
                RunJob(
                    scenario,
                    controller,
                    engine,
                    seed,
                    window,
                    tuple(measures),
                    trace_folder=trace_folder if seed == 0 else None,
                )
                for seed in range(seeds)
            ]
    return jobs
