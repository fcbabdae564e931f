"""Several agents in one network: each flow an agent, after PettingZoo's parallel API."""

from __future__ import annotations

import copy
import warnings
from typing import Any

import numpy as np
from gymnasium.spaces import Space
from gymnasium.utils import seeding

from quicgym.errors import MissingExtraError

try:
    from pettingzoo import ParallelEnv
except ImportError as error:
    raise MissingExtraError("quicgym.envs.parallel needs PettingZoo", "multi") from error

from quicgym.envs.arguments import suggests_arguments
from quicgym.envs.batch import EpisodeBatch, NamesOfBatch
from quicgym.envs.decisions import Decisions
from quicgym.envs.environment import CongestionControlEnv, refuse_overrides
from quicgym.envs.episodes import RESET_OPTIONS, EpisodeSource, ScenarioChoice
from quicgym.envs.info import INFO_COLUMNS, row_info
from quicgym.envs.registration import find_environment
from quicgym.envs.rewards import Reward, RewardFunction
from quicgym.envs.scenarios.fields import ScenarioError
from quicgym.envs.scenarios.model import Scenario
from quicgym.envs.simulation.controller_choice import ControllerChoice


class ParallelCongestionControlEnv(NamesOfBatch, ParallelEnv[str, np.ndarray, Any]):
    """Each flow of a scenario that names no controller is an agent, called by the flow's name.

    Where paths are drawn from a distribution, `possible_agents` are "agent", "agent-2" and so on,
    as many as a path has at most. They are the open flows of a path in their order, and have these
    names in quicgym's distributions. `agents` has only those that the drawn path has.

    Spaces, rewards and info are those of the single environment. All agents decide at
    the same moments. An agent is in `agents` from the first decision at which its flow is running:
    flows with a later `start_s` join. It leaves by termination when its flow ends, and by
    truncation when the episode does. Until a flow that starts between two decisions gets its first
    action, it runs the environment's controller as it is.

    Args:
        environment: Name of the environment, such as "tuning", its id or its class.
        scenario: A scenario, or a distribution with the attribute `most_agents`; or its name or
            path.
        engine: "native" or "ns3".
        reward_per_flow: Each agent earns what its own flow achieves; otherwise all earn the same.

    The other arguments are those of the single environment. `reset` takes its options; others are
    ignored with a warning.
    """

    metadata = {"name": "quicgym_parallel_v0", "render_modes": []}

    @suggests_arguments
    def __init__(
        self,
        environment: str | type[CongestionControlEnv] = "tuning",
        scenario: ScenarioChoice = "ebcc-flows-3",
        *,
        engine: str = "native",
        other_controllers: ControllerChoice = "cubic",
        reward: str | Reward | RewardFunction = "fair-throughput",
        reward_per_flow: bool = False,
        episode_s: float | None = None,
        record_deliveries: bool = False,
        **decisions: Any,
    ) -> None:
        """Checks the arguments; the first episode begins with `reset`."""
        refuse_overrides(find_environment(environment), "the parallel environment")
        source = EpisodeSource(
            scenario,
            engine,
            Decisions.of(environment, decisions),
            every_flow=True,
            other_controllers=other_controllers,
            episode_s=episode_s,
            record_deliveries=record_deliveries,
        )
        self._batch = EpisodeBatch(
            source,
            simulations=1,
            threads=1,
            reward=reward,
            reward_per_flow=reward_per_flow,
        )
        self.render_mode = None
        self.possible_agents = list(source.agent_names())
        self.agents: list[str] = []
        self._generator: np.random.Generator | None = None
        # Copies, because each agent's space has its own random generator.
        self._action_spaces = {
            name: copy.deepcopy(self._batch.action_space) for name in self.possible_agents
        }
        self._observation_spaces = {
            name: copy.deepcopy(self._batch.observation_space) for name in self.possible_agents
        }

    def observation_space(self, agent: str) -> Space:
        """Returns the agent's space, the same object every time."""
        return self._observation_spaces[agent]

    def action_space(self, agent: str) -> Space:
        """Returns the agent's space, the same object every time."""
        return self._action_spaces[agent]

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, np.ndarray], dict[str, dict[str, Any]]]:
        """Begins an episode, at the start of the first agent's flow.

        Args:
            seed: The seed of the generator that draws episodes; None: the generator continues.
            options: Options of the single environment; a scenario has to have the same agents, and
                in an environment with a distribution not more.

        Returns:
            Observations and infos of the agents whose flows are running.

        Raises:
            ScenarioError: An option is not valid.
        """
        if self._generator is None or seed is not None:
            self._generator, _ = seeding.np_random(seed)
        for name in options or {}:
            if name not in RESET_OPTIONS:
                warnings.warn(
                    f"reset option {name!r} is ignored; there are: {', '.join(RESET_OPTIONS)}",
                    UserWarning,
                    stacklevel=2,
                )
        known = {key: value for key, value in (options or {}).items() if key in RESET_OPTIONS}
        if known.get("scenario") is not None:
            self._check_agents(known["scenario"])
        self._batch.begin([0], [self._generator], known)
        self.agents = self._running()
        return self._observations(self.agents), self._infos(self.agents)

    def step(
        self, actions: dict[str, Any]
    ) -> tuple[
        dict[str, np.ndarray],
        dict[str, float],
        dict[str, bool],
        dict[str, bool],
        dict[str, dict[str, Any]],
    ]:
        """Advances the network by one decision of all agents.

        If all agents have left and others join later, it advances to the decision at which they do.

        Args:
            actions: One for each of `agents`.

        Raises:
            ValueError: An agent without an action, an action without an agent, or one that is not
                of the space; nothing has happened then.
        """
        if not self.agents:
            return {}, {}, {}, {}, {}
        if actions.keys() != set(self.agents):
            raise ValueError(f"actions for {sorted(actions)}; give one for each of {self.agents}")
        batch = self._batch
        rows = self._in_force()
        for agent, action in actions.items():
            numbers, shape = np.asarray(action), self._action_spaces[agent].shape
            if numbers.shape != shape or not np.issubdtype(numbers.dtype, np.number):
                raise ValueError(
                    f"action of {agent} = {action!r}: give numbers of the shape {shape}"
                )
            rows[self.possible_agents.index(agent)] = numbers
        batch.actions[...] = rows
        batch.step()
        result = self._result({*self.agents, *self._running()})
        while not self._running() and not self._over() and self._joins_later():
            batch.actions[...] = self._in_force()
            batch.step()
            for known, joined in zip(result, self._result(set(self._running())), strict=True):
                known.update(joined)
        self.agents = [] if self._over() else self._running()
        observations, rewards, terminations, truncations, infos = result
        return observations, rewards, terminations, truncations, infos

    @property
    def episode_seed(self) -> int | None:
        """The seed of this episode's simulation."""
        episode = self._batch.episodes[0]
        return None if episode is None else episode.seed

    def statistics(self, flow: int = 0) -> dict[str, Any]:
        """Returns a flow's totals, as SimulatedFlow.statistics has them."""
        return self._batch.statistics(0, flow)

    def deliveries(self) -> np.ndarray:
        """Returns every delivery of this episode; empty without `record_deliveries`."""
        return self._batch.deliveries(0)

    def close(self) -> None:
        """Frees the simulation; on ns3, the next one may begin in this process."""
        self._batch.close()

    def _check_agents(self, chosen: ScenarioChoice) -> None:
        """Raises ScenarioError where a scenario by option has other agents."""
        source = self._batch.source
        if not isinstance(source.scenario, Scenario):
            if (count := source.agents_at_most(chosen)) > len(self.possible_agents):
                raise ScenarioError(
                    f"reset option 'scenario': has up to {count} agents, and the environment's "
                    f"distribution {len(self.possible_agents)}; give one with fewer"
                )
            return
        names = list(source.agent_names(chosen))
        if names != self.possible_agents:
            raise ScenarioError(
                f"reset option 'scenario': its agents are {', '.join(names)}; give one with the "
                f"environment's own, {', '.join(self.possible_agents)}"
            )

    def _in_force(self) -> np.ndarray:
        """The action that leaves each flow as it is; one that has not started begins so."""
        batch = self._batch
        actions = batch.actions
        choices = len(batch.choices)
        end = batch.observations.shape[1]
        if not choices:
            return batch.observations[:, end - actions.shape[1] : end].copy()
        shown = batch.observations[:, end - choices : end]
        return shown.argmax(axis=1, keepdims=True).astype(actions.dtype)

    def _result(self, agents: set[str]) -> list[dict[str, Any]]:
        """Returns what these agents get of the last decision, in the order in which step() does."""
        running = self._running()
        present = [name for name in self.possible_agents if name in agents]
        terminations = {agent: agent not in running for agent in present}
        truncations = {agent: self._over() and not terminations[agent] for agent in present}
        rewards = {
            agent: float(self._batch.rewards[self.possible_agents.index(agent)])
            for agent in present
        }
        return [
            self._observations(present),
            rewards,
            terminations,
            truncations,
            self._infos(present),
        ]

    def _over(self) -> bool:
        return bool(self._batch.terminations[0] or self._batch.truncations[0])

    def _joins_later(self) -> bool:
        episode = self._batch.episodes[0]
        assert episode is not None
        time_s = self._batch.info[0, INFO_COLUMNS.index("time_s")]
        flows = [flow for _, flow in episode.scenario.single_flows()]
        return any(
            flows[index].start_s + flows[index].start_jitter_ms / 1e3 >= time_s
            for index in self._batch.source.agents_of(episode.scenario)
        )

    def _running(self) -> list[str]:
        active = self._batch.info[:, INFO_COLUMNS.index("active")]
        return [name for name, flag in zip(self.possible_agents, active, strict=True) if flag]

    def _observations(self, agents: list[str]) -> dict[str, np.ndarray]:
        rows = self._batch.observations
        return {agent: rows[self.possible_agents.index(agent)].copy() for agent in agents}

    def _infos(self, agents: list[str]) -> dict[str, dict[str, Any]]:
        rows = self._batch.info
        return {agent: row_info(rows[self.possible_agents.index(agent)]) for agent in agents}
