"""Applications that ask: request and response, a web page, adaptive video."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from helpers.scenarios import dumbbell
from hypothesis import given, settings
from hypothesis import strategies as st

from quicgym import Simulation, run
from quicgym.benchmarks.networks import run_networks
from quicgym.envs.simulation.metrics import OF_FLOWS, OF_RUNS, OF_TRAFFIC, TRAFFIC_METRICS
from quicgym.envs.simulation.simulation import NEVER, ns3_version
from quicgym.envs.simulation.traffic import MEDIA, PAGES

RTT_S = 0.1
RATE_MBPS = 12.0
HEADERS = 1230 / 1160
"""Of a full packet: 1200 bytes of UDP payload, and the link's headers, for at most 1167 of data."""


def scenario_of(*applications, controller="newreno", flows=(), bottleneck=None, **fields):
    """12 Mbps and 100 ms with a deep queue, for 30 s."""
    asking = [{"application": each, "controller": controller} for each in applications]
    link = {"queue": {"limit": 1000}, **(bottleneck or {})}
    usual = {"rate_mbps": RATE_MBPS, "delay_ms": 30, "access": (10_000, 10), "duration_s": 30.0}
    return dumbbell([*asking, *flows], bottleneck=link, **{**usual, "name": "client", **fields})


def requests_of(scenario, seed=0, engine="native", pieces=1):
    with Simulation(scenario, engine, seed, trace_interval_ms=None) as simulation:
        for piece in range(1, pieces + 1):
            simulation.run_until(scenario.duration_s * piece / pieces)
        return simulation.requests(0).copy(), simulation.flows[0].statistics


# ---- request and response ------------------------------------------------------------------


def test_a_request_takes_a_round_trip_and_the_response_and_then_the_client_thinks():
    asking = {"kind": "request-response", "responses": 1000, "think_s": 0.25}
    requests, _ = requests_of(scenario_of(asking))
    latency = (requests["completion"] - requests["start"])[:-1] / 1e9
    assert np.all(latency > RTT_S)
    assert np.all(latency < RTT_S + 0.005)
    # The first leaves with the handshake's reply, half a round trip after the start.
    assert requests["start"][0] / 1e9 == pytest.approx(RTT_S / 2, abs=0.002)
    pauses = (requests["start"][1:] - requests["completion"][:-1]) / 1e9
    assert np.all(pauses == 0.25)


def test_responses_have_the_sizes_of_the_distribution():
    asking = {
        "kind": "request-response",
        "responses": [
            {"size_bytes": 1000, "cumulative_probability": 0.5},
            {"size_bytes": 2000, "cumulative_probability": 1},
        ],
    }
    requests, _ = requests_of(scenario_of(asking, duration_s=100.0))
    sizes = requests["size_bytes"]
    assert len(sizes) > 800
    assert np.mean(sizes == 1000) == pytest.approx(0.5, abs=0.06)
    assert np.mean(sizes) == pytest.approx(1250, abs=30)
    assert sizes.max() <= 2000


@settings(max_examples=25, deadline=None)
@given(
    loss=st.sampled_from([0.0, 0.05, 0.3]),
    responses=st.sampled_from([1, 1500, 300_000]),
    controller=st.sampled_from(["newreno", "cubic", "bbr", "copa"]),
    seed=st.integers(0, 2**32),
)
def test_every_request_is_answered_whatever_is_lost_on_the_way(loss, responses, controller, seed):
    asking = {"kind": "request-response", "responses": responses, "think_s": 0.5}
    lossy = {"kind": "bernoulli", "probability": loss}
    scenario = scenario_of(
        asking,
        controller=controller,
        duration_s=200.0,
        bottleneck={"loss": lossy},
        reverse={"rate_mbps": RATE_MBPS, "delay_ms": 30, "loss": lossy},
    )
    requests, statistics = requests_of(scenario, seed)
    answered = requests[requests["completion"] != NEVER]
    assert len(requests) - len(answered) <= 1
    assert len(answered) > 5
    assert np.all((answered["completion"] - answered["start"]) / 1e9 > RTT_S)
    received = int(answered["size_bytes"].sum())
    assert received <= statistics["goodput_bytes"] <= int(requests["size_bytes"].sum())


