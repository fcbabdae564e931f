"""The command `quicgym evaluate`: an evaluation as a table and as pictures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import pandas as pd

from quicgym.agents.evaluation.summary import Evaluation, evaluate
from quicgym.agents.policies.by_name import split_alias
from quicgym.agents.policies.hand_coded import BASELINES
from quicgym.console import count_of, print_by_columns, say, terminal_width, wide_console
from quicgym.envs.rewards import find_reward
from quicgym.envs.scenarios.fields import ScenarioError
from quicgym.envs.simulation.metrics import METRICS, OF_FLOWS, OF_RUNS, OF_TRAFFIC, TRAFFIC_METRICS
from quicgym.envs.simulation.packet_logs import PacketLogs
from quicgym.envs.simulation.window import WHOLE, Window
from quicgym.jobs import Workers
from quicgym.plot_style import display_name
from quicgym.yaml_files import closest

Format = Literal["table", "json", "csv"]
ALL_BASELINES = "baselines"
ENOUGH_SEEDS = 5
"""With fewer seeds a bootstrap interval is too narrow to be trusted."""
BLOCKED_PERCENT = 1
"""Above this share of its time blocked by flow control, a flow measures its receiver."""
COLUMNS = {
    "goodput_mbps": ("goodput\n(Mbps)", ".2f"),
    "loss_percent": ("loss\n(%)", ".2f"),
    "mean_rtt_ms": ("RTT\n(ms)", ".1f"),
    "mean_queue_delay_ms": ("queueing\ndelay (ms)", ".1f"),
    "jain": ("Jain", ".3f"),
    "fct_small_mean_ms": ("FCT to 100\nkB (ms)", ".0f"),
    "fct_small_p99_ms": ("its p99\n(ms)", ".0f"),
    "fct_medium_mean_ms": ("FCT to 10\nMB (ms)", ".0f"),
    "fct_large_mean_ms": ("FCT above\n(ms)", ".0f"),
    "request_latency_mean_ms": ("request\nlatency (ms)", ".0f"),
    "requests_answered_percent": ("answered\n(%)", ".0f"),
    "page_load_time_s": ("page load\n(s)", ".2f"),
    "video_rate_mbps": ("video\n(Mbps)", ".2f"),
    "rebuffering_percent": ("rebuffering\n(%)", ".2f"),
    "media_rate_mbps": ("media\n(Mbps)", ".2f"),
    "frame_delay_p50_ms": ("frame\ndelay (ms)", ".0f"),
    "frame_delay_p95_ms": ("its p95\n(ms)", ".0f"),
    "frozen_percent": ("frozen\n(%)", ".2f"),
}
"""Columns of the table; those of traffic only where it is measured. FCT: flow completion time."""


def run_evaluate(
    *,
    directory: Path,
    policies: Sequence[str] = (),
    suite: str | Sequence[str] = "heldout",
    seeds: int = 5,
    window: Window = WHOLE,
    engine: str = "native",
    reward: str = "fair-throughput",
    workers: int | Workers = 1,
    format: Format = "table",
    resume: bool = False,
    trust_zip: bool = False,
    other_controllers: str | None = None,
    first_seed: int = 0,
    figure_format: str = "png",
    versus: Sequence[str] = (),
    columns: Sequence[str] = (),
    qlog: PacketLogs | None = None,
    pcap: PacketLogs | None = None,
    command: str = "",
) -> int:
    """Runs, writes, draws and prints everything; returns the exit status.

    The arguments are the options of `quicgym evaluate`, and the errors those of `summary.evaluate`.
    No policy means the baselines. `versus` has the policies to which the differences of all others
    are printed; empty: a choice. `columns` has the metrics of the table; empty: COLUMNS.
    """
    chosen = expand(policies)
    shown = [split_alias(choice)[0] for choice in chosen]
    versus = [split_alias(name)[0] for name in versus]
    for name in versus:
        if name not in shown:
            raise ScenarioError(f"--versus: {name!r} is not evaluated; {closest(name, shown)}")
    check_columns(columns)
    if seeds < ENOUGH_SEEDS:
        say(
            f"note: {count_of(seeds, 'seed')}: intervals over fewer than "
            f"{ENOUGH_SEEDS} seeds say little; give --seeds {ENOUGH_SEEDS} or more"
        )
    try:
        known_reward = find_reward(reward)
    except ValueError as error:
        raise ScenarioError(f"--reward: {error}") from None
    evaluation = evaluate(
        chosen,
        suite,
        seeds,
        directory,
        engine=engine,
        window=window,
        reward=known_reward,
        workers=workers,
        resume=resume,
        trust_zip=trust_zip,
        other_controllers=other_controllers,
        first_seed=first_seed,
        figure_format=figure_format,
        qlog=qlog,
        pcap=pcap,
        print_table=lambda document: _print(document, versus, columns),
        command=command,
    )
    if evaluation.findings is None:
        return 130
    shown_columns = _columns(evaluation.findings.document, columns)
    return show(evaluation, directory, format, shown_columns)


def show(
    evaluation: Evaluation,
    directory: Path,
    format: Format,
    columns: Mapping[str, tuple[str, str]],
    claims: Sequence[str] = (),
) -> int:
    """Prints a finished evaluation and writes its report; returns the exit status.

    `columns` are those of the report's table, as `columns_of` returns them, and `claims` has an
    introduction and a sentence for each paper.
    """
    from quicgym.agents.evaluation.report import write_report  # jinja2, and matplotlib

    findings = evaluation.findings
    assert findings is not None, "an interrupted evaluation is not shown"
    report_blocked(evaluation.runs)
    findings.print(format)
    headings, rows = table(findings.document, columns)
    shown_rows = [[display_name(policy), *cells] for policy, *cells in rows]
    report = write_report(evaluation, directory, headings, shown_rows, claims)
    say(
        f"{count_of(len(evaluation.runs), 'run')} (evaluation.json, results.parquet, "
        f"intervals.parquet), the time series of seed {findings.document['seeds'][0]} (series) and "
        f"{count_of(len(evaluation.figures), 'picture')} (figures) are in {directory}; "
        f"read {report} first"
    )
    return 1 if evaluation.outcome.failures else 0


def report_blocked(runs: pd.DataFrame) -> None:
    """Says in which scenarios the receiver limited a flow, because scores measure that then."""
    columns = runs[["scenario", "policy", "blocked_percent"]].dropna()
    rows = list(columns.itertuples(index=False, name=None))
    blocked = [
        (percent, name, policy) for name, policy, percent in rows if percent > BLOCKED_PERCENT
    ]
    if blocked:
        percent, name, policy = max(blocked)
        say(
            f"warning: flow control blocked flows for more than {BLOCKED_PERCENT} % of their time "
            f"in {count_of(len(blocked), 'run')}, most in {name} with {policy} ({percent:.1f} %), "
            "so these scores measure the receiver's window; leave out flow_control_window_bytes "
            "to have it follow the path"
        )


def expand(policies: Sequence[str]) -> list[str]:
    """Returns the policies, each once, "baselines" replaced by all of these."""
    found: dict[str, None] = {}
    for choice in policies or [ALL_BASELINES]:
        found |= dict.fromkeys(BASELINES if choice == ALL_BASELINES else [choice])
    return list(found)


def notable_differences(document: dict[str, Any]) -> list[dict[str, Any]]:
    """Returns the differences that a reader asks for first.

    The best learned policy against the best baseline and the best static one, either way round as
    the better one comes first; without a learned policy the best against the next.
    """
    ranked = [entry for entry in document["policies"] if entry["iqm_reward"] is not None]
    best = {entry["kind"]: entry["policy"] for entry in reversed(ranked)}
    pairs = [
        {best["learned"], best[kind]}
        for kind in ("baseline", "static")
        if {"learned", kind} <= {*best}
    ] or [{entry["policy"] for entry in ranked[:2]}]
    return [
        entry
        for pair in pairs
        for entry in document["differences"]
        if {entry["a"], entry["b"]} == pair
    ]


def differences_to(document: dict[str, Any], policies: Sequence[str]) -> list[dict[str, Any]]:
    """Returns the differences of all policies to these."""
    return [entry for entry in document["differences"] if {entry["a"], entry["b"]} & set(policies)]


def difference_in_words(entry: dict[str, Any]) -> str:
    """Returns one line: who is ahead, by how much, and how sure that is."""
    text = f"{entry['a']} − {entry['b']}: {entry['iqm_difference']:.4f}"
    if entry["low"] != entry["high"]:  # equal where both policies do the same
        text += f" [{entry['low']:.4f}, {entry['high']:.4f}]"
    text += f"; P({entry['a']} > {entry['b']}) = {entry['probability_of_improvement']:.2f}"
    if entry["probability_low"] != entry["probability_high"]:
        text += f" [{entry['probability_low']:.2f}, {entry['probability_high']:.2f}]"
    return text


def number(value: float | None, format: str) -> str:
    """Returns a number as tables show it; a dash where nothing was measured."""
    return "–" if value is None else f"{value:{format}}"


def interval(entry: dict[str, Any]) -> str:
    """Returns a policy's interval as tables show it."""
    if entry["iqm_low"] is None:
        return "–"
    return f"{entry['iqm_low']:.4f} to {entry['iqm_high']:.4f}"


