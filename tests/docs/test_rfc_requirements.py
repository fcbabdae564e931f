"""tests/rfc_requirements.yaml: every row has tests that exist, or a reason."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from quicgym.yaml_loader import parse_yaml

TESTS = Path(__file__).parents[1]
FILE = TESTS / "rfc_requirements.yaml"
TABLE: dict[str, Any] = parse_yaml(FILE.read_text(encoding="utf-8"))
ROWS: list[dict[str, Any]] = TABLE["requirements"]
# RFC 2119, section 1 to 4; what is optional (MAY) is no requirement.
LEVELS = {"MUST", "MUST NOT", "SHOULD", "SHOULD NOT", "RECOMMENDED", "NOT RECOMMENDED"}
RFCS = {9000, 9002, 9406, 9438}
NAMED = re.compile(r"[\w/]+\.py::\w+")


@cache
def functions_of(path: str) -> dict[str, list[str]]:
    """The tests of a file, with the marks of each."""
    tree = ast.parse((TESTS / path).read_text(encoding="utf-8"))
    return {
        node.name: [ast.unparse(decorator) for decorator in node.decorator_list]
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    }


def missing(names: list[str]) -> Iterator[str]:
    for name in names:
        path, _, function = name.partition("::")
        if not (TESTS / path).is_file():
            yield f"{name}: there is no such file below tests/"
        elif function not in functions_of(path):
            yield f"{name}: there is no such test in the file"
        elif re.search(r"mark\.(long|skip|train)", " ".join(functions_of(path)[function])):
            yield f"{name}: `make test` leaves it out"


def problems_of(row: dict[str, Any]) -> list[str]:
    found = []
    if set(row) - {"tests", "reason"} != {"rfc", "section", "level", "text"}:
        return [f"has the fields {', '.join(row)}"]
    if row["rfc"] not in RFCS or not re.fullmatch(r"\d+(\.\d+)*", row["section"]):
        found.append("rfc or section is wrong")
    if row["level"] not in LEVELS:
        found.append(f"level = {row['level']!r}: is not one of RFC 2119")
    if not row["text"].strip():
        found.append("text is empty")
    tests, reason = row.get("tests"), row.get("reason")
    if bool(tests) == bool(reason and reason.strip()):
        found.append("give either tests or a reason")
    return [*found, *missing(tests or NAMED.findall(reason or ""))]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['rfc']}-{row['section']}")
def test_a_requirement_has_tests_that_exist_or_a_reason(row: dict[str, Any]) -> None:
    assert not problems_of(row), row["text"]


def test_each_rfc_has_rows_and_no_row_is_there_twice() -> None:
    assert {row["rfc"] for row in ROWS} == RFCS
    keys = [(row["rfc"], row["section"], row["text"]) for row in ROWS]
    assert len(set(keys)) == len(keys)


def test_sections_without_rows_have_a_reason_and_no_rows() -> None:
    for entry in TABLE["outside"]:
        assert entry["reason"].strip() and entry["sections"]
        for row in ROWS:
            within = [
                section
                for section in entry["sections"]
                if f"{row['section']}.".startswith(f"{section}.")
            ]
            assert row["rfc"] != entry["rfc"] or not within, (row, within)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"tests": ["sim/none.py::test_a"]}, "no such file"),
        ({"tests": ["sim/test_wire.py::test_none"]}, "no such test"),
        ({"tests": []}, "either tests or a reason"),
        ({"tests": ["sim/test_wire.py::test_none"], "reason": "x"}, "either tests or a reason"),
        ({"reason": "see sim/test_wire.py::test_none"}, "no such test"),
        ({"reason": " "}, "either tests or a reason"),
        ({"level": "MAY", "reason": "x"}, "level = 'MAY'"),
        ({"section": "four", "reason": "x"}, "rfc or section"),
        ({"page": 1, "reason": "x"}, "has the fields"),
    ],
)
def test_what_is_wrong_with_a_row_is_found(change: dict[str, Any], problem: str) -> None:
    row = {"rfc": 9000, "section": "4.1", "level": "MUST", "text": "x"}
    assert any(problem in text for text in problems_of(row | change))
