"""`make reports ARGS=reality`: the simulator against a real QUIC stack in virtual and in real time.

Every controller and policy runs on every network of the suite `reality` with every seed: in the
native engine, with the stack in virtual time, and in real time with an audit. So do the stack's own
controllers, which no simulator has. runs.jsonl keeps each finished run; `--resume` continues with
what is missing. The report says how large the gaps are, and what every policy earns.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from scipy.stats import spearmanr

from quicgym import __version__, _core
from quicgym.agents.evaluation.jobs import PolicyChoice, RunJob
from quicgym.agents.evaluation.statistics import Estimate, mean_difference
from quicgym.agents.policies.by_name import policy_kind, stack_of_controller
from quicgym.console import say
from quicgym.envs import Scenario, ScenarioError
from quicgym.envs.scenarios.suites import load_suite
from quicgym.jobs import RUNS_FILE, report_failures, run_jobs
from quicgym.output_folders import output_folder, write_atomically
from quicgym.real.comparison import check_audited, gap
from quicgym.real.concurrency import BUDGET_MBPS, MOST_AT_ONCE, by_workers
from quicgym.real.runs import make_plans
from quicgym.real.stacks import find_stack

HAND_CODED = ("newreno", "newreno+", "cubic", "cubic+", "vegas", "ibcca", "ibcca-cubic", "bbr",
              "bbr-smooth", "bbr-extended", "bbr-combined", "ebcc")  # fmt: skip
LEARNED = ("window", "tuning")
SOURCES = ("simulator", "virtual", "real")
GAPS = (("implementation", "virtual", "simulator"), ("wall-clock", "real", "virtual"),
        ("total", "real", "simulator"))  # fmt: skip
"""Name, what is compared, and against what."""
GOALS = {
    ("implementation", "hand-coded"): {"goodput_mbps": 0.5, "mean_rtt_ms": 1.5},
    ("wall-clock", "hand-coded"): {"goodput_mbps": 1.0, "mean_rtt_ms": 2.0},
    ("total", "hand-coded"): {"goodput_mbps": 1.5, "mean_rtt_ms": 3.0},
    ("total", "learned"): {"goodput_mbps": 1.0, "mean_rtt_ms": 5.0, "reward": 0.01},
}
"""Goals for the size of the mean gaps: percent, and for the reward a difference."""
SUITE = Path(__file__).with_name("reality.yaml")
"""The networks."""


def job_of(scenario: Scenario, policy: str, stack: str, source: str, seed: int) -> RunJob:
    """Returns one run of a policy, or of one of the stack's own controllers, as a job."""
    own = stack_of_controller(policy) is not None
    choice = PolicyChoice(policy) if own else PolicyChoice.of(policy)
    engine = "native" if source == "simulator" else f"{stack}-{source}"
    return RunJob(scenario, choice, engine, seed)


Rows = dict[tuple[str, str, str, int], dict[str, Any]]
"""(scenario, policy, source, seed) -> row."""


def reality(
    stack: Annotated[
        str, typer.Option(metavar="NAME", help="Use this QUIC stack, as in `quicgym real`.")
    ] = "noq",
    seeds: Annotated[
        int, typer.Option(min=1, metavar="N", help="Run everything with the seeds 0 to N-1.")
    ] = 5,
    scenario: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="Run only this scenario of the suite reality. Default: all."
        ),
    ] = None,
    policy: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Run only this policy. Default: the report's, and the stack's own.",
        ),
    ] = None,
    budget_mbps: Annotated[
        float,
        typer.Option(
            min=1,
            metavar="MBPS",
            help="In real time, run several networks at once, as long as their rates sum up to at "
            f"most this and there are at most {MOST_AT_ONCE}. A faster network runs alone.",
        ),
    ] = BUDGET_MBPS,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Keep the runs in this folder.")] = Path(
        "results/reality"
    ),
    report: Annotated[
        Path, typer.Option(metavar="FILE", help="Write the report to this file.")
    ] = Path("results/reports/reality.md"),
    resume: Annotated[
        bool,
        typer.Option("--resume", help="Continue an interrupted run: skip what DIR already holds."),
    ] = False,
) -> None:
    """Measure how far the simulator agrees with a real stack, and write the report."""
    known = find_stack(stack)
    entries = [entry for entry in load_suite(SUITE) if isinstance(entry, Scenario)]
    chosen = [entry for entry in entries if not scenario or entry.name in scenario]
    policies = list(policy or (*HAND_CODED, *LEARNED, *known.own_controllers))
    unknown = set(scenario or ()) - {entry.name for entry in entries}
    if unknown:
        raise ScenarioError(
            f"--scenario {', '.join(sorted(unknown))}: not in the suite reality; there are: "
            f"{', '.join(entry.name for entry in entries)}"
        )
    for entry, name in product(chosen, policies):
        make_plans(entry, name, known, 0)
    sources = [name for name in SOURCES if name == "simulator" or name in known.clocks]
    jobs = {
        (entry.name, name, source, seed): job_of(entry, name, stack, source, seed)
        for entry, name, source, seed in product(chosen, policies, sources, range(seeds))
        if source != "simulator" or stack_of_controller(name) is None
    }
    timeless = [job for (_, _, source, _), job in jobs.items() if source != "real"]
    timed = [job for (_, _, source, _), job in jobs.items() if source == "real"]
    with output_folder(out, (RUNS_FILE,), resume=resume):
        finished: dict[str, dict[str, Any]] = {}
        failures: list[str] = []
        groups = [(timeless, os.cpu_count() or 1)]
        for workers, members in by_workers(chosen, budget_mbps).items():
            names = {entry.name for entry in members}
            groups.append(([job for job in timed if job.scenario.name in names], workers))
        for some, workers in groups:
            outcome = run_jobs(some, out, workers, resume=True, title="runs")
            finished |= outcome.finished
            failures += outcome.failures
            if outcome.interrupted:
                say("interrupted; continue with the same command and --resume")
                raise typer.Exit(130)
    report_failures(failures)
    rows: Rows = {
        place: check_audited([finished[job.key]])[0]
        for place, job in jobs.items()
        if job.key in finished
    }
    report.parent.mkdir(parents=True, exist_ok=True)
    names_of_all = [entry.name for entry in chosen]
    command = shlex.join(["python", "-m", "quicgym.benchmarks.reports", *sys.argv[1:]])
    text = make_report(rows, stack, names_of_all, policies, seeds, command)
    write_atomically({report: text})
    say(f"{len(rows)} runs are in {out}, the report is {report}")
    raise typer.Exit(1 if failures else 0)


