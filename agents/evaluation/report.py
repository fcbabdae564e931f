"""The report of an evaluation: one HTML file with the verdict, the table and the worst networks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path
from typing import Any

import pandas as pd

from quicgym import html_pages
from quicgym.agents.evaluation.evaluate import ENOUGH_SEEDS, columns_of
from quicgym.agents.evaluation.jobs import RunJob
from quicgym.agents.evaluation.run_folders import read_series
from quicgym.agents.evaluation.summary import Evaluation
from quicgym.console import count_of
from quicgym.envs.scenarios.words import network_in_words
from quicgym.envs.simulation.plots import draw_episodes
from quicgym.envs.simulation.window import Window
from quicgym.output_folders import write_atomically
from quicgym.plot_style import CAPTIONS_FILE, display_name, write_png

REPORT_FILE = "report.html"
MOST_NETWORKS = 20
DOTS_PER_INCH = 110
"""Resolution of the pictures of networks, which are many."""


@dataclass(frozen=True)
class Network:
    """The rewards of all policies on one network: a scenario, or a seed's draw of a distribution.

    `rewards` are means over the seeds, and `jobs` the runs with the first of them.
    """

    name: str
    jobs: dict[str, RunJob]
    rewards: dict[str, float]

    @property
    def words(self) -> str:
        """The name, and what the network is."""
        job = next(iter(self.jobs.values()))
        return f"{self.name}: {network_in_words(job.scenario)}"

    def behind(self, subject: str) -> float:
        """Returns the subject's reward minus the best other's, or its reward if there is none."""
        others = [reward for policy, reward in self.rewards.items() if policy != subject]
        return self.rewards[subject] - max(others, default=0.0)

    def best_other(self, subject: str) -> str | None:
        """Returns the best of the other policies."""
        others = [policy for policy in self.rewards if policy != subject]
        return max(others, key=lambda policy: self.rewards[policy], default=None)


def write_report(
    evaluation: Evaluation,
    folder: Path,
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    claims: Sequence[str] = (),
) -> Path:
    """Writes the report of a finished evaluation; returns its file.

    `headings` and `rows` are those of the printed table, and `claims` has an introduction and a
    sentence for each paper.
    """
    document = evaluation.document
    assert document is not None
    subject = subject_of(document)
    networks = _networks(evaluation, document) if subject is not None else []
    worst = sorted(networks, key=lambda network: network.behind(subject or ""))[:MOST_NETWORKS]
    page = html_pages.render(
        "quicgym.agents.evaluation",
        "report.html.jinja",
        document=document,
        window=str(Window(document["from_s"], document["until_s"])),
        verdict=verdict(document, networks),
        subject=subject and display_name(subject),
        headings=headings,
        rows=rows,
        claims=claims,
        differences=[
            _difference(document, subject, entry["policy"])
            for entry in document["policies"]
            if subject not in (None, entry["policy"]) and entry["iqm_reward"] is not None
        ],
        figures=[
            {"title": caption, **html_pages.embedded(file)}
            for file, caption in _figures(evaluation.figures)
        ],
        worst=[_network_row(network, subject) for network in worst if subject is not None],
        networks=len(networks),
        scenarios=_scenarios(document),
    )
    write_atomically({folder / REPORT_FILE: page})
    return folder / REPORT_FILE


def subject_of(document: dict[str, Any]) -> str | None:
    """Returns the policy that the report is about: the best learned one, or else the best.

    None where every policy lacks runs.
    """
    ranked = [entry for entry in document["policies"] if entry["iqm_reward"] is not None]
    learned = [entry for entry in ranked if entry["kind"] == "learned"]
    return next((entry["policy"] for entry in [*learned, *ranked]), None)


def verdict(document: dict[str, Any], networks: Sequence[Network]) -> list[str]:
    """Returns the finding in sentences: who is ahead, how sure that is, at which cost."""
    subject = subject_of(document)
    if subject is None:
        return ["Every policy lacks runs, so there is no verdict."]
    ranked = [entry for entry in document["policies"] if entry["iqm_reward"] is not None]
    place = next(n for n, entry in enumerate(ranked) if entry["policy"] == subject)
    entry, name = ranked[place], display_name(subject)
    size = f"{count_of(len(networks), 'network')}, {count_of(len(document['seeds']), 'seed')}"
    if document["distributions"]:
        size = count_of(len(networks), "network")
    reward = _estimate([entry[f"iqm_{key}"] for key in ("reward", "low", "high")], ".3f")
    sentences = [
        f"{name} has an interquartile mean reward of {reward} "
        f"({size}), which is {_rank(place)} of {len(ranked)}."
    ]
    if len(ranked) == 1:
        return sentences
    rival = ranked[0] if place else ranked[1]
    sentences += _against(document, name, subject, rival["policy"])
    if len(ranked) > 2:
        pairs = len(ranked) * (len(ranked) - 1) // 2
        sentences.append(
            f"The {len(ranked)} policies have {pairs} differences, and about one in twenty of "
            "policies that are equally good has an interval without 0."
        )
    own, other = (one["mean"] for one in (entry, rival))
    sentences.append(
        f"Its mean queueing delay is {own['mean_queue_delay_ms']:.1f} ms and its loss "
        f"{own['loss_percent']:.2f}%, those of {display_name(rival['policy'])} are "
        f"{other['mean_queue_delay_ms']:.1f} ms and {other['loss_percent']:.2f}%."
    )
    ahead = sum(network.behind(subject) >= 0 for network in networks)
    worst = min(networks, key=lambda network: network.behind(subject))
    sentences.append(
        f"It is the best, or level with the best, on {ahead} of "
        f"{count_of(len(networks), 'network')}."
    )
    if worst.behind(subject) < 0:
        best = display_name(worst.best_other(subject) or "")
        sentences.append(
            f"It is furthest behind, by {-worst.behind(subject):.3f} to {best}, on {worst.words}."
        )
    return sentences


def _against(document: dict[str, Any], name: str, subject: str, rival: str) -> list[str]:
    """Returns how far the subject is from a rival, and how sure the order of both is."""
    pair = _difference(document, subject, rival)
    why = {
        "open": "the interval contains 0, so the order of the two is open",
        "unknown": "one seed gives no interval, so it is not known how sure the order is",
    }.get(pair["order"], f"the interval does not contain 0, so {name} is {pair['order']}")
    sentences = [f"Its difference to {display_name(rival)} is {pair['difference']}; {why}."]
    if 1 < len(document["seeds"]) < ENOUGH_SEEDS:
        sentences.append(
            f"But an interval over fewer than {ENOUGH_SEEDS} seeds is too narrow to be trusted."
        )
    chance = f"{name} earns more in {pair['chance']} of the runs"
    return [*sentences, f"On the same network with the same seed, {chance}."]


def _difference(document: dict[str, Any], subject: str | None, other: str) -> dict[str, str]:
    """Returns the subject's difference to another policy, for a reader."""
    pair = next(
        entry for entry in document["differences"] if {entry["a"], entry["b"]} == {subject, other}
    )
    turned = pair["a"] != subject
    difference = [pair[key] for key in ("iqm_difference", "low", "high")]
    chance = [pair[f"probability_{key}"] for key in ("of_improvement", "low", "high")]
    if turned:
        difference = [None if value is None else -value for value in difference]
        chance = [None if value is None else 1 - value for value in chance]
    value, *ends = difference
    order = "ahead" if value > 0 else "behind"
    if None in ends:
        order = "unknown"
    elif min(ends) <= 0 <= max(ends):
        order = "open"
    return {
        "other": display_name(other),
        "difference": _estimate(difference, "+.3f"),
        "chance": _estimate(chance, ".0%"),
        "order": order,
    }


