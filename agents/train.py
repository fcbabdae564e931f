"""Training: Stable-Baselines3 over the native vector environment, one policy for every flow.

At every evaluation a checkpoint is written, and all random generators and all simulations begin
anew from a seed that comes from the run's seed and the number of steps so far. So a checkpoint
needs no state of simulations, and a run that was killed and resumed ends with the very same weights
as one that was not.
"""

from __future__ import annotations

import inspect
import math
import os
import platform
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from stable_baselines3 import PPO, SAC, TD3
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import KVWriter, Logger
from stable_baselines3.common.noise import NormalActionNoise
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
from stable_baselines3.common.utils import LinearSchedule
from stable_baselines3.common.vec_env import VecEnv

from quicgym import __version__, _core
from quicgym.agents.advantage_regression import AdvantageRegression
from quicgym.agents.aggrevate import Aggrevate
from quicgym.agents.begun import fingerprint
from quicgym.agents.evaluation import evaluate_here
from quicgym.agents.grpo import Grpo
from quicgym.agents.learned import LearnedPolicy, load_policy, save_policy
from quicgym.agents.networks import Architecture
from quicgym.agents.policies import Decisions
from quicgym.agents.policy_iteration import DirectPolicyIteration
from quicgym.agents.rollout import METRICS, play_all
from quicgym.agents.sb3_policies import (
    PrivilegedCriticPolicy,
    begin_at,
    begin_with,
    export_policy,
    output_of,
    policy_arguments,
    prefer,
)
from quicgym.agents.statistics import interquartile_mean
from quicgym.agents.tensorboard import EvaluationWriter
from quicgym.agents.training_config import GRADIENT, ConfigError, TrainingConfig
from quicgym.agents.training_folder import RunFolder, read_checkpoint
from quicgym.console import say
from quicgym.controllers import switching_members
from quicgym.envs.actions import preset_action
from quicgym.envs.distributions import Distribution, SuiteEntry, episodes_of, load_suite
from quicgym.envs.registration import CLASSES
from quicgym.envs.rewards import Reward
from quicgym.envs.sb3 import Sb3VecEnv, make_sb3
from quicgym.envs.scenario import closest
from quicgym.errors import RunError, UserError

SB3S: dict[str, Any] = {"ppo": PPO, "sac": SAC, "td3": TD3}
"""The algorithms of Stable-Baselines3, which step the environments row by row."""
ALGORITHMS: dict[str, Any] = {
    **SB3S,
    "dpi": DirectPolicyIteration,
    "aggrevate": Aggrevate,
    "grpo": Grpo,
}
# What the configuration says in fields of its own, or what has no meaning here.
_TAKEN = frozenset(
    ("policy", "env", "policy_kwargs", "tensorboard_log", "verbose", "seed", "device")
    + ("stats_window_size", "_init_setup_model", "self", "action_noise", "replay_buffer_class")
    + ("replay_buffer_kwargs", "rollout_buffer_class", "rollout_buffer_kwargs", "use_sde")
)
# Of the numbers that Stable-Baselines3 does not check, or not before they do harm.
_LIMITS = {
    **dict.fromkeys(("gamma", "gae_lambda", "tau"), (0.0, 1.0)),
    **dict.fromkeys(("n_epochs", "n_steps", "batch_size", "buffer_size"), (1, math.inf)),
    **dict.fromkeys(("policy_delay", "target_update_interval"), (1, math.inf)),
    **dict.fromkeys(("learning_rate", "clip_range", "ent_coef", "vf_coef"), (0.0, math.inf)),
    **dict.fromkeys(("max_grad_norm", "learning_starts", "weight_decay"), (0.0, math.inf)),
}


class TrainingError(UserError):
    """Training cannot go on; what was reached is kept. The text says where, and what to do."""


