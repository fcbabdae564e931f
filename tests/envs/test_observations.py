"""The numbers of a frame, against the trace and the totals of the same simulation."""

import math

import pytest
from helpers import environments as helper

from quicgym import preset_action
from quicgym.envs.observations import FRAME_FEATURES, observation_names
from quicgym.envs.scenarios.flows import Flow
from quicgym.envs.tuning import TuningEnv

MODES = ("slow_start", "congestion_avoidance", "recovery", "startup", "drain", "probe_bw",
         "probe_rtt")  # fmt: skip
GAMMA = 30
DATAGRAM = 1200


class FramesEnv(TuningEnv):
    """Unlike the controller of Window-v0, BBR has a γ and all modes."""

    observations = "frames"
    safe_envelope = False


def ratio(numerator, denominator):
    return numerator / denominator if denominator > 0 else 0.0


def test_an_observation_is_what_the_flow_did_in_the_interval_and_where_it_stands():
    # Shorter intervals than a round trip: some of them have no RTT sample.
    scenario = helper.scenario(duration_s=2, loss=0.01, flow_list=(Flow(start_s=0.1),))
    environment = FramesEnv(scenario, history_length=1, decision_interval_ms=10)
    rows = helper.play(environment, [preset_action("ebcc")] * 200, seed=7)
    totals, trace = helper.twin(environment, rows, "ebcc", 10)
    assert len(trace) == len(rows) == 191
    names = observation_names(1, "tuning", "frames")
    maximum = {name: bound for name, bound, _ in FRAME_FEATURES}
    highest, silent, lossy = 0.0, 0, 0
    for step in range(1, len(rows)):
        seen = dict(zip(names, map(float, rows[step][0]), strict=True))
        now, before, total = trace[step], trace[step - 1], totals[step]
        delivered = now["delivered_bytes"] - before["delivered_bytes"]
        lost = now["lost_bytes"] - before["lost_bytes"]
        highest = max(highest, delivered / 0.01)
        min_rtt = total["min_rtt"] * 1e-9
        bdp = highest * min_rtt
        samples = total["rtt_samples"] - totals[step - 1]["rtt_samples"]
        rtt = now["rtt"] * 1e-9
        if samples:
            rtt = (total["rtt_sum_seconds"] - totals[step - 1]["rtt_sum_seconds"]) / samples
        silent += rtt > 0 and not samples
        lossy += lost > 0 and delivered > 0
        queue = now["window_bytes"] * (1 - ratio(min_rtt, rtt)) / DATAGRAM if rtt else 0.0
        expected = {
            "delivery_rate": ratio(delivered / 0.01, highest),
            "send_rate": ratio((now["sent_bytes"] - before["sent_bytes"]) / 0.01, highest),
            "pacing_rate": ratio(now["pacing_rate"], highest),
            "rtt": ratio(rtt, min_rtt),
            "loss": ratio(lost, lost + delivered),
            "in_flight": ratio(now["in_flight_bytes"], bdp),
            "window": ratio(now["window_bytes"], bdp),
            "queue_over_gamma": queue / GAMMA,
        }
        for name, value in expected.items():
            bounded = min(value, maximum[name])
            assert seen[f"{name}[0]"] == pytest.approx(bounded, rel=1e-5, abs=1e-6), (step, name)
        assert seen["bdp"] == pytest.approx(math.log10(1 + bdp / DATAGRAM) / 6, rel=1e-5)
        assert seen["min_rtt"] == pytest.approx(math.log10(1 + min_rtt * 1e3) / 5, rel=1e-5)
        assert [name for name in MODES if seen[name]] == [MODES[now["mode"]]]
    assert silent > 0 and lossy > 0
