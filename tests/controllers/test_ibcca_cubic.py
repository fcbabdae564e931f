"""The switch between IBCCA and CUBIC: the rule, its default, and the sender's signal for it."""

import pytest
from helpers.ack_rounds import DATAGRAM, MILLISECOND, Driver
from helpers.endpoints import SECOND, application, make_flow, make_link, make_scenario

import quicgym
from quicgym import _core

Mode = _core.ControllerMode
RTT = 20 * MILLISECOND
LINK = 100e6 / 8  # bytes per second
CUBIC_MODES = {Mode.slow_start, Mode.congestion_avoidance, Mode.recovery}


def make(**parameters):
    driver = Driver(_core.make_controller("ibcca-cubic", parameters), RTT)
    while driver.mode == Mode.startup:
        ahead(driver, 0.0)
    assert not is_cubic(driver)
    return driver


def ahead(driver, seconds, rate=LINK, base=0):
    """An ACK with so much waiting for the network, in seconds of its rate."""
    driver.ack(after=RTT, rate=rate, round_start=True, unsent=base + round(seconds * LINK))


def is_cubic(driver):
    return driver.mode in CUBIC_MODES


def cubic_at(driver, ahead_s):
    """Whether CUBIC is in force after ACKs with so much waiting for the network."""
    found = []
    for seconds in ahead_s:
        ahead(driver, seconds)
        found.append(is_cubic(driver))
    return found


def test_cubic_takes_over_above_the_threshold_and_gives_back_below_the_other():
    driver = make(cubic_above_s=0.5, ibcca_below_s=0.2)
    expected = [False, False, True, True, True, False, False, True]
    assert cubic_at(driver, (0.4, 0.5, 0.51, 0.3, 0.2, 0.19, 0.4, 0.51)) == expected
    # Thresholds in the wrong order do not flap.
    assert all(cubic_at(make(cubic_above_s=0.2, ibcca_below_s=0.5), [0.3] * 5))


@pytest.mark.parametrize(
    "burst_mbps, burst_s, cubic",
    [(28, 1, False), (35, 1, False), (42, 1, True), (35, 2, True), (35, 3, True)],
)
def test_the_defaults_put_the_papers_bursts_where_its_text_has_them(burst_mbps, burst_s, cubic):
    """Figures 6 and 7: 90 Mbps, and bursts that leave less than that of a link of 100."""
    driver = make()
    left = (100 - burst_mbps) / 100
    for step in range(1, 50 * burst_s + 1):
        ahead(driver, step / 50 * (0.9 - left), rate=left * LINK)
    assert is_cubic(driver) == cubic


def test_what_was_there_before_the_burst_does_not_count():
    driver = Driver(_core.make_controller("ibcca-cubic"), RTT)
    bulk = 2**61
    for sent in range(0, 100):
        ahead(driver, -sent, base=bulk)
        assert not is_cubic(driver)
    ahead(driver, -99 + 0.5, base=bulk)
    assert is_cubic(driver)


def test_startup_is_left_alone_and_without_a_rate_nothing_is_switched():
    driver = Driver(_core.make_controller("ibcca-cubic"), RTT)
    modes = []
    for step in range(8):
        ahead(driver, step)
        modes.append(driver.mode)
    cubic = [mode in CUBIC_MODES for mode in modes]
    assert modes[0] == modes[1] == Mode.startup
    assert cubic.index(True) == modes.count(Mode.startup) + 1
    driver = Driver(_core.make_controller("ibcca-cubic"), RTT)
    for unsent in [0] * 10 + [10**9] * 10:
        driver.ack(after=RTT, unsent=unsent, round_start=True)
    assert not is_cubic(driver)


def test_the_delivery_rate_is_the_highest_of_the_last_rounds():
    driver = make(rate_window_rounds=3)
    found = []
    for rate in (LINK, *[LINK / 2] * 5):
        ahead(driver, 0.4, rate=rate)
        found.append(is_cubic(driver))
    assert found[1] is False and found[-1] is True


def test_a_bulk_transfer_is_ibccas():
    def deliveries(controller):
        with quicgym.Simulation(
            "ebcc-flows-3", controllers=controller, record_deliveries=True
        ) as simulation:
            simulation.run()
            return simulation.deliveries()

    assert (deliveries("ibcca-cubic") == deliveries("ibcca")).all()


