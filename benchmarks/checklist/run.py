"""A checklist's runs, and what follows from them: a number, an interval and a verdict per scenario.

A check is met where its number is on the right side of the threshold by more than the 95% interval
over the seeds (Student's t), missed where it is on the other side by as much, and open otherwise. A
check over several scenarios, and an item over several checks, is met where all are, missed where
one is, and open otherwise.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
from rich.table import Table
from scipy import stats

from quicgym import __version__, _core
from quicgym.agents.evaluation.jobs import EvaluationJob, make_jobs
from quicgym.agents.evaluation.rollouts import Episode, play
from quicgym.benchmarks.checklist import page
from quicgym.benchmarks.checklist.model import Check, Checklist, load_checklist
from quicgym.benchmarks.checklist.numbers import NUMBERS, Measured, difference
from quicgym.console import say, wide_console
from quicgym.envs.scenarios.applications import Transfer
from quicgym.envs.scenarios.conversion import nanoseconds
from quicgym.envs.scenarios.model import Scenario
from quicgym.envs.simulation.simulation import NEVER
from quicgym.jobs import RUNS_FILE, report_failures, report_interruption, run_jobs
from quicgym.output_folders import digest, output_folder, write_atomically

Format = Literal["table", "json", "html"]
Verdict = Literal["met", "open", "missed"]
CONFIDENCE = 0.95
RESULTS = (RUNS_FILE, "checklist.json", "checklist.html")


@dataclass(frozen=True, eq=False)
class PartJob:
    """The part of an episode from `from_s` on: all numbers of it."""

    episode: EvaluationJob
    from_s: float

    def __str__(self) -> str:
        """Returns what identifies the part for a reader."""
        return f"{self.episode}, from {self.from_s:g} s"

    @cached_property
    def key(self) -> str:
        """What identifies the part for --resume: equal keys give equal results."""
        return digest([self.episode.key, self.from_s])

    def run(self) -> dict[str, Any]:
        """Returns the numbers by name."""
        scenario = self.episode.scenario
        whole = self._play(scenario)
        before = None
        if self.from_s > 0:
            # A simulation that ends sooner is the longer one's beginning, to the byte.
            before = self._play(scenario.model_copy(update={"duration_s": self.from_s}))
        measured = _part(scenario, whole, before)
        return {name: number.compute(measured) for name, number in NUMBERS.items()}

    def _play(self, scenario: Scenario) -> Episode:
        job = self.episode
        return play(job.load_policy(), scenario, job.engine, job.seed, keep_series=True)


def _part(scenario: Scenario, whole: Episode, before: Episode | None) -> Measured:
    agents: list[dict[str, float]] = []
    others: list[dict[str, float]] = []
    for index, (_, flow) in enumerate(scenario.single_flows()):
        totals = difference(whole.totals[index], before.totals[index] if before else None)
        (agents if flow.controller is None else others).append(totals)
    begin_s = _end_s(before) if before else 0.0
    arrived = whole.transfers[whole.transfers["start"] >= nanoseconds(begin_s)]
    durations_s = (arrived["completion"] - arrived["start"]) * 1e-9
    return Measured(
        agents,
        others,
        transfer_s=[
            _seconds(whole.totals[index])
            for index, (_, flow) in enumerate(scenario.single_flows())
            if flow.controller is None and isinstance(flow.application, Transfer)
        ],
        short_flow_s=np.where(arrived["completion"] == NEVER, np.inf, durations_s).tolist(),
        duration_s=_end_s(whole) - begin_s,
        capacity_bits=_capacity_bits(whole) - (_capacity_bits(before) if before else 0.0),
    )


def _seconds(totals: Mapping[str, Any]) -> float | None:
    """How long a transfer took."""
    completion: int | None = totals["completion"]
    return None if completion is None else (completion - totals["start"]) * 1e-9


def _end_s(episode: Episode) -> float:
    assert episode.series is not None
    return float(episode.series["time_s"][-1])


def _capacity_bits(episode: Episode) -> float:
    assert episode.series is not None
    times = episode.series["time_s"]
    return float(np.sum(episode.series["capacity_mbps"] * np.diff(times, prepend=0.0)) * 1e6)


def run_checklist(
    policy: str,
    *,
    directory: Path,
    checklist: str | Path,
    seeds: int,
    workers: int = 1,
    format: Format = "table",
    resume: bool = False,
    trust_zip: bool = False,
    command: str = "",
) -> int:
    """Runs, judges, writes and prints everything; returns the exit status.

    Args:
        policy: A name, as `find_policy` takes it.
        directory: Where results go; those of an earlier run are moved aside.
        checklist: A name or a path, as `load_checklist` takes it.
        seeds: How many; from 0.
        workers: Processes.
        format: The form of what is printed; "html" writes checklist.html instead.
        resume: Go on with what the directory holds.
        trust_zip: Accept models that Stable-Baselines3 saved; loading one runs code in it.
        command: The command line, to be kept with the results.

    Raises:
        ChecklistError, ScenarioError, PolicyError: There is no such checklist or policy, or it is
            not valid.
        RunError: The directory cannot be written to, or another command writes there.
    """
    loaded = load_checklist(checklist)
    runs = _make_runs(loaded, policy, seeds, trust_zip=trust_zip)
    jobs = list({job.key: job for of_cell in runs.values() for job in of_cell}.values())
    with output_folder(directory, RESULTS, resume=resume):
        outcome = run_jobs(jobs, directory, workers, resume=resume, title="episodes")
        report_failures(outcome.failures)
        if outcome.interrupted:
            report_interruption(outcome, jobs, directory, command, resumed=resume)
            return 130
        if outcome.failures:
            say("no verdict without these; the same command with --resume runs them again")
            return 1
        document = {
            "checklist": loaded.name,
            "title": loaded.title,
            "policy": policy,
            "seeds": list(range(seeds)),
            "version": __version__,
            "commit": _core.commit,
            "python": platform.python_version(),
            "command": command,
            "items": [_judge(item.model_dump(), item.checks, policy, runs, outcome.finished)
                      for item in loaded.items],
        }  # fmt: skip
        contents = {directory / "checklist.json": json.dumps(document, indent=1, allow_nan=False)}
        if format == "html":
            contents[directory / "checklist.html"] = page.render(document, loaded)
        write_atomically(contents)
    if format == "json":
        print(json.dumps(document, indent=1, allow_nan=False))
    elif format == "table":
        _print(document)
    file = "checklist.html" if format == "html" else "checklist.json"
    say(f"{len(jobs)} runs ({RUNS_FILE}) and {file} are in {directory}")
    return 0


Cell = tuple[str, str, float]
"""Policy, scenario, and where the part begins."""


def _make_runs(
    checklist: Checklist, policy: str, seeds: int, *, trust_zip: bool
) -> dict[Cell, list[PartJob]]:
    """Returns the runs that the checks need, a list over the seeds for each cell."""
    cells: dict[Cell, None] = {}
    for item in checklist.items:
        for check in item.checks:
            for name in check.scenarios:
                cells[policy, name, check.from_s] = None
                if check.relative_to is not None:
                    cells[check.relative_to, name, check.from_s] = None
    chosen = dict.fromkeys(name for name, _, _ in cells)
    episodes: dict[tuple[str, str], list[EvaluationJob]] = {}
    for choice in chosen:
        scenarios = dict.fromkeys(name for other, name, _ in cells if other == choice)
        entries = [checklist.scenarios[name] for name in scenarios]
        for job in make_jobs([choice], entries, seeds, trust_zip=trust_zip):
            episodes.setdefault((choice, job.scenario.name), []).append(job)
    return {
        (choice, name, from_s): [PartJob(job, from_s) for job in episodes[choice, name]]
        for choice, name, from_s in cells
    }


def _judge(
    item: dict[str, Any],
    checks: Sequence[Check],
    policy: str,
    runs: Mapping[Cell, Sequence[PartJob]],
    finished: Mapping[str, Mapping[str, Any]],
) -> dict[str, Any]:
    """Returns an item with what was measured, as JSON takes it."""

    def values(choice: str, scenario: str, check: Check) -> list[float | None]:
        found = (finished[job.key] for job in runs[choice, scenario, check.from_s])
        return [run[check.number] for run in found]

    judged = []
    for check in checks:
        measured = []
        for scenario in check.scenarios:
            numbers = values(policy, scenario, check)
            if check.relative_to is not None:
                references = values(check.relative_to, scenario, check)
                numbers = [
                    _quotient(number, reference)
                    for number, reference in zip(numbers, references, strict=True)
                ]
            measured.append({"scenario": scenario, **_against(check, numbers)})
        judged.append(
            {
                **check.model_dump(),
                "claimed": check.claimed,
                "measured": measured,
                "verdict": combined(entry["verdict"] for entry in measured),
            }
        )
    verdict = combined(entry["verdict"] for entry in judged) if judged else None
    return {**item, "checks": judged, "verdict": verdict}


def _quotient(number: float | None, reference: float | None) -> float | None:
    """Returns how many times the reference it is; equal where both are 0."""
    if number is None or reference is None:
        return None
    if reference == 0:
        return 1.0 if number == 0 else None
    return number / reference


def _against(check: Check, numbers: Sequence[float | None]) -> dict[str, Any]:
    """Returns mean, interval and verdict; open where a seed measured nothing."""
    known = [number for number in numbers if number is not None]
    if not known or len(known) < len(numbers):
        return {"mean": None, "low": None, "high": None, "verdict": "open"}
    mean = float(np.mean(known))
    reach = 0.0
    if len(known) > 1:
        deviation = float(np.std(known, ddof=1))
        reach = float(stats.t.ppf(0.5 + CONFIDENCE / 2, len(known) - 1)) * deviation
        reach /= len(known) ** 0.5
    low, high = mean - reach, mean + reach
    if check.at_least is not None:
        met, missed = low >= check.at_least, high < check.at_least
    else:
        assert check.at_most is not None
        met, missed = high <= check.at_most, low > check.at_most
    verdict: Verdict = "met" if met else "missed" if missed else "open"
    return {"mean": mean, "low": low, "high": high, "verdict": verdict}


def combined(verdicts: Iterable[Verdict]) -> Verdict:
    """Returns the verdict of a whole: that of its worst part."""
    found = set(verdicts)
    return "missed" if "missed" in found else "open" if "open" in found else "met"


def _print(document: dict[str, Any]) -> None:
    console = wide_console()
    console.print(
        f"{document['policy']}: {document['title']}\nmean and 95% interval over "
        f"{len(document['seeds'])} seeds\n",
        highlight=False,
    )
    output = Table(box=None, pad_edge=False)
    output.add_column("section", no_wrap=True)
    output.add_column("question, scenario", overflow="fold")
    output.add_column("number")
    output.add_column("measured", justify="right", no_wrap=True)
    output.add_column("threshold", no_wrap=True)
    output.add_column("verdict", no_wrap=True)
    for item in document["items"]:
        output.add_row(item["section"], item["title"], "", "", "", item["verdict"] or "–")
        if item["not_measured"]:
            output.add_row("", f"  not measured: {item['not_measured']}")
        for check in item["checks"]:
            output.add_row("", f"  {check['question']}", "", "", "", check["verdict"])
            for entry in check["measured"]:
                output.add_row(
                    "",
                    f"    {entry['scenario']}",
                    page.number_title(check),
                    page.interval(entry),
                    check["claimed"],
                    entry["verdict"],
                )
    console.print(output)
    console.print(f"\n{page.summary(document)}", highlight=False)
