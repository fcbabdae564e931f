"""The checklist that quicgym brings, and its page."""

from __future__ import annotations

from pathlib import Path

from quicgym.benchmarks.checklist.checks import load_checklist
from quicgym.envs.simulation.metrics import METRICS

PAGE = Path(__file__).parents[3] / "docs/how-to/hard-tests.md"


def test_the_page_has_the_formula_of_every_number() -> None:
    used = {check.number for item in load_checklist().items for check in item.checks}
    page = PAGE.read_text(encoding="utf-8")
    for name in used:
        assert f"| `{name}` | {METRICS[name].formula} |" in page, name


def test_sections_are_in_the_order_of_the_rfc() -> None:
    sections = [tuple(map(int, item.section.split("."))) for item in load_checklist().items]
    assert sections == sorted(sections)
