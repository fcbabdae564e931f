"""A run as a job: what it is steered by, where it happens, and what is kept of it."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache, cached_property
from hashlib import sha256
from itertools import product
from pathlib import Path
from typing import Any

from quicgym import __version__, _core, controllers
from quicgym.agents.evaluation.rollouts import play
from quicgym.agents.policies.by_name import find_policy, policy_file, policy_kind, split_alias
from quicgym.agents.policies.from_file import FilePolicy
from quicgym.agents.policies.policy import Policy
from quicgym.envs.rewards import AnyReward, FileReward, Reward
from quicgym.envs.scenarios.engines import ENGINES
from quicgym.envs.scenarios.fields import ScenarioError
from quicgym.envs.scenarios.model import Scenario
from quicgym.envs.scenarios.suites import SuiteEntry, scenario_of
from quicgym.envs.simulation.controller_choice import (
    IdleEcnWarning,
    find_controller,
    lacks_marks,
)
from quicgym.envs.simulation.metrics import BURST_METRICS, METRICS
from quicgym.envs.simulation.packet_logs import PacketLogs
from quicgym.envs.simulation.qlog import log_folder
from quicgym.envs.simulation.run import Run
from quicgym.envs.simulation.run_size import fitting_interval_ms
from quicgym.envs.simulation.simulation import check_engine
from quicgym.envs.simulation.sources import run
from quicgym.envs.simulation.traffic import burst_times_s
from quicgym.envs.simulation.window import WHOLE, Window
from quicgym.output_folders import digest, file_name, write_atomically
from quicgym.python_files import is_python_object

TRACE_INTERVAL_MS = 10.0
"""Between two rows of the time series that jobs keep."""


@dataclass(frozen=True)
class PolicyChoice:
    """A policy that steers the flows which name no controller.

    Attributes:
        name: Name of the policy, as the user gives it.
        fingerprint: Fingerprint of a learned policy's weights and description; None: its name says
            all.
        trust_zip: Whether to load a model that Stable-Baselines3 saved, which runs code in it.
    """

    name: str
    fingerprint: str | None = None
    trust_zip: bool = False

    @classmethod
    def of(cls, name: str, *, trust_zip: bool = False) -> PolicyChoice:
        """Returns the choice of a policy as its files are now.

        Args:
            name: Name of the policy, as `find_policy` takes it.
            trust_zip: Whether to load a model that Stable-Baselines3 saved, which runs code in it.

        Raises:
            ScenarioError, PolicyError, MissingExtraError: `find_policy` raised the error.
        """
        return cls(name, fingerprint_of(name, find_policy(name, trust_zip=trust_zip)), trust_zip)

    @property
    def shown(self) -> str:
        """The policy as results show it: its alias, where it has one."""
        return split_alias(self.name)[0]

    def load(self) -> Policy:
        """Returns the policy, loaded once per process.

        Raises:
            ScenarioError: The policy's files are not those that the choice was made for.
        """
        policy, fingerprint = _load(self.name, self.trust_zip)
        if fingerprint != self.fingerprint:
            hint = ""
            if is_python_object(split_alias(self.name)[1]):
                hint = (
                    ", or its weights differ from process to process: seed what is random in the "
                    "file, or load them from a file"
                )
            raise ScenarioError(f"{self.name}: its files changed during the evaluation{hint}")
        return policy


@dataclass(frozen=True, eq=False)
class RunJob:
    """One run.

    Attributes:
        scenario: Scenario of the run.
        steering: Controller's name or policy of the flows that name no controller; None where every
            flow names its controller.
        engine: "native", "ns3", or a stack and its clock, as in "noq-virtual".
        seed: The run's seed.
        window: The part of the run that the metrics are of.
        measures: Metrics in addition to those that every run of the kind has.
        reward: Reward of a policy's run.
        trace_folder: Folder of the flows' time series; None: they are not kept.
        series_file: File of the time series of a policy's run; None: they are not kept.
        marks_s: Further times, in s, at which windows of `Run.over` may begin and end.
        packet_logs: Folder that gets a folder with the run's qlog files, on ns-3 with its pcap
            files; None: there are none.
        entry: Name of the suite's entry from which the scenario comes; None: there is no suite.
    """

    scenario: Scenario
    steering: PolicyChoice | str | None
    engine: str
    seed: int
    window: Window = WHOLE
    measures: tuple[str, ...] = ()
    reward: AnyReward = field(default_factory=Reward)
    trace_folder: Path | None = None
    series_file: Path | None = None
    marks_s: tuple[float, ...] = ()
    packet_logs: PacketLogs | None = None
    entry: str | None = None

    def __str__(self) -> str:
        """Returns what identifies the run for a reader."""
        if isinstance(self.steering, PolicyChoice):
            text = f"policy {self.steering.name}, scenario {self.scenario.name}"
        else:
            text = f"scenario {self.scenario.name}, controller {self.steering or 'of each flow'}"
        text += f", engine {self.engine}, seed {self.seed}"
        return text + str(self.window)

    @cached_property
    def key(self) -> str:
        """The identity of the run for --resume: equal keys give equal results."""
        steering = self.steering
        if isinstance(steering, PolicyChoice):
            steered = [steering.name, steering.fingerprint]
        else:
            steered = [steering]
            if steering is not None and controllers.is_place(steering):
                steered.append(controllers.find(steering).fingerprint)
        parts = [
            *self.scenario.content(),
            type(steering).__name__,
            *steered,
            self.engine,
            self.seed,
            *self.window,
            *self.measures,
            asdict(self.reward),
            *([str(self.packet_logs)] if self.packet_logs else []),
            __version__,
            _core.commit,
        ]
        return digest(parts)

    @property
    def files(self) -> list[Path]:
        """The user's files that the job reads: of the steering, the reward and the scenario."""
        steering = self.steering
        if isinstance(steering, PolicyChoice):
            file = policy_file(steering.name)
        else:
            file = controllers.file_of(steering) if steering else None
        reward = [self.reward.file] if isinstance(self.reward, FileReward) else []
        return [*([file] if file else []), *reward, *self.scenario.files]

    @property
    def steered_by(self) -> str | None:
        """The controller or policy as the user names it."""
        steering = self.steering
        return steering.name if isinstance(steering, PolicyChoice) else steering

    @property
    def shown(self) -> str | None:
        """The steering as results show it: an alias, or the name of a class in a file."""
        if isinstance(self.steering, PolicyChoice):
            return self.steering.shown
        return self.steering and controllers.find(self.steering).name

    @property
    def trace_file(self) -> Path | None:
        """The file of the flows' time series."""
        return self.trace_folder and self.trace_folder / f"{self._run_name}.parquet"

    @property
    def _run_name(self) -> str:
        steering = file_name(self.shown or "own")
        return f"{self.entry or self.scenario.name}--{steering}--{self.engine}--{self.seed}"

    @property
    def _marks_s(self) -> tuple[float, ...]:
        asks_for_bursts = any(name in BURST_METRICS for name in self.measures)
        bursts = burst_times_s(self.scenario) if asks_for_bursts else ()
        return (*self.marks_s, *(time_s for burst in bursts for time_s in burst))

    def run(self) -> dict[str, Any]:
        """Returns the run's metrics; writes the time series where they are wanted.

        A policy's run has the run's metrics, a controller's those of each flow as well.
        """
        traced = self.trace_folder is not None
        traced |= any(METRICS[name].needs_traces for name in self.measures)
        done = self.carry_out(traced=traced)
        if self.trace_folder is not None:
            self._keep_traces(done, self.trace_folder)
        if self.series_file is not None:
            write_atomically({self.series_file: done.series_table().to_parquet})
        more = {name: done.metric(name) for name in self.measures}
        if isinstance(self.steering, PolicyChoice):
            return {**policy_row(done, self.steering.shown), **more}
        document = {**done.to_dict(), **more}
        for name in self.measures:
            if METRICS[name].needs_traces:
                for flow in document["flows"]:
                    flow[name] = done.trace_metric(name, flow["name"])
        return document

    def carry_out(self, *, traced: bool = False) -> Run:
        """Returns the run itself, with traces where a run of the kind can have them."""
        steering = self.steering
        from_s, until_s = self.window
        interval_ms = TRACE_INTERVAL_MS if traced else None
        if traced and self.engine in ENGINES:
            interval_ms = fitting_interval_ms(self.scenario, TRACE_INTERVAL_MS)
            if interval_ms > TRACE_INTERVAL_MS:
                warnings.warn(
                    f"{self}: its traces have a row every {interval_ms:g} ms instead of "
                    f"{TRACE_INTERVAL_MS:g} ms, so that they are not too large",
                    stacklevel=2,
                )
        if self.engine not in ENGINES:
            stack, _, clock = self.engine.rpartition("-")
            return run(
                self.scenario,
                self.steered_by,
                seed=self.seed,
                trace_interval_ms=interval_ms,
                from_s=from_s,
                until_s=until_s,
                stack=stack,
                clock=clock,
            )
        logs = self.packet_logs and self.packet_logs.inside(self._run_name)
        if isinstance(steering, PolicyChoice):
            return play(
                steering.load(),
                self.scenario,
                self.engine,
                self.seed,
                reward=self.reward,
                from_s=from_s,
                until_s=until_s,
                marks_s=self._marks_s,
                packet_logs=logs,
            )
        with warnings.catch_warnings():
            # Whoever has made the jobs has said it once, and not in every process.
            warnings.simplefilter("ignore", IdleEcnWarning)
            return run(
                self.scenario,
                steering if self.scenario.has_open_flow else None,
                self.engine,
                self.seed,
                trace_interval_ms=interval_ms,
                from_s=from_s,
                until_s=until_s,
                marks_s=self._marks_s,
                qlog=logs if self.engine == "native" else None,
                pcap=logs if self.engine == "ns3" else None,
            )

    def _keep_traces(self, done: Run, folder: Path) -> None:
        """Writes the time series of the flows and of the bottlenecks, with what they are of."""
        about = {
            "run": self._run_name,
            "scenario": self.scenario.name,
            "engine": self.engine,
            "seed": self.seed,
            "duration_s": self.scenario.duration_s,
        }
        flows, queues = done.traces(), done.queue_traces()
        flows.attrs |= {
            **about,
            "controllers": [flow.controller for flow in done.flows],
            "hops": [
                len(self.scenario.hops_of(flow)) if flow.direction == "forward" else 0
                for _, flow in self.scenario.single_flows()
            ],
        }
        queues.attrs |= about
        path = self.trace_file
        assert path is not None
        write_atomically(
            {path: flows.to_parquet, folder / f"{self._run_name}.queue.parquet": queues.to_parquet}
        )


