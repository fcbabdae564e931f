"""Habits of the QUIC module for ns-3, each alone."""

from helpers.endpoints import (
    MILLISECOND,
    RTT,
    SECOND,
    Interrupted,
    Pair,
    application,
    losing,
    make_flow,
    with_window,
)

from quicgym.envs import Scenario, Simulation

WINDOW = 40 * 1200


def limits(pair):
    """The receiver's limits in the order in which they left."""
    return [frame[1] for _, frame in pair.frames("ack", "MAX_DATA")]


def names(pair, direction):
    """The frames of each packet of a direction, by name."""
    return [
        {frame[0] for frame in read["frames"]}
        for _, sent, _, read, _ in pair.log
        if sent == direction
    ]


def test_so_many_bytes_in_order_bring_a_packet_with_the_limits():
    plain = Pair(with_window(WINDOW)).run_until(SECOND)
    assert limits(plain) == []
    pair = Pair(with_window(WINDOW, window_update_bytes=15_000)).run_until(SECOND)
    found = limits(pair)
    assert len(found) > 10
    steps = [later - earlier for earlier, later in zip(found, found[1:], strict=False)]
    assert all(15_000 < step < 15_000 + 2 * 1200 for step in steps)


def test_one_of_so_many_ack_frames_comes_with_max_data():
    pair = Pair(with_window(WINDOW, acks_for_max_data=11)).run_until(SECOND)
    of_acks = [found for found in names(pair, "ack") if "ACK" in found][1:]  # the first: Initial
    with_limits = [number for number, found in enumerate(of_acks, 1) if "MAX_DATA" in found]
    assert with_limits == list(range(11, len(of_acks) + 1, 11))
    assert len(with_limits) > 5


def test_both_ends_acknowledge_with_packets_of_their_own():
    fields = {"window_update_bytes": 15_000, "ack_eliciting_threshold": 2}
    plain = Pair(with_window(WINDOW, **fields)).run_until(SECOND)
    assert all("STREAM" in packet for packet in names(plain, "data")[2:])
    pair = Pair(with_window(WINDOW, acknowledges_alone=True, **fields)).run_until(SECOND)
    own = [packet for packet in names(pair, "data") if packet == {"ACK", "MAX_DATA"}]
    updates = [packet for packet in names(pair, "ack") if "MAX_STREAM_DATA" in packet]
    assert 0 < len(own) <= len(updates)
    assert all("ACK" not in packet for packet in updates)


def test_silence_brings_two_probes_of_new_data_beyond_the_window():
    # Nothing arrives for a while, so that the window is full.
    fields = {"probe_timeout": 10 * MILLISECOND}
    pair = Interrupted(with_window(WINDOW, **fields), SECOND, 2 * SECOND).run_until(2 * SECOND)
    sent = [time for time in pair.sent_times("data") if time > SECOND + RTT]
    last = max(time for time in pair.sent_times("data") if time <= SECOND + RTT)
    assert [time - last for time in sent[:2]] == [10 * MILLISECOND, 20 * MILLISECOND]
    assert pair.sender.in_flight_bytes > WINDOW


def test_silence_brings_an_ack_before_one_is_due():
    def first_ack(**more):
        flow = with_window(WINDOW, application=kind, ack_eliciting_threshold=9, **more)
        pair = Pair(flow).run_until(SECOND)
        return pair.frames("ack", "ACK")[2][0], pair.sent_times("data")  # after the handshake

    kind = application("transfer", size_bytes=2000)
    late = {"max_ack_delay": 500 * MILLISECOND}
    plain, _ = first_ack(**late)
    extra, sent = first_ack(probe_timeout=10 * MILLISECOND, **late)
    assert plain > 500 * MILLISECOND
    last = max(time + RTT // 2 for time in sent if time + RTT // 2 < extra)
    assert extra == last + 10 * MILLISECOND


def test_silence_brings_no_ack_before_anything_was_received():
    # The request leaves before the end of the handshake, and the silence of a round trip follows.
    def first_requests(**fields):
        flow = {
            "controller": "newreno",
            "application": {"kind": "request-response", "responses": 5000},
            "module_habits": fields,
        }
        link = {"rate_mbps": 10, "delay_ms": 50, "queue": {"limit": 50}}
        network = {"bottleneck": link, "access": {"rate_mbps": 100, "delay_ms": 1}}
        scenario = {"name": "silence", "duration_s": 1.0, **network, "flows": [flow]}
        simulation = Simulation(Scenario.model_validate(scenario), marks=())
        simulation.run()
        return simulation.requests()[:2].tolist()

    assert first_requests(probe_timeout_ms=10) == first_requests()


def test_losses_are_not_detected_by_time():
    def run(**fields):
        kind = application("transfer", size_bytes=20 * 1100)
        flow = with_window(WINDOW, application=kind, **fields)
        # The last but one of the data: two more arrive after it, too few for the threshold.
        pair = Pair(flow, drop=losing("data", 18)).run_until(SECOND)
        return pair.sender.statistics()["probe_timeouts"]

    assert run() == 0
    assert run(losses_by_count=True) == 1


def test_the_controller_counts_in_segments_and_without_headers():
    def in_flight(**fields):
        return Pair(with_window(WINDOW, **fields)).run_until(SECOND).sender.in_flight_bytes

    assert in_flight() % 1200 == 0 < in_flight()
    assert in_flight(uncounted_bytes=11) % 1189 == 0 < in_flight(uncounted_bytes=11)
    assert Pair(make_flow()).sender.window_bytes == 10 * 1200
    assert Pair(make_flow(segment_bytes=1000)).sender.window_bytes == 10 * 1000


def test_newreno_begins_with_as_many_packets_as_it_is_told():
    flow = make_flow(parameters={"initial_window_packets": [2]})
    assert Pair(flow).sender.window_bytes == 2 * 1200
