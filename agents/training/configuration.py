"""The configuration of a training run: YAML files, and changes to them on the command line.

quicgym's own configurations are in configs/training; `quicgym train tuning-ppo
steps=1e6 hyperparameters.learning_rate=1e-4` changes two fields of one of them.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Mapping, Sequence
from importlib.resources.abc import Traversable
from typing import Annotated, Any, Literal

import yaml
from pydantic import Field, field_validator, model_validator

from quicgym.agents.algorithms import registry
from quicgym.agents.policies.learned import load_policy
from quicgym.controllers import find as find_controller
from quicgym.controllers import refuse_place
from quicgym.envs.actions import choices
from quicgym.envs.decisions import DECISION_ARGUMENTS, Decisions, declared
from quicgym.envs.environment import CongestionControlEnv, refuse_overrides
from quicgym.envs.registration import EnvironmentId, environment_ids, find_environment
from quicgym.envs.rewards import Reward
from quicgym.envs.scenarios.engines import EngineName
from quicgym.envs.scenarios.suites import refuse_held_out
from quicgym.errors import UserError
from quicgym.input_files import MOST_WEIGHTS_BYTES
from quicgym.python_files import is_python_object
from quicgym.validation import StrictModel, validated
from quicgym.yaml_files import CONFIGS, closest, read_yaml, yaml_names
from quicgym.yaml_loader import parse_yaml

TRAINING = CONFIGS / "training"


class ConfigError(UserError, ValueError):
    """A configuration is not valid; the text names file, field, value and remedy."""


class EnvironmentConfig(StrictModel):
    """The environments that training steps; arguments of quicgym.make_vec.

    The fields that are not listed here are those of quicgym.Decisions.

    Attributes:
        id: The environment's name or id, such as "tuning" or "quicgym/Tuning-v1".
        scenario: A scenario or a distribution of scenarios, by name or a YAML's path.
        engine: "native", or "ns3": a process for each simulation, over ns-3.
        simulations: The number of simulations. Each flow that names no controller is a row for the
            policy.
        threads: The number of threads that run simulations; None: as many as there are cores.
        reward: The reward's name, or a function of a Python file: `file.py:function`.
        reward_per_flow: Each flow earns its own reward.
    """

    id: EnvironmentId = "quicgym/Tuning-v1"
    scenario: str = "training"
    engine: EngineName = "native"
    simulations: int = Field(default=128, ge=1, le=65_536)
    threads: int | None = Field(default=None, ge=1)
    decision_interval_ms: float = declared("decision_interval_ms")
    decision_interval_rtts: float | None = declared("decision_interval_rtts")
    reward_interval_ms: float | None = declared("reward_interval_ms")
    history_length: int | None = declared("history_length")
    reward: str = "fair-throughput"
    reward_per_flow: bool = False
    observations: str | None = declared("observations")
    controller: str | None = declared("controller")
    coordinates: tuple[str, ...] | None = declared("coordinates")

    @field_validator("reward")
    @classmethod
    def _known_reward(cls, name: str) -> str:
        if not is_python_object(name):
            Reward(name)  # says what is wrong with it
        return name

    @model_validator(mode="after")
    def _of_the_engine(self) -> EnvironmentConfig:
        if self.engine == "ns3" and self.threads is not None:
            raise ValueError(
                f"threads = {self.threads}: ns-3 has a process for each simulation; leave it out"
            )
        return self

    @model_validator(mode="after")
    def _of_the_environment(self) -> EnvironmentConfig:
        refuse_place(self.controller, "a training configuration")
        refuse_overrides(find_environment(self.id), "a training")
        for name in ("history_length", "observations", "reward_interval_ms"):
            object.__setattr__(self, name, getattr(self.decisions, name))
        return self

    @property
    def decisions(self) -> Decisions:
        """How the agents decide, and on what."""
        return Decisions.of(self.id, self.model_dump(include=set(DECISION_ARGUMENTS)))

    @property
    def environment(self) -> type[CongestionControlEnv]:
        """The class, with the controller."""
        return find_environment(self.id).variant(self.controller, self.coordinates)


LayerSizes = Annotated[
    tuple[Annotated[int, Field(ge=1, le=4096)], ...],
    Field(max_length=16, description="at most 16 sizes, each a whole number from 1 to 4096"),
]


class NetworkConfig(StrictModel):
    """The policy's network; see quicgym.agents.policies.architecture.Architecture.

    Attributes:
        privileged_critic: PPO's value network, which only training uses, also sees what only the
            network knows; see quicgym.envs.privileged.PRIVILEGED. GRPO gets a value network of the
            policy's sizes, which sees that, too.
    """

    extractor_sizes: LayerSizes = Field(default=(64,), min_length=1)
    hidden_sizes: LayerSizes = (64,)
    activation: Literal["tanh", "relu"] = "tanh"
    privileged_critic: bool = False

    @model_validator(mode="after")
    def _fits_a_policy(self) -> NetworkConfig:
        layers = itertools.pairwise((*self.extractor_sizes, *self.hidden_sizes))
        weights_bytes = 4 * sum(before * after for before, after in layers)
        if weights_bytes > MOST_WEIGHTS_BYTES:
            raise ValueError(
                f"extractor_sizes and hidden_sizes: the weights take {weights_bytes >> 20} MiB; a "
                f"policy has at most {MOST_WEIGHTS_BYTES >> 20}, so give smaller or fewer layers"
            )
        return self


class StartConfig(StrictModel):
    """Where the policy begins; None: where its random weights put it.

    Attributes:
        preset: In Tuning, the controller of the BBR family that the policy is at first.
        parameters: In Tuning, values that replace the preset's own parameters, such as those that
            a sweep has found.
        policy: A policy with the same network and observations, with whose weights training starts:
            a published policy's name, a description's path or a run's folder.
        temperature: Which that policy's outputs are divided by to be logits, so that the best
            choice is not the only one drawn. What AggreVaTe predicts are differences of rewards.
        std: The standard deviation of the exploration, in units of the action space: with PPO and
            GRPO at first, with TD3 during the whole training.
        final_std: The standard deviation at the end of PPO and GRPO, to which it falls
            exponentially; None: it is learned.
    """

    preset: str | None = None
    parameters: dict[str, float | list[float]] = {}
    policy: str | None = None
    temperature: float = Field(default=1.0, gt=0)
    std: float | None = Field(default=None, gt=0)
    final_std: float | None = Field(default=None, gt=0)


class EvaluationConfig(StrictModel):
    """How the policy is measured while it is trained.

    Attributes:
        suite: The scenarios; never those on which results are reported. Of a mixture each part is
            evaluated.
        seeds: The number of seeds of each scenario, from SELECTION_SEED (3,000,000) on.
        controllers: Controllers or policies that are measured on the same paths. With them the best
            policy is the one whose worst world is best (quicgym.agents.training.worlds); without
            them it has the highest interquartile mean.
        interval_steps: After so many steps the policy is evaluated and a checkpoint is written.
        comparison_paths: On which start, best and last policy are compared in the end; see
            quicgym.agents.training.comparison.
    """

    suite: str = "validation"
    seeds: int = Field(default=1, ge=1, le=1_000_000)
    controllers: tuple[str, ...] = ()
    interval_steps: int = Field(default=500_000, ge=1)
    comparison_paths: int = Field(default=1024, ge=16, le=1_000_000)

    @field_validator("controllers")
    @classmethod
    def _each_once(cls, choices: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(choices))


class TrainingConfig(StrictModel):
    """A training run.

    Attributes:
        name: The name of the run and of the policy.
        algorithm: A name in quicgym.agents.algorithms.registry: "ppo", "sac", "td3" or "dqn"
            of Stable-Baselines3; "aggrevate", "grpo" and others of quicgym; or an installed
            package's.
        hyperparameters: Arguments of that algorithm, by its own names.
        environment: The environments that are stepped.
        network: The network that is trained.
        start: Where the policy begins.
        steps: The number of decisions, of all agents together; the last rollout is finished.
        seed: Everything random comes from it.
        device: "auto" (a GPU where there is one), "cpu" or "cuda".
        evaluation: How the policy is measured on the way.
    """

    name: str = Field(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$",
        max_length=80,
        description="letters, digits and . _ - without spaces",
    )
    algorithm: str
    hyperparameters: dict[str, Any] = {}
    environment: EnvironmentConfig = EnvironmentConfig()
    network: NetworkConfig = NetworkConfig()
    start: StartConfig = StartConfig()
    steps: int = Field(ge=1, le=10**12)
    seed: int = Field(default=0, ge=0, lt=2**32)
    device: str = Field(
        default="auto",
        pattern=r"^(auto|cpu|cuda(:\d+)?)$",
        description="auto, cpu, cuda or cuda:N",
    )
    evaluation: EvaluationConfig = EvaluationConfig()

    @field_validator("algorithm")
    @classmethod
    def _known(cls, name: str) -> str:
        registry.find(name)  # says what is wrong with it
        return name

    @property
    def entry(self) -> registry.Algorithm:
        """The algorithm's entry in the registry."""
        return registry.find(self.algorithm)

    @model_validator(mode="after")
    def _possible(self) -> TrainingConfig:
        environment = self.environment.environment
        presets = environment.presets
        if self.start.preset is not None and not presets:
            raise ValueError(
                f"start.preset = {self.start.preset!r}: {self.environment.id} has no presets; "
                "leave it out, or take environment.id=quicgym/Tuning-v1"
            )
        if self.start.preset is not None and self.start.preset not in presets:
            raise ValueError(
                f"start.preset = {self.start.preset!r} is none of {self.environment.id}; "
                f"{closest(self.start.preset, presets)}"
            )
        if self.start.parameters:
            if choices(self.environment.id) or self.start.preset is None:
                raise ValueError("start.parameters are those of a start.preset of Tuning")
            # These say what is wrong with them; first the names, which may be those of arguments.
            find_controller(self.start.preset).complete(self.start.parameters)
            environment.preset_action(self.start.preset, **self.start.parameters)
        self._check_algorithm(self.entry)
        refuse_held_out("evaluation.suite", self.evaluation.suite, ValueError)
        return self

    def _check_algorithm(self, entry: registry.Algorithm) -> None:
        """Raises ValueError for what the algorithm cannot do."""
        start, is_discrete = self.start, bool(choices(self.environment.id))
        if self.network.privileged_critic and not entry.privileged_critic:
            able = _those(lambda other: other.privileged_critic)
            raise ValueError(f"network.privileged_critic is for {able}")
        if self.environment.id not in (entry.environments or environment_ids()):
            ids = " and ".join(entry.environments or ())
            raise ValueError(
                f"algorithm = {entry.name!r} is for {ids}, and environment.id is "
                f"{self.environment.id}; change one"
            )
        if start.std is not None and not (entry.stochastic or entry.action_noise):
            able = _those(lambda other: other.stochastic or other.action_noise)
            raise ValueError(f"start.std is for {able}, not for {entry.name}")
        if start.std is not None and is_discrete:
            raise ValueError(f"start.std is for a Box, and {self.environment.id} has choices")
        able = _those(lambda other: other.stochastic)
        if start.final_std is not None and (not entry.stochastic or start.std is None):
            raise ValueError(f"start.final_std is for {able} with start.std")
        if start.policy is not None and not entry.continues:
            able = _those(lambda other: other.continues)
            raise ValueError(f"start.policy is for {able}, not for {entry.name}")
        if start.policy is not None and start.preset is not None:
            no_preset = f"start.preset=null{' start.parameters={}' if start.parameters else ''}"
            raise ValueError(
                f"start.policy = {start.policy!r}: start.preset = {start.preset!r} is set as well; "
                f"give --from {start.policy} in place of start.policy, which also takes the "
                f"policy's network and environment, or {no_preset} with it"
            )
        if start.temperature != 1 and (start.policy is None or not is_discrete):
            raise ValueError("start.temperature is for a start.policy with discrete actions")
        if ("discrete" if is_discrete else "box") not in entry.action_spaces:
            able = _those(
                lambda other: (
                    self.environment.id in (other.environments or environment_ids())
                    and ("discrete" if is_discrete else "box") in other.action_spaces
                )
            )
            kind = "discrete" if is_discrete else "continuous"
            raise ValueError(f"{entry.name} has no {kind} actions; {able} have")


