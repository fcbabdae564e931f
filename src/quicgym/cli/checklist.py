"""`quicgym checklist`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from quicgym.cli import options

EXAMPLES = (
    "quicgym checklist bbr",
    "quicgym checklist window --format html --out results/window",
    "quicgym checklist ebcc:gamma=60 --seeds 10 --format json",
    "quicgym checklist copa --attack",
)


def checklist(
    policy: Annotated[
        str,
        typer.Argument(
            metavar="CONTROLLER_OR_POLICY",
            autocompletion=options.complete_policies,
            help="A controller, one with parameters (ebcc:gamma=60), a published policy, a "
            "policy's JSON, a training run's folder, or an object of a Python file "
            "(agent.py:policy; runs the file).",
        ),
    ],
    checklist: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            autocompletion=options.complete_configs("checklists"),
            help=f"{options.config_names('checklists')}, or a YAML of that form.",
        ),
    ] = "rfc9743",
    seeds: options.Seeds = 5,
    jobs: options.Jobs = None,
    format: Annotated[
        options.ReportFormat,
        typer.Option(help="What is printed; html writes DIR/checklist.html, one file."),
    ] = options.ReportFormat.table,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Where results are written.  [default: results/checklists/POLICY]"
        ),
    ] = None,
    resume: options.Resume = False,
    attack: Annotated[
        bool,
        typer.Option(
            "--attack",
            help="Search the worst network as well, as `quicgym attack` does; takes minutes and "
            "needs the extra `train`.",
        ),
    ] = False,
    trust_zip: options.TrustZip = False,
) -> None:
    """Measure what RFC 9743 asks of a new congestion controller.

    Alone and beside standard algorithms, short of buffer and bloated, wireless, long and changing
    paths: a number, a threshold with its source and a verdict for each section.
    docs/how-to/checklist.md has more.
    """
    from quicgym.benchmarks.checklist.run import run_checklist
    from quicgym.output_folders import file_name

    status = run_checklist(
        policy,
        directory=out or Path("results/checklists") / file_name(policy),
        checklist=checklist,
        seeds=seeds,
        workers=jobs or os.cpu_count() or 1,
        format=format.value,
        resume=resume,
        attack=attack,
        trust_zip=trust_zip,
        command=options.command_line(),
    )
    raise typer.Exit(status)
