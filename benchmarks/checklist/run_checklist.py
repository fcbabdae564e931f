"""A checklist's runs, and what follows from them: a number, an interval and a verdict per scenario.

A check is met where its number is on the right side of the threshold by more than the 95% interval
over the seeds (Student's t), missed where it is on the other side by as much, and open otherwise.
With a single seed there is no interval, so every check is open. A check over several scenarios, and
an item over several checks, is met where all are, missed where one is, and open otherwise.
"""

from __future__ import annotations

import math
import platform
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any, Literal

from rich.table import Table

from quicgym.agents.evaluation.jobs import RunJob, make_jobs
from quicgym.agents.evaluation.statistics import mean_interval
from quicgym.benchmarks.checklist import checklist_page
from quicgym.benchmarks.checklist.checks import (
    AttackCheck,
    Check,
    Checklist,
    ChecklistError,
    load_checklist,
)
from quicgym.console import say, wide_console
from quicgym.envs.simulation.metrics import METRICS
from quicgym.envs.simulation.window import Window
from quicgym.jobs import RUNS_FILE, Outcome
from quicgym.studies import Ended, Findings, Study, run_study

Format = Literal["table", "json", "html"]
Verdict = Literal["met", "open", "missed"]
ATTACK_FOLDER = "attack"
RESULTS = (RUNS_FILE, "checklist.json", "checklist.html", ATTACK_FOLDER)


def run_checklist(
    policy: str,
    *,
    directory: Path,
    checklist: str | Path,
    seeds: int,
    workers: int = 1,
    format: Format = "table",
    resume: bool = False,
    attack: bool = False,
    trust_zip: bool = False,
    command: str = "",
) -> int:
    """Runs, judges, writes and prints everything; returns the exit status.

    The arguments are the options of `quicgym checklist`; the format "html" writes checklist.html in
    place of a table. ChecklistError, ScenarioError, PolicyError or RunError says what cannot be
    run.
    """
    loaded = load_checklist(checklist)
    if attack and loaded.attack is None:
        raise ChecklistError(f"--attack: the checklist {loaded.name} has no field attack; add it")
    runs = _make_runs(loaded, policy, seeds, trust_zip=trust_zip)
    jobs = list({job.key: job for of_cell in runs.values() for job in of_cell}.values())
    study = Study(directory, RESULTS, command, workers, format, resume)

    def attacked(check: AttackCheck, outcome: Outcome) -> dict[str, Any]:
        from quicgym.agents.attack.attack import Interrupted, attack_policy  # extra `sweep`

        folder = directory / ATTACK_FOLDER
        try:
            found = attack_policy(
                policy,
                directory=folder,
                against=check.against,
                distribution=check.distribution,
                trials=check.trials,
                workers=workers,
                resume=resume and folder.exists(),
                trust_zip=trust_zip,
            )
        except Interrupted:
            outcome.interrupted = True
            study.interrupted(outcome, jobs)
            raise Ended(130) from None
        if found is None:
            say("the attack has no result; the reasons are above")
            raise Ended(1)
        return found.document

    def conclude(outcome: Outcome) -> Findings:
        items = [
            _judge(item.model_dump(), item.checks, policy, runs, outcome.finished)
            for item in loaded.items
        ]
        if loaded.attack is not None:
            found = attacked(loaded.attack, outcome) if attack else None
            items.append(_judge_attack(loaded.attack, found))
        about = {
            "checklist": loaded.name,
            "title": loaded.title,
            "policy": policy,
            **study.about(seeds),
            "python": platform.python_version(),
        }
        document = {**about, "items": items}
        html = format == "html"
        return Findings(
            "checklist.json",
            about,
            {"items": items},
            f"{len(jobs)} runs ({RUNS_FILE}) and {'checklist.html' if html else 'checklist.json'}",
            print_table=_print,
            texts={"checklist.html": checklist_page.render(document, loaded)} if html else {},
        )

    incomplete = "no verdict without these; the same command with --resume runs them again"
    return run_study(study, jobs, conclude, title="episodes", incomplete=incomplete)


