"""How controllers and policies share a path: `make reports ARGS=coexistence`."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from datetime import date
from itertools import groupby
from pathlib import Path
from typing import Annotated, Any

import typer

from quicgym.agents.evaluation.evaluate import ALL_BASELINES
from quicgym.benchmarks import options
from quicgym.benchmarks.coexistence.coexistence_figure import in_words, others_in_words
from quicgym.benchmarks.coexistence.coexistence_summary import CELL_METRICS, FACTORS
from quicgym.benchmarks.coexistence.run_coexistence import run_coexist, shown_value
from quicgym.envs.simulation.window import WHOLE
from quicgym.output_folders import write_atomically
from quicgym.plot_style import display_name

RECOMMENDED = ("window", "tuning")
FIRST = ("bbr3", "copa", "prague", "vivace")
"""The figure draws the curves of the first subjects: the recommended policies, and these."""
ADOPTED = ("users_receive_rate_mbps", "others_receive_rate_mbps")
READING = """\
Each table has one number of competing flows and one queue discipline.
[The guide](../how-to/coexist.md) describes the experiments, and
[metrics](../reference/metrics.md) has the formulas. `(k/n)` says that k of n seeds have a value.
Flows that do not converge have none. The competing controller is a subject, too: its row shows what
its flows have from their like. The subject whose share is nearest to the fair share is first.
"""
ADOPTION = """\
The tables show what a flow gets where k of {flows} flows have the subject. The other flows have the
competing controller. Rates are in Mbps: of a flow with the subject / of a flow without.
"""


def page(document: Mapping[str, Any]) -> str:
    """Returns the report of the content of coexist.json, as Markdown."""
    seeds, rows = len(document["seeds"]), document["cells"]
    lines = [
        "# Coexistence",
        "",
        READING,
    ]
    names = [name for name in FACTORS if name not in ("subject", "beside", "count")]
    for _, cells in groupby(
        sorted(rows, key=lambda row: [row["count"], *(row[name] for name in names)]),
        lambda row: [row["count"], *(row[name] for name in names)],
    ):
        of_table = sorted(cells, key=lambda row: abs(row["fair_share"] - 1))
        first = of_table[0]
        lines += [
            f"## Next to {others_in_words(first)}, {in_words(first, names)}",
            "",
            "| subject | " + " | ".join(entry.title for entry in CELL_METRICS) + " |",
            "|---|" + "---:|" * len(CELL_METRICS),
        ]
        for row in of_table:
            values = [shown_value(row, entry.name, seeds) for entry in CELL_METRICS]
            lines.append(f"| {display_name(row['subject'])} | {' | '.join(values)} |")
        lines.append("")
    lines += ["## Adoption", "", ADOPTION.format(flows=document["adoption"][0]["flows"])]
    for _, curves in groupby(document["adoption"], lambda row: [row[name] for name in names]):
        of_path = list(curves)
        users = sorted({row["users"] for row in of_path})
        lines += [
            f"### {in_words(of_path[0], names)}",
            "",
            "| subject | " + " | ".join(f"k = {number}" for number in users) + " |",
            "|---|" + "---:|" * len(users),
        ]
        for subject, of_subject in groupby(of_path, lambda row: row["subject"]):
            cells_of_row = [
                " / ".join("–" if row[name] is None else f"{row[name]:.1f}" for name in ADOPTED)
                for row in of_subject
            ]
            lines.append(f"| {display_name(subject)} | {' | '.join(cells_of_row)} |")
        lines.append("")
    lines += [
        f"{date.today():%-d %B %Y}, quicgym {document['version']} at commit {document['commit']} "
        f"on {os.cpu_count()} cores, `{document['command']}`. Runs last {document['duration_s']:g} "
        f"s, and values are from {document['from_s']:g} s on.",
        "",
    ]
    return "\n".join(lines)


def coexistence(
    policy: Annotated[
        list[str] | None,
        typer.Option(help="Measure these learned policies.  [default: the recommended ones]"),
    ] = None,
    seeds: options.Seeds = 3,
    jobs: options.Jobs = None,
    resume: options.Resume = False,
    out: Path = Path("results/coexistence"),
    pages: Path = Path("results/reports"),
) -> None:
    """Write the report of all hand-coded controllers and the recommended policies."""
    subjects = [*(policy or RECOMMENDED), *FIRST, ALL_BASELINES]
    status = run_coexist(
        subjects=subjects,
        beside=["cubic"],
        counts=[1, 4],
        queues=[1.0],
        rtts=[40.0],
        rates=[50.0],
        disciplines=["drop-tail", "fq-codel"],
        directory=out,
        duration_s=60.0,
        seeds=seeds,
        window=WHOLE,
        workers=jobs or os.cpu_count() or 1,
        resume=resume and out.exists(),
        figure_format="svg",
        command=f"quicgym coexist {' '.join(subjects)} --counts 1 4 --seeds {seeds}",
    )
    if status == 0:
        document = json.loads((out / "coexist.json").read_text(encoding="utf-8"))
        write_atomically({pages / "coexistence.md": page(document)})
        for ending in ("svg", "pdf"):
            shutil.copyfile(out / f"figures/coexist.{ending}", pages / f"coexistence.{ending}")
    raise typer.Exit(status)
