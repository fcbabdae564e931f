"""The single environment: one agent, one simulation. Its subclasses say what an action is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import gymnasium
import numpy as np

from quicgym.envs.batch import INFO_COLUMNS, EpisodeBatch
from quicgym.envs.episodes import EpisodeSource, ScenarioChoice
from quicgym.envs.rewards import Reward, RewardFunction
from quicgym.envs.scenarios.model import Scenario
from quicgym.envs.simulation.conversion import ControllerChoice

if TYPE_CHECKING:
    from quicgym.envs.render import EpisodePlot


class CongestionControlEnv(gymnasium.Env[np.ndarray, Any]):
    """What all environments share; a subclass is documented as a page of its own.

    Attributes:
        kind: What an action is: "tuning", "rate", "switching" or "window".
        controller: What the agent's flow runs.
    """

    metadata: dict[str, Any] = {"render_modes": ["rgb_array", "human"], "render_fps": 10}
    kind: ClassVar[str]
    controller: ClassVar[str]

    def __init__(
        self,
        scenario: ScenarioChoice = "ebcc-single",
        *,
        engine: str = "native",
        flow: str | int | None = None,
        other_controllers: ControllerChoice = "cubic",
        decision_interval_ms: float = 100.0,
        decision_interval_rtts: float | None = None,
        reward_interval_ms: float | None = None,
        history_length: int = 4,
        reward: str | Reward | RewardFunction = "fair-throughput",
        episode_s: float | None = None,
        record_deliveries: bool = False,
        render_mode: str | None = None,
    ) -> None:
        """Checks the arguments; the first episode begins with `reset`."""
        self.render_mode = render_mode
        self._plot: EpisodePlot | None = None
        if render_mode is not None:
            from quicgym.envs import render  # and with it matplotlib, which takes its time

            self._plot = render.EpisodePlot(render_mode)
        source = EpisodeSource(
            scenario,
            engine,
            self.controller,
            flow=flow,
            other_controllers=other_controllers,
            episode_s=episode_s,
            record_deliveries=record_deliveries,
        )
        self._batch = EpisodeBatch(
            self.kind,
            source,
            simulations=1,
            threads=1,
            decision_interval_ms=decision_interval_ms,
            decision_interval_rtts=decision_interval_rtts,
            reward_interval_ms=reward_interval_ms,
            history_length=history_length,
            reward=reward,
            one_row=True,
        )
        self.action_space = self._batch.action_space
        self.observation_space = self._batch.observation_space

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Begins an episode.

        Args:
            seed: Of the environment's generator, from which every episode's scenario and seed are
                drawn; None: it goes on.
            options: "controller": a name or class that the agent's flow runs in this episode;
                actions are then checked and ignored. "scenario": one for this episode.

        Returns:
            The observation and info.
        """
        super().reset(seed=seed)
        self._batch.begin([0], [self.np_random], options)
        info = self._info()
        if self._plot is not None:
            self._plot.begin(info)
            if self.render_mode == "human":
                self._plot.draw()
        return self._batch.observations[0].copy(), info

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Applies an action and runs the simulation to the next decision.

        Returns:
            The observation, the reward, terminated, truncated and info.

        Raises:
            ValueError: The action has a wrong shape, or a number that is not from -1 to 1; nothing
                has happened then.
            RuntimeError: The episode is over, or none has begun.
        """
        batch = self._batch
        batch.set_actions(action)
        batch.step()
        info = self._info()
        if self._plot is not None:
            self._plot.add(info)
            if self.render_mode == "human":
                self._plot.draw()
        return (
            batch.observations[0].copy(),
            float(batch.rewards[0]),
            bool(batch.terminations[0]),
            bool(batch.truncations[0]),
            info,
        )

    def render(self) -> np.ndarray | None:
        """Returns the episode so far as a picture, shape (height, width, 3) of uint8.

        With render_mode "human" every step updates a window, and this returns None.
        """
        if self._plot is None:
            gymnasium.logger.warn(
                "render() without a render mode: make the environment with render_mode='rgb_array'"
            )
            return None
        return None if self.render_mode == "human" else self._plot.draw()

    @property
    def scenario(self) -> Scenario | None:
        """The scenario of this episode."""
        episode = self._batch.episodes[0]
        return None if episode is None else episode.scenario

    @property
    def episode_seed(self) -> int | None:
        """The seed of this episode's simulation."""
        episode = self._batch.episodes[0]
        return None if episode is None else episode.seed

    def statistics(self, flow: int = 0) -> dict[str, Any]:
        """Returns a flow's totals, as SimulatedFlow.statistics has them."""
        return self._batch.statistics(0, flow)

    def parameters(self, flow: int = 0) -> dict[str, list[float]]:
        """Returns the parameters of a flow's controller that are in force."""
        return self._batch.parameters(0, flow)

    def deliveries(self) -> np.ndarray:
        """Returns every delivery of this episode; empty without `record_deliveries`."""
        return self._batch.deliveries(0)

    def close(self) -> None:
        """Frees the simulation; on ns3, the next one may begin in this process."""
        self._batch.close()
        if self._plot is not None:
            self._plot.close()

    def _info(self) -> dict[str, Any]:
        return dict(zip(INFO_COLUMNS, self._batch.info[0].tolist(), strict=True))
