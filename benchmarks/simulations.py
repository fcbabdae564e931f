"""The simulations that the papers' experiments ask for, as jobs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from quicgym import __version__, _core, run
from quicgym.envs import Scenario
from quicgym.envs.scenarios.engines import EngineName
from quicgym.envs.simulation.controller_choice import resolve_controllers
from quicgym.envs.simulation.result import Result
from quicgym.output_folders import digest

TRACES_FOLDER = "traces"
TRACE_INTERVAL_MS = 10.0


@dataclass(frozen=True, eq=False)
class Job:
    """One simulation to run."""

    scenario: Scenario
    controller: str | None
    """For the flows that name none; None where all of them do."""
    engine: EngineName
    seed: int
    trace_folder: Path | None = None
    """Where to keep the flows' time series; None: nowhere."""

    def __str__(self) -> str:
        """Returns what identifies the run for a reader."""
        return (
            f"scenario {self.scenario.name}, controller {self.controller or 'of each flow'}, "
            f"engine {self.engine}, seed {self.seed}"
        )

    @cached_property
    def key(self) -> str:
        """What identifies the run for --resume: equal keys give equal results."""
        parts = [
            *self.scenario.content(),
            self.controller,
            self.engine,
            self.seed,
            __version__,
            _core.commit,
        ]
        return digest(parts)

    def trace_path(self, flow: str) -> Path | None:
        """Returns the file of a flow's time series."""
        if self.trace_folder is None:
            return None
        name = f"{self.scenario.name}--{self.controller or 'own'}--{self.engine}--{self.seed}"
        return self.trace_folder / f"{name}--{flow}.parquet"

    def run(self) -> dict[str, Any]:
        """Returns the run's metrics; writes the time series where they are wanted."""
        result = run(
            self.scenario,
            self.controller if self.scenario.has_open_flow else None,
            self.engine,
            self.seed,
            trace_interval_ms=TRACE_INTERVAL_MS if self.traced else None,
        )
        for flow in result.flows:
            path = self.trace_path(flow.name)
            if path is not None:
                path.parent.mkdir(parents=True, exist_ok=True)
                result.trace(flow.name).to_parquet(path)
        return self.measure(result)

    @property
    def traced(self) -> bool:
        """Whether the run keeps time series."""
        return self.trace_folder is not None

    def measure(self, result: Result) -> dict[str, Any]:
        """Returns the metrics of the run and of each flow."""
        return result.to_dict()


def make_jobs(
    scenarios: Iterable[Scenario],
    controllers: Sequence[str],
    engine: EngineName,
    seeds: int,
    trace_folder: Path | None = None,
    kind: type[Job] = Job,
) -> list[Job]:
    """Returns every combination, as jobs of a kind; only the first seed keeps its time series.

    Raises:
        ScenarioError: A scenario does not fit the engine, or a controller does not exist.
    """
    jobs = []
    for scenario in scenarios:
        scenario.check_engine(engine)
        for controller in controllers if scenario.has_open_flow else [None]:
            resolve_controllers(scenario, controller)
            jobs += [
                kind(scenario, controller, engine, seed, trace_folder if seed == 0 else None)
                for seed in range(seeds)
            ]
    return jobs
