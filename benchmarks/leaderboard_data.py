"""What the leaderboard's evaluations say, as numbers: the JSON beside its page, and its picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from quicgym.agents.evaluation.summary import within_1_percent
from quicgym.benchmarks.robustness import REFERENCES, Robustness, robustness
from quicgym.validation import StrictModel

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FURTHEST_BEHIND = 5
"""Scenarios that are named where a policy is behind the best baseline."""
_DIGITS = 6
_ROW_IN = 0.19
_SATURATED = 0.15
"""The difference from the best baseline at which the picture's colours end."""


class Entry(StrictModel):
    """A policy of configs/leaderboard.yaml."""

    name: str = Field(min_length=1)
    """As tables show it."""
    policy: str = Field(min_length=1)
    """As `find_policy` takes it."""
    kind: Literal["baseline", "static", "learned"]
    group: str | None = None
    """Learned policies of one group differ by their training seed alone."""
    engines: tuple[Literal["native", "ns3"], ...] = ("native", "ns3")
    """On which it runs; ns-3 takes over 100 times as long."""
    note: str = ""


def leaderboard_data(
    entries: Sequence[Entry],
    documents: Sequence[dict[str, Any]],
    command: str,
    attacks: Mapping[str, float],
) -> dict[str, Any]:
    """Returns what leaderboard.json holds.

    Args:
        entries: The policies.
        documents: The contents of each evaluation.json, a section each.
        command: The command that makes the page.
        attacks: By policy the worst difference from the best of CUBIC, BBR and BBRv3 that an attack
            has found.

    Returns:
        "version", "commit", "ns3_version" and "command"; "policies" with name, policy, kind, group,
        note and "worst_found" of attacks; "sections" with suite, engine, the numbers of scenarios
        and seeds, "best_baseline", and "rows". A row has "iqm_reward" with its 95% interval, the
        means of the metrics, "within_1_percent" (a share), the comparison with CUBIC and BBR where
        both ran, and in "furthest_behind" up to five scenarios with the reward minus that of the
        best baseline.
    """
    first = documents[0]
    kinds = {entry.policy: entry.kind for entry in entries}
    return {
        "version": first["version"],
        "commit": first["commit"],
        "ns3_version": next(
            (each["ns3_version"] for each in documents if each["engine"] == "ns3"), None
        ),
        "command": command,
        "policies": [
            {
                **entry.model_dump(include={"name", "policy", "kind", "group", "note"}),
                "worst_found": attacks.get(entry.policy),
            }
            for entry in entries
        ],
        "sections": [_section(document, kinds) for document in documents],
    }


def _section(document: Mapping[str, Any], kinds: Mapping[str, str]) -> dict[str, Any]:
    ranked = document["policies"]
    baselines = [row for row in ranked if kinds[row["policy"]] == "baseline"]
    beside = beside_references(ranked)
    rows = []
    for row in ranked:
        found = {
            "policy": row["policy"],
            **{key: _rounded(row[key]) for key in ("iqm_reward", "iqm_low", "iqm_high")},
            "within_1_percent": _rounded(row["level_share"]),
            "mean": {key: _rounded(value) for key, value in row["mean"].items()},
        }
        if row["policy"] in beside:
            found["beside_cubic_and_bbr"] = {
                key: _rounded(value) for key, value in vars(beside[row["policy"]]).items()
            }
        if baselines:
            found["furthest_behind"] = [
                {"scenario": scenario, "difference": _rounded(difference)}
                for difference, scenario in behind_baselines(row, baselines)[:FURTHEST_BEHIND]
            ]
        rows.append(found)
    return {
        "suite": document["suite"],
        "engine": document["engine"],
        "scenarios": len(ranked[0]["scenarios"]),
        "seeds": len(document["seeds"]),
        "best_baseline": baselines[0]["policy"] if baselines else None,
        "rows": rows,
    }


def _rounded(value: float | None) -> float | None:
    return value if value is None else round(value, _DIGITS)


