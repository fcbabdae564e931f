"""Hand-coded policies: what learned ones are measured against, in the same environments.

A policy is called with observations, of one row or of many, and returns as many actions.
Controllers that are no point of the action space run by `options`, which the episode is reset with;
their actions are ignored.

    policy = controller_policy("cubic", environment.action_space)
    observation, info = environment.reset(seed=1, options=policy.options)
    environment.step(policy(observation))
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
from gymnasium.spaces import Space
from gymnasium.vector.utils import batch_space

from quicgym import controllers
from quicgym.controllers import switching_members
from quicgym.envs.actions import action_space, preset_action
from quicgym.envs.scenarios.fields import ScenarioError
from quicgym.envs.simulation.conversion import ControllerChoice
from quicgym.yaml_files import closest

BASELINES = controllers.baselines()
"""The hand-coded controllers: all of quicgym's but those that something else steers."""
STEERED = tuple(sorted(entry.name for entry in controllers.catalogue() if entry.steered))
PRETRAINED = Path(str(files(__package__) / "pretrained"))


@dataclass(frozen=True)
class Decisions:
    """What a policy decides, how often, and on what: arguments of the environments.

    Attributes:
        kind: "tuning", "rate", "switching" or "window".
        decision_interval_ms: Between two decisions, unless the next is given.
        decision_interval_rtts: The same in smoothed RTTs.
        history_length: Frames in an observation.
    """

    kind: str = "tuning"
    decision_interval_ms: float = 100.0
    decision_interval_rtts: float | None = None
    history_length: int = 4

    @property
    def arguments(self) -> dict[str, Any]:
        """What an environment of this kind is to be made with."""
        return {
            "decision_interval_ms": self.decision_interval_ms,
            "decision_interval_rtts": self.decision_interval_rtts,
            "history_length": self.history_length,
        }


class Policy(Protocol):
    """What evaluation asks of a policy."""

    @property
    def name(self) -> str:
        """As tables show it."""

    @property
    def decisions(self) -> Decisions:
        """In which environment it acts."""

    @property
    def options(self) -> dict[str, Any] | None:
        """What an environment is to be reset with."""

    def __call__(self, observations: np.ndarray) -> np.ndarray:
        """Returns an action for each row of observations, or the action for one."""


@dataclass(frozen=True)
class ConstantPolicy:
    """The same action for every observation."""

    name: str
    action: np.ndarray
    options: dict[str, Any] | None = None
    decisions: Decisions = Decisions()

    def __call__(self, observations: np.ndarray) -> np.ndarray:
        """Returns the action, once per row."""
        return np.tile(self.action, (*observations.shape[:-1], *[1] * self.action.ndim))


class RandomPolicy:
    """Uniform over the action space.

    Args:
        action_space: Of a single environment.
        seed: Of its draws.
    """

    name = "random"
    options: dict[str, Any] | None = None

    def __init__(
        self, action_space: Space, seed: int = 0, decisions: Decisions = Decisions()
    ) -> None:
        """Starts the stream of draws."""
        self.decisions = decisions
        self._spaces: dict[int, Space] = {}
        self._action_space = action_space
        self._seed = seed

    def __call__(self, observations: np.ndarray) -> np.ndarray:
        """Draws an action for each row; each number of rows has a stream of its own."""
        rows = 0 if observations.ndim == 1 else len(observations)
        if rows not in self._spaces:
            space = batch_space(self._action_space, rows) if rows else self._action_space
            space.seed(self._seed)
            self._spaces[rows] = space
        return np.asarray(self._spaces[rows].sample())


def preset_policy(controller: str, **parameters: Any) -> ConstantPolicy:
    """Returns a controller of the BBR family as a policy of Tuning-v0; see `preset_action`."""
    return ConstantPolicy(controller, preset_action(controller, **parameters))


def switch_policy(controller: str) -> ConstantPolicy:
    """Returns the policy of Switch-v0 that always chooses one controller.

    Raises:
        ValueError: It is not one of `quicgym.controllers.switching_members()`.
    """
    members = switching_members()
    if controller not in members:
        raise ValueError(f"no choice {controller!r}; {closest(controller, members)}")
    action = np.array(members.index(controller))
    return ConstantPolicy(controller, action, decisions=Decisions("switching"))


