"""What constants, controllers and learned policies earn on the default paths of each environment.

    python benchmarks/studies/default_scenarios.py
    python benchmarks/studies/default_scenarios.py --agent four-parameters --policy DIR

The best constant action of an environment, and the best hand-coded controller, are those with the
highest mean reward on the first SELECTION paths of the default distribution. They, `bbr` and the
learned policies are then measured on PATHS others. Each difference is paired over these, with its
95% interval by the bootstrap.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Sequence
from typing import Annotated, Any, NamedTuple

import numpy as np
import typer
from rich.progress import Progress
from rich.table import Table

from quicgym import controllers
from quicgym.agents.evaluation.rollouts import play_all
from quicgym.agents.policies.by_name import find_policy
from quicgym.agents.policies.policy import ConstantPolicy, Policy
from quicgym.console import progress_bar, wide_console
from quicgym.envs import find_environment
from quicgym.envs.actions import WINDOW_EXPONENTS, part_of_space, preset_action
from quicgym.envs.decisions import Decisions
from quicgym.envs.scenarios.suites import load_suite, scenario_of

FIRST_SEED = 1_000_000
"""Of the paths for the selection; those of the measurement follow. None of them was trained on."""
THREADS = os.cpu_count() or 1


class Agent(NamedTuple):
    """What an agent decides, and the published policies that decide it."""

    environment: str
    learned: tuple[str, ...] = ()
    coordinates: tuple[str, ...] | None = None


FOUR = "four-parameters"
AGENTS = {
    "tuning": Agent("tuning", ("tuning",)),
    FOUR: Agent("tuning", coordinates=("gamma", "beta", "gain_cycle", "alpha")),
    "window": Agent("window", ("window",)),
    "rate": Agent("rate"),
    "scale": Agent("scale"),
    "switch": Agent("switch"),
}
GAINS = (0.6, 0.8, 1.0, 1.1, 1.2, 1.4, 1.7, 2.0, 2.5)
STEPS = (-0.5, -0.1, 0.0, 0.1, 0.5)
RULES = ((np.inf, 0.0), (100.0, 0.5), (30.0, 0.5), (15.0, 0.5), (15.0, 0.15), (5.0, 0.15))
"""eBCC's γ and β; with infinity there is no rule, and β has no effect."""
ALPHAS = (0.0, 0.9)
CYCLES = (
    (1.25, 0.75, 1, 1, 1, 1, 1, 1),
    (1.25, 1, 1, 0.75, 1, 1),
    (1.25, 0.5, 1, 1, 1, 1, 1, 1),
    (1.1, 0.8, 1, 1, 1, 1, 1, 1),
    (1.06, 0.82, 1, 1),
    (1.1, 0.7),
    (0.95,),
)


def constants(name: str) -> dict[str, Any]:
    """Returns constant actions of an agent, by what they do."""
    if name == FOUR:
        agent = AGENTS[FOUR]
        space = part_of_space(agent.environment, agent.coordinates or ())
        return {
            f"γ {gamma:g}, β {beta:g}, α {alpha:g}, cycle {'/'.join(f'{g:g}' for g in cycle)}": (
                preset_action(
                    "bbr", space=space, gamma=gamma, beta=beta, alpha=alpha, gain_cycle=list(cycle)
                )
            )
            for (gamma, beta), alpha, cycle in itertools.product(RULES, ALPHAS, CYCLES)
        }
    if name == "tuning":
        cycles: dict[str, dict[str, Any]] = {
            "": {},
            ", short cycle": {"gain_cycle": [1.06, 0.82, 1, 1]},
        }
        return {
            f"window gain {gain:g}{cycle}": preset_action("bbr", cwnd_gain=gain, **more)
            for gain, (cycle, more) in itertools.product(GAINS, cycles.items())
        }
    if name == "window":
        return {f"2^{x:+g}": np.array(place) for place, x in enumerate(WINDOW_EXPONENTS)}
    if name == "switch":
        return {}  # whole controllers, which are measured anyway
    return {
        f"window {window:+g}, rate {rate:+g}": np.array([window, rate], np.float32)
        for window, rate in itertools.product(STEPS, STEPS)
    }


