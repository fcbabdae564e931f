"""Vegas, row by row: Brakmo and Peterson's congestion avoidance and modified slow start."""

import pytest
from helpers.ack_rounds import DATAGRAM, MILLISECOND, SECOND, AckRounds, Driver, Path

from quicgym import _core

Mode = _core.ControllerMode
RTT = 100 * MILLISECOND


def make(**parameters):
    return Driver(_core.make_controller("vegas", parameters), RTT)


def packets(driver):
    return driver.window / DATAGRAM


def rtt_for(difference, window):
    """The RTT at which `window` packets have `difference` of them in the queue."""
    return round(RTT / (1 - difference / window))


def one_round(driver, difference=0.0, **arguments):
    """An ACK with the RTT of this many packets in the queue, and one without ends the round."""
    driver.ack(0, after=RTT // 2, rtt=rtt_for(difference, packets(driver)), min_rtt=RTT)
    driver.ack(after=RTT // 2, rtt=0, min_rtt=RTT, round_start=True, **arguments)


def in_avoidance(window=50, **parameters):
    """In congestion avoidance with this window, after a loss; no sample of the round yet."""
    driver = make(**parameters)
    driver.ack(0, min_rtt=RTT, round_start=True)
    driver.ack((2 * window - 10) * DATAGRAM, min_rtt=RTT)
    driver.loss()
    driver.ack(0, after=10 * RTT, rtt=0, min_rtt=RTT)
    assert (driver.mode, packets(driver)) == (Mode.congestion_avoidance, window)
    return driver


@pytest.mark.parametrize(
    "difference, change",
    [(0, 1), (1.9, 1), (2.1, 0), (3, 0), (3.9, 0), (4.1, -1), (20, -1)],
)
def test_rows_1_to_3_one_packet_per_round_towards_alpha_and_beta(difference, change):
    driver = in_avoidance()
    one_round(driver, difference)
    assert (packets(driver), driver.mode) == (50 + change, Mode.congestion_avoidance)
    assert driver.controller.snapshot.queue_estimate_packets == pytest.approx(difference, abs=1e-4)


def test_alpha_beta_and_gamma_are_parameters():
    driver = in_avoidance(alpha=10, beta=20)
    one_round(driver, 9)
    assert packets(driver) == 51
    driver.controller.set_parameters({"alpha": 1, "beta": 5})
    one_round(driver, 9)
    assert packets(driver) == 50
    driver = make(gamma=6)
    for _ in range(8):
        one_round(driver, 5)
    assert driver.mode == Mode.slow_start


def test_a_decision_comes_once_per_round_and_looks_at_its_lowest_rtt():
    driver = in_avoidance()
    for _ in range(20):
        driver.ack(after=1, min_rtt=RTT)
    assert packets(driver) == 50
    driver = in_avoidance()
    for rtt in (3 * RTT, RTT, 2 * RTT):
        driver.ack(0, rtt=rtt, min_rtt=RTT)
    driver.ack(round_start=True, rtt=3 * RTT, min_rtt=RTT)
    assert packets(driver) == 51


def test_a_round_without_a_sample_changes_nothing():
    driver = in_avoidance()
    windows = []
    for _ in range(2):
        driver.ack(round_start=True, rtt=0, min_rtt=RTT)
        windows.append(driver.window)
    assert windows[0] == windows[1]


def test_row_4_slow_start_doubles_every_other_round():
    driver = make()
    driver.ack(0, min_rtt=RTT)  # the handshake
    windows = []
    for _ in range(6):
        driver.ack(0, after=RTT, min_rtt=RTT, round_start=True)
        driver.ack(driver.window, min_rtt=RTT)
        windows.append(packets(driver))
    assert windows == [20, 20, 40, 40, 80, 80]


def test_row_5_slow_start_ends_above_gamma_with_what_the_path_holds_and_one_packet():
    driver = make()
    driver.ack(0, min_rtt=RTT)
    driver.ack(0, after=RTT, rtt=0, min_rtt=RTT, round_start=True)
    for difference in (5, 0.9, 5):  # every other round grew and is not compared
        one_round(driver, difference)
        assert driver.mode == Mode.slow_start
    window = packets(driver)
    one_round(driver, 5)
    assert driver.mode == Mode.congestion_avoidance
    assert packets(driver) == pytest.approx(window - 5 + 1, abs=1e-3)


def test_a_window_that_falls_below_the_threshold_and_to_two_packets_is_not_slow_start():
    for driver, difference, rounds, last in (
        (in_avoidance(), 10, 30, 20),
        (in_avoidance(6, alpha=0, beta=0), 1, 6, 2),
    ):
        for _ in range(rounds):
            one_round(driver, difference)
            assert driver.mode == Mode.congestion_avoidance
        assert packets(driver) == last


def test_an_application_limited_round_may_lower_the_window():
    driver = in_avoidance()
    one_round(driver, 10, app_limited=True)
    assert packets(driver) == 49


def test_a_lone_flow_keeps_alpha_to_beta_packets_in_the_queue():
    path = Path(rate=1.25e6, base_rtt=50 * MILLISECOND)
    rounds = AckRounds(_core.make_controller("vegas"), path).run(20 * SECOND)
    serialisation = DATAGRAM / path.rate * 1e9
    steady = [row for row in rounds.rows if row.now > 10 * SECOND]
    queue = [(row.rtt - path.base_rtt) / serialisation for row in steady]
    assert 1 <= min(queue) and max(queue) <= 8
    assert rounds.throughput(10 * SECOND, 20 * SECOND) > 0.99 * path.rate
    assert rounds.lost == 0


@pytest.mark.parametrize("rounds", [0, 1])
@pytest.mark.parametrize("event", ["loss", "persistent congestion"])
def test_samples_from_before_a_cut_do_not_count_after_it(event, rounds):
    def windows(early):
        driver = in_avoidance()
        for _ in range(rounds):
            one_round(driver, 3)
        driver.ack(0, after=RTT, rtt=RTT if early else 0, min_rtt=RTT)
        if event == "loss":
            driver.loss(sent_time=driver.now)
        else:
            driver.controller.on_persistent_congestion(driver.now)
        driver.now += RTT
        seen = []
        for _ in range(4):
            driver.ack(0, after=RTT, rtt=3 * RTT, min_rtt=RTT, sent_time=driver.now)
            driver.ack(after=RTT, rtt=0, min_rtt=RTT, round_start=True)
            seen.append((driver.window, driver.mode))
        return seen

    assert windows(early=True) == windows(early=False)


def test_slow_start_that_ends_below_one_packet_in_the_queue_does_not_raise_the_window():
    driver = make(gamma=0.5)
    while driver.mode == Mode.slow_start:
        before = packets(driver)
        one_round(driver, 0.7, acked=0)
    assert packets(driver) <= before
