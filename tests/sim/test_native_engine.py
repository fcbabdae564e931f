"""The native engine: links, queues, loss, schedules, traces, determinism, many at once."""

import struct
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby

import pytest
from helpers.endpoints import (
    MILLISECOND,
    RTT,
    SECOND,
    Pair,
    application,
    make_flow,
    make_link,
    make_scenario,
    rate_steps,
)
from helpers.memory import resident_bytes
from hypothesis import given, settings
from hypothesis import strategies as st

from quicgym import _core, controllers
from quicgym.envs.simulation.qlog import EventKind

WIRE_OVERHEAD = 30


def run(scenario, seconds=10, seed=1):
    simulation = _core.NativeSimulation(scenario, seed)
    simulation.run_until(int(seconds * SECOND))
    return simulation


def goodput_mbps(simulation, seconds, flow=0):
    return simulation.statistics(flow)["goodput_bytes"] * 8 / seconds / 1e6


def deliveries(simulation):
    return [row[:3] for row in struct.iter_unpack("<QQqq", simulation.deliveries())]


def waiting(simulation):
    """(packets, bytes) before the link at each moment of the trace."""
    return [sample[1:] for sample in struct.iter_unpack("<qQQ", simulation.queue_trace())]


def most_waiting(link):
    """The highest numbers of packets and bytes before the link under one CUBIC flow."""
    flow = make_flow(controller="cubic")
    simulation = run(make_scenario([flow], link, trace_interval=MILLISECOND), 10)
    return [max(numbers) for numbers in zip(*waiting(simulation), strict=True)]


def lossy(kind, queue_limit=1000, **fields):
    """A link with random loss of a kind."""
    link = make_link(queue_limit=queue_limit)
    link.loss.kind = getattr(_core.LossKind, kind)
    for name, value in fields.items():
        setattr(link.loss, name, value)
    return link


@given(st.integers(31, 1502), st.integers(1_000, 100_000_000_000))
def test_transmission_time_is_bits_over_rate_to_the_nanosecond(wire_bytes, rate):
    exact = wire_bytes * 8 * 10**9
    assert abs(_core.transmission_time_ns(wire_bytes, rate) * rate - exact) <= rate * 0.5001


def test_one_bulk_flow_fills_the_bottleneck():
    simulation = run(make_scenario([make_flow()]), 20)
    # Of 15 Mbit/s, 1200 of 1230 wire bytes are datagrams.
    assert 12.5 < goodput_mbps(simulation, 20) < 15 * 1165 / 1230


def test_the_shortest_rtt_is_propagation_plus_transmission():
    simulation = run(
        make_scenario([make_flow(application=application("transfer", size_bytes=1000))]), 2
    )
    propagation = 2 * (20 + 10 + 20) * MILLISECOND
    transmission = sum(
        2 * _core.transmission_time_ns(1200 + WIRE_OVERHEAD, rate)
        for rate in (50_000_000, 15_000_000, 50_000_000)
    )
    # The handshake's Initials are 1200 bytes in both directions.
    assert simulation.statistics(0)["rtt_sum_seconds"] * 1e9 >= propagation
    first = (propagation + transmission) * 1e-9
    samples = simulation.statistics(0)["rtt_samples"]
    assert simulation.statistics(0)["rtt_sum_seconds"] == pytest.approx(first * samples, rel=0.05)


def test_a_queue_holds_its_limit_and_no_more():
    for limit in (1, 5, 40):
        assert most_waiting(make_link(queue_limit=limit))[0] == limit
    link = make_link(queue_limit=20_000)
    link.queue_unit = _core.QueueUnit.bytes
    assert 20_000 - 1230 < most_waiting(link)[1] <= 20_000


@settings(max_examples=25, deadline=None)
@given(
    flows=st.integers(1, 4),
    controller=st.sampled_from(["newreno", "cubic", "bbr", "ebcc"]),
    limit=st.integers(1, 60),
    loss=st.sampled_from([0.0, 0.02]),
    jitter=st.integers(0, 50),
)
def test_every_packet_sent_is_received_or_dropped_at_the_end(
    flows, controller, limit, loss, jitter
):
    # The flows stop and the network drains, so that nothing is under way at the end.
    fields = {"start_jitter": jitter * MILLISECOND, "stop": 2 * SECOND}
    all_flows = [make_flow(controller=controller, **fields) for _ in range(flows)]
    simulation = run(make_scenario(all_flows, lossy("bernoulli", limit, probability=loss)), 30)
    for flow in range(flows):
        totals = simulation.statistics(flow)
        assert totals["sent_packets"] == totals["received_packets"] + totals["dropped_packets"]
        assert totals["queue_samples"] <= totals["sent_packets"]