def check_hyperparameters(config: TrainingConfig) -> None:
    """Raises ConfigError for a hyperparameter that the algorithm does not have or cannot take."""
    known = {
        name: parameter.default
        for name, parameter in inspect.signature(ALGORITHMS[config.algorithm]).parameters.items()
        if name not in _TAKEN
    }
    for name, value in config.hyperparameters.items():
        if name not in known:
            raise ConfigError(
                f"hyperparameters.{name}: {config.algorithm} has no such parameter; "
                f"{closest(name, list(known))}"
            )
        remedy = _remedy(name, value, known[name])
        if remedy:
            raise ConfigError(f"hyperparameters.{name} = {value!r}: give {remedy}")


def _remedy(name: str, value: Any, default: Any) -> str:
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
    least, most = _LIMITS.get(name, (-math.inf, math.inf))
    if not is_number or least <= value <= most:
        return ""
    return f"{least:g} or more" if most == math.inf else f"a number from {least:g} to {most:g}"


def train(
    config: TrainingConfig,
    directory: Path,
    command: str,
    *,
    resume: bool = False,
    checkpoint: Path | None = None,
    on_evaluation: Callable[[int, float, Path], None] | None = None,
) -> float:
    """Trains a policy, with a progress bar on standard error.

    Args:
        config: What to train.
        directory: Of the run.
        command: The command line, to be kept with the run.
        resume: Go on from the newest checkpoint in `directory`.
        checkpoint: Of another run, with the same network: the new run begins there.
        on_evaluation: Called after each evaluation with the step, the interquartile mean reward
            and the checkpoint's path.

    Returns:
        The best policy's interquartile mean reward on the evaluation's suite.

    Raises:
        ConfigError: A hyperparameter does not exist, or is not valid.
        RunError: The folder holds another run, or nothing to resume.
        ScenarioError: The scenario or the suite is not valid.
        TrainingError: The loss is no number, or a checkpoint cannot be written.
    """
    check_hyperparameters(config)
    folder = RunFolder(directory)
    entries = load_suite(config.evaluation.suite)
    suite = episodes_of(entries, config.evaluation.seeds)
    environments = make_environments(config)
    try:
        model = make_model(config, environments)
        inputs = {
            "environment.scenario": fingerprint([_scenario_of(environments)]),
            "evaluation.suite": fingerprint(entries),
        }
        state = _open(folder, config, inputs, command, resume)
        if checkpoint is not None:
            state = read_checkpoint(checkpoint)
        training = _Training(config, folder, environments, suite, command, on_evaluation)
        training.model = model
        if state is not None:
            training.restore(model, state)
        _learn(model, config, training)
        return training.best_reward
    finally:
        environments.close()


def _open(
    folder: RunFolder,
    config: TrainingConfig,
    inputs: Mapping[str, str],
    command: str,
    resume: bool,
) -> dict[str, Any] | None:
    """Prepares the folder; returns the checkpoint to go on from."""
    fields = config.model_dump(mode="json")
    if not resume:
        _begin_folder(folder, config, fields, inputs, command)
        return None
    description = folder.description()
    _check_same(folder, config, fields, inputs, description)
    folder.describe(
        {
            **description,
            "config": fields,
            "resumed": [*description.get("resumed", []), command],
        }
    )
    state = folder.load_checkpoint()
    if state is None:
        say(f"{folder.directory}: has no checkpoint yet; training begins at step 0")
    return state


def _begin_folder(
    folder: RunFolder,
    config: TrainingConfig,
    fields: Mapping[str, Any],
    inputs: Mapping[str, str],
    command: str,
) -> None:
    if folder.directory.exists() and not folder.directory.is_dir():
        raise RunError(f"{folder.directory}: is a file; give a folder with --out")
    if folder.directory.exists() and any(folder.directory.iterdir()):
        raise RunError(
            f"{folder.directory}: is not empty; go on with the run in it with --resume, or "
            "give another folder with --out"
        )
    try:
        folder.describe(
            {
                "format": "quicgym-run-1",
                "kind": "training",
                "name": config.name,
                "command": command,
                "config": fields,
                "seed": config.seed,
                "inputs": inputs,
                "version": __version__,
                "commit": _core.commit,
                "python": platform.python_version(),
                "torch": torch.__version__,
                "started": datetime.now(UTC).isoformat(timespec="seconds"),
            }
        )
    except OSError as error:
        raise RunError(
            f"{folder.directory}: cannot be written to ({error.strerror}); "
            "give another folder with --out"
        ) from None


