"""`quicgym evaluate`: aliases of policies, differences to chosen ones, and too few seeds."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pandas as pd
import pytest
from conftest import Command
from helpers.commands import in_terminal

from quicgym import ScenarioError, load_scenario, plugins
from quicgym.agents.evaluation.jobs import make_jobs
from quicgym.agents.evaluation.run_folders import read_runs
from quicgym.agents.policies.by_name import find_policy, policy_kind, split_alias


@pytest.fixture
def short(tmp_path: Path) -> Path:
    path = tmp_path / "short.yaml"
    path.write_text("{base: ebcc-single, name: short, duration_s: 3}")
    return path


def test_results_show_aliases_and_the_differences_that_were_asked_for(
    quicgym: Command, short: Path, tmp_path: Path
) -> None:
    policies = ("--policy", "mine=ebcc:gamma=3", "two words=bbr", "cubic")
    done = quicgym("evaluate", *policies, "--versus", "mine", "--suite", short, "--seeds", "2")
    lines = done.stdout.splitlines()
    assert any(line.startswith("two words") for line in lines)
    versus = [line for line in lines if line.startswith("IQM ")]
    assert len(versus) == 2 and all("mine" in line for line in versus)
    assert not any("two words" in line and "cubic" in line for line in versus)
    assert "note: 2 seeds: intervals over fewer than 5 seeds say little" in done.stderr
    folder = tmp_path / "results/evaluation"
    document = json.loads((folder / "evaluation.json").read_text())
    assert {entry["policy"]: entry["kind"] for entry in document["policies"]} == {
        "mine": "static",
        "two words": "baseline",
        "cubic": "baseline",
    }
    assert {run.origin for run in read_runs(folder)} == {"hand-coded"}
    assert set(pd.read_parquet(folder / "results.parquet")["policy"]) == {
        "mine",
        "two words",
        "cubic",
    }
    assert {path.name for path in (folder / "series").iterdir()} == {
        "mine--short.parquet",
        "two-words--short.parquet",
        "cubic--short.parquet",
    }
    wrong = quicgym("evaluate", "--policy", "cubic", "--versus", "mine", "--suite", short, status=2)
    assert "--versus: 'mine' is not evaluated; there are: cubic" in wrong.stderr


def test_two_policies_that_do_the_same_have_no_interval_between_them(
    quicgym: Command, short: Path
) -> None:
    policies = ("--policy", "mine=ebcc", "ebcc", "cubic")
    done = quicgym("evaluate", *policies, "--versus", "mine", "--suite", short, "--seeds", "2")
    same, other = sorted(line for line in done.stdout.splitlines() if line.startswith("IQM "))[::-1]
    assert ("cubic" in other, "cubic" in same) == (True, False)
    assert ("[" in other, "[" in same) == (True, False)


@pytest.mark.parametrize(
    ("choice", "alias", "kind"),
    [
        ("mine=cubic", "mine", "baseline"),
        ("mine=ebcc:gamma=60,beta=0.7", "mine", "static"),
        ("ebcc:gamma=60", "ebcc:gamma=60", "static"),
        ("runs/a=b", "runs/a=b", "learned"),
        ("any=random", "any", "random"),
        ("stack-bbr3", "stack-bbr3", "baseline"),
        ("theirs=stack-reno", "theirs", "baseline"),
        ("runs/stack-ppo", "runs/stack-ppo", "learned"),
    ],
)
def test_an_alias_stands_before_the_first_equals_sign(
    choice: str, alias: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plugins, "installed", lambda kind: {"stack": ()} if kind == "stack" else {})
    assert split_alias(choice)[0] == alias
    assert policy_kind(choice) == kind


def test_an_alias_changes_the_name_alone() -> None:
    assert find_policy("mine=ebcc:gamma=3").options == find_policy("ebcc:gamma=3").options


def test_two_policies_of_one_name_are_refused() -> None:
    scenario = load_scenario("ebcc-single")
    with pytest.raises(ScenarioError, match="two of the policies are shown as 'cubic'"):
        make_jobs(["cubic", "cubic=bbr"], [scenario], 1)


@pytest.mark.usefixtures("jobs_here")
@pytest.mark.parametrize("width", [80, 120])
def test_no_line_of_the_table_is_wider_than_the_terminal(
    width: int, short: Path, tmp_path: Path
) -> None:
    policies = ("mine=ebcc:gamma=3", "cubic")
    suite = ("--suite", short, "--seeds", "2", "--jobs", "1")
    done, lines = in_terminal(["evaluate", "--policy", *policies, *suite], tmp_path, width)
    assert done == 0, lines
    begin = next(number for number, line in enumerate(lines) if line.startswith("policy "))
    end = next(number for number, line in enumerate(lines) if line.startswith("within 1% of best:"))
    assert max(map(len, lines[begin - 1 : end])) <= width
    tables = 2 if width == 80 else 1
    rows = [line for line in lines[begin:end] if line.startswith("mine")]
    assert len(rows) == tables
    assert re.match(r"mine +-?\d\.\d{4} +-?\d\.\d{4} to -?\d\.\d{4}( |$)", rows[0])
    assert "queueing" in "".join(lines[begin - 1 : end])
    assert any(re.search(r"−.*: -?\d\.\d{4} \[-?\d\.\d{4}, -?\d\.\d{4}\]", line) for line in lines)