def _those(able: Callable[[registry.Algorithm], bool]) -> str:
    """Returns the names of quicgym's algorithms that are able to do something."""
    *most, last = [entry.name for entry in registry.BUILT_IN.values() if able(entry)]
    return f"{', '.join(most)} and {last}" if most else last


def training_names() -> list[str]:
    """Returns the names of the configurations that quicgym brings."""
    return yaml_names(TRAINING)


def load_training(
    name_or_path: str, changes: Sequence[str] = (), *, begin_with: str | None = None
) -> TrainingConfig:
    """Loads a configuration: one of `training_names()`, or a YAML's path.

    Args:
        name_or_path: The configuration.
        changes: Changes such as "steps=1e6" or "hyperparameters.gamma=0.9".
        begin_with: A policy, as `quicgym.load_policy` takes it, with whose weights training starts.
            Its network, its environment and what it decides on replace those of the configuration.

    Raises:
        ConfigError: Something does not exist or is not valid.
        PolicyError: There is no such policy.
    """
    fields = read_fields(name_or_path, TRAINING, "training configuration")
    if begin_with is not None:
        fields = _beginning_with(fields, begin_with)
    config = validated(TrainingConfig, changed(fields, changes), name_or_path, ConfigError)
    if begin_with is not None and config.start.policy != begin_with:
        raise ConfigError(
            f"--from {begin_with}: start.policy = {config.start.policy!r} is given as well; leave "
            "one of them out"
        )
    return config