def _check_same(
    folder: RunFolder,
    config: TrainingConfig,
    fields: Mapping[str, Any],
    inputs: Mapping[str, str],
    description: Mapping[str, Any],
) -> None:
    """Raises RunError where the folder's run is not the one to go on with."""
    stored = description["config"]
    differing = [
        f"{name} = {value!r}, there {stored.get(name)!r}"
        for name, value in fields.items()
        if stored.get(name) != value and name != "steps"
    ]
    if differing:
        raise RunError(
            f"{folder.directory}: holds another run ({'; '.join(differing)}); resume with its own "
            "configuration, or give another folder with --out"
        )
    for name, identity in description.get("inputs", {}).items():
        if inputs.get(name) != identity:
            part, attribute = name.split(".")
            raise RunError(
                f"{folder.directory}: its {name} {getattr(getattr(config, part), attribute)!r} is "
                "not what it was when the run began; restore it, or begin anew with --out"
            )
    if config.steps < stored["steps"]:
        raise RunError(
            f"{folder.directory}: steps = {config.steps:,}, there {stored['steps']:,}: a run can "
            "only be made longer"
        )
    if description["commit"] != _core.commit:
        say(
            f"note: {folder.directory} was begun with the commit {description['commit']}, this is "
            f"{_core.commit}: it may not end as it would have"
        )


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
        **decisions_of(config).arguments,
        reward_interval_ms=environment.reward_interval_ms,
        reward=environment.reward,
        reward_per_flow=environment.reward_per_flow,
    )
    if config.algorithm in SB3S and _draws_agents(environments):
        environments.close()
        raise ConfigError(
            f"environment.scenario = {environment.scenario!r}: its paths have different numbers of "
            f"agents, and {config.algorithm} would learn from the rows that have none; use dpi, or "
            "a scenario, or a distribution without all_agents"
        )
    return environments


def _draws_agents(environments: Sb3VecEnv) -> bool:
    scenario = _scenario_of(environments)
    return isinstance(scenario, Distribution) and scenario.all_agents > 0