def test_bernoulli_loss_drops_its_share():
    link = lossy("bernoulli", probability=0.02)
    totals = run(make_scenario([make_flow(controller="bbr")], link), 60).statistics(0)
    assert totals["dropped_packets"] / totals["sent_packets"] == pytest.approx(0.02, rel=0.1)


def test_gilbert_elliott_loss_comes_in_bursts_at_the_stationary_rate():
    fields = {"good_to_bad": 0.005, "bad_to_good": 0.2, "loss_in_good": 0.0, "loss_in_bad": 0.8}
    link = lossy("gilbert_elliott", **fields)
    scenario = make_scenario([make_flow(controller="bbr")], link, record_deliveries=True)
    simulation = run(scenario, 60)
    totals = simulation.statistics(0)
    stationary = 0.005 / (0.005 + 0.2) * 0.8
    assert totals["dropped_packets"] / totals["sent_packets"] == pytest.approx(stationary, rel=0.15)
    numbers = [number for _, number, _ in deliveries(simulation)]
    gaps = [b - a - 1 for a, b in zip(numbers, numbers[1:], strict=False) if b > a + 1]
    # Losses that were independent would come in runs of 1 / (1 - 0.0195), about 1.02.
    assert sum(gaps) / len(gaps) > 1.5


def test_gilbert_elliott_loss_moves_before_it_decides():
    fields = {"good_to_bad": 1.0, "bad_to_good": 1.0, "loss_in_good": 0.0, "loss_in_bad": 1.0}
    link = lossy("gilbert_elliott", 100, **fields)
    simulation = run(make_scenario([make_flow()], link, record_deliveries=True), 3)
    # Every second packet is lost, beginning with the first Initial, sent again after 999 ms.
    totals = simulation.statistics(0)
    assert totals["dropped_packets"] >= totals["received_packets"] > 5
    assert deliveries(simulation)[0][2] > 999 * MILLISECOND


def test_a_rate_schedule_takes_effect_at_its_times():
    link = make_link(queue_limit=50)
    link.rate_schedule = rate_steps((5, 5_000_000), (10, 10_000_000))
    simulation = _core.NativeSimulation(make_scenario([make_flow(controller="cubic")], link), 1)
    for start, end, link_rate in ((2, 5, 15), (7, 10, 5), (12, 15, 10)):
        simulation.run_until(start * SECOND)
        before = simulation.statistics(0)["received_bytes"]
        simulation.run_until(end * SECOND)
        rate = (simulation.statistics(0)["received_bytes"] - before) * 8e-6 / 3
        assert 0.9 * link_rate * 1200 / 1230 < rate <= link_rate * 1200 / 1230 * 1.01


def test_a_mahimahi_trace_sets_the_rate_and_repeats():
    link = make_link(queue_limit=100)
    # Twelve packets of 1500 bytes every 12 ms: 12 Mbit/s.
    link.delivery_opportunities_ms = list(range(1, 13))
    flow = make_flow(controller="cubic", max_datagram_bytes=1470)
    simulation = run(make_scenario([flow], link), 20)
    assert goodput_mbps(simulation, 20) == pytest.approx(12 * 1431 / 1500, rel=0.05)


def test_a_mahimahi_outage_delivers_nothing():
    link = make_link(queue_limit=1000)
    link.delivery_opportunities_ms = [*range(1, 1001), 3000]
    scenario = make_scenario([make_flow(controller="cubic")], link, record_deliveries=True)
    times = [time for _, _, time in deliveries(run(scenario, 12))]
    # The trace falls silent from 1 s to 3 s of every 3 s; 30 ms of propagation follow.
    outage = [
        t for t in times if 1.04 * SECOND < t % (3 * SECOND) < 2.99 * SECOND and t > 3 * SECOND
    ]
    assert len(times) > 1000
    assert outage == []


def test_extra_delay_lengthens_one_flow_only():
    flows = [make_flow(), make_flow(extra_delay=30 * MILLISECOND)]
    simulation = run(make_scenario(flows), 5)
    difference = simulation.statistics(1)["min_rtt"] - simulation.statistics(0)["min_rtt"]
    assert difference == pytest.approx(60 * MILLISECOND, abs=3 * MILLISECOND)


