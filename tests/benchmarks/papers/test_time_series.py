"""What claims say of curves over time, as numbers."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from quicgym import load_scenario
from quicgym.benchmarks.papers.model import Claim, Paper
from quicgym.benchmarks.papers.needs import job_kinds
from quicgym.benchmarks.papers.time_series import SERIES_METRICS, SeriesJob
from quicgym.benchmarks.simulations import Job, make_jobs


def trace(**columns: object) -> pd.DataFrame:
    """Ten seconds from the flow's start at 1 s."""
    time = 1 + np.arange(1001) / 100
    empty = {"rtt_ms": np.nan, "mode": "probe_bw", "received_bytes": 0}
    return pd.DataFrame({"time_s": time, **empty, **columns})


def metric(name: str, **columns: object) -> float | None:
    return SERIES_METRICS[name].compute(trace(**columns))


def test_the_deviation_of_the_rtt_is_that_of_its_samples() -> None:
    sawtooth = np.where(np.arange(1001) % 2, 90.0, 110.0)
    sawtooth[:3] = np.nan  # before the first sample
    assert metric("rtt_deviation_ms", rtt_ms=sawtooth) == pytest.approx(10)
    assert metric("rtt_deviation_ms", rtt_ms=50.0) == 0
    assert metric("rtt_deviation_ms") is None


def test_each_entry_into_startup_counts() -> None:
    mode = np.full(1001, "probe_bw", dtype=object)
    assert metric("startup_entries", mode=mode) == 0
    mode[:50] = "startup"
    assert metric("startup_entries", mode=mode) == 1
    mode[500:550] = mode[700:] = "startup"
    assert metric("startup_entries", mode=mode) == 3


def test_a_flow_converges_when_it_has_nine_tenths_of_its_later_rate() -> None:
    rate = np.where(np.arange(1000) < 300, 0.2, 1.0)  # Mbps, for 3 s and then
    received = np.concatenate([[0], np.cumsum(rate * 1e6 / 8 / 100)])
    # 90% over a window of 0.1 s: 0.0125 s of it may be at the lower rate.
    assert metric("convergence_time_s", received_bytes=received) == pytest.approx(3.09, abs=0.011)
    assert metric("convergence_time_s") is None


def test_a_job_with_time_series_measures_what_a_job_without_does() -> None:
    scenario = load_scenario("ebcc-single").model_copy(update={"duration_s": 4.0})
    (plain,) = make_jobs([scenario], ["bbr"], "native", 1)
    (series,) = make_jobs([scenario], ["bbr"], "native", 1, kind=SeriesJob)
    assert plain.key != series.key
    run = series.run()
    assert run["startup_entries"] == 1
    assert run["rtt_deviation_ms"] == run["flows"][0]["rtt_deviation_ms"] > 0
    assert 0 < run["convergence_time_s"] < 3
    for place in (run, *run["flows"]):
        for name in SERIES_METRICS:
            del place[name]
    assert run == plain.run()


def test_only_scenarios_whose_claims_ask_for_it_keep_time_series() -> None:
    checks = {
        "restart": {"metric": "startup_entries", "of": "bbr", "in": "ebcc-single", "above": 1},
        "loss": {"metric": "loss_percent", "of": "bbr", "in": "ebcc-flows-3", "above": 1},
    }
    claims = [
        Claim.model_validate({"id": name, "statement": "", "source": "", "checks": [check]})
        for name, check in checks.items()
    ]
    paper = Paper(name="p", title="p", algorithms={"bbr": "BBR"}, claims=tuple(claims))
    kinds = job_kinds([paper])
    assert kinds == {"ebcc-single": SeriesJob}
    assert kinds.get("ebcc-flows-3", Job) is Job