def steering_of(choice: str, *, trust_zip: bool = False) -> PolicyChoice | str:
    """Returns what steers the flows of a job: a controller as it is named, or a policy.

    Args:
        choice: Name of the policy, as `find_policy` takes it.
        trust_zip: Whether to load a model that Stable-Baselines3 saved, which runs code in it.

    Raises:
        ScenarioError, PolicyError, MissingExtraError: `find_policy` raised the error.
    """
    policy = PolicyChoice.of(choice, trust_zip=trust_zip)
    _, named = split_alias(choice)
    if policy_kind(choice) in ("baseline", "static") or controllers.is_agent(named):
        return named
    return policy


def with_packet_logs(
    jobs: Iterable[RunJob], qlog: PacketLogs | None, pcap: PacketLogs | None
) -> list[RunJob]:
    """Returns the jobs, of which those of the first seed write logs.

    Args:
        jobs: Jobs of simulations.
        qlog: Folder for the runs on the native engine; None: they write none.
        pcap: Folder for the runs on ns-3; None: they write none.

    Raises:
        ScenarioError: No run is on the engine that writes the logs.
        UserError: The folder cannot be made.
    """
    wanted = {"native": qlog, "ns3": pcap}
    jobs = list(jobs)
    first_seed = min((job.seed for job in jobs), default=0)
    logged = [
        replace(job, packet_logs=wanted.get(job.engine)) if job.seed == first_seed else job
        for job in jobs
    ]
    for engine, option in (("native", "--qlog"), ("ns3", "--pcap")):
        if wanted[engine] and not any(job.engine == engine for job in logged):
            raise ScenarioError(
                f"{option}: no run is on the engine {engine}, which alone writes these files; "
                f"give --engine {engine}, or leave out {option}"
            )
    for logs in (qlog, pcap):
        if logs is not None:
            log_folder(logs.folder)
    return logged


