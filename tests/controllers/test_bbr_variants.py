"""bbr-smooth, bbr-extended and bbr-combined: the high-latency report's two changes and both."""

import pytest
from helpers import bbr_flows
from helpers.ack_rounds import MILLISECOND, SECOND
from helpers.bbr_flows import gain

from quicgym import _core

Mode = _core.ControllerMode
RTT = 600 * MILLISECOND
RATE = 125e3  # bytes per second, 1 Mbps
BDP = RATE * RTT * 1e-9
EXTENDED_CYCLE = [1.25, 1, 1, 0.75, 1, 1]


def in_probe_bw(name, seed=1):
    return bbr_flows.in_probe_bw(name, RATE, RTT, seed)


@pytest.mark.parametrize("name", ["bbr-smooth", "bbr-combined"])
def test_smoothing_puts_the_average_in_place_of_rtprop(name):
    driver = in_probe_bw(name)
    average = RTT
    for rtt in (2 * RTT, 2 * RTT, 3 * RTT):
        driver.ack(int(4 * BDP), after=RTT, rate=RATE, rtt=rtt, round_start=True)
        average = 0.9 * average + 0.1 * rtt
        assert driver.controller.snapshot.round_trip_estimate == pytest.approx(average)
        assert driver.window == pytest.approx(2 * RATE * average * 1e-9 + 3 * 1200, abs=1)


def test_without_smoothing_the_model_keeps_the_minimum():
    driver = in_probe_bw("bbr-extended")
    driver.ack(after=RTT, rate=RATE, rtt=2 * RTT)
    assert driver.controller.snapshot.round_trip_estimate == RTT


@pytest.mark.parametrize("name, probes", [("bbr-smooth", True), ("bbr-combined", False)])
def test_only_the_smoothing_variant_stops_to_measure_rtprop_and_so_probes_every_10_s(name, probes):
    driver = in_probe_bw(name)
    driver.ack(after=4 * SECOND, rate=RATE, rtt=RTT // 2)
    driver.ack(after=SECOND, rate=RATE)  # 10.4 s after the first sample
    assert (driver.mode == Mode.probe_rtt) == probes


@pytest.mark.parametrize("name", ["bbr-extended", "bbr-combined"])
def test_the_extended_cycle_has_six_phases_and_begins_in_any(name):
    starts = set()
    for seed in range(100):
        driver = in_probe_bw(name, seed)
        gains = [gain(driver)]
        for _ in range(5):
            # Enough in flight for the probing phase, too much for an early end of the draining one.
            driver.ack(after=2 * RTT, rate=RATE, in_flight=int(2 * BDP))
            gains.append(gain(driver))
        start = (6 - gains.index(1.25)) % 6
        assert gains == EXTENDED_CYCLE[start:] + EXTENDED_CYCLE[:start]
        starts.add(start)
    assert starts == set(range(6))


@pytest.mark.parametrize("name, rounds", [("bbr-smooth", 10), ("bbr-extended", 8)])
def test_the_bandwidth_window_is_the_cycle_and_two_rounds(name, rounds):
    driver = in_probe_bw(name)
    driver.ack(int(BDP), after=1, rate=2 * RATE, round_start=True)
    for _ in range(rounds):
        driver.ack(int(BDP), after=1, rate=RATE, round_start=True)
        assert driver.controller.snapshot.bandwidth_estimate == 2 * RATE
    driver.ack(int(BDP), after=1, rate=RATE, round_start=True)
    assert driver.controller.snapshot.bandwidth_estimate == RATE
