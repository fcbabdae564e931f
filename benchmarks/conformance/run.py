"""Runs the test cases of a specification with one controller, and says which it fails."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from rich.table import Table

import quicgym
from quicgym import Scenario, __version__, _core
from quicgym.benchmarks.conformance.bbr3 import CASES, NEVER_S, SETUP, Case
from quicgym.benchmarks.conformance.observed import Missed, Observed
from quicgym.console import say, wide_console
from quicgym.envs.scenarios.fields import ScenarioError
from quicgym.envs.simulation.run import Run
from quicgym.errors import UserError
from quicgym.output_folders import output_folder, write_atomically
from quicgym.yaml_files import closest

SPECIFICATIONS = {"bbr3": CASES}
RESULTS = ("conformance.json", "qlog")
Verdict = Literal["passed", "failed", "not run"]


def judge(
    case: Case, controller: str, stack: str | None = None, qlog: Path | None = None
) -> tuple[Verdict, str]:
    """Runs one case.

    Args:
        case: The case.
        controller: Name of what steers the flow, see quicgym.run.
        stack: Name of a QUIC stack, on its virtual clock; None: the simulator.
        qlog: Folder that gets the qlog of the run; None: none.

    Returns:
        The verdict, and for other verdicts than "passed" what was seen or what is missing.
    """

    def run(at_s: float, folder: Path | None = None) -> Run:
        scenario = Scenario.model_validate(case.scenario(at_s))
        clock = None if stack is None else "virtual"
        return quicgym.run(scenario, controller, stack=stack, clock=clock, qlog=folder)

    try:
        at_s = NEVER_S
        if case.cue is not None:
            at_s = case.cue(Observed(run(NEVER_S), case.application_mbps))
        case.check(Observed(run(at_s, qlog), case.application_mbps), at_s)
    except Missed as missed:
        return "failed", str(missed)
    except ScenarioError as error:
        if stack is None:
            raise
        return "not run", str(error)
    return "passed", ""


def run_conformance(
    specification: str,
    controller: str | None,
    stack: str | None,
    directory: Path,
    chosen: Sequence[str] = (),
    format: Literal["table", "json"] = "table",
    command: str = "",
) -> int:
    """Runs, writes and prints everything; returns the exit status, 1 where a case failed.

    Args:
        specification: One of SPECIFICATIONS.
        controller: Name of what steers the flow; None: that of the specification, with a stack the
            stack's own, such as noq-bbr3.
        stack: Name of a QUIC stack, on its virtual clock; None: the simulator.
        directory: Folder of conformance.json and of the qlog files, a folder for each case.
        chosen: Sections of the cases to run; none: all.
        format: The form of what is printed.
        command: The command line, to be kept with the results.

    Raises:
        UserError: There is no such specification or case.
    """
    if specification not in SPECIFICATIONS:
        known = closest(specification, SPECIFICATIONS)
        raise UserError(f"unknown specification {specification!r}; {known}")
    cases = {case.section: case for case in SPECIFICATIONS[specification]}
    for section in chosen:
        if section not in cases:
            raise UserError(f"unknown case {section!r}; {closest(section, cases)}")
    subject = controller or (specification if stack is None else f"{stack}-{specification}")
    judged: list[dict[str, Any]] = []
    with output_folder(directory, RESULTS, resume=False):
        for section in chosen or cases:
            case = cases[section]
            verdict, seen = judge(case, subject, stack, directory / "qlog" / section)
            judged.append(
                {
                    "section": section,
                    "title": case.title,
                    "setup": SETUP if case.setup == "none" else f"{SETUP}; {case.setup}",
                    "expected": case.expected,
                    "verdict": verdict,
                    "seen": seen,
                }
            )
        document = {
            "specification": specification,
            "controller": subject,
            "stack": stack,
            "version": __version__,
            "commit": _core.commit,
            "command": command,
            "cases": judged,
        }
        text = json.dumps(document, indent=1)
        write_atomically({directory / "conformance.json": text})
    if format == "json":
        print(text)
    else:
        _print(judged)
    count = {name: sum(case["verdict"] == name for case in judged)
             for name in ("passed", "failed", "not run")}  # fmt: skip
    summary = ", ".join(f"{number} {name}" for name, number in count.items() if number)
    say(f"{subject}: {summary}; conformance.json and qlog/ are in {directory}")
    return 1 if count["failed"] else 0


def _print(judged: Sequence[dict[str, Any]]) -> None:
    table = Table(box=None, pad_edge=False)
    for column in ("case", "verdict"):
        table.add_column(column, no_wrap=True)
    table.add_column("about")
    for case in judged:
        about = case["title"]
        if case["verdict"] != "passed":
            about += f"\n  set-up: {case['setup']}\n  expected: {case['expected']}\n"
            about += f"  seen: {case['seen']}"
        table.add_row(case["section"], case["verdict"], about)
    wide_console().print(table)
