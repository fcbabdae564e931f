"""IP fragments: datagrams above the hosts' MTU (access.mtu_bytes)."""

import struct

import pytest
from helpers.endpoints import SECOND, application, make_flow, make_link, make_scenario
from hypothesis import given, settings
from hypothesis import strategies as st

from quicgym import _core

IP_AND_PPP = 22


def run(flow, queue_limit, seconds=30, **fields):
    scenario = make_scenario([flow], make_link(queue_limit=queue_limit), **fields)
    simulation = _core.NativeSimulation(scenario, 1)
    simulation.run_until(seconds * SECOND)
    return simulation


def fragments(datagram_bytes, mtu_bytes):
    """The wire bytes of each fragment, by RFC 791 3.2."""
    content = datagram_bytes + 8
    room = mtu_bytes - 20
    sizes = []
    while content > room:
        sizes.append(room // 8 * 8 + IP_AND_PPP)
        content -= room // 8 * 8
    return [*sizes, content + IP_AND_PPP]


@settings(max_examples=40, deadline=None)
@given(
    datagram=st.integers(1200, 9000),
    mtu=st.integers(68, 9000),
    queue=st.integers(3, 60),
    burst=st.booleans(),
)
def test_a_transfer_arrives_whole_whatever_is_fragmented_and_dropped(datagram, mtu, queue, burst):
    size = 150_000
    queue = max(queue, 2 * len(fragments(datagram, mtu)))
    flow = make_flow(
        max_datagram_bytes=datagram,
        mtu_bytes=mtu,
        burst_retransmission=burst,
        application=application("transfer", size_bytes=size),
    )
    statistics = run(flow, queue).statistics(0)
    assert statistics["goodput_bytes"] == size
    assert 0 < statistics["completion"] < 30 * SECOND
    assert statistics["received_packets"] <= statistics["sent_packets"]


def test_each_fragment_takes_a_place_in_the_queue():
    def most_waiting(**fields):
        flow = make_flow(max_datagram_bytes=1480, **fields)
        simulation = run(flow, 1000, 4, trace_interval=1_000_000)
        samples = struct.iter_unpack("<qQQ", simulation.queue_trace())
        return max(size / packets for _, packets, size in samples if packets > 50)

    whole = 1480 + 8 + IP_AND_PPP
    assert most_waiting(mtu_bytes=1508) == whole
    # 1500 bytes and 28 by turns.
    assert most_waiting(mtu_bytes=1500) == pytest.approx(sum(fragments(1480, 1500)) / 2, rel=0.02)


def test_fragments_are_dropped_one_by_one_and_one_takes_its_datagram_with_it():
    flow = make_flow(max_datagram_bytes=1480, mtu_bytes=1500, stop=20 * SECOND)
    statistics = run(flow, 40).statistics(0)
    lost = statistics["sent_packets"] - statistics["received_packets"]
    assert statistics["dropped_packets"] > lost > 0.5 * statistics["dropped_packets"]
    assert statistics["declared_lost_packets"] == pytest.approx(lost, abs=5)


def test_a_packet_as_large_as_the_mtu_is_not_fragmented():
    whole, exact = (
        run(make_flow(max_datagram_bytes=1472, mtu_bytes=mtu), 30, 5).statistics(0)
        for mtu in (0, 1500)
    )
    assert whole == exact


def test_a_marked_fragment_marks_its_datagram():
    link = make_link(queue_limit=4000)
    link.queue_discipline = "codel"
    link.ecn_marking = True
    flow = make_flow(max_datagram_bytes=1480, mtu_bytes=1500, ecn=True, controller="cubic")
    simulation = _core.NativeSimulation(make_scenario([flow], link), 1)
    simulation.run_until(10 * SECOND)
    statistics = simulation.statistics(0)
    assert statistics["ecn_marks"] > 0
    assert statistics["declared_lost_packets"] == 0