def policy_row(run: Run, policy: str) -> dict[str, Any]:
    """Returns what an evaluation keeps of a policy's run, as JSON takes it.

    Args:
        run: The run.
        policy: Name of the policy in results.
    """
    about = {"policy": policy, "scenario": run.scenario.name}
    return {**about, "engine": run.engine, "seed": run.seed, **run.metrics, **run.facts}


@cache
def _load(choice: str, trust_zip: bool) -> tuple[Policy, str | None]:
    """Loads a policy once per worker process."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the main process has said it
        policy = find_policy(choice, trust_zip=trust_zip)
    torch = sys.modules.get("torch")  # of a model of Stable-Baselines3, or a function
    if torch is not None:
        torch.set_num_threads(1)  # the other cores have workers of their own
    return policy, fingerprint_of(choice, policy)


def fingerprint_of(choice: str, policy: Policy) -> str | None:
    """Returns what identifies the content of a policy's files; None for one that has none."""
    _, choice = split_alias(choice)
    if isinstance(policy, FilePolicy):
        return policy.fingerprint
    if choice.endswith(".zip"):
        return sha256(Path(choice).read_bytes()).hexdigest()
    controller = (policy.options or {}).get("controller")
    if isinstance(controller, str) and controllers.is_place(controller):
        return controllers.find(controller).fingerprint
    description = getattr(policy, "description", None)  # which has the SHA-256 of the weights
    if description is None:
        return None
    return sha256(description.to_json().encode()).hexdigest()