def _rank(place: int) -> str:
    return ("the best", "second", "third")[place] if place < 3 else f"number {place + 1}"


def _estimate(numbers: Sequence[float | None], form: str) -> str:
    """Returns a value with the ends of its interval, where it has one."""
    value = numbers[0]
    ends = [end for end in numbers[1:] if end is not None]
    if not ends:
        return f"{value:{form}}"
    return f"{value:{form}} [{min(ends):{form}}, {max(ends):{form}}]"


def _scenarios(document: dict[str, Any]) -> list[dict[str, Any]]:
    """Returns every scenario's table: means of the evaluated metrics, with their intervals."""
    tables = []
    for cells in zip(*(entry["scenarios"] for entry in document["policies"]), strict=True):
        columns = {**columns_of(tuple(cells[0]["intervals"])), "reward": ("reward", ".4f")}
        rows = [
            [
                display_name(entry["policy"]),
                *(
                    "–"
                    if cell[name] is None
                    else _estimate([cell[name], *cell["intervals"][name]], form)
                    for name, (_, form) in columns.items()
                ),
            ]
            for entry, cell in zip(document["policies"], cells, strict=True)
        ]
        headings = ["policy", *(heading for heading, _ in columns.values())]
        tables.append({"name": cells[0]["scenario"], "headings": headings, "rows": rows})
    return tables