def bursts(burst_mbps):
    """10 Mbps on 15, with bursts of a second every ten; the modes in each tenth of a second."""
    flow = make_flow(
        controller="ibcca-cubic",
        application=application(
            "bursts",
            rate_bits_per_second=10_000_000,
            burst_rate_bits_per_second=burst_mbps * 1_000_000,
            burst_duration=SECOND,
            burst_period=10 * SECOND,
            burst_count=3,
        ),
    )
    simulation = _core.NativeSimulation(make_scenario([flow], make_link(queue_limit=100)), 1)
    modes = []
    for tenth in range(1, 301):
        simulation.run_until(tenth * SECOND // 10)
        modes.append(Mode(simulation.snapshot(0)["mode"]) in CUBIC_MODES)
    return modes


def test_over_a_network_cubic_has_the_bursts_and_ibcca_the_rest():
    assert not any(bursts(5))
    modes = bursts(15)
    for begin in (100, 200):
        assert any(modes[begin : begin + 15])
        assert not any(modes[begin + 60 : begin + 100])


def test_unsent_bytes_are_what_the_application_has_written_and_nobody_sent():
    seen = []

    class Recorder(quicgym.Controller):
        def on_ack(self, event):
            self.window_bytes = 100_000
            seen.append((event.now, event.unsent_bytes))

        def on_loss(self, event):
            pass

    # Written at 20 Mbps, carried at 10 with headers.
    network = quicgym.Scenario.model_validate(
        {
            "name": "ahead",
            "duration_s": 5,
            "bottleneck": {"rate_mbps": 10, "delay_ms": 10},
            "access": {"rate_mbps": 50, "delay_ms": 1},
            "flows": [{"application": {"kind": "constant-rate", "rate_mbps": 20}}],
        }
    )
    quicgym.run(network, Recorder)
    (first, early), (last, late) = seen[len(seen) // 2], seen[-1]
    carried = 10e6 / 8 * (1200 - 40) / 1230
    assert (late - early) / ((last - first) * 1e-9) == pytest.approx(20e6 / 8 - carried, rel=0.02)
    assert seen[0][1] < 100_000  # the handshake's: what was written in one round trip


BDP = round(LINK * RTT * 1e-9)


def rounds_of(driver, count, *, seconds, **arguments):
    """Rounds of a whole window each, with so much waiting for the network."""
    for _ in range(count):
        driver.controller.on_packet_sent(driver.now, DATAGRAM, BDP)
        driver.ack(
            driver.window, after=RTT + 1, round_start=True, unsent=round(seconds * LINK),
            in_flight=BDP, **{"rate": LINK, **arguments},
        )  # fmt: skip


def test_cubic_begins_with_ibccas_window_and_does_not_search_again():
    driver = make()
    rounds_of(driver, 10, seconds=0)
    rounds_of(driver, 1, seconds=1)
    assert driver.mode == Mode.congestion_avoidance
    assert driver.window == pytest.approx(BDP, rel=0.2)


def test_ibcca_comes_back_with_the_bandwidth_that_cubic_found():
    driver = make()
    rounds_of(driver, 10, seconds=0)
    rounds_of(driver, 3, seconds=1, rate=2 * LINK)
    assert is_cubic(driver)
    rounds_of(driver, 1, seconds=0)
    assert driver.controller.snapshot.bandwidth_estimate == 2 * LINK


def test_cubics_lower_rate_does_not_lower_ibccas_bandwidth():
    driver = make()
    rounds_of(driver, 10, seconds=0)
    rounds_of(driver, 20, seconds=1, rate=LINK / 10)
    assert is_cubic(driver)
    rounds_of(driver, 1, seconds=0, sent_time=0)
    assert not is_cubic(driver)
    assert driver.controller.snapshot.bandwidth_estimate == LINK


def test_a_loss_is_answered_once_whoever_is_in_force():
    driver = make()
    rounds_of(driver, 10, seconds=0)
    driver.loss(sent_time=driver.now - RTT, in_flight=BDP)
    rounds_of(driver, 1, seconds=1, sent_time=driver.now - RTT)
    assert is_cubic(driver)
    before = driver.window
    driver.loss(after=1, sent_time=driver.now - 3 * RTT, in_flight=BDP)
    assert driver.window == before