def test_the_reverse_path_is_a_link_with_a_queue():
    narrow = make_link(rate_bits_per_second=20_000, queue_limit=5)
    slow = run(make_scenario([make_flow(controller="newreno")], reverse=narrow), 10)
    fast = run(make_scenario([make_flow(controller="newreno")]), 10)
    assert goodput_mbps(slow, 10) < 0.8 * goodput_mbps(fast, 10)


def many_flows():
    return make_scenario(
        [
            make_flow(controller=name, start_jitter=30 * MILLISECOND, extra_delay=i * MILLISECOND)
            for i, name in enumerate(["newreno", "cubic", "bbr", "ebcc", "bbr"])
        ],
        make_link(queue_limit=40),
        record_deliveries=True,
        trace_interval=10 * MILLISECOND,
    )


def everything(simulation):
    count = simulation.flow_count
    return (
        simulation.deliveries(),
        simulation.queue_trace(),
        [simulation.trace(i) for i in range(count)],
        [simulation.statistics(i) for i in range(count)],
    )


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(0, 3 * SECOND), max_size=30))
def test_where_run_until_pauses_changes_nothing(pauses):
    whole = run(many_flows(), 3)
    stepped = _core.NativeSimulation(many_flows(), 1)
    for pause in sorted(pauses):
        stepped.run_until(pause)
        assert stepped.now == pause
    stepped.run_until(3 * SECOND)
    assert everything(stepped) == everything(whole)


@settings(max_examples=10, deadline=None)
@given(
    access=st.floats(0.001, 30),
    there=st.floats(0, 60),
    back=st.floats(0, 60),
    extra=st.floats(0, 60),
)
def test_as_far_ahead_as_delays_allow_packets_come_in_the_same_order(access, there, back, extra):
    flows = [
        make_flow(controller=name, access_delay=int(access * MILLISECOND))
        for name in ("cubic", "bbr", "newreno")
    ]
    flows[1].extra_delay = int(extra * MILLISECOND)
    there, back = (make_link(delay=int(ms * MILLISECOND), queue_limit=30) for ms in (there, back))
    scenario = make_scenario(flows, there, back, record_deliveries=True)
    far, step_by_step = run(scenario, 2), _core.NativeSimulation(scenario, 1)
    for pause in range(0, 2 * SECOND + 1, 20_000):
        step_by_step.run_until(pause)
    assert everything(step_by_step) == everything(far)


def test_a_datagram_of_the_smallest_size_is_not_overtaken_where_nothing_pauses():
    """Its access link is so slow that a byte takes 16 us, and another packet is 2 us behind it."""
    access = {"access_rate_bits_per_second": 500_000, "access_delay": 0}
    flows = [
        make_flow(**access),
        make_flow(**access, application=application("transfer", size_bytes=1)),
    ]
    back = make_link(rate_bits_per_second=5_000_000, delay=MILLISECOND)
    back.opens_every = 1_703_125
    forward = make_link(rate_bits_per_second=500_000, delay=0)
    scenario = make_scenario(flows, forward, back, record_deliveries=True)
    step_by_step = _core.NativeSimulation(scenario, 1)
    for pause in range(100 * MILLISECOND, 200 * MILLISECOND, 500):
        step_by_step.run_until(pause)
    step_by_step.run_until(SECOND)
    assert everything(step_by_step) == everything(run(scenario, 1))


def test_the_same_seed_gives_the_same_bytes_traced_or_not_and_another_seed_does_not():
    first = run(many_flows(), 5, seed=7)
    assert everything(first) == everything(run(many_flows(), 5, seed=7))
    assert first.deliveries() != run(many_flows(), 5, seed=8).deliveries()
    plain = many_flows()
    plain.trace_interval = 0
    assert first.deliveries() == run(plain, 5, seed=7).deliveries()


def test_many_simulations_live_and_run_in_threads_at_once():
    simulations = [_core.NativeSimulation(many_flows(), seed) for seed in range(8)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda simulation: simulation.run_until(2 * SECOND), simulations))
    for seed, simulation in enumerate(simulations):
        assert simulation.deliveries() == run(many_flows(), 2, seed).deliveries()


def test_parameters_change_while_the_connection_runs():
    simulation = _core.NativeSimulation(make_scenario([make_flow(controller="bbr")]), 1)
    simulation.run_until(5 * SECOND)
    before = simulation.statistics(0)["received_bytes"]
    simulation.set_parameters(0, {"gain_cycle": [0.5]})
    assert simulation.parameters(0)["gain_cycle"] == [0.5]
    simulation.run_until(10 * SECOND)
    after = simulation.statistics(0)["received_bytes"]
    simulation.run_until(15 * SECOND)
    assert simulation.statistics(0)["received_bytes"] - after < 0.5 * (after - 0) and after > before


