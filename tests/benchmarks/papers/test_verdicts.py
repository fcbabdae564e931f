"""Verdicts are computed from measurements, and from nothing else."""

from types import SimpleNamespace
from typing import Any

import pytest

from quicgym.benchmarks.papers.measurements import Measurements, value_of
from quicgym.benchmarks.papers.model import Claim, Paper, PrintedTable
from quicgym.benchmarks.papers.verdicts import MissingMeasurement, judge

PAPER = Paper(name="p", title="p", algorithms={"a": "A", "b": "B"})


class Measured:
    """Numbers by algorithm, the same in every scenario."""

    def __init__(self, **numbers: list[float]) -> None:
        self.numbers = numbers

    def runs(self, scenario: str, algorithm: str, engine: str) -> list[float]:
        return self.numbers.get(algorithm, [])

    def values(self, scenario: str, algorithm: str, engine: str, metric: str) -> list[float]:
        return [number for number in self.numbers.get(algorithm, []) if number is not None]


def verdict(numbers: dict[str, list[float]], *checks: dict[str, Any]) -> tuple[str, list[str]]:
    defaults = {"metric": "jain", "of": "a", "in": "s"}
    claim = Claim.model_validate(
        {"id": "c", "statement": "", "source": "", "checks": [defaults | entry for entry in checks]}
    )
    result = judge(claim, PAPER, Measured(**numbers), lambda _: "native")  # type: ignore[arg-type]
    return result.verdict, [entry.outcome for entry in result.comparisons]


STEADY = {"a": [2.0] * 5, "b": [1.0] * 5}
NOISY = {"a": [2.0, 0.1, 3.0, 1.0, 2.2], "b": [1.0, 2.5, 0.3, 1.9, 0.9]}


@pytest.mark.parametrize(
    ("numbers", "check", "outcome"),
    [
        (STEADY, {"to": "b", "above": 1}, "yes"),
        (STEADY, {"to": "b", "above": 1.9}, "yes"),
        (STEADY, {"to": "b", "above": 2.1}, "no"),
        (STEADY, {"to": "b", "below": 1}, "no"),
        (STEADY, {"to": "b", "below": 2.1}, "yes"),
        (STEADY, {"to": "b", "between": [1.5, 2.5]}, "yes"),
        (STEADY, {"to": "b", "between": [2.5, 3.5]}, "no"),
        (STEADY, {"above": 1.5}, "yes"),
        (STEADY, {"below": 1.5}, "no"),
        (STEADY, {"to": "b", "above": 2}, "open"),  # equal
        ({"a": [1.004] * 5, "b": [1.0] * 5}, {"to": "b", "above": 1}, "open"),  # nearly equal
        ({"a": [1.006] * 5, "b": [1.0] * 5}, {"to": "b", "above": 1}, "yes"),
        (NOISY, {"to": "b", "above": 1}, "open"),
        (NOISY, {"to": "b", "above": 0.01}, "yes"),
        (NOISY, {"to": "b", "between": [0.5, 2]}, "open"),
        ({"a": [0.0] * 5, "b": [0.0] * 5}, {"to": "b", "below": 1}, "open"),
        ({"a": [0.0] * 5, "b": [3.0] * 5}, {"to": "b", "below": 1}, "yes"),
        ({"a": [0.0] * 5}, {"below": 0.001}, "yes"),
        ({"a": [2.0], "b": [1.0]}, {"to": "b", "above": 1}, "yes"),  # one seed
    ],
)
def test_outcomes(numbers: dict[str, list[float]], check: dict[str, Any], outcome: str) -> None:
    assert verdict(numbers, check)[1] == [outcome]


