"""The vector environments for Stable-Baselines3, which the extra `train` installs."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from quicgym.errors import MissingExtraError

try:
    from stable_baselines3.common.vec_env import (
        VecCheckNan,
        VecEnv,
        VecEnvWrapper,
        VecFrameStack,
        VecMonitor,
        VecNormalize,
        VecVideoRecorder,
    )
except ImportError as error:
    raise MissingExtraError("quicgym.envs.sb3 needs Stable-Baselines3") from error

from gymnasium.spaces import Box, Space

from quicgym.envs.arguments import check_arguments, keywords
from quicgym.envs.decisions import Decisions
from quicgym.envs.info import INFO_COLUMNS, row_info
from quicgym.envs.observations import in_short
from quicgym.envs.privileged import PRIVILEGED, privileged_inputs
from quicgym.envs.registration import find_environment
from quicgym.envs.simulation.series import REWARD_INTERVAL_MS
from quicgym.envs.vector import CongestionControlVectorEnv, make_vec

if TYPE_CHECKING:
    from stable_baselines3.common.base_class import BaseAlgorithm

RECORD = "quicgym_decisions"
"""The attribute of a model's action space with the fields of Decisions, which a model's file keeps.

Stable-Baselines3 saves the spaces of a model with it, but nothing else of its environments.
"""
NORMALIZATION = "quicgym_normalization"
"""The attribute of a model with its VecNormalize, which `save` adds."""
ALGORITHM = "quicgym_algorithm"
"""The attribute of a model with the place of its class, which `save` adds."""
_KNOWN_WRAPPERS = (VecCheckNan, VecMonitor, VecNormalize, VecVideoRecorder)
"""Wrappers without an effect on actions, and on observations none but VecNormalize's."""