def test_errors_name_what_is_wrong():
    choke = make_link()
    choke.queue_discipline = "choke"
    for flow, link, text in (
        (make_flow(controller="unobtainium"), make_link(), "unobtainium"),
        (make_flow(), choke, 'bottleneck.queue.discipline: unknown .*"choke"; .* codel'),
        (make_flow(), make_link(rate_bits_per_second=0), "rate must be above 0"),
    ):
        with pytest.raises(ValueError, match=text):
            run(make_scenario([flow], link), 1)
    simulation = run(make_scenario([make_flow()]), 1)
    with pytest.raises(ValueError, match="before the current time"):
        simulation.run_until(1)
    with pytest.raises(ValueError, match="flow 1 does not exist"):
        simulation.statistics(1)


@pytest.mark.skipif(sys.platform != "linux", reason="reads the resident size from /proc")
def test_a_long_connection_needs_no_more_memory_than_a_short_one():
    link = make_link(rate_bits_per_second=100_000_000, queue_limit=300)
    simulation = _core.NativeSimulation(make_scenario([make_flow(controller="bbr")], link), 1)
    simulation.run_until(20 * SECOND)
    before = resident_bytes()
    simulation.run_until(100 * SECOND)
    assert resident_bytes() - before < 1_000_000


@pytest.mark.parametrize("controller", [entry.name for entry in controllers.catalogue()])
def test_a_flow_does_the_same_whenever_it_starts(controller):
    def statistics(start):
        flow = make_flow(controller=controller, start=start)
        link = make_link(5_000_000, 60 * MILLISECOND, 40)
        simulation = _core.NativeSimulation(make_scenario([flow], link), 1)
        simulation.run_until(start + 20 * SECOND)
        result = simulation.statistics(0)
        del result["start"], result["completion"]
        return result

    first = statistics(0)
    assert first["sent_packets"] > 100
    for start in (50 * MILLISECOND, 15 * SECOND):
        # Times are sums of differences of clock readings, in floating point.
        assert statistics(start) == pytest.approx(first, rel=1e-9)


def test_an_application_that_is_off_for_weeks_writes_no_more():
    weeks = application(
        "on_off", rate_bits_per_second=1000, on_duration=1000, off_duration=1_000_000 * SECOND
    )
    simulation = run(make_scenario([make_flow(application=weeks)]), 1)
    assert simulation.statistics(0)["goodput_bytes"] <= 1200


def test_a_changed_window_counts_and_is_used_from_the_moment_of_the_change():
    flow = make_flow(
        controller="external", parameters={"window_bytes": [12_000]}, pace_initial_window=True
    )
    simulation = run(make_scenario([flow]), 1)
    before = simulation.statistics(0)
    # What stands for no time is not among the windows.
    simulation.set_parameters(0, {"window_bytes": [120_000]})
    simulation.set_parameters(0, {"window_bytes": [60_000]})
    assert simulation.statistics(0)["max_window_packets"] == 50
    simulation.run_until(SECOND + 1)
    assert simulation.statistics(0)["sent_packets"] > before["sent_packets"]


@pytest.mark.parametrize("paced", [False, True])
def test_the_initial_window_leaves_at_once_or_is_paced_over_half_an_rtt(paced):
    """RFC 9002 7.7."""
    flow = make_flow(pace_initial_window=True) if paced else make_flow()
    handshake, *times = Pair(flow).run_until(2 * RTT - 1).sent_times("data")
    assert handshake == 0 and len(times) >= 10
    assert times[9] - times[0] == pytest.approx(0.9 * RTT / 2 if paced else 0)


@pytest.mark.parametrize("burst", [1, 10])
def test_packets_leave_in_bursts_of_offload_at_the_same_mean_rate(burst):
    flow = make_flow(
        controller="external",
        parameters={"window_bytes": [10**7], "pacing_rate": [1e6]},
        pace_initial_window=True,
        offload_packets=burst,
    )
    times = Pair(flow).run_until(2 * SECOND).sent_times("data")
    sizes = [len(list(packets)) for _, packets in groupby(times)]
    assert set(sizes[1:-1]) == {burst}
    assert len(times) * 1200 * SECOND / (2 * SECOND - times[0]) == pytest.approx(1e6, rel=0.03)


ARRIVAL = 5 * MILLISECOND


