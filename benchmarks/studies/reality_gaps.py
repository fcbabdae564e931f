"""How far chance goes in the gap between the simulator and noq in virtual time.

    python benchmarks/studies/reality_gaps.py --variants 40

A cell of `make reality` has five seeds, and on a network without random loss all five are the same
run of the simulator. Here each variant k has another seed and a propagation delay that is longer by
k * 10 µs, in the simulator and in noq alike. What a controller does then differs by one ProbeRTT,
one lost packet or another equilibrium. Where the means over the variants agree, the gap of five
seeds is such a difference; where they do not, the stack makes one. Needs quicgym-noq.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from quicgym import __version__, _core
from quicgym.agents.evaluation.rollouts import Episode, play
from quicgym.agents.evaluation.statistics import mean_difference
from quicgym.agents.policies.by_name import find_policy
from quicgym.envs import Scenario
from quicgym.envs.scenarios.suites import load_suite
from quicgym.jobs import report_failures, run_jobs
from quicgym.output_folders import digest
from quicgym.real.runs import run_stack

CELLS = (
    *product(["600ms-satellite"], ["bbr", "ebcc", "bbr-extended", "newreno", "newreno+"]),
    *product(["15mbps", "25mbps-20ms", "50mbps", "100mbps"], ["tuning-aggrevate-seed2"]),
    *product(["1mbps"], ["ibcca", "vegas"]),
    *product(["50mbps"], ["cubic+", "switch-wide-seed0"]),
    *product(["600ms-satellite"], ["switch-wide-seed0"]),
)
"""Network of the suite `reality`, and controller or policy: those with gaps above the goals."""
SOURCES = ("simulator", "virtual")
COLUMNS = (
    "network", "policy", "goodput, Mbps: simulator", "noq", "gap", "mean RTT, ms: simulator", "noq",
    "gap", "ProbeRTTs per run",
)  # fmt: skip
STEP_MS = 0.01
FOUR_PACKETS = 4
"""To which ProbeRTT lowers the window of BBR version 1, and of those that build on it."""


@dataclass(frozen=True, eq=False)
class Job:
    """One run of one variant."""

    scenario: Scenario
    policy: str
    source: str
    variant: int

    def __str__(self) -> str:
        """Returns what identifies the run for a reader."""
        return f"{self.scenario.name}, {self.policy}, variant {self.variant}, {self.source}"

    @cached_property
    def key(self) -> str:
        """What identifies the run."""
        about = [self.policy, self.source, self.variant, __version__, _core.commit]
        return digest([*self.scenario.content(), *about])

    def run(self) -> dict[str, Any]:
        """Returns its metrics, and how many ProbeRTTs it had."""
        document = self.scenario.model_dump(exclude_unset=True)
        document["bottleneck"]["delay_ms"] += self.variant * STEP_MS
        scenario = Scenario.model_validate(document)
        if self.source == "simulator":
            policy = find_policy(self.policy)
            episode = play(policy, scenario, seed=self.variant, keep_series=True)
        else:
            result = run_stack(scenario, self.policy, "noq", "virtual", self.variant)
            episode = result.episode(keep_series=True)
        return {
            "goodput_mbps": episode.metrics["goodput_mbps"],
            "mean_rtt_ms": episode.metrics["mean_rtt_ms"],
            "reward": episode.metrics["reward"],
            "probe_rtts": probe_rtts(episode, scenario.max_datagram_bytes),
        }


def probe_rtts(episode: Episode, max_datagram_bytes: int) -> int:
    """Returns how often the window fell to four packets after the first second."""
    assert episode.series is not None
    windows = episode.series["flow_window_bytes"][episode.series["time_s"] > 1]
    low = windows < (FOUR_PACKETS + 0.5) * max_datagram_bytes
    return int(np.sum(low[1:] & ~low[:-1]))


def _percent(first: np.ndarray, second: np.ndarray) -> str:
    found = mean_difference(first[None], second[None])
    scale = 100 / float(second.mean())
    text = f"{found.value * scale:+.2f}%"
    if found.low is not None and found.high is not None:
        text += f" [{found.low * scale:+.2f}, {found.high * scale:+.2f}]"
    return text


def row(name: str, policy: str, runs: dict[str, list[dict[str, Any]]]) -> str:
    """Returns a row of the table: of a cell, from the runs of both sources."""
    cells = [name, policy]
    for metric, digits in (("goodput_mbps", 2), ("mean_rtt_ms", 1)):
        values = {source: np.array([run[metric] for run in runs[source]]) for source in SOURCES}
        cells += [
            f"{found.min():.{digits}f} to {found.max():.{digits}f}" for found in values.values()
        ]
        cells.append(_percent(values["virtual"], values["simulator"]))
    cells.append(" / ".join(f"{np.mean([r['probe_rtts'] for r in runs[s]]):.2f}" for s in SOURCES))
    return f"| {' | '.join(cells)} |"


def main(
    variants: Annotated[int, typer.Option(min=2, help="Of each network.")] = 40,
    out: Annotated[Path, typer.Option(help="Keeps runs.jsonl; finished runs are skipped.")] = Path(
        "results/reality-gaps"
    ),
    workers: Annotated[int, typer.Option(min=1)] = os.cpu_count() or 1,
) -> None:
    """Prints the table: ranges over the variants, the gap of the means, ProbeRTTs per run."""
    scenarios = {
        entry.name.removeprefix("reality-"): entry
        for entry in load_suite("reality")
        if isinstance(entry, Scenario)
    }
    jobs = {
        (name, policy, source, variant): Job(scenarios[name], policy, source, variant)
        for (name, policy), source, variant in product(CELLS, SOURCES, range(variants))
    }
    outcome = run_jobs(list(jobs.values()), out, workers, resume=True, title="runs")
    report_failures(outcome.failures)
    print(f"quicgym {__version__} at commit {_core.commit}, {variants} variants")
    print(f"| {' | '.join(COLUMNS)} |")
    print("|---|---|---|---|---|---|---|---|---|")
    for name, policy in CELLS:
        found = {
            source: [
                outcome.finished[job.key]
                for variant in range(variants)
                if (job := jobs[name, policy, source, variant]).key in outcome.finished
            ]
            for source in SOURCES
        }
        if all(len(runs) == variants for runs in found.values()):
            print(row(name, policy, found))


if __name__ == "__main__":
    typer.run(main)
