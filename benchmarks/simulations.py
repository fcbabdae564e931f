"""The simulations that the papers' experiments ask for, as jobs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from quicgym import __version__, _core, controllers, run
from quicgym.envs import Scenario, ScenarioError
from quicgym.envs.scenarios.engines import EngineName
from quicgym.envs.simulation.controller_choice import find_controller, resolve_controllers
from quicgym.envs.simulation.result import Result
from quicgym.output_folders import digest, file_name, write_atomically

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
        if self.controller is not None and controllers.is_place(self.controller):
            parts.append(controllers.find(self.controller).fingerprint)
        return digest(parts)

    @property
    def files(self) -> list[Path]:
        """The user's files that it reads: the controller's, and the scenario's."""
        controller = controllers.file_of(self.controller) if self.controller else None
        return [*([controller] if controller else []), *self.scenario.files]

    @property
    def shown_controller(self) -> str | None:
        """The controller as results show it, of `path/to/file.py:Class` the class's name."""
        return self.controller and controllers.find(self.controller).name

    def trace_path(self, flow: str) -> Path | None:
        """Returns the file of a flow's time series."""
        if self.trace_folder is None:
            return None
        return self.trace_folder / f"{self._run_name}--{flow}.parquet"

    @property
    def _run_name(self) -> str:
        controller = file_name(self.shown_controller or "own")
        return f"{self.scenario.name}--{controller}--{self.engine}--{self.seed}"

    def run(self) -> dict[str, Any]:
        """Returns the run's metrics; writes the time series where they are wanted."""
        result = run(
            self.scenario,
            self.controller if self.scenario.has_open_flow else None,
            self.engine,
            self.seed,
            trace_interval_ms=TRACE_INTERVAL_MS if self.traced else None,
        )
        if self.trace_folder is not None:
            self._keep_traces(result, self.trace_folder)
        return self.measure(result)

    def _keep_traces(self, result: Result, folder: Path) -> None:
        """Writes the time series of the flows and of the bottlenecks, with what they are of."""
        about = {
            "run": self._run_name,
            "scenario": self.scenario.name,
            "engine": self.engine,
            "seed": self.seed,
            "duration_s": self.scenario.duration_s,
        }
        for index, flow in enumerate(result.flows):
            trace = result.trace(flow.name)
            trace.attrs |= {**about, "flow": flow.name, "index": index}
            trace.attrs["controller"] = flow.controller
            path = self.trace_path(flow.name)
            assert path is not None
            write_atomically({path: trace.to_parquet})
        for hop in range(1, 2 + len(self.scenario.chain)):
            queue = result.queue_trace(hop)
            queue.attrs |= {**about, "hop": hop}
            path = folder / f"{self._run_name}--hop-{hop}.queue.parquet"
            write_atomically({path: queue.to_parquet})

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
        shown: dict[str | None, str | None] = {}
        for controller in controllers if scenario.has_open_flow else [None]:
            resolve_controllers(scenario, controller)
            name = controller and find_controller(controller).name
            if shown.setdefault(name, controller) != controller:
                raise ScenarioError(
                    f"{shown[name]} and {controller}: results show both as {name!r}; give one of "
                    "the classes another `name`"
                )
            jobs += [
                kind(scenario, controller, engine, seed, trace_folder if seed == 0 else None)
                for seed in range(seeds)
            ]
    return jobs
