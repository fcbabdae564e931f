"""What constants, controllers and learned policies earn on the default paths of each environment.

    python benchmarks/studies/default_scenarios.py

The best constant action of an environment, and the best hand-coded controller, are those with the
highest mean reward on the first SELECTION paths of the default distribution. They and the learned
policies are then measured on PATHS others. Each difference is paired over these, with its 95%
interval by the bootstrap.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Sequence
from typing import Annotated, Any

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
from quicgym.envs.actions import WINDOW_EXPONENTS, preset_action
from quicgym.envs.decisions import Decisions
from quicgym.envs.scenarios.suites import load_suite, scenario_of

FIRST_SEED = 1_000_000
"""Of the paths for the selection; those of the measurement follow. None of them was trained on."""
AT_ONCE = 128
THREADS = os.cpu_count() or 1
LEARNED = {
    "tuning": ["tuning-aggrevate-seed0", "tuning-aggrevate-seed1", "tuning-aggrevate-seed2"],
    "window": ["window-v1-grpo-seed0", "window-v1-grpo-seed1", "window-v1-grpo-seed2"],
    "rate": [],
    "scale": [],
    "switch": [],
}
GAINS = (0.6, 0.8, 1.0, 1.1, 1.2, 1.4, 1.7, 2.0, 2.5)
STEPS = (-0.5, -0.1, 0.0, 0.1, 0.5)


def constants(name: str) -> dict[str, Any]:
    """Returns constant actions of an environment, by what they do."""
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
    found: list[float | None] = []
    for begin in range(0, len(paths), AT_ONCE):
        found += [
            each.metrics["reward"]
            for each in play_all(policy, paths[begin : begin + AT_ONCE], threads=THREADS)
        ]
    return np.array(found, float)


def interval(differences: np.ndarray) -> tuple[float, float]:
    """Returns the 95% interval of the mean, by the bootstrap."""
    rng = np.random.default_rng(0)
    size = len(differences)
    means = [differences[rng.integers(size, size=size)].mean() for _ in range(2000)]
    low, high = np.percentile(means, [2.5, 97.5])
    return float(low), float(high)


def best_of(policies: Sequence[Policy], paths: list[tuple[Any, int]], bar: Progress) -> Policy:
    """Returns the policy with the highest mean reward."""
    means = [rewards(policy, paths).mean() for policy in bar.track(policies)]
    return policies[int(np.argmax(means))]


def main(
    paths: Annotated[int, typer.Option(min=2, help="Paths of the measurement.")] = 1024,
    selection: Annotated[int, typer.Option(min=2, help="Paths of the selection.")] = 256,
) -> None:
    """Prints a table for each environment."""
    for name, learned in LEARNED.items():
        environment = find_environment(name)
        (entry,) = load_suite(environment.default_scenario)
        seeds = range(FIRST_SEED, FIRST_SEED + selection + paths)
        drawn = [(scenario_of(entry, seed), seed) for seed in seeds]
        chosen, measured = drawn[:selection], drawn[selection:]
        fixed: list[Policy] = [
            ConstantPolicy(text, action, decisions=Decisions(name))
            for text, action in constants(name).items()
        ]
        with progress_bar() as bar:
            best = best_of([find_policy(each) for each in controllers.baselines()], chosen, bar)
            constant = [best_of(fixed, chosen, bar)] if fixed else []
            others = {f"{policy.name}, best constant": policy for policy in constant}
            others |= {each: find_policy(each) for each in learned}
            earned = rewards(best, measured)
            table = Table(
                title=f"{environment.id}, {paths} paths of {environment.default_scenario}"
            )
            for heading in ("policy", "mean reward", "minus best hand-coded, 95% interval"):
                table.add_column(heading)
            table.add_row(f"{best.name}, best hand-coded", f"{earned.mean():.4f}")
            for text, policy in bar.track(others.items()):
                own = rewards(policy, measured)
                low, high = interval(own - earned)
                table.add_row(
                    text,
                    f"{own.mean():.4f}",
                    f"{(own - earned).mean():+.4f} [{low:+.4f}, {high:+.4f}]",
                )
        wide_console().print(table)


if __name__ == "__main__":
    typer.run(main)
