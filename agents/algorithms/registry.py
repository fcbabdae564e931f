"""The training algorithms by name: quicgym's own, Stable-Baselines3's, and those of other packages.

To add one to quicgym, write its file in this folder and its entry in BUILT_IN. A package adds one
by an entry point of the group `quicgym.algorithms`, whose value is an `Algorithm`;
docs/how-to/training.md shows how. Nothing here imports PyTorch: configurations are read without it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from importlib.metadata import EntryPoint
from typing import Any, Literal

from quicgym import plugins
from quicgym.errors import UserError
from quicgym.yaml_files import closest

LEARNING_RATES = (0.0, 1e30)
"""PyTorch's optimizers fail where a step's size is no float of 32 bits."""

_NOT_NEGATIVE, _COUNT = (0.0, math.inf), (1.0, math.inf)
LIMITS: Mapping[str, tuple[float, float]] = {
    **dict.fromkeys(("gamma", "gae_lambda", "tau"), (0.0, 1.0)),
    **dict.fromkeys(("exploration_initial_eps", "exploration_final_eps"), (0.0, 1.0)),
    **dict.fromkeys(("n_epochs", "n_steps", "batch_size", "buffer_size"), _COUNT),
    **dict.fromkeys(("policy_delay", "target_update_interval"), _COUNT),
    "learning_rate": LEARNING_RATES,
    **dict.fromkeys(("clip_range", "ent_coef", "vf_coef"), _NOT_NEGATIVE),
    **dict.fromkeys(("max_grad_norm", "learning_starts", "weight_decay"), _NOT_NEGATIVE),
    **dict.fromkeys(("clip_range_vf", "target_kl"), _NOT_NEGATIVE),
}
"""Ranges of the numbers that Stable-Baselines3 does not check, or not before they do harm."""


@dataclass(frozen=True, kw_only=True)
class Algorithm:
    """Describes a training algorithm to quicgym; everything else is in its class.

    The class is a subclass of `EpisodeTrainer` (agents/algorithms/trainer.py), or has the interface
    of Stable-Baselines3's `BaseAlgorithm` and a policy that is one of theirs: ActorCriticPolicy,
    SACPolicy, TD3Policy or DQNPolicy.

    Attributes:
        name: The value of the field `algorithm` of a configuration.
        implementation: The class, or "module:class", which is imported when training begins.
        environments: The ids that it can train on; None: all.
        action_spaces: The kinds of actions that it can learn.
        output: How the published network makes actions in a Box of its outputs: it clips them to
            [-1, 1], or takes their tanh. For choices it takes the largest output.
        stochastic: Whether the policy draws actions in training, from a distribution around the
            network's outputs. `start.std` is its first standard deviation.
        continues: Whether `start.policy` can give its first weights.
        mutable: Hyperparameters that may change during a run.
        action_noise: The class of Stable-Baselines3 takes `action_noise`, with the standard
            deviation `start.std`.
        critic: The key of the critic's layers in `net_arch` of Stable-Baselines3; None: it has no
            network but the policy's.
        privileged_critic: The critic can see what only the network knows.
        limits: Lowest and highest value of arguments of a class of Stable-Baselines3.
        state: Attributes of a class of Stable-Baselines3, tensors or numbers, that a checkpoint
            needs besides `get_parameters()`.
    """

    name: str
    implementation: str | type
    environments: tuple[str, ...] | None = None
    action_spaces: tuple[Literal["box", "discrete"], ...] = ("box", "discrete")
    output: Literal["clip", "tanh"] = "clip"
    stochastic: bool = False
    continues: bool = False
    mutable: tuple[str, ...] = ()
    action_noise: bool = False
    critic: Literal["vf", "qf"] | None = "vf"
    privileged_critic: bool = False
    limits: Mapping[str, tuple[float, float]] = field(default_factory=lambda: LIMITS)
    state: tuple[str, ...] = ()

    @property
    def implementation_class(self) -> Any:
        """The class, imported where `implementation` is its path; UserError where it is wrong."""
        if not isinstance(self.implementation, str):
            return self.implementation
        module, _, attribute = self.implementation.partition(":")
        try:
            return getattr(import_module(module), attribute)
        except (ImportError, AttributeError) as error:
            if isinstance(error, UserError):  # of a missing extra
                raise
            raise UserError(f"algorithm {self.name!r}: {self.implementation}: {error}") from error


BUILT_IN: Mapping[str, Algorithm] = {
    algorithm.name: algorithm
    for algorithm in (
        Algorithm(
            name="ppo",
            implementation="stable_baselines3:PPO",
            stochastic=True,
            continues=True,
            privileged_critic=True,
            mutable=("learning_rate", "batch_size", "n_epochs", "gamma", "gae_lambda", "clip_range")
            + ("ent_coef", "vf_coef", "max_grad_norm", "target_kl"),
        ),
        Algorithm(
            name="sac",
            implementation="stable_baselines3:SAC",
            action_spaces=("box",),
            output="tanh",
            critic="qf",
            mutable=("learning_rate", "batch_size", "gamma", "tau", "gradient_steps"),
            state=("log_ent_coef",),
        ),
        Algorithm(
            name="td3",
            implementation="stable_baselines3:TD3",
            action_spaces=("box",),
            output="tanh",
            action_noise=True,
            critic="qf",
            mutable=("learning_rate", "batch_size", "gamma", "tau", "gradient_steps")
            + ("policy_delay", "target_policy_noise", "target_noise_clip"),
        ),
        Algorithm(
            name="dqn",
            implementation="stable_baselines3:DQN",
            action_spaces=("discrete",),
            critic=None,
            mutable=("learning_rate", "batch_size", "gamma", "tau", "gradient_steps"),
            state=("_n_calls", "exploration_rate"),  # the first counts to the target's next update
        ),
        Algorithm(
            name="aggrevate",
            implementation="quicgym.agents.algorithms.window_aggrevate:WindowAggrevate",
            environments=("quicgym/Window-v1",),
            action_spaces=("discrete",),
            mutable=("learning_rate", "paths", "rollouts", "hold", "exploration", "keep_fraction")
            + ("n_updates", "batch_size"),
        ),
        Algorithm(
            name="coordinate-aggrevate",
            implementation="quicgym.agents.algorithms.coordinate_aggrevate:CoordinateAggrevate",
            action_spaces=("box",),
            continues=True,
            mutable=("learning_rate", "paths", "rollouts", "exploration", "keep_fraction")
            + ("n_updates", "batch_size"),
        ),
        Algorithm(
            name="grpo",
            implementation="quicgym.agents.algorithms.grpo:Grpo",
            stochastic=True,
            continues=True,
            privileged_critic=True,
            mutable=("learning_rate", "paths", "replays", "gamma", "gae_lambda", "n_epochs")
            + ("batch_size", "clip_range", "ent_coef"),
        ),
    )
}


TEMPERATURE = 0.005
"""Divisor that turns predicted differences of rewards into logits, from which choices are drawn.

