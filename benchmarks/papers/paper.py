"""A paper's tables, figures and claims as data, in one YAML file per paper."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, model_validator

from quicgym.envs.scenarios.flows import Parameters
from quicgym.errors import UserError
from quicgym.validation import StrictModel, validated
from quicgym.yaml_files import CONFIGS, closest, read_yaml, yaml_names

PAPERS = CONFIGS / "papers"


class PaperError(UserError, ValueError):
    """A paper's file that cannot be used; the text names file, field, value and remedy."""


def _as_tuple(value: Any) -> Any:
    return (value,) if isinstance(value, str) else value


Names = Annotated[tuple[str, ...], BeforeValidator(_as_tuple)]
"""One name, or a list of them."""


def _as_printed(value: Any) -> Any:
    return str(value) if isinstance(value, int | float) else value


Printed = Annotated[Decimal, BeforeValidator(_as_printed), Field(allow_inf_nan=False)]
"""A number as a paper prints it; its digits say how exact it is, so 2.00 stands in quotes."""


class TableRow(StrictModel):
    """One printed row: the scenario that reproduces it, and its cells as printed."""

    label: str
    scenario: str
    values: dict[str, str] = {}


class PrintedTable(StrictModel):
    """One table of a paper.

    A cell holds one number per entry of `metrics`, separated by "/"; "-" where none is printed.
    """

    number: str
    caption: str
    row_header: str
    metrics: dict[str, str]
    """How the paper calls a quantity -> its key in quicgym's results, unit included.

    `metric@flow` is of one flow, by number from 1 or by name; `metric@sum` adds the flows up.
    """
    algorithms: Names = ()
    """Columns; empty: all of the paper's."""
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
        return self

    def printed(self, row: TableRow, controller: str, metric: str) -> str | None:
        """Returns the number as printed, or None where the paper has none."""
        cell = row.values.get(controller)
        if cell is None:
            return None
        number = cell.split("/")[list(self.metrics.values()).index(metric)]
        return None if number == "-" else number


class FigureRow(StrictModel):
    """One group of bars."""

    label: str
    scenario: str


class Figure(StrictModel):
    """One figure of a paper: either curves over time, or groups of bars."""

    number: str
    name: str
    """Name of the figure's file."""
    caption: str
    over_time: str | None = None
    """window, rtt or throughput; a panel per scenario."""
    scenarios: Names = ()
    mean_of_flows: bool = False
    """One curve per algorithm: the mean over its flows."""
    difference_to: str | None = None
    """With mean_of_flows: curves that lie on one another are drawn minus this algorithm's."""
    bars: dict[str, str] = {}
    """Axis label -> metric; a panel each."""
    rows: tuple[FigureRow, ...] = ()
    """The groups of bars."""
    algorithms: Names = ()
    """Empty: all of the paper's."""

    @model_validator(mode="after")
    def _one_kind(self) -> Figure:
        if bool(self.over_time and self.scenarios) == bool(self.bars and self.rows):
            raise ValueError(
                f"figure {self.number} needs either over_time and scenarios, or bars and rows"
            )
        if self.difference_to and not self.mean_of_flows:
            raise ValueError(f"figure {self.number}: difference_to needs mean_of_flows")
        return self


class Check(StrictModel):
    """One comparison of a claim; it stands for each combination of what it lists.

    With `to`: the metric of `of` against a multiple of the metric of `to`. Without: against a
    number. verdicts.py says how each kind of bound is judged.
    """

    metric: str
    of: Names
    within: Names = Field(alias="in")
    """Scenarios."""
    to: Names = ()
    to_in: Names = ()
    """Scenarios of `to`, one for each of `in`; empty: the same."""
    to_metric: str | None = None
    """None: the same."""
    above: float | None = None
    """An order, or a bound in words, such as "less than a third"."""
    below: float | None = None
    at_least: Printed | None = None
    """A number that the paper prints, and more."""
    at_most: Printed | None = None
    about: Printed | None = None
    """A number that the paper prints."""
    between: tuple[float, float] | None = None
    """Our reading of words such as "about the same"."""

    @model_validator(mode="after")
    def _one_comparison(self) -> Check:
        bounds = ("above", "below", "at_least", "at_most", "about", "between")
        if sum(getattr(self, bound) is not None for bound in bounds) != 1:
            raise ValueError(f"give exactly one of {', '.join(bounds[:-1])} and {bounds[-1]}")
        if self.to_in and len(self.to_in) != len(self.within):
            raise ValueError("to_in needs one scenario for each of `in`")
        if not self.to and (self.to_in or self.to_metric):
            raise ValueError("to_in and to_metric need `to`")
        return self


