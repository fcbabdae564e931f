"""Policies from a user's Python file: `path/to/file.py:object`.

The object may be

| object | is called with | returns |
|---|---|---|
| a policy, see `quicgym.agents.policies.policy.Policy` | observations, float32, (rows, features) | an action for each row |
| a function, or anything else that can be called | the same | the same |
| a `torch.nn.Module` | a float32 tensor of this shape, under inference mode | (rows, coordinates), clipped to [-1, 1]; of choices (rows, choices), of which the largest is taken, or (rows,) |
| a model of Stable-Baselines3 | its `predict`, deterministic | |
| a class or a function that needs no arguments | nothing, once | one of the above |

A row is an agent's flow. An object may keep a state for each row if it has a method `reset()`. The
method is called before the first decision; from then on row i is the same flow until the next call.
The states of recurrent models of Stable-Baselines3 are kept in the same way. An object that draws
random numbers starts its draws again in `reset(seed)`, which gets the seed of the episode.

An attribute `decisions` of the object, or of the file, says in which
environment the policy acts; without it the default of `Decisions` holds.
"""  # noqa: E501

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from gymnasium.spaces import Discrete, Space

from quicgym.agents.policies.policy import Sb3Model, call_reset, check_observations, in_one_line
from quicgym.controllers import Controller
from quicgym.envs.actions import action_space
from quicgym.envs.decisions import Decisions
from quicgym.envs.environment import refuse_overrides
from quicgym.envs.registration import find_environment
from quicgym.errors import PolicyError
from quicgym.python_files import PythonFile

DECISIONS = "decisions"
"""The attribute of an object, or of its file, that has the Decisions."""
_HOW_TO_SAY = (
    "set `decisions = quicgym.Decisions(environment=..., history_length=...)` in the file, or as "
    "an attribute of the object"
)


class PolicyFile(Protocol):
    """A file that a policy comes from."""

    @property
    def sha256(self) -> str:
        """The SHA-256 of what the file brings."""

    def describe(self, problem: BaseException) -> str:
        """Returns what an exception says, with its place."""


