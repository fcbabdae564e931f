"""Where episodes come from: a scenario or a distribution of them, and who controls which flow."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol, runtime_checkable

import numpy as np

from quicgym import _core
from quicgym.envs.decisions import Decisions
from quicgym.envs.scenarios.conversion import nanoseconds, to_core
from quicgym.envs.scenarios.engines import (
    EngineName,
    check_capabilities,
    check_records_events,
)
from quicgym.envs.scenarios.fields import SHORTEST_S, ScenarioError
from quicgym.envs.scenarios.model import Scenario
from quicgym.envs.scenarios.suites import load_entry
from quicgym.envs.simulation.controller_choice import (
    ControllerChoice,
    find_controller,
    resolve_controllers,
    warn_of_idle_ecn,
)
from quicgym.envs.simulation.run_size import check_size
from quicgym.envs.simulation.simulation import check_engine, flow_index, flow_indices
from quicgym.validation import check_number
from quicgym.yaml_files import closest

RESET_OPTIONS = ("controller", "episode_seed", "parameters", "scenario")


@runtime_checkable
class ScenarioDistribution(Protocol):
    """Anything that draws scenarios."""

    def sample(self, rng: np.random.Generator) -> Scenario:
        """Returns a scenario; the generator is all that it may depend on."""


ScenarioChoice = Scenario | str | Path | ScenarioDistribution
"""A scenario or a distribution of them, its name or its path."""


@dataclass(frozen=True)
class _Prepared:
    """A scenario as the engines take it."""

    scenario: Scenario
    core: _core.Scenario
    agents: tuple[int, ...]
    end: int


@dataclass(frozen=True)
class EpisodeChoice:
    """Holds the scenario, the seed and the controller that were drawn for an episode.

    A `controller` acts in the agents' place, with `parameters` that replace its own or the
    scenario's. `marks` are times, in ns and rising, at which the totals of every flow are kept.
    """

    scenario: Scenario
    seed: int
    controller: ControllerChoice | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    marks: tuple[int, ...] = ()


def title_and_hops(environment: str, episode: EpisodeChoice) -> tuple[str, int]:
    """Returns an episode's title, from environment to who decides, and its number of hops."""
    chosen = episode.controller
    decides = "agent" if chosen is None else find_controller(chosen).name
    title = f"{environment}, {episode.scenario.name}, {decides}"
    return title, 1 + len(episode.scenario.chain)


@dataclass(frozen=True)
class DrawnElsewhere:
    """A distribution's stand-in where episodes are only prepared."""

    most_agents: int

    def sample(self, rng: np.random.Generator) -> Scenario:
        """Raises NotImplementedError: whoever begins the episodes draws them."""
        raise NotImplementedError


