"""The single environment: one agent, one simulation. Its subclasses say what an action is.

A subclass that sets its own name registers itself with Gymnasium. It then also works as a vector
environment, with several agents, in training and in evaluation; docs/how-to/own-environment.md has
the recipe.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import gymnasium
import numpy as np

from quicgym import _core
from quicgym.envs import registration
from quicgym.envs.actions import find_action_space
from quicgym.envs.arguments import suggests_arguments
from quicgym.envs.batch import EpisodeBatch, NamesOfBatch
from quicgym.envs.decisions import Decisions, OutOfRange
from quicgym.envs.episodes import EpisodeSource, ScenarioChoice, title_and_hops
from quicgym.envs.info import row_info
from quicgym.envs.interface import Interface
from quicgym.envs.rewards import Reward, RewardFunction
from quicgym.envs.scenarios.model import Scenario
from quicgym.envs.simulation.controller_choice import ControllerChoice
from quicgym.envs.states import EnvironmentState, GeneratorState, episodes_of

if TYPE_CHECKING:
    from quicgym.envs.render import EpisodePlot


class CongestionControlEnv(NamesOfBatch, gymnasium.Env[np.ndarray, Any]):
    """Shared base of all environments; each subclass has its own page.

    Quicgym's own environments are described in C++ (sim/environment/environments.hpp): which
    controller they steer, how, and what they observe. Their classes take these attributes from
    there.

    Attributes:
        environment: The name, such as "tuning". A subclass that sets it is registered.
        id: For Gymnasium, such as "quicgym/Tuning-v1"; made from the name.
        action_space_name: The name of the action space, which is C++ (sim/environment). Default:
            the environment's name.
        controller: The name of the controller of the agent's flow.
        presets: Controllers that a policy of this environment can be; `preset_action` has them.
        acts_in_slow_start: Whether actions have an effect while the controller is in slow start.
        observations: The name of their layout, which is C++ (sim/environment).
        default_scenario: The scenario or distribution that "default" stands for.
        default_history_length: Decisions that an observation looks back on.
        safe_envelope: Whether `safe_envelope` is on where it is not given.
        out_of_range: The default of the argument `out_of_range`.
    """

    metadata: dict[str, Any] = {"render_modes": ["rgb_array", "human"], "render_fps": 10}
    environment: ClassVar[str]
    id: ClassVar[str]
    action_space_name: str
    controller: str
    presets: tuple[str, ...] = ()
    acts_in_slow_start: ClassVar[bool] = True
    observations: ClassVar[str] = "spans"
    default_scenario: ClassVar[str] = "training-50"
    default_history_length: ClassVar[int] = 128
    safe_envelope: ClassVar[bool] = True
    out_of_range: ClassVar[OutOfRange] = "clip"

    def __init_subclass__(cls, **arguments: Any) -> None:
        """Registers a subclass that sets a name; ValueError where the name cannot be used."""
        super().__init_subclass__(**arguments)
        name = vars(cls).get("environment")
        if name is None:
            return
        described = _core.ENVIRONMENTS.get(name, {"id": registration.environment_id(name)})
        for attribute, value in described.items():
            setattr(cls, attribute, value)
        if not hasattr(cls, "action_space_name"):
            cls.action_space_name = name
        # "tuning" is Tuning's part of the space of that name.
        cls.action_space_name = find_action_space(cls.action_space_name).name
        _core.observation_elements(cls.observations, 1)  # raises where there is no such layout
        registration.register(cls)

    @classmethod
    def variant(
        cls, controller: str | None, coordinates: Sequence[str] | None = None
    ) -> type[CongestionControlEnv]:
        """Returns the environment whose actions are for a controller, or have some coordinates.

        Args:
            controller: Name of the controller of the agent's flow; None: the environment's own.
            coordinates: Names of the coordinates of an action; None: the environment's own.

        Raises:
            ValueError: Actions of this environment do not fit the controller, or cannot be taken
                in part.
        """
        if coordinates is not None:
            raise ValueError(
                f"coordinates = {tuple(coordinates)}: actions of {cls.id} cannot be taken in part; "
                "leave it out, or take quicgym/Tuning-v1"
            )
        if controller is None:
            return cls
        raise ValueError(
            f"controller = {controller!r}: the actions of {cls.id} are for {cls.controller!r}; "
            "leave it out, or take quicgym/Tuning-v1"
        )

    @classmethod
    def interface(cls) -> Interface:
        """Returns where agent and flow meet."""
        return Interface(
            action_space=cls.action_space_name,
            controller=cls.controller,
            observations=cls.observations,
        )

    @classmethod
    def scenario_or_default(cls, scenario: ScenarioChoice) -> ScenarioChoice:
        """Returns `default_scenario` for "default", else what is given."""
        given = not isinstance(scenario, str) or scenario != "default"
        return scenario if given else cls.default_scenario

    @classmethod
    def preset_action(cls, controller: str, **parameters: Any) -> np.ndarray:
        """Returns the action that, taken from the first step on, is one of `presets`.

        Args:
            controller: One of `presets`.
            **parameters: Others than the controller's own, where actions are parameters.

        Raises:
            ValueError: No action is this controller with these parameters.
        """
        raise ValueError(f"{cls.id} has no action that is a controller")

    @suggests_arguments
    def __init__(
        self,
        scenario: ScenarioChoice = "default",
        *,
        engine: str = "native",
        flow: str | int | None = None,
        other_controllers: ControllerChoice = "cubic",
        reward: str | Reward | RewardFunction = "fair-throughput",
        baseline: ControllerChoice | None = None,
        episode_s: float | None = None,
        record_deliveries: bool = False,
        render_mode: str | None = None,
        **decisions: Any,
    ) -> None:
        """Checks the arguments; the first episode begins with `reset`."""
        chosen = Decisions.of(type(self), decisions)
        tuned = self.variant(chosen.controller, chosen.coordinates)
        self.action_space_name = tuned.action_space_name
        self.controller = tuned.controller
        self.presets = tuned.presets
        self.preset_action = tuned.preset_action  # type: ignore[method-assign]
        self.interface = tuned.interface  # type: ignore[method-assign]
        if render_mode != "human":  # which raises below where it does not work
            self.metadata = {**self.metadata, "render_modes": possible_render_modes()}
        self.render_mode = render_mode
        self._plot: EpisodePlot | None = None
        if render_mode is not None:
            from quicgym.envs import render  # and with it matplotlib, which takes its time

            self._plot = render.EpisodePlot(render_mode)
        source = EpisodeSource(
            self.scenario_or_default(scenario),
            engine,
            chosen,
            flow=flow,
            other_controllers=other_controllers,
            episode_s=episode_s,
            record_deliveries=record_deliveries,
        )
        self._batch = EpisodeBatch(
            source,
            simulations=1,
            threads=1,
            reward=reward,
            baseline=baseline,
            one_row=True,
        )
        self.action_space = self._batch.action_space
        self.observation_space = self._batch.observation_space

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Begins an episode.

        Args:
            seed: The seed of the environment's generator, which draws every episode's scenario and
                seed; None: the generator continues.
            options: "controller": a name or class that the agent's flow runs in this episode;
                actions are then checked and ignored. "scenario": one for this episode.
                "episode_seed": the episode that `quicgym evaluate` plays with this seed.

        Returns:
            The observation and info.

        Raises:
            ScenarioError: An option is not valid; the last episode continues.
            ControllerError: A controller in Python cannot begin; there is no episode then.
        """
        super().reset(seed=seed)
        self._batch.begin([0], [self.np_random], options)
        info = self._info()
        if self._plot is not None:
            self._plot.begin(info, *self._title_and_hops())
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
            self._plot.add(info, float(batch.rewards[0]))
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

    def _title_and_hops(self) -> tuple[str, int]:
        episode = self._batch.episodes[0]
        assert episode is not None, "it has begun"
        return title_and_hops(self.id, episode)

    def clone_state(self) -> EnvironmentState:
        """Returns the state of this environment, for `restore_state`.

        The state has the simulation with all its packets, what observations, rewards and pictures
        are made from, and the generator `np_random`. Cloning copies the simulation's memory. It
        changes nothing here.

        Raises:
            NotImplementedError: The engine is ns-3, which cannot copy a simulation.
            RuntimeError: No episode has begun.
            ControllerError: copy.deepcopy cannot copy a controller in Python.
        """
        (episode,) = self._batch.clone([0])
        return EnvironmentState(
            episode,
            GeneratorState.of(self.np_random),
            self._np_random_seed,
            _drawn=() if self._plot is None else self._plot.rows,
        )

    def restore_state(self, state: EnvironmentState) -> None:
        """Puts the environment into a state, of this one or of one with the same arguments.

        From there the same actions give the same observations, rewards, info and packets, bit for
        bit, and `reset` the same episodes. A state may be restored any number of times. A state of
        a vector environment with one agent per simulation will do as well.

        Raises:
            TypeError: The state is not what clone_state has returned.
            ValueError: The state's environment was made with other arguments.
            ControllerError: copy.deepcopy cannot copy a controller in Python.
        """
        self._batch.restore([0], episodes_of([state]))
        self._np_random = state._generator.generator()
        self._np_random_seed = state._seed
        if self._plot is not None:
            self._plot.go_on(state._drawn or (self._info(),), *self._title_and_hops())
            if self.render_mode == "human":
                self._plot.draw()

    @property
    def made_with(self) -> Mapping[str, Any]:
        """The arguments by which episodes and rewards are what they are."""
        return self._batch.made_with

    @property
    def decisions(self) -> Decisions:
        """What the agent decides, how often, and what it observes."""
        return self._batch.source.decisions

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
        return row_info(self._batch.info[0])


def refuse_overrides(environment: type[CongestionControlEnv], where: str) -> None:
    """Checks that a class is what its attributes declare, which is all that C++ runs of it.

    Args:
        environment: Class of a single environment.
        where: What does not call the class's own methods.

    Raises:
        ValueError: The class overrides a method that the episodes of `where` would go without.
    """
    for name in ("__init__", "reset", "step"):
        if getattr(environment, name) is not getattr(CongestionControlEnv, name):
            raise ValueError(
                f"{environment.__name__} overrides {name}, which {where} does not call; state what "
                "it does by a reward function, a scenario, an action space or observations, or "
                "step single environments, as in "
                f"gymnasium.vector.SyncVectorEnv([{environment.__name__}] * 8)"
            )


def possible_render_modes() -> list[str]:
    """Returns the render modes that work here: "human" is for where there is a display."""
    backend = os.environ.get("MPLBACKEND", "").lower()
    if backend:
        has_display = backend not in ("agg", "cairo", "pdf", "pgf", "ps", "svg", "template")
    else:
        display = os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
        has_display = sys.platform in ("darwin", "win32") or bool(display)
    return ["rgb_array", "human"] if has_display else ["rgb_array"]