def make_jobs(
    policies: Sequence[str],
    scenarios: Iterable[SuiteEntry],
    seeds: int,
    *,
    engine: str = "native",
    window: Window = WHOLE,
    measures: Sequence[str] = (),
    reward: AnyReward | None = None,
    trust_zip: bool = False,
    other_controllers: str | None = None,
    series_in: Path | None = None,
    first_seed: int = 0,
) -> list[RunJob]:
    """Returns every combination; only the first seed keeps its time series.

    Args:
        policies: Policies, as `find_policy` takes them.
        scenarios: Scenarios to be run, and distributions, which give a scenario for each seed.
        seeds: Number of seeds.
        engine: "native" or "ns3".
        window: The part of the run that the metrics are of.
        measures: Metrics in addition to those of every evaluation.
        reward: Reward of the episodes; None: the default.
        trust_zip: Whether to load a model that Stable-Baselines3 saved, which runs code in it.
        other_controllers: Controller of every flow that names none but the first, which alone has
            the policy; None: all of them have the policy.
        series_in: Folder of the evaluation, where time series are kept; None: they are not kept.
        first_seed: The first of the seeds.

    Raises:
        ScenarioError: A policy or the engine does not exist, or a scenario does not fit the engine
            or has no flow for a policy.
        PolicyError: A learned policy cannot be loaded.
        MissingExtraError: A learned policy needs the extra `train`, which is not installed.
        Ns3MissingError: The engine is "ns3", and this build has no ns-3.
    """
    known = check_engine(engine)
    if other_controllers is not None:
        try:
            find_controller(other_controllers)
        except ScenarioError as error:
            raise ScenarioError(f"other_controllers = {other_controllers!r}: {error}") from None
    scenarios = tuple(scenarios)
    names = [scenario.name for scenario in scenarios]
    for entry in scenarios:
        scenario = scenario_of(entry, 0)
        scenario.check_engine(known)
        window.check(scenario)
        if all(flow.controller is not None for flow in scenario.flows):
            raise ScenarioError(
                f"scenario {scenario.name}: each flow names its controller, so none is left for a "
                "policy; leave out `controller` of one"
            )
        if names.count(entry.name) > 1:
            raise ScenarioError(
                f"two of the scenarios have the name {entry.name!r}; change `name` of one"
            )
    shown = [split_alias(choice)[0] for choice in dict.fromkeys(policies)]
    for name in shown:
        if shown.count(name) > 1:
            raise ScenarioError(
                f"two of the policies are shown as {name!r}; give one of them another alias, as in "
                "mine=runs/ppo"
            )
    steering = {choice: PolicyChoice.of(choice, trust_zip=trust_zip) for choice in policies}
    for choice, policy in steering.items():
        _warn_of_missing_marks(choice, policy, scenarios)
    files = _series_files(steering, names, series_in) if series_in else {}

    def played(entry: SuiteEntry, seed: int) -> Scenario:
        scenario = scenario_of(entry, seed)
        if other_controllers is None:
            return scenario
        return scenario.with_one_open_flow(other_controllers)

    return [
        RunJob(
            played(entry, seed),
            policy,
            known,
            seed,
            window,
            tuple(measures),
            reward or Reward(),
            series_file=files.get((choice, entry.name)) if seed == first_seed else None,
            entry=entry.name,
        )
        for choice, policy in steering.items()
        for entry in scenarios
        for seed in range(first_seed, first_seed + seeds)
    ]


