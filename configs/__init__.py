"""Data files: one YAML per scenario, and the values that papers print in their tables."""

from __future__ import annotations

from importlib.resources import files
from importlib.resources.abc import Traversable

import yaml
from pydantic import BaseModel, ConfigDict, model_validator

SCENARIOS: Traversable = files(__name__) / "scenarios"
TABLES: Traversable = files(__name__) / "tables"


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class TableRow(_Model):
    """One printed row: the scenario that reproduces it, and its cells as printed."""

    label: str
    scenario: str
    values: dict[str, str]


class PrintedTable(_Model):
    """One table of a paper.

    A cell holds one number per entry of `metrics`, separated by "/" as the papers print them.
    """

    number: int
    caption: str
    row_header: str
    metrics: dict[str, str]
    """How the paper calls a quantity -> its key in quicgym's results, unit included."""
    cross_check: str
    """The scenario of the row that is run on ns-3 too."""
    rows: tuple[TableRow, ...]

    @model_validator(mode="after")
    def _cells_are_complete(self) -> PrintedTable:
        for row in self.rows:
            for controller, cell in row.values.items():
                if len(cell.split("/")) != len(self.metrics):
                    raise ValueError(
                        f"table {self.number}, {row.label}, {controller}: {cell!r} does not hold "
                        f"{len(self.metrics)} numbers"
                    )
        if self.cross_check not in {row.scenario for row in self.rows}:
            raise ValueError(f"table {self.number}: no row has the scenario {self.cross_check}")
        return self

    def printed(self, row: TableRow, controller: str, metric: str) -> str | None:
        """Returns the number as printed, or None where the paper has no such column."""
        cell = row.values.get(controller)
        if cell is None:
            return None
        return cell.split("/")[list(self.metrics.values()).index(metric)]


class PaperTables(_Model):
    """All tables of one paper."""

    paper: str
    controllers: dict[str, str]
    """Name in quicgym's catalogue -> column heading in the paper."""
    tables: tuple[PrintedTable, ...]


def load_tables(paper: str) -> PaperTables:
    """Loads the printed tables of a paper, such as "ebcc"."""
    text = (TABLES / f"{paper}.yaml").read_text(encoding="utf-8")
    return PaperTables.model_validate(yaml.safe_load(text))
