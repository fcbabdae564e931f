"""`quicgym checklist`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from quicgym.benchmarks import options

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
            help="The subject: a controller, also with parameters (ebcc:gamma=60), a published "
            "policy, a policy's JSON, a training run's folder, or an object of a Python file "
            "(agent.py:policy, which runs the file).",
        ),
    ],
    checklist: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            autocompletion=options.complete_configs("checklists"),
            help=f"The checklist: {options.config_names('checklists')}, or a YAML file of that "
            "form.",
        ),
    ] = "rfc9743",
    seeds: options.Seeds = 5,
    jobs: options.Jobs = None,
    format: Annotated[
        options.ReportFormat,
        typer.Option(help="Print a table or JSON, or write DIR/checklist.html, a single file."),
    ] = options.ReportFormat.table,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Write the results to this folder.  [default: results/checklists/POLICY]",
        ),
    ] = None,
    resume: options.Resume = False,
    attack: Annotated[
        bool,
        typer.Option(
            "--attack",
            help="Also search for the worst network, like `quicgym attack`. This takes minutes "
            "and needs the extra `train`.",
        ),
    ] = False,
    trust_zip: options.TrustZip = False,
) -> None:
    """Measure what RFC 9743 asks of a new congestion controller.

    The controller runs alone and next to standard algorithms, with small and large buffers, and on
    wireless, long and changing networks. For each section of the RFC you get a number, a threshold
    with its source, and a verdict. docs/how-to/hard-tests.md explains them.
    """
    from quicgym.benchmarks.checklist.run_checklist import run_checklist
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