def _beginning_with(fields: Mapping[str, Any], chosen: str) -> dict[str, Any]:
    """Returns a configuration's fields with a policy's network, environment and weights."""
    description = getattr(load_policy(chosen), "description", None)
    if description is None:
        raise ConfigError(
            f"--from {chosen}: has no description; give a published policy's name, a description's "
            "path or a run's folder"
        )
    decisions, architecture = description.decisions, description.architecture
    environment, start = dict(fields.get("environment") or {}), dict(fields.get("start") or {})
    decided = {
        name: value
        for name, value in decisions.arguments.items()
        if name in EnvironmentConfig.model_fields
    }
    layers = {
        "extractor_sizes": architecture.extractor_sizes,
        "hidden_sizes": architecture.hidden_sizes,
        "activation": architecture.activation,
    }
    exploration = {
        name: start[name]
        for name in ("std", "final_std")
        if name in start and not choices(decisions.environment)
    }
    temperature = registry.temperature_of(description.training, architecture.output)
    return {
        **fields,
        "environment": {**environment, "id": decisions.environment, **decided},
        "network": {**(fields.get("network") or {}), **layers},
        "start": {"policy": chosen, "temperature": temperature, **exploration},
    }


def read_fields(name_or_path: str, folder: Traversable, what: str) -> dict[str, Any]:
    """Reads a configuration's mapping, by its name in a folder or from a path."""
    file = read_yaml(name_or_path, folder, what, ConfigError)
    if not isinstance(file.data, dict):
        raise ConfigError(f"{file.name}: is no mapping of fields; see configs/")
    return file.data


def changed(data: Mapping[str, Any], changes: Sequence[str]) -> dict[str, Any]:
    """Returns a configuration with changes such as "evaluation.seeds=3"."""
    result = copy.deepcopy(dict(data))
    for change in changes:
        path, equals, text = change.partition("=")
        if not equals or not path:
            raise ConfigError(f"{change!r} changes nothing: write field=value, or a.b=value")
        *parents, field = path.split(".")
        inner = result
        for parent in parents:
            inner = inner.setdefault(parent, {})
            if not isinstance(inner, dict):
                raise ConfigError(f"{change}: {parent} is {inner!r:.60}, which has no fields")
        inner[field] = value_of(text)
    return result


def value_of(text: str) -> Any:
    """Returns a value as YAML has it; 2e6 is a whole number."""
    try:
        value = parse_yaml(text)
    except yaml.YAMLError:
        return text
    if isinstance(value, float) and "." not in text and value.is_integer():
        return int(value)
    return value
