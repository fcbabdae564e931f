"""Paths that change or misbehave, on the native engine: what each feature promises."""

from __future__ import annotations

import struct
from collections import Counter
from itertools import pairwise
from typing import Any

import pytest
from helpers.endpoints import (
    MILLISECOND,
    SECOND,
    application,
    make_flow,
    make_link,
    make_scenario,
    rate_steps,
)
from helpers.random_scenarios import networks
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from quicgym import Scenario, Simulation, _core

WIRE_BYTES = 1230
"""Of a full packet."""


def arrivals(link: Any, seconds: float = 10, **flow: Any) -> tuple[list[int], dict[str, Any]]:
    """When packets of one flow came, and the flow's totals."""
    scenario = make_scenario(
        [make_flow(**{"controller": "cubic", **flow})], link, record_deliveries=True
    )
    simulation = _core.NativeSimulation(scenario, 1)
    simulation.run_until(int(seconds * SECOND))
    times = [time for _, _, time, _ in struct.iter_unpack("<QQqq", simulation.deliveries())]
    return times, simulation.statistics(0)


def test_an_outage_delays_what_waits_and_loses_only_what_does_not_fit() -> None:
    link = make_link(queue_limit=1000)
    link.rate_schedule = rate_steps((4, 0), (5, 15_000_000))
    times, totals = arrivals(link, controller="newreno", application=application("bulk"))
    after_link = 10 * MILLISECOND + 20 * MILLISECOND
    gap = [t for t in times if 4 * SECOND + after_link + 2 * MILLISECOND < t < 5 * SECOND]
    assert not [t for t in gap if t < 5 * SECOND + after_link]
    assert [t for t in times if 5 * SECOND + after_link <= t < 5.2 * SECOND]
    small = make_link(queue_limit=10)
    small.rate_schedule = link.rate_schedule
    assert arrivals(small)[1]["dropped_packets"] > 0


def test_a_link_that_is_silent_for_good_ends_the_flow_and_not_the_run() -> None:
    link = make_link(queue_limit=50)
    link.rate_schedule = rate_steps((2, 0))
    times, totals = arrivals(link, seconds=5000)
    assert max(times) < 2.1 * SECOND
    # 50 packets wait for good; what probes and timeouts sent since was dropped.
    in_queue = totals["sent_packets"] - totals["received_packets"] - totals["dropped_packets"]
    assert in_queue == 50


@pytest.mark.parametrize("factor", [1e-4, 0.05, 20])
def test_a_rate_may_change_by_any_factor(factor: float) -> None:
    rate = int(15_000_000 * factor)
    link = make_link(queue_limit=30)
    link.rate_schedule = rate_steps((5, rate))
    times, _ = arrivals(link, seconds=15, access_rate_bits_per_second=10**9)
    carried = sum(8 * WIRE_BYTES for t in times if 6 * SECOND < t)
    assert carried <= rate * 9 + 2 * 8 * WIRE_BYTES
    # At 1500 bits per second a packet takes 6.6 s.
    assert carried > (0.9 * rate * 9 if factor == 0.05 else WIRE_BYTES)


def test_several_small_packets_leave_with_one_opportunity() -> None:
    """ACKs of 70 bytes or less: an opportunity every 50 ms carries twenty of them."""
    link = make_link(queue_limit=1000)
    link.delivery_opportunities_ms = [50]
    simulation = _core.NativeSimulation(make_scenario([make_flow(controller="bbr")], None, link), 1)
    simulation.run_until(10 * SECOND)
    # One ACK for two packets: one small packet for each opportunity would acknowledge 40 a second.
    assert simulation.statistics(0)["received_packets"] > 5 * 2 * 20 * 10


