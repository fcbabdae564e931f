"""The checklist's page of every hand-coded controller and published policy.

`make reports ARGS=checklists` writes one HTML page for each into results/reports/checklists, and
beside this folder checklists.md, the table of all verdicts.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

import typer

from quicgym.agents.policies.by_name import pretrained_names
from quicgym.agents.policies.hand_coded import BASELINES
from quicgym.benchmarks import options
from quicgym.benchmarks.checklist.checks import RFC_9743, load_checklist
from quicgym.benchmarks.checklist.run_checklist import run_checklist
from quicgym.output_folders import write_atomically

SIGNS = {"met": "✓", "open": "≈", "missed": "✗", None: ""}


def write_pages(
    policies: Sequence[str], folder: Path, results: Path, *, seeds: int, workers: int, resume: bool
) -> int:
    """Runs the checklist of every policy; writes the pages and their table; returns the status.

    The runs of each policy go into a folder of `results`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    documents = []
    for policy in policies:
        directory = results / policy
        status = run_checklist(
            policy,
            directory=directory,
            checklist=RFC_9743,
            seeds=seeds,
            workers=workers,
            format="html",
            resume=resume and directory.exists(),
            command=f"quicgym checklist {policy} --seeds {seeds} --format html",
        )
        if status:
            return status
        page = (directory / "checklist.html").read_text(encoding="utf-8")
        write_atomically({folder / f"{policy}.html": page})
        documents.append(json.loads((directory / "checklist.json").read_text(encoding="utf-8")))
    write_atomically({folder.parent / "checklists.md": _table(documents)})
    return 0


def _table(documents: Sequence[dict[str, Any]]) -> str:
    items = [item for item in load_checklist().items if item.checks]
    first = documents[0]
    lines = [
        "# RFC 9743",
        "",
        "The table has the verdict of every hand-coded controller and published policy on each",
        "section of RFC 9743. A section has the verdict of its worst check: ✓ met, ✗ missed, or ≈",
        "open, which means that the 95% interval over the seeds contains the threshold.",
        "[The guide](../how-to/hard-tests.md#rfc-9743-as-a-command) says how each is measured, and",
        "`quicgym checklist POLICY --format html` writes a page with all numbers of a policy.",
        "",
        "| | " + " | ".join(item.section for item in items) + " |",
        "|---|" + "---|" * len(items),
    ]
    for document in documents:
        verdicts = {item["section"]: item["verdict"] for item in document["items"]}
        cells = " | ".join(SIGNS[verdicts[item.section]] for item in items)
        lines.append(f"| {document['policy']} | {cells} |")
    sections = "; ".join(f"{item.section} {item.title}" for item in items)
    lines += [
        "",
        f"The sections are {sections}.",
        "",
        f"{date.today():%-d %B %Y}, quicgym {first['version']} at commit {first['commit']} on "
        f"{os.cpu_count()} cores, `make reports ARGS=checklists`, seeds 0 to "
        f"{len(first['seeds']) - 1}.",
        "",
    ]
    return "\n".join(lines)


def checklists(
    seeds: options.Seeds = 5,
    jobs: options.Jobs = None,
    resume: options.Resume = False,
    pages: Path = Path("results/reports/checklists"),
    out: Path = Path("results/checklists"),
) -> None:
    """Write the checklist's pages of all hand-coded controllers and published policies."""
    status = write_pages(
        [*BASELINES, *pretrained_names()],
        pages,
        out,
        seeds=seeds,
        workers=jobs or os.cpu_count() or 1,
        resume=resume,
    )
    raise typer.Exit(status)