Cell = tuple[str, str, Window]
"""Policy, scenario, and the part of the run."""


def _make_runs(
    checklist: Checklist, policy: str, seeds: int, *, trust_zip: bool
) -> dict[Cell, list[RunJob]]:
    """Returns the runs that the checks need, a list over the seeds for each cell."""
    numbers: dict[Cell, dict[str, None]] = {}
    for item in checklist.items:
        for check in item.checks:
            for name, choice in product(
                check.scenarios, dict.fromkeys((policy, check.relative_to or policy))
            ):
                cell = (choice, name, check.window)
                numbers.setdefault(cell, {})[check.number] = None
    return {
        (choice, name, window): make_jobs(
            [choice],
            [checklist.scenarios[name]],
            seeds,
            window=window,
            measures=tuple(measures),
            trust_zip=trust_zip,
        )
        for (choice, name, window), measures in numbers.items()
    }


def _judge(
    item: dict[str, Any],
    checks: Sequence[Check],
    policy: str,
    runs: Mapping[Cell, Sequence[RunJob]],
    finished: Mapping[str, Mapping[str, Any]],
) -> dict[str, Any]:
    """Returns an item with what was measured, as JSON takes it."""

    def values(choice: str, scenario: str, check: Check) -> list[float | None]:
        found = (finished[job.key] for job in runs[choice, scenario, check.window])
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


def _judge_attack(check: AttackCheck, found: dict[str, Any] | None) -> dict[str, Any]:
    """Returns the item of the attack, as JSON takes it; not measured without a result."""
    item = {"section": ATTACK_FOLDER, "title": check.title, "not_measured": None}
    if found is None:
        reason = f"{check.trials} networks are searched with the option --attack"
        return {**item, "checks": [], "not_measured": reason, "verdict": None}
    worst = found["found"]
    numbers = {"mean": 0.0, "low": 0.0, "high": 0.0}
    if worst is not None:
        numbers = {"mean": worst["difference"], "low": worst["low"], "high": worst["high"]}
    is_met, is_missed = numbers["low"] >= check.at_least, numbers["high"] < check.at_least
    verdict: Verdict = "met" if is_met else "missed" if is_missed else "open"
    where = "not behind for sure on any network" if worst is None else worst["sentence"]
    measured = {"scenario": where, **numbers, "verdict": verdict}
    about = {**check.model_dump(), "number": "reward", "relative_to": None}
    about |= {"from_s": 0.0, "until_s": None, "claimed": f"at least {check.at_least:g}"}
    judged = {**about, "measured": [measured], "verdict": verdict}
    return {**item, "checks": [judged], "verdict": verdict}


def _quotient(number: float | None, reference: float | None) -> float | None:
    """Returns how many times the reference it is; equal where both are 0."""
    if number is None or reference is None:
        return None
    if reference == 0:
        return 1.0 if number == 0 else None
    return number / reference


def _against(check: Check, numbers: Sequence[float | None]) -> dict[str, Any]:
    """Returns mean, interval and verdict; open where a seed measured nothing, and of one seed."""
    known = [number for number in numbers if number is not None]
    if not known or len(known) < len(numbers):
        return {"mean": None, "low": None, "high": None, "verdict": "open"}
    least, most = METRICS[check.number].bounds
    if check.relative_to is not None:
        most = math.inf  # of a quotient, which is signed where the number is
    estimate = mean_interval(known, (least, most))
    mean, low, high = estimate.value, estimate.low, estimate.high
    if low is None or high is None:
        return {"mean": mean, "low": None, "high": None, "verdict": "open"}
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
                    checklist_page.number_title(check),
                    checklist_page.interval(entry),
                    check["claimed"],
                    entry["verdict"],
                )
    console.print(output)
    console.print(f"\n{checklist_page.summary(document)}", highlight=False)
