"""Learned policies: published as weights and a description, so that loading one runs no code.

A policy is two files. `NAME.json` says what the network is, which observations and actions it was
trained for, how it was trained, and the SHA-256 of `NAME.safetensors`, which has its weights. The
policies that quicgym brings are in `agents/policies/pretrained`.

    policy = quicgym.load_policy("window")
    observation, info = environment.reset(seed=1)
    environment.step(policy(observation))
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from quicgym import _core
from quicgym.agents.policies.architecture import Architecture
from quicgym.agents.policies.by_name import PRETRAINED, pretrained_names
from quicgym.agents.policies.policy import Sb3Model, check_observations, in_one_line
from quicgym.agents.policies.stored_network import StoredNetwork
from quicgym.controllers import refuse_place
from quicgym.envs.action_effect import action_effect, differs
from quicgym.envs.actions import ACTION_VERSION, action_space
from quicgym.envs.decisions import DECISION_ARGUMENTS, Decisions
from quicgym.envs.observations import OBSERVATION_VERSION, in_short
from quicgym.envs.registration import environments, find_environment
from quicgym.errors import MissingExtraError, PolicyError
from quicgym.input_files import MOST_DESCRIPTION_BYTES, MOST_WEIGHTS_BYTES, read_input
from quicgym.output_folders import write_atomically
from quicgym.yaml_files import closest

if TYPE_CHECKING:
    from quicgym.agents.policies.networks import Actor

FORMAT = "quicgym-policy-1"


@dataclass(frozen=True)
class PolicyDescription:
    """The description of a policy: the JSON file next to its weights.

    Attributes:
        name: The policy's name in tables.
        decisions: The environment in which the policy was trained, how often the policy decides,
            and on what.
        architecture: The network's layers.
        sha256: The checksum of the file with the weights, in hexadecimal digits.
        training: The training's command, configuration, seed, steps, version and commit.
        evaluation: The suite, engine, seeds, rewards, version and commit of the measurement that
            backs a published policy.
        description: A text that says what the policy is.
        observation_version: quicgym.envs.observations.OBSERVATION_VERSION at that time.
        action_version: quicgym.envs.actions.ACTION_VERSION at that time.
        action_effect: quicgym.envs.action_effect.action_effect at that time; None: not known.
        format: The format of the file.
    """

    name: str
    decisions: Decisions
    architecture: Architecture
    sha256: str
    training: Mapping[str, Any] = field(default_factory=dict)
    evaluation: Mapping[str, Any] | None = None
    description: str = ""
    observation_version: int = OBSERVATION_VERSION
    action_version: int = ACTION_VERSION
    action_effect: tuple[float, ...] | None = None
    format: str = FORMAT

    @classmethod
    def of_json(cls, text: bytes) -> PolicyDescription:
        """Returns a file's description; ValueError names field, value and remedy."""
        _core.check_policy_description(text)
        fields = json.loads(text)
        if "agent" in fields:
            raise ValueError(
                f"agent = {fields['agent']!r}: is a controller with its own clock, not a "
                "policy of an environment; name the file where a controller is named, as in "
                "quicgym.run"
            )
        architecture: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in fields["architecture"].items()
        }
        refuse_place(fields.get("controller"), "a policy's description")
        try:
            environment = find_environment(fields["environment"])
        except ValueError as error:
            raise ValueError(f"environment = {fields['environment']!r}: {error}") from None
        arguments = {name: fields.pop(name) for name in DECISION_ARGUMENTS if name in fields}
        decisions = Decisions(fields.pop("environment"), **arguments)
        if "action_effect" in fields:
            fields["action_effect"] = tuple(fields["action_effect"])
        description = cls(
            **fields | {"architecture": Architecture(**architecture), "decisions": decisions}
        )
        _core.check_policy_fit(
            description.architecture.output, decisions.interface.action_space, environment.id
        )
        return description

    def to_json(self) -> str:
        """Returns the text of the file; what is None has no field."""
        order = [
            "format", "name", "description", "environment", "observation_version",
            "action_version", "action_effect", "decision_interval_ms", "decision_interval_rtts",
            "history_length", "observations", "controller", "coordinates", "guard",
            "architecture", "sha256", "training", "evaluation",
        ]  # fmt: skip
        values = asdict(self)
        values |= values["decisions"]
        values["environment"] = find_environment(self.decisions.environment).id
        fields = {name: values[name] for name in order}
        for name in ("evaluation", "controller", "coordinates", "action_effect"):
            if fields[name] is None:
                del fields[name]
        if not fields["guard"]:
            del fields["guard"]
        return json.dumps(fields, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


@dataclass(frozen=True, eq=False, repr=False)
class LearnedPolicy:
    """A network as a policy; it takes the most likely action, and draws nothing.

    Actions are computed in C++ from the weights that there are at the first call. That takes a
    tenth of PyTorch's time for one observation, and the result is the same whatever the number of
    observations that are decided on together. PyTorch is imported when `actor` is asked for.

    Attributes:
        name: Name in tables.
        decisions: The environment in which the policy acts, and how often it decides.
        network: The network as it was read from files, or as training has it.
        description: The description in the policy's file; None while the policy is being trained.
    """

    name: str
    decisions: Decisions
    network: StoredNetwork | Actor
    description: PolicyDescription | None = None
    options: dict[str, Any] | None = None

    __repr__ = in_one_line

    def __getstate__(self) -> dict[str, Any]:
        """Leaves out the network in C++, which a copy makes again."""
        return {name: value for name, value in vars(self).items() if name != "_in_cpp"}

    def __call__(self, observations: np.ndarray) -> np.ndarray:
        """Returns an action for each row of observations, or the action for one.

        Raises:
            PolicyError: The observations are of another environment.
        """
        rows = np.ascontiguousarray(np.atleast_2d(observations), dtype=np.float32)
        check_observations(self, rows, self._numbers)
        actions = np.asarray(self._in_cpp(rows))
        return actions if observations.ndim == 2 else actions[0]

    @property
    def actor(self) -> Actor:
        """The network in PyTorch; changes of its weights before the first call count."""
        network = self.network
        return network.actor if isinstance(network, StoredNetwork) else network

    @cached_property
    def _numbers(self) -> int:
        return int(self.decisions.observation_space.shape[0])

    @cached_property
    def _in_cpp(self) -> _core.PolicyNetwork:
        network = self.network
        if isinstance(network, StoredNetwork) and "actor" in vars(network):
            network = network.actor  # whose weights may be others by now
        return network.in_cpp


def load_policy(name_or_path: str | Path, *, trust_zip: bool = False) -> Any:
    """Loads a learned policy; no code from the files is run.

    Args:
        name_or_path: A name from `pretrained_names()`, the path of a description, or a run of
            `quicgym train`.
        trust_zip: Also accept a model that Stable-Baselines3 saved (.zip). Loading one runs code
            that is in it: only for files whose origin you trust.

    Returns:
        A policy: call it with observations; see quicgym.agents.policies.policy.Policy.

    Raises:
        PolicyError: There is none, or a version, the checksum, a name, shape or type of the weights
            is not what it should be.
    """
    text = str(name_or_path)
    if text.endswith(".zip"):
        return _load_zip(Path(text), trust_zip)
    path = Path(name_or_path)
    if path.is_dir():
        path = path / "policy" / "policy.json"
    elif isinstance(name_or_path, str) and not text.endswith(".json"):
        path = PRETRAINED / f"{text}.json"
        if text not in pretrained_names():
            raise PolicyError(
                f"unknown policy {text!r}; {closest(text, pretrained_names())}; "
                "or give the path of a description (.json), or a training run's folder"
            )
    description = _read_description(path)
    _warn_of_other_actions(path, description)
    weights = path.with_suffix(".safetensors")
    try:
        data = read_input(weights, MOST_WEIGHTS_BYTES)
    except OSError as error:
        raise PolicyError(f"{weights}: {error.strerror}; put it next to {path.name}") from None
    if sha256(data).hexdigest() != description.sha256:
        raise PolicyError(
            f"{weights}: its SHA-256 is {sha256(data).hexdigest()}, {path.name} says "
            f"{description.sha256}; get both files again, from the same place"
        )
    try:
        tensors = _core.read_safetensors(data)
        network = StoredNetwork(description.architecture, description.decisions, tensors)
        network.in_cpp  # noqa: B018 checks the tensors
    except ValueError as error:
        raise PolicyError(f"{weights}: {error}") from None
    return LearnedPolicy(description.name, description.decisions, network, description)


def save_policy(
    path: Path, policy: LearnedPolicy, architecture: Architecture, training: Mapping[str, Any]
) -> PolicyDescription:
    """Writes a policy as `load_policy` takes it: the description, and the weights next to it.

    `training` says where the policy comes from. OSError leaves the files that were there before.
    """
    try:
        import safetensors.torch
    except ImportError as error:
        raise MissingExtraError("to save a policy needs PyTorch and safetensors") from error

    tensors = {name: tensor.contiguous() for name, tensor in policy.actor.state_dict().items()}
    data = safetensors.torch.save(tensors)
    description = PolicyDescription(
        policy.name,
        policy.decisions,
        architecture,
        sha256(data).hexdigest(),
        training,
        action_effect=_effect_of(policy.decisions),
    )
    _core.check_policy_description(description.to_json().encode())
    weights = path.with_suffix(".safetensors")
    write_atomically({weights: lambda new: new.write_bytes(data), path: description.to_json()})
    return description


def _effect_of(decisions: Decisions) -> tuple[float, ...]:
    return action_effect(decisions.environment, decisions.controller, decisions.coordinates)


def _warn_of_other_actions(path: Path, description: PolicyDescription) -> None:
    recorded = description.action_effect
    if recorded is not None and differs(recorded, _effect_of(description.decisions)):
        trained = description.training.get("commit", "its training")
        warnings.warn(
            f"{path}: actions of {find_environment(description.decisions.environment).id} do "
            f"something else at this commit of quicgym ({_core.commit}) than at {trained}, because "
            "the safe envelope or the controller has changed; evaluate the policy, or train it, "
            "again",
            stacklevel=3,
        )


def _read_description(path: Path) -> PolicyDescription:
    try:
        return PolicyDescription.of_json(read_input(path, MOST_DESCRIPTION_BYTES))
    except OSError as error:
        raise PolicyError(f"{path}: {error.strerror}; give a policy's description") from None
    except ValueError as error:
        raise PolicyError(f"{path}: {error}") from None


@dataclass(frozen=True, eq=False, repr=False)
class Sb3Policy:
    """A model of Stable-Baselines3, and the VecNormalize of its training.

    The state of a recurrent model is kept for each row; `reset` forgets it, for other episodes.
    """

    name: str
    decisions: Decisions
    model: Any
    normalization: Any = None
    options: dict[str, Any] | None = None

    __repr__ = in_one_line

    def __call__(self, observations: np.ndarray) -> np.ndarray:
        """Returns the likeliest action for each row of observations, or for one.

        Raises:
            PolicyError: The observations are of another environment.
        """
        check_observations(self, np.atleast_2d(observations), self.model.observation_space.shape[0])
        if self.normalization is not None:
            observations = self.normalization.normalize_obs(observations)
        return np.asarray(self._predict(observations))

    def reset(self) -> None:
        """Forgets all flows; the next call is the first decision of others."""
        self._predict.reset()

    @cached_property
    def _predict(self) -> Sb3Model:
        return Sb3Model(self.model)


def _load_zip(path: Path, trusted: bool) -> Sb3Policy:
    if not trusted:
        raise PolicyError(
            f"{path}: loading a Stable-Baselines3 model runs code that is in the file; if you "
            "trust where it comes from, say trust_zip=True (--trust-zip)"
        )
    try:
        from stable_baselines3.common.save_util import load_from_zip_file

        from quicgym.envs.sb3 import NORMALIZATION, RECORD
    except ImportError as error:
        raise MissingExtraError("models of Stable-Baselines3 need it and PyTorch") from error

    if not path.is_file():
        raise PolicyError(f"{path}: is no file; give the path of a model of Stable-Baselines3")
    warnings.warn(f"{path}: loading it runs code that is in the file", stacklevel=3)
    try:
        data, _, _ = load_from_zip_file(path, device="cpu")
    except Exception as error:  # zip, pickle and PyTorch have errors of their own for each damage
        raise PolicyError(f"{path}: is no model of Stable-Baselines3: {error}") from None
    if data is None:
        raise PolicyError(f"{path}: is no model of Stable-Baselines3: it has no file `data`")
    algorithm = _algorithm_of(path, data)

    def remedy(environments: str) -> str:
        """Returns the call that writes the file with what it lacks."""
        model = f"{algorithm.__name__}.load({str(path)!r}, env={environments})"
        return f"write it again by quicgym.envs.sb3.save({model}, {str(path)!r})"

    try:
        model = algorithm.load(path, device="cpu")
    except Exception as error:  # such as a MaskablePPO, whose file looks like a PPO's
        raise PolicyError(
            f"{path}: is no model of {algorithm.__name__} ({' '.join(str(error).split())[:200]}); "
            "save it by quicgym.envs.sb3.save, which keeps its class"
        ) from error
    record = getattr(model.action_space, RECORD, None)
    if record is None:
        fit = [
            environment.id
            for name, environment in environments().items()
            if model.action_space == action_space(name)
        ]
        made = f"quicgym.envs.sb3.make_sb3({(fit or ['quicgym/Window-v1'])[0]!r})"
        raise PolicyError(
            f"{path}: the file does not say in which environment it was trained, and its actions "
            f"fit {', '.join(fit) or 'none of quicgym'}; "
            f"{remedy(made)}; give make_sb3 the "
            "arguments of decisions, such as history_length, with which it was trained"
        )
    try:
        decisions = Decisions(**record)
    except ValueError as error:
        raise PolicyError(f"{path}: {error}") from None
    if model.observation_space != decisions.observation_space:
        raise PolicyError(
            f"{path}: its observations are {in_short(model.observation_space)}, and those of "
            f"{find_environment(decisions.environment).id} "
            f"{in_short(decisions.observation_space)}; train it without wrappers that "
            "change them, and without privileged=True"
        )
    if NORMALIZATION not in data:
        # Algorithms with a replay buffer keep such observations without VecNormalize as well.
        if data.get("_last_original_obs") is not None:
            raise PolicyError(
                f"{path}: model.save wrote it, which keeps no statistics of VecNormalize; "
                f"{remedy('ENVIRONMENTS')}, where ENVIRONMENTS are those of its training: "
                "quicgym.envs.sb3.make_sb3(...), or VecNormalize.load(STATISTICS, make_sb3(...))"
            )
        warnings.warn(
            f"{path}: model.save wrote it, which does not keep wrappers of environments; if there "
            "was one of your own, the policy acts otherwise than in training. "
            "quicgym.envs.sb3.save refuses such a model",
            stacklevel=3,
        )
    return Sb3Policy(path.stem, decisions, model, data.get(NORMALIZATION))


def _algorithm_of(path: Path, data: Mapping[str, Any]) -> Any:
    """Returns the class of a model: the one that `quicgym.envs.sb3.save` named, or a likely one."""
    from stable_baselines3 import A2C, DQN, PPO, SAC, TD3

    from quicgym.envs.sb3 import ALGORITHM

    named = data.get(ALGORITHM)
    if named is not None:
        module, _, name = str(named).partition(":")
        try:
            return getattr(import_module(module), name)
        except (ImportError, AttributeError) as error:
            raise PolicyError(
                f"{path}: its class {named} cannot be imported ({error}); install its package"
            ) from None
    marks: dict[str, Any] = {
        "clip_range": PPO,
        "target_entropy": SAC,
        "target_policy_noise": TD3,
        "exploration_fraction": DQN,
        "normalize_advantage": A2C,  # PPO has that, too
    }
    algorithm = next((marks[mark] for mark in marks if mark in data), None)
    if algorithm is None:
        raise PolicyError(
            f"{path}: its class is not known; save the model by quicgym.envs.sb3.save, which keeps "
            "it"
        )
    return algorithm
