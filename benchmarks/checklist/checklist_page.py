"""A checklist's page: one HTML file that loads nothing, to be attached to a document."""

from __future__ import annotations

from collections import Counter
from typing import Any

from quicgym import html_pages
from quicgym.benchmarks.checklist.checks import Checklist
from quicgym.envs.scenarios.files import as_yaml
from quicgym.envs.simulation.metrics import METRICS


def render(document: dict[str, Any], checklist: Checklist) -> str:
    """Returns the page of a checklist.json."""
    used = {check["number"] for item in document["items"] for check in item["checks"]}
    return html_pages.render(
        "quicgym.benchmarks.checklist",
        "checklist.html.jinja",
        document=document,
        summary=summary(document),
        interval=interval,
        number_title=number_title,
        numbers={name: number for name, number in METRICS.items() if name in used},
        scenarios={name: as_yaml(of, str) for name, of in checklist.scenarios.items()},
    )


def summary(document: dict[str, Any]) -> str:
    """Returns one line: how many sections are met, open and missed."""
    found = Counter(item["verdict"] for item in document["items"])
    return (
        f"{found['met']} sections met, {found['open']} open, {found['missed']} missed, "
        f"{found[None]} not measured"
    )


def number_title(check: dict[str, Any]) -> str:
    """Returns what was measured, in words."""
    title = METRICS[check["number"]].title
    if "against" in check:
        return f"{title} − the best other's"
    return f"{title} / {check['relative_to']}'s" if check["relative_to"] else title


def interval(entry: dict[str, Any]) -> str:
    """Returns a mean with its interval, if there is one; a dash where nothing was measured."""
    if entry["mean"] is None:
        return "–"
    if entry["low"] is None:
        return f"{entry['mean']:.3g}"
    return f"{entry['mean']:.3g} [{entry['low']:.3g}, {entry['high']:.3g}]"
