"""The papers' own numbers bear out the papers' claims, and the reverse of them refutes the claims.

Where a paper prints no numbers for a claim, the smallest ones are taken that satisfy its sentence.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache

from quicgym.benchmarks.papers.measurements import split
from quicgym.benchmarks.papers.paper import Check, Claim, Paper, load_paper, paper_names
from quicgym.benchmarks.papers.verdicts import judge

Place = tuple[str, str, str]
"""Scenario, algorithm, metric."""
Values = dict[Place, float]
ONE: Place = ("", "", "one")
"""What a number is a multiple of."""
CLEARLY = 0.01
"""By how much a smallest value exceeds what it has to, as a logarithm."""


@cache
def claims() -> list[tuple[Paper, Claim]]:
    return [(paper, claim) for paper in map(load_paper, paper_names()) for claim in paper.claims]


class Fed:
    """The same values for each of three seeds."""

    def __init__(self, values: Values) -> None:
        self.values = values

    def runs(self, scenario: str, algorithm: str, engine: str) -> list[int]:
        return [0, 1, 2]

    def by_seed(self, scenario: str, algorithm: str, engine: str, metric: str) -> dict[int, float]:
        return dict.fromkeys(range(3), self.values[scenario, algorithm, metric])


def assert_verdict(expected: str, paper: Paper, claim: Claim, values: Values) -> None:
    judged = judge(claim, paper, Fed(values), lambda _: "native")  # type: ignore[arg-type]
    assert judged.verdict == expected, f"{paper.name}: {claim.id}"


def comparisons(claim: Claim) -> Iterator[tuple[Check, Place, Place]]:
    for check in claim.checks:
        to_metric = check.to_metric or check.metric
        for scenario, to_scenario in zip(check.within, check.to_in or check.within, strict=True):
            for algorithm in check.of:
                place = (scenario, algorithm, check.metric)
                for other in check.to:
                    against = (to_scenario, other, to_metric)
                    if against != place:
                        yield check, place, against
                if not check.to:
                    yield check, place, ONE


def printed(paper: Paper, place: Place) -> float | None:
    """As printed; of a run without a number of its own, the mean over its flows."""
    scenario, algorithm, metric = place
    found = paper.printed(scenario, algorithm, metric)
    if found is not None or split(metric)[1]:
        return found
    flows = [paper.printed(scenario, algorithm, f"{metric}@{flow}") for flow in range(1, 6)]
    known = [value for value in flows if value is not None]
    return sum(known) / len(known) if known else None


def bounds(check: Check, metric: str, *, reverse: bool) -> tuple[float | None, float | None]:
    """What a value is above and below, as a multiple of the other; of Jain's index, 1 - J."""
    low = check.above if check.at_least is None else float(check.at_least)
    high = check.below if check.at_most is None else float(check.at_most)
    if check.about is not None:
        low = high = float(check.about)
    if check.between is not None:
        low, high = check.between
    if split(metric)[0] == "jain" and check.between is None:
        if not check.to:
            low, high = (None if end is None else 1 - end for end in (low, high))
        low, high = high, low
    if not reverse:
        return low, high
    if low is not None and high is not None:
        return 2 * high, None
    # Across from what is claimed: a ratio turned round, a number missed by half of it.
    if low is not None:
        return None, min(low, 1 / low) if check.to else low / 2
    assert high is not None
    return max(high, 1 / high) if check.to else 2 * high, None


def solved(claim: Claim, *, reverse: bool) -> Values:
    """The smallest values that satisfy the claim, or its reverse: longest paths of logarithms."""
    edges: list[tuple[Place, Place, float]] = []  # the first at least the second and so much more
    zeros: set[Place] = set()
    places = {ONE}
    for check, place, other in comparisons(claim):
        places |= {place, other}
        low, high = bounds(check, place[2], reverse=reverse)
        closed = check.above is None and check.below is None and not reverse
        margin = 0.0 if closed else CLEARLY
        if high == 0:
            zeros.add(place)  # nothing is below
        elif high is not None:
            edges.append((other, place, margin - math.log(high)))
        if low:
            edges.append((place, other, math.log(low) + margin))
    logarithms = dict.fromkeys(places, 0.0)
    for _ in places:
        for larger, smaller, more in edges:
            logarithms[larger] = max(logarithms[larger], logarithms[smaller] + more)
    values = {place: math.exp(value - logarithms[ONE]) for place, value in logarithms.items()}
    values |= dict.fromkeys(zeros, 0.0)
    of_jain = {place: value for place, value in values.items() if split(place[2])[0] == "jain"}
    if of_jain and not any(other == ONE for _, _, other in comparisons(claim)):
        scale = 0.2 / max(of_jain.values())
        of_jain = {place: scale * value for place, value in of_jain.items()}
    return values | {place: 1 - value for place, value in of_jain.items()}


def groups(claim: Claim) -> list[set[Place]]:
    """The places that comparisons connect."""
    found: list[set[Place]] = []
    for _, place, other in comparisons(claim):
        group = {place} | ({other} if other != ONE else set())
        for known in [known for known in found if known & group]:
            found.remove(known)
            group |= known
        found.append(group)
    return found


def fed(paper: Paper, claim: Claim) -> Values:
    values = solved(claim, reverse=False)
    for group in groups(claim):
        numbers = {place: printed(paper, place) for place in group}
        known = {place: number for place, number in numbers.items() if number is not None}
        # A paper prints all that a sentence compares, one number of it, or nothing.
        where = f"{claim.id}: printed in part: {numbers}"
        assert len(known) in (0, 1, len(numbers)), where
        for place, number in [*known.items()] if len(known) < len(numbers) else []:
            known = {other: values[other] * number / values[place] for other in numbers}
        values |= known
    return values


def reversed_values(paper: Paper, claim: Claim) -> Values:
    """The printed values in the opposite order; where a number is claimed, on its other side."""
    orders = all(1.0 in (check.above, check.below) and check.to for check in claim.checks)
    if not orders:
        return solved(claim, reverse=True)
    values = fed(paper, claim)
    for group in groups(claim):
        numbers = [values[place] for place in group]
        values |= {place: min(numbers) + max(numbers) - values[place] for place in group}
    return values


def test_what_a_paper_prints_bears_out_what_it_claims() -> None:
    for paper, claim in claims():
        assert_verdict("holds", paper, claim, fed(paper, claim))


def test_the_reverse_of_what_a_paper_prints_refutes_it() -> None:
    for paper, claim in claims():
        assert_verdict("fails", paper, claim, reversed_values(paper, claim))


def test_equal_values_never_bear_out_an_order() -> None:
    for paper, claim in claims():
        orders = [check for check in claim.checks if 1.0 in (check.above, check.below) and check.to]
        if orders:
            places = {place for _, *both in comparisons(claim) for place in both}
            alone = claim.model_copy(update={"checks": tuple(orders)})
            assert_verdict("undecided", paper, alone, dict.fromkeys(places, 0.5))


def test_printed_numbers_keep_their_digits() -> None:
    first, *_ = load_paper("ebcc").tables
    assert first.printed(first.rows[0], "newreno", "ip_send_rate_mbps") == "4.220"
