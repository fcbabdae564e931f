"""Short flows: arrivals, sizes, completion, and what they leave behind."""

from __future__ import annotations

from math import ceil, log2

import gymnasium
import numpy as np
import pytest
from helpers.memory import resident_bytes
from helpers.scenarios import dumbbell
from hypothesis import given, settings
from hypothesis import strategies as st

from quicgym import ScenarioError, Simulation
from quicgym.envs.scenarios.sizes import SIZE_DISTRIBUTIONS, mean_size_bytes, size_points
from quicgym.envs.simulation.simulation import NEVER

RTT_S = 0.04


def scenario_of(short_flows, duration_s=20.0, flows=None, bottleneck=None, **fields):
    """1 Gbps with an empty RTT of 40 ms; without `flows`, a flow that is idle until its end."""
    idle = {"controller": "cubic", "start_s": duration_s - 1e-5}
    usual = {"rate_mbps": 1000.0, "access": (10_000, 5), "duration_s": duration_s}
    short = [{"controller": "newreno", **short_flows}]
    link = {"queue": {"limit": 1000}, **(bottleneck or {})}
    return dumbbell(flows or [idle], bottleneck=link, short_flows=short, **{**usual, **fields})


def transfers_of(scenario, seed=0, pieces=1):
    with Simulation(scenario, seed=seed, trace_interval_ms=None) as simulation:
        for piece in range(1, pieces + 1):
            simulation.run_until(scenario.duration_s * piece / pieces)
        return simulation.transfers().copy()


def completion_s(transfers):
    done = transfers[transfers["completion"] != NEVER]
    return (done["completion"] - done["start"]) / 1e9


def kolmogorov_smirnov(values, distribution):
    """The largest distance of the sample from the distribution, times the root of its size."""
    ordered = np.sort(values)
    expected = distribution(ordered)
    steps = np.arange(len(ordered) + 1) / len(ordered)
    distance = max(np.max(steps[1:] - expected), np.max(expected - steps[:-1]))
    return distance * len(ordered) ** 0.5


def test_arrivals_are_a_poisson_process():
    transfers = transfers_of(scenario_of({"arrivals_per_s": 200.0, "sizes": 500}))
    gaps = np.diff(transfers["start"], prepend=0) / 1e9
    # 1.63: exceeded by one sample in 100 of that distribution.
    assert kolmogorov_smirnov(gaps, lambda t: 1 - np.exp(-200 * t)) < 1.63
    assert len(transfers) == pytest.approx(4000, abs=3 * 4000**0.5)
    assert abs(np.corrcoef(gaps[1:], gaps[:-1])[0, 1]) < 3 / len(gaps) ** 0.5


@pytest.mark.parametrize("name", SIZE_DISTRIBUTIONS)
def test_sizes_are_those_of_the_distribution(name):
    # No handshake comes back before the end, so nothing is transferred.
    network = {"rate_mbps": 100_000.0, "access": (100_000, 1000)}
    entry = {"arrivals_per_s": 4000.0, "sizes": name}
    transfers = transfers_of(scenario_of(entry, duration_s=1.0, **network))
    points = [(row.size_bytes, row.cumulative_probability) for row in SIZE_DISTRIBUTIONS[name]]
    sizes, probabilities = zip(*points, strict=True)
    drawn = transfers["size_bytes"]
    assert kolmogorov_smirnov(drawn, lambda size: np.interp(size, sizes, probabilities)) < 2.0
    assert drawn.min() >= 1


def test_a_load_is_arrivals_times_mean_size():
    table = [
        {"size_bytes": 1000, "cumulative_probability": 0.5},
        {"size_bytes": 9000, "cumulative_probability": 1},
    ]
    scenario = scenario_of({"load_mbps": 24.0, "sizes": table})
    entry = scenario.short_flows[0]
    assert mean_size_bytes(size_points(entry.sizes)) == 0.5 * 1000 + 0.5 * 5000
    assert entry.arrivals_per_second == 24e6 / 8 / 3000
    transfers = transfers_of(scenario)
    assert transfers["size_bytes"].sum() * 8 / 20 == pytest.approx(24e6, rel=0.05)


@pytest.mark.parametrize("packets", [1, 2, 10, 20, 60, 140])
def test_completion_on_an_idle_link_is_the_handshake_and_the_rounds_of_slow_start(packets):
    """RFC 9002 7.2: ten datagrams in the first round trip, twice as many in each that follows."""
    size = packets * 1100  # a datagram of 1200 bytes holds 1160 or more
    scenario = scenario_of({"arrivals_per_s": 0.2, "sizes": size, "controller": "newreno"})
    rounds = ceil(log2(packets / 10 + 1))
    times = completion_s(transfers_of(scenario)) / RTT_S
    assert len(times) > 1
    # Handshake, all rounds but one, the way of the last packet; pacing takes part of a round trip.
    shortest = 1 + (rounds - 1) + 0.5
    assert np.all(times > shortest)
    assert np.all(times < shortest + (0.01 if packets == 1 else 0.75))