class Sb3VecEnv(VecEnv):
    """Rows of a vector environment as Stable-Baselines3 expects them.

    An episode that ends is followed by the next one in the same step: its last observation is
    `terminal_observation` in that row's info, and `TimeLimit.truncated` says whether time was up.
    A reward counts by the length of its step: one of 100 ms counts once, one of 250 ms two and a
    half times, so that a return is what `quicgym evaluate` measures times the episode's length.
    Rewards are float32. What `seed` and `set_options` give holds from the next `reset`; the options
    are one mapping for all rows.

    Attributes:
        empty_rows: Whether rows may be without an agent.
        reward_weights: How often each row's last reward counts, by the length of its step.

    Args:
        environments: With autoreset in the same step.
        infos: "all": one for every row and step. "ends": only rows whose episode has just ended
            have one, the others an empty one, which is all that training reads and much cheaper.
        privileged: Observations end with PRIVILEGED, for a critic; a policy that is to run in a
            network must not see them.
        empty_rows: Episodes may have fewer agents than there are rows for them. Only for what
            leaves the rows without an agent out, as PPO of `quicgym train` does.

    Raises:
        ValueError: By `reset` and `step_wait`: a row has no agent, and there is no `empty_rows`.

    Example:
        environments = make_sb3("quicgym/Tuning-v1", num_envs=64)
        PPO("MlpPolicy", environments).learn(100_000)
    """

    def __init__(
        self,
        environments: CongestionControlVectorEnv,
        infos: Literal["all", "ends"] = "all",
        *,
        privileged: bool = False,
        empty_rows: bool = False,
    ) -> None:
        """Takes the environments over; closing this closes them."""
        self._environments = environments
        if infos not in ("all", "ends"):
            raise ValueError(f"infos = {infos!r}: give 'all' or 'ends'")
        if not isinstance(privileged, bool):
            raise ValueError(f"privileged = {privileged!r}: give True or False")
        self._every_info = infos == "all"
        self._privileged = privileged
        self.empty_rows = empty_rows
        self.reward_weights = np.zeros(environments.num_envs, np.float32)
        self._actions: np.ndarray | None = None
        self._next_seed: int | None = None
        action_space = copy.deepcopy(environments.single_action_space)
        setattr(action_space, RECORD, _record(environments))
        super().__init__(
            environments.num_envs,
            _with_privileged(environments.single_observation_space)
            if privileged
            else environments.single_observation_space,
            action_space,
        )

    @property
    def environments(self) -> CongestionControlVectorEnv:
        """The vector environment."""
        return self._environments

    def seed(self, seed: int | None = None) -> Sequence[int | None]:
        """Seeds the next reset; returns what was given, once per row."""
        self._next_seed = seed
        return [seed] * self.num_envs

    def reset(self) -> np.ndarray:
        """Begins an episode in every row and returns the observations."""
        first, *others = self._options
        if any(other != first for other in others):
            raise ValueError("set_options: the rows share their options; give one mapping")
        observations, info = self._environments.reset(seed=self._next_seed, options=first or None)
        self._check_agents()
        self.reset_infos = self._infos(info)
        self._next_seed = None
        self._reset_options()
        return self._observations(observations, info)

    def step_async(self, actions: np.ndarray) -> None:
        """Keeps the actions for step_wait."""
        self._actions = actions

    def step_wait(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[dict[str, Any]]]:
        """Moves every row on; returns observations, rewards, ends and infos."""
        assert self._actions is not None, "step_async comes first"
        observations, rewards, terminations, truncations, info = self._environments.step(
            self._actions
        )
        infos = self._infos(info)
        self._check_agents()
        done = terminations | truncations
        steps_s = info["step_s"].copy()
        if done.any():
            steps_s[done] = info["final_info"]["step_s"][done]
            rows = np.flatnonzero(done)
            ended = {name: info["final_info"][name][rows] for name in INFO_COLUMNS}
            last = self._observations(np.stack(info["final_obs"][rows]), ended)
            for row, observation, final in zip(rows, last, _rows_of(ended), strict=True):
                infos[row] = {
                    **final,
                    "terminal_observation": observation,
                    "TimeLimit.truncated": bool(truncations[row] and not terminations[row]),
                }
        self.reward_weights = (steps_s * 1e3 / REWARD_INTERVAL_MS).astype(np.float32)
        rewards = (rewards * steps_s * 1e3 / REWARD_INTERVAL_MS).astype(np.float32)
        return self._observations(observations, info), rewards, done, infos

    def close(self) -> None:
        """Closes the environments."""
        self._environments.close()

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """Returns an attribute of the vector environment, once per row."""
        value = getattr(self._environments, attr_name)
        return [value for _ in self._get_indices(indices)]

    def get_images(self) -> Sequence[np.ndarray]:
        """Returns a picture of each simulation's episode, of environments with a render mode."""
        return self._environments.render() or ()

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Rows have no attributes of their own."""
        raise AttributeError(f"cannot set {attr_name}: the rows are one object in C++")

    def env_method(
        self, method_name: str, *method_args: Any, indices: Any = None, **method_kwargs: Any
    ) -> list[Any]:
        """Rows have no methods of their own."""
        raise AttributeError(f"cannot call {method_name}: the rows are one object in C++")

    def env_is_wrapped(self, wrapper_class: type, indices: Any = None) -> list[bool]:
        """Rows have no wrappers."""
        return [False for _ in self._get_indices(indices)]

    def _check_agents(self) -> None:
        batch = self._environments.batch
        if self.empty_rows or batch.has_agent.all():
            return
        row = int(np.flatnonzero(~batch.has_agent)[0])
        episode = batch.episodes[row // batch.agent_count]
        assert episode is not None, "it has begun"
        raise ValueError(
            f"per_flow = True: {episode.scenario.name} has fewer than {batch.agent_count} agents, "
            f"so row {row} has none, and a model would learn from it all the same; leave per_flow "
            "out, give a scenario or a distribution whose paths all have the same number of "
            "agents, or train by `quicgym train tuning-ppo`, which leaves such rows out"
        )

    def _observations(self, observations: np.ndarray, info: dict[str, Any]) -> np.ndarray:
        if not self._privileged:
            return observations
        return np.concatenate([observations, privileged_inputs(info)], axis=1)

    def _infos(self, info: dict[str, Any]) -> list[dict[str, Any]]:
        return _rows_of(info) if self._every_info else [{} for _ in range(self.num_envs)]

    def _get_indices(self, indices: Any) -> Iterable[int]:
        rows: Iterable[int] = super()._get_indices(indices)
        return rows


class AgentsMonitor(VecMonitor):
    """A VecMonitor that counts no episode of a row without an agent, see `Sb3VecEnv.empty_rows`."""

    def step_wait(self) -> tuple[Any, np.ndarray, np.ndarray, list[dict[str, Any]]]:
        """Moves every row on; only ended episodes of an agent have an info `episode`."""
        observations, rewards, done, infos = super().step_wait()
        for row in np.flatnonzero(done):
            if np.isnan(infos[row]["time_s"]):
                del infos[row]["episode"]
        return observations, rewards, done, infos


def _record(environments: CongestionControlVectorEnv) -> dict[str, Any]:
    """Returns the fields of Decisions as values that any process can unpickle."""
    decisions = environments.batch.source.decisions
    return {"environment": decisions.environment, **decisions.arguments}


def save(model: BaseAlgorithm, path: str | Path) -> None:
    """Saves a model with its environment and its observations' normalization.

    `quicgym.load_policy` and the commands read both from the file. `model.save` keeps the
    environment as well, but not the statistics of VecNormalize.

    Args:
        model: A model that was made or loaded with environments of `make_sb3`.
        path: The file, such as "mine.zip".

    Raises:
        ValueError: The model has no environments, or others than those of `make_sb3`, or they have
            a wrapper whose effect a file cannot keep, or observations that no sender has.
    """
    environments = model.get_env()
    inner = None if environments is None else environments.unwrapped
    if not isinstance(inner, Sb3VecEnv):
        raise ValueError(
            f"save: the model's environments are {environments!r}, of which a file keeps nothing; "
            f"write model.save({str(path)!r}) and then "
            f"save({type(model).__name__}.load({str(path)!r}, "
            f"env={_made_by_make_sb3(environments)}), {str(path)!r})"
        )
    refuse_wrappers("save", environments)
    observations = inner.environments.single_observation_space
    if model.observation_space != observations:
        raise ValueError(
            f"save: the model's observations are {in_short(model.observation_space)}, and in a "
            f"network there are only {in_short(observations)}; train it without privileged=True, "
            "or by `quicgym train tuning-ppo network.privileged_critic=true`, whose critic "
            "alone sees what only the network knows"
        )
    setattr(model.action_space, RECORD, _record(inner.environments))
    setattr(model, NORMALIZATION, model.get_vec_normalize_env())
    setattr(model, ALGORITHM, f"{type(model).__module__}:{type(model).__qualname__}")
    model.save(path)


def _made_by_make_sb3(environments: VecEnv | None) -> str:
    """Returns the call that makes the environments, which may be of a DummyVecEnv, by make_sb3."""
    name, arguments = "quicgym/Window-v1", {}
    try:
        decisions = None if environments is None else environments.get_attr("decisions")[0]
    except AttributeError:
        decisions = None
    if isinstance(decisions, Decisions):
        name = find_environment(decisions.environment).id
        usual = Decisions(decisions.environment).arguments
        arguments = {
            key: value for key, value in decisions.arguments.items() if value != usual[key]
        }
    given = "".join(f", {key}={value!r}" for key, value in arguments.items())
    return f"make_sb3({name!r}{given})"


def refuse_wrappers(who: str, environments: VecEnv | None) -> None:
    """Checks that a model acts without the wrappers of its environments as with them.

    Args:
        who: The name of what would play the model without them.
        environments: Environments with their wrappers.

    Raises:
        ValueError: A wrapper is not one of Stable-Baselines3's that can be left out.
    """
    normalizations = 0
    while isinstance(environments, VecEnvWrapper):
        kind = type(environments)
        normalizations += kind is VecNormalize
        if kind is VecFrameStack:
            raise ValueError(
                f"{who}: the environments have the wrapper VecFrameStack, which no policy has; "
                "observations look back by themselves: make them with a longer history_length"
            )
        if kind not in _KNOWN_WRAPPERS or normalizations > 1:
            raise ValueError(
                f"{who}: the environments have the wrapper {kind.__name__}"
                f"{' twice' if normalizations > 1 else ''}, and without it the model may act "
                "otherwise than in training; do what it does in the model or in a policy of a "
                "Python file (file.py:object), and what only watches in a callback"
            )
        environments = environments.venv


def _with_privileged(space: Space) -> Box:
    assert isinstance(space, Box)
    known = len(PRIVILEGED)
    return Box(
        np.concatenate([space.low, np.zeros(known, np.float32)]),
        np.concatenate([space.high, np.ones(known, np.float32)]),
    )


def _rows_of(info: dict[str, Any]) -> list[dict[str, Any]]:
    return [row_info(row) for row in np.stack([info[name] for name in INFO_COLUMNS], axis=1)]


def make_sb3(
    id: str,
    num_envs: int = 1,
    *,
    infos: Literal["all", "ends"] = "all",
    privileged: bool = False,
    **arguments: Any,
) -> VecMonitor:
    """Makes the environments of `make_vec` for Stable-Baselines3.

    Their VecMonitor makes Stable-Baselines3 log the mean return, `rollout/ep_rew_mean`.

    Args:
        id: Such as "tuning" or "quicgym/Tuning-v1".
        num_envs: The number of simulations.
        infos: "all" or "ends", see Sb3VecEnv.
        privileged: Whether observations have what only the network knows, see Sb3VecEnv.
        **arguments: Arguments of CongestionControlVectorEnv, but for autoreset_mode.
    """
    own = ("infos", "privileged")
    known = {*keywords(CongestionControlVectorEnv.__init__)} - {"autoreset_mode"}
    check_arguments(arguments, (*own, *sorted(known)))
    environments = make_vec(id, num_envs, autoreset_mode="SameStep", **arguments)
    assert isinstance(environments, CongestionControlVectorEnv)
    return VecMonitor(Sb3VecEnv(environments, infos, privileged=privileged))
