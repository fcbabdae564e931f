"""Whether our measurements bear out what a paper claims. Nothing here is decided by hand.

A claim is a list of comparisons of a quantity q with a bound b, or with b times a quantity r. Seeds
are paired: d = q - b (or q - b·r) of each seed, and [low, high] is the 95% confidence interval of
the mean of d (Student's t; deterministic runs have an interval of zero length). A comparison has
one of three outcomes:

- above: yes where low > 0 and mean d > EQUAL_SHARE of the larger of q and b·r; no where high < 0 by
  as much; below is the mirror image;
- at_least, at_most, about: the same for the ends of the interval around the printed number
  (`printed_interval`); yes where all of [low, high] is inside, no where all of it is outside;
- between: the same for the two numbers given;
- open: otherwise, or where there is nothing to compare, such as the completion time of a transfer
  that was not complete at the end.

Order and level of Jain's index J are judged by 1 - J, which is what differs between fair shares.

A claim holds where every outcome is yes. It holds in part where some are. It does not hold where
none is yes and some are no. It is undecided where all are open.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from decimal import Decimal
from typing import Any, Literal

import numpy as np

from quicgym.agents.evaluation.statistics import mean_interval
from quicgym.benchmarks.papers.measurements import (
    Measurements,
    in_words,
    mean_and_deviation,
    quantity_in_words,
    split,
)
from quicgym.benchmarks.papers.paper import Check, Claim, Paper
from quicgym.benchmarks.papers.paper_tables import title_of

Outcome = Literal["yes", "no", "open"]
Verdict = Literal["holds", "partly", "fails", "undecided"]
VERDICTS: dict[Verdict, str] = {
    "holds": "holds",
    "partly": "holds in part",
    "fails": "does not hold",
    "undecided": "undecided",
}
"""In words, from the best to the one that says least."""
COUNTED: dict[str, tuple[str, str]] = {
    "holds": ("holds", "hold"),
    "partly": ("holds in part", "hold in part"),
    "fails": ("does not hold", "do not hold"),
    "undecided": ("is undecided", "are undecided"),
    "unmeasured": ("is not measured", "are not measured"),
    "need_ns3": ("needs ns-3", "need ns-3"),
    "need_longer_runs": ("needs longer runs", "need longer runs"),
}
"""Verdicts in words, as they follow the number 1 and other numbers."""

EQUAL_SHARE = 0.002
"""In an order, smaller differences than this share count as none, however small the deviation is.

