"""The leaderboard's page: what the evaluations of the leaderboard's policies say, as Markdown.

It holds nothing that changes from run to run: the same policies, version and commit give the same
bytes.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from quicgym.agents.evaluation.evaluate import number
from quicgym.benchmarks.leaderboard_data import (
    FURTHEST_BEHIND,
    Entry,
    behind_baselines,
    beside_references,
)

ENGINES = {"native": "native engine", "ns3": "ns-3"}
COLUMNS = {
    "reward": ("mean", ".4f"),
    "throughput_share": ("throughput share", ".3f"),
    "loss_rate": ("loss rate", ".4f"),
    "jain_of_intervals": ("Jain", ".3f"),
    "goodput_mbps": ("goodput (Mbps)", ".2f"),
    "agent_goodput_mbps": ("agent's goodput (Mbps)", ".2f"),
    "loss_percent": ("loss (%)", ".2f"),
    "mean_rtt_ms": ("RTT (ms)", ".1f"),
    "mean_queue_delay_ms": ("queueing delay (ms)", ".1f"),
}
READING = """\
IQM is the interquartile mean of the reward over all scenarios and seeds. Brackets are 95% intervals
over seeds; [evaluation](../reference/evaluation.md) has the formulas. All other columns are means
over the scenarios. An episode's reward is the mean over intervals of 100 ms of

    throughput share − 5 · loss rate − 1 · (1 − Jain)

The three columns after the reward are these terms: they show how a policy earns its reward.
"Goodput" is the mean over all flows of a scenario. "Agent's goodput" is the mean over the flows
that have the policy. A policy that takes bandwidth from other flows raises the second alone.
"Within 1% of best" is the share of the scenarios in which the reward is at most 1% below that of
the best baseline.

A collapse is a network on which a policy does far worse than CUBIC and BBR. Its throughput share is
below half of the larger of theirs, or its loss rate is more than 10 percentage points above both.
Power is goodput over mean RTT. The table has its geometric mean over the networks.

