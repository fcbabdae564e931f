"""quicgym's NewReno, CUBIC and BBRv3 beside those of noq, in the stack noq in virtual time.

    python benchmarks/studies/noq_controllers.py --seeds 5 --out results/noq-controllers

Both run in the same stack over the networks of the suite `reality`. Packets, ACK policy and loss
detection are the same. The controllers and the pacers differ. Needs quicgym-noq.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from quicgym import __version__, _core
from quicgym.agents.evaluation.jobs import RunJob
from quicgym.envs import Scenario
from quicgym.envs.scenarios.suites import load_suite
from quicgym.jobs import report_failures, run_jobs

PAIRS = {"newreno": "noq-newreno", "cubic": "noq-cubic", "bbr3": "noq-bbr3"}
METRICS = ("goodput_mbps", "mean_rtt_ms", "loss_percent", "mean_window_packets")
GOALS = {"goodput_mbps": 2.0, "mean_rtt_ms": 5.0}
"""Percent, of the means over the seeds."""


def table(means: Mapping[tuple[str, str], Mapping[str, float]], scenarios: list[str]) -> list[str]:
    """Returns the lines of a Markdown table: a row for each network and pair."""
    lines = [
        "| network | controller | goodput, Mbps | gap | mean RTT, ms | gap | loss, % |",
        "|---|---|---|---|---|---|---|",
    ]
    for scenario, (ours, theirs) in product(scenarios, PAIRS.items()):
        mine, other = means.get((scenario, ours)), means.get((scenario, theirs))
        if mine is None or other is None:
            continue
        cells = []
        for metric, digits in (("goodput_mbps", 2), ("mean_rtt_ms", 1)):
            gap = 100 * (mine[metric] / other[metric] - 1)
            mark = "" if abs(gap) <= GOALS[metric] else " *"
            cells.append(f"{mine[metric]:.{digits}f} / {other[metric]:.{digits}f}")
            cells.append(f"{gap:+.1f}%{mark}")
        cells.append(f"{mine['loss_percent']:.2f} / {other['loss_percent']:.2f}")
        lines.append(f"| {scenario.removeprefix('reality-')} | {ours} | {' | '.join(cells)} |")
    return lines


def main(
    seeds: Annotated[int, typer.Option(min=1, help="Runs the seeds 0 to N-1.")] = 5,
    out: Annotated[Path, typer.Option(help="Keeps runs.jsonl; finished runs are skipped.")] = Path(
        "results/noq-controllers"
    ),
    workers: Annotated[int, typer.Option(min=1)] = os.cpu_count() or 1,
) -> None:
    """Prints the table; gaps above the goals have an asterisk."""
    scenarios = [entry for entry in load_suite("reality") if isinstance(entry, Scenario)]
    names = [*PAIRS, *PAIRS.values()]
    jobs = {
        (scenario.name, name, seed): RunJob(scenario, name, "noq-virtual", seed)
        for scenario, name, seed in product(scenarios, names, range(seeds))
    }
    outcome = run_jobs([*jobs.values()], out, workers, resume=True, title="runs")
    report_failures(outcome.failures)
    means = {}
    for scenario, name in product(scenarios, names):
        rows = [
            outcome.finished[job.key]
            for seed in range(seeds)
            if (job := jobs[scenario.name, name, seed]).key in outcome.finished
        ]
        if len(rows) == seeds:
            means[scenario.name, name] = {
                metric: float(np.mean([row[metric] for row in rows])) for metric in METRICS
            }
    print(f"quicgym {__version__} at commit {_core.commit}, {seeds} seeds")
    print("\n".join(table(means, [scenario.name for scenario in scenarios])))


if __name__ == "__main__":
    typer.run(main)