The smallest that a paper builds a claim on is 0.3%, eBCC's throughput at the two shorter delays.
"""
PRINTED_SHARE = 0.05
"""Tolerance of a printed number: the eBCC paper prints BBR twice on one network, 4% apart."""
FAIRNESS = ("jain",)
"""Indices whose distance from 1 is what is compared."""


def counted(counts: Mapping[str, int]) -> str:
    """Returns how many claims came out how, by the keys of COUNTED."""
    return ", ".join(
        f"{count} {COUNTED[name][count != 1]}" for name, count in counts.items() if count
    )


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
    """None: no run has it."""
    deviation: float
    seeds: int
    printed: float | None
    heading: str = ""
    """How the paper calls the algorithm."""

    def in_words(self) -> str:
        """Returns it as a piece of text."""
        value = "none" if self.mean is None else in_words(self.mean, self.deviation)
        return f"{self.heading or self.algorithm}: {quantity_in_words(self.metric)} {value}"


@dataclass(frozen=True)
class Comparison:
    """One comparison and how it came out."""

    quantity: Quantity
    against: Quantity | None
    ratio: float | None
    """The quantity divided by what it is compared with; None: there is nothing, or it is 0."""
    low: float | None
    """The 95% interval of the quantity minus what it is compared with; None: there is nothing."""
    high: float | None
    claimed: str
    outcome: Outcome

    def in_words(self) -> str:
        """Returns the comparison as a line of text."""
        first, second = self.quantity, self.against
        if second is None:
            return f"{first.in_words()} ({first.scenario}); claimed: {self.claimed}"
        where = ", ".join(dict.fromkeys((first.scenario, second.scenario)))
        ratio = "" if self.ratio is None else f", ratio {self.ratio:.3g}"
        return f"{first.in_words()}; {second.in_words()} ({where}){ratio}; claimed: {self.claimed}"


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
    """Returns a claim's verdict; MissingMeasurement where a run has failed or was left out.

    `engine_of` returns the engine that counts, by scenario.
    """
    comparisons = tuple(
        comparison
        for check in claim.checks
        for comparison in _compare(check, paper, measured, engine_of)
    )
    outcomes = {comparison.outcome for comparison in comparisons}
    if "yes" in outcomes:
        verdict: Verdict = "holds" if outcomes == {"yes"} else "partly"
    else:
        verdict = "fails" if "no" in outcomes else "undecided"
    return Judgement(claim, verdict, comparisons)


def printed_interval(number: Decimal, *, ratio: bool) -> tuple[float, float]:
    """Returns the interval around a printed number within which a measurement agrees with it.

    Half a unit of the last printed digit on either side, trailing zeros counted, and PRINTED_SHARE
    of the number. Of a ratio of two measurements PRINTED_SHARE of the ratio or of its distance from
    1, whichever is less.
    """
    value = float(number)
    exponent = number.as_tuple().exponent
    assert isinstance(exponent, int), "a printed number is finite"
    size = min(abs(value), abs(value - 1.0)) if ratio else abs(value)
    reach = 0.5 * 10.0**exponent + PRINTED_SHARE * size
    return value - reach, value + reach


def _compare(
    check: Check, paper: Paper, measured: Measurements, engine_of: Callable[[str], str]
) -> Iterator[Comparison]:
    def take(scenario: str, algorithm: str, metric: str) -> tuple[Quantity, Mapping[int, float]]:
        engine = engine_of(scenario)
        runs = measured.runs(scenario, algorithm, engine)
        if not runs:
            raise MissingMeasurement(f"run of {algorithm} in {scenario} on {engine}")
        numbers = measured.by_seed(scenario, algorithm, engine, metric)
        mean, deviation = mean_and_deviation([*numbers.values()]) if numbers else (None, 0.0)
        printed = paper.printed(scenario, algorithm, metric)
        quantity = Quantity(
            scenario,
            algorithm,
            metric,
            engine,
            mean,
            deviation,
            len(numbers),
            printed,
            paper.algorithms.get(algorithm, algorithm),
        )
        return quantity, numbers

    for scenario, to_scenario in zip(check.within, check.to_in or check.within, strict=True):
        for algorithm in check.of:
            quantity, numbers = take(scenario, algorithm, check.metric)
            if not check.to:
                low, high = _interval([*numbers.values()])
                outcome = _outcome(check, numbers)
                yield Comparison(quantity, None, None, low, high, claimed(check), outcome)
            for other in check.to:
                if (other, to_scenario) == (algorithm, scenario) and check.to_metric is None:
                    continue
                against, others = take(to_scenario, other, check.to_metric or check.metric)
                known = quantity.mean is not None and against.mean
                ratio = quantity.mean / against.mean if known else None  # type: ignore[operator]
                both = [numbers[seed] - others[seed] for seed in numbers.keys() & others.keys()]
                low, high = _interval(both)
                outcome = _outcome(check, numbers, others)
                yield Comparison(quantity, against, ratio, low, high, claimed(check), outcome)


def claimed(check: Check) -> str:
    """Returns in words what a comparison has to be to come out as claimed."""
    if check.between is not None:
        return f"between {check.between[0]:g} and {check.between[1]:g}"
    if check.above is not None or check.below is not None:
        return f"above {check.above:g}" if check.above is not None else f"below {check.below:g}"
    for word, number in (("at least", check.at_least), ("at most", check.at_most)):
        if number is not None:
            low, high = printed_interval(number, ratio=bool(check.to))
            end = low if number is check.at_least else high
            return f"{word} {number}, which is {end:.4g} with its tolerance"
    assert check.about is not None, "a check has one kind of bound"
    low, high = printed_interval(check.about, ratio=bool(check.to))
    return f"{check.about}, which is {low:.4g} to {high:.4g} with its tolerance"


def _outcome(
    check: Check, numbers: Mapping[int, float], others: Mapping[int, float] | None = None
) -> Outcome:
    """Each bound is a number, or with `others` a multiple of them."""
    low, high, strict = _bounds(check)
    seeds = sorted(numbers if others is None else numbers.keys() & others.keys())
    values = np.array([numbers[seed] for seed in seeds])
    references = np.ones(len(seeds)) if others is None else np.array([others[s] for s in seeds])
    if split(check.metric)[0] in FAIRNESS and (others is None or {low, high} <= {None, 1.0}):
        # J above b is 1 - J below 1 - b; compared with another index, it is 1 - J below its 1 - J.
        values = 1.0 - values
        if others is not None:
            references = 1.0 - references
        else:
            low, high = (None if end is None else 1.0 - end for end in (low, high))
        low, high = high, low
    inside = [
        _side(sign * values, sign * bound * references, strict=strict)
        for sign, bound in ((1.0, low), (-1.0, high))
        if bound is not None
    ]
    return "no" if -1 in inside else "open" if 0 in inside else "yes"


def _bounds(check: Check) -> tuple[float | None, float | None, bool]:
    """Returns what a quantity has to be above and below, and whether equality is too little."""
    ratio = bool(check.to)
    if check.above is not None or check.below is not None:
        return check.above, check.below, True
    if check.at_least is not None:
        return printed_interval(check.at_least, ratio=ratio)[0], None, False
    if check.at_most is not None:
        return None, printed_interval(check.at_most, ratio=ratio)[1], False
    if check.about is not None:
        return *printed_interval(check.about, ratio=ratio), False
    assert check.between is not None, "a check has one kind of bound"
    return *check.between, False


def _side(values: np.ndarray, bounds: np.ndarray, *, strict: bool) -> int:
    """Returns 1 above the bounds, -1 below them, 0 where the seeds do not tell."""
    low, high = _interval(values - bounds)
    if low is None or high is None:
        return 0
    margin = EQUAL_SHARE * max(abs(values.mean()), abs(bounds.mean())) if strict else 0.0
    mean = (low + high) / 2
    if (low > 0 and mean > margin) or (low >= 0 and not strict):
        return 1
    return -1 if high < 0 and mean < -margin else 0


def _interval(numbers: Sequence[float] | np.ndarray) -> tuple[float | None, float | None]:
    """Returns the confidence interval of the mean; fewer than two numbers have none."""
    if len(numbers) < 2:
        return None, None
    mean, deviation = mean_and_deviation(numbers)
    if deviation == 0:
        return mean, mean
    found = mean_interval([*numbers])
    return found.low, found.high
