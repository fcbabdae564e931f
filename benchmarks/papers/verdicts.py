"""Whether our measurements bear out what a paper claims. Nothing here is decided by hand.

A claim is a list of comparisons. Each has one of three outcomes, by a 95% confidence interval over
the seeds (Welch's t; deterministic runs have an interval of zero length):

- yes: the measured value is on the claimed side by more than the interval, and by more than
  EQUAL_SHARE of the value itself;
- no: it is on the other side by as much;
- open: it is too close to tell, or there is nothing to compare, such as the completion time of a
  transfer that was not complete at the end.

A claim holds where every outcome is yes, fails where none is, and holds in part otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
from scipy import stats

from quicgym.benchmarks.papers.measurements import Measurements, mean_and_deviation
from quicgym.benchmarks.papers.model import Check, Claim, Paper
from quicgym.benchmarks.papers.tables import title_of

Outcome = Literal["yes", "no", "open"]
Verdict = Literal["holds", "partly", "fails"]

CONFIDENCE = 0.95
EQUAL_SHARE = 0.005
"""Smaller differences count as none, however small the deviation is."""


class MissingMeasurement(LookupError):
    """A claim needs something that was not measured."""


@dataclass(frozen=True)
class Quantity:
    """A measured quantity: mean and standard deviation over its seeds."""

    scenario: str
    algorithm: str
    metric: str
    engine: str
    mean: float | None
    """None: every run is without it."""
    deviation: float
    seeds: int
    printed: float | None

    def in_words(self) -> str:
        """Returns it as a piece of text."""
        value = "none" if self.mean is None else f"{self.mean:.4g}±{self.deviation:.2g}"
        return f"{self.algorithm} {self.metric} {value}"


@dataclass(frozen=True)
class Comparison:
    """One comparison and how it came out."""

    quantity: Quantity
    against: Quantity | None
    ratio: float | None
    """The quantity divided by what it is compared with; None: there is nothing, or it is 0."""
    claimed: str
    outcome: Outcome

    def in_words(self) -> str:
        """Returns the comparison as a line of text."""
        first, second = self.quantity, self.against
        if second is None:
            return f"{first.in_words()} ({first.scenario}); claimed: {self.claimed}"
        where = ", ".join(dict.fromkeys((first.scenario, second.scenario)))
        ratio = "" if self.ratio is None else f", ratio {self.ratio:.3g}"
        return f"{first.in_words()}, {second.in_words()} ({where}){ratio}; claimed: {self.claimed}"


@dataclass(frozen=True)
class Judgement:
    """A claim's verdict with everything that it rests on."""

    claim: Claim
    verdict: Verdict
    comparisons: tuple[Comparison, ...]

    @property
    def source(self) -> str:
        """Where the paper says it, with its tables and figures."""
        tables = map(title_of, self.claim.tables)
        figures = (f"Figure {number}" for number in self.claim.figures)
        return "; ".join([self.claim.source, *tables, *figures])

    def measured(self) -> list[dict[str, Any]]:
        """Returns the comparisons as JSON takes them."""
        return [
            {**asdict(comparison), "words": comparison.in_words()}
            for comparison in self.comparisons
        ]


def judge(
    claim: Claim, paper: Paper, measured: Measurements, engine_of: Callable[[str], str]
) -> Judgement:
    """Returns a claim's verdict.

    Args:
        claim: What the paper says.
        paper: The paper, for the printed values.
        measured: What was measured.
        engine_of: The engine that counts, by scenario.

    Raises:
        MissingMeasurement: A run that the claim needs has failed or was left out.
    """
    comparisons = tuple(
        comparison
        for check in claim.checks
        for comparison in _compare(check, paper, measured, engine_of)
    )
    outcomes = {comparison.outcome for comparison in comparisons}
    verdict: Verdict = (
        "holds" if outcomes == {"yes"} else "partly" if "yes" in outcomes else "fails"
    )
    return Judgement(claim, verdict, comparisons)


def _compare(
    check: Check, paper: Paper, measured: Measurements, engine_of: Callable[[str], str]
) -> Iterator[Comparison]:
    def take(scenario: str, algorithm: str, metric: str) -> tuple[Quantity, list[float]]:
        engine = engine_of(scenario)
        runs = measured.runs(scenario, algorithm, engine)
        if not runs:
            raise MissingMeasurement(f"run of {algorithm} in {scenario} on {engine}")
        numbers = measured.values(scenario, algorithm, engine, metric)
        mean, deviation = mean_and_deviation(numbers) if numbers else (None, 0.0)
        printed = paper.printed(scenario, algorithm, metric)
        quantity = Quantity(
            scenario, algorithm, metric, engine, mean, deviation, len(runs), printed
        )
        return quantity, numbers

    for scenario, to_scenario in zip(check.within, check.to_in or check.within, strict=True):
        for algorithm in check.of:
            quantity, numbers = take(scenario, algorithm, check.metric)
            if not check.to:
                yield Comparison(quantity, None, None, _claimed(check), _outcome(check, numbers))
            for other in check.to:
                if (other, to_scenario) == (algorithm, scenario) and check.to_metric is None:
                    continue
                against, others = take(to_scenario, other, check.to_metric or check.metric)
                known = quantity.mean is not None and against.mean
                ratio = quantity.mean / against.mean if known else None  # type: ignore[operator]
                outcome = _outcome(check, numbers, others)
                yield Comparison(quantity, against, ratio, _claimed(check), outcome)


def _claimed(check: Check) -> str:
    if check.between is not None:
        return f"between {check.between[0]:g} and {check.between[1]:g}"
    return f"above {check.above:g}" if check.above is not None else f"below {check.below:g}"


def _outcome(
    check: Check, numbers: Sequence[float], others: Sequence[float] | None = None
) -> Outcome:
    """Each bound is a number, or with `others` a multiple of them."""
    if not numbers or others == []:
        return "open"

    def side(bound: float) -> int:
        reference = [bound] if others is None else [bound * number for number in others]
        return _side(numbers, reference)

    if check.between is not None:
        low, high = side(check.between[0]), side(check.between[1])
        if low < 0 or high > 0:
            return "no"
        return "yes" if low > 0 and high < 0 else "open"
    found = side(check.above) if check.above is not None else -side(check.below or 0.0)
    return ("no", "open", "yes")[found + 1]


def _side(numbers: Sequence[float], reference: Sequence[float]) -> int:
    """Returns 1 above the reference, -1 below it, 0 where it cannot be told."""
    mean, deviation = mean_and_deviation(numbers)
    other_mean, other_deviation = mean_and_deviation(reference)
    difference = mean - other_mean
    if abs(difference) <= EQUAL_SHARE * max(abs(mean), abs(other_mean)):
        return 0
    squares = np.array(
        [deviation**2 / len(numbers), other_deviation**2 / len(reference)], dtype=float
    )
    if squares.sum() > 0:
        freedoms = np.array([max(len(numbers) - 1, 1), max(len(reference) - 1, 1)])
        freedom = squares.sum() ** 2 / (squares**2 / freedoms).sum()
        reach = stats.t.ppf(0.5 + CONFIDENCE / 2, freedom) * np.sqrt(squares.sum())
        if abs(difference) <= reach:
            return 0
    return 1 if difference > 0 else -1
