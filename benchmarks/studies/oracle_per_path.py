"""What choosing among the controllers can be worth at most, on the held-out suite.

    python benchmarks/studies/oracle_per_path.py

A policy that chooses can only know a path by what it observes. This says how often it would be
within 1% of a scenario's best baseline, as the leaderboard counts it, if it knew more than it can:
which baseline is best on the same path with other seeds, or on paths that differ by 1%, or which
controller is best from the second decision on, when the first 5 s were spent with IBCCA. And, for
comparison, which window is best if it never changes.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import typer
from rich.progress import TextColumn
from rich.table import Table

from quicgym.agents.evaluation.rollouts import play, play_all
from quicgym.agents.evaluation.summary import within_1_percent
from quicgym.agents.policies.by_name import find_policy
from quicgym.agents.policies.hand_coded import BASELINES
from quicgym.agents.policies.policy import Decisions, Policy
from quicgym.console import progress_bar, wide_console
from quicgym.envs.actions import choices
from quicgym.envs.observations import FRAME_FEATURES
from quicgym.envs.scenarios.fair_share import fair_window_bytes
from quicgym.envs.scenarios.model import Scenario
from quicgym.envs.scenarios.suites import load_suite

SUITE = "heldout"
FIRST = "ibcca"
NEARBY = 0.01
"""By how much a path may differ from another one, as a share of its rate and its delays."""
NEARBY_START_S = 0.02
WINDOWS = np.arange(-2.5, 3.1, 0.5)
"""The fixed windows, as powers of 2 of the path's fair one."""


@dataclass(frozen=True)
class FirstThen:
    """FIRST for 5 s, another controller from there on."""

    name: str
    options: dict[str, Any] | None = None
    decisions: Decisions = Decisions("switch", 5000.0, None, 1)

    def __call__(self, observations: np.ndarray) -> np.ndarray:
        """Returns FIRST's place while nothing has been observed, then the other one's."""
        first, then = map(choices("switch").index, (FIRST, self.name))
        return np.where(observations[..., : len(FRAME_FEATURES)].any(axis=-1), then, first)


def nearby(scenario: Scenario, rng: np.random.Generator) -> Scenario:
    """Returns a path whose rate, delays and starts differ a little."""

    def factor() -> float:
        return float(rng.uniform(1 - NEARBY, 1 + NEARBY))

    link, faster = scenario.bottleneck, factor()
    assert link is not None and link.rate_mbps is not None  # no wireless LAN, no trace
    bottleneck = link.model_copy(
        update={
            "rate_mbps": link.rate_mbps * faster,
            "delay_ms": link.delay_ms * factor(),
            "rate_schedule": tuple(
                step.model_copy(update={"rate_mbps": step.rate_mbps * faster})
                for step in link.rate_schedule
            ),
        }
    )
    moves = rng.uniform(-NEARBY_START_S, NEARBY_START_S, len(scenario.flows))
    flows = tuple(
        flow.model_copy(
            update={
                "start_s": max(0.0, flow.start_s + move) if flow.start_s else 0.0,
                "extra_delay_ms": flow.extra_delay_ms * factor(),
            }
        )
        for flow, move in zip(scenario.flows, moves.tolist(), strict=True)
    )
    return scenario.model_copy(update={"bottleneck": bottleneck, "flows": flows})


def rewards(
    policies: Sequence[Policy], cells: Sequence[tuple[Scenario, int]], title: str
) -> np.ndarray:
    """Returns what each policy earns for each scenario and seed, of shape (policies, cells)."""
    threads = os.cpu_count() or 1
    with progress_bar(TextColumn(title)) as progress:
        return np.array(
            [
                [episode.metrics["reward"] for episode in play_all(policy, cells, threads=threads)]
                for policy in progress.track(policies, description="")
            ]
        )