def rewards(policy: Any, paths: list[tuple[Any, int]]) -> np.ndarray:
    """Returns the policy's reward on each path."""
    played = play_all(policy, paths, threads=THREADS)
    return np.array([each.metrics["reward"] for each in played], float)


def interval(differences: np.ndarray) -> tuple[float, float]:
    """Returns the 95% interval of the mean, by the bootstrap."""
    rng = np.random.default_rng(0)
    size = len(differences)
    means = [differences[rng.integers(size, size=size)].mean() for _ in range(2000)]
    low, high = np.percentile(means, [2.5, 97.5])
    return float(low), float(high)


def in_words(differences: np.ndarray) -> str:
    """Returns the mean difference with its interval; nothing where both are the same."""
    low, high = interval(differences)
    return f"{differences.mean():+.4f} [{low:+.4f}, {high:+.4f}]" if differences.any() else ""


def best_of(policies: Sequence[Policy], paths: list[tuple[Any, int]], bar: Progress) -> Policy:
    """Returns the policy with the highest mean reward."""
    means = [rewards(policy, paths).mean() for policy in bar.track(policies)]
    return policies[int(np.argmax(means))]


def main(
    paths: Annotated[int, typer.Option(min=2, help="Paths of the measurement.")] = 1024,
    selection: Annotated[int, typer.Option(min=2, help="Paths of the selection.")] = 256,
    agent: Annotated[
        list[str] | None, typer.Option(help=f"One or more of: {'; '.join(AGENTS)}. Default: all.")
    ] = None,
    policy: Annotated[
        list[str] | None, typer.Option(help="Learned policies besides the published ones.")
    ] = None,
) -> None:
    """Prints a table for each agent."""
    for name in agent or AGENTS:
        if name not in AGENTS:
            raise typer.BadParameter(f"--agent {name!r}: give one of {'; '.join(AGENTS)}")
        chosen_agent = AGENTS[name]
        environment = find_environment(chosen_agent.environment)
        decisions = Decisions(chosen_agent.environment, coordinates=chosen_agent.coordinates)
        (entry,) = load_suite(environment.default_scenario)
        seeds = range(FIRST_SEED, FIRST_SEED + selection + paths)
        drawn = [(scenario_of(entry, seed), seed) for seed in seeds]
        chosen, measured = drawn[:selection], drawn[selection:]
        fixed: list[Policy] = [
            ConstantPolicy(text, action, decisions=decisions)
            for text, action in constants(name).items()
        ]
        with progress_bar() as bar:
            best = best_of([find_policy(each) for each in controllers.baselines()], chosen, bar)
            references: dict[str, Policy] = {"best hand-coded": best, "bbr": find_policy("bbr")}
            if fixed:
                references["best constant"] = best_of(fixed, chosen, bar)
            measured_policies = {
                f"{each.name}, {text}" if each.name != text else text: each
                for text, each in references.items()
            } | {each: find_policy(each) for each in (*chosen_agent.learned, *(policy or ()))}
            earned = {
                text: rewards(each, measured) for text, each in bar.track(measured_policies.items())
            }
        table = Table(title=f"{name}, {paths} paths of {environment.default_scenario}")
        table.add_column("policy")
        table.add_column("mean reward")
        for text in references:
            table.add_column(f"minus {text}, 95% interval")
        of_references = [*earned.values()][: len(references)]
        for text, own in earned.items():
            differences = (own - other for other in of_references)
            table.add_row(text, f"{own.mean():.4f}", *map(in_words, differences))
        wide_console().print(table)


if __name__ == "__main__":
    typer.run(main)
