"""Each test case of the BBR draft's appendix, by the table that `quicgym conformance` has."""

import json

import pytest

from quicgym.benchmarks.conformance.bbr3 import CASES
from quicgym.benchmarks.conformance.run import judge
from quicgym.envs.simulation.qlog import read_log

# What no other controller does by accident.
STATES = ("A.1", "A.3", "A.4", "A.5", "A.8", "A.9", "A.10", "A.20")


def test_the_appendix_has_22_cases():
    assert [case.section for case in CASES] == [f"A.{number}" for number in range(1, 23)]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.section)
def test_bbr3_passes(case):
    assert judge(case, "bbr3") == ("passed", "")


@pytest.mark.parametrize("controller", ["bbr", "cubic"])
@pytest.mark.parametrize("case", [case for case in CASES if case.section in STATES],
                         ids=lambda case: case.section)  # fmt: skip
def test_a_controller_without_the_states_fails(case, controller):
    verdict, seen = judge(case, controller)
    assert verdict == "failed" and seen


@pytest.mark.parametrize(
    "section, controller",
    [
        ("A.2", "bbr3:startup_loss_ranges=1000"),
        ("A.3", "bbr3:drain_pacing_gain=0.9"),
        ("A.5", "bbr3:full_bandwidth_rounds=12"),
        ("A.6", "bbr3:loss_threshold=0.5"),
        ("A.8", "bbr3:probe_down_pacing_gain=0.98"),
        ("A.10", "bbr3:probe_rtt_interval_s=100"),
        ("A.14", "bbr3:min_window_packets=2"),
        ("A.16", "bbr3:loss_threshold=0.5,beta=0.99"),
        ("A.21", "bbr"),
    ],
)
def test_a_case_fails_without_its_rule(section, controller):
    (case,) = (case for case in CASES if case.section == section)
    assert judge(case, controller)[0] == "failed"


def test_the_command_says_what_failed_and_writes_qlogs(quicgym, tmp_path):
    result = quicgym(
        "conformance", "bbr3", "--controller", "cubic", "--case", "A.3", "--case", "A.13", "--out",
        tmp_path, status=1,
    )  # fmt: skip
    assert "DRAIN" in result.stdout and "expected" in result.stdout
    cases = json.loads((tmp_path / "conformance.json").read_text())["cases"]
    assert [case["verdict"] for case in cases] == ["failed", "passed"]
    assert len(read_log(tmp_path / "qlog/A.3/flow-0-sender.sqlog")) > 1000


def test_a_stack_runs_the_cases_that_its_applications_can(quicgym, tmp_path):
    result = quicgym(
        "conformance", "bbr3", "--stack", "aioquic", "--controller", "bbr3", "--case", "A.3",
        "--case", "A.7", "--format", "json", "--out", tmp_path, status=0,
    )  # fmt: skip
    first, second = json.loads(result.stdout)["cases"]
    assert first["verdict"] == "passed"
    assert second["verdict"] == "not run" and "application" in second["seen"]


def test_unknown_cases_are_refused(quicgym, tmp_path):
    result = quicgym("conformance", "bbr3", "--case", "A.23", "--out", tmp_path, status=2)
    assert "A.23" in result.stderr