def _scenario_of(environments: Sb3VecEnv) -> SuiteEntry:
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
    if config.algorithm == "td3" and config.start.std is not None:
        mean = np.zeros(environments.action_space.shape or ())
        arguments["action_noise"] = NormalActionNoise(mean, mean + config.start.std)
    try:
        model: BaseAlgorithm = ALGORITHMS[config.algorithm](
            PrivilegedCriticPolicy if config.network.privileged_critic else "MlpPolicy",
            environments,
            policy_kwargs=policy_arguments(
                config.algorithm,
                architecture_of(config),
                config.environment.history_length,
                config.start.std if config.algorithm in GRADIENT else None,
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
    if isinstance(model, DirectPolicyIteration):
        model.prefer(start.preset)
    elif config.environment.id == "quicgym/Switch-v0":
        prefer(model, switching_members().index(start.preset))
    else:
        begin_at(model, preset_action(start.preset, **start.parameters), config.algorithm)


def _first_policy(config: TrainingConfig, chosen: str) -> LearnedPolicy:
    """Loads `start.policy`, which has to fit what is trained."""
    policy: LearnedPolicy = load_policy(chosen)
    description = policy.description
    assert description is not None
    environment = ("decision_interval_ms", "decision_interval_rtts", "history_length")
    network = ("extractor", "extractor_sizes", "hidden_sizes", "activation")
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
        CLASSES[environment.id].kind,
        environment.decision_interval_ms,
        environment.decision_interval_rtts,
        environment.history_length,
    )


def architecture_of(config: TrainingConfig) -> Architecture:
    """Returns the network that a configuration trains."""
    network = config.network
    return Architecture(
        network.extractor,
        network.extractor_sizes,
        network.hidden_sizes,
        network.activation,
        output_of(config.algorithm, CLASSES[config.environment.id].kind),
    )


def _learn(model: BaseAlgorithm, config: TrainingConfig, training: _Training) -> None:
    remaining = config.steps - model.num_timesteps
    try:
        with training:
            if remaining > 0:
                model.learn(remaining, callback=training, reset_num_timesteps=False)
            training.finish()
    except ValueError as error:
        # PyTorch's distributions refuse what a network gives that is no longer finite.
        if "Expected parameter" not in str(error):
            raise
        training.check_finite()
        raise training.not_finite("the network's output is not finite") from error
    except OSError as error:
        raise training.not_written(error) from error


@dataclass
class _Best:
    """The best policy so far."""

    reward: float = -math.inf
    step: int = 0
    weights: dict[str, torch.Tensor] = field(default_factory=dict)


class _Training(BaseCallback):
    """Between rollouts: progress, evaluation, checkpoints, and a new start of all randomness."""

    def __init__(
        self,
        config: TrainingConfig,
        folder: RunFolder,
        environments: Sb3VecEnv,
        suite: list[tuple[Any, int]],
        command: str,
        on_evaluation: Callable[[int, float, Path], None] | None,
    ) -> None:
        super().__init__()
        self._on_evaluation = on_evaluation
        self._config = config
        self._folder = folder
        self._environments = environments
        self._suite = suite
        self._command = command
        self._best = _Best()
        self._records: list[dict[str, Any]] = []
        self._earned: list[float] = []
        self._next_evaluation = 0
        self._evaluated_at = -1
        self._resumed_at: int | None = None
        self._console = Console(stderr=True)
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.completed:,} of {task.total:,} steps"),
            TextColumn("{task.fields[rate]}"),
            TimeRemainingColumn(),
            console=self._console,
            disable=not self._console.is_terminal,
        )
        self._task = self._progress.add_task(config.name, total=config.steps, rate="")

    @property
    def best_reward(self) -> float:
        """Of the best policy on the suite."""
        return self._best.reward

    def __enter__(self) -> _Training:
        self._begin_time, self._begin_step = time.monotonic(), self._resumed_at or 0
        self._torch_threads = torch.get_num_threads()
        purge = None if self._resumed_at is None else self._resumed_at + 1
        self._writer = EvaluationWriter(self._folder.tensorboard, purge_step=purge)
        self._progress.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._progress.stop()
        self._writer.close()
        torch.set_num_threads(self._torch_threads)

    def restore(self, model: BaseAlgorithm, state: Mapping[str, Any]) -> None:
        """Puts a model where a checkpoint was taken."""
        model.set_parameters(state["parameters"], exact_match=True, device=model.device)
        with torch.no_grad():
            for name, variable in _variables(model).items():
                variable.copy_(state["variables"][name])
        model.num_timesteps = self._resumed_at = state["step"]
        model._n_updates = state["updates"]
        if isinstance(model, OffPolicyAlgorithm):
            _restore_replay(model, state["replay"])
        if isinstance(model, AdvantageRegression):
            model.observations, model.advantages = state["comparisons"]
        self._best = _Best(**state["best"])
        self._records = [
            record for record in self._folder.evaluations() if record["step"] <= state["step"]
        ]
        self._next_evaluation = self._evaluated_at = state["step"]
        say(f"{self._folder.directory}: going on from step {state['step']:,}")

    def _init_callback(self) -> None:
        self.model.set_logger(Logger(folder=None, output_formats=[_ScalarWriter(self._writer)]))

    def _on_rollout_start(self) -> None:
        # A rollout's small batches gain nothing by threads, which wait where simulations could run.
        torch.set_num_threads(1)
        if self._broken_losses():
            self.check_finite()
        step = self.num_timesteps
        self._progress.update(self._task, completed=step, rate=self._rate())
        self._set_std(step)
        if step < self._next_evaluation:
            return
        if step > self._evaluated_at:
            self._keep()
        self._next_evaluation = step + self._config.evaluation.interval_steps
        self._begin_anew(step)

    def _set_std(self, step: int) -> None:
        start = self._config.start
        if start.std is None or start.final_std is None:
            return
        share = min(1.0, step / self._config.steps)
        policy: Any = self.model.policy
        policy.log_std.requires_grad_(False)
        policy.log_std.fill_(math.log(start.std) + share * math.log(start.final_std / start.std))

    def _on_rollout_end(self) -> None:
        torch.set_num_threads(self._torch_threads)
        if self._earned:
            self.logger.record("rollout/reward", float(np.mean(self._earned)))
            self._earned.clear()
        self.logger.record("time/steps_per_second", self._steps_per_second())

    def _on_step(self) -> bool:
        # The rollout's buffer has more: PPO adds to an episode's end the value of what follows.
        self._earned.append(float(self.locals["rewards"].mean()))
        return True

    def finish(self) -> None:
        """Evaluates and keeps what the last rollouts have taught."""
        if self.model is not None and self.num_timesteps > self._evaluated_at:
            self._keep()
            self.logger.dump(self.num_timesteps)  # what the last update has recorded
        self._progress.update(self._task, completed=self._config.steps)
        evaluate_here(
            self._publish(),
            self._config.evaluation.suite,
            self._config.evaluation.seeds,
            self._folder.evaluation,
            reward=Reward(self._config.environment.reward),
            threads=self._threads(),
            command=self._command,
        )

    def check_finite(self) -> None:
        """Raises TrainingError where the last update has left something that is no number."""
        broken = self._broken_losses()
        if not all(torch.isfinite(weight).all() for weight in self.model.policy.parameters()):
            broken.append("the network's weights are not finite")
        if broken:
            raise self.not_finite("; ".join(broken))

    def _broken_losses(self) -> list[str]:
        return [
            f"{name} is {value}"
            for name, value in self.logger.name_to_value.items()
            if name.startswith("train/") and "loss" in name and not np.isfinite(value)
        ]

    def not_finite(self, what: str) -> TrainingError:
        """Returns the error for numbers that are none."""
        return TrainingError(
            f"step {self.model.num_timesteps:,}: {what}. Training stops; "
            f"{self._last_checkpoint()}. Lower hyperparameters.learning_rate"
        )

    def not_written(self, error: OSError) -> TrainingError:
        """Returns the error for a disk that is full, or worse."""
        return TrainingError(
            f"step {self.model.num_timesteps:,}: {self._folder.directory} cannot be written to "
            f"({error.strerror or error}). Training stops; {self._last_checkpoint()}. "
            "Make room and go on with --resume"
        )

    def _last_checkpoint(self) -> str:
        checkpoints = self._folder.checkpoints()
        return (
            f"the last checkpoint is {checkpoints[-1]}" if checkpoints else "there is no checkpoint"
        )

    def _keep(self) -> None:
        """Evaluates, keeps the best policy, and writes a checkpoint."""
        self.check_finite()
        step = self.num_timesteps
        policy = self._policy()
        reward = Reward(self._config.environment.reward)
        episodes = play_all(policy, self._suite, threads=self._threads(), reward=reward)
        records = [
            {
                "step": step,
                "scenario": scenario.name,
                "seed": seed,
                **{name: episode.metrics[name] for name in METRICS},
            }
            for (scenario, seed), episode in zip(self._suite, episodes, strict=True)
        ]
        self._records += records
        result = float(interquartile_mean(np.array([record["reward"] for record in records])))
        if result > self._best.reward:
            self._best = _Best(result, step, policy.actor.state_dict())
        self._writer.evaluation(step, records)
        self._folder.write_evaluations(self._records)
        self._publish()
        # Last, because what a checkpoint promises has to be there.
        checkpoint = self._folder.save_checkpoint(step, self._state())
        self._evaluated_at = step
        self._console.print(
            f"step {step:>12,}  reward {result:.4f} on {self._config.evaluation.suite} "
            f"(best {self._best.reward:.4f})  {self._rate()}",
            highlight=False,
        )
        if self._on_evaluation is not None:
            self._on_evaluation(step, result, checkpoint)

    def _state(self) -> dict[str, Any]:
        state = {
            "step": self.num_timesteps,
            "updates": self.model._n_updates,
            "parameters": self.model.get_parameters(),
            "variables": {name: value.detach() for name, value in _variables(self.model).items()},
            "best": dict(self._best.__dict__),
        }
        if isinstance(self.model, OffPolicyAlgorithm):
            state["replay"] = _replay(self.model)
        if isinstance(self.model, AdvantageRegression):
            state["comparisons"] = [self.model.observations, self.model.advantages]
        return state

    def _threads(self) -> int:
        return self._config.environment.threads or len(os.sched_getaffinity(0))

    def _publish(self) -> LearnedPolicy:
        """Writes the best policy, and returns it."""
        policy = self._policy()
        policy.actor.load_state_dict(self._best.weights)
        save_policy(
            self._folder.policy_path,
            policy,
            architecture_of(self._config),
            {
                "command": self._command,
                "config": self._config.model_dump(mode="json"),
                "seed": self._config.seed,
                "step": self._best.step,
                "reward": self._best.reward,
                "version": __version__,
                "commit": _core.commit,
            },
        )
        return policy

    def _policy(self) -> LearnedPolicy:
        config = self._config
        return export_policy(self.model, config.name, architecture_of(config), decisions_of(config))

    def _begin_anew(self, step: int) -> None:
        """Seeds everything random from the run's seed and the step."""
        words = np.random.SeedSequence([self._config.seed, step]).generate_state(4)
        seeds = [int(word) for word in words]
        random.seed(seeds[0])
        np.random.seed(seeds[1])
        torch.manual_seed(seeds[2])
        model: Any = self.model
        model.action_space.seed(seeds[2])
        self._environments.seed(seeds[3])
        model._last_obs = self._environments.reset()
        model._last_episode_starts = np.ones(self._environments.num_envs, dtype=bool)

    def _steps_per_second(self) -> float:
        elapsed = time.monotonic() - self._begin_time
        return (self.num_timesteps - self._begin_step) / max(elapsed, 1e-9)

    def _rate(self) -> str:
        rate = self._steps_per_second()
        return f"{rate:,.0f} steps/s" if rate > 0 else ""


