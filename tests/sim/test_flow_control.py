"""Flow control (RFC 9000 4) and the send buffer."""

from __future__ import annotations

import itertools

import pytest
from helpers.endpoints import (
    MILLISECOND,
    RTT,
    SECOND,
    Pair,
    application,
    constant_rate,
    make_flow,
    times,
    with_window,
)

import quicgym
from quicgym import Scenario, load_scenario
from quicgym.envs.scenarios.suites import load_suite


def losing_frames(name, direction, most=10**9):
    """Drops the first datagrams of a direction with such a frame."""
    found = itertools.count()
    return lambda sent, index, frames: (
        sent == direction and any(frame[0] == name for frame in frames) and next(found) < most
    )


@pytest.mark.parametrize("limit", [63, 64, 16_383, 16_384, 20_000])
def test_flow_control_stops_the_sender_which_says_data_blocked(limit):
    """At limits, too, where an integer of the wire grows."""
    flow = make_flow(flow_control_window_bytes=limit)
    pair = Pair(flow, drop=losing_frames("MAX_DATA", "ack")).run_until(3 * SECOND)
    assert pair.receiver.statistics()["goodput_bytes"] == limit
    assert pair.sender.statistics()["blocked_events"] == 1
    assert pair.frames("data", "DATA_BLOCKED")[0][1] == ("DATA_BLOCKED", limit)


def test_the_time_counts_in_which_only_flow_control_holds_data_back():
    flow = make_flow(flow_control_window_bytes=20_000)
    drop = losing_frames("MAX_DATA", "ack")
    pair = Pair(flow, drop=drop).run_until(3 * SECOND)
    first = times(pair, "data", "DATA_BLOCKED")[0]
    waited = 3 - first / SECOND
    assert pair.sender.statistics(3 * SECOND)["blocked_seconds"] == pytest.approx(waited, abs=1e-6)
    open_window = Pair(constant_rate(1_000_000)).run_until(3 * SECOND)
    assert open_window.sender.statistics(3 * SECOND)["blocked_seconds"] == 0


def test_credit_ends_the_time_that_flow_control_held_data_back():
    pair = Pair(make_flow(flow_control_window_bytes=20_000)).run_until(3 * SECOND)
    assert 0 < pair.sender.statistics(3 * SECOND)["blocked_seconds"] < 3


def test_lost_credit_is_granted_again_after_a_timeout():
    flow = make_flow(flow_control_window_bytes=20_000)
    pair = Pair(flow, drop=losing_frames("MAX_DATA", "ack", 1)).run_until(5 * SECOND)
    assert any(dropped for *_, dropped in pair.log)
    assert pair.receiver.statistics()["goodput_bytes"] > 100_000


def test_a_lost_data_blocked_is_sent_again_and_is_the_same_event():
    drops = losing_frames("MAX_DATA", "ack"), losing_frames("DATA_BLOCKED", "data", 1)
    flow = make_flow(flow_control_window_bytes=20_000)
    pair = Pair(flow, drop=lambda *sent: any(drop(*sent) for drop in drops)).run_until(10 * SECOND)
    assert any(sent == "data" and dropped for _, sent, *_, dropped in pair.log)
    assert len(pair.frames("data", "DATA_BLOCKED")) > 1
    assert pair.sender.statistics()["blocked_events"] == 1


def test_data_blocked_waits_for_room_in_the_window():
    pair = Pair(with_window(12_000, flow_control_window_bytes=11_660)).run_until(SECOND)
    blocked = times(pair, "data", "DATA_BLOCKED")
    assert blocked and blocked[0] >= 2 * RTT  # when the first packets are acknowledged


def test_more_credit_is_granted_when_half_of_it_is_used():
    pair = Pair(constant_rate(1_000_000, flow_control_window_bytes=20_000)).run_until(SECOND)
    message = pair.frames("data", "STREAM")[0][1][3]
    limits = [frame[1] for _, frame in pair.frames("ack", "MAX_DATA")]
    read = [limit - 20_000 for limit in limits]
    assert len(read) > 5
    assert all(
        0 < later - earlier - 10_000 <= message
        for earlier, later in zip([0, *read], read, strict=False)
    )


@pytest.mark.parametrize("pause, events", [(180, 1), (220, 2)])
def test_a_send_buffer_is_full_until_a_third_of_it_is_free(pause, events):
    # Of 75,000 bytes written, 24,000 wait after 180 ms of pause and 18,000 after 220.
    kind = application(
        "on_off",
        rate_bits_per_second=6_000_000,
        on_duration=100 * MILLISECOND,
        off_duration=pause * MILLISECOND,
    )
    pair = Pair(with_window(12_000, application=kind, send_buffer_bytes=30_000)).run_until(
        (200 + pause) * MILLISECOND
    )
    assert pair.sender.statistics()["send_buffer_events"] == events


def held_out(suite: str, name: str) -> Scenario:
    return next(scenario for scenario in load_suite(suite) if scenario.name == name)


def limited_to(scenario: Scenario, window_bytes: int) -> Scenario:
    flows = tuple(
        flow.model_copy(update={"flow_control_window_bytes": window_bytes})
        for flow in scenario.flows
    )
    return scenario.model_copy(update={"flows": flows})


@pytest.mark.parametrize("controller", ["bbr", "cubic"])
def test_flow_control_does_not_block_a_bulk_flow_on_a_long_fat_path(controller: str) -> None:
    run = quicgym.run(held_out("heldout-long-fat", "long-fat-110"), controller, seed=0)
    assert [total["blocked_events"] for total in run.totals] == [0] * len(run.totals)


def test_a_stated_window_still_limits() -> None:
    scenario = limited_to(held_out("heldout-long-fat", "long-fat-110"), 2**20)
    run = quicgym.run(scenario, "cubic", seed=0)
    assert run.totals[0]["blocked_events"] > 0
    assert 1 < run.flows[0].blocked_percent <= 100


def test_a_window_of_a_tebibyte_takes_no_memory() -> None:
    scenario = load_scenario("ebcc-bandwidth-5").model_copy(update={"duration_s": 5.0})
    runs = [quicgym.run(each, "cubic") for each in (scenario, limited_to(scenario, 2**40))]
    assert runs[0].metrics == runs[1].metrics