@dataclass(frozen=True, eq=False, repr=False)
class FilePolicy:
    """An object of a file, `file.py:object`, or an ONNX file as a policy; its actions are checked.

    `options` are those that an environment is to be reset with. `tensors` returns the weights by
    name, none where they are not known. `has_decisions` says whether the user has named the
    environment. `restart` is the object's `reset`, None where the object keeps no state.
    """

    name: str
    decisions: Decisions
    options: dict[str, Any] | None
    act: Callable[[np.ndarray], Any]
    file: PolicyFile
    tensors: Callable[[], dict[str, Any]]
    has_decisions: bool
    restart: Callable[[], Any] | None = None
    action_space: Space = field(init=False)

    __repr__ = in_one_line

    def __post_init__(self) -> None:
        """Finds the action space, and tries the policy on observations of zeros."""
        try:
            refuse_overrides(find_environment(self.decisions.environment), "an evaluation")
        except ValueError as error:
            raise PolicyError(f"{self.name}: {error}") from None
        interface = self.decisions.interface
        object.__setattr__(self, "action_space", action_space(interface.action_space))
        space = self.decisions.observation_space
        try:
            for rows in (1, 2):
                self.reset()
                self(np.zeros((rows, *space.shape), np.float32))
        except PolicyError as error:
            environment = find_environment(self.decisions.environment).id
            if self.has_decisions:
                source = "as its `decisions` say"
            else:
                source = f"the default; where it was made for another, {_HOW_TO_SAY}"
            raise PolicyError(
                f"{error}; they were zeros, to try it in {environment} with history_length = "
                f"{self.decisions.history_length}, {source}"
            ) from error.__cause__

    def reset(self, seed: int = 0) -> None:
        """Forgets all flows; PolicyError where the object's `reset` fails."""
        if self.restart is None:
            return
        try:
            call_reset(self.restart, seed)
        except (Exception, SystemExit) as error:
            raise PolicyError(f"{self.name}: reset: {self.file.describe(error)}") from error

    def __call__(self, observations: np.ndarray) -> np.ndarray:
        """Returns an action for each row, or for one; PolicyError where the object fails to."""
        rows = np.array(np.atleast_2d(observations), dtype=np.float32)  # theirs to change
        if self.has_decisions:
            check_observations(self, rows, self._numbers)
        given = f"observations of the shape {rows.shape}"
        try:
            returned = self.act(rows)
        except PolicyError as error:
            raise PolicyError(f"{self.name}: {error}, given {given}") from None
        except (Exception, SystemExit) as error:
            raise PolicyError(f"{self.name}: {self.file.describe(error)}, given {given}") from error
        actions = self._checked(returned, len(rows), given)
        return actions if observations.ndim == 2 else actions[0]

    @cached_property
    def _numbers(self) -> int:
        return int(self.decisions.observation_space.shape[0])

    @cached_property
    def fingerprint(self) -> str:
        """The SHA-256 of the file, the modules in its folder that it imports, and the weights."""
        content = sha256(self.file.sha256.encode())
        for name, tensor in sorted(self.tensors().items()):
            if not _is_tensor(tensor):
                continue
            content.update(f"{name}{tuple(tensor.shape)}{tensor.dtype}".encode())
            content.update(tensor.detach().cpu().flatten().view(dtype=_torch().uint8).numpy())
        return content.hexdigest()

    def _checked(self, returned: Any, rows: int, given: str) -> np.ndarray:
        shape = (rows, *(self.action_space.shape or ()))
        try:
            actions = np.asarray(returned.detach().cpu() if _is_tensor(returned) else returned)
            if actions.dtype.kind not in "iuf":
                raise ValueError
            actions = actions.astype(np.float64)
        except (RuntimeError, TypeError, ValueError):  # a list of PyTorch's tensors; a ragged list
            raise PolicyError(
                f"{self.name}: returned {type(returned).__name__} {_short(returned)} for {given}; "
                f"{self._wanted(shape)}"
            ) from None
        if actions.shape != shape:
            hint = ""
            if actions.shape == shape[1:]:
                hint = ", which is one action; it gets a row for each flow, and returns a row each"
            raise PolicyError(
                f"{self.name}: returned actions of the shape {actions.shape} for {given}{hint}; "
                f"{self._wanted(shape)}"
            )
        if isinstance(self.action_space, Discrete):
            valid = (
                (actions >= 0) & (actions < self.action_space.n) & (actions == np.floor(actions))
            )
        elif self.decisions.out_of_range == "clip":
            valid = np.isfinite(actions)
        else:
            valid = np.abs(actions) <= 1  # which NaN is not
        if not valid.all():
            place = np.argwhere(~valid)[0]
            what = f"row {place[0]}" + (f", coordinate {place[1]}" if len(place) > 1 else "")
            raise PolicyError(
                f"{self.name}: returned {actions[tuple(place)]:g} in {what} for {given}; "
                f"{self._wanted(shape)}"
            )
        return actions.astype(np.int64 if isinstance(self.action_space, Discrete) else np.float32)

    def _wanted(self, shape: tuple[int, ...]) -> str:
        if isinstance(self.action_space, Discrete):
            return f"give whole numbers from 0 to {self.action_space.n - 1} of the shape {shape}"
        if self.decisions.out_of_range == "clip":
            return f"give numbers of the shape {shape}"
        return f"give numbers from -1 to 1 of the shape {shape}"