def test_a_claim_holds_with_all_comparisons_fails_with_none_and_holds_in_part_otherwise() -> None:
    yes, no = {"to": "b", "above": 1}, {"to": "b", "below": 1}
    equal = {"to": "b", "above": 2}
    assert verdict(STEADY, yes, yes)[0] == "holds"
    assert verdict(STEADY, yes, no)[0] == "partly"
    assert verdict(STEADY, yes, equal)[0] == "partly"
    assert verdict(STEADY, no, equal)[0] == "fails"
    assert verdict(STEADY, equal)[0] == "fails"


def test_a_check_stands_for_every_combination_but_the_one_with_itself() -> None:
    check = {"of": ["a", "b"], "to": ["a", "b"], "in": ["s", "t"], "above": 1}
    assert verdict(STEADY, check)[1] == ["yes", "no"] * 2
    across = {"of": "a", "to": "a", "in": ["s", "t"], "to_in": ["t", "u"], "between": [0.9, 1.1]}
    assert verdict(STEADY, across)[1] == ["yes", "yes"]


def test_a_claim_without_its_measurement_is_not_decided() -> None:
    with pytest.raises(MissingMeasurement, match="run of c in s on native"):
        verdict(STEADY, {"to": "c", "above": 1})


def test_what_no_run_has_is_open() -> None:
    never = {"a": [None, None], "b": [1.0, 1.0]}
    assert verdict(never, {"to": "b", "below": 1})[1] == ["open"]  # type: ignore[arg-type]
    assert verdict(never, {"of": "b", "to": "a", "below": 1})[1] == ["open"]  # type: ignore[arg-type]
    assert verdict(never, {"below": 1}) == ("fails", ["open"])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("check", "words"),
    [
        ({}, "exactly one of above, below and between"),
        ({"above": 1, "below": 2}, "exactly one of above, below and between"),
        ({"to": "b", "in": ["s", "t"], "to_in": "u", "above": 1}, "to_in needs one scenario for"),
        ({"to_in": "t", "above": 1}, "to_in and to_metric need `to`"),
        ({"to_metric": "jain", "above": 1}, "to_in and to_metric need `to`"),
    ],
)
def test_a_comparison_that_says_too_much_or_too_little_is_refused(
    check: dict[str, Any], words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        verdict(STEADY, check)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"rows": [{"label": "r", "scenario": "s", "values": {"a": "1.0"}}]}, "does not hold 2"),
        ({"cross_check": "t"}, "no row has the scenario t"),
    ],
)
def test_a_printed_table_that_does_not_fit_itself_is_refused(
    changes: dict[str, Any], words: str
) -> None:
    table = {
        "number": "1",
        "caption": "",
        "row_header": "",
        "metrics": {"rate": "receive_rate_mbps", "loss": "loss_percent"},
        "cross_check": "s",
        "rows": [{"label": "r", "scenario": "s", "values": {"a": "1.0/-"}}],
    }
    printed = PrintedTable.model_validate(table)
    assert printed.printed(printed.rows[0], "a", "receive_rate_mbps") == "1.0"
    with pytest.raises(ValueError, match=words):
        PrintedTable.model_validate(table | changes)


def test_runs_are_in_the_order_of_their_seeds() -> None:
    scenario = SimpleNamespace(name="s")
    jobs: list[Any] = [
        SimpleNamespace(
            key=str(seed), seed=seed, scenario=scenario, controller="a", engine="native"
        )
        for seed in (2, 0, 1, 3)
    ]
    finished = {str(seed): {"jain": seed / 10, "flows": []} for seed in range(3)}
    assert Measurements(jobs, finished).values("s", "a", "native", "jain") == [0, 0.1, 0.2]


def test_a_sum_over_flows_lacks_what_a_flow_lacks() -> None:
    flows = [{"name": "x", "completion_time_s": 1.5}, {"name": "y", "completion_time_s": 2.0}]
    assert value_of({"flows": flows}, "completion_time_s@sum") == 3.5
    assert value_of({"flows": flows}, "completion_time_s@y") == 2
    flows.append({"name": "z", "completion_time_s": None})
    assert value_of({"flows": flows}, "completion_time_s@sum") is None
