"""Real-time media: what the encoder does, where every frame goes, and what viewers see."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest
from helpers.scenarios import dumbbell
from hypothesis import given, settings
from hypothesis import strategies as st

from quicgym import Simulation, _core, run
from quicgym.envs.simulation.metrics import TRAFFIC_METRICS
from quicgym.envs.simulation.simulation import NEVER, ns3_version
from quicgym.envs.simulation.traffic import FREEZE_NS, shown_and_frozen_s

INTERVAL_NS = 33_333_333
LADDER_MBPS = [0.3, 0.6, 1.2, 2.4, 4.8]
SIZES = [int(rate * 1e6) // 8 // 30 for rate in LADDER_MBPS]
ONE_WAY_NS = 20_000_000
MEDIA = (
    "media_rate_mbps",
    "frame_delay_p50_ms",
    "frame_delay_p95_ms",
    "frame_delay_p99_ms",
    "frozen_percent",
    "frames_arrived_percent",
)


def calls(*others, rates_mbps=LADDER_MBPS, controller="cubic", bottleneck=None, **fields):
    """A call over 8 Mbps and 40 ms, for 20 s, beside other flows."""
    call = {
        "controller": controller,
        "application": {"kind": "real-time-media", "rates_mbps": rates_mbps},
    }
    link = {"queue": {"limit": 100}, **(bottleneck or {})}
    usual = {"rate_mbps": 8.0, "delay_ms": 10, "access": (1000, 5)}
    return dumbbell([call, *others], bottleneck=link, **{**usual, **fields})


def frames_of(scenario, seed=0, engine="native", pieces=1):
    with Simulation(scenario, engine, seed, trace_interval_ms=None) as simulation:
        for piece in range(1, pieces + 1):
            simulation.run_until(scenario.duration_s * piece / pieces)
        return simulation.requests(0).copy(), simulation.flows[0].statistics


# ---- the encoder ---------------------------------------------------------------------------


def rates_of(encoder, *states):
    """Encodes a frame for each pair of the controller's rate in Mbps and of waiting bytes."""
    sizes = [encoder.encode(mbps * 1e6 / 8, unsent) for mbps, unsent in states]
    return [LADDER_MBPS[SIZES.index(size)] if size else None for size in sizes]


@pytest.fixture
def encoder():
    return _core.MediaEncoder([round(rate * 1e6) for rate in LADDER_MBPS])


def test_an_encoder_takes_the_highest_rate_within_nine_tenths_of_the_controllers(encoder):
    assert rates_of(encoder, (0.1, 0), (1.3, 0), (1.4, 0), (50, 0)) == [0.3, 0.6, 1.2, 4.8]


def test_an_encoder_falls_when_data_waits_for_longer_than_a_frame_interval(encoder):
    assert rates_of(encoder, (6, 0)) == [4.8]
    # 4 Mbps carry 16,667 bytes in an interval of 33.3 ms.
    assert rates_of(encoder, (4, 16_000), (4, 17_000), (4, 17_000)) == [4.8, 2.4, 2.4]


def test_an_encoder_skips_frames_while_data_waits_for_more_than_100_ms(encoder):
    # 4 Mbps carry 50,000 bytes in that time.
    states = [(4, 0), (4, 49_000), (4, 51_000), (4, 49_000)]
    assert rates_of(encoder, *states) == [2.4, 2.4, None, 2.4]


def test_an_encoder_tries_the_next_rate_after_30_frames_without_waiting(encoder):
    assert rates_of(encoder, *[(0.5, 0)] * 31) == [0.3] * 30 + [0.6]
    assert rates_of(encoder, *[(0.5, 0)] * 30) == [0.6] * 30
    assert rates_of(encoder, (0.5, 1), *[(0.5, 0)] * 31) == [0.6] * 31 + [1.2]
    assert rates_of(encoder, (0.5, 4000)) == [0.3]  # waits for 64 ms


# ---- frames --------------------------------------------------------------------------------