def controller_policy(
    controller: ControllerChoice, space: Space, **parameters: Any
) -> ConstantPolicy:
    """Returns any controller as a policy of any environment, by the options of reset.

    Args:
        controller: A name, or a subclass of quicgym.Controller.
        space: Of the actions of a single environment; what its actions are does not matter.
        **parameters: Others than the controller's own.
    """
    name = controller if isinstance(controller, str) else controller.__name__
    if parameters:
        name += ":" + ",".join(f"{key}={_text(value)}" for key, value in parameters.items())
    rest = np.zeros(space.shape or (), dtype=space.dtype)
    options: dict[str, Any] = {"controller": controller}
    if parameters:
        options["parameters"] = parameters
    return ConstantPolicy(name, rest, options)


def _text(value: Any) -> str:
    return "/".join(f"{number:g}" for number in value) if np.ndim(value) else f"{value:g}"


def parse_parameters(text: str) -> dict[str, Any]:
    """Returns the parameters in `gamma=60,gain_cycle=1.25/0.75/1`; lists are parted by slashes.

    Raises:
        ScenarioError: Something is not of the form name=number, or is there twice.
    """
    parameters: dict[str, Any] = {}
    for part in text.split(","):
        name, equals, value = part.partition("=")
        try:
            numbers = [float(number) for number in value.split("/")]
        except ValueError:
            numbers = []
        if not name or not equals or not numbers:
            raise ScenarioError(
                f"{part!r} is no parameter: write name=number, or name=number/number/... for a list"
            )
        if name.strip() in parameters:
            raise ScenarioError(f"{name.strip()} is there twice in {text!r}: give one value")
        parameters[name.strip()] = numbers if len(numbers) > 1 else numbers[0]
    return parameters


def pretrained_names() -> list[str]:
    """Returns the names of the learned policies that quicgym brings."""
    return sorted(path.stem for path in PRETRAINED.glob("*.json"))


def kind_of(choice: str) -> Literal["baseline", "static", "random", "learned"]:
    """Returns what sort of policy a user names.

    A baseline is a controller as the catalogue has it, those of other packages included; static
    one with parameters of the user's, or one to steer that nobody steers.
    """
    controller, colon, _ = choice.partition(":")
    if choice == "random":
        return "random"
    if controller in controllers.names():
        return "static" if colon or controller in STEERED else "baseline"
    return "learned"


def find_policy(choice: str, *, trust_zip: bool = False) -> Policy:
    """Returns the policy that a user names.

    Args:
        choice: A controller of the catalogue, such as "cubic"; one with parameters, such as
            "ebcc:gamma=60,beta=0.7"; "random"; or what `load_policy` takes: the name of a published
            policy, or the path of one's JSON description.
        trust_zip: As `load_policy` has it.

    Raises:
        ScenarioError: There is no such controller, parameter or policy.
        PolicyError: The file is not what it should be.
        MissingExtraError: It is a learned one, and the extra `train` is not installed.
    """
    kind = kind_of(choice)
    if kind == "random":
        return RandomPolicy(action_space("tuning"))
    if kind != "learned":
        controller, colon, parameters = choice.partition(":")
        values = parse_parameters(parameters) if colon else {}
        try:
            controllers.find(controller).complete(values)
        except ValueError as error:
            raise ScenarioError(f"{choice}: {error}") from None
        return controller_policy(controller, action_space("tuning"), **values)
    is_path = choice.endswith((".json", ".zip")) or "/" in choice or Path(choice).is_dir()
    if not choice or not is_path and choice not in pretrained_names():
        known = [*controllers.names(), "random", *pretrained_names()]
        raise ScenarioError(
            f"unknown policy {choice!r}; {closest(choice.partition(':')[0], known)}; or give the "
            "path of a description (.json), or a training run's folder"
        )
    from quicgym.agents.policies.learned import load_policy  # which needs the extra `train`

    policy: Policy = load_policy(choice, trust_zip=trust_zip)
    return policy
