"""Makes a configuration's trainer, and the policy with which it begins."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from pydantic import BaseModel, create_model
from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm
from stable_baselines3.common.vec_env import VecEnv

from quicgym.agents.algorithms.stable_baselines3 import Sb3Trainer, settings_of
from quicgym.agents.algorithms.trainer import EpisodeTrainer, Trainer
from quicgym.agents.policies.architecture import Architecture
from quicgym.agents.policies.learned import LearnedPolicy, load_policy
from quicgym.agents.policies.networks import Actor, draw_weights
from quicgym.agents.training.configuration import ConfigError, TrainingConfig, training_names
from quicgym.envs.actions import choices
from quicgym.envs.batch import EpisodeBatch
from quicgym.envs.decisions import Decisions
from quicgym.envs.episodes import EpisodeSource
from quicgym.envs.ns3_workers import Ns3WorkerBatch
from quicgym.envs.registration import find_environment
from quicgym.envs.rewards import find_reward
from quicgym.envs.sb3 import AgentsMonitor, Sb3VecEnv
from quicgym.envs.scenarios.model import Scenario
from quicgym.envs.scenarios.suites import load_entry
from quicgym.envs.simulation.series import REWARD_INTERVAL_MS
from quicgym.envs.vector import CongestionControlVectorEnv, make_vec
from quicgym.validation import validated


def check_hyperparameters(config: TrainingConfig) -> BaseModel:
    """Returns the algorithm's settings; ConfigError where it does not take one."""
    found = config.entry.implementation_class
    if issubclass(found, EpisodeTrainer):
        settings = found.Settings
    else:
        settings = settings_of(found, config.entry.limits)
    expected = create_model("Training", hyperparameters=(settings, ...))
    given = {"hyperparameters": config.hyperparameters}
    checked: Any = validated(expected, given, config.name, ConfigError)
    return checked.hyperparameters


def make_trainer(config: TrainingConfig) -> Trainer:
    """Makes the algorithm with an untrained policy, which begins as `start` says.

    ConfigError where the algorithm refuses a setting, the scenario, or the policy to begin with.
    """
    settings = check_hyperparameters(config)
    if config.device.startswith("cuda") and not torch.cuda.is_available():
        raise ConfigError(f"device = {config.device!r}: PyTorch finds no GPU here; use auto or cpu")
    plays_episodes = issubclass(config.entry.implementation_class, EpisodeTrainer)
    simulations = make_batch(config) if plays_episodes else make_environments(config)
    try:
        if isinstance(simulations, EpisodeBatch):
            trainer: Trainer = _episode_trainer(config, simulations, settings)
        else:
            trainer = sb3_trainer(config, simulations, settings)
        _begin(trainer, config)
    except (TypeError, ValueError, AssertionError, RuntimeError, MemoryError) as error:
        simulations.close()
        raise ConfigError(f"{config.algorithm} refuses the configuration: {error}") from error
    return trainer


def make_batch(config: TrainingConfig) -> EpisodeBatch:
    """Makes the simulations for an algorithm that plays whole episodes."""
    environment, simulations = config.environment, config.environment.simulations
    source = EpisodeSource(
        environment.scenario,
        environment.engine,
        environment.decisions,
        every_flow=True,
    )
    settings: dict[str, Any] = {
        "reward": find_reward(environment.reward),
        "reward_per_flow": environment.reward_per_flow,
    }
    if environment.engine == "ns3":
        return Ns3WorkerBatch(source, simulations, on_worker_death="raise", **settings)
    threads = min(environment.threads or len(os.sched_getaffinity(0)), simulations)
    return EpisodeBatch(source, simulations, threads, **settings)


