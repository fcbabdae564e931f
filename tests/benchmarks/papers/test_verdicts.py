"""Verdicts are computed from measurements, and from nothing else."""

from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quicgym.benchmarks.papers.measurements import Measurements, value_of
from quicgym.benchmarks.papers.paper import Claim, Paper, PrintedTable
from quicgym.benchmarks.papers.verdicts import MissingMeasurement, judge

PAPER = Paper(name="p", title="p", algorithms={"a": "A", "b": "B"})


class Measured:
    """Numbers by algorithm, the same in every scenario."""

    def __init__(self, **numbers: list[float]) -> None:
        self.numbers = numbers

    def runs(self, scenario: str, algorithm: str, engine: str) -> list[float]:
        return self.numbers.get(algorithm, [])

    def by_seed(self, scenario: str, algorithm: str, engine: str, metric: str) -> dict[int, float]:
        numbers = enumerate(self.numbers.get(algorithm, []))
        return {seed: number for seed, number in numbers if number is not None}


def verdict(numbers: dict[str, list[float]], *checks: dict[str, Any]) -> tuple[str, list[str]]:
    defaults = {"metric": "goodput_mbps", "of": "a", "in": "s"}
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
        (STEADY, {"to": "b", "above": 2.1}, "no"),
        (STEADY, {"to": "b", "below": 1}, "no"),
        (STEADY, {"to": "b", "below": 2.1}, "yes"),
        (STEADY, {"to": "b", "between": [1.5, 2.5]}, "yes"),
        (STEADY, {"above": 1.5}, "yes"),
        (STEADY, {"below": 1.5}, "no"),
        (STEADY, {"to": "b", "above": 2}, "open"),  # equal
        ({"a": [1.001] * 5, "b": [1.0] * 5}, {"to": "b", "above": 1}, "open"),  # nearly equal
        ({"a": [1.003] * 5, "b": [1.0] * 5}, {"to": "b", "above": 1}, "yes"),
        (NOISY, {"to": "b", "above": 1}, "open"),
        (NOISY, {"to": "b", "above": 0.01}, "yes"),
        (NOISY, {"to": "b", "between": [0.5, 2]}, "open"),
        ({"a": [0.0] * 5, "b": [0.0] * 5}, {"to": "b", "below": 1}, "open"),
        ({"a": [0.0] * 5, "b": [3.0] * 5}, {"to": "b", "below": 1}, "yes"),
        ({"a": [0.0] * 5}, {"below": 0.001}, "yes"),
        ({"a": [2.0], "b": [1.0]}, {"to": "b", "above": 1}, "open"),  # one seed tells nothing
        (STEADY, {"to": "b", "at_least": 2}, "yes"),  # 1.95 with its tolerance and half a unit
        (STEADY, {"to": "b", "at_least": "2.04"}, "yes"),  # 2.04 - 0.005 - 0.05 * 1.04
        (STEADY, {"to": "b", "at_least": "2.12"}, "no"),
        (STEADY, {"to": "b", "at_most": "1.95"}, "yes"),
        (STEADY, {"to": "b", "at_most": "1.89"}, "no"),
        (STEADY, {"about": "2.09"}, "yes"),  # 2.09 - 0.005 - 0.05 * 2.09
        (STEADY, {"about": "2.2"}, "no"),
        (STEADY, {"about": "1.7"}, "no"),
        (NOISY, {"to": "b", "at_least": "1.0839"}, "open"),
        (NOISY, {"about": "1.66"}, "open"),
        # Jain's index: what is left to 1 is compared.
        ({"a": [0.979] * 5, "b": [0.975] * 5}, {"metric": "jain", "to": "b", "above": 1}, "yes"),
        ({"a": [0.979] * 5, "b": [0.975] * 5}, {"metric": "jain", "to": "b", "below": 1}, "no"),
        ({"a": [1.0] * 5, "b": [1.0] * 5}, {"metric": "jain", "to": "b", "above": 1}, "open"),
        ({"a": [0.9838] * 5}, {"metric": "jain", "above": 0.98}, "yes"),
        (
            {"a": [0.96] * 5, "b": [0.999] * 5},
            {"metric": "jain", "to": "b", "between": [0.95, 1.05]},
            "yes",
        ),
        (
            {"a": [0.986] * 5, "b": [0.91] * 5},
            {"metric": "jain", "to": "b", "at_least": "1.0839"},
            "yes",
        ),
    ],
)
def test_outcomes(numbers: dict[str, list[float]], check: dict[str, Any], outcome: str) -> None:
    assert verdict(numbers, check)[1] == [outcome]