def first_packet_arrives_at_5_ms(link):
    """One flow over the link, which the first Initial reaches at ARRIVAL."""
    flow = make_flow(access_rate_bits_per_second=1_000_000_000)
    transit = _core.transmission_time_ns(1200 + WIRE_OVERHEAD, 1_000_000_000)
    flow.access_delay = ARRIVAL - transit
    return make_scenario([flow], link)


def assert_counted_at(time, link, counted="received_packets", before=0):
    """The number of packets rises by one at this time."""
    simulation = _core.NativeSimulation(first_packet_arrives_at_5_ms(link), 1)
    for until, expected in ((time - 1, before), (time, before + 1)):
        simulation.run_until(until)
        assert simulation.statistics(0)[counted] == expected
    return simulation


@pytest.mark.parametrize(
    "opportunities, served, before",
    [([4, 5, 40], 5, 0), ([4, 6, 40], 6, 0), ([5, 50, 80], 50, 1)],
    ids=["at its arrival", "after its arrival", "whole though the one before was used in part"],
)
def test_a_packet_takes_the_first_opportunity_from_its_arrival_on(opportunities, served, before):
    link = make_link(delay=0)
    link.delivery_opportunities_ms = opportunities
    assert_counted_at(served * MILLISECOND + ARRIVAL, link, before=before)


def test_a_lost_packet_counts_as_dropped_from_the_end_of_its_way_over_the_link():
    link = lossy("bernoulli", 100, probability=1.0)
    sent = _core.transmission_time_ns(1200 + WIRE_OVERHEAD, link.rate_bits_per_second)
    simulation = assert_counted_at(ARRIVAL + sent + link.delay, link, "dropped_packets")
    assert simulation.statistics(0)["queue_samples"] == 1


@pytest.mark.parametrize("step, rate", [(ARRIVAL, 1_000_000), (ARRIVAL + 1, 15_000_000)])
def test_a_rate_holds_for_what_starts_in_the_instant_of_its_step(step, rate):
    link = make_link(delay=0)
    (change,) = rate_steps((0, 1_000_000))
    change.at = step
    link.rate_schedule = [change]
    sent = _core.transmission_time_ns(1200 + WIRE_OVERHEAD, rate)
    assert_counted_at(ARRIVAL + sent + ARRIVAL, link)


def test_what_still_waits_is_not_among_what_has_left_the_queue():
    flows = [make_flow(controller="cubic"), make_flow(controller="cubic")]
    scenario = make_scenario(flows, trace_interval=MILLISECOND // 10)
    simulation = _core.NativeSimulation(scenario, 1)
    before = [0.0, 0.0]
    for step in range(1, 41):
        simulation.run_until(step * 25 * MILLISECOND)
        totals = [simulation.statistics(flow) for flow in range(2)]
        # The link carries 46 packets in the 30 ms that follow it.
        left = sum(total["queue_samples"] - total["received_packets"] for total in totals)
        assert 0 <= left < 50
        delays = [total["queue_delay_sum_seconds"] for total in totals]
        assert all(now >= earlier for now, earlier in zip(delays, before, strict=True))
        before = delays
        packets = [sample[0] for sample in waiting(simulation)]
        integral = simulation.queue_occupancy_seconds
        assert integral == pytest.approx(sum(packets) * 1e-4, rel=0.02, abs=0.01)
    assert max(packets) > 80


@pytest.mark.parametrize("way", ["in order", "reordered", "in fragments"])
def test_ack_frames_of_any_length_arrive_whole(way):
    # Many packets are lost and a frame stands for sixty, so frames have up to 32 ranges.
    flow = make_flow(
        controller="bbr",
        ack_eliciting_threshold=60,
        reordering_threshold=0,
    )
    link, reverse = lossy("bernoulli", probability=0.2), make_link()
    if way == "reordered":
        reverse.jitter.kind, reverse.jitter.max = _core.JitterKind.uniform, 30 * MILLISECOND
        reverse.reordering = True
    if way == "in fragments":
        flow.mtu_bytes = 150
        link = lossy("bernoulli", probability=0.02)
    simulation = _core.NativeSimulation(
        make_scenario([flow], link, reverse, record_deliveries=True), 1
    )
    simulation.record_events()
    simulation.run_until(10 * SECOND)
    received = {number: time for _, number, time in deliveries(simulation)}
    most = ranges = 0
    for time, kind, first, last in struct.iter_unpack("<qQQQ32x", simulation.events(0)):
        ranges = ranges + 1 if kind == EventKind.ACKED_RANGE else 0
        most = max(most, ranges)
        if kind == EventKind.ACKED_RANGE and time > SECOND:  # not the handshake's
            assert all(received[number] < time for number in range(first, last + 1))
    assert most == 32