def _print(document: dict[str, Any], versus: Sequence[str], columns: Sequence[str]) -> None:
    networks = "networks" if document["distributions"] else "scenarios"
    all_drawn = len(document["distributions"]) == len(document["policies"][0]["scenarios"])
    samples = "networks" if all_drawn else "seeds"
    console = wide_console()
    console.print(
        f"{document['suite']}, {document['engine']} engine: {_size(document)}"
        f"{Window(document['from_s'], document['until_s'])}, reward {document['reward']['name']}\n"
        f"{_steered(document)}\n"
        f"IQM: interquartile mean, with its 95% interval over {samples}; the rest: means over the "
        f"{networks} that have a value\n",
        highlight=False,
    )
    headings, rows = table(document, _columns(document, columns))
    print_by_columns(headings, rows)
    console.print(
        f"\nwithin 1% of best: share of the {networks} with a reward at most 1% below that of the "
        "best hand-coded controller here",
        highlight=False,
    )
    _print_parts(document)
    differences = differences_to(document, versus) if versus else notable_differences(document)
    room = terminal_width()
    for entry in differences:
        text = f"IQM {difference_in_words(entry)}"
        if len(text) > room:  # at a terminal's edge an interval would be cut
            text = text.replace("; ", "\n  ")
        console.print(text, highlight=False, markup=False)


