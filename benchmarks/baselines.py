"""The mission's comparison: the papers' controllers and the published agents on one reward.

`quicgym baselines` evaluates both on the same networks with the same seeds. Into the output folder
goes what `quicgym evaluate` leaves there, with one figure, the logs for TensorBoard (tensorboard/)
and, unless the networks are others, the verdicts on the papers' claims (papers/, and a sentence for
each paper in the report).
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
    show,
    table,
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
    shown_columns = columns_of(columns) if columns else COLUMNS
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
        print_table=lambda document: _print(document, shown_columns),
        command=command,
    )
    found = evaluation.findings
    if found is None:
        return 130
    logs = _write_logs(directory, command)
    claims: list[str] = []
    status = 0
    if tuple(suite) == SUITES:
        status, counts = _judge_claims(directory, seeds, workers, resume, command)
        if status == 130:
            return status
        found = replace(found, content={**found.content, "papers": counts})
        claims = _claims(found.document)
        evaluation = replace(evaluation, findings=found)
    status = max(status, show(evaluation, directory, format, shown_columns, claims))
    if logs is not None:
        say(f"curves: tensorboard --logdir {shlex.quote(str(logs))}")
    return status


def _judge_claims(
    directory: Path, seeds: int, workers: int | Workers, resume: bool, command: str
) -> tuple[int, dict[str, dict[str, int]]]:
    """Returns the exit status, and by paper how many of its claims have each verdict."""
    asked = asked_of(PAPERS, seeds, without_ns3=True, most_packets=MOST_PACKETS)
    folder = directory / "papers"
    resume = resume and folder.exists()
    study = Study(folder, RESULTS, command, workers, format="none", resume=resume)
    jobs = make_runs(asked, None)
    counts: dict[str, dict[str, int]] = {}

    def conclude(outcome: Outcome) -> Findings:
        measured = Measurements(jobs, outcome.finished)
        for reproduction in reproduce(asked, measured):
            counts[reproduction.paper.name] = claim_counts(reproduction, asked)
        return findings(asked, study, measured)

    return run_study(study, jobs, conclude, title="papers"), counts


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


def _claims(document: dict[str, Any]) -> list[str]:
    """Returns an introduction, and a sentence for each paper: how many of its claims hold."""
    return [
        f"The papers' claims, judged with {count_of(len(document['seeds']), 'seed')} on the native "
        "engine alone. The command in brackets judges all claims of a paper, also over ns-3, and "
        "prints its tables. That takes minutes, or hours of CPU time where ns-3 is needed: about "
        "two for ibcca.",
        *(
            f"{name}: of {sum(counts.values())} claims {counted(counts)} "
            f"(quicgym papers --paper {name})"
            for name, counts in document["papers"].items()
        ),
    ]


def _print(document: dict[str, Any], columns: Mapping[str, tuple[str, str]]) -> None:
    console = wide_console()
    networks, seeds = len(document["policies"][0]["scenarios"]), len(document["seeds"])
    console.print(
        f"{document['suite']} ({count_of(networks, 'network')}), {count_of(seeds, 'seed')}, "
        f"{document['engine']} engine; the best policy first\n",
        highlight=False,
    )
    headings, rows = table(document, columns)
    print_by_columns(headings, [[display_name(policy), *cells] for policy, *cells in rows])
    few = (
        f", of which {ENOUGH_SEEDS} or more are needed to trust it" if seeds < ENOUGH_SEEDS else ""
    )
    introduction, *claims = _claims(document) if "papers" in document else [""]
    sample = (
        " Most of these networks are the papers' own. docs/reports/leaderboard.md has the order "
        "by the mean over ten suites."
        if introduction
        else ""
    )
    for text in (
        "The reward is throughput share − 5 · loss rate − (1 − Jain's index) of each 100 ms, so "
        "the columns, which have loss and Jain's index of whole runs, do not add up to it. IQM is "
        f"its interquartile mean over all runs, with an interval over the seeds{few}. The other "
        "columns are means over the networks, and the last one is the share of the networks on "
        "which a policy earns at most 1% less than the best hand-coded controller here. The order "
        f"is that of the IQM.{sample}",
        introduction,
    ):
        if text:
            console.print(f"\n{text}", highlight=False, width=100)
    for sentence in claims:
        console.print(sentence, highlight=False)