def test_the_verdict_of_a_claim_follows_from_the_outcomes_of_its_comparisons() -> None:
    yes, no = {"to": "b", "above": 1}, {"to": "b", "below": 1}
    equal = {"to": "b", "above": 2}
    assert verdict(STEADY, yes, yes)[0] == "holds"
    assert verdict(STEADY, yes, no)[0] == "partly"
    assert verdict(STEADY, yes, equal)[0] == "partly"
    assert verdict(STEADY, no, equal)[0] == "fails"
    assert verdict(STEADY, equal, equal)[0] == "undecided"


def test_seeds_are_paired() -> None:
    """The networks of the seeds differ far more than the two algorithms on each of them."""
    first = [1.0, 20.0, 5.0, 90.0, 40.0]
    second = [number + 0.5 for number in first]
    numbers = {"a": second, "b": first}
    assert verdict(numbers, {"to": "b", "above": 1})[1] == ["yes"]
    shuffled = {"a": second, "b": first[1:] + first[:1]}
    assert verdict(shuffled, {"to": "b", "above": 1})[1] == ["open"]
    # What one of the two has not measured is left out of both.
    missing = {"a": [*second, None], "b": [None, *first[1:], 1e9]}
    assert verdict(missing, {"to": "b", "above": 1})[1] == ["yes"]  # type: ignore[arg-type]


@given(
    st.decimals("0.001", "1000", places=3).filter(lambda number: abs(number - 1) > Decimal("0.01"))
)
def test_a_printed_ratio_holds_and_its_inverse_does_not(number: Decimal) -> None:
    bound = {"to": "b", "at_least" if number > 1 else "at_most": str(number)}
    assert verdict({"a": [float(number)] * 2, "b": [1.0] * 2}, bound)[0] == "holds"
    assert verdict({"a": [1.0] * 2, "b": [float(number)] * 2}, bound)[0] == "fails"


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
    assert verdict(never, {"below": 1}) == ("undecided", ["open"])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("check", "words"),
    [
        ({}, "exactly one of above, below, at_least, at_most, about and between"),
        (
            {"above": 1, "below": 2},
            "exactly one of above, below, at_least, at_most, about and between",
        ),
        ({"at_least": "a third"}, "at_least"),
        ({"to": "b", "in": ["s", "t"], "to_in": "u", "above": 1}, "to_in needs one scenario for"),
        ({"to_in": "t", "above": 1}, "to_in and to_metric need `to`"),
    ],
)
def test_a_comparison_that_says_too_much_or_too_little_is_refused(
    check: dict[str, Any], words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        verdict(STEADY, check)


def test_a_printed_table_that_does_not_fit_itself_is_refused() -> None:
    table = {
        "number": "1",
        "caption": "",
        "row_header": "",
        "metrics": {"rate": "receive_rate_mbps", "loss": "loss_percent"},
        "rows": [{"label": "r", "scenario": "s", "values": {"a": "1.0/-"}}],
    }
    printed = PrintedTable.model_validate(table)
    assert printed.printed(printed.rows[0], "a", "receive_rate_mbps") == "1.0"
    rows = [{"label": "r", "scenario": "s", "values": {"a": "1.0"}}]
    with pytest.raises(ValueError, match="does not hold 2"):
        PrintedTable.model_validate(table | {"rows": rows})


def test_runs_are_in_the_order_of_their_seeds() -> None:
    scenario = SimpleNamespace(name="s")
    jobs: list[Any] = [
        SimpleNamespace(key=str(seed), seed=seed, scenario=scenario, steering="a", engine="native")
        for seed in (2, 0, 1, 3)
    ]
    finished = {str(seed): {"jain": seed / 10, "flows": []} for seed in range(3)}
    measured = Measurements(jobs, finished)
    assert measured.values("s", "a", "native", "jain") == [0, 0.1, 0.2]
    assert measured.by_seed("s", "a", "native", "jain") == {0: 0, 1: 0.1, 2: 0.2}


def test_a_sum_over_flows_lacks_what_a_flow_lacks() -> None:
    flows = [{"name": "x", "completion_time_s": 1.5}, {"name": "y", "completion_time_s": 2.0}]
    assert value_of({"flows": flows}, "completion_time_s@sum") == 3.5
    assert value_of({"flows": flows}, "completion_time_s@y") == 2
    flows.append({"name": "z", "completion_time_s": None})
    assert value_of({"flows": flows}, "completion_time_s@sum") is None
