"""Policies by the names that users give: controllers, "random", and learned policies."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path
from typing import Literal

from quicgym import controllers, plugins
from quicgym.agents.policies.from_file import load_policy_of_file
from quicgym.agents.policies.hand_coded import STEERED, controller_policy, parse_parameters
from quicgym.agents.policies.omniscient import Omniscient
from quicgym.agents.policies.policy import Policy, RandomPolicy
from quicgym.controllers import ControllerFileError
from quicgym.envs.actions import action_space
from quicgym.envs.scenarios.fields import ScenarioError
from quicgym.python_files import is_python_object
from quicgym.yaml_files import closest

PRETRAINED = Path(str(files(__package__) / "pretrained"))
"""The folder of the published policies."""


def pretrained_names() -> list[str]:
    """Returns the names of the learned policies that quicgym brings."""
    return sorted(path.stem for path in PRETRAINED.glob("*.json"))


_ALIAS = re.compile(r"(?P<name>[A-Za-z][\w .+-]*)=(?P<policy>.+)")


def split_alias(choice: str) -> tuple[str, str]:
    """Returns under which name results show a policy, and the policy as users name it.

    "mine=runs/ppo" is runs/ppo, shown as mine. Without an alias both are the same, but a user's
    code is shown as its file without the folder, as in scenarios: agent.py:policy.
    """
    match = _ALIAS.fullmatch(choice)
    if match is None or Path(choice).exists():
        return controllers.without_folder(choice), choice
    return match["name"], match["policy"]


def policy_kind(choice: str) -> Literal["baseline", "static", "random", "learned"]:
    """Returns what sort of policy a user names.

    A baseline is a controller with the catalogue's parameters, also one of another package or of a
    QUIC stack. A static policy is a controller with the user's parameters, or one that waits to be
    steered but is not. Learned policies are those that `load_policy` takes and objects of the
    user's Python files; only `find_policy` finds out that such an object is a controller.
    """
    _, choice = split_alias(choice)
    if choice == "random":
        return "random"
    if choice == "omniscient":
        return "static"
    controller, parameters = controllers.split_parameters(choice)
    if stack_of_controller(choice) is not None:
        return "baseline"
    if controller in controllers.names():
        return "static" if controller != choice or controller in STEERED else "baseline"
    if controller.endswith(".json"):
        return "learned"  # also an agent of other authors, which is a controller
    if is_python_object(controller):
        is_controller = controller in _CONTROLLERS_OF_FILES
    else:
        is_controller = controllers.is_place(controller)
    if is_controller:
        return "static" if parameters else "baseline"
    return "learned"


def stack_of_controller(choice: str) -> str | None:
    """Returns the QUIC stack that brings a controller, as noq does "noq-cubic"; None: no stack.

    A stack's own controllers begin with its name, see quicgym.real.stacks.Stack.
    """
    stack, dash, _ = choice.partition("-")
    if not dash or choice.endswith((".json", ".zip")) or "/" in choice:
        return None
    if stack not in plugins.installed("stack"):
        return None
    is_other = choice in controllers.names() or choice in pretrained_names()
    return None if is_other or Path(choice).exists() else stack


def unknown_controller(choice: str, *others: str) -> ScenarioError:
    """Returns the error for a controller of real packets that does not exist.

    `others` are the names that the place takes besides those of controllers and policies.
    """
    known = [*controllers.names(), *pretrained_names(), *others]
    return ScenarioError(
        f"unknown controller {choice!r}; {closest(choice, known)}; or give the path of a learned "
        "policy's description (.json)"
    )


_CONTROLLERS_OF_FILES: set[str] = set()
"""Objects of Python files that have turned out to be controllers, not policies."""


def find_policy(choice: str, *, trust_zip: bool = False) -> Policy:
    """Returns the policy that a user names.

    Args:
        choice: Name of a controller of the catalogue, such as "cubic", also with parameters, such
            as "ebcc:gamma=60,beta=0.7"; or "random" or "omniscient". A controller may be named by
            its place, see quicgym.controllers.choices. A learned policy is what `load_policy`
            takes: the name of a published one, or the path of a JSON description. The description
            may also be an agent's of other authors, with parameters. An object of a Python file is
            "path/to/file.py:object", which runs the file: see quicgym.agents.policies.from_file.
            A network in ONNX is "path/to/file.onnx": see quicgym.agents.policies.onnx.
            Any of these may follow an alias, as in "mine=runs/ppo".
        trust_zip: Whether to accept a model that Stable-Baselines3 saved (.zip); see `load_policy`.

    Raises:
        ScenarioError: The controller, parameter or policy does not exist.
        PolicyError: The file is not what it should be.
        MissingExtraError: The policy is a model of Stable-Baselines3 or an ONNX file, and the extra
            `train` or `onnx` is not installed.
    """
    _, choice = split_alias(choice)
    stack = stack_of_controller(choice)
    if stack is not None:
        raise ScenarioError(
            f"{choice!r} is a controller of the stack {stack}, which no simulator has; run it by "
            f"`quicgym real --stack {stack}`"
        )
    kind = policy_kind(choice)
    if kind == "random":
        return RandomPolicy(action_space("tuning"))
    if choice == "omniscient":
        return Omniscient()
    if choice.endswith(".onnx"):
        from quicgym.agents.policies.onnx import load_onnx  # and onnxruntime, for those alone

        return load_onnx(choice)
    controller, parameters = controllers.split_parameters(choice)
    if kind == "learned" and is_python_object(choice):
        policy_of_file = None if parameters else load_policy_of_file(choice)
        if policy_of_file is not None:
            return policy_of_file
        _CONTROLLERS_OF_FILES.add(controller)
        kind = "static"
    elif kind == "learned" and controllers.is_agent(choice):
        kind = "static"
    if kind != "learned":
        values = parse_parameters(parameters) if controller != choice else {}
        try:
            controllers.find(controller).complete(values)
        except ControllerFileError as error:
            raise ScenarioError(str(error)) from error
        except ValueError as error:
            raise ScenarioError(f"{choice}: {error}") from None
        return controller_policy(controller, action_space("tuning"), **values)
    is_path = choice.endswith((".json", ".zip")) or "/" in choice or Path(choice).is_dir()
    if not choice or not is_path and choice not in pretrained_names():
        known = [*controllers.names(), "random", "omniscient", *pretrained_names()]
        raise ScenarioError(
            f"unknown policy {choice!r}; {closest(choice.partition(':')[0], known)}; or give the "
            "path of a description (.json), a training run's folder, an ONNX file (.onnx), or an "
            "object of a Python file (file.py:object)"
        )
    from quicgym.agents.policies.learned import load_policy  # which imports this module

    policy: Policy = load_policy(choice, trust_zip=trust_zip)
    return policy


def policy_description(choice: str) -> Path | None:
    """Returns the description (.json) of a learned policy; None where there is no such file.

    Args:
        choice: Name of a published policy, path of a description, or folder of a training.
    """
    path = Path(choice)
    if choice in pretrained_names():
        path = PRETRAINED / f"{choice}.json"
    elif path.is_dir():
        path = path / "policy" / "policy.json"
    return path.absolute() if path.suffix == ".json" and path.is_file() else None


def policy_file(choice: str) -> Path | None:
    """Returns the file or folder that a policy is read from; None for one that quicgym brings."""
    _, choice = split_alias(choice)
    if controllers.is_place(choice):
        return controllers.file_of(choice)
    own = policy_kind(choice) != "learned" or choice in pretrained_names()
    return None if own else Path(choice)
