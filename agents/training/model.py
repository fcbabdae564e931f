"""What is trained: a configuration's environments, its algorithm and where its policy begins."""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.noise import NormalActionNoise
from stable_baselines3.common.utils import LinearSchedule
from stable_baselines3.common.vec_env import VecEnv

from quicgym.agents.algorithms.advantage_regression import AdvantageRegression
from quicgym.agents.policies.architecture import Architecture
from quicgym.agents.policies.learned import LearnedPolicy, load_policy
from quicgym.agents.policies.policy import Decisions
from quicgym.agents.policies.stable_baselines3 import (
    PrivilegedCriticPolicy,
    begin_at,
    begin_with,
    bias_towards,
    output_of,
    policy_arguments,
)
from quicgym.agents.training.configuration import ConfigError, TrainingConfig
from quicgym.envs.sb3 import Sb3VecEnv, make_sb3
from quicgym.envs.scenarios.model import Scenario
from quicgym.envs.scenarios.suites import SuiteEntry
from quicgym.yaml_files import closest

# What the configuration says in fields of its own, or what has no meaning here.
_TAKEN = frozenset(
    ("policy", "env", "policy_kwargs", "tensorboard_log", "verbose", "seed", "device")
    + ("stats_window_size", "_init_setup_model", "self", "action_noise", "replay_buffer_class")
    + ("replay_buffer_kwargs", "rollout_buffer_class", "rollout_buffer_kwargs", "use_sde")
)


def check_hyperparameters(config: TrainingConfig) -> None:
    """Raises ConfigError for a hyperparameter that the algorithm does not have or cannot take."""
    known = _hyperparameters(config.entry.model_class)
    for name, value in config.hyperparameters.items():
        if name not in known:
            raise ConfigError(
                f"hyperparameters.{name}: {config.algorithm} has no such parameter; "
                f"{closest(name, list(known))}"
            )
        remedy = _remedy(value, known[name], config.entry.limits.get(name))
        if remedy:
            raise ConfigError(f"hyperparameters.{name} = {value!r}: give {remedy}")


def _hyperparameters(model_class: type) -> dict[str, Any]:
    """Returns the defaults of a class's arguments, those that it hands on by ** included."""
    defaults: dict[str, Any] = {}
    for base in model_class.__mro__:
        if "__init__" not in vars(base):
            continue
        parameters = inspect.signature(base).parameters.values()
        variable = {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}
        defaults = {
            parameter.name: parameter.default
            for parameter in parameters
            if parameter.name not in _TAKEN and parameter.kind not in variable
        } | defaults
        if all(parameter.kind != inspect.Parameter.VAR_KEYWORD for parameter in parameters):
            break
    return defaults


def _remedy(value: Any, default: Any, limits: tuple[float, float] | None) -> str:
    """Returns what to give instead of a value; nothing where it is like the default, or it may."""
    if isinstance(value, str) and value.startswith("linear_"):
        return ""  # _with_schedules says what is wrong with it
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if isinstance(default, bool):
        return "" if isinstance(value, bool) else "true or false"
    if isinstance(default, int) and not (is_number and isinstance(value, int)):
        return "a whole number"
    if isinstance(default, float) and not is_number:
        return "a number"
    if isinstance(default, tuple) and not isinstance(value, list):
        return "a list, such as [1, 2]"
    least, most = limits or (-math.inf, math.inf)
    if not is_number or least <= value <= most:
        return ""
    return f"{least:g} or more" if most == math.inf else f"a number from {least:g} to {most:g}"


def make_environments(config: TrainingConfig) -> Sb3VecEnv:
    """Makes what a configuration trains on.

    Raises:
        ConfigError: The algorithm cannot learn from that scenario.
        ScenarioError: The scenario is not valid.
    """
    environment = config.environment
    environments = make_sb3(
        environment.id,
        environment.simulations,
        infos="ends",
        privileged=config.network.privileged_critic,
        per_flow=True,
        num_threads=environment.threads,
        scenario=environment.scenario,
        **{**decisions_of(config).arguments, "preference": environment.preference},
        reward_interval_ms=environment.reward_interval_ms,
        reward=environment.reward,
        reward_per_flow=environment.reward_per_flow,
        controller=environment.controller,
    )
    if not config.entry.plays_episodes and _draws_agents(environments):
        environments.close()
        raise ConfigError(
            f"environment.scenario = {environment.scenario!r}: its paths have different numbers of "
            f"agents, and {config.algorithm} would learn from the rows that have none; use an "
            "algorithm that plays whole episodes (grpo, aggrevate, coordinate-aggrevate, "
            "choice-aggrevate), a scenario, or a distribution without all_agents"
        )
    return environments