@settings(max_examples=25, deadline=None)
@given(
    sizes=st.sampled_from([1, 1160, 5000, 200_000]),
    load=st.floats(0.1, 4.0),
    loss=st.sampled_from([0.0, 0.02, 0.1]),
    controller=st.sampled_from(["newreno", "cubic", "bbr", "vegas"]),
    queue=st.integers(5, 200),
    seed=st.integers(0, 2**32),
)
def test_every_transfer_that_has_time_completes(sizes, load, loss, controller, queue, seed):
    arrivals = min(200.0, load * 1e6 / 8 / sizes)
    scenario = scenario_of(
        {"arrivals_per_s": arrivals, "sizes": sizes, "controller": controller, "stop_s": 5.0},
        rate_mbps=10.0,
        duration_s=120.0,
        bottleneck={
            "queue": {"limit": queue},
            "loss": {"kind": "bernoulli", "probability": loss},
        },
    )
    transfers = transfers_of(scenario, seed)
    assert np.all(transfers["completion"] != NEVER)
    assert np.all(transfers["start"] < 5e9)
    # None is faster than light and the bottleneck.
    least_s = 1.5 * RTT_S + transfers["size_bytes"] * 8 / 10e6
    assert np.all(completion_s(transfers) > least_s)
    if loss == 0.0 and queue == 200 and sizes < 5000:
        assert transfers["lost_packets"].sum() == 0


def test_what_short_flows_take_is_what_a_bulk_flow_lacks():
    bulk = [{"controller": "cubic"}]
    with Simulation(
        scenario_of({"load_mbps": 8.0, "sizes": 20_000}, rate_mbps=20.0, flows=bulk)
    ) as simulation:
        simulation.run()
        goodput = simulation.flows[0].statistics["goodput_bytes"] * 8 / 20e6
        transfers = simulation.transfers()
    done = transfers[transfers["completion"] != NEVER]
    taken = done["size_bytes"].sum() * 8 / 20e6
    assert taken == pytest.approx(8.0, rel=0.15)
    assert 17.0 < goodput + taken < 20.0


def test_thousands_of_flows_leave_no_more_behind_than_tens():
    scenario = scenario_of({"arrivals_per_s": 500.0, "sizes": 900}, 100.0)
    with Simulation(scenario, trace_interval_ms=None) as simulation:
        simulation.run_until(20)
        few, before = len(simulation.transfers()), resident_bytes()
        simulation.run()
        many, after = len(simulation.transfers()), resident_bytes()
    assert few < 11_000
    assert many > 40_000
    # A record takes 36 bytes, 72 in a vector that grew; a sender alone has more than 10,000.
    assert after - before < 200 * (many - few)


def test_environments_count_short_flows_in_what_the_link_carries_and_not_in_fairness():
    scenario = scenario_of(
        {"load_mbps": 10.0, "sizes": 20_000},
        rate_mbps=20.0,
        flows=[{"controller": None}, {"controller": "cubic"}],
    )
    environment = gymnasium.make("quicgym/Rate-v1", scenario=scenario)
    environment.reset(seed=1)
    infos = [environment.step(environment.action_space.low * 0)[4] for _ in range(150)][100:]
    environment.close()
    assert np.mean([info["throughput_share"] for info in infos]) > 0.85
    assert {info["active_flows"] for info in infos} == {2.0}
    own = np.mean([info["flow_throughput_mbps"] for info in infos])
    total = np.mean([info["throughput_mbps"] for info in infos])
    assert total - own > 9.0
    # Of two flows: above one half whatever the many short ones get.
    assert min(info["jain"] for info in infos) >= 0.5


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"arrivals_per_s": None}, "arrivals_per_s"),
        ({"load_mbps": 3.0}, "arrivals_per_s or load_mbps"),
        ({"sizes": "web"}, "web-search"),
        ({"sizes": [{"size_bytes": 9, "cumulative_probability": 0.5}]}, "cumulative_probability 1"),
        ({"start_s": 20.0}, "none ever arrives"),
        ({"controller": None, "parameters": {"beta": 0.5}}, "name the flow's controller"),
    ],
)
def test_a_wrong_field_says_what_to_do(changes, expected):
    with pytest.raises(ValueError, match=expected):
        scenario_of({"arrivals_per_s": 10.0, "sizes": 1000, **changes})


def test_the_runs_controller_is_theirs_where_they_name_none():
    scenario = scenario_of({"arrivals_per_s": 5.0, "sizes": 400_000, "controller": None})
    with pytest.raises(ScenarioError, match="short-flows-1"):
        transfers_of(scenario)

    def mean(controller):
        with Simulation(scenario, controllers=controller, trace_interval_ms=None) as simulation:
            simulation.run()
            return completion_s(simulation.transfers()).mean()

    assert mean("cubic") != mean("bbr")


def test_the_means_of_the_literatures_distributions_are_those_of_their_points():
    # By hand: 0.15 · 5 kB + 0.05 · 15 kB + 0.1 · 25 kB + ... + 0.07 · 7.5 MB + 0.03 · 20 MB.
    assert mean_size_bytes(SIZE_DISTRIBUTIONS["web-search"]) == pytest.approx(1_711_250)
    assert mean_size_bytes(SIZE_DISTRIBUTIONS["data-mining"]) == pytest.approx(12_658_198.6)


JITTER = {"jitter": {"kind": "normal", "mean_ms": 5, "deviation_ms": 3}, "reordering": True}


@pytest.mark.parametrize(
    "bottleneck",
    [
        *({"queue": {"limit": 300, "discipline": d}} for d in ("codel", "fq-codel", "pie", "red")),
        {"queue": {"limit": 300}, **JITTER},
    ],
)
def test_short_flows_complete_in_every_queue_and_where_packets_overtake(bottleneck):
    scenario = scenario_of(
        {"load_mbps": 4.0, "sizes": 50_000, "controller": "cubic", "stop_s": 15.0},
        rate_mbps=10.0,
        flows=[{"controller": "cubic"}],
        bottleneck=bottleneck,
    )
    transfers = transfers_of(scenario)
    assert np.all(transfers["completion"] != NEVER)
    assert transfers.tobytes() == transfers_of(scenario, pieces=31).tobytes()