def _warn_of_missing_marks(
    choice: str, policy: PolicyChoice, scenarios: Sequence[SuiteEntry]
) -> None:
    name, *_ = split_alias(choice)[1].split(":")
    if name not in controllers.names():
        return  # each process loads the files of learned policies for itself
    controller = (policy.load().options or {}).get("controller")
    if controller is None:
        return
    info = find_controller(controller)
    lacking = [
        scenario.name
        for scenario in (scenario_of(entry, 0) for entry in scenarios)
        if lacks_marks(scenario, info)
    ]
    if lacking:
        some = ", ".join(lacking[:3]) + (", …" if len(lacking) > 3 else "")
        warnings.warn(
            f"{choice}: asks for marks, and no queue on its path marks in {len(lacking)} of "
            f"{len(scenarios)} scenarios ({some}), so it responds to losses alone there; take "
            "scenarios whose queues have ecn_marking",
            stacklevel=3,
        )


def _series_files(
    policies: Iterable[str], scenarios: Sequence[str], folder: Path
) -> dict[tuple[str, str], Path]:
    from quicgym.agents.evaluation.run_folders import (
        series_path,  # pandas: a worker need not wait for it
    )

    files: dict[tuple[str, str], Path] = {}
    owners: dict[Path, tuple[str, str]] = {}
    for cell in product(policies, scenarios):
        files[cell] = series_path(folder, split_alias(cell[0])[0], cell[1])
        owner = owners.setdefault(files[cell], cell)
        if owner != cell:
            raise ScenarioError(
                f"{owner[0]} in {owner[1]} and {cell[0]} in {cell[1]}: the time series of both "
                f"would be {files[cell].name}; give one of them another name"
            )
    return files