"Worst found" is the reward minus that of the best of CUBIC, BBR and BBRv3, on the network on which
`quicgym attack` found a policy worst. [Attacks](attacks.md) describes these networks.
"""
FILES = """\
`make reports ARGS=leaderboard` writes all numbers into `results/reports`: `{stem}.md` has a table
for each suite, with the terms of the reward, rates and delays, `{stem}.json` is for programs, and
`{stem}.svg` is a picture.
"""
SECTIONS = """\
Each section is one suite on one engine. Ranks hold within a section only. All policies of a section
meet the same networks: scenario and seed fix everything that is random. A suite of many networks
has fewer seeds, since its networks already give many paired paths. ns-3 takes over 100 times the
CPU time of the native engine, so its sections have fewer seeds and fewer policies.
"""


def page(
    entries: Sequence[Entry],
    documents: Sequence[dict[str, Any]],
    command: str,
    about: Mapping[str, str],
    attacks: Mapping[str, float],
    stem: str = "leaderboard",
) -> str:
    """Returns the page.

    `documents` are the contents of each evaluation.json, a section each. `command` makes the page
    again. `about` has a text on suites, by name, and `attacks` the worst differences that attacks
    have found, by policy. The data and the picture are files beside it, with its `stem`.
    """
    first = documents[0]
    ns3 = any(document["engine"] == "ns3" for document in documents)
    version = f"quicgym {first['version']}, commit {first['commit']}"
    if ns3:
        version += f", ns-3 {first['ns3_version']}"
    parts = [
        "# Leaderboard",
        f"Made by `{command}` with {version}; do not edit.",
        READING.strip(),
        FILES.format(stem=stem).strip(),
        "## Sections",
        SECTIONS.strip(),
        _table(
            ["suite", "engine", "scenarios", "seeds", "policies"],
            [
                [
                    f"`{document['suite']}`",
                    ENGINES[document["engine"]],
                    str(len(document["policies"][0]["scenarios"])),
                    str(len(document["seeds"])),
                    str(len(document["policies"])),
                ]
                for document in documents
            ],
            align="llrrr",
        ),
        "## Policies",
        _policies(entries, documents, attacks),
        "## Rewards",
        _rewards(entries, documents),
    ]
    for document in documents:
        by_policy = {entry.policy: entry for entry in entries}
        parts += _section(document, by_policy, about.get(document["suite"], ""))
    return "\n\n".join(parts) + "\n"


def evaluate_command(suite: str, engine: str, seeds: int, entries: Sequence[Entry]) -> str:
    """Returns the command that does the same evaluation alone."""
    policies = [entry.policy for entry in entries]
    options = ["--suite", suite, "--engine", engine, "--seeds", str(seeds)]
    return shlex.join(["quicgym", "evaluate", "--policy", *policies, *options])


def _section(document: dict[str, Any], entries: Mapping[str, Entry], about: str) -> Iterator[str]:
    ranked = document["policies"]
    scenarios, seeds = len(ranked[0]["scenarios"]), document["seeds"]
    left_out = len(entries) - len(ranked)
    which = "seed 0" if len(seeds) == 1 else f"seeds 0 to {seeds[-1]}"
    yield f"## Suite `{document['suite']}`, {ENGINES[document['engine']]}"
    if about:
        yield about
    yield f"{scenarios} scenarios, {which}:"
    if left_out:
        yield (
            f"{left_out} of the {len(entries)} policies did not run here. The best baselines, and "
            "what is within 1% of them, are those of this table."
        )
    yield f"    {document['command']}"
    yield _table(
        [
            *("policy", "IQM", "95% interval"),
            *(name for name, _ in COLUMNS.values()),
            "within 1% of best (%)",
        ],
        [_row(entry, entries) for entry in ranked],
        align="l" + "r" * (len(COLUMNS) + 3),
    )
    best = {
        kind: next((row for row in ranked if entries[row["policy"]].kind == kind), None)
        for kind in ("baseline", "static", "learned")
    }
    learned, baseline = best["learned"], best["baseline"]
    if learned is None:
        return
    lines = []
    for kind, other in (("baseline", baseline), ("static", best["static"])):
        if other is not None:
            what = "hand-coded baseline" if kind == "baseline" else "static parameters"
            lines.append(_difference(document, learned, other, what, entries))
    if baseline is not None:
        lines.append(
            _near_best(
                learned,
                [row for row in ranked if entries[row["policy"]].kind == "baseline"],
                entries,
            )
        )
    yield "\n".join(f"- {line}" for line in lines)
    yield from _spread(ranked, entries)
    yield from _robustness(ranked, entries)


def _policies(
    entries: Sequence[Entry], documents: Sequence[dict[str, Any]], attacks: Mapping[str, float]
) -> str:
    """Lists the policies, with their collapses on `stress` and what attacks found, where known."""
    headings = ["policy", "`--policy`", "kind", "what it is"]
    rows = [[entry.name, f"`{entry.policy}`", entry.kind, entry.note] for entry in entries]
    ranked: Sequence[dict[str, Any]] = next(
        (each["policies"] for each in documents if each["suite"] == "stress"), []
    )
    collapses = {policy: str(of.collapses) for policy, of in beside_references(ranked).items()}
    worst = {policy: f"{difference:+.2f}" for policy, difference in attacks.items()}
    for known, heading in (
        (collapses, f"collapses on `stress`, of {len(ranked and ranked[0]['scenarios'])} networks"),
        (worst, "[worst found](attacks.md)"),
    ):
        if known:
            headings.append(heading)
            for row, entry in zip(rows, entries, strict=True):
                row.append(known.get(entry.policy, "–"))
    return _table(headings, rows, align="llll" + "r" * (len(headings) - 4))


def _rewards(entries: Sequence[Entry], documents: Sequence[dict[str, Any]]) -> str:
    """The IQM of each policy on each suite; a dash where it was not evaluated."""
    headings = ["policy"]
    columns = []
    for document in documents:
        headings.append(f"`{document['suite']}`" + ", ns-3" * (document["engine"] == "ns3"))
        columns.append({row["policy"]: row["iqm_reward"] for row in document["policies"]})
    return _table(
        headings,
        [
            [entry.name, *(number(column.get(entry.policy), ".3f") for column in columns)]
            for entry in entries
        ],
        align="l" + "r" * len(columns),
    )


def _robustness(ranked: Sequence[dict[str, Any]], entries: Mapping[str, Entry]) -> Iterator[str]:
    """The table beside CUBIC and BBR, where both were run."""
    found = beside_references(ranked)
    if not found:
        return
    yield "Beside the better of CUBIC and BBR on each network, and power:"
    yield _table(
        ["policy", "collapses", "more than 0.1 behind (%)", "worst", "power (Mbit/s per s)"],
        [
            [
                entries[policy].name,
                str(result.collapses),
                f"{100 * result.behind:.0f}",
                f"{result.worst:+.3f}",
                number(result.power, ".2f"),
            ]
            for policy, result in found.items()
        ],
        align="lrrrr",
    )


def _row(row: dict[str, Any], entries: Mapping[str, Entry]) -> list[str]:
    share = row["level_share"]
    interval = "–" if row["iqm_low"] is None else f"[{row['iqm_low']:.4f}, {row['iqm_high']:.4f}]"
    return [
        entries[row["policy"]].name,
        number(row["iqm_reward"], ".4f"),
        interval,
        *(number(row["mean"][metric], form) for metric, (_, form) in COLUMNS.items()),
        number(None if share is None else 100 * share, ".0f"),
    ]


def _difference(
    document: dict[str, Any],
    learned: dict[str, Any],
    other: dict[str, Any],
    what: str,
    entries: Mapping[str, Entry],
) -> str:
    """Learned minus other, whichever is ahead."""
    pair = {learned["policy"], other["policy"]}
    found = next(entry for entry in document["differences"] if {entry["a"], entry["b"]} == pair)
    value, low, high = (found[key] for key in ("iqm_difference", "low", "high"))
    chance = found["probability_of_improvement"]
    if found["a"] != learned["policy"]:
        value, chance = -value, 1 - chance
        low, high = (None, None) if low is None else (-high, -low)
    interval = "" if low is None else f", 95% interval [{low:.4f}, {high:.4f}]"
    return (
        f"best learned ({entries[learned['policy']].name}) − best {what} "
        f"({entries[other['policy']].name}): {value:+.4f}{interval}; "
        f"probability of improvement {chance:.2f}"
    )


def _near_best(
    learned: dict[str, Any], baselines: Sequence[dict[str, Any]], entries: Mapping[str, Entry]
) -> str:
    """In how many scenarios the best learned policy keeps up, and where it does not."""
    behind = behind_baselines(learned, baselines)
    total = len(learned["scenarios"])
    text = (
        f"{entries[learned['policy']].name} is within 1% of the best baseline of the "
        f"scenario, or above it, in {total - len(behind)} of {total}"
    )
    if behind:
        worst = ", ".join(f"{name} ({value:+.3f})" for value, name in behind[:FURTHEST_BEHIND])
        text += f"; furthest behind in {worst}"
    return text


def _spread(ranked: Sequence[dict[str, Any]], entries: Mapping[str, Entry]) -> Iterator[str]:
    groups: dict[str, list[float]] = {}
    for row in ranked:
        group = entries[row["policy"]].group
        if group is not None:
            groups.setdefault(group, []).append(row["iqm_reward"])
    rows = [
        [
            group,
            str(len(values)),
            f"{sum(values) / len(values):.4f}",
            f"{min(values):.4f}",
            f"{max(values):.4f}",
        ]
        for group, values in groups.items()
    ]
    if rows:
        yield "Over training seeds:"
        yield _table(["group", "trained", "mean IQM", "lowest", "highest"], rows, align="lrrrr")


def _table(headings: Sequence[str], rows: Sequence[Sequence[str]], align: str = "") -> str:
    marks = ["--:" if mark == "r" else "---" for mark in align or "l" * len(headings)]
    lines = [headings, marks, *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