def test_a_request_that_is_still_open_counts_as_not_answered():
    asking = {"kind": "request-response", "responses": 2_000_000, "think_s": 0.2}
    metrics = run(scenario_of(asking, duration_s=4.0)).metrics
    answered = metrics["requests_answered_percent"]
    assert 0 < answered < 100
    assert metrics["request_latency_mean_ms"] > 1000


def test_same_seed_same_requests_however_the_run_is_cut():
    asking = {"kind": "request-response", "responses": "web-search"}
    scenario = scenario_of(asking, flows=[{"controller": "bbr"}])
    whole, cut, other = (
        requests_of(scenario, seed, pieces=pieces)[0].tobytes()
        for seed, pieces in ((2, 1), (2, 53), (3, 1))
    )
    assert whole == cut
    assert whole != other


# ---- web page ------------------------------------------------------------------------------


def page(**objects):
    return {
        "kind": "web-page",
        "objects": [
            {"name": name, "size_bytes": size, "after": list(after)}
            for name, (size, *after) in objects.items()
        ],
    }


def test_a_page_is_loaded_along_its_critical_path():
    """html, then css and script, then the image: three round trips after the first half."""
    loading = page(html=(1000,), css=(500, "html"), js=(800, "html"), image=(1000, "css", "js"))
    requests, statistics = requests_of(scenario_of(loading))
    asked = requests["start"] / 1e9
    assert asked[0] == pytest.approx(RTT_S / 2, abs=0.002)
    assert asked[1] == asked[2] == requests["completion"][0] / 1e9
    assert asked[3] == requests["completion"][2] / 1e9 > requests["completion"][1] / 1e9
    load_s = (statistics["completion"] - statistics["start"]) / 1e9
    transmission_s = sum((1000, 500, 800, 1000)) * 8 / 12e6
    # And the handshake's two packets; and pacing between the two of css and script.
    assert 3.5 * RTT_S < load_s < 3.5 * RTT_S + transmission_s + 0.002 + 0.006


def test_a_chain_takes_a_round_trip_for_each_object_and_a_star_one_for_all():
    chain = page(a=(900,), b=(900, "a"), c=(900, "b"), d=(900, "c"), e=(900, "d"))
    star = page(a=(900,), b=(900, "a"), c=(900, "a"), d=(900, "a"), e=(900, "a"))
    chain_s, star_s = (
        run(scenario_of(shape)).metrics["page_load_time_s"] for shape in (chain, star)
    )
    assert chain_s == pytest.approx(5.5 * RTT_S, abs=0.02)
    assert star_s == pytest.approx(2.5 * RTT_S, abs=0.02)


def test_a_page_that_is_not_loaded_has_no_load_time():
    result = run(scenario_of(page(html=(10_000_000,)), duration_s=2.0))
    assert result.metrics["page_load_time_s"] is None
    loaded = run(scenario_of(page(html=(10_000_000,)), duration_s=20.0))
    least_s = 10_000_000 * 8 / 12e6 * HEADERS * 0.99
    assert loaded.metrics["page_load_time_s"] > least_s + 1.5 * RTT_S


# ---- video ---------------------------------------------------------------------------------

PLAYER = {
    "kind": "video",
    "rates_mbps": [1.0, 2.0, 4.0, 8.0],
    "chunk_s": 2.0,
    "reservoir_s": 8.0,
    "cushion_s": 20.0,
    "max_buffer_s": 40.0,
}


