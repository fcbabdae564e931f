"""The checklist that quicgym brings."""

from __future__ import annotations

from quicgym.benchmarks.checklist.checks import load_checklist


def test_sections_are_in_the_order_of_the_rfc() -> None:
    sections = [tuple(map(int, item.section.split("."))) for item in load_checklist().items]
    assert sections == sorted(sections)