def rewards_of_windows(cells: Sequence[tuple[Scenario, int]]) -> np.ndarray:
    """Returns what each of WINDOWS earns for each scenario and seed, of shape (windows, cells)."""

    def column(cell: tuple[Scenario, int]) -> list[float | None]:
        scenario, seed = cell
        names = [
            f"guided:window_bytes={window_bytes:.0f}"
            for window_bytes in fair_window_bytes(scenario) * 2.0**WINDOWS
        ]
        return [play(find_policy(name), scenario, seed=seed).metrics["reward"] for name in names]

    with (
        ThreadPoolExecutor(os.cpu_count()) as pool,
        progress_bar(TextColumn("windows")) as progress,
    ):
        columns = progress.track(pool.map(column, cells), total=len(cells), description="")
        return np.array(list(columns)).T


def chosen(earned: np.ndarray, by: np.ndarray, best: np.ndarray) -> tuple[float, float]:
    """Returns how often the choice is within 1% of `best`, and what it earns.

    Args:
        earned: Mean rewards, of shape (policies, scenarios).
        by: Those that the choice is made by, of the same shape.
        best: Of each scenario's best baseline.
    """
    own = earned[by.argmax(axis=0), np.arange(earned.shape[1])]
    return float(within_1_percent(own, best).mean()), float(own.mean())


def oracle_per_path(
    seeds: Annotated[
        int, typer.Option(min=2, help="Of each scenario; one half chooses for the other.")
    ] = 10,
    paths: Annotated[int, typer.Option(min=1, help="Nearby ones of each scenario.")] = 3,
) -> None:
    """Print how often a choice that knows more than a policy can is within 1% of the best."""
    suite = [scenario for scenario in load_suite(SUITE) if isinstance(scenario, Scenario)]
    baselines = [find_policy(name) for name in BASELINES]

    def cells(scenarios: Sequence[Scenario]) -> list[tuple[Scenario, int]]:
        return [(scenario, seed) for scenario in scenarios for seed in range(seeds)]

    def by_scenario(earned: np.ndarray) -> np.ndarray:
        return earned.reshape(-1, len(suite), seeds)

    own = by_scenario(rewards(baselines, cells(suite), "the suite"))
    near = []
    for copy in range(paths):
        rng = np.random.default_rng(copy)
        others = [nearby(scenario, rng) for scenario in suite]
        title = f"nearby paths {copy + 1} of {paths}"
        near.append(by_scenario(rewards(baselines, cells(others), title)).mean(axis=2))
    after_first = [FirstThen(name) for name in choices("switch")]
    switched = by_scenario(rewards(after_first, cells(suite), "after 5 s"))
    windows = by_scenario(rewards_of_windows(cells(suite)))

    halves = [slice(0, seeds // 2), slice(seeds // 2, seeds)]
    best = own.mean(axis=2).max(axis=0)
    ibcca = own[BASELINES.index(FIRST)].mean(axis=1)

    def by_other_seeds(table: np.ndarray) -> tuple[float, float]:
        means = [table[:, :, half].mean(axis=2) for half in halves]
        bests = [own[:, :, half].mean(axis=2).max(axis=0) for half in halves]
        one, two = chosen(means[0], means[1], bests[0]), chosen(means[1], means[0], bests[1])
        return (one[0] + two[0]) / 2, (one[1] + two[1]) / 2

    table = Table(title=f"{SUITE}, {seeds} seeds", title_justify="left")
    table.add_column("a choice by")
    table.add_column("within 1% of best (%)", justify="right")
    table.add_column("mean reward", justify="right")
    for row, (share, reward) in {
        "the same path, the same seeds": (1.0, float(best.mean())),
        "the same path, other seeds": by_other_seeds(own),
        f"paths within {NEARBY:.0%}": chosen(own.mean(axis=2), np.mean(near, axis=0), best),
        f"the same path, other seeds, after 5 s with {FIRST}": by_other_seeds(switched),
        "the same path, other seeds, among fixed windows": by_other_seeds(windows),
        f"nothing: {FIRST} everywhere": (
            float(within_1_percent(ibcca, best).mean()),
            float(ibcca.mean()),
        ),
    }.items():
        table.add_row(row, f"{100 * share:.0f}", f"{reward:.4f}")
    wide_console().print(table)


if __name__ == "__main__":
    typer.run(oracle_per_path)
