"""The vector environments: any number of simulations in one process, over a pool of threads.

A step runs every simulation in C++ without the interpreter's lock: the threads take simulations
from a queue and write into arrays that are allocated once. One simulation is a row; with
`per_flow` each flow that names no controller is one, for a policy that all flows share.

**Seeds.** Every simulation has its own generator, and draws each episode's scenario and seed from
it, like the single environment: row i is, bit for bit, the single environment that was reset with
row i's seed, through all its episodes. `reset(seed=s)` gives simulation i the seed
`row_seed(s, i)`, spawned by numpy's SeedSequence; a list gives them one by one;
`np_random_seed` shows them.

**Autoreset.** `NEXT_STEP` (the default): the step after an episode's end ignores the action of that
row, begins the next episode and returns its first observation with reward 0. `SAME_STEP`: the step
that ends an episode begins the next one as well; `info["final_obs"]` and `info["final_info"]` have
what the last one ended with. Options of `reset` hold for the episodes that follow, until the next
`reset`.
"""

from __future__ import annotations

import functools
import operator
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import gymnasium
import numpy as np
from gymnasium.utils import seeding
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from quicgym.envs.arguments import suggests_arguments
from quicgym.envs.batch import EpisodeBatch, NamesOfBatch
from quicgym.envs.decisions import Decisions
from quicgym.envs.environment import CongestionControlEnv, refuse_overrides
from quicgym.envs.episodes import EpisodeSource, ScenarioChoice, title_and_hops
from quicgym.envs.info import INFO_COLUMNS, row_info
from quicgym.envs.ns3_workers import Ns3WorkerBatch, WorkerDeath
from quicgym.envs.registration import environments, find_environment
from quicgym.envs.rewards import Reward, RewardFunction
from quicgym.envs.scenarios.fields import ScenarioError
from quicgym.envs.simulation.controller_choice import ControllerChoice
from quicgym.envs.states import EnvironmentState, GeneratorState, episodes_of
from quicgym.validation import check_number
from quicgym.yaml_files import closest

if TYPE_CHECKING:
    from quicgym.envs.render import EpisodePlot


MOST_SIMULATIONS = 100_000


def row_seed(seed: int, row: int) -> int:
    """Returns the seed of a simulation of a vector environment that is reset with `seed`."""
    return int(np.random.SeedSequence(seed, spawn_key=(row,)).generate_state(1, np.uint64)[0])


