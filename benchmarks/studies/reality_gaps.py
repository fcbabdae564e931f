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
from itertools import product
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from quicgym import __version__, _core
from quicgym.agents.evaluation.jobs import PolicyChoice, RunJob
from quicgym.agents.evaluation.statistics import mean_difference
from quicgym.envs import Scenario
from quicgym.envs.scenarios.suites import load_suite
from quicgym.jobs import report_failures, run_jobs

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
ROWS = 10
"""Of a trace in the 100 ms between two decisions of a simulated policy."""
FOUR_PACKETS = 4
"""To which ProbeRTT lowers the window of BBR version 1, and of those that build on it."""


@dataclass(frozen=True, eq=False)
class CountingJob(RunJob):
    """A run of `make reality` on a variant, whose number is the seed, with its ProbeRTTs."""

    def run(self) -> dict[str, Any]:
        """Returns its metrics, and how many ProbeRTTs it had."""
        done = self.carry_out(traced=True)
        if self.engine == "native":
            times_s, windows = done.series["time_s"], done.series["flow_window_bytes"]
        else:
            trace = done.trace().iloc[::ROWS]
            times_s, windows = trace["time_s"].to_numpy(), trace["window_bytes"].to_numpy()
        low = windows[times_s > 1] < (FOUR_PACKETS + 0.5) * self.scenario.max_datagram_bytes
        return {
            "goodput_mbps": done.metrics["goodput_mbps"],
            "mean_rtt_ms": done.metrics["mean_rtt_ms"],
            "probe_rtts": int(np.sum(low[1:] & ~low[:-1])),
        }


def variant_of(scenario: Scenario, variant: int) -> Scenario:
    """Returns the scenario with a propagation delay that is longer by variant * STEP_MS."""
    document = scenario.model_dump(exclude_unset=True)
    document["bottleneck"]["delay_ms"] += variant * STEP_MS
    return Scenario.model_validate(document)


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
        (name, policy, source, variant): CountingJob(
            variant_of(scenarios[name], variant),
            PolicyChoice.of(policy),
            "native" if source == "simulator" else "noq-virtual",
            variant,
        )
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