def gaps_of(
    rows: Rows,
    policies: Sequence[str],
    scenarios: Sequence[str],
    seeds: int,
    metric: str,
    of: str,
    against: str,
) -> np.ndarray:
    """Returns the gaps: cells x seeds, of the scenarios and policies that have all runs."""
    table = []
    for scenario, policy in product(scenarios, policies):
        pairs = [
            (rows.get((scenario, policy, of, seed)), rows.get((scenario, policy, against, seed)))
            for seed in range(seeds)
        ]
        values = [gap(metric, a[metric], b[metric]) for a, b in pairs if a and b]
        if len(values) == seeds and all(value is not None for value in values):
            table.append(values)
    return np.array(table, dtype=float).reshape(len(table), seeds)


def estimate(gaps: np.ndarray) -> Estimate:
    """Returns the mean gap with its 95% interval over seeds, those of each cell apart."""
    return mean_difference(gaps, np.zeros_like(gaps))


def make_report(
    rows: Rows,
    stack: str,
    scenarios: Sequence[str],
    policies: Sequence[str],
    seeds: int,
    command: str,
) -> str:
    """Returns the report as Markdown."""
    kinds: dict[str, list[str]] = {}
    for policy in policies:
        kinds.setdefault(_kind(policy), []).append(policy)
    lines = [
        "# Simulation and reality",
        "",
        f"The stack `{stack}` in virtual and in real time is compared with the native engine. "
        f"There are {len(policies)} controllers and policies, {len(scenarios)} networks of the "
        f"suite `reality`, and {seeds} seeds. [How to run real stacks](../how-to/real.md) defines "
        "the gaps. [Another report](real-stacks.md#why-gaps-are-above-the-goals) explains the "
        "large ones.",
        "",
        f"    {command}",
        "",
        f"quicgym {__version__} at commit {_core.commit}.",
        "",
        "## Gaps",
        "",
        "Means over networks, policies and seeds. In brackets the 95% interval, by a bootstrap "
        "over the seeds of each network and policy. Goodput and mean RTT in percent, the reward "
        "as a difference. A cell is a network and a policy. Behind a goal stands whether the mean "
        "meets it, and how many cells do by themselves.",
        "",
        "| gap | policies | cells | goodput | goal | mean RTT | goal | reward | goal |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for name, of, against in GAPS:
        for kind, members in kinds.items():
            goals = GOALS.get((name, kind), {})
            texts = []
            count = 0
            for metric, digits in (("goodput_mbps", 2), ("mean_rtt_ms", 2), ("reward", 4)):
                found = gaps_of(rows, members, scenarios, seeds, metric, of, against)
                count = max(count, len(found))
                texts += [_interval(found, digits), _goal(found, goals.get(metric))]
            if count:
                lines.append(f"| {name} | {kind} | {count} | {' | '.join(texts)} |")
    lines += ["", "## Order of the policies", "", *_order(rows, scenarios, policies, seeds)]
    lines += ["", *_rewards(rows, scenarios, policies, seeds)]
    lines += ["", "## Each network and policy", "", *_cells(rows, scenarios, policies, seeds)]
    lines += ["", "## Audit", "", *_audits(rows)]
    return "\n".join(lines) + "\n"


def _kind(policy: str) -> str:
    if stack_of_controller(policy) is not None:
        return "the stack's own"
    return "learned" if policy_kind(policy) == "learned" else "hand-coded"


def _interval(gaps: np.ndarray, digits: int) -> str:
    if not len(gaps):
        return "–"
    found = estimate(gaps)
    text = f"{found.value:+.{digits}f}"
    if found.low is not None and found.high is not None:
        text += f" [{found.low:+.{digits}f}, {found.high:+.{digits}f}]"
    return text


def _goal(gaps: np.ndarray, goal: float | None) -> str:
    if goal is None or not len(gaps):
        return "–"
    verdict = "met" if abs(estimate(gaps).value) <= goal else "missed"
    within = int(np.sum(np.abs(gaps.mean(axis=1)) <= goal))
    return f"≤ {goal:g}: {verdict}, {within} cells"


def _mean(
    rows: Rows, scenario: str, policy: str, source: str, seeds: int, metric: str
) -> float | None:
    values = [
        row[metric]
        for seed in range(seeds)
        if (row := rows.get((scenario, policy, source, seed))) and row[metric] is not None
    ]
    return float(np.mean(values)) if values else None


def _order(rows: Rows, scenarios: Sequence[str], policies: Sequence[str], seeds: int) -> list[str]:
    """Spearman's rank correlation of the policies' mean rewards over the networks."""
    lines = []
    for _, of, against in GAPS:
        means = [
            [_mean_reward(rows, policy, source, scenarios, seeds) for source in (of, against)]
            for policy in policies
        ]
        pairs = [pair for pair in means if None not in pair]
        if len(pairs) > 2:
            correlation = spearmanr(*np.array(pairs).T).statistic
            lines.append(
                f"- {of} against {against}: rank correlation of the mean rewards of {len(pairs)} "
                f"policies {correlation:.3f}."
            )
    return lines or ["Fewer than three policies have all runs."]


def _mean_reward(
    rows: Rows, policy: str, source: str, scenarios: Sequence[str], seeds: int
) -> float | None:
    means = [_mean(rows, name, policy, source, seeds, "reward") for name in scenarios]
    return None if None in means else float(np.mean(np.array(means, dtype=float)))


def _rewards(
    rows: Rows, scenarios: Sequence[str], policies: Sequence[str], seeds: int
) -> list[str]:
    """The mean rewards of the policies that have all runs in virtual time, best first."""
    earned = {
        policy: [_mean_reward(rows, policy, source, scenarios, seeds) for source in SOURCES]
        for policy in policies
    }
    place = SOURCES.index("virtual")
    ranked = [policy for policy in policies if earned[policy][place] is not None]
    ranked.sort(key=lambda policy: earned[policy][place] or 0.0, reverse=True)
    lines = [
        "Mean rewards over the networks, ordered by those in virtual time. The native engine does "
        "not have the stack's own controllers.",
        "",
        "| rank | policy | kind | simulator | virtual | real |",
        "|---|---|---|---|---|---|",
    ]
    for rank, policy in enumerate(ranked, 1):
        texts = ["–" if value is None else f"{value:.4f}" for value in earned[policy]]
        lines.append(f"| {rank} | {policy} | {_kind(policy)} | {' | '.join(texts)} |")
    return lines


def _cells(rows: Rows, scenarios: Sequence[str], policies: Sequence[str], seeds: int) -> list[str]:
    shown: tuple[tuple[str, Callable[[float], str]], ...] = (
        ("goodput_mbps", "{:.3f}".format),
        ("mean_rtt_ms", "{:.1f}".format),
        ("loss_percent", "{:.2f}".format),
        ("reward", "{:.4f}".format),
    )
    lines = [
        "Simulator / virtual / real, means over the seeds.",
        "",
        "| network | policy | goodput (Mbps) | mean RTT (ms) | loss (%) | reward |",
        "|---|---|---|---|---|---|",
    ]
    for scenario, policy in product(scenarios, policies):
        texts = []
        for metric, show in shown:
            means = [_mean(rows, scenario, policy, name, seeds, metric) for name in SOURCES]
            texts.append(" / ".join("–" if mean is None else show(mean) for mean in means))
        lines.append(f"| {scenario} | {policy} | {' | '.join(texts)} |")
    return lines


def _audits(rows: Rows) -> list[str]:
    audits = [row["audit"] for row in rows.values() if row.get("audit") is not None]
    if not audits:
        return ["No run in real time."]
    late = np.array([audit["lateness_p99_ms"] for audit in audits])
    stolen = np.array([audit["cpu_steal_percent"] for audit in audits])
    repeated = sum(row["attempts"] - 1 for row in rows.values() if row.get("audit") is not None)
    priority = sum(audit["realtime_priority"] for audit in audits)
    decisions_late = [audit["decision_late_p99_ms"] for audit in audits if audit["decisions"]]
    decided = (
        f" Decisions of learned policies, late at the 99th percentile: median "
        f"{np.median(decisions_late):.3f} ms, largest {max(decisions_late):.3f} ms."
        if decisions_late
        else ""
    )
    return [
        f"{len(audits)} runs in real time, all valid; {repeated} invalid ones were repeated. "
        f"{priority} had real-time priority.",
        "",
        f"Lateness of the relay at the 99th percentile: median {np.median(late):.3f} ms, largest "
        f"{np.max(late):.3f} ms. CPU time stolen: median {np.median(stolen):.1f}%, largest "
        f"{np.max(stolen):.1f}%.{decided} Socket errors: "
        f"{sum(audit['socket_errors'] for audit in audits)}.",
    ]