def test_frames_are_captured_30_times_per_second_and_arrive_one_by_one():
    """A call at 1.2 Mbps: five packets for each frame, and nothing to wait for."""
    frames, statistics = frames_of(calls(rates_mbps=[1.2], duration_s=10.0))
    captured = frames["start"]
    # The handshake's two packets and their propagation come first.
    assert 2 * ONE_WAY_NS < captured[0] < 2 * ONE_WAY_NS + 3_000_000
    assert np.all(np.diff(captured) == INTERVAL_NS)
    assert len(frames) == 1 + (10 * 10**9 - captured[0]) // INTERVAL_NS
    assert np.all(frames["size_bytes"] == 5000)
    arrived = frames[frames["completion"] != NEVER]
    assert len(frames) - len(arrived) <= 2
    delays = (arrived["completion"] - arrived["start"])[30:]
    # 5000 bytes and headers take 5.2 ms at 8 Mbps. Pacing may spread them over a frame interval.
    assert np.all(delays > ONE_WAY_NS + 5_200_000)
    assert np.all(delays < ONE_WAY_NS + 5_200_000 + INTERVAL_NS)
    assert statistics["declared_lost_packets"] == 0


@settings(max_examples=30, deadline=None)
@given(
    loss=st.sampled_from([0.0, 0.02, 0.2]),
    rate_mbps=st.sampled_from([0.2, 1.0, 8.0]),
    controller=st.sampled_from(["newreno", "cubic", "bbr", "bbr3", "copa", "vivace"]),
    outage=st.booleans(),
    seed=st.integers(0, 2**32),
)
def test_every_frame_is_skipped_or_arrives_or_is_under_way(
    loss, rate_mbps, controller, outage, seed
):
    steps = [{"at_s": 4, "rate_mbps": 0}, {"at_s": 6, "rate_mbps": rate_mbps}] if outage else []
    lossy = {"loss": {"kind": "bernoulli", "probability": loss}, "rate_schedule": steps}
    scenario = calls(controller=controller, rate_mbps=rate_mbps, bottleneck=lossy, duration_s=12.0)
    frames, statistics = frames_of(scenario, seed)
    skipped = frames["size_bytes"] == 0
    arrived = frames["completion"] != NEVER
    assert not np.any(skipped & arrived)
    assert set(frames["size_bytes"][~skipped].tolist()) <= set(SIZES)
    # The stream is in order: what is under way is younger than all that has arrived.
    under_way = np.flatnonzero(~skipped & ~arrived)
    last = int(np.flatnonzero(arrived)[-1])
    assert np.all(under_way > last)
    completions = frames["completion"][arrived]
    assert np.all(np.diff(completions) >= 0)
    assert np.all(completions - frames["start"][arrived] > ONE_WAY_NS)
    delivered = int(frames["size_bytes"][arrived].sum())
    assert delivered <= statistics["goodput_bytes"] <= int(frames["size_bytes"].sum())


def test_a_call_takes_what_the_path_has_and_skips_frames_where_that_is_too_little():
    wide, narrow, least = (
        run(calls(rate_mbps=rate, duration_s=30.0, controller="copa")).metrics
        for rate in (20.0, 1.0, 0.2)
    )
    assert wide["media_rate_mbps"] > 4.5
    assert wide["frozen_percent"] == 0
    assert 0.4 < narrow["media_rate_mbps"] < 1.0
    # 0.2 Mbps carry two thirds of the frames at the lowest rate, less headers.
    assert 50 < least["frames_arrived_percent"] < 67


def test_same_seed_same_frames_however_the_run_is_cut():
    scenario = calls(
        {"controller": "bbr"},
        bottleneck={"loss": {"kind": "bernoulli", "probability": 0.01}},
    )
    whole, cut, other = (
        frames_of(scenario, seed, pieces=pieces)[0].tobytes()
        for seed, pieces in ((2, 1), (2, 53), (3, 1))
    )
    assert whole == cut
    assert whole != other


@pytest.mark.skipif(ns3_version() is None, reason="needs quicgym-ns3")
@pytest.mark.parametrize("controller", ["cubic", "bbr"])
def test_both_engines_have_the_same_frames_in_the_same_nanoseconds(controller):
    steps = [{"at_s": 2, "rate_mbps": 0.4}, {"at_s": 5, "rate_mbps": 8}]
    scenario = calls(
        {"controller": "cubic", "start_s": 6.0},
        controller=controller,
        bottleneck={"queue": {"limit": 30}, "rate_schedule": steps},
        duration_s=9.0,
    )
    native, ns3 = (frames_of(scenario, engine=engine)[0] for engine in ("native", "ns3"))
    assert np.any(native["size_bytes"] == 0)
    assert native.tobytes() == ns3.tobytes()


# ---- metrics -------------------------------------------------------------------------------