def _networks(evaluation: Evaluation, document: dict[str, Any]) -> list[Network]:
    """Returns the networks on which all ranked policies have run."""
    ranked = [entry["policy"] for entry in document["policies"] if entry["iqm_reward"] is not None]
    fixed = {cell["scenario"] for cell in document["policies"][0]["scenarios"]}
    fixed -= set(document["distributions"])
    jobs: dict[tuple[str | None, str, int | None], dict[str, list[RunJob]]] = {}
    for job in evaluation.jobs:
        if job.shown is not None and job.shown in ranked:
            seed = None if job.entry in fixed else job.seed
            network = jobs.setdefault((job.entry, job.scenario.name, seed), {})
            network.setdefault(job.shown, []).append(job)
    finished = evaluation.outcome.finished
    return [
        Network(
            name if seed is None else f"{name}, seed {seed}",
            {policy: of_policy[0] for policy, of_policy in network.items()},
            {
                policy: sum(finished[job.key]["reward"] for job in of_policy) / len(of_policy)
                for policy, of_policy in network.items()
            },
        )
        for (_, name, seed), network in jobs.items()
    ]


def _network_row(network: Network, subject: str) -> dict[str, Any]:
    """Returns a network as the report shows it, with the subject and the best other drawn."""
    best = network.best_other(subject)
    shown = [subject] if best is None else [subject, best]
    scenario = network.jobs[subject].scenario
    figure = draw_episodes(
        {policy: _series(network.jobs[policy]) for policy in shown},
        base_rtt_ms=scenario.base_rtt_ms,
    )
    picture = BytesIO()
    write_png(figure, picture, DOTS_PER_INCH)
    return {
        "words": network.words,
        "reward": network.rewards[subject],
        "best": best and display_name(best),
        "best_reward": best and network.rewards[best],
        "behind": network.behind(subject),
        "url": html_pages.data_url(picture.getvalue(), "image/png"),
    }


def _series(job: RunJob) -> pd.DataFrame:
    """Returns the time series of a run; one that was not kept is run again."""
    if job.series_file is not None and job.series_file.is_file():
        return read_series(job.series_file)
    return replace(job, packet_logs=None).carry_out().series_table()


def _figures(files: Sequence[Path]) -> list[tuple[Path, str]]:
    """Returns the figures with their captions."""
    if not files:
        return []
    lines = (files[0].parent / CAPTIONS_FILE).read_text(encoding="utf-8").splitlines()
    captions = dict(line.removeprefix("- `").split("`: ", 1) for line in lines)
    return [(file, captions[file.name]) for file in files]