class EpisodeSource:
    """Draws episodes; the same generator state gives the same episode.

    `flow` is the agent's, by name or index; None: the first that names no controller. With
    `every_flow` each of these has an agent. `other_controllers` are for flows without a controller
    and without an agent. `episode_s` is counted from the start of the first agent's flow; None: to
    the end of the scenario. `record_events` and `pcap_prefix` are Simulation's. ScenarioError where
    the scenario, the engine for it or an argument is not valid.
    """

    def __init__(
        self,
        scenario: ScenarioChoice,
        engine: str,
        decisions: Decisions,
        *,
        flow: str | int | None = None,
        every_flow: bool = False,
        other_controllers: ControllerChoice = "cubic",
        episode_s: float | None = None,
        record_deliveries: bool = False,
        record_events: bool = False,
        pcap_prefix: str = "",
    ) -> None:
        """Loads a scenario that is given by name or path, and checks what can be checked."""
        self.engine: EngineName = check_engine(engine)
        self.scenario = _load(scenario)
        if episode_s is not None:
            try:
                check_number("episode_s", episode_s, SHORTEST_S, 1e6)
            except ValueError as error:
                raise ScenarioError(f"{error}, in seconds, or None") from None
        try:
            find_controller(other_controllers)
        except ScenarioError as error:
            raise ScenarioError(f"other_controllers: {error}") from None
        self.decisions = decisions
        self._flow = flow
        self._every_flow = every_flow
        self._other_controllers = other_controllers
        self._episode_s = episode_s
        self._record_deliveries = record_deliveries
        self.record_events = record_events
        self._pcap_prefix = pcap_prefix
        self._prepared: dict[ControllerChoice | None, _Prepared] = {}
        if isinstance(self.scenario, Scenario):
            self._prepare(self.scenario, None)

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments that the source was made with, by name."""
        return {
            "scenario": self.scenario,
            "engine": self.engine,
            **self.decisions.arguments,
            **asdict(self.decisions.interface),
            "flow": self._flow,
            "per_flow": self._every_flow,
            "other_controllers": self._other_controllers,
            "episode_s": self._episode_s,
            "record_deliveries": self._record_deliveries,
        }

    def for_prepared(self) -> EpisodeSource:
        """Returns a copy for another process, which prepares what was drawn here.

        A distribution stays behind: it may be of a class that the other process does not know.
        """
        copied = copy.copy(self)
        if not isinstance(self.scenario, Scenario):
            copied.scenario = DrawnElsewhere(self.agent_count)
        return copied

    def __getstate__(self) -> dict[str, Any]:
        """Leaves out the engines' structures, which are made again where they are needed."""
        return {**self.__dict__, "_prepared": {}}

    @property
    def agent_count(self) -> int:
        """How many agents an episode has at most."""
        return self.agents_at_most() if self._every_flow else 1

    def agents_at_most(self, chosen: ScenarioChoice | None = None) -> int:
        """Returns how many open flows a path has at most; None: in this source's scenario."""
        scenario = self.scenario if chosen is None else _load(chosen)
        if isinstance(scenario, Scenario):
            return len(self.agents_of(scenario))
        agents = getattr(scenario, "most_agents", None)
        if agents is None:
            raise ScenarioError(
                "an agent for each flow needs to know how many agents an episode may have: give a "
                "scenario, or a distribution with the attribute `most_agents`"
            )
        return int(agents)

    def agent_names(self, chosen: ScenarioChoice | None = None) -> tuple[str, ...]:
        """Returns the flows that agents have in a scenario; None: in this source's.

        Of a distribution the names are "agent", "agent-2" and so on, which its paths need not have.
        """
        scenario = self.scenario if chosen is None else _load(chosen)
        if not isinstance(scenario, Scenario):
            others = range(2, self.agents_at_most(scenario) + 1)
            return ("agent", *(f"agent-{number}" for number in others))
        names = [name for name, _ in scenario.single_flows()]
        return tuple(names[index] for index in self.agents_of(scenario))

    def draw(self, rng: np.random.Generator, options: Mapping[str, Any] | None) -> EpisodeChoice:
        """Returns the next episode: its scenario is drawn first, then its seed.

        The option "controller" is any controller in place of the agents, whose actions are then
        ignored, and "parameters" are that controller's, by name. "scenario" is in place of the
        environment's. With "episode_seed" the episode is that of `quicgym evaluate` with this seed:
        a distribution draws the same scenario, and the simulation has the seed. ScenarioError where
        the drawn scenario or an option is not valid.
        """
        options = {} if options is None else options
        if not isinstance(options, Mapping):
            raise ScenarioError(f"options = {options!r}: give a mapping, or None")
        for name in options:
            if name not in RESET_OPTIONS:
                raise ScenarioError(
                    f"unknown reset option {name!r}; {closest(name, RESET_OPTIONS)}"
                )
        chosen = options.get("scenario")
        scenario = self.scenario if chosen is None else _load(chosen)
        episode_seed = options.get("episode_seed")
        if episode_seed is not None:
            try:
                check_number("episode_seed", episode_seed, 0, 2**63 - 1, whole=True)
            except ValueError as error:
                raise ScenarioError(f"reset option {error}") from None
        if not isinstance(scenario, Scenario):
            drawing = rng if episode_seed is None else np.random.default_rng(episode_seed)
            scenario = scenario.sample(drawing)
        controller, parameters = options.get("controller"), options.get("parameters") or {}
        if not isinstance(parameters, Mapping):
            raise ScenarioError(f"reset option 'parameters' = {parameters!r}: give a mapping")
        if parameters and controller is None:
            raise ScenarioError("reset option 'parameters': name their controller as well")
        seed = int(rng.integers(2**63))
        return EpisodeChoice(
            scenario,
            seed if episode_seed is None else int(episode_seed),
            controller,
            parameters,
        )

    def prepare(self, choice: EpisodeChoice) -> tuple[_core.Scenario, _core.EpisodePlan]:
        """Returns an episode as the engines take it; ScenarioError where it is not valid."""
        if self.record_events:
            check_records_events(choice.scenario.name, self.engine)
        prepared = self._prepare(choice.scenario, choice.controller, choice.parameters)
        plan = _core.EpisodePlan()
        plan.seed = choice.seed
        plan.agents = list(prepared.agents)
        plan.ignores_actions = choice.controller is not None
        plan.end = prepared.end
        plan.marks = list(choice.marks)
        if self._episode_s is not None:
            plan.length = nanoseconds(self._episode_s)
        return prepared.core, plan

    def _prepare(
        self,
        scenario: Scenario,
        controller: ControllerChoice | None,
        parameters: Mapping[str, Any] = MappingProxyType({}),
    ) -> _Prepared:
        """Returns a scenario with a controller in the agents' place; None: with agents."""
        known = None if parameters else self._prepared.get(controller)
        if known is not None and known.scenario is scenario:
            return known
        agents = self.agents_of(scenario)
        if self._episode_s is not None and self._episode_s > scenario.duration_s:
            raise ScenarioError(
                f"episode_s = {self._episode_s}: {scenario.name} lasts {scenario.duration_s:g} s; "
                "make episode_s shorter or the scenario's duration_s longer"
            )
        check_size(scenario, None)
        models = [flow for _, flow in scenario.single_flows()]
        controllers = resolve_controllers(
            scenario, self._other_controllers if scenario.has_open_flow else None
        )
        agents_controller = find_controller(
            self.decisions.interface.controller if controller is None else controller
        )
        chosen = [
            agents_controller if index in agents else info for index, info in enumerate(controllers)
        ]
        if scenario is self.scenario:  # for each that is drawn it would be said too often
            warn_of_idle_ecn(scenario, chosen)
        try:
            complete = agents_controller.complete(dict(parameters))
        except ValueError as error:
            raise ScenarioError(str(error)) from None
        core = to_core(scenario, chosen)
        core.pcap_prefix = self._pcap_prefix
        check_capabilities(scenario.name, core, self.engine)
        flows = core.flows
        for agent in agents:
            if controller is None:
                flows[agent].guard = self.decisions.guard
                flows[agent].safe_envelope = self.decisions.safe_envelope
            if models[agent].controller is not None:  # whose parameters are not the agent's
                given = agents_controller.given
                flows[agent].parameters = {name: complete[name] for name in given}
            if parameters:
                changed = {name: complete[name] for name in parameters}
                flows[agent].parameters = {**flows[agent].parameters, **changed}
        core.flows = flows
        core.record_deliveries = self._record_deliveries
        prepared = _Prepared(scenario, core, agents, nanoseconds(scenario.duration_s))
        if scenario is self.scenario and not parameters:
            self._prepared[controller] = prepared
        return prepared

    def agents_of(self, scenario: Scenario) -> tuple[int, ...]:
        """Returns which flows of a scenario have an agent, by index."""
        flows = list(scenario.single_flows())
        if self._flow is not None:
            try:
                chosen = [flow_index(self._flow, flow_indices(name for name, _ in flows))]
            except ValueError as error:
                raise ScenarioError(f"{scenario.name}: {error}") from None
        else:
            chosen = [index for index, (_, flow) in enumerate(flows) if flow.controller is None]
            if not self._every_flow:
                chosen = chosen[:1]
        if not chosen:
            raise ScenarioError(
                f"{scenario.name}: every flow names its controller, so none is left for an agent; "
                "name the agent's flow with flow=, or leave out a flow's controller"
            )
        for index in chosen:
            name, flow = flows[index]
            if flow.transport == "tcp":
                raise ScenarioError(
                    f"{scenario.name}: flow {name} is ns-3's TCP, which no agent can control; "
                    "name a QUIC flow with flow="
                )
            if flow.direction == "backward":
                raise ScenarioError(
                    f"{scenario.name}: flow {name} goes backward, and rewards are of forward "
                    "flows; name a forward flow with flow="
                )
        return tuple(chosen)


def _load(scenario: ScenarioChoice) -> Scenario | ScenarioDistribution:
    if isinstance(scenario, str | Path):
        return load_entry(scenario)
    if not isinstance(scenario, Scenario | ScenarioDistribution):
        raise ScenarioError(
            f"scenario = {scenario!r}: give a Scenario, a distribution, or the name or path of "
            "one, such as 'ebcc-single' or 'training'"
        )
    return scenario
