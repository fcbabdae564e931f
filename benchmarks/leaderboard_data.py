"""The numbers of the leaderboard's evaluations: the JSON next to its page, and its figure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from pydantic import Field

from quicgym.agents.evaluation.statistics import Estimate, percentiles, resampled_networks
from quicgym.benchmarks.baselines import CONTROLLERS
from quicgym.validation import StrictModel

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENGINES = {"native": "native engine", "ns3": "ns-3"}
REFERENCES = ("cubic", "bbr")
"""The controllers with which a policy's robustness is compared."""
LEAST_SHARE, MORE_LOSS = 0.5, 0.1
"""A collapse: less than this part of their throughput share, or so much more loss than both."""
BEST = "best single hand-coded controller"
DRAWN = ("ebcc", "ibcca", "cubic+", "bbr", "bbr3")
"""The controllers that the figure compares the agents with."""
NO_AGENT, YARDSTICK = "bbr", "omniscient"
"""Have the normalized scores 0 and 100. The finding leaves out who knows the network."""
_DIGITS = 6


class Entry(StrictModel):
    """A policy of configs/leaderboard.yaml."""

    name: str = Field(min_length=1)
    """The name that tables show."""
    policy: str = Field(min_length=1)
    """The policy in the form that `find_policy` takes."""
    kind: Literal["baseline", "static", "learned"]
    group: str | None = None
    """Learned policies of one group differ by their training seed alone."""
    engines: tuple[Literal["native", "ns3"], ...] = ("native", "ns3")
    """On which it runs; ns-3 takes over 100 times as long."""
    note: str = ""


@dataclass(frozen=True)
class Result:
    """An evaluation: the content of evaluation.json, and the rewards behind it.

    `scores` are policies x scenarios x seeds, in the order of the document's policies.
    """

    document: Mapping[str, Any]
    scores: np.ndarray

    @property
    def title(self) -> str:
        """The suite, and its engine where this is not the native one."""
        suite: str = self.document["suite"]
        return suite if self.document["engine"] == "native" else f"{suite} (ns-3)"

    @property
    def rows(self) -> dict[str, dict[str, Any]]:
        """Returns each policy's entry in the document."""
        return {row["policy"]: row for row in self.document["policies"]}

    def best_baseline(self, kinds: Mapping[str, str]) -> str | None:
        """Returns the hand-coded controller with the highest mean reward."""
        rewards = {
            policy: row["mean"]["reward"]
            for policy, row in self.rows.items()
            if kinds[policy] == "baseline"
        }
        return max(rewards, key=rewards.__getitem__, default=None)

    def difference(self, policy: str, other: str) -> np.ndarray:
        """Returns a policy's rewards minus another's: networks x seeds.

        Each seed of a distribution draws another network.
        """
        places = list(self.rows)
        found = np.asarray(self.scores[places.index(policy)] - self.scores[places.index(other)])
        return found.reshape(-1, 1) if self.document["distributions"] else found


def leaderboard_data(
    entries: Sequence[Entry],
    results: Sequence[Result],
    command: str,
    attacks: Mapping[str, float],
) -> dict[str, Any]:
    """Returns what leaderboard.json holds, from which the page is made.

    Args:
        entries: The policies.
        results: The evaluations, a section each.
        command: The command that makes the page.
        attacks: By policy the worst difference from the best of CUBIC, BBR and BBRv3 that an attack
            has found.

    Returns:
        "policies" in rank order, with their mean reward in each of the "suites" and over all; the
        suites are those of the first section's engine. "agents" has the paired differences of each
        learned policy to others, with their 95% intervals, and "sections" what each suite says of
        each policy. Intervals of "suites" are in the order of "suites".
    """
    first = results[0].document
    kinds = {entry.policy: entry.kind for entry in entries}
    ranking = [each for each in results if each.document["engine"] == first["engine"]]
    policies = [_ranked(entry, ranking, attacks) for entry in entries]
    policies.sort(key=lambda row: (row["mean"] is None, -(row["mean"] or 0)))
    _add_scores(policies)
    names = {row["policy"]: row["name"] for row in policies if row["mean"] is not None}
    agents = [
        _agent(policy, ranking, kinds, names) for policy in names if kinds[policy] == "learned"
    ]
    ns3 = (each.document["ns3_version"] for each in results if each.document["engine"] == "ns3")
    return {
        "version": first["version"],
        "commit": first["commit"],
        "ns3_version": next(ns3, None),
        "command": command,
        "finding": _finding(policies, agents, len(ranking)),
        "suites": [each.title for each in ranking],
        "policies": policies,
        "agents": agents,
        "sections": [_section(each, kinds) for each in results],
    }


