"""The score of episodes that one's own environment plays: the number of `quicgym evaluate`."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import gymnasium
import numpy as np
from gymnasium.wrappers import NormalizeReward, TimeLimit

from quicgym.agents.policies.policy import KnowingPolicy, call_reset
from quicgym.envs.decisions import Decisions
from quicgym.envs.environment import CongestionControlEnv
from quicgym.envs.simulation.series import REWARD_INTERVAL_MS


def score(
    environment: gymnasium.Env,
    policy: Callable[[np.ndarray], Any],
    seeds: Iterable[int] = (0,),
    *,
    options: Mapping[str, Any] | None = None,
) -> np.ndarray:
    """Returns the mean reward of an episode for each seed, weighted by the length of its steps.

    A step lasts 100 ms or a round trip, so a sum or a mean over steps says how often an agent
    decides as well. The score does not: it is the `reward` of `quicgym evaluate` on the same
    scenario with the same seed, to rounding in the last of 16 digits. If several flows of a
    scenario name no controller, it is that of `quicgym evaluate --other-controllers`, because the
    environment's agent has one flow.

    Args:
        environment: An environment of quicgym with one agent, as it is or in wrappers.
        policy: What returns an action for an observation, such as a function or a policy of
            `quicgym.load_policy` and `quicgym.baseline`. Its `reset`, if it has one, is called
            before each episode, and its `options` are those of the environment's `reset`.
        seeds: Seeds of the episodes, as `quicgym evaluate` takes them: 0, 1, 2 and so on.
        options: Further options of the environment's `reset`, such as {"controller": "cubic"}.

    Raises:
        TypeError: The environment is none of quicgym's with one agent, the policy is no function or
            knows the network, or `seeds` is a number.
        ValueError: There are no seeds, the environment's rewards are not those of an evaluation,
            or a policy of `quicgym.load_policy` decides on something else, or at other times, than
            the environment's agent.
        ScenarioError: A seed or another option is not valid.

    Example:
        environment = gymnasium.make("quicgym/Window-v1", scenario="training-50")
        print(quicgym.score(environment, lambda observation: 6, range(20)).mean())
    """
    own = environment.unwrapped
    if not isinstance(own, CongestionControlEnv):
        raise TypeError(
            f"environment = {environment}: is none of quicgym's with one agent; make one with "
            "gymnasium.make, such as gymnasium.make('quicgym/Window-v1')"
        )
    wrapper = environment
    while isinstance(wrapper, gymnasium.Wrapper):
        if isinstance(wrapper, NormalizeReward | TimeLimit):
            raise ValueError(
                f"environment = {environment}: with {type(wrapper).__name__} the rewards are not "
                "those of an evaluation; leave it out"
            )
        wrapper = wrapper.env
    if not callable(policy):
        remedy = (
            f"quicgym.baseline({policy!r}) or quicgym.load_policy({policy!r})"
            if isinstance(policy, str)
            else "a function from an observation to an action; of a model of Stable-Baselines3, "
            "lambda observation: model.predict(observation, deterministic=True)[0]"
        )
        raise TypeError(f"policy = {policy!r}: give {remedy}")
    if isinstance(policy, KnowingPolicy):
        raise TypeError(
            f"policy = {policy!r}: knows the network, which an environment's agent does not; "
            "`quicgym evaluate` measures it"
        )
    if not isinstance(seeds, Iterable):
        raise TypeError(f"seeds = {seeds!r}: give the seeds, such as range(20)")
    if not (seeds := list(seeds)):
        raise ValueError("seeds: there are none; give at least one, such as range(20)")
    decisions = own.decisions
    if decisions.reward_interval_ms != REWARD_INTERVAL_MS:
        raise ValueError(
            f"reward_interval_ms = {decisions.reward_interval_ms:g}: an evaluation measures "
            f"rewards over {REWARD_INTERVAL_MS:g} ms; make the environment without this argument"
        )
    for name in ("baseline", "episode_s"):
        if (value := own.made_with[name]) is not None:
            raise ValueError(
                f"{name} = {value!r}: the environment's rewards are not those of an evaluation; "
                "make it without this argument"
            )
    every_ms = decisions.decision_interval_ms
    if every_ms < REWARD_INTERVAL_MS and not decisions.decision_interval_rtts:
        warnings.warn(
            f"decision_interval_ms = {every_ms:g}: rewards are over intervals "
            f"of that length, and higher for the same packets than over {REWARD_INTERVAL_MS:g} ms; "
            "to compare, make the environment with that or more",
            stacklevel=2,
        )
    chosen = {**(getattr(policy, "options", None) or {}), **(options or {})}
    wanted = getattr(policy, "decisions", None)
    if isinstance(wanted, Decisions) and "controller" not in chosen:
        _check_fit(wanted, decisions, own.spec.id if own.spec else type(own).__name__)
    return np.array([_play(environment, policy, seed, chosen) for seed in seeds])


def _check_fit(wanted: Decisions, given: Decisions, id: str) -> None:
    """Raises ValueError where a policy was trained with other arguments of its environment."""
    differing = [
        f"{name} = {getattr(given, name)!r} in place of {value!r}"
        for name, value in wanted.arguments.items()
        if name != "out_of_range" and value != getattr(given, name)
    ]
    if wanted.environment != given.environment:
        differing = [f"environment = {given.environment!r} in place of {wanted.environment!r}"]
    if differing:
        raise ValueError(
            f"{id}: is not what the policy was trained in: {', '.join(differing)}; make it with "
            "**policy.decisions.arguments, or pass a function that calls the policy if you want "
            "this on purpose"
        )


def _play(
    environment: gymnasium.Env,
    policy: Callable[[np.ndarray], Any],
    seed: int,
    options: Mapping[str, Any],
) -> float:
    if callable(reset := getattr(policy, "reset", None)):
        call_reset(reset, seed)
    observation, _ = environment.reset(options={**options, "episode_seed": seed})
    earned, lasted_s, over = 0.0, 0.0, False
    while not over:
        observation, reward, terminated, truncated, info = environment.step(policy(observation))
        earned += float(reward) * info["step_s"]
        lasted_s += info["step_s"]
        over = terminated or truncated
    return earned / lasted_s