def rates_by_hand(completions_s, player, start_s):
    """Plays the chunks that arrive then, by Huang et al.'s algorithm 1: rates, request times."""
    ladder, chunk = player["rates_mbps"], player["chunk_s"]
    reservoir, cushion = player["reservoir_s"], player["cushion_s"]
    buffered, now, rate, asked = 0.0, start_s, ladder[0], start_s
    rates, times, stalled = [], [], 0.0
    for number, completion in enumerate(completions_s):
        mapped = ladder[0] + (buffered - reservoir) / cushion * (ladder[-1] - ladder[0])
        higher = min((r for r in ladder if r > rate), default=ladder[-1])
        lower = max((r for r in ladder if r < rate), default=ladder[0])
        if buffered <= reservoir:
            rate = ladder[0]
        elif buffered >= reservoir + cushion:
            rate = ladder[-1]
        elif mapped >= higher:
            rate = max(r for r in ladder if r < mapped)
        elif mapped <= lower:
            rate = min(r for r in ladder if r > mapped)
        rates.append(rate)
        times.append(asked)
        if number > 0:
            stalled += max(0.0, completion - now - buffered)
            buffered = max(0.0, buffered - (completion - now))
        buffered += chunk
        now = completion
        wait = max(0.0, buffered + chunk - player["max_buffer_s"])
        asked, now, buffered = completion + wait, completion + wait, buffered - wait
    return rates, times, stalled


@pytest.mark.parametrize(
    ("steps", "stalls"),
    [
        ([], False),
        ([(30.0, 0.5), (60.0, 12.0)], False),
        ([(20.0, 0.2), (50.0, 3.0), (90.0, 0.5)], True),
    ],
)
def test_a_player_follows_the_algorithm_of_its_paper(steps, stalls):
    scheduled = [{"at_s": at, "rate_mbps": rate} for at, rate in steps]
    scenario = scenario_of(PLAYER, duration_s=150.0, bottleneck={"rate_schedule": scheduled})
    requests, statistics = requests_of(scenario)
    arrived = requests[requests["completion"] != NEVER]
    times = arrived["completion"] / 1e9
    rates, asked, stalled = rates_by_hand(times, PLAYER, arrived["start"][0] / 1e9)
    assert (arrived["size_bytes"] * 8 / 2 / 1e6).tolist() == rates
    assert arrived["start"] / 1e9 == pytest.approx(np.array(asked), abs=1e-6)
    total = statistics["playing_seconds"] + statistics["stalled_seconds"]
    assert total == pytest.approx(150 - times[0])
    # After the last chunk that arrived, the player plays what it has and then stands still.
    stalled_at_end = max(0.0, total - stalled - 2 * len(times))
    assert statistics["stalled_seconds"] == pytest.approx(stalled + stalled_at_end, abs=1e-6)
    assert (stalled > 0) == stalls
    assert {1.0, 8.0} <= set(rates)


def test_a_fast_link_plays_at_the_highest_rate_and_a_slow_one_stalls_for_what_it_lacks():
    metrics = run(scenario_of(PLAYER, duration_s=400.0)).metrics
    assert metrics["rebuffering_percent"] == 0
    assert metrics["video_rate_mbps"] > 7.5
    # The longest that one step of the map after the other takes.
    assert 1 <= metrics["video_switches"] <= 3
    metrics = run(scenario_of(PLAYER, duration_s=400.0, rate_mbps=0.5)).metrics
    assert metrics["video_rate_mbps"] == 1.0
    assert metrics["video_switches"] == 0
    assert metrics["rebuffering_percent"] == pytest.approx(50, abs=4)


def test_a_player_stalls_no_longer_once_its_flow_has_stopped():
    stopped = {"application": PLAYER, "controller": "newreno", "stop_s": 20.0}
    metrics = run(scenario_of(flows=[stopped], duration_s=100.0)).metrics
    assert metrics["rebuffering_percent"] == 0


# ---- metrics and fields --------------------------------------------------------------------


