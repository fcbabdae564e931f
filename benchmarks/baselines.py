"""The mission's comparison: the papers' controllers and the published agents on one reward.

`quicgym baselines` evaluates both on the same networks with the same seeds. Into the output folder
goes what `quicgym evaluate` leaves there, with one figure, the logs for TensorBoard (tensorboard/)
and the verdicts on the papers' claims (papers/).
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from quicgym.agents.evaluation.evaluate import COLUMNS as evaluate_columns
from quicgym.agents.evaluation.evaluate import (
    ENOUGH_SEEDS,
    check_columns,
    columns_of,
    interval,
    number,
)
from quicgym.agents.evaluation.summary import evaluate
from quicgym.agents.policies.by_name import pretrained_names
from quicgym.benchmarks.papers.measurements import Measurements
from quicgym.benchmarks.papers.run_papers import (
    RESULTS,
    asked_of,
    claim_counts,
    findings,
    make_runs,
    reproduce,
)
from quicgym.benchmarks.papers.verdicts import counted
from quicgym.console import count_of, print_by_columns, say, wide_console
from quicgym.errors import MissingExtraError
from quicgym.jobs import Outcome, Workers
from quicgym.plot_style import display_name
from quicgym.studies import Findings, Study, run_study

Format = Literal["table", "json", "csv"]
CONTROLLERS = (
    "ebcc", "ibcca", "cubic+", "newreno+", "bbr-smooth", "bbr-extended", "bbr-combined",
    "newreno", "cubic", "bbr", "bbr3",
)  # fmt: skip
"""The hand-coded policies of the papers, and what they are compared with."""
SUITES = ("papers", "heldout/8")
PAPERS = ("ebcc", "cubic-plus", "ibcca", "high-latency")
MOST_PACKETS = 1_000_000
"""The longest simulation for a claim, because Cubic+'s at 400 Mbps take longer than all others."""
COLUMNS = {
    "throughput_share": ("throughput\nshare", ".3f"),
    "loss_percent": evaluate_columns["loss_percent"],
    "jain": ("Jain's\nindex", ".3f"),
    "mean_rtt_ms": evaluate_columns["mean_rtt_ms"],
    "mean_queue_delay_ms": evaluate_columns["mean_queue_delay_ms"],
}


def run_baselines(
    *,
    directory: Path,
    suite: Sequence[str] = SUITES,
    controllers: Sequence[str] = CONTROLLERS,
    policies: Sequence[str] | None = None,
    seeds: int = 2,
    engine: str = "native",
    workers: int | Workers = 1,
    format: Format = "table",
    resume: bool = False,
    figure_format: str = "png",
    columns: Sequence[str] = (),
    command: str = "",
) -> int:
    """Runs, writes, draws and prints everything; returns the exit status.

    The arguments are the options of `quicgym baselines`, and the errors those of
    `summary.evaluate`. No `policies` means the published agents.
    """
    check_columns(columns)
    agents = pretrained_names() if policies is None else policies
    evaluation = evaluate(
        list(dict.fromkeys([*controllers, *agents])),
        list(suite),
        seeds,
        directory,
        engine=engine,
        workers=workers,
        resume=resume,
        figure_format=figure_format,
        figures=("iqm",),
        command=command,
    )
    if evaluation.findings is None:
        return 130
    logs = _write_logs(directory, command)
    asked = asked_of(PAPERS, seeds, without_ns3=True, most_packets=MOST_PACKETS)
    study = Study(directory / "papers", RESULTS, command, workers, format="none", resume=resume)
    jobs = make_runs(asked, None)
    counts: dict[str, dict[str, int]] = {}

    def conclude(outcome: Outcome) -> Findings:
        measured = Measurements(jobs, outcome.finished)
        for reproduction in reproduce(asked, measured):
            counts[reproduction.paper.name] = claim_counts(reproduction, asked)
        return findings(asked, study, measured)

    status = run_study(study, jobs, conclude, title="papers")
    if status == 130:
        return status
    found = evaluation.findings
    document = {**found.document, "papers": counts}

    def print_table() -> None:
        _print(document, columns_of(columns) if columns else COLUMNS)
        for figure in evaluation.figures:
            print(f"\nfigure: {figure}")
        if logs is not None:
            print(f"curves: tensorboard --logdir {shlex.quote(str(logs))}")

    replace(found, content={**found.content, "papers": counts}, print_table=print_table).print(
        format
    )
    say(
        f"{count_of(len(evaluation.runs), 'run')} (evaluation.json, results.parquet) are in "
        f"{directory}"
    )
    return 1 if evaluation.outcome.failures else status


def _write_logs(directory: Path, command: str) -> Path | None:
    """Writes the logs for TensorBoard; None where it is not installed."""
    try:
        from quicgym.agents.evaluation.compare import write_logs
    except MissingExtraError as error:
        say(f"note: there are no logs for TensorBoard: {error}")
        return None
    logs = directory / "tensorboard"
    write_logs(directory, logs, command=command)
    return logs


def _print(
    document: dict[str, Any],
    columns: Mapping[str, tuple[str, str]],
) -> None:
    console = wide_console()
    networks, seeds = len(document["policies"][0]["scenarios"]), len(document["seeds"])
    shown_seeds = count_of(seeds, "seed")
    console.print(
        f"{document['suite']} ({count_of(networks, 'network')}), {shown_seeds}, "
        f"{document['engine']} engine; the best policy first\n",
        highlight=False,
    )
    headings = ["policy", "reward", "95% interval", *(heading for heading, _ in columns.values())]
    rows = [
        [
            display_name(entry["policy"]),
            number(entry["iqm_reward"], ".4f"),
            interval(entry),
            *(number((entry["mean"] or {}).get(name), form) for name, (_, form) in columns.items()),
        ]
        for entry in document["policies"]
    ]
    print_by_columns(headings, rows)
    few = (
        f", of which {ENOUGH_SEEDS} or more are needed to trust it" if seeds < ENOUGH_SEEDS else ""
    )
    console.print(
        "\nThe reward is throughput share − 5 · loss rate − (1 − Jain's index), as its "
        "interquartile mean over all runs; the other columns are means over the networks. The "
        f"interval is over the seeds{few}.",
        highlight=False,
        width=100,
    )
    console.print(
        f"\nThe papers' claims, judged with {shown_seeds} on the native engine (in brackets the "
        "command for a paper's tables):",
        highlight=False,
        width=100,
    )
    for name, of_paper in document["papers"].items():
        console.print(
            f"{name}: of {sum(of_paper.values())} claims {counted(of_paper)} "
            f"(quicgym papers --paper {name})",
            highlight=False,
        )
