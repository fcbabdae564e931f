"""One line under each of a paper's tables: how far our values agree with the printed ones.

Three things are computed, none is decided by hand: in how many rows the algorithms have the printed
order, which cell is farthest from the print, and the verdicts on the claims that name the table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

from quicgym.benchmarks.papers.measurements import Measurements, mean_and_deviation
from quicgym.benchmarks.papers.paper import Paper, PrintedTable, Variation
from quicgym.benchmarks.papers.paper_tables import title_of
from quicgym.benchmarks.papers.verdicts import VERDICTS, MissingMeasurement, Verdict, counted, judge

WORDS = {2: "two", 3: "three", 4: "four", 5: "five", 6: "six"}


class _Cell(NamedTuple):
    row: str
    algorithm: str
    quantity: str
    ours: float
    printed: str

    @property
    def distance(self) -> float:
        """|ours - printed| in proportion to the larger of both, 0 to 1 for numbers of one sign."""
        paper = float(self.printed)
        largest = max(abs(self.ours), abs(paper))
        return abs(self.ours - paper) / largest if largest else 0.0


def table_verdict(
    table: PrintedTable,
    paper: Paper,
    measured: Measurements,
    engine_of: Callable[[str], str],
    variations: Sequence[Variation] = (),
) -> str | None:
    """Returns the line; None where no run has a printed value in this table.

    `engine_of` returns the engine that counts, by scenario. The order is also that of `variations`.
    """
    lines = [line for line in _lines(table, paper, measured, engine_of) if line]
    if not lines:
        return None
    parts = []
    ordered = [line for line in lines if len(line) > 1]
    if ordered:
        same = sum(_in_printed_order(line) for line in ordered)
        most = max(map(len, ordered))
        what = "comparisons (rows times quantities)" if len(table.metrics) > 1 else "rows"
        parts.append(
            f"our values put the {WORDS.get(most, most)} controllers into the same order as the "
            f"printed ones in {same} of {len(ordered)} {what}"
        )
        for variation in variations:
            varied = [*_lines(table, paper, measured, engine_of, f"--{variation.source}")]
            same = sum(_in_printed_order(line) for line in varied if len(line) > 1)
            parts[-1] += f", and those of the {variation.source} in {same}"
    farthest = max((cell for line in lines for cell in line), key=lambda cell: cell.distance)
    heading = paper.algorithms.get(farthest.algorithm, farthest.algorithm)
    parts.append(
        f"the largest difference is that of {heading}, {farthest.row}, {farthest.quantity}: "
        f"{farthest.ours:.4g} here, {farthest.printed} in the paper"
    )
    claims = _claims(table, paper, measured, engine_of)
    if claims:
        parts.append(f"of the claims about this table {claims}")
    return f"{title_of(table.number)}: {'; '.join(parts)}"


def _lines(
    table: PrintedTable,
    paper: Paper,
    measured: Measurements,
    engine_of: Callable[[str], str],
    variation: str = "",
) -> Iterator[list[_Cell]]:
    """Yields, for each row and quantity, the cells that are both measured and printed.

    `variation` ends the names of the scenarios that were run.
    """
    for row in table.rows:
        for quantity, metric in table.metrics.items():
            cells = []
            for algorithm in table.algorithms or paper.algorithms:
                engine = engine_of(row.scenario)
                numbers = measured.values(row.scenario + variation, algorithm, engine, metric)
                printed = table.printed(row, algorithm, metric)
                if numbers and printed is not None:
                    ours = mean_and_deviation(numbers)[0]
                    cells.append(_Cell(row.label, algorithm, quantity, ours, printed))
            yield cells


def _in_printed_order(cells: Sequence[_Cell]) -> bool:
    """Whether each pair that the paper prints as different differs here in the same direction."""
    return all(
        (first.ours - second.ours) * (float(first.printed) - float(second.printed)) > 0
        for first, second in combinations(cells, 2)
        if float(first.printed) != float(second.printed)
    )


def _claims(
    table: PrintedTable, paper: Paper, measured: Measurements, engine_of: Callable[[str], str]
) -> str:
    verdicts: list[Verdict] = []
    unmeasured = 0
    for claim in paper.claims:
        if table.number not in claim.tables:
            continue
        try:
            verdicts.append(judge(claim, paper, measured, engine_of).verdict)
        except MissingMeasurement:
            unmeasured += 1
    counts: dict[str, int] = {verdict: verdicts.count(verdict) for verdict in VERDICTS}
    return counted({**counts, "unmeasured": unmeasured})