def test_a_picture_that_stays_for_183_ms_is_frozen():
    second = 10**9
    arrivals = np.array([second, second + FREEZE_NS - 1, second + 2 * FREEZE_NS, 3 * second, NEVER])
    # Gaps: one below the limit, one above, one of half a second, and the end of the run.
    frozen_ns = FREEZE_NS + 1 + (2 * second - 2 * FREEZE_NS) + second
    shown_s, frozen_s = shown_and_frozen_s(arrivals, (0, 4 * second))
    assert shown_s == pytest.approx(3)
    assert frozen_s == pytest.approx(frozen_ns / second)
    # A window has its own part of a freeze that began before it.
    assert shown_and_frozen_s(arrivals, (3 * second - 1000, 3 * second)) == pytest.approx(
        (1e-6, 1e-6)
    )
    assert shown_and_frozen_s(arrivals, (0, second // 2)) == (0.0, 0.0)


def test_an_outage_freezes_the_picture_for_as_long_as_no_frame_arrives():
    steps = [{"at_s": 5, "rate_mbps": 0}, {"at_s": 6, "rate_mbps": 8}]
    scenario = calls(bottleneck={"rate_schedule": steps}, duration_s=10.0)
    frames, _ = frames_of(scenario)
    arrivals = np.sort(frames["completion"][frames["completion"] != NEVER])
    gap_s = np.diff(arrivals).max() / 1e9
    assert 0.95 < gap_s < 1.5
    metrics = run(scenario).metrics
    shown_s = 10 - arrivals[0] / 1e9
    assert metrics["frozen_percent"] == pytest.approx(100 * gap_s / shown_s)
    delays_ms = (frames["completion"] - frames["start"])[frames["completion"] != NEVER] / 1e6
    assert metrics["frame_delay_p50_ms"] == pytest.approx(np.quantile(delays_ms, 0.5))
    assert metrics["frame_delay_p99_ms"] == pytest.approx(np.quantile(delays_ms, 0.99))
    arrived = frames["completion"] != NEVER
    active_s = 10.0
    assert metrics["media_rate_mbps"] == pytest.approx(
        8e-6 * frames["size_bytes"][arrived].sum() / active_s
    )
    assert metrics["frames_arrived_percent"] == pytest.approx(100 * arrived.mean())
    calm = run(scenario, from_s=7.0).metrics
    assert calm["frozen_percent"] == 0
    assert calm["frame_delay_p99_ms"] < metrics["frame_delay_p99_ms"]
    assert [name for name in metrics if name in TRAFFIC_METRICS] == list(MEDIA)


def test_a_call_that_never_connects_has_no_delay():
    dead = calls(bottleneck={"loss": {"kind": "bernoulli", "probability": 1.0}}, duration_s=2.0)
    metrics = run(dead).metrics
    assert [metrics[name] for name in MEDIA] == [0.0, None, None, None, None, None]


def test_an_environment_steers_a_call():
    scenario = calls(controller=None, duration_s=5.0)
    environment = gymnasium.make("quicgym/Window-v1", scenario=scenario)
    observation, _ = environment.reset(seed=1)
    ended = False
    while not ended:
        observation, reward, terminated, truncated, _ = environment.step(0.0)
        assert np.all(np.isfinite(observation)) and np.isfinite(reward)
        ended = terminated or truncated


# ---- fields --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("application", "expected"),
    [
        ({"rates_mbps": [2.0, 1.0]}, "application.rates_mbps.1 = 1.0: is not above 2"),
        ({"rates_mbps": []}, "application.rates_mbps"),
        ({}, "application.rates_mbps: is missing"),
        ({"rates_mbps": [0.5], "chunk_s": 2}, "application.chunk_s = 2: unknown field"),
    ],
)
def test_a_wrong_field_says_what_to_do(tmp_path, application, expected):
    from quicgym import ScenarioError, load_scenario

    path = tmp_path / "call.yaml"
    fields = {"kind": "real-time-media", **application}
    path.write_text(
        "name: call\nduration_s: 5\nbottleneck: {rate_mbps: 5, delay_ms: 10}\n"
        f"access: {{rate_mbps: 100, delay_ms: 1}}\nflows: [{{application: {fields}}}]\n"
    )
    with pytest.raises(ScenarioError, match=rf"call\.yaml: flows\.0\.{expected}"):
        load_scenario(path)


@pytest.mark.parametrize("kind", ["real-time-media", "video"])
def test_tcp_has_no_receiver_that_asks_or_shows_frames(kind):
    application = {"kind": kind, "rates_mbps": [1.0]}
    flow = {"controller": "cubic", "transport": "tcp", "application": application}
    with pytest.raises(ValueError, match=rf"application.kind = '{kind}'.*leave out transport"):
        dumbbell([flow])
