"""Data files: one YAML per scenario, and one per paper with what it prints and claims."""

from __future__ import annotations

from importlib.resources import files
from importlib.resources.abc import Traversable

from quicgym.configs.paper import (
    Check,
    Claim,
    Figure,
    Paper,
    PaperError,
    PrintedTable,
    TableRow,
    Variation,
    load_paper,
    paper_names,
)

SCENARIOS: Traversable = files(__name__) / "scenarios"

__all__ = [
    "SCENARIOS",
    "Check",
    "Claim",
    "Figure",
    "Paper",
    "PaperError",
    "PrintedTable",
    "TableRow",
    "Variation",
    "load_paper",
    "paper_names",
]
