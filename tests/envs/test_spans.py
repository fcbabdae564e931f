"""Observations: spans that double with their age, in logarithms."""

import math

import numpy as np
import pytest
from helpers import environments as helper
from hypothesis import given, settings
from hypothesis import strategies as st

from quicgym import Scenario, preset_action
from quicgym.envs import find_environment
from quicgym.envs.observations import observation_names, observation_space
from quicgym.envs.scenarios.flows import Flow
from quicgym.envs.scenarios.links import Access, DelayStep, Link, Queue, RateStep

DATAGRAM = 1200
SPANS = [(0, 1), (1, 2), (2, 4), (4, 8), (8, 10)]


def named(observation: np.ndarray, history_length: int = 10) -> dict[str, float]:
    names = observation_names(history_length, "tuning", "spans")
    return dict(zip(names, map(float, observation), strict=True))


def label(first: int, last: int) -> str:
    return f"[{first}]" if last - first == 1 else f"[{first}:{last}]"


def test_a_span_sums_up_what_the_flow_did_in_it():
    scenario = helper.scenario(duration_s=3, loss=0.01, flow_list=(Flow(start_s=0.1),))
    environment = find_environment("tuning")(
        scenario,
        history_length=10,
        decision_interval_ms=50,
        safe_envelope=False,
        observations="spans",
    )
    action = preset_action("ebcc")
    rows = helper.play(environment, [action] * 200, seed=7)
    totals, trace = helper.twin(environment, rows, "ebcc", 50)
    delivered = np.array([sample["delivered_bytes"] for sample in trace], float)
    sent = np.array([sample["sent_bytes"] for sample in trace], float)
    lost = np.array([sample["lost_bytes"] for sample in trace], float)
    rates = np.diff(delivered, prepend=0.0) / 0.05
    for step in range(1, len(rows)):
        seen = named(rows[step][0])
        known = min(step, 10)
        reference = max(rates[step - known + 1 : step + 1].max(), DATAGRAM / 0.05)
        min_rtt = totals[step]["min_rtt"] * 1e-9
        bdp = max(DATAGRAM, reference * min_rtt)
        for first, last in SPANS:
            at = label(first, last)
            end = min(last, known)
            assert seen["known" + at] == pytest.approx(max(0, end - first) / (last - first))
            if end <= first:
                assert seen["delivery_rate" + at] == seen["window" + at] == 0
                continue
            since, until = step - end, step - first
            acked = delivered[until] - delivered[since]
            gone = lost[until] - lost[since]
            seconds = 0.05 * (end - first)
            expected = {
                "delivery_rate": math.log10((acked + DATAGRAM) / (reference * seconds + DATAGRAM)),
                "send_rate": math.log10(
                    (sent[until] - sent[since] + DATAGRAM) / (acked + DATAGRAM)
                ),
                "loss": math.log10(1 + 1000 * gone / max(1, gone + acked)),
                "window": np.mean(
                    [math.log10(s["window_bytes"] / bdp) for s in trace[since + 1 : until + 1]]
                ),
                "in_flight": np.mean(
                    [
                        math.log10((s["in_flight_bytes"] + DATAGRAM) / bdp)
                        for s in trace[since + 1 : until + 1]
                    ]
                ),
            }
            samples = totals[until]["rtt_samples"] - totals[since]["rtt_samples"]
            if samples:
                total = totals[until]["rtt_sum_seconds"] - totals[since]["rtt_sum_seconds"]
                expected["rtt"] = math.log10(total / samples / min_rtt)
            for name, value in expected.items():
                assert seen[name + at] == pytest.approx(value, abs=1e-5), (step, name, at)
        assert seen["bdp"] == pytest.approx(math.log10(bdp / DATAGRAM), abs=1e-5)
        assert seen["highest_rate"] == pytest.approx(
            max(0.0, math.log10(max(rates[: step + 1].max(), 1e-9) / reference)), abs=1e-5
        )
        rtt = trace[step]["smoothed_rtt"] * 1e-9
        assert seen["interval"] == pytest.approx(math.log10(0.05 / rtt) if rtt else 0.0, abs=1e-5)
        assert seen["age"] == pytest.approx(math.log10(1 + 0.05 * step), abs=1e-5)
    assert lost[-1] > 0