def load_policy_of_file(choice: str) -> FilePolicy | None:
    """Loads `path/to/file.py:object`, which runs the file; None where it is a controller.

    PolicyError where there is no such object, it fails, or it is no policy for the environment.
    """
    path, colon, name = choice.rpartition(":") if ".py:" in choice else (choice, "", "")
    if not colon or not name:
        raise PolicyError(f"{choice}: name the object as well, such as {path}:policy")
    file = PythonFile(Path(path), PolicyError)
    found = file.find(name)
    if isinstance(found, type) and issubclass(found, Controller):
        return None
    decisions = getattr(found, DECISIONS, None)
    if not _is_policy(found) and _needs_no_arguments(found):
        with file.running():
            found = found()
        if not _is_policy(found) and not callable(found):
            raise PolicyError(
                f"{choice}: returned {type(found).__name__} {_short(found)} when it was called "
                "without arguments, as it needs none; a function that is the policy itself takes "
                "observations, one that makes it returns a function, a torch.nn.Module or a model "
                "of Stable-Baselines3"
            )
        decisions = getattr(found, DECISIONS, decisions)
    elif isinstance(found, type):
        raise PolicyError(
            f"{choice}: is a class that needs arguments; name an object of it, or a function "
            "without arguments that makes one"
        )
    if decisions is None:
        decisions = getattr(file.module, DECISIONS, None)
    if decisions is not None and not isinstance(decisions, Decisions):
        raise PolicyError(f"{choice}: `decisions` is {_short(decisions)}; {_HOW_TO_SAY}")
    known = decisions or Decisions()
    options, tensors, restart = None, dict, getattr(found, "reset", None)
    if _is_module(found):
        act, tensors = _module(found, choice, known), found.state_dict
    elif _is_sb3(found):
        _check_device(choice, "the policy", found.device)
        act = Sb3Model(found)
        restart, tensors = act.reset, found.policy.state_dict
    elif callable(found):
        act = found
        options = found.options if _has_protocol(found) else None
    else:
        raise PolicyError(
            f"{choice}: is {type(found).__name__} {_short(found)}; give a function of "
            "observations, a torch.nn.Module, a model of Stable-Baselines3, or a function without "
            "arguments that returns one of these"
        )
    if restart is not None and not callable(restart):
        raise PolicyError(
            f"{choice}: `reset` is {_short(restart)}; give a method without arguments, or with the "
            "argument seed, or leave it out"
        )
    return FilePolicy(choice, known, options, act, file, tensors, decisions is not None, restart)


def _is_policy(found: Any) -> bool:
    return not isinstance(found, type) and (
        _is_module(found) or _is_sb3(found) or _has_protocol(found)
    )


def _has_protocol(found: Any) -> bool:
    return all(hasattr(found, name) for name in ("name", DECISIONS, "options"))


def _needs_no_arguments(found: Any) -> bool:
    """Whether it can be called without arguments."""
    if not callable(found):
        return False
    try:
        inspect.signature(found).bind()
    except (TypeError, ValueError):  # arguments are missing; no signature is known
        return False
    return True


def _module(module: Any, choice: str, decisions: Decisions) -> Callable[[np.ndarray], Any]:
    """Returns a torch.nn.Module as a function of observations."""
    torch = _torch()
    for name, tensor in (*module.named_parameters(), *module.named_buffers()):
        _check_device(choice, name, tensor.device)
    module.eval()
    has_choices = isinstance(action_space(decisions.interface.action_space), Discrete)

    def act(observations: np.ndarray) -> Any:
        with torch.inference_mode():
            output = module(torch.from_numpy(observations))
            if not _is_tensor(output):
                raise PolicyError(f"forward returned {type(output).__name__}, not a tensor")
            # A logit of -inf is a choice that is ruled out.
            wrong = torch.isnan(output) if has_choices else ~torch.isfinite(output)
            if wrong.any():
                place = wrong.nonzero()[0].tolist()
                raise PolicyError(f"forward returned {output[tuple(place)]:g} at {place}")
            if not has_choices:
                return output.clamp(-1.0, 1.0)
            return output.argmax(1) if output.ndim == 2 else output

    return act


def _check_device(choice: str, what: str, device: Any) -> None:
    if device.type != "cpu":
        raise PolicyError(
            f"{choice}: {what} is on the device {str(device)!r}; evaluation runs on the CPU, in a "
            'process per core: move it there with .to("cpu"), or load it with map_location="cpu"'
        )


def _torch() -> Any:
    """PyTorch; only for objects that are there because the file has imported it."""
    import torch

    return torch


def _is_instance(found: Any, module: str, name: str) -> bool:
    """Whether it is an instance of a class; the class's module is not imported for that."""
    known = sys.modules.get(module)
    return known is not None and isinstance(found, getattr(known, name, ()))


def _is_module(found: Any) -> bool:
    return _is_instance(found, "torch.nn", "Module")


def _is_tensor(found: Any) -> bool:
    return _is_instance(found, "torch", "Tensor")


def _is_sb3(found: Any) -> bool:
    return _is_instance(found, "stable_baselines3.common.base_class", "BaseAlgorithm")


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