class CongestionControlVectorEnv(NamesOfBatch, VectorEnv[np.ndarray, Any, np.ndarray]):
    """Many environments of one kind.

    Args:
        environment: The single environment that a row equals, by its name, id or class; its page
            describes the spaces.
        num_envs: The number of simulations, at most MOST_SIMULATIONS.
        num_threads: None: as many as this process may use, at most one per simulation.
        autoreset_mode: "next_step" or "same_step", or Gymnasium's enum.
        engine: "native", or "ns3": a worker process for each simulation.
        on_worker_death: The answer to the death of a worker process of engine "ns3". "raise": a
            WorkerDiedError. "restart": the row is truncated and continues in a new process; see
            quicgym.envs.ns3_workers.
        per_flow: Each flow that names no controller is a row: row = simulation · flows + flow.
            Where a distribution's paths have different numbers of them, the rows left over are 0.
        reward_per_flow: Each row earns what its own flow achieves; see quicgym.envs.rewards.
        render_mode: "rgb_array": `render` returns a picture of each simulation (of its first row);
            None: none is drawn.

    The other arguments are those of the single environment, and the fields of quicgym.Decisions.

    Attributes:
        environment: The class of the single environment.
        num_envs: The number of rows.
        simulations: The number of simulations.
    """

    @suggests_arguments
    def __init__(
        self,
        environment: str | type[CongestionControlEnv],
        num_envs: int = 1,
        *,
        num_threads: int | None = None,
        autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
        per_flow: bool = False,
        reward_per_flow: bool = False,
        scenario: ScenarioChoice = "default",
        engine: str = "native",
        on_worker_death: WorkerDeath = "raise",
        flow: str | int | None = None,
        other_controllers: ControllerChoice = "cubic",
        reward: str | Reward | RewardFunction = "fair-throughput",
        baseline: ControllerChoice | None = None,
        episode_s: float | None = None,
        record_deliveries: bool = False,
        render_mode: str | None = None,
        **decisions: Any,
    ) -> None:
        """Allocates the arrays and starts the threads; episodes begin with `reset`."""
        chosen = Decisions.of(environment, decisions)
        refuse_overrides(find_environment(environment), "a vector environment")
        self.environment = find_environment(environment).variant(
            chosen.controller, chosen.coordinates
        )
        self.autoreset_mode = _autoreset_mode(autoreset_mode)
        if self.autoreset_mode is AutoresetMode.DISABLED:
            raise ValueError(
                f"autoreset_mode = {autoreset_mode}: give NEXT_STEP or SAME_STEP; "
                "without autoreset, step single environments"
            )
        check_number("num_envs", num_envs, 1, MOST_SIMULATIONS, whole=True)
        if num_threads is not None:
            check_number("num_threads", num_threads, 1, MOST_SIMULATIONS, whole=True)
        if on_worker_death not in ("raise", "restart"):
            raise ValueError(f"on_worker_death = {on_worker_death!r}: give 'raise' or 'restart'")
        if not isinstance(per_flow, bool):
            raise ValueError(f"per_flow = {per_flow!r}: give True or False")
        if flow is not None and per_flow:
            raise ValueError(
                f"flow = {flow!r}: with per_flow every open flow is a row; leave it out"
            )
        source = EpisodeSource(
            self.environment.scenario_or_default(scenario),
            engine,
            chosen,
            flow=flow,
            every_flow=per_flow,
            other_controllers=other_controllers,
            episode_s=episode_s,
            record_deliveries=record_deliveries,
        )
        settings: dict[str, Any] = {
            "reward": reward,
            "reward_per_flow": reward_per_flow,
            "baseline": baseline,
        }
        self._batch: EpisodeBatch
        if source.engine == "ns3":
            if num_threads is not None:
                raise ValueError(
                    f"num_threads = {num_threads}: ns-3 runs in a process for each simulation; "
                    "leave it out"
                )
            self._batch = Ns3WorkerBatch(
                source, num_envs, on_worker_death=on_worker_death, **settings
            )
        else:
            threads = min(num_threads or len(os.sched_getaffinity(0)), num_envs)
            self._batch = EpisodeBatch(source, num_envs, threads, **settings)
        self.simulations = num_envs
        self.num_envs = num_envs * self._batch.agent_count
        self.metadata = {**self.environment.metadata, "autoreset_mode": self.autoreset_mode}
        self.render_mode = render_mode
        self._plots = _plots(render_mode, num_envs)
        self.single_action_space = self._batch.action_space
        self.single_observation_space = self._batch.observation_space
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self._seeds: list[int] = [-1] * num_envs
        self._generators: list[np.random.Generator] = []
        self._options: list[Mapping[str, Any] | None] = [None] * num_envs
        self._everywhere = np.ones(self.num_envs, dtype=np.bool_)
        self._everywhere.flags.writeable = False

    @property
    def batch(self) -> EpisodeBatch:
        """The simulations, for algorithms that play episodes of their own choice."""
        return self._batch

    @property
    def np_random_seed(self) -> tuple[int, ...]:  # type: ignore[override]
        """The seed of each simulation's generator; -1 before the first reset."""
        return tuple(self._seeds)

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Begins an episode in every simulation.

        Args:
            seed: One for all (see this module's text), or a list with one for each simulation;
                None: the generators go on.
            options: Options of the single environment, which hold until the next call.
        """
        if options and options.get("episode_seed") is not None:
            raise ScenarioError(
                f"reset option 'episode_seed' = {options['episode_seed']}: every episode of a "
                "vector environment would be the same one; take a single environment, or seed"
            )
        self._seed(seed)
        self.closed = False  # after `close`, too, there is something to free again
        chosen = dict(options) if options else None
        before = self._options
        self._options = [chosen] * self.simulations
        try:
            self._batch.begin(range(self.simulations), self._generators, chosen)
        except BaseException:
            self._options = before
            raise
        if self._plots:
            self._draw_on(np.ones(self.simulations, dtype=np.bool_))
        return self._batch.observations.copy(), self._info(self._batch.columns(), self._everywhere)

    def step(
        self, actions: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Moves every simulation on by one decision.

        Args:
            actions: Shape (num_envs, coordinates), from -1 to 1.

        Returns:
            Observations (float32), rewards (float64), terminations, truncations (bool) and info, a
            row for each environment.

        Raises:
            ValueError: An action that names its row; nothing has moved.
            RuntimeError: `reset` has not been called.
            Exception: What a reward function raises. The rows have moved; where an episode is over,
                the next step begins another one, in either mode.
        """
        batch = self._batch
        batch.set_actions(actions)
        # In SAME_STEP there are such only where something was raised in the last step.
        begins = batch.terminations | batch.truncations
        np.logical_not(begins, out=batch.selected)
        if batch.selected.any():
            batch.step()
        if begins.any():
            self._begin(begins)
        terminations, truncations = batch.terminations.copy(), batch.truncations.copy()
        rewards = batch.rewards.copy()
        final: dict[str, Any] = {}
        if self.autoreset_mode is AutoresetMode.SAME_STEP:
            ends = terminations | truncations
            if ends.any():
                final = self._final(ends)
                self._begin(ends)
                begins |= ends
        info = {**self._info(batch.columns(), self._everywhere), **final}
        if self._plots:
            self._draw_on(begins)
        return (
            batch.observations.copy(),
            rewards,
            self._by_row(terminations),
            self._by_row(truncations),
            info,
        )

    def render(self) -> tuple[np.ndarray, ...] | None:
        """Returns a picture of each simulation's episode, as the single environment does."""
        if not self._plots:
            gymnasium.logger.warn(
                "render() without a render mode: make the environments with render_mode='rgb_array'"
            )
            return None
        pictures = [plot.draw() for plot in self._plots]
        return tuple(picture for picture in pictures if picture is not None)

    def clone_state(self, indices: Sequence[int] | None = None) -> list[EnvironmentState]:
        """Returns the states of simulations, for `restore_state`; changes nothing here.

        A state is as the single environment's, with the simulation's own generator, the options of
        the last `reset`, and whether the next step begins an episode. With `per_flow` it has all
        rows of the simulation.

        Args:
            indices: Indices of the simulations; None: all simulations.

        Raises:
            ValueError: There is no such simulation.
            NotImplementedError, RuntimeError, ControllerError: The single environment's errors.
        """
        chosen = self._chosen(indices)
        return [
            EnvironmentState(
                episode,
                GeneratorState.of(self._generators[index]),
                self._seeds[index],
                self._options[index],
                self._drawn(index),
            )
            for index, episode in zip(chosen, self._batch.clone(chosen), strict=True)
        ]

    def restore_state(
        self, states: Sequence[EnvironmentState], indices: Sequence[int] | None = None
    ) -> None:
        """Puts simulations into states; the others stay as they are.

        A state may come from another simulation, from another vector environment or from a single
        environment that was made with the same arguments, and may be in the list more than once:
        `restore_state([state] * 8)` puts eight simulations into one state.

        Args:
            states: One for each of the simulations.
            indices: Indices of the simulations; None: all simulations.

        Raises:
            TypeError, ControllerError: The single environment's errors; nothing has changed.
            ValueError: A state is of an environment with other arguments, or there are more or
                fewer states than simulations; nothing has changed.
        """
        chosen = self._chosen(indices)
        if len(states) != len(chosen):
            raise ValueError(
                f"restore_state: {len(states)} states for {len(chosen)} simulations; give one for "
                "each"
            )
        self._batch.restore(chosen, episodes_of(states))
        if not self._generators:
            self._seed(None)
        self.closed = False
        for index, state in zip(chosen, states, strict=True):
            self._generators[index] = state._generator.generator()
            self._seeds[index] = -1 if state._seed is None else state._seed
            self._options[index] = state._options
            if self._plots:
                drawn = state._drawn or (self._first_row(index),)
                self._plots[index].go_on(drawn, *self._title_and_hops(index))

    def episode_seeds(self) -> tuple[int | None, ...]:
        """Returns the seed of each simulation's current episode."""
        episodes = self._batch.episodes
        return tuple(None if episode is None else episode.seed for episode in episodes)

    def deliveries(self, simulation: int) -> np.ndarray:
        """Returns every delivery of a simulation's episode; empty without `record_deliveries`."""
        return self._batch.deliveries(simulation)

    def close_extras(self, **kwargs: Any) -> None:
        """Frees every simulation."""
        self._batch.close()

    def _seed(self, seed: int | Sequence[int | None] | None) -> None:
        seeds: Sequence[int | None]
        if seed is None:
            seeds = [None] * self.simulations
        elif isinstance(seed, int | np.integer):
            check_number("seed", seed, 0, 2**64 - 1, whole=True)
            seeds = [row_seed(int(seed), row) for row in range(self.simulations)]
        elif isinstance(seed, Sequence | np.ndarray) and not isinstance(seed, str):
            seeds = seed
        else:
            raise ValueError(f"seed = {seed!r}: give a whole number, or one for each simulation")
        if len(seeds) != self.simulations:
            raise ValueError(
                f"{len(seeds)} seeds for {self.simulations} simulations; give one for each, or one"
            )
        known = bool(self._generators)
        generators, taken = [], list(self._seeds)
        for row, value in enumerate(seeds):
            if value is None and known:
                generators.append(self._generators[row])
                continue
            if value is not None:
                check_number(f"seed of simulation {row}", value, 0, 2**64 - 1, whole=True)
                value = int(value)
            generator, taken[row] = seeding.np_random(value)
            generators.append(generator)
        self._generators, self._seeds = generators, taken

    def _begin(self, which: np.ndarray) -> None:
        simulations = np.flatnonzero(which).tolist()
        draw = self._batch.source.draw
        self._batch.begin_chosen(
            simulations, [draw(self._generators[i], self._options[i]) for i in simulations]
        )

    def _chosen(self, indices: Sequence[int] | None) -> list[int]:
        if indices is None:
            return list(range(self.simulations))
        chosen = [operator.index(index) for index in indices]
        for index in chosen:
            if not 0 <= index < self.simulations:
                raise ValueError(
                    f"indices: there is no simulation {index}; give numbers from 0 to "
                    f"{self.simulations - 1}"
                )
        if len(set(chosen)) < len(chosen):
            raise ValueError(f"indices = {chosen}: one is there twice; give each simulation once")
        return chosen

    def _drawn(self, simulation: int) -> Sequence[dict[str, Any]]:
        return self._plots[simulation].rows if self._plots else ()

    def _first_row(self, simulation: int) -> dict[str, Any]:
        return row_info(self._batch.info[simulation * self._batch.agent_count])

    def _title_and_hops(self, simulation: int) -> tuple[str, int]:
        episode = self._batch.episodes[simulation]
        assert episode is not None, "it has begun"
        return title_and_hops(self.environment.id, episode)

    def _draw_on(self, begins: np.ndarray) -> None:
        """Adds what the last step has shown to the pictures; those that begin start over."""
        for simulation, plot in enumerate(self._plots):
            if begins[simulation]:
                plot.begin(self._first_row(simulation), *self._title_and_hops(simulation))
            else:
                row = simulation * self._batch.agent_count
                plot.add(self._first_row(simulation), float(self._batch.rewards[row]))

    def _by_row(self, flags: np.ndarray) -> np.ndarray:
        return flags if self._batch.agent_count == 1 else np.repeat(flags, self._batch.agent_count)

    def _info(self, columns: dict[str, np.ndarray], mask: np.ndarray) -> dict[str, Any]:
        info: dict[str, Any] = {}
        for name, column in columns.items():
            info[name] = column
            info[f"_{name}"] = mask
        return info

    def _final(self, done: np.ndarray) -> dict[str, Any]:
        rows = self._by_row(done)
        observations = np.full(self.num_envs, None, dtype=object)
        for row in np.flatnonzero(rows):
            observations[row] = self._batch.observations[row].copy()
        final = np.full(self._batch.info.T.shape, np.nan)
        final[:, rows] = self._batch.info[rows].T
        columns = dict(zip(INFO_COLUMNS, final, strict=True))
        return {
            "final_obs": observations,
            "_final_obs": rows,
            "final_info": self._info(columns, rows),
            "_final_info": rows,
        }


def __getattr__(name: str) -> Any:
    """Returns the vector environment of a registered one, such as `tuning_vector_env`.

    By this name Gymnasium finds it.
    """
    environment = environments().get(name.removesuffix("_vector_env"))
    if environment is None or not name.endswith("_vector_env"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return functools.partial(CongestionControlVectorEnv, environment)


def _plots(render_mode: str | None, rows: int) -> list[EpisodePlot]:
    """Returns a picture for each row; ValueError where the mode is none of a vector environment."""
    if render_mode is None:
        return []
    if render_mode != "rgb_array":
        raise ValueError(
            f"render_mode = {render_mode!r}: a vector environment has 'rgb_array', a picture of "
            "each simulation; for a window make a single environment"
        )
    from quicgym.envs import render  # and with it matplotlib, which takes its time

    return [render.EpisodePlot(render_mode) for _ in range(rows)]


def _autoreset_mode(chosen: str | AutoresetMode) -> AutoresetMode:
    """Returns the mode for its name or its value, in any spelling of the two."""
    for mode in AutoresetMode:
        if chosen is mode or str(chosen).replace("_", "").lower() == mode.value.lower():
            return mode
    known = [mode.name.lower() for mode in AutoresetMode if mode is not AutoresetMode.DISABLED]
    raise ValueError(f"unknown autoreset_mode {chosen!r}; {closest(str(chosen), known)}")


def make_vec(id: str, num_envs: int = 1, **arguments: Any) -> VectorEnv:
    """Makes a vector environment of quicgym, as gymnasium.make_vec does.

    Args:
        id: Such as "tuning" or "quicgym/Tuning-v1".
        num_envs: The number of simulations.
        **arguments: Arguments of CongestionControlVectorEnv.
    """
    if not isinstance(id, str):
        raise ValueError(f"id = {id!r}: give an environment, such as 'quicgym/Window-v1'")
    if "/" not in id:  # else it may be one that only Gymnasium knows
        id = find_environment(id).id
    return gymnasium.make_vec(
        id, num_envs=num_envs, vectorization_mode="vector_entry_point", **arguments
    )