def _draws_agents(environments: Sb3VecEnv) -> bool:
    scenario = trained_on(environments)
    return not isinstance(scenario, Scenario) and scenario.draws_agents


def trained_on(environments: Sb3VecEnv) -> SuiteEntry:
    """Returns the scenario or the distribution of a configuration's environments."""
    scenario = environments.environments.batch.source.scenario
    assert isinstance(scenario, SuiteEntry)  # a configuration has them by name or path
    return scenario


def make_model(config: TrainingConfig, environments: VecEnv) -> BaseAlgorithm:
    """Makes the algorithm with an untrained policy, which begins as `start` says.

    Raises:
        ConfigError: The algorithm refuses a hyperparameter's value, or the policy to begin with.
    """
    arguments = _with_schedules(config.hyperparameters)
    if config.device.startswith("cuda") and not torch.cuda.is_available():
        raise ConfigError(f"device = {config.device!r}: PyTorch finds no GPU here; use auto or cpu")
    if config.entry.action_noise and config.start.std is not None:
        mean = np.zeros(environments.action_space.shape or ())
        arguments["action_noise"] = NormalActionNoise(mean, mean + config.start.std)
    try:
        model: BaseAlgorithm = config.entry.model_class(
            PrivilegedCriticPolicy if config.network.privileged_critic else "MlpPolicy",
            environments,
            policy_kwargs=policy_arguments(
                config.entry,
                architecture_of(config),
                config.environment.history_length,
                config.start.std if config.entry.stochastic else None,
            ),
            seed=config.seed,
            device=config.device,
            **arguments,
        )
        _begin(model, config)
    except (TypeError, ValueError, AssertionError, RuntimeError) as error:
        raise ConfigError(f"{config.algorithm} refuses the configuration: {error}") from error
    return model


def _begin(model: BaseAlgorithm, config: TrainingConfig) -> None:
    """Makes an untrained policy what `start` says."""
    start = config.start
    if start.policy is not None:
        begin_with(model, _first_policy(config, start.policy).actor, start.temperature)
    if start.preset is None:
        return
    environment = config.environment.environment
    action = environment.preset_action(start.preset, **start.parameters)
    if action.ndim:
        begin_at(model, action, config.entry.output)
    elif isinstance(model, AdvantageRegression):
        model.bias_towards(int(action))
    else:
        bias_towards(model, int(action))


def _first_policy(config: TrainingConfig, chosen: str) -> LearnedPolicy:
    """Loads `start.policy`, which has to fit what is trained."""
    policy: LearnedPolicy = load_policy(chosen)
    description = policy.description
    assert description is not None
    environment = ("decision_interval_ms", "decision_interval_rtts", "history_length", "controller")
    network = ("extractor", "extractor_sizes", "hidden_sizes", "activation")
    takes, given = (it.preference is not None for it in (description, config.environment))
    if takes != given:
        does, here = (("takes", "no"), ("takes no", "a"))[given]
        raise ConfigError(
            f"start.policy = {chosen!r} {does} preference, and environment.preference gives {here} "
            "one; make them the same, or begin with another policy"
        )
    its_own = {
        "environment.id": description.environment,
        **{f"environment.{name}": getattr(description, name) for name in environment},
        **{f"network.{name}": getattr(description.architecture, name) for name in network},
    }
    for place, value in its_own.items():
        part, attribute = place.split(".")
        here = getattr(getattr(config, part), attribute)
        if here != value:
            raise ConfigError(
                f"start.policy = {chosen!r} has {place} = {value!r}, here {here!r}; "
                "make them the same, or begin with another policy"
            )
    return policy


def _with_schedules(hyperparameters: Mapping[str, Any]) -> dict[str, Any]:
    """Makes `linear_X` a value that falls from X to 0 over the training's steps."""
    values = dict(hyperparameters)
    for name, value in values.items():
        if isinstance(value, str) and value.startswith("linear_"):
            try:
                first = float(value.removeprefix("linear_"))
            except ValueError:
                raise ConfigError(
                    f"hyperparameters.{name} = {value!r}: write linear_ and a number, such as "
                    "linear_3e-4"
                ) from None
            values[name] = LinearSchedule(first, 0.0, 1.0)
    return values


def decisions_of(config: TrainingConfig) -> Decisions:
    """Returns what the trained policy decides, how often, and on what."""
    environment = config.environment
    return Decisions(
        environment.id,
        environment.decision_interval_ms,
        environment.decision_interval_rtts,
        environment.history_length,
        environment.controller,
        environment.evaluated_preference,
    )


def architecture_of(config: TrainingConfig) -> Architecture:
    """Returns the network that a configuration trains."""
    network = config.network
    return Architecture(
        network.extractor,
        network.extractor_sizes,
        network.hidden_sizes,
        network.activation,
        output_of(config.entry, config.environment.id),
    )