def _ranked(
    entry: Entry, results: Sequence[Result], attacks: Mapping[str, float]
) -> dict[str, Any]:
    """Returns a policy's row of the first table; it has no means where it lacks a suite."""
    rows = [each.rows.get(entry.policy) for each in results]
    own = [row for row in rows if row is not None]

    def mean(values: Sequence[float | None]) -> float | None:
        known = [value for value in values if value is not None]
        return _rounded(math.fsum(known) / len(known)) if len(known) == len(rows) else None

    return {
        **entry.model_dump(include={"name", "policy", "kind", "group", "note"}),
        "worst_found": attacks.get(entry.policy),
        "mean": mean([row["mean"]["reward"] for row in own]),
        "iqm": mean([row["iqm_reward"] for row in own]),
        "mean_queue_delay_ms": mean([row["mean"]["mean_queue_delay_ms"] for row in own]),
        "rewards": [row and _rounded(row["mean"]["reward"]) for row in rows],
    }


def _add_scores(policies: Sequence[dict[str, Any]]) -> None:
    """Adds where each policy's mean lies between the two that the scores are made from."""
    means = {row["policy"]: row["mean"] for row in policies}
    none, most = means.get(NO_AGENT), means.get(YARDSTICK)
    for row in policies:
        mean, score = row["mean"], None
        if mean is not None and none is not None and most is not None and most != none:
            score = _rounded(100 * (mean - none) / (most - none))
        row["normalized_score"] = score


def _agent(
    agent: str, results: Sequence[Result], kinds: Mapping[str, str], names: Mapping[str, str]
) -> dict[str, Any]:
    """Returns the paired differences of a learned policy to the papers' controllers."""
    others = [
        {
            "name": names[other],
            "policy": other,
            **_differences(agent, [other] * len(results), results),
        }
        for other in names
        if kinds[other] != "learned" and other.partition(":")[0] in CONTROLLERS
    ]
    best = [policy for each in results if (policy := each.best_baseline(kinds))]
    if best:
        found = _differences(agent, best, results)
        others.insert(0, {"name": BEST, "policy": None, **found})
    return {"name": names[agent], "policy": agent, "against": others}


def _differences(agent: str, others: Sequence[str], results: Sequence[Result]) -> dict[str, Any]:
    """Returns a policy minus another on each suite, and their mean over the suites."""
    differences = [
        each.difference(agent, other) for each, other in zip(results, others, strict=True)
    ]
    values = [float(each.mean()) for each in differences]
    # The suites are independent, so each is resampled separately.
    resampled = [resampled_networks(each, seed=place) for place, each in enumerate(differences)]
    return {
        "all": _numbers(percentiles(float(np.mean(values)), np.mean(resampled, axis=0))),
        "suites": [_numbers(percentiles(*each)) for each in zip(values, resampled, strict=True)],
    }


def _finding(
    policies: Sequence[Mapping[str, Any]], agents: Sequence[Mapping[str, Any]], suites: int
) -> str:
    """Returns who is ahead, in one sentence."""
    ranked = [row for row in policies if row["mean"] is not None and row["policy"] != YARDSTICK]
    if not ranked:
        return "No policy has run on all suites, so there is no ranking."
    first = ranked[0]
    over = "the suite" if suites == 1 else f"the {suites} suites"
    text = f"{first['name']} has the highest mean reward over {over}, {first['mean']:.3f}"
    baseline = next((row for row in ranked if row["kind"] == "baseline"), None)
    if baseline not in (None, first):
        text += f"; the best hand-coded controller, {baseline['name']}, has {baseline['mean']:.3f}"
    if agents and agents[0]["against"] and baseline is not None:
        best = agents[0]["against"][0]["suites"]
        ahead = sum(each["value"] > 0 for each in best)
        surely = sum(each["low"] > 0 for each in best)
        text += (
            f"; {agents[0]['name']} is ahead of the best single hand-coded controller of a suite "
            f"on {ahead} of {suites}, and the 95% interval is above 0 on {surely}"
        )
    return f"{text}."


def _section(result: Result, kinds: Mapping[str, str]) -> dict[str, Any]:
    document = result.document
    found = beside_references(document["policies"])
    return {
        **{key: document[key] for key in ("suite", "engine")},
        "title": result.title,
        "scenarios": len(document["policies"][0]["scenarios"]),
        "seeds": len(document["seeds"]),
        "best_baseline": result.best_baseline(kinds),
        "rows": [
            {
                "policy": policy,
                **{key: _rounded(row[key]) for key in ("iqm_reward", "iqm_low", "iqm_high")},
                "within_1_percent": _rounded(row["level_share"]),
                "mean": {key: _rounded(value) for key, value in row["mean"].items()},
                "beside_cubic_and_bbr": found.get(policy),
            }
            for policy, row in result.rows.items()
        ],
    }


