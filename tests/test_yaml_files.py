"""YAML files: keys that are given twice, numbers with an exponent, and what is not valid."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from quicgym.envs.scenarios.fields import ScenarioError
from quicgym.envs.scenarios.files import load_scenario
from quicgym.envs.scenarios.suites import load_suite
from quicgym.yaml_loader import parse_yaml

SCENARIO = """\
name: small
duration_s: 1
bottleneck: {rate_mbps: 10, delay_ms: 10, queue: {limit: 20}}
access: {rate_mbps: 100, delay_ms: 1}
flows: [{controller: newreno}]
"""

# The file, and what the message says after the file's name.
WRONG = {
    "a key twice": (
        SCENARIO + "duration_s: 30\n",
        ":6: .*duration_s = 30 is given a second time, first in line 2; leave one out",
    ),
    "an inner key twice": (
        SCENARIO.replace("delay_ms: 10", "rate_mbps: 20"),
        ":3: .*rate_mbps = 20 is given a second time, first in line 3; leave one out",
    ),
    "an open bracket": ("name: [\n", ":2: not valid YAML: "),
    "no date": ("name: 2001-99-99\n", ": not valid YAML: month must be"),
    "a number as key": ("1: 2\n", ": name: is missing(.|\n)*: 1 = 1: Keys should be strings"),
    "not a text": ("\xff", ": is not a text file"),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_file_that_is_not_valid_is_refused_with_its_place(what: str, tmp_path: Path) -> None:
    text, message = WRONG[what]
    path = tmp_path / "wrong.yaml"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(ScenarioError, match=f"wrong.yaml{message}"):
        load_scenario(path)
    with pytest.raises(ScenarioError, match="wrong.yaml"):
        load_suite(path)


def test_aliases_merges_and_overridden_keys_are_read() -> None:
    text = "a: &a {x: 1, y: [1, 2]}\nb: {<<: *a, x: 3}\nc: *a\n'1': text\n"
    assert parse_yaml(text) == {
        "a": {"x": 1, "y": [1, 2]},
        "b": {"x": 3, "y": [1, 2]},
        "c": {"x": 1, "y": [1, 2]},
        "1": "text",
    }


@pytest.mark.parametrize(
    ("text", "value"),
    [("1e-3", 0.001), ("2E6", 2e6), ("-.5e+1", -5.0), ("1_000e1", 1e4), ("1.e2", 100.0),
     ("e3", "e3"), ("1e3x", "1e3x"), ("'1e-3'", "1e-3")],
)  # fmt: skip
def test_a_number_with_an_exponent_is_a_number_as_in_yaml_1_2(text: str, value: Any) -> None:
    parsed = parse_yaml(f"[{text}]")[0]
    assert (parsed, type(parsed)) == (value, type(value))


# PyYAML writes the text 1e3 without quotes, because it reads that as a text again.
TEXTS = st.text().filter(lambda text: not re.fullmatch(r"[-+.0-9_]+[eE][-+]?[0-9]+", text))
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXTS,
    lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner),
    max_leaves=30,
)


@settings(deadline=None, max_examples=60)
@given(PLAIN)
def test_what_yaml_writes_is_read_as_by_the_plain_loader(value: Any) -> None:
    text = yaml.safe_dump(value)
    assert parse_yaml(text) == yaml.safe_load(text)