class _ScalarWriter(KVWriter):
    """Stable-Baselines3's records into our event file."""

    def __init__(self, writer: EvaluationWriter) -> None:
        self._writer = writer

    def write(self, key_values: dict[str, Any], key_excluded: Any, step: int = 0) -> None:
        values = {name: float(value) for name, value in key_values.items()}
        ours = ("time/steps_per_second",)
        self._writer.scalars(
            step,
            {
                name: value
                for name, value in values.items()
                if name in ours or not name.startswith("time/")
            },
        )

    def close(self) -> None:
        pass


def _variables(model: BaseAlgorithm) -> dict[str, torch.Tensor]:
    """What is learned outside of networks: the logarithm of SAC's entropy coefficient."""
    _, names = model._get_torch_save_params()
    return {name: getattr(model, name) for name in names}


_REPLAY = ("observations", "next_observations", "actions", "rewards", "dones", "timeouts")


def _replay(model: OffPolicyAlgorithm) -> dict[str, Any]:
    buffer: Any = model.replay_buffer
    filled = buffer.buffer_size if buffer.full else buffer.pos
    arrays = {name: torch.from_numpy(getattr(buffer, name)[:filled]) for name in _REPLAY}
    return {**arrays, "position": buffer.pos, "full": buffer.full}


def _restore_replay(model: OffPolicyAlgorithm, state: Mapping[str, Any]) -> None:
    buffer: Any = model.replay_buffer
    for name in _REPLAY:
        array = state[name].numpy()
        getattr(buffer, name)[: len(array)] = array
    buffer.pos, buffer.full = state["position"], state["full"]