def _rounded(value: float | None) -> float | None:
    return value if value is None else round(value, _DIGITS)


def _numbers(estimate: Estimate) -> dict[str, float | None]:
    return {key: _rounded(value) for key, value in asdict(estimate).items()}


def beside_references(ranked: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Returns each policy's robustness next to CUBIC and BBR; empty where these were not run."""
    cells = {row["policy"]: row["scenarios"] for row in ranked}
    if not all(policy in cells for policy in REFERENCES):
        return {}
    references = [cells[policy] for policy in REFERENCES]
    return {policy: robustness(own, references) for policy, own in cells.items()}


def robustness(
    cells: Sequence[Mapping[str, Any]], references: Sequence[Sequence[Mapping[str, Any]]]
) -> dict[str, Any]:
    """Compares a policy with others, network by network.

    Args:
        cells: The policy's means over the seeds, of throughput_share, loss_rate, goodput_mbps and
            mean_rtt_ms, on each network.
        references: Those of CUBIC and BBR, in the same order.

    Returns:
        The number of "collapses"; and "power", goodput over mean RTT in Mbit/s per s, its geometric
        mean over the networks on which both were measured.
    """
    collapses, powers = 0, []
    for own, *others in zip(cells, *references, strict=True):
        share = max(other["throughput_share"] for other in others)
        loss = max(other["loss_rate"] for other in others)
        collapses += (
            own["throughput_share"] < LEAST_SHARE * share or own["loss_rate"] > loss + MORE_LOSS
        )
        if own["goodput_mbps"] and own["mean_rtt_ms"]:
            powers.append(math.log(1e3 * own["goodput_mbps"] / own["mean_rtt_ms"]))
    power = math.exp(math.fsum(powers) / len(powers)) if powers else None
    return {"collapses": collapses, "power": _rounded(power)}


def draw_leaderboard(data: Mapping[str, Any]) -> Figure:
    """Returns the agents minus the papers' controllers, BBR, BBRv3 and the best hand-coded one.

    `data` is that of `leaderboard_data`. Each agent has a panel, and each suite a row. A dot is the
    paired difference of the mean reward, and its bar the 95% interval.
    """
    import matplotlib
    from matplotlib.figure import Figure

    from quicgym.plot_style import GREY, STYLE, TWO_COLUMNS, Look, looks_of

    rows = [*data["suites"], "all suites"]
    panels = {
        agent["name"]: {
            other["policy"] or BEST: other
            for other in agent["against"]
            if other["policy"] in (*DRAWN, None)
        }
        for agent in data["agents"]
    }
    others = [policy for policy in (*DRAWN, BEST) if any(policy in has for has in panels.values())]
    looks = {**looks_of(DRAWN), BEST: Look(GREY, 3)}
    with matplotlib.rc_context(STYLE):
        height = 1 + 0.075 * len(rows) * (1 + len(others))
        figure = Figure(figsize=(1.2 * TWO_COLUMNS, height))
        all_axes = figure.subplots(1, max(1, len(panels)), sharex=True, sharey=True, squeeze=False)
        for axes, (name, against) in zip(all_axes[0], panels.items(), strict=False):
            for place, policy in enumerate(others):
                other = against[policy]
                found = [*other["suites"], other["all"]]
                values = np.array([each["value"] for each in found])
                ends = np.array([[each["low"], each["high"]] for each in found]).T
                axes.errorbar(
                    values,
                    np.arange(len(rows)) + 0.8 * ((place + 0.5) / len(others) - 0.5),
                    # A percentile interval need not contain its value.
                    xerr=np.maximum(0, [values - ends[0], ends[1] - values]),
                    color=looks[policy].colour, marker=looks[policy].marker, markersize=3,
                    linestyle="none", elinewidth=0.8, label=other["name"],
                )  # fmt: skip
            axes.axvline(0, color=GREY, linewidth=0.8)
            axes.axhline(len(rows) - 1.5, color=GREY, linewidth=0.8)
            axes.set_title(f"{name} minus …")
        axes = all_axes[0][0]
        axes.set_yticks(range(len(rows)), rows)
        axes.set_ylim(len(rows) - 0.5, -0.5)
        figure.supxlabel("difference of the mean reward (bar: 95% interval)", fontsize=8)
        if others:
            figure.legend(*axes.get_legend_handles_labels(), loc="outside upper center", ncols=6)
        figure.draw_without_rendering()  # while the style holds
    return figure
