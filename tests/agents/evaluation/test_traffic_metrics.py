"""Metrics of short flows, requests, pages and video: in evaluations, and as a sweep's objective."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
import yaml

import quicgym
from quicgym.agents.evaluation.evaluate import run_evaluate
from quicgym.agents.evaluation.rollouts import play
from quicgym.agents.policies.by_name import find_policy
from quicgym.agents.tuning.parameter_trial import measure
from quicgym.agents.tuning.sweeps import load_sweep
from quicgym.envs.simulation.metrics import EVALUATED, METRICS, TRAFFIC_METRICS

TRAFFIC = {
    "asks": {"kind": "request-response", "responses": 50_000, "think_s": 0.2},
    "page": {"kind": "web-page", "objects": [{"name": "html", "size_bytes": 40_000}]},
    "player": {
        **{"kind": "video", "rates_mbps": [0.5, 1.0], "chunk_s": 1.0},
        **{"reservoir_s": 2.0, "cushion_s": 4.0, "max_buffer_s": 8.0},
    },
}


def scenario(*applications: str, short_flows: bool = False) -> quicgym.Scenario:
    """A bulk flow and some applications on 10 Mbps for 5 s."""
    return quicgym.Scenario.model_validate(
        {
            "name": "-".join(["with", *applications, "short-flows" if short_flows else "bulk"]),
            "duration_s": 5.0,
            "bottleneck": {"rate_mbps": 10.0, "delay_ms": 10.0, "queue": {"limit": 50}},
            "access": {"rate_mbps": 100.0, "delay_ms": 5.0},
            "flows": [
                {"name": "bulk"},
                *({"name": name, "application": TRAFFIC[name]} for name in applications),
            ],
            "short_flows": [{"arrivals_per_s": 10.0, "sizes": 20_000}] if short_flows else [],
        }
    )


EVERYTHING = scenario(*TRAFFIC, short_flows=True)
ENGINES = [
    ("native", EVERYTHING),
    pytest.param("ns3", scenario(*TRAFFIC), marks=pytest.mark.ns3),
]


@pytest.mark.parametrize("engine, chosen", ENGINES, ids=["native", "ns3"])
def test_an_episode_has_what_a_run_has(engine: str, chosen: quicgym.Scenario) -> None:
    metrics = play(find_policy("cubic"), chosen, engine, seed=3).evaluation
    expected = quicgym.run(chosen, "cubic", engine, seed=3).metrics
    names = [name for name in TRAFFIC_METRICS if name in expected]
    assert {"request_latency_p99_ms", "page_load_time_s", "rebuffering_percent"} <= set(names)
    assert ("fct_small_mean_ms" in names) == bool(chosen.short_flows)
    assert {name: metrics[name] for name in names} == {name: expected[name] for name in names}
    assert set(metrics) == {*EVALUATED, *names}


def test_an_episode_without_traffic_has_none_of_its_metrics() -> None:
    assert tuple(play(find_policy("cubic"), scenario()).evaluation) == EVALUATED


@pytest.mark.usefixtures("jobs_here", "plain_figures")
def test_an_evaluation_has_the_metrics_of_the_traffic_of_its_scenarios(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    both = (scenario("page"), scenario(short_flows=True))
    suite = [entry.model_dump(exclude_none=True) for entry in both]
    (tmp_path / "two.yaml").write_text(yaml.safe_dump(suite))
    out = tmp_path / "out"
    run_evaluate(directory=out, policies=["cubic"], suite=str(tmp_path / "two.yaml"), seeds=2)
    printed = capsys.readouterr().out
    assert "page load" in printed and "FCT to 100" in printed and "rebuffering" not in printed
    runs = pd.read_parquet(out / "results.parquet")
    assert "video_rate_mbps" not in runs
    with_page = runs["scenario"] == both[0].name
    assert runs.loc[with_page, "page_load_time_s"].notna().all()
    assert runs.loc[~with_page, "page_load_time_s"].isna().all()
    assert runs.loc[~with_page, "fct_mean_ms"].notna().all()


@pytest.mark.train
def test_tensorboard_has_the_mean_over_scenarios_with_the_metric() -> None:
    from quicgym.agents.evaluation.tensorboard import evaluation_values

    both = (scenario("page"), scenario(short_flows=True))
    runs = pd.DataFrame(
        {"policy": "cubic", "scenario": entry.name, "seed": seed}
        | play(find_policy("cubic"), entry, seed=seed).metrics
        for entry in both
        for seed in (0, 1)
    )
    mean = runs.loc[runs["scenario"] == both[0].name, "page_load_time_s"].mean()
    assert evaluation_values(runs)["evaluation/page_load_time_s"] == pytest.approx(mean)


def test_less_completion_time_is_better_and_more_video_rate() -> None:
    minimised = {name for name, entry in METRICS.items() if entry.less_is_better}
    assert {"fct_p99_ms", "page_load_time_s", "rebuffering_percent"} <= minimised
    assert not {"video_rate_mbps", "short_flows_completed_percent"} & minimised


def test_a_sweep_may_ask_for_short_completion_times(tmp_path: Path) -> None:
    path = tmp_path / "scenario.yaml"
    path.write_text(yaml.safe_dump(scenario(short_flows=True).model_dump(exclude_none=True)))
    sweep = {
        **{"name": "mine", "controller": "vegas", "parameters": {"alpha": {"values": [1, 2]}}},
        **{"scenarios": [str(path)], "seeds": 2, "objective": "fct_small_p99_ms"},
    }
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump(sweep))
    config = load_sweep(str(tmp_path / "mine.yaml"))
    assert config.mode == "min"
    trial = measure(config, config.load_scenarios(), {"alpha": 1.0}, [0, 1])
    assert trial.objective == pytest.approx(trial.mean("fct_small_p99_ms")) and trial.objective > 20
    assert {"goodput_mbps", "fct_mean_ms"} <= set(trial.metrics)
    assert "page_load_time_s" not in trial.metrics
    with pytest.raises(ValueError, match="nothing to measure fct_small_p99_ms by"):
        measure(config, [scenario()], {"alpha": 1.0}, [0])