def test_a_link_that_opens_every_so_often_sends_in_bursts_at_its_rate() -> None:
    link = make_link(queue_limit=1000)
    link.opens_every = 100 * MILLISECOND
    limited = application("constant_rate", rate_bits_per_second=2_000_000)
    times, _ = arrivals(link, application=limited)
    after_link = 10 * MILLISECOND + 20 * MILLISECOND
    times = [time - after_link for time in times if time > 2 * SECOND]
    bursts = Counter(time // (100 * MILLISECOND) for time in times)
    # 2 Mbps of stream bytes are about 21 packets in 100 ms, 14 ms at the link's rate.
    assert len(times) > 1400 and max(bursts.values()) < 30
    assert max(time % (100 * MILLISECOND) for time in times) < 25 * MILLISECOND
    # A saturated one loses no capacity.
    times, _ = arrivals(link)
    carried = sum(8 * WIRE_BYTES for time in times if time > 2 * SECOND)
    assert carried == pytest.approx(15e6 * 8, rel=0.02)


@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(networks(None, "everything") | networks("sfq", "everything"), st.integers(0, 2**32))
def test_on_a_changing_path_packets_are_conserved_and_none_is_too_early(
    scenario: Scenario, seed: int
) -> None:
    runs = []
    for _ in range(2):
        with Simulation(
            scenario, "native", seed, record_deliveries=True, trace_interval_ms=None
        ) as simulation:
            simulation.run()
            deliveries = simulation.deliveries()
            totals = [flow.statistics for flow in simulation.flows]
        runs.append((deliveries.tolist(), totals))
    assert runs[0] == runs[1]
    for (_, flow), total in zip(scenario.single_flows(), totals, strict=True):
        under_way = total["sent_packets"] - total["received_packets"] - total["dropped_packets"]
        assert under_way >= 0
        access = flow.access or scenario.access
        link = scenario.links["reverse" if flow.direction == "backward" else "bottleneck"]
        shortest_ms = 2 * access.delay_ms + flow.extra_delay_ms + min(link.delays_ms)
        mean_s = total["one_way_delay_sum_seconds"]
        assert mean_s * 1e3 >= (shortest_ms - 1e-6) * total["received_packets"]


def carried_bits(flows: list[Any], link: Any, seconds: int) -> list[int]:
    """The bits of the link that have arrived, every 20 ms."""
    simulation = _core.NativeSimulation(make_scenario(flows, link), 1)
    carried = []
    for moment in range(0, seconds * SECOND, 20 * MILLISECOND):
        simulation.run_until(moment)
        totals = [simulation.statistics(flow) for flow in range(len(flows))]
        carried.append(sum(8 * (t["received_bytes"] + 30 * t["received_packets"]) for t in totals))
    return carried


def most_in(carried: list[int], windows: int) -> int:
    return max(b - a for a, b in zip(carried, carried[windows:], strict=False))


@settings(max_examples=60, deadline=None)
@given(
    rates=st.dictionaries(st.floats(0.1, 2), st.just(0.0) | st.floats(0.5, 50), max_size=3),
    opens_every=st.sampled_from([0, 7 * MILLISECOND]),
    limit=st.integers(1, 300),
)
def test_no_window_of_time_carries_more_than_the_rate_allows(
    rates: dict[float, float], opens_every: int, limit: int
) -> None:
    link = make_link(rate_bits_per_second=10_000_000, queue_limit=limit)
    schedule = [(at_s, int(mbps * 1e6)) for at_s, mbps in sorted(rates.items())]
    link.rate_schedule, link.opens_every = rate_steps(*schedule), opens_every
    flow = make_flow(controller="bbr", access_rate_bits_per_second=10**9)
    carried = carried_bits([flow], link, 3)
    top = max([10_000_000, *(rate for _, rate in schedule)])
    for windows in (1, 10, 100):
        assert most_in(carried, windows) <= top * windows * 0.02 + 8 * WIRE_BYTES


@settings(max_examples=60, deadline=None)
@given(
    rate=st.integers(100_000, 50_000_000),
    burst=st.integers(1502, 200_000),
    controllers=st.lists(st.sampled_from(["cubic", "bbr"]), min_size=1, max_size=3),
)
def test_a_policer_lets_rate_times_time_plus_burst_through_and_no_more(
    rate: int, burst: int, controllers: list[str]
) -> None:
    link = policed(10**9, rate, burst)
    flows = [make_flow(controller=name, access_rate_bits_per_second=10**9) for name in controllers]
    carried = carried_bits(flows, link, 2)
    for windows in (1, 5, 25, 50):
        # A packet may have waited at the link for another one, for less than 0.1 ms.
        assert most_in(carried, windows) <= rate * (windows * 0.02 + 1e-4) + burst * 8


def policed(link_rate: int, rate: int, burst_bytes: int) -> Any:
    link = make_link(rate_bits_per_second=link_rate)
    link.policer = _core.Policer()
    link.policer.rate_bits_per_second, link.policer.burst_bytes = rate, burst_bytes
    return link


def test_a_policer_drops_what_exceeds_it_and_delays_nothing() -> None:
    link = policed(100_000_000, 5_000_000, 50_000)
    _, totals = arrivals(link, 20, access_rate_bits_per_second=10**9)
    carried = totals["received_bytes"] + 30 * totals["received_packets"]
    assert 0.6 * 5e6 * 20 < carried * 8 <= 5e6 * 20 + 50_000 * 8
    assert totals["dropped_packets"] > 20
    assert totals["queue_delay_sum_seconds"] / totals["queue_samples"] < 0.002


def shaped(link_rate: int, rate: int, burst_bytes: int) -> Any:
    link = make_link(rate_bits_per_second=link_rate)
    link.shaper = _core.Shaper()
    link.shaper.rate_bits_per_second, link.shaper.burst_bytes = rate, burst_bytes
    return link


@settings(max_examples=60, deadline=None)
@given(
    rate=st.integers(100_000, 50_000_000),
    burst=st.integers(1502, 200_000),
    controllers=st.lists(st.sampled_from(["cubic", "bbr"]), min_size=1, max_size=3),
)
def test_a_shaper_lets_rate_times_time_plus_burst_through_and_no_more(
    rate: int, burst: int, controllers: list[str]
) -> None:
    flows = [make_flow(controller=name, access_rate_bits_per_second=10**9) for name in controllers]
    carried = carried_bits(flows, shaped(10**9, rate, burst), 2)
    for windows in (1, 5, 25, 50):
        # A packet may have been on the link for less than 0.1 ms.
        assert most_in(carried, windows) <= rate * (windows * 0.02 + 1e-4) + burst * 8


def test_a_shaper_lets_a_burst_pass_at_the_rate_of_the_link_and_delays_what_follows() -> None:
    """The bucket holds 40 packets, and gets tokens for one in 2 ms."""
    link = shaped(10**9, WIRE_BYTES * 8 * 500, 40 * WIRE_BYTES)
    link.queue_limit = 1000
    flow = {"controller": "external", "parameters": {"window_bytes": [100 * 1200]}}
    flow["pace_initial_window"] = True
    times, totals = arrivals(link, 0.5, **flow, access_rate_bits_per_second=10**9)
    assert totals["dropped_packets"] == 0
    gaps = [later - earlier for earlier, later in pairwise(times)]
    # The sender paces 100 packets over an RTT, and tokens for 2 of 5 of them come meanwhile.
    assert all(gap < MILLISECOND for gap in gaps[:60])
    assert all(gap == 2 * MILLISECOND for gap in gaps[70:100])


def test_a_shaper_wastes_no_capacity_of_a_slower_link() -> None:
    times, _ = arrivals(shaped(15_000_000, 20_000_000, 3000))
    assert sum(8 * WIRE_BYTES for time in times if time > 2 * SECOND) > 0.97 * 15e6 * 8


def loss_step(at_s: float, probability: float) -> Any:
    step = _core.LossStep()
    step.at = int(at_s * SECOND)
    step.loss.kind = _core.LossKind.bernoulli if probability > 0 else _core.LossKind.none
    step.loss.probability = probability
    return step


def test_packets_are_lost_at_the_rate_of_the_moment() -> None:
    link = make_link(queue_limit=1000)
    link.loss_schedule = [loss_step(2, 0.2), loss_step(4, 0), loss_step(6, 1)]
    limited = application("constant_rate", rate_bits_per_second=2_000_000)
    flow = make_flow(
        controller="external", parameters={"window_bytes": [10**6]}, application=limited
    )
    simulation = _core.NativeSimulation(make_scenario([flow], link), 1)
    share = {}
    sent = dropped = 0
    for end_s in (2, 4, 6, 8):
        simulation.run_until(int((end_s - 0.1) * SECOND))
        totals = simulation.statistics(0)
        packets = totals["sent_packets"] - sent
        share[end_s] = (totals["dropped_packets"] - dropped) / packets
        simulation.run_until(int((end_s + 0.1) * SECOND))  # what is under way at the step
        totals = simulation.statistics(0)
        sent, dropped = totals["sent_packets"], totals["dropped_packets"]
        assert packets > (300 if end_s < 8 else 3)
    assert share[2] == share[6] == 0
    assert share[4] == pytest.approx(0.2, abs=0.05)
    assert share[8] > 0.9


def reroute(at_s: float, rate: int, delay: int) -> Any:
    step = _core.Reroute()
    step.at, step.rate_bits_per_second, step.delay = int(at_s * SECOND), rate, delay
    return step


def test_what_has_arrived_before_a_reroute_stays_on_the_old_path() -> None:
    """At 1 s packets wait for a link of 1 Mbps, which takes 10 ms for each of them."""
    link = make_link(rate_bits_per_second=1_000_000, queue_limit=1000)
    link.reroutes = [reroute(1, 100_000_000, MILLISECOND)]
    flow = make_flow(
        controller="external",
        parameters={"window_bytes": [10**6]},
        application=application("constant_rate", rate_bits_per_second=1_400_000),
        access_rate_bits_per_second=10**9,
        flow_control_window_bytes=10**8,
    )
    simulation = _core.NativeSimulation(make_scenario([flow], link, record_deliveries=True), 1)
    simulation.run_until(3 * SECOND)
    arrived = [
        (number, time)
        for _, number, time, _ in struct.iter_unpack("<QQqq", simulation.deliveries())
    ]
    first_of_new_path, since = next(
        later for earlier, later in pairwise(arrived) if later[0] != earlier[0] + 1
    )
    # The first new packet comes a transmission, the link's delay and the access links' after 1 s.
    assert SECOND < since < 1.1 * SECOND
    old = [time for number, time in arrived if number < first_of_new_path and time > since]
    assert len(old) > 10
    assert max(later - earlier for earlier, later in pairwise(old)) <= WIRE_BYTES * 8 * 1000
    assert min(later - earlier for earlier, later in pairwise(old)) > 0.9 * WIRE_BYTES * 8 * 1000
    new = [(number, time) for number, time in arrived if number >= first_of_new_path]
    assert new == sorted(new) and len(new) > 200
    assert max(later - earlier for (_, earlier), (_, later) in pairwise(new)) < 20 * MILLISECOND


def test_a_backward_flow_shares_the_reverse_link_with_acknowledgements() -> None:
    forward, backward = make_flow(), make_flow(controller="cubic")
    backward.direction = _core.DataDirection.backward
    narrow = make_link(rate_bits_per_second=1_000_000, queue_limit=50)
    goodputs = []
    for flows in ([forward], [forward, backward]):
        simulation = _core.NativeSimulation(make_scenario(flows, reverse=narrow), 1)
        simulation.run_until(10 * SECOND)
        goodputs.append(simulation.statistics(0)["goodput_bytes"])
    assert simulation.statistics(1)["goodput_bytes"] > 0.5 * 125_000 * 10
    assert goodputs[1] < 0.9 * goodputs[0]
