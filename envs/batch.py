"""Episodes side by side in C++, with what Python adds: scenarios, seeds, reward functions.

The single environment, the vector environments and the parallel one are views of this class, so
all of them see, do and earn the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Any, NoReturn, SupportsIndex

import numpy as np

from quicgym import _core
from quicgym.envs.actions import action_space
from quicgym.envs.episodes import EpisodeChoice, EpisodeSource
from quicgym.envs.info import INFO_COLUMNS
from quicgym.envs.observations import observation_names
from quicgym.envs.rewards import REWARDS, Reward, RewardFunction
from quicgym.envs.scenarios.conversion import nanoseconds
from quicgym.envs.simulation.controller_choice import ControllerChoice, find_controller
from quicgym.envs.simulation.simulation import (
    DELIVERY_DTYPE,
    EVENT_DTYPE,
    TRANSFER_DTYPE,
    ns3_module,
)
from quicgym.envs.states import EpisodeState, check_arguments
from quicgym.yaml_files import closest

_TIME_S = INFO_COLUMNS.index("time_s")


class EpisodeBatch:
    """A fixed number of episodes; arrays have a row per agent, in the order of the simulations.

    Each simulation has as many rows as an episode may have agents. Those without one are 0, and
    their info is NaN but for `active`; `has_agent` says which rows have one. `actions`, float32,
    shape (rows, coordinates), are to be filled before `step`, which moves the `selected`
    simulations on. After `begin` and `step` there are `observations`, float32, shape (rows,
    features); `rewards`, float64, shape (rows,); and `info`, float64, shape (rows,
    len(INFO_COLUMNS)). `terminations` and `truncations` are bool, shape (simulations,).
    """

    def __init__(
        self,
        source: EpisodeSource,
        simulations: int,
        threads: int,
        *,
        reward: str | Reward | RewardFunction,
        reward_per_flow: bool = False,
        records: bool = False,
        one_row: bool = False,
        baseline: ControllerChoice | None = None,
    ) -> None:
        """Allocates everything; no episode has begun.

        `source` draws the episodes; its decisions say when agents act, and on what. With
        `reward_per_flow` each agent earns what its own flow achieves. `records` keeps what every
        flow has received at the end of each reward interval. With `one_row` actions are those of
        one agent, without an axis for rows. With a `baseline` each row earns its reward minus what
        this controller earns in the agents' place on the same path with the same seed.
        """
        self.reward = reward
        self._reward_function = reward if callable(reward) else None
        decisions = source.decisions
        interface = decisions.interface
        space = _core.find_action_space(interface.action_space)
        settings = _core.EnvironmentSettings(space, interface.observations)
        settings.history_length = decisions.history_length
        settings.clips_actions = decisions.out_of_range == "clip"
        settings.decision_interval = nanoseconds(decisions.decision_interval_ms / 1e3)
        settings.decision_interval_rtts = decisions.decision_interval_rtts or 0.0
        settings.reward_interval = nanoseconds(decisions.reward_interval_ms / 1e3)
        if not isinstance(reward_per_flow, bool):
            raise ValueError(f"reward_per_flow = {reward_per_flow!r}: give True or False")
        settings.reward_per_flow = reward_per_flow
        settings.records = records
        if isinstance(reward, str | Reward):
            reward = reward if isinstance(reward, Reward) else Reward(reward)
            settings.reward = reward.to_core()
        elif self._reward_function is None:
            raise ValueError(
                f"reward = {reward!r}: give the name of a reward ({', '.join(REWARDS)}), a "
                "quicgym.Reward, or a function from the columns of info to rewards"
            )
        # A state can be restored only into a batch that was made with the same values.
        self.made_with = {
            "environment": space.name,
            "reward": reward,
            "reward_per_flow": reward_per_flow,
            "baseline": baseline,
            **source.arguments,
        }
        self.choices = tuple(space.choices)
        self.action_names: tuple[str, ...] = tuple(space.choices or space.coordinates)
        self.observation_names = observation_names(
            decisions.history_length, space.name, interface.observations
        )
        self.source = source
        self._baseline = baseline
        self._beside: EpisodeBatch | None = None
        if baseline is not None:
            find_controller(baseline)
            if source.engine != "native":
                raise ValueError(
                    f"baseline = {baseline!r}: a second simulation next to each one needs "
                    f"engine = 'native', and not {source.engine!r}"
                )
            if decisions.decision_interval_rtts is not None:
                raise ValueError(
                    f"decision_interval_rtts = {decisions.decision_interval_rtts}: intervals of "
                    "the agent and of the baseline would end at different times; leave one out"
                )
            # A copy, so that what an object remembers of the agents is not of the baseline.
            self._beside = EpisodeBatch(
                source,
                simulations,
                threads,
                reward=deepcopy(reward),
                reward_per_flow=reward_per_flow,
            )
        self._batch = self._make_batch(settings, simulations, threads)
        self.agent_count = source.agent_count
        self._closed = False
        self.episodes: list[EpisodeChoice | None] = [None] * simulations
        self.actions: np.ndarray = self._batch.actions
        self.observations: np.ndarray = self._batch.observations
        self.rewards: np.ndarray = self._batch.rewards
        self.info: np.ndarray = self._batch.info
        self.has_agent = np.zeros(len(self.rewards), dtype=np.bool_)
        self.selected: np.ndarray = self._batch.selected
        self.terminations: np.ndarray = self._batch.terminations
        self.truncations: np.ndarray = self._batch.truncations
        self.action_space = action_space(space.name)
        self.observation_space = decisions.observation_space
        single: tuple[int, ...] = self.action_space.shape or ()
        self._actions_shape = single if one_row else (len(self.rewards), *single)
        # All that a step leaves behind, by simulation.
        self._results = [
            array.reshape(simulations, -1)
            for array in (
                self.observations,
                self.rewards,
                self.info,
                self.has_agent,
                self.terminations,
                self.truncations,
            )
        ]

    def begin(
        self,
        simulations: Sequence[int],
        generators: Sequence[np.random.Generator],
        options: Mapping[str, Any] | None = None,
    ) -> None:
        """Begins new episodes and writes their observations, rewards (0) and info.

        Each of the `simulations`, by index, has a generator. `options` are those of
        EpisodeSource.draw.
        """
        self.begin_chosen(
            simulations, [self.source.draw(generator, options) for generator in generators]
        )

    def begin_chosen(self, simulations: Sequence[int], choices: Sequence[EpisodeChoice]) -> None:
        """Begins episodes that were drawn already.

        Where a choice is not valid, nothing has changed. Where an episode cannot begin, or somebody
        interrupts, none of the simulations has an episode; those whose last one is over say so.
        """
        own = self._prepare(choices)
        instead = [replace(choice, controller=self._baseline, parameters={}) for choice in choices]
        beside = None if self._beside is None else self._beside._prepare(instead)
        ends = [array[list(simulations)] for array in (self.terminations, self.truncations)]
        before = [self.episodes[simulation] for simulation in simulations]
        self._closed = False
        try:
            self._begin(simulations, choices, own)
            if self._beside is not None and beside is not None:
                self._beside._begin(simulations, instead, beside)
        except BaseException:
            self._name(simulations, before)  # which stays where another thread is in a step
            self._end(simulations)
            self.terminations[list(simulations)], self.truncations[list(simulations)] = ends
            raise

    def _begin(
        self,
        simulations: Sequence[int],
        choices: Sequence[EpisodeChoice],
        prepared: Sequence[tuple[_core.Scenario, _core.EpisodePlan]],
    ) -> None:
        self._name(simulations, choices)
        try:
            self._reset(simulations, choices, prepared)
        except Exception as error:
            self._say_which(error)
            raise
        agents = np.array([len(plan.agents) for _, plan in prepared])
        by_simulation = self.has_agent.reshape(-1, self.agent_count)
        by_simulation[simulations] = np.arange(self.agent_count) < agents[:, None]

    def _prepare(
        self, choices: Sequence[EpisodeChoice]
    ) -> list[tuple[_core.Scenario, _core.EpisodePlan]]:
        return [self.source.prepare(choice) for choice in choices]

    def _name(self, simulations: Sequence[int], choices: Sequence[EpisodeChoice | None]) -> None:
        for simulation, choice in zip(simulations, choices, strict=True):
            self.episodes[simulation] = choice

    def _end(self, simulations: Sequence[int]) -> None:
        for simulation in simulations:
            self._batch.close(simulation)
            self.episodes[simulation] = None
            self.info[simulation * self.agent_count, _TIME_S] = np.nan
        if self._beside is not None:
            self._beside._end(simulations)

    def step(self) -> None:
        """Moves the selected simulations on by one decision, with `actions`.

        ValueError where an action is no number, or one outside [-1, 1] that is not to be clipped;
        RuntimeError where a simulation has no running episode; nothing has moved then.
        ControllerError where a controller in Python failed: its episode is over, and the other
        episodes have moved on.
        """
        self._move()
        self._earn()

    def _move(self) -> None:
        """Moves the selected simulations on, and the baseline's with them."""
        beside = self._beside
        if beside is not None:
            self._bring(beside)  # after a step that something has ended half-way
        try:
            self._batch.step()
        except Exception as error:
            if self._closed:
                raise RuntimeError(
                    "step: the environment is closed; make another one, or begin an episode with "
                    "reset()"
                ) from None
            self._say_which(error)
            raise
        if beside is not None:
            self._bring(beside)

    def _bring(self, beside: EpisodeBatch) -> None:
        """Moves the baseline's simulations that are behind the agents' to the same time.

        Whatever was raised between the two moves, Ctrl-C as well, agents and baseline are compared
        at one time. A baseline whose transfer was done earlier stays, and earns nothing more.
        """
        now, then = (batch.info[:: self.agent_count, _TIME_S] for batch in (self, beside))
        beside.selected[:] = (then < now) & ~(beside.terminations | beside.truncations)
        if beside.selected.any():
            beside._move()

    def _earn(self) -> None:
        """Makes the rewards of the last move: those of a function, less the baseline's."""
        if self._reward_function is not None:
            self._apply_reward_function(self._reward_function)
        beside = self._beside
        if beside is not None and beside.selected.any():
            beside._earn()
            moved = np.repeat(beside.selected, self.agent_count)
            self.rewards[moved] -= beside.rewards[moved]

    def clone(self, simulations: Sequence[int]) -> list[EpisodeState]:
        """Returns the states of simulations, see CongestionControlEnv.clone_state."""
        if self.source.engine != "native":
            raise NotImplementedError(
                "clone_state: ns-3 cannot copy a simulation; make the environment with "
                "engine='native', which gives the same episodes on wired networks"
            )
        beside: Sequence[EpisodeState | None] = [None] * len(simulations)
        if self._beside is not None:
            beside = self._beside.clone(simulations)
        return [
            EpisodeState(
                core,
                self.episodes[simulation],
                tuple(array[simulation].copy() for array in self._results),
                self.made_with,
                baseline,
            )
            for simulation, core, baseline in zip(
                simulations, self._batch.clone(simulations), beside, strict=True
            )
        ]

    def restore(self, simulations: Sequence[int], states: Sequence[EpisodeState]) -> None:
        """Puts states in the places of simulations.

        ValueError where a state is of an environment with other arguments, ControllerError where a
        controller in Python cannot be copied; nothing has changed then. Where the baseline's cannot
        be copied, or somebody interrupts, the simulations have no episode.
        """
        for state in states:
            check_arguments(self.made_with, state)
        self._closed = False
        changed = True
        try:
            try:
                self._batch.restore(simulations, [state.core for state in states])
            except Exception:
                changed = False
                raise
            if self._beside is not None:
                baselines = [state.baseline for state in states if state.baseline is not None]
                self._beside.restore(simulations, baselines)
            self._name(simulations, [state.choice for state in states])
            for simulation, state in zip(simulations, states, strict=True):
                for array, row in zip(self._results, state.rows, strict=True):
                    array[simulation] = row
        except BaseException:
            if changed:
                self._end(simulations)
            raise

    def set_actions(self, actions: np.ndarray) -> None:
        """Copies actions: one of the space for a single environment, else a row for each agent."""
        try:
            array = np.asarray(actions)
            if array.dtype.kind in "bcSU":  # NumPy would take "6" or 6 + 2j for 6
                raise ValueError
            array = array.astype(np.float32)
        except (TypeError, ValueError):
            raise ValueError(f"actions = {actions!r}: give an array of numbers") from None
        if array.shape != self._actions_shape:
            raise ValueError(f"actions have the shape {array.shape}; give {self._actions_shape}")
        self.actions.reshape(self._actions_shape)[...] = array

    def columns(self) -> dict[str, np.ndarray]:
        """Returns a copy of `info` by column, each of shape (rows,)."""
        return dict(zip(INFO_COLUMNS, self.info.T.copy(), strict=True))

    def statistics(self, simulation: int, flow: int) -> dict[str, Any]:
        """Returns a flow's totals, as SimulatedFlow.statistics has them."""
        return dict(self.simulation(simulation).statistics(flow))

    def parameters(self, simulation: int, flow: int) -> dict[str, list[float]]:
        """Returns the parameters of a flow's controller, each as a list."""
        return dict(self.simulation(simulation).parameters(flow))

    def deliveries(self, simulation: int) -> np.ndarray:
        """Returns every delivery so far, as Simulation.deliveries has them."""
        return np.frombuffer(self.simulation(simulation).deliveries(), DELIVERY_DTYPE)

    def events(self, simulation: int, flow: int) -> np.ndarray:
        """Returns what a flow's sender did, as Simulation.events has it."""
        held = self.simulation(simulation)
        if not isinstance(held, _core.NativeSimulation):
            return np.empty(0, EVENT_DTYPE)
        return np.frombuffer(held.events(flow), EVENT_DTYPE)

    def requests(self, simulation: int, flow: int) -> np.ndarray:
        """Returns what a flow's application has asked for, as Simulation.requests has it."""
        return np.frombuffer(self.simulation(simulation).requests(flow), TRANSFER_DTYPE)

    def transfers(self, simulation: int, short_flows: int) -> np.ndarray:
        """Returns the transfers of an entry of short flows, as Simulation.transfers has them."""
        return np.frombuffer(self.simulation(simulation).transfers(short_flows), TRANSFER_DTYPE)

    def simulation(self, simulation: int) -> _core.Simulation:
        """Returns the simulation of an episode, which its holder keeps when the episode ends."""
        held: _core.Simulation = self._batch.simulation(simulation)
        return held

    def totals(self, simulation: int, mark: int) -> list[_core.FlowTotals]:
        """Returns the totals of every flow at one of the episode's marks, counted from 0."""
        flows = range(self.simulation(simulation).flow_count)
        return [self._batch.totals(simulation, mark, flow) for flow in flows]

    def short_flow_totals(self, simulation: int, mark: int) -> list[dict[str, float]]:
        """Returns the totals of every entry of short flows at one of the episode's marks."""
        episode = self.episodes[simulation]
        assert episode is not None
        entries = range(len(episode.scenario.short_flows))
        return [self._batch.short_flow_totals(simulation, mark, entry) for entry in entries]

    def queue_seconds_at(self, simulation: int, mark: int) -> float:
        """Returns the simulation's `queue_occupancy_seconds` at one of the episode's marks."""
        return float(self._batch.queue_occupancy_seconds(simulation, mark))

    def received(self, simulation: int) -> tuple[np.ndarray, np.ndarray]:
        """Returns the ends of the reward intervals, in ns, and the bytes each flow had received.

        Needs `records`. The bytes have the shape (intervals, flows).
        """
        return self._batch.times(simulation), self._batch.received(simulation)

    def close(self) -> None:
        """Frees every simulation; on ns3, the next one may begin in this process."""
        self._closed = True
        self._end(range(len(self.episodes)))
        self.terminations[:] = self.truncations[:] = False  # so that no step begins an episode

    def _make_batch(self, settings: Any, simulations: int, threads: int) -> Any:
        if self.source.engine == "ns3":
            return ns3_module().ns3_batch(settings, simulations, self.source.agent_count, threads)
        return _core.native_batch(
            settings, simulations, self.source.agent_count, threads, self.source.record_events
        )

    def _reset(
        self,
        simulations: Sequence[int],
        choices: Sequence[EpisodeChoice],
        prepared: Sequence[tuple[_core.Scenario, _core.EpisodePlan]],
    ) -> None:
        self._batch.reset(
            list(simulations),
            [scenario for scenario, _ in prepared],
            [plan for _, plan in prepared],
        )

    def _apply_reward_function(self, function: RewardFunction) -> None:
        moved = np.repeat(self._moved(), self.agent_count) & self.has_agent
        columns = _Columns(zip(INFO_COLUMNS, self.info[moved].T, strict=True))
        columns["row"] = np.flatnonzero(moved)
        returned = function(columns)
        try:
            rewards = np.asarray(returned, dtype=np.float64)
        except (TypeError, ValueError):
            rewards = np.array(np.nan)
        if rewards.shape != (moved.sum(),) or not np.all(np.isfinite(rewards)):
            name = getattr(function, "__qualname__", type(function).__qualname__)
            raise ValueError(
                f"the reward function {name} returned {returned!r}; "
                f"give finite numbers of the shape {(int(moved.sum()),)}"
            )
        self.rewards[moved] = rewards

    def _moved(self) -> np.ndarray:
        """Which simulations the last step has moved on."""
        return self.selected

    def _say_which(self, error: Exception) -> None:
        failed = self._batch.failed
        episode = None if failed is None else self.episodes[failed]
        if episode is not None:
            error.add_note(
                f"environment {failed}: scenario {episode.scenario.name}, "
                f"seed {episode.seed}, engine {self.source.engine}"
            )


class _Columns(dict[str, np.ndarray]):
    """`info` as a reward function reads it."""

    def __missing__(self, name: str) -> np.ndarray:
        raise KeyError(f"info has no column {name!r}; {closest(name, INFO_COLUMNS)}")


class NamesOfBatch:
    """Names the actions and observations of a batch, for the environments over it."""

    _batch: EpisodeBatch

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        """Refuses to be pickled or copied: the simulation is memory of C++."""
        raise TypeError(
            f"{type(self).__name__}: cannot be pickled or copied, because it holds simulations of "
            "C++; make another one with the same arguments, or take clone_state and restore_state "
            "where the environment has them"
        )

    @property
    def action_names(self) -> tuple[str, ...]:
        """The coordinates of an action, or its choices, in their order."""
        return self._batch.action_names

    @property
    def observation_names(self) -> tuple[str, ...]:
        """The elements of an observation, in their order."""
        return self._batch.observation_names

    def get_action_meanings(self) -> list[str]:
        """Returns `action_names` as a list, as the environments of Atari games do."""
        return list(self.action_names)