class Claim(StrictModel):
    """A claim of a paper, and the comparisons of our measurements that decide about it."""

    id: Annotated[str, Field(pattern=r"^[a-z0-9.+-]+$")]
    statement: str
    source: str
    """Where the paper says so: abstract, section, conclusion."""
    tables: Names = ()
    figures: Names = ()
    printed: dict[str, float] = {}
    """The numbers that the paper gives for it, each with what it is."""
    checks: tuple[Check, ...]

    @property
    def scenarios(self) -> set[str]:
        """The scenarios of its comparisons."""
        return {name for check in self.checks for name in (*check.within, *check.to_in)}


class Alternatives(StrictModel):
    """Further values of a variation, whose runs with seed 0 are shown as a range."""

    algorithms: Names
    fields: tuple[dict[str, Any], ...]
    """By alternative: field of a scenario, dotted -> its value."""


class Variation(StrictModel):
    """One value of something that the paper leaves open, other than the scenarios have it."""

    name: str
    fields: dict[str, Any] = {}
    """Field of a scenario, dotted, such as bottleneck.queue.limit -> its value."""
    controller_parameters: dict[str, Parameters] = {}
    scenario_fields: dict[str, dict[str, Any]] = {}
    """Scenario -> fields for it alone."""
    controller_fields: dict[str, dict[str, Any]] = {}
    """Controller -> fields for its runs alone."""
    alternatives: Alternatives | None = None
    source: Annotated[str, Field(pattern=r"^[a-z0-9-]+$")] | None = None
    """Its line in the tables of `quicgym papers --variations`, below ours; null: none."""


class Watched(StrictModel):
    """A quantity that is shown next to the verdicts of each variation."""

    scenario: str
    algorithm: str
    metric: str


class Paper(StrictModel):
    """Everything of one paper that can be reproduced."""

    name: str
    title: str
    reference: str = ""
    """Authors, title, venue and year, as a list of references has them."""
    doi: Annotated[str, Field(pattern=r"^10\.\d+/\S+$")] | None = None
    algorithms: dict[str, str]
    """Name in quicgym's catalogue -> heading in the paper."""
    tables: tuple[PrintedTable, ...] = ()
    figures: tuple[Figure, ...] = ()
    claims: tuple[Claim, ...] = ()
    variations: tuple[Variation, ...] = ()
    """For benchmarks/studies/reproduction.py: under each of them the claims are judged again."""
    watched: tuple[Watched, ...] = ()

    @property
    def compared(self) -> tuple[Variation, ...]:
        """The variations that `quicgym papers --variations` runs."""
        return tuple(variation for variation in self.variations if variation.source is not None)

    @model_validator(mode="after")
    def _references_exist(self) -> Paper:
        tables = {table.number for table in self.tables}
        figures = {figure.number for figure in self.figures}
        for figure in self.figures:
            reference = figure.difference_to
            if reference is not None and reference not in self.algorithms:
                raise ValueError(
                    f"figure {figure.number}: difference_to = {reference!r}; "
                    f"{closest(reference, self.algorithms)}"
                )
        seen: set[str] = set()
        for claim in self.claims:
            if claim.id in seen:
                raise ValueError(f"two claims have the id {claim.id!r}; rename one")
            seen.add(claim.id)
            for kind, wanted, known in (
                ("table", claim.tables, tables),
                ("figure", claim.figures, figures),
            ):
                for number in wanted:
                    if number not in known:
                        raise ValueError(
                            f"claim {claim.id}: there is no {kind} {number!r}; "
                            f"there are: {', '.join(sorted(known))}"
                        )
        return self

    def printed(self, scenario: str, algorithm: str, metric: str) -> float | None:
        """Returns what the paper prints for a measurement: the first table that has it."""
        for table in self.tables:
            for row in table.rows:
                if row.scenario == scenario and metric in table.metrics.values():
                    number = table.printed(row, algorithm, metric)
                    if number is not None:
                        return float(number)
        return None


def paper_names() -> list[str]:
    """Returns the names of the papers that quicgym brings."""
    return yaml_names(PAPERS)


def load_paper(name_or_path: str | Path) -> Paper:
    """Loads a paper, such as "ebcc", or a YAML file; PaperError names file and field."""
    file = read_yaml(name_or_path, PAPERS, "paper", PaperError)
    return validated(Paper, file.data, file.name, PaperError)