def check_columns(names: Sequence[str]) -> None:
    """Raises ScenarioError where a column of a table is no metric of every run."""
    known = [entry.name for entry in (*OF_RUNS, *OF_FLOWS, *OF_TRAFFIC)]
    for name in names:
        if name not in known:
            raise ScenarioError(f"--columns: no metric {name!r}; {closest(name, known)}")


def columns_of(names: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Returns heading and format of metrics, by name."""
    return {
        name: COLUMNS.get(name, (METRICS[name].title.replace(", ", "\n"), ".2f")) for name in names
    }


def _columns(document: dict[str, Any], chosen: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Returns the columns of the table: the chosen ones, or else COLUMNS that were measured."""
    means = [entry["mean"] or {} for entry in document["policies"]]
    return {
        name: column
        for name, column in columns_of(chosen or tuple(COLUMNS)).items()
        if chosen
        or name not in TRAFFIC_METRICS
        or any(mean.get(name) is not None for mean in means)
    }


def table(
    document: dict[str, Any], columns: Mapping[str, tuple[str, str]]
) -> tuple[list[str], list[list[str]]]:
    """Returns the headings and the rows of the table, a row for each policy."""
    headings = ["policy", "IQM\nreward", "\n95% interval", "mean\nreward"]
    headings += [*(heading for heading, _ in columns.values()), "within 1% of\nbest (%)"]
    rows = []
    for entry in document["policies"]:
        mean, share = entry["mean"] or {}, entry["level_share"]
        rows.append(
            [
                entry["policy"],
                number(entry["iqm_reward"], ".4f"),
                interval(entry),
                number(mean.get("reward"), ".4f"),
                *(number(mean.get(metric), form) for metric, (_, form) in columns.items()),
                number(None if share is None else 100 * share, ".0f"),
            ]
        )
    return headings, rows


def _size(document: dict[str, Any]) -> str:
    """Returns what is run: scenarios, drawn networks, and all runs."""
    policies, drawn = document["policies"], document["distributions"]
    entries, seeds = len(policies[0]["scenarios"]), len(document["seeds"])
    parts = []
    if len(drawn) < entries:
        fixed = count_of(entries - len(drawn), "scenario")
        parts.append(f"{fixed} with {count_of(seeds, 'seed')}")
    if drawn:
        which = "the distribution" if len(drawn) == 1 else "each of the distributions"
        parts.append(f"{count_of(seeds, 'network')} of {which} {', '.join(drawn)}")
    return f"{', '.join(parts)}, {count_of(len(policies) * entries * seeds, 'run')}"


def _steered(document: dict[str, Any]) -> str:
    """Returns which flows have the policy."""
    least, most = document["policy_flows"]
    count = f"{least}" if least == most else f"{least} to {most}"
    number = f"{count} {'flow' if most == 1 else 'flows'}"
    other = document["other_controllers"]
    if other is not None:
        return f"each policy has one flow, the other flows without a controller run {other}"
    return f"each policy has every flow that names no controller: {number}"


def _print_parts(document: dict[str, Any]) -> None:
    """Prints the IQM of each policy on the paths of each part of a mixture."""
    entries = [entry for entry in document["policies"] if entry.get("parts")]
    if not entries:
        return
    console = wide_console()
    console.print("\nIQM reward on the paths of each part:\n", highlight=False)
    headings = ["part", "paths", *(entry["policy"] for entry in entries)]
    several = len({part["scenario"] for part in entries[0]["parts"]}) > 1
    rows = [
        [
            f"{parts[0]['scenario']}: {parts[0]['part']}" if several else parts[0]["part"],
            str(parts[0]["seeds"]),
            *(f"{part['iqm_reward']:.4f}" for part in parts),
        ]
        for parts in zip(*(entry["parts"] for entry in entries), strict=True)
    ]
    print_by_columns(headings, rows)
    console.print()
