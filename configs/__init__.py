"""Data files: scenarios, distributions, suites, sweeps, searches, what papers print and claim."""

from __future__ import annotations

from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

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
DISTRIBUTIONS: Traversable = files(__name__) / "distributions"
SUITES: Traversable = files(__name__) / "suites"
TRAINING: Traversable = files(__name__) / "training"
LEADERBOARD = Path(str(files(__name__) / "leaderboard.yaml"))
SWEEPS: Traversable = files(__name__) / "sweeps"
SEARCHES: Traversable = files(__name__) / "searches"

__all__ = [
    "DISTRIBUTIONS",
    "LEADERBOARD",
    "SCENARIOS",
    "SEARCHES",
    "SUITES",
    "TRAINING",
    "SWEEPS",
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