def behind_baselines(
    row: Mapping[str, Any], baselines: Sequence[Mapping[str, Any]]
) -> list[tuple[float, str]]:
    """Returns the scenarios on which a policy is more than 1% below the best baseline.

    Each is the policy's reward minus the baseline's, and the scenario's name; the worst is first.
    """
    behind = []
    for place, cell in enumerate(row["scenarios"]):
        best = max(baseline["scenarios"][place]["reward"] for baseline in baselines)
        if not within_1_percent(cell["reward"], best):
            behind.append((cell["reward"] - best, cell["scenario"]))
    return sorted(behind)


def beside_references(ranked: Sequence[Mapping[str, Any]]) -> dict[str, Robustness]:
    """Returns each policy beside CUBIC and BBR; empty where these were not run."""
    by_policy = {row["policy"]: row["scenarios"] for row in ranked}
    if not all(policy in by_policy for policy in REFERENCES):
        return {}
    references = [by_policy[policy] for policy in REFERENCES]
    return {policy: robustness(cells, references) for policy, cells in by_policy.items()}


def draw_leaderboard(data: Mapping[str, Any]) -> Figure:
    """Returns the IQM reward by policy and suite as a table whose colours say who is ahead.

    `data` is that of `leaderboard_data`. The colour of a cell is the reward minus that of the best
    baseline of the section: blue is ahead, red is behind. A frame marks the best baseline.
    """
    import matplotlib
    import numpy as np
    from matplotlib.figure import Figure
    from matplotlib.patches import Rectangle

    from quicgym.plot_style import GREY, STYLE, TWO_COLUMNS

    sections, policies = data["sections"], data["policies"]
    rewards = np.full((len(policies), len(sections)), np.nan)
    best = np.full(len(sections), np.nan)
    places = {entry["policy"]: place for place, entry in enumerate(policies)}
    for column, section in enumerate(sections):
        for row in section["rows"]:
            rewards[places[row["policy"]], column] = row["iqm_reward"]
        if section["best_baseline"] is not None:
            best[column] = rewards[places[section["best_baseline"]], column]
    with matplotlib.rc_context({**STYLE, "axes.grid": False}):
        figure = Figure(figsize=(TWO_COLUMNS, 1.4 + _ROW_IN * len(policies)))
        axes = figure.subplots()
        image = axes.imshow(
            np.ma.masked_invalid(rewards - best),
            cmap="RdBu", vmin=-_SATURATED, vmax=_SATURATED, aspect="auto",
        )  # fmt: skip
        for place, column in np.argwhere(~np.isnan(rewards)):
            difference = rewards[place, column] - best[column]
            dark = abs(difference) > 0.8 * _SATURATED
            axes.text(
                column, place, f"{rewards[place, column]:.3f}", ha="center", va="center",
                fontsize=6, color="white" if dark else "black",
            )  # fmt: skip
            if policies[place]["policy"] == sections[column]["best_baseline"]:
                axes.add_patch(
                    Rectangle((column - 0.5, place - 0.5), 1, 1, fill=False, linewidth=1.2)
                )
        axes.set_yticks(range(len(policies)), [entry["name"] for entry in policies])
        names = [
            section["suite"] + ("" if section["engine"] == "native" else "\n(ns-3)")
            for section in sections
        ]
        axes.set_xticks(range(len(sections)), names, rotation=40, ha="left", rotation_mode="anchor")
        axes.xaxis.tick_top()
        axes.tick_params(length=0)
        axes.spines[:].set_visible(False)
        for place in range(1, len(policies)):
            if policies[place]["kind"] != policies[place - 1]["kind"]:
                axes.axhline(place - 0.5, color=GREY, linewidth=0.8)
        colours = figure.colorbar(
            image, ax=axes, location="bottom", shrink=0.5, aspect=40, extend="both"
        )
        colours.set_label("IQM reward minus that of the best baseline")
        figure.draw_without_rendering()  # while the style holds
    return figure