A choice that is predicted to earn 0.005 less is then drawn e times less often.
"""


def temperature_of(training: Mapping[str, Any], output: str) -> float:
    """Returns what a policy's outputs are divided by to be the logits of its choices.

    `training` is how the policy was trained, from its description. The outputs of algorithms that
    draw choices from them are logits already; the others predict what each choice earns.
    """
    algorithm = training.get("config", {}).get("algorithm")
    if output != "argmax" or algorithm is None or find(algorithm).stochastic:
        return 1.0
    return TEMPERATURE


def registered() -> Mapping[str, tuple[EntryPoint, ...]]:
    """Returns the entry points of installed packages by name, without importing any.

    A name in BUILT_IN keeps its meaning: such an entry point is left out with a RuntimeWarning.
    """
    return plugins.registered("algorithm", tuple(BUILT_IN))


def names() -> list[str]:
    """Returns the names of all algorithms: quicgym's own, then the registered ones."""
    return [*BUILT_IN, *registered()]


def find(name: str) -> Algorithm:
    """Returns an algorithm by its name, a package's imported; ValueError says why not."""
    if name in BUILT_IN:
        return BUILT_IN[name]
    if name not in registered():
        raise ValueError(f"is no algorithm; {closest(name, names())}")

    def check(algorithm: object) -> Algorithm:
        if not isinstance(algorithm, Algorithm) or algorithm.name != name:
            raise TypeError(f"has to be an Algorithm with the name {name!r}")
        return algorithm

    try:
        algorithm: Algorithm = plugins.load("algorithm", name, check)
    except plugins.PluginError as error:
        raise ValueError(str(error)) from error
    return algorithm
