"""Stable-Baselines3 in one's own code: a callback that compares, and published policies as models.

quicgym.envs.sb3 has the environments.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from quicgym.errors import MissingExtraError, PolicyError, UserError

try:
    from stable_baselines3 import PPO
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.vec_env import VecEnv
except ImportError as error:
    raise MissingExtraError("quicgym.agents.sb3 needs Stable-Baselines3") from error

from quicgym.agents.algorithms import registry
from quicgym.agents.algorithms.stable_baselines3 import give_weights, policy_arguments
from quicgym.agents.evaluation.rollouts import play_all
from quicgym.agents.evaluation.statistics import Estimate, mean_difference
from quicgym.agents.policies.by_name import find_policy
from quicgym.agents.policies.learned import LearnedPolicy, Sb3Policy, load_policy
from quicgym.agents.policies.networks import begin_with
from quicgym.agents.policies.policy import Policy
from quicgym.envs.decisions import Decisions
from quicgym.envs.sb3 import Sb3VecEnv, refuse_wrappers, save
from quicgym.envs.scenarios.suites import (
    SELECTION_SEED,
    episodes_of,
    load_suite,
    parts_of,
    refuse_held_out,
)
from quicgym.envs.simulation.series import REWARD_INTERVAL_MS

CONTROLLERS = ("bbr", "bbr3", "bbr-extended", "cubic", "ibcca")
"""The hand-coded controllers that a model is compared with unless others are given."""


class PairedDifference(BaseCallback):
    """Logs what a model earns minus what hand-coded controllers earn on the same paths.

    Nearly all of the variance of returns belongs to the path, so a curve of differences shows
    learning long before a curve of returns does. The model acts without exploration. `every` steps,
    and before and after training, these are logged:

    | tag                                                | value                                  |
    |----------------------------------------------------|----------------------------------------|
    | `paired/minus_NAME`                                | mean reward of the model minus that of the first controller, such as `paired/minus_bbr` |
    | `paired/minus_best`                                | the same for the controller with the highest mean reward on these paths |
    | `paired/minus_NAME_low`, `paired/minus_NAME_high`  | ends of the 95% interval, Student's t over paths |

    Args:
        suite: Suite, scenario or distribution, by name or path; not one that is held out.
        paths: Number of seeds of each entry, from 3,000,000 on: `quicgym evaluate` begins at 0, so
            that it measures the model on other paths than those by which you choose it.
        every: Steps of all rows together between two comparisons.
        controllers: Controllers, as `quicgym evaluate --policy` takes them, the first for the tag.
        save_best: Path of a file, such as "best.zip", in which `quicgym.envs.sb3.save` keeps the
            model of the largest difference to the first controller; None: the best one is not kept.
        verbose: 1 prints a line for each comparison.

    Attributes:
        best: The name of the best controller; "" before training.
        best_step: The step of the model with the largest difference so far.
        history: Step and both differences of each comparison.

    Raises:
        UserError: The suite is held out, or `controllers` is empty.
        ValueError: When training starts: the environments are not those of `make_sb3`, or have a
            wrapper of your own.

    Example:
        model.learn(500_000, callback=PairedDifference("training-50", save_best="best.zip"))
    """  # noqa: E501 (the table)

    def __init__(
        self,
        suite: str = "training-50",
        *,
        paths: int = 256,
        every: int = 50_000,
        controllers: Sequence[str] = CONTROLLERS,
        save_best: str | Path | None = None,
        verbose: int = 1,
    ) -> None:
        """Loads the paths; the controllers are measured when training starts."""
        super().__init__(verbose)
        refuse_held_out("suite", suite, UserError)
        if not controllers:
            raise UserError("controllers = (): give at least one, such as 'bbr'")
        self._entries = parts_of(load_suite(suite))
        self._suite, self._paths, self._every = suite, paths, every
        self._controllers = tuple(controllers)
        self._others: dict[str, np.ndarray] = {}
        self._save_best = save_best
        self.best, self.best_step = "", 0
        self.history: list[tuple[int, Estimate, Estimate]] = []

    def _on_training_start(self) -> None:
        refuse_wrappers("PairedDifference", self.training_env)
        self._next = self.num_timesteps
        if self._others:  # `learn` is called again
            return
        self._others = {name: self._rewards(find_policy(name)) for name in self._controllers}
        self.best = max(self._others, key=lambda name: float(self._others[name].mean()))

    def _on_rollout_start(self) -> None:
        if self.num_timesteps >= self._next:
            self._compare()
            self._next = self.num_timesteps + self._every

    def _on_step(self) -> bool:
        return True

    def _on_training_end(self) -> None:
        self._compare()

    def _compare(self) -> None:
        decisions = self._environments().environments.batch.source.decisions
        policy = Sb3Policy("model", decisions, self.model, self.model.get_vec_normalize_env())
        own = self._rewards(policy)
        first = self._controllers[0]
        differences = {
            first: mean_difference(own, self._others[first]),
            "best": mean_difference(own, self._others[self.best]),
        }
        for name, difference in differences.items():
            self.logger.record(f"paired/minus_{name}", difference.value)
            if difference.low is not None and difference.high is not None:
                self.logger.record(f"paired/minus_{name}_low", difference.low)
                self.logger.record(f"paired/minus_{name}_high", difference.high)
        self.logger.dump(self.num_timesteps)
        if all(differences[first].value > earlier.value for _, earlier, _ in self.history):
            self.best_step = self.num_timesteps
            if self._save_best is not None:
                save(self.model, self._save_best)
        self.history.append((self.num_timesteps, differences[first], differences["best"]))
        if self.verbose:
            print(
                f"step {self.num_timesteps:>9,}  reward {own.mean():.4f} on {self._suite}, minus "
                f"{first} {_words(differences[first])}, minus {self.best} "
                f"{_words(differences['best'])}",
                flush=True,
            )

    def _environments(self) -> Sb3VecEnv:
        return _of_quicgym("PairedDifference", self.training_env)

    def _rewards(self, policy: Policy) -> np.ndarray:
        """Returns mean rewards by entry and seed, with the agents and the reward of training."""
        batch = self._environments().environments.batch
        made_with = batch.source.arguments
        cells = episodes_of(self._entries, self._paths, SELECTION_SEED)
        if made_with["flow"] is not None:
            raise ValueError(
                f"PairedDifference: flow = {made_with['flow']!r}: the policy has the flows that "
                "name no controller; leave flow out, and name the controllers of the others"
            )
        if not made_with["per_flow"]:
            others = made_with["other_controllers"]
            cells = [(scenario.with_one_open_flow(others), seed) for scenario, seed in cells]
        threads = len(os.sched_getaffinity(0))
        played = play_all(policy, cells, threads=threads, reward=batch.reward)
        rewards: list[Any] = [run.evaluation["reward"] for run in played]
        return np.array(rewards, dtype=float).reshape(len(self._entries), self._paths)


def _words(difference: Estimate) -> str:
    if difference.low is None:
        return f"{difference.value:+.4f}"
    return f"{difference.value:+.4f} [{difference.low:+.4f}, {difference.high:+.4f}]"


def ppo_of(
    policy: LearnedPolicy | str | Path,
    environments: VecEnv,
    *,
    std: float = 0.1,
    **arguments: Any,
) -> PPO:
    """Makes a PPO whose policy is a published one, to train it further in one's own code.

    The model has the policy's network and weights, and an untrained critic.

    Args:
        policy: The policy, or what `quicgym.load_policy` takes.
        environments: Environments of `make_sb3` with the policy's `decisions.arguments`.
        std: Standard deviation of the exploration at first, in units of a Box of actions.
        **arguments: Arguments of Stable-Baselines3's PPO, but for `policy` and `policy_kwargs`.

    Raises:
        PolicyError: There is no such policy, its environment is another one, or PPO cannot have its
            network.
        ValueError: The environments are not those of `make_sb3`.

    Example:
        policy = quicgym.load_policy("window")
        environments = make_sb3(
            policy.decisions.environment, 64, scenario="worlds", **policy.decisions.arguments
        )
        model = ppo_of(policy, environments, learning_rate=1e-5)
        model.learn(1_000_000)
        save(model, "mine.zip")
    """
    if not isinstance(policy, LearnedPolicy):
        policy = load_policy(policy)
    assert isinstance(policy, LearnedPolicy)
    description = policy.description
    if description is None or description.architecture.output == "tanh":
        raise PolicyError(
            f"{policy.name}: its network ends in tanh, which PPO's has not; take a policy that "
            "was not trained by SAC or TD3"
            if description
            else f"{policy.name}: has no description; load it by quicgym.load_policy"
        )
    decisions = _of_quicgym("ppo_of", environments).environments.batch.source.decisions
    if _what_is_learned(decisions) != _what_is_learned(policy.decisions):
        raise PolicyError(
            f"{policy.name}: was trained for {_what_is_learned(policy.decisions)}, and the "
            f"environments are for {_what_is_learned(decisions)}; make them by make_sb3("
            f"{policy.decisions.environment!r}, 64, **policy.decisions.arguments)"
        )
    algorithm, architecture = registry.find("ppo"), description.architecture
    own_std = None if architecture.output == "argmax" else std
    kwargs = policy_arguments(algorithm, architecture, own_std)
    model = PPO("MlpPolicy", environments, policy_kwargs=kwargs, **arguments)
    actor = copy.deepcopy(policy.actor)
    begin_with(actor, actor, registry.temperature_of(description.training, architecture.output))
    give_weights(model.policy, actor)
    return model


def _of_quicgym(who: str, environments: VecEnv) -> Sb3VecEnv:
    inner = environments.unwrapped
    if not isinstance(inner, Sb3VecEnv):
        raise ValueError(
            f"{who}: the environments are {inner!r}; make them by quicgym.envs.sb3.make_sb3"
        )
    return inner


def _what_is_learned(decisions: Decisions) -> Decisions:
    """Returns the decisions without what a policy may be trained with and used without."""
    return replace(decisions, reward_interval_ms=REWARD_INTERVAL_MS)