def test_a_longer_path_is_no_queue_after_ten_seconds():
    link = Link(
        rate_mbps=8, delay_ms=20, queue=Queue(limit=40),
        delay_schedule=(DelayStep(at_s=8, delay_ms=60),),
    )  # fmt: skip
    scenario = Scenario(
        name="longer", duration_s=24, bottleneck=link, access=Access(rate_mbps=50, delay_ms=1),
        flows=(Flow(),),
    )  # fmt: skip
    seen = {}
    for layout in ("spans", "recent"):
        environment = find_environment("tuning")(scenario, observations=layout)
        names = observation_names(128, "tuning", layout)
        rows = helper.play(environment, [preset_action("bbr")] * 240, seed=1)
        seen[layout] = [dict(zip(names, map(float, row[0]), strict=True)) for row in rows]
    before, during, after = 70, 100, 230  # decisions of 100 ms
    for rows in seen.values():
        assert 0.2 < rows[during]["rtt[0]"] < 0.6
    assert seen["spans"][after]["rtt[0]"] > 0.2
    recent = seen["recent"]
    assert abs(recent[after]["rtt[0]"]) < 0.1
    assert recent[after]["base_rtt"] == pytest.approx(math.log10(86), abs=0.03)
    # The connection's lowest RTT and its age are still there to see.
    assert recent[before]["min_rtt"] < 0.05 < 0.2 < recent[after]["min_rtt"]
    assert recent[after]["min_rtt_age"] == pytest.approx(math.log10(1 + 15.1 / 0.086), abs=0.1)
    assert recent[before]["bdp"] + 0.2 < recent[after]["bdp"]


def test_the_highest_rate_and_its_age_stay_where_the_path_got_slower():
    link = Link(
        rate_mbps=16, delay_ms=20, queue=Queue(limit=60),
        rate_schedule=(RateStep(at_s=5, rate_mbps=2),),
    )  # fmt: skip
    scenario = Scenario(
        name="slower", duration_s=20, bottleneck=link, access=Access(rate_mbps=50, delay_ms=1),
        flows=(Flow(),),
    )  # fmt: skip
    environment = find_environment("tuning")(scenario, observations="recent")
    names = observation_names(128, "tuning", "recent")
    rows = helper.play(environment, [preset_action("bbr")] * 190, seed=1)
    first, last = (dict(zip(names, rows[place][0], strict=True)) for place in (40, 185))
    assert first["highest_rate"] < 0.05
    assert last["highest_rate"] == pytest.approx(math.log10(8), abs=0.15)
    assert last["highest_rate_age"] == pytest.approx(
        math.log10(1 + 13.5e3 / 10 ** last["base_rtt"]), abs=0.15
    )


def test_an_agent_sees_where_the_gain_cycle_stands():
    cycle = [1.25, 0.75, 1.0, 1.1, 0.9]
    environment = find_environment("tuning")(
        helper.scenario(duration_s=20, loss=0), decision_interval_ms=20, safe_envelope=False
    )
    action = environment.preset_action("bbr", gain_cycle=cycle)
    names = observation_names(128, "tuning")
    phases = set()
    for observation, *_ in helper.play(environment, [action] * 1000, seed=1):
        seen = dict(zip(names, map(float, observation), strict=True))
        if not seen["probe_bw"]:
            assert seen["cycle_gain"] == seen["cycle_passed"] == seen["phase_left"] == 0
            continue
        phase = round(seen["cycle_passed"] * len(cycle))
        phases.add(phase)
        assert 2 ** seen["cycle_gain"] == pytest.approx(cycle[phase], abs=1e-4)
        assert 0 <= seen["phase_left"] <= 1
    assert phases == set(range(len(cycle)))


@settings(deadline=None, max_examples=10)
@given(
    name=st.sampled_from(["tuning", "rate", "window"]),
    index=st.integers(0, 255),
    seed=st.integers(0, 2**32),
)
def test_nothing_reaches_its_bounds_on_the_networks_of_stress(stress, name, index, seed):
    scenario = stress[index]
    layout = ("spans", "recent", "cycle")[seed % 3]
    environment = find_environment(name)(scenario, episode_s=2.0, observations=layout)
    space = observation_space(128, name, layout)
    chosen = helper.actions(environment.action_space, 20, seed)
    names = observation_names(128, name, layout)
    bounded = space.high > 1
    for observation, *_ in helper.play(environment, chosen, seed=seed):
        assert space.contains(observation)
        at_bound = (np.abs(observation) >= space.high) & bounded
        assert not at_bound.any(), [names[place] for place in np.flatnonzero(at_bound)]


def test_ecn_marks_are_seen():
    queue = Queue(limit=200, discipline="codel", ecn_marking=True)
    link = Link(rate_mbps=8, delay_ms=10, queue=queue)
    scenario = Scenario(
        name="marks",
        duration_s=6,
        bottleneck=link,
        access=Access(rate_mbps=50, delay_ms=5),
        flows=(Flow(ecn=True),),
    )
    environment = find_environment("rate")(scenario)
    rows = helper.play(environment, [np.full(2, 0.2)] * 100, seed=1)
    place = observation_names(128, "rate").index("marks[0]")
    assert max(row[0][place] for row in rows) > 0
    assert environment.statistics(0)["ecn_marks"] > 0
