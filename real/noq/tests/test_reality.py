"""The report of `make reports ARGS=reality`, and the jobs behind it."""

import json

import pytest

from quicgym.envs.scenarios.suites import load_suite
from quicgym.real.concurrency import MOST_AT_ONCE, by_workers
from quicgym.real.runs import make_plans
from quicgym.real.stacks import find_stack

reality = pytest.importorskip("quicgym_noq.reality")
pytestmark = pytest.mark.train
AUDIT = {
    "lateness_p99_ms": 0.1, "cpu_steal_percent": 0.0, "realtime_priority": True,
    "socket_errors": 0, "decisions": 200, "decision_late_p99_ms": 0.07,
}  # fmt: skip
GOODPUT = {"simulator": 10.0, "virtual": 9.96, "real": 9.8}


def make_rows(policies, seeds):
    return {
        ("a", policy, source, seed): {
            "goodput_mbps": goodput, "mean_rtt_ms": 100.0, "loss_percent": 0.0,
            "reward": goodput / 10 - place / 10, "attempts": 1,
            "audit": AUDIT if source == "real" else None,
        }
        for place, policy in enumerate(policies)
        for source, goodput in GOODPUT.items()
        for seed in range(seeds)
    }  # fmt: skip


def test_the_report_has_both_gaps_and_their_sum():
    policies = ["cubic", "bbr", "window"]
    report = reality.make_report(make_rows(policies, 2), "noq", ["a"], policies, 2, "make it")
    assert "| implementation | hand-coded | 2 | -0.40 [-0.40, -0.40] | ≤ 0.5: met" in report
    assert "| wall-clock | hand-coded | 2 | -1.61 [-1.61, -1.61] | ≤ 1: missed, 0 cells" in report
    assert "| total | learned | 1 | -2.00" in report
    assert (
        "real against simulator: rank correlation of the mean rewards of 3 policies 1.000" in report
    )
    assert "6 runs in real time, all valid" in report


def test_the_stacks_own_controllers_are_ranked_and_have_no_implementation_gap():
    policies = ["cubic", "noq-cubic"]
    rows = {
        key: row
        for key, row in make_rows(policies, 2).items()
        if key[1] == "cubic" or key[2] != "simulator"
    }
    report = reality.make_report(rows, "noq", ["a"], policies, 2, "make it")
    assert "| implementation | hand-coded | 1 |" in report
    assert "| implementation | the stack's own |" not in report
    assert "| wall-clock | the stack's own | 1 | -1.61" in report
    assert "| 1 | cubic | hand-coded | 1.0000 | 0.9960 | 0.9800 |" in report
    assert "| 2 | noq-cubic | the stack's own | – | 0.8960 | 0.8800 |" in report


def test_a_cell_that_lacks_a_run_has_no_gap():
    rows = make_rows(["cubic", "bbr"], 2)
    del rows["a", "bbr", "real", 1]
    gaps = reality.gaps_of(rows, ["cubic", "bbr"], ["a"], 2, "goodput_mbps", "real", "simulator")
    assert gaps.shape == (1, 2)


def test_the_campaign_is_what_a_stack_can_run():
    suite = load_suite(reality.SUITE)
    assert len(suite) == 12
    for scenario in suite:
        assert scenario.duration_s == 20
        for policy in (*reality.HAND_CODED, *reality.LEARNED):
            make_plans(scenario, policy, find_stack("aioquic"), 0)


def test_fast_networks_run_alone_and_slow_ones_side_by_side():
    scenarios = load_suite(reality.SUITE)
    at_once = {
        scenario.name: workers
        for workers, members in by_workers(scenarios, 200.0).items()
        for scenario in members
    }
    assert len(at_once) == len(scenarios)
    assert at_once["reality-200mbps"] == 1
    assert at_once["reality-100mbps"] == 2
    assert at_once["reality-50mbps"] == 4
    assert at_once["reality-changing-rate"] == 5  # 40 Mbps at most
    assert at_once["reality-1mbps"] == MOST_AT_ONCE
    assert set(by_workers(scenarios, 1.0)) == {1}


def test_runs_of_different_stacks_are_different_jobs():
    scenario = load_suite(reality.SUITE)[0]
    keys = {
        reality.job_of(scenario, "cubic", stack, source, 0).key
        for stack in ("noq", "aioquic")
        for source in ("simulator", "virtual", "real")
    }
    assert len(keys) == 5


def test_a_campaign_goes_on_with_what_is_missing(tmp_path, monkeypatch):
    pytest.importorskip("quicgym_aioquic")
    shorter = [
        scenario.model_copy(update={"duration_s": 0.3})
        for scenario in load_suite(reality.SUITE)[:1]
    ]
    monkeypatch.setattr(reality, "load_suite", lambda name: shorter)
    monkeypatch.setattr(reality, "SOURCES", ("simulator", "virtual"))
    out, report = tmp_path / "out", tmp_path / "reality.md"
    for seeds in (1, 2):
        with pytest.raises(reality.typer.Exit) as end:
            reality.reality(
                stack="aioquic", seeds=seeds, scenario=None, policy=["cubic", "aioquic-cubic"],
                budget_mbps=200,
                out=out, report=report, resume=out.exists(),
            )  # fmt: skip
        assert end.value.exit_code == 0
    lines = [json.loads(line) for line in (out / "runs.jsonl").read_text().splitlines()]
    assert len(lines) == 6  # the simulator has no aioquic-cubic
    assert "| implementation | hand-coded | 1 |" in report.read_text()
