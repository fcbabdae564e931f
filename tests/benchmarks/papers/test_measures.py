"""Which runs of a paper measure metrics of time series, and what that changes in them."""

from __future__ import annotations

from pathlib import Path

import pytest

from quicgym import load_scenario
from quicgym.benchmarks.papers.drawings import read_traces
from quicgym.benchmarks.papers.needs import measures_of
from quicgym.benchmarks.papers.paper import Claim, Paper
from quicgym.benchmarks.simulations import make_jobs
from quicgym.envs.simulation.metrics import OF_TRACES
from quicgym.envs.simulation.window import Window

NAMES = tuple(entry.name for entry in OF_TRACES)


def test_a_job_with_time_series_measures_what_a_job_without_does() -> None:
    scenario = load_scenario("ebcc-single").model_copy(update={"duration_s": 4.0})
    (plain,) = make_jobs([scenario], ["bbr"], "native", 1)
    (traced,) = make_jobs([scenario], ["bbr"], "native", 1, measures=NAMES)
    assert plain.key != traced.key
    run = traced.run()
    assert run["startup_entries"] == 1
    assert run["rtt_deviation_ms"] == run["flows"][0]["rtt_deviation_ms"] > 0
    assert 0 < run["convergence_time_s"] < 3
    for place in (run, *run["flows"]):
        for name in NAMES:
            del place[name]
    assert run == plain.run()


def test_only_scenarios_whose_claims_ask_for_it_measure_time_series() -> None:
    checks = {
        "restart": {"metric": "startup_entries", "of": "bbr", "in": "ebcc-single", "above": 1},
        "loss": {"metric": "loss_percent", "of": "bbr", "in": "ebcc-flows-3", "above": 1},
    }
    claims = [
        Claim.model_validate({"id": name, "statement": "", "source": "", "checks": [check]})
        for name, check in checks.items()
    ]
    paper = Paper(name="p", title="p", algorithms={"bbr": "BBR"}, claims=tuple(claims))
    assert measures_of([paper]) == {"ebcc-single": ("startup_entries",)}


def test_a_job_keeps_the_traces_of_all_flows_in_one_file(tmp_path: Path) -> None:
    scenario = load_scenario("ebcc-flows-3").model_copy(update={"duration_s": 2.0})
    (job,) = make_jobs([scenario], ["bbr"], "native", 1, tmp_path, window=Window(1.5))
    run = job.run()
    assert {path.name for path in tmp_path.iterdir()} == {
        "ebcc-flows-3--bbr--native--0.parquet",
        "ebcc-flows-3--bbr--native--0.queue.parquet",
    }
    traces = read_traces(job)
    expected = job.carry_out(traced=True)
    for index, trace in enumerate(traces):
        assert trace.drop(columns="flow").equals(expected.trace(index))
    assert len(read_traces(job, 2)) == 2
    assert run["send_rate_mbps"] == pytest.approx(expected.metrics["send_rate_mbps"])
