"""Lost data that is sent again at once, and rate samples with an old interval."""

from helpers.endpoints import (
    RTT,
    SECOND,
    Pair,
    losing,
    make_flow,
    make_link,
    make_scenario,
    with_window,
)

from quicgym import _core

WINDOW = 60 * 1200


def lossy(**fields):
    """Of 30 packets of a window every third is lost."""
    pair = Pair(with_window(WINDOW, **fields), drop=losing("data", *range(20, 50, 3))).run_until(
        SECOND
    )
    return pair


def repeated(pair):
    """Time and number of chunks of each datagram that carries data again."""
    seen, found = set(), []
    for time, direction, _, read, _ in pair.log:
        frames = read["frames"] if direction == "data" else []
        offsets = [frame[2] for frame in frames if frame[0] == "STREAM"]
        if any(offset in seen for offset in offsets):
            found.append((time, len(offsets)))
        seen.update(offsets)
    return found


def test_all_lost_data_leaves_at_the_instant_of_the_ack_that_shows_it():
    pair = lossy(burst_retransmission=True)
    arrivals = {time + RTT // 2 for time, _ in pair.frames("ack", "ACK")}
    again = repeated(pair)
    assert len(again) == 10
    assert all(time in arrivals for time, _ in again)


def test_without_it_lost_data_is_paced():
    pair = lossy()
    arrivals = {time + RTT // 2 for time, _ in pair.frames("ack", "ACK")}
    assert any(time not in arrivals for time, _ in repeated(pair))


def test_with_an_mtu_all_that_one_ack_shows_goes_into_one_datagram():
    pair = lossy(
        burst_retransmission=True,
        mtu_bytes=1500,
        ack_eliciting_threshold=14,
        reordering_threshold=0,
    )
    again = repeated(pair)
    assert max(chunks for _, chunks in again) > 2
    assert sum(chunks for _, chunks in again) == 10
    assert len({time for time, _ in again}) == len(again)
    assert pair.receiver.statistics()["goodput_bytes"] > 20 * WINDOW / 2


def test_stale_rate_samples_take_the_link_for_faster_than_it_is():
    def estimate(stale):
        flow = make_flow(controller="bbr", stale_rate_samples=stale)
        simulation = _core.NativeSimulation(make_scenario([flow], make_link()), 1)
        simulation.run_until(9 * SECOND)
        return simulation.snapshot(0)["bandwidth_estimate"] * 8 / 15e6 * 1230 / 1200

    assert estimate(False) < 1.001
    assert estimate(True) > 1.01
