"""What the coordinates of a policy of Tuning earn: each is frozen in turn, the others move.

    python benchmarks/studies/frozen_coordinates.py tuning --paths 1024

A coordinate is frozen at BBR's value, and at the mean of what the policy gives it. The gains of the
cycle are frozen together. Each variant of the policy is evaluated on the same new paths, and the
difference to the policy is paired over these, with its 95% interval by the bootstrap.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Annotated

import gymnasium
import numpy as np
import typer
from default_scenarios import in_words
from rich.table import Table

import quicgym
from quicgym.agents.evaluation.summary import evaluate
from quicgym.agents.policies.learned import LearnedPolicy, load_policy, save_policy
from quicgym.agents.policies.stored_network import StoredNetwork
from quicgym.console import wide_console
from quicgym.envs.actions import preset_action
from quicgym.jobs import report_failures

GROUPS: dict[str, tuple[str, ...]] = {
    "gain_cycle": ("cycle_length", *(f"gain_{place}" for place in range(1, 9)))
}
ENVIRONMENTS = 64
DECISIONS = 256


def mean_action(policy: LearnedPolicy, suite: str) -> np.ndarray:
    """Returns the mean of a policy's first actions on paths of a suite."""
    environments = quicgym.make_vec(
        "quicgym/Tuning-v1", ENVIRONMENTS, scenario=suite, **policy.decisions.arguments
    )
    observations, _ = environments.reset(seed=0)
    means = []
    for _ in range(DECISIONS):
        actions = policy(observations)
        means.append(actions.mean(axis=0))
        observations, *_ = environments.step(actions)
    environments.close()
    return np.mean(means, axis=0)


def frozen(policy: LearnedPolicy, places: Sequence[int], action: np.ndarray) -> LearnedPolicy:
    """Returns the policy with some coordinates of its action constant."""
    assert isinstance(policy.network, StoredNetwork)
    tensors = {name: tensor.copy() for name, tensor in policy.network.tensors.items()}
    for place in places:
        tensors["action.weight"][place] = 0
        tensors["action.bias"][place] = action[place]
    return replace(policy, network=replace(policy.network, tensors=tensors))


def main(
    policy: Annotated[str, typer.Argument(help="A policy that tunes all of BBR.")] = "tuning",
    suite: Annotated[str, typer.Option(help="Distribution of the paths.")] = "worlds",
    paths: Annotated[int, typer.Option(min=2, help="Number of paths.")] = 1024,
    jobs: Annotated[int, typer.Option(min=1, help="Processes.")] = os.cpu_count() or 1,
    out: Annotated[Path, typer.Option(help="Results; the same command goes on with them.")] = (
        Path("results/frozen-coordinates")
    ),
) -> None:
    """Prints what each coordinate earns."""
    whole = load_policy(policy)
    names = gymnasium.make("quicgym/Tuning-v1").unwrapped.action_names  # type: ignore[attr-defined]
    groups = GROUPS | {name: (name,) for name in names if name not in GROUPS["gain_cycle"]}
    groups["everything"] = tuple(names)
    values = {"bbr": preset_action("bbr"), "mean": mean_action(whole, suite)}
    folder = out / "policies"
    folder.mkdir(parents=True, exist_ok=True)
    files: dict[tuple[str, str], Path] = {}
    for (group, members), (value, action) in product(groups.items(), values.items()):
        path = files[group, value] = folder / f"{group}-{value}.json"
        places = [names.index(name) for name in members]
        variant = replace(frozen(whole, places, action), name=path.stem)
        save_policy(path, variant, whole.network.architecture, {"frozen": list(members)})
    evaluation = evaluate(
        [f"{whole.name}={policy}", *(f"{path.stem}={path}" for path in files.values())],
        suite,
        paths,
        out,
        workers=jobs,
        resume=True,
        keep_series=False,
        command=shlex.join(sys.argv),
    )
    report_failures(evaluation.outcome.failures)
    if evaluation.document is None or evaluation.outcome.failures:
        raise typer.Exit(1)
    runs = evaluation.runs.pivot_table("reward", ["scenario", "seed"], "policy")
    table = Table(title=f"{policy}: {runs[whole.name].mean():.4f} on {len(runs)} paths of {suite}")
    for title in ("frozen", "at BBR's value", "at the policy's mean"):
        table.add_column(title)
    for group in groups:
        table.add_row(
            group,
            *(
                in_words((runs[files[group, value].stem] - runs[whole.name]).to_numpy())
                for value in values
            ),
        )
    wide_console().print(table)


if __name__ == "__main__":
    typer.run(main)
