"""The line under each of a paper's tables follows from the measurements and the print alone."""

from __future__ import annotations

from typing import Any

from quicgym.benchmarks.papers.paper import Paper
from quicgym.benchmarks.papers.table_verdicts import table_verdict

TABLE = {
    "number": "5",
    "caption": "Loss",
    "row_header": "Network",
    "metrics": {"loss": "loss_percent"},
    "rows": [
        {"label": "near", "scenario": "near", "values": {"a": "1.0", "b": "2.0", "c": "2.0"}},
        {"label": "far", "scenario": "far", "values": {"a": "18.928", "b": "5.0"}},
    ],
}


def paper(**changes: Any) -> Paper:
    claims = [
        {
            "id": "order",
            "statement": "B loses more than A.",
            "source": "abstract",
            "tables": "5",
            "checks": [{"metric": "loss_percent", "of": "b", "to": "a", "in": "near", "above": 1}],
        },
        {
            "id": "gone",
            "statement": "D loses nothing.",
            "source": "abstract",
            "tables": "5",
            "checks": [{"metric": "loss_percent", "of": "d", "in": "near", "below": 1}],
        },
    ]
    algorithms = {"a": "Alpha", "b": "Beta", "c": "Gamma"}
    data = {"name": "p", "title": "p", "algorithms": algorithms, "tables": [TABLE]}
    return Paper.model_validate({**data, "claims": claims, **changes})


class Measured:
    """One number for each scenario and algorithm, in two seeds."""

    def __init__(self, numbers: dict[tuple[str, str], float]) -> None:
        self.numbers = numbers

    def runs(self, scenario: str, algorithm: str, engine: str) -> list[float]:
        return self.values(scenario, algorithm, engine, "")

    def values(self, scenario: str, algorithm: str, engine: str, metric: str) -> list[float]:
        number = self.numbers.get((scenario, algorithm))
        return [] if number is None else [number, number]

    def by_seed(self, scenario: str, algorithm: str, engine: str, metric: str) -> dict[int, float]:
        return dict(enumerate(self.values(scenario, algorithm, engine, metric)))


def line(numbers: dict[tuple[str, str], float], of: Paper | None = None) -> str | None:
    known = of or paper()
    return table_verdict(known.tables[0], known, Measured(numbers), lambda _: "native")  # type: ignore[arg-type]


AS_PRINTED = {
    ("near", "a"): 1.1, ("near", "b"): 2.1, ("near", "c"): 1.9,
    ("far", "a"): 18.0, ("far", "b"): 5.0,
}  # fmt: skip


def test_the_printed_order_the_farthest_cell_and_the_claims_are_counted() -> None:
    said = line(AS_PRINTED)
    for text in ("Table 5", "in 2 of 2 rows", "Alpha, near, loss: 1.1 here, 1.0 in the paper"):
        assert said is not None and text in said
    assert said is not None and said.endswith("1 holds, 1 is not measured")


def test_a_pair_the_other_way_round_is_not_the_printed_order() -> None:
    turned = {**AS_PRINTED, ("far", "a"): 1.4, ("near", "b"): 0.9}
    said = line(turned)
    for text in ("in 0 of 2 rows", "far, loss: 1.4 here, 18.928 in the paper", "1 does not hold"):
        assert said is not None and text in said


def test_a_single_algorithm_has_no_order_and_nothing_measured_has_no_line() -> None:
    alone = line({("near", "a"): 1.0}, paper(claims=[]))
    assert alone is not None and "order" not in alone and "claims" not in alone
    assert line({("near", "d"): 1.0}) is None