def make_environments(config: TrainingConfig) -> VecEnv:
    """Makes the environments for an algorithm of Stable-Baselines3.

    ConfigError where the algorithm cannot learn from the scenario.
    """
    environment = config.environment
    scenario = load_entry(environment.scenario)
    draws_agents = not isinstance(scenario, Scenario) and scenario.draws_agents
    if draws_agents and not issubclass(config.entry.implementation_class, OnPolicyAlgorithm):
        raise ConfigError(
            f"environment.scenario = {environment.scenario!r}: its paths have different numbers of "
            f"agents, and {config.algorithm} would learn from the rows that have none; use ppo, an "
            "algorithm that plays whole episodes (grpo, aggrevate, coordinate-aggrevate), a "
            "scenario, or a distribution without all_agents"
        )
    simulations = make_vec(
        environment.id,
        environment.simulations,
        autoreset_mode="same_step",
        per_flow=True,
        num_threads=environment.threads,
        engine=environment.engine,
        scenario=environment.scenario,
        **environment.decisions.arguments,
        reward=find_reward(environment.reward),
        reward_per_flow=environment.reward_per_flow,
    )
    assert isinstance(simulations, CongestionControlVectorEnv)
    privileged = config.network.privileged_critic
    rows = Sb3VecEnv(simulations, "ends", privileged=privileged, empty_rows=draws_agents)
    return AgentsMonitor(rows)


def _episode_trainer(
    config: TrainingConfig, batch: EpisodeBatch, settings: BaseModel
) -> EpisodeTrainer[Any]:
    torch.manual_seed(config.seed)
    actor = draw_weights(Actor(architecture_of(config), decisions_of(config)))
    critic = {"critic": architecture_of(config)} if config.network.privileged_critic else {}
    trainer: EpisodeTrainer[Any] = config.entry.implementation_class(
        batch,
        actor,
        settings,
        **critic,
        acts_in_slow_start=config.environment.environment.acts_in_slow_start,
        std=config.start.std or 1.0,
        device=config.device,
    )
    return trainer


def sb3_trainer(config: TrainingConfig, environments: VecEnv, settings: BaseModel) -> Sb3Trainer:
    """Makes an algorithm of Stable-Baselines3 on some environments, with an untrained policy."""
    return Sb3Trainer(
        config.entry,
        environments,
        architecture_of(config),
        decisions_of(config),
        {name: getattr(settings, name) for name in settings.model_fields_set},
        std=config.start.std,
        privileged_critic=config.network.privileged_critic,
        seed=config.seed,
        device=config.device,
    )


def _begin(trainer: Trainer, config: TrainingConfig) -> None:
    """Makes an untrained policy what `start` says."""
    start = config.start
    if start.policy is not None:
        trainer.begin_with(_first_policy(config, start.policy).actor, start.temperature)
    if start.preset is not None:
        environment = config.environment.environment
        trainer.begin_at(environment.preset_action(start.preset, **start.parameters))


def _first_policy(config: TrainingConfig, chosen: str) -> LearnedPolicy:
    """Loads `start.policy`, which has to fit what is trained."""
    missing = re.fullmatch(r"results/train/(.+)-seed(\d+)", chosen)
    if missing and missing[1] in training_names() and not Path(chosen).exists():
        first = f"quicgym train {missing[1]} seed={missing[2]}"
        raise ConfigError(f"start.policy = {chosen!r} is what `{first}` writes; run that first")
    policy: LearnedPolicy = load_policy(chosen)
    decisions, description = policy.decisions, policy.description
    assert description is not None
    if decisions.guard:
        raise ConfigError(
            f"start.policy = {chosen!r} has the guard, with which nothing is trained; begin with a "
            "copy whose JSON has no guard, and add it to that of the trained policy"
        )
    environment = (
        "decision_interval_ms", "decision_interval_rtts", "history_length", "observations",
        "controller",
    )  # fmt: skip
    network = ("extractor_sizes", "hidden_sizes", "activation")
    its_own = {
        "environment.id": find_environment(decisions.environment).id,
        **{f"environment.{name}": getattr(decisions, name) for name in environment},
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


def decisions_of(config: TrainingConfig) -> Decisions:
    """Returns what the trained policy decides, how often, and on what."""
    return replace(config.environment.decisions, reward_interval_ms=REWARD_INTERVAL_MS)


def architecture_of(config: TrainingConfig) -> Architecture:
    """Returns the network that a configuration trains."""
    network = config.network
    return Architecture(
        network.extractor_sizes,
        network.hidden_sizes,
        network.activation,
        "argmax" if choices(config.environment.id) else config.entry.output,
    )