@pytest.mark.usefixtures("jobs_here", "plain_figures")
def test_only_runs_with_traffic_have_its_metrics(capsys, tmp_path):
    plain = scenario_of({"kind": "bulk"}, duration_s=2.0)
    names = [entry.name for entry in (*OF_FLOWS, *OF_RUNS)]
    assert list(run(plain).metrics) == names
    mixed = scenario_of(
        PLAYER,
        {"kind": "request-response", "responses": 5000},
        duration_s=5.0,
        name="mixed",
        short_flows=[{"arrivals_per_s": 20.0, "sizes": 3000, "controller": "cubic"}],
    )
    paths = [tmp_path / "plain.yaml", tmp_path / "mixed.yaml"]
    for path, scenario in zip(paths, (plain, mixed), strict=True):
        path.write_text(json.dumps(scenario.model_dump(mode="json", exclude_none=True)))

    def printed(format):
        out = tmp_path / "out"
        options = {"directory": out, "scenarios": [str(path) for path in paths], "seeds": 1}
        assert run_networks(**options, format=format, resume=out.exists()) == 0
        return capsys.readouterr().out

    first, second = json.loads(printed("json"))["runs"]
    keys = {"scenario", "controller", "engine", "seed", "flows"}
    assert set(first) == {*keys, *names}
    absent = {entry.name for entry in OF_TRAFFIC if entry.traffic in (PAGES, MEDIA)}
    assert set(second) == {*first, *TRAFFIC_METRICS, "short_flows"} - absent
    assert "video_rate_mbps" in second["flows"][0]
    assert "video_rate_mbps" not in second["flows"][1]
    assert second["flows"][1]["request_latency_mean_ms"] == second["request_latency_mean_ms"]
    assert second["short_flows"][0]["fct_mean_ms"] == second["fct_mean_ms"]
    frame = pd.read_parquet(tmp_path / "out/results.parquet")
    assert frame["fct_p99_ms"].notna().tolist() == [False, True]
    assert printed("table").count("rebuffering (%)") == 1
    assert "short_flows" not in printed("csv").splitlines()[0].split(",")


def test_completion_times_are_sorted_into_classes_of_size():
    sizes = [
        {"size_bytes": 50_000, "cumulative_probability": 0.5},
        {"size_bytes": 50_001, "cumulative_probability": 0.6},
        {"size_bytes": 1_000_000, "cumulative_probability": 0.61},
        {"size_bytes": 1_000_001, "cumulative_probability": 1},
    ]
    scenario = scenario_of(
        {"kind": "constant-rate", "rate_mbps": 0.1},
        duration_s=100.0,
        short_flows=[{"load_mbps": 2.0, "sizes": sizes, "controller": "cubic"}],
    )
    with Simulation(scenario) as simulation:
        simulation.run()
        transfers = simulation.transfers()
    done = transfers[transfers["completion"] != NEVER]
    milliseconds = (done["completion"] - done["start"]) / 1e6
    metrics = run(scenario).metrics
    small = done["size_bytes"] <= 100_000
    assert metrics["fct_small_mean_ms"] == pytest.approx(milliseconds[small].mean())
    assert metrics["fct_medium_p99_ms"] == pytest.approx(np.quantile(milliseconds[~small], 0.99))
    assert metrics["fct_large_median_ms"] is None
    assert metrics["fct_median_ms"] == pytest.approx(np.median(milliseconds))
    assert metrics["short_flow_arrivals"] == len(transfers)
    assert metrics["short_flows_completed_percent"] == 100 * len(done) / len(transfers)


@pytest.mark.skipif(ns3_version() is None, reason="needs quicgym-ns3")
@pytest.mark.parametrize(
    "asking",
    [
        {"kind": "request-response", "responses": "data-mining", "think_s": 0.1},
        page(html=(30_000,), css=(5_000, "html"), js=(60_000, "html"), image=(90_000, "js")),
        PLAYER,
    ],
    ids=lambda application: application["kind"],
)
def test_both_engines_answer_the_same_requests_in_the_same_nanoseconds(asking):
    scenario = scenario_of(
        asking, flows=[{"controller": "cubic"}], bottleneck={"queue": {"limit": 50}}
    )
    assert requests_of(scenario)[0].tobytes() == requests_of(scenario, engine="ns3")[0].tobytes()


@pytest.mark.parametrize(
    ("application", "expected"),
    [
        ({"kind": "request-response", "responses": 0}, "responses"),
        ({"kind": "request-response", "responses": 9, "request_bytes": 7}, "request_bytes"),
        (page(a=(1, "b"), b=(1,)), "objects.0.after"),
        ({"kind": "web-page", "objects": []}, "objects"),
        ({**PLAYER, "rates_mbps": [2.0, 1.0]}, "ascending"),
        ({**PLAYER, "max_buffer_s": 20.0}, "max_buffer_s"),
        ({"kind": "webpage"}, "web-page"),
    ],
)
def test_a_wrong_field_says_what_to_do(application, expected):
    with pytest.raises(ValueError, match=expected):
        scenario_of(application)
