"""Files that anybody may have made: refused in bounded time and memory, with place and remedy."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from quicgym.agents.policies.by_name import PRETRAINED, pretrained_names
from quicgym.agents.policies.learned import load_policy
from quicgym.envs.scenarios.fields import ScenarioError
from quicgym.envs.scenarios.files import load_scenario
from quicgym.envs.scenarios.suites import load_suite
from quicgym.errors import PolicyError, RunError
from quicgym.output_folders import read_json, read_json_lines
from quicgym.yaml_loader import parse_yaml

SCENARIO = """\
name: small
duration_s: 1
bottleneck: {rate_mbps: 10, delay_ms: 10, queue: {limit: 20}}
access: {rate_mbps: 100, delay_ms: 1}
flows: [{controller: newreno}]
"""

ALIASES = "a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1]\n" + "".join(
    f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 10)
)
MERGES = "a0: &a0 {k: 1}\n" + "".join(
    f"a{i}: &a{i} {{<<: [{', '.join([f'*a{i - 1}'] * 9)}]}}\n" for i in range(1, 10)
)

# The file, and what the message says after the file's name.
YAML_FILES = {
    "deep lists": ("name: a\nflows: " + "[" * 20_000, ":2: .*more than 50 levels"),
    "deep mappings": ("{a: " * 20_000, ":1: .*more than 50 levels"),
    "deep dashes": ("- " * 20_000, ":1: .*more than 50 levels"),
    "aliases": (ALIASES, ":6: .*more than 500000 values with aliases"),
    "merges": (MERGES, ":7: .*more than 500000 values with aliases"),
    "an alias of itself": ("flows: &a [*a]\n", ":1: .*an alias of what it stands in"),
    "many digits": (
        SCENARIO.replace("duration_s: 1", "duration_s: " + "9" * 5_000),
        ":2: .*99999999999999999999... is a number of 5000 characters",
    ),
    "many hexadecimal digits": ("duration_s: 0x" + "f" * 5_000, ":1: .*a number of 5002 char"),
    "sexagesimal": ("duration_s: 1" + ":1" * 50_000, ":1: .*is a number of 100001 characters"),
    "100 digits": (
        SCENARIO.replace("duration_s: 1", "duration_s: " + "9" * 100),
        ": duration_s = 9+\\.\\.\\.: should be .*give a number of seconds above 0",
    ),
    "no character": (
        'name: a\ndescription: "\\UFFFFFFFF"\n',
        ":2: .*an escape or a number that cannot",
    ),
    "half a character": ('name: "\\ud800"\n', ":1: .*'.ud800' has half of a character; write the"),
    "a version of many digits": (
        "%YAML " + "1" * 5_000 + ".1\n---\n",
        ":1: .*a number that cannot be",
    ),
    "a tag": (
        "name: a\nflows: !!int ''\n",
        ":2: .*tag:yaml.org,2002:int is a tag, and no value needs one",
    ),
    "a list as key": ("a: {!!seq 1: b}\n", ":1: .*tag:yaml.org,2002:seq is a tag"),
    "no date": ("name: 2001-99-99\n", ":1: .*2001-99-99 is no value of its kind: month must"),
    "a key twice": (
        SCENARIO + "duration_s: 30\n",
        ":6: .*duration_s = 30 is given a second time, first in line 2; leave one out",
    ),
    "an inner key twice": (
        SCENARIO.replace("delay_ms: 10", "rate_mbps: 20"),
        ":3: .*rate_mbps = 20 is given a second time, first in line 3; leave one out",
    ),
    "keys whose hashes collide": (
        "\n".join(f"{i * (2**61 - 1)}: 1" for i in range(1, 100_000)),
        ":1: .*2305843009213693951 is a number, and no key is one; put it in quotes",
    ),
    "a fraction as key": ("a: {1.5: b}\n", ":1: .*1.5 is a number, and no key is one"),
    "a large file": ("#" * 2**23, ": Has 8388608 bytes, more than the 4194304 that are read"),
}


@pytest.mark.parametrize("what", YAML_FILES)
def test_a_yaml_file_that_cannot_be_is_refused_with_its_place(what: str, tmp_path: Path) -> None:
    text, message = YAML_FILES[what]
    path = tmp_path / "wrong.yaml"
    path.write_text(text)
    with pytest.raises(ScenarioError, match=f"wrong.yaml{message}"):
        load_scenario(path)
    with pytest.raises(ScenarioError, match="wrong.yaml"):
        load_suite(path)


def test_aliases_merges_and_overridden_keys_are_still_read() -> None:
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


@settings(deadline=None, max_examples=150)
@given(st.text(alphabet="ab:{}[],&*!<->|#'\"%@ \n\t01.~x\\Uu", max_size=80))
def test_any_text_is_read_as_by_the_plain_loader_or_refused(text: str) -> None:
    try:
        value = parse_yaml(text)
    except yaml.YAMLError:
        return
    assert repr(value) == repr(yaml.safe_load(text))


def special_files(folder: Path) -> dict[str, tuple[Path, str]]:
    """Paths that are no files, and what is said of each."""
    os.mkfifo(folder / "fifo")
    return {
        "fifo": (folder / "fifo", "Is a pipe or a device, not a regular file"),
        "device": (Path("/dev/zero"), "Is a pipe or a device, not a regular file"),
        "folder": (folder, "Is a directory"),
        "missing": (folder / "none", "No such file or directory"),
    }


@pytest.mark.parametrize("kind", ["fifo", "device", "folder", "missing"])
def test_what_is_no_regular_file_is_never_read(kind: str, tmp_path: Path) -> None:
    path, text = special_files(tmp_path)[kind]
    with pytest.raises(ScenarioError, match=text):
        load_scenario(path)
    with pytest.raises(ScenarioError, match=text):
        load_suite(path)
    scenario = tmp_path / "traced.yaml"
    link = f"{{trace: {path}, delay_ms: 10, queue: {{limit: 20}}}}"
    lines = [
        f"bottleneck: {link}" if "bottleneck" in line else line for line in SCENARIO.split("\n")
    ]
    scenario.write_text("\n".join(lines) + "reverse: {rate_mbps: 1, delay_ms: 1}\n")
    with pytest.raises(ScenarioError, match=f"traced.yaml: bottleneck.trace = .*{text}"):
        load_scenario(scenario)
    for read in (read_json, read_json_lines):
        with pytest.raises(RunError, match=text):
            read(path)
    policy = tmp_path / "policy.json"
    policy.symlink_to(path)
    if kind != "folder":  # which is a training run's
        with pytest.raises(PolicyError, match=text):
            load_policy(policy)
    name = pretrained_names()[0]
    good = tmp_path / "good.json"
    good.write_text((PRETRAINED / f"{name}.json").read_text())
    good.with_suffix(".safetensors").symlink_to(path)
    with pytest.raises(PolicyError, match=f"good.safetensors: {text}"):
        load_policy(good)


TRACES = {
    "digits": (b"9" * 5_000 + b"\n", "wrong.trace:1 = '9+' is not a time|is not a time"),
    "one long line": (b"x" * 30_000_000, "is not a time"),
    "zeros": (b"\0" * 30_000_000, "is not a time"),
    "not ASCII": (b"1\n\xff\xfe\n", "is not a text file"),
}


@pytest.mark.parametrize("what", TRACES)
def test_a_trace_that_cannot_be_is_refused_in_a_short_text(what: str, tmp_path: Path) -> None:
    data, message = TRACES[what]
    (tmp_path / "wrong.trace").write_bytes(data)
    scenario = tmp_path / "traced.yaml"
    link = "bottleneck: {trace: wrong.trace, delay_ms: 10, queue: {limit: 20}}"
    lines = [link if "bottleneck" in line else line for line in SCENARIO.split("\n")]
    scenario.write_text("\n".join(lines) + "reverse: {rate_mbps: 1, delay_ms: 1}\n")
    with pytest.raises(ScenarioError, match=message) as caught:
        load_scenario(scenario)
    assert "wrong.trace" in str(caught.value)
    assert len(str(caught.value)) < 600


POLICIES = {
    "brackets": "[" * 100_000,
    "objects": '{"a":' * 100_000,
    "brackets in a field": '{"name": ' + "[" * 100_000 + "]" * 100_000 + "}",
    "digits": '{"name": ' + "9" * 5_000 + "}",
}


@pytest.mark.parametrize("what", POLICIES)
def test_a_policy_s_description_that_cannot_be_is_refused(what: str, tmp_path: Path) -> None:
    path = tmp_path / "policy.json"
    path.write_text(POLICIES[what])
    with pytest.raises(PolicyError, match=r"policy\.json: not valid JSON: ") as caught:
        load_policy(path)
    assert len(str(caught.value)) < 600


def test_a_large_description_of_a_policy_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "policy.json"
    path.write_text(" " * 2**20 + (PRETRAINED / f"{pretrained_names()[0]}.json").read_text())
    with pytest.raises(PolicyError, match="more than the 1048576 that are read"):
        load_policy(path)


LIMITED = """
import json, resource, sys
from quicgym.envs.scenarios.fields import ScenarioError
from quicgym.envs.scenarios.files import load_scenario

before = resource.getrusage(resource.RUSAGE_SELF)
try:
    load_scenario(sys.argv[1])
except ScenarioError as error:
    print(error, file=sys.stderr)
after = resource.getrusage(resource.RUSAGE_SELF)
print(json.dumps([after.ru_utime - before.ru_utime, after.ru_maxrss - before.ru_maxrss]))
"""


@pytest.mark.parametrize("what", ["deep lists", "aliases", "merges", "many digits", "a large file"])
def test_refusing_takes_bounded_cpu_time_and_memory(what: str, tmp_path: Path) -> None:
    path = tmp_path / "wrong.yaml"
    path.write_text(YAML_FILES[what][0])
    command = [sys.executable, "-c", LIMITED, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "wrong.yaml" in done.stderr
    cpu_s, grown_kib = json.loads(done.stdout)
    # CPU time, not wall-clock time: an exponential one would be hours.
    assert cpu_s < 5
    assert grown_kib < 200_000
