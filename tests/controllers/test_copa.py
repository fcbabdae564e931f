"""Copa, rule by rule: sections 2.1 and 2.2 of Arun and Balakrishnan's paper (NSDI 2018)."""

import pytest
from helpers.ack_rounds import DATAGRAM, MILLISECOND, SECOND, AckRounds, Driver, Path

from quicgym import _core

Mode = _core.ControllerMode
RTT = 100 * MILLISECOND


def make(**parameters):
    driver = Driver(_core.make_controller("copa", parameters), RTT)
    driver.ack(0)  # the handshake: RTTmin and RTTstanding are known
    return driver


def packets(driver):
    return driver.window / DATAGRAM


def queue(driver):
    return driver.controller.snapshot.queue_estimate_packets


def measure(driver, delay_ms):
    """Only ACKs with this queueing delay for as long as RTTstanding looks back; none has data."""
    rtt = RTT + round(delay_ms * MILLISECOND)
    for _ in range(3):
        driver.ack(0, after=rtt // 2, rtt=rtt, min_rtt=RTT)


def one_round(driver, delay_ms=0.0, acks=1, **arguments):
    """A round of `acks` ACKs that measure this queueing delay; the first of them begins it."""
    measure(driver, delay_ms)
    rtt = RTT + round(delay_ms * MILLISECOND)
    for number in range(acks):
        driver.ack(rtt=rtt, min_rtt=RTT, round_start=number == 0, **arguments)


def inverse_delta(driver, delay_ms):
    """1 / delta as it is in force, from the step of one acknowledged packet while v is 1."""
    measure(driver, delay_ms)
    before = packets(driver)
    driver.ack(DATAGRAM, rtt=RTT + delay_ms * MILLISECOND, min_rtt=RTT)
    return abs(packets(driver) - before) * before


def in_avoidance(window=40, **parameters):
    """Out of slow start with this window; the queue is empty since."""
    driver = make(**parameters)
    driver.ack((window - 10) * DATAGRAM, after=RTT)
    measure(driver, 9000)
    assert (driver.mode, packets(driver)) == (Mode.congestion_avoidance, window)
    for _ in range(4):  # until RTTmax has forgotten
        measure(driver, 0)
    return driver


def test_slow_start_doubles_the_window_each_round_below_the_target_rate():
    driver = make()
    windows = []
    for _ in range(4):
        one_round(driver, acked=driver.window)
        windows.append(packets(driver))
    assert windows == [20, 40, 80, 160]
    assert driver.mode == Mode.slow_start


# With 10 packets and delta 0.5, 10 * d_q = 2 * (100 ms + d_q) at d_q = 25 ms.
@pytest.mark.parametrize("delta, target_ms", [(0.5, 25), (0.25, 66), (1, 11)])
def test_slow_start_ends_when_the_rate_exceeds_the_target_of_equation_1(delta, target_ms):
    for difference, mode in [(-1, Mode.slow_start), (1, Mode.congestion_avoidance)]:
        driver = make(delta=delta)
        one_round(driver, target_ms + difference, acked=0)
        assert driver.mode == mode


@pytest.mark.parametrize("delay_ms, sign", [(0, 1), (1, 1), (20, -1)])
def test_the_window_moves_by_v_over_delta_packets_per_round_towards_the_target(delay_ms, sign):
    driver = in_avoidance(40)
    one_round(driver, delay_ms, acks=20)  # 40 packets
    assert packets(driver) - 40 == pytest.approx(sign * 2, rel=0.1)


def test_the_window_changes_by_at_most_itself_per_round():
    driver = in_avoidance(40, delta=0.03, velocity_rounds=0)
    for _ in range(8):
        before = packets(driver)
        one_round(driver, 0, acked=2 * DATAGRAM)
    assert packets(driver) == pytest.approx(before + 2)


def test_velocity_doubles_after_three_rounds_in_one_direction_and_starts_anew_on_a_turn():
    driver = in_avoidance(400)
    for _ in range(2):
        one_round(driver, 0, acked=0)
    changes = []
    for _ in range(7):
        before = packets(driver)
        one_round(driver, 0, acked=200 * DATAGRAM)
        changes.append((packets(driver) - before) / 200 * before / 2)
    assert changes == pytest.approx([1, 1, 1, 1, 2, 4, 8], rel=0.02)
    before = packets(driver)
    one_round(driver, 50, acked=200 * DATAGRAM)
    assert (before - packets(driver)) / 200 * before / 2 == pytest.approx(1, rel=0.02)


def test_rtt_standing_is_the_lowest_of_half_a_smoothed_rtt():
    driver = in_avoidance(40)
    # Single delayed packets, as a busy receiver makes them, are no queue.
    for _ in range(20):
        driver.ack(after=RTT // 20, rtt=RTT + 80 * MILLISECOND)
        driver.ack(after=RTT // 20, rtt=RTT)
        assert queue(driver) == 0
    for _ in range(20):
        driver.ack(after=RTT // 10, rtt=RTT + 25 * MILLISECOND)
    assert queue(driver) == pytest.approx(packets(driver) * 25 / 125)


def test_rtt_min_is_forgotten_after_ten_seconds():
    driver = in_avoidance(40)
    for _ in range(9):
        driver.ack(after=SECOND, rtt=2 * RTT)
    assert driver.controller.snapshot.round_trip_estimate == RTT
    for _ in range(3):
        driver.ack(after=SECOND, rtt=2 * RTT)
    assert driver.controller.snapshot.round_trip_estimate == 2 * RTT


BUSY = 400  # ms of queueing delay, far above the target


def filled(rounds=20, **parameters):
    """In avoidance with 40 packets, after rounds in which the queue never empties."""
    driver = in_avoidance(40, velocity_rounds=1000, min_rtt_window_s=1000, **parameters)
    for _ in range(rounds):
        one_round(driver, BUSY, acked=0)
    return driver


def test_competitive_mode_begins_after_five_rtts_without_a_nearly_empty_queue():
    driver = filled(0)
    seen = []
    for _ in range(12):
        driver.ack(
            0, after=RTT + BUSY * MILLISECOND, rtt=RTT + BUSY * MILLISECOND, round_start=True
        )
        before = packets(driver)
        driver.ack(DATAGRAM, rtt=RTT + BUSY * MILLISECOND)
        seen.append((before - packets(driver)) * before)
    # One more packet in each round that begins in competitive mode.
    assert seen == pytest.approx([2] * 5 + [3, 4, 5, 6, 7, 8, 9], rel=0.02)


def test_a_nearly_empty_queue_ends_competitive_mode_and_resets_delta():
    driver = filled()
    assert inverse_delta(driver, BUSY) > 10
    # RTTmax - RTTmin is 400 ms, so up to 40 ms are nearly empty.
    assert inverse_delta(driver, 39) == pytest.approx(2, rel=0.02)
    assert inverse_delta(filled(), 45) > 10


def test_a_delay_within_what_one_ack_acknowledges_is_nearly_empty():
    def seen(packets_per_ack):
        driver = filled(0)
        for _ in range(12):
            # 60 ms of queueing delay, and 25 ms for each packet at the delivery rate.
            driver.ack(
                packets_per_ack * DATAGRAM,
                after=160 * MILLISECOND,
                rtt=160 * MILLISECOND,
                rate=40 * DATAGRAM,
                round_start=True,
            )
        return inverse_delta(driver, 60)

    assert seen(3) == pytest.approx(2, rel=0.02)
    assert seen(2) > 4


@pytest.mark.parametrize("signal", [Driver.loss, Driver.ecn])
def test_competitive_mode_halves_one_over_delta_once_per_round_trip_of_losses(signal):
    driver = filled()
    before = inverse_delta(driver, BUSY)
    for _ in range(2):
        signal(driver, sent_time=driver.now - 1)
    assert inverse_delta(driver, BUSY) == pytest.approx(before / 2, rel=0.02)
    for _ in range(10):
        signal(driver, after=RTT, sent_time=driver.now + 1)
    assert inverse_delta(driver, BUSY) == pytest.approx(2, rel=0.02)  # delta is at most its default


def test_competitive_mode_can_be_switched_off():
    assert inverse_delta(filled(competitive_mode=0), BUSY) == pytest.approx(2, rel=0.02)


def test_pacing_is_twice_the_window_per_rtt_standing():
    driver = in_avoidance(40)
    assert driver.controller.pacing_rate == pytest.approx(2 * driver.window / 0.1)


def test_a_loss_changes_nothing_in_default_mode():
    driver = in_avoidance(40)
    driver.loss()
    assert packets(driver) == 40
    one_round(driver, 0, acked=40 * DATAGRAM)
    assert packets(driver) == pytest.approx(42)


def lossy_round(driver, lost, acked):
    """Two round-trip times and the clock's smallest step, with so many packets of each kind."""
    driver.loss(lost * DATAGRAM, after=2 * RTT + 1)
    driver.ack(acked * DATAGRAM, min_rtt=RTT, app_limited=True)  # which may cut, and not grow


@pytest.mark.parametrize(
    "lost, acked, share",
    [(7, 14, 0.7), (6, 14, 1), (7, 17, 1), (9, 21, 1), (10, 21, 0.7)],  # above 20 and 30% alone
)
def test_a_loss_rate_above_30_percent_of_more_than_20_packets_leaves_70_percent(lost, acked, share):
    driver = in_avoidance(40)
    lossy_round(driver, lost, acked)
    assert packets(driver) == pytest.approx(40 * share)
    lossy_round(driver, 0, 100)  # each packet is counted once
    assert packets(driver) == pytest.approx(40 * share)


def test_the_loss_rate_is_judged_after_two_round_trip_times():
    driver = in_avoidance(40)
    lossy_round(driver, 0, 21)
    driver.loss(10 * DATAGRAM, after=2 * RTT)
    driver.ack(11 * DATAGRAM, min_rtt=RTT, app_limited=True)
    assert packets(driver) == 40
    driver.ack(0, after=1, min_rtt=RTT, app_limited=True)
    assert packets(driver) == pytest.approx(28)


def test_acks_without_an_rtt_sample_do_not_judge_the_loss_rate_at_once():
    driver = in_avoidance(40)
    lossy_round(driver, 0, 21)
    for _ in range(4):
        driver.loss(20 * DATAGRAM, after=MILLISECOND)
        driver.ack(21 * DATAGRAM, after=MILLISECOND, measured_rtt=0, min_rtt=RTT, app_limited=True)
    assert packets(driver) == 40


def test_the_response_to_a_high_loss_rate_can_be_switched_off():
    driver = in_avoidance(40, loss_response=0)
    lossy_round(driver, 30, 10)
    assert packets(driver) == 40


def test_persistent_congestion_leaves_two_packets_and_slow_start():
    driver = in_avoidance(40)
    driver.controller.on_persistent_congestion(driver.now)
    assert (packets(driver), driver.mode) == (2, Mode.slow_start)
    one_round(driver, 0, acked=2 * DATAGRAM)
    assert packets(driver) == 4


def test_an_application_limited_sender_does_not_grow():
    driver = in_avoidance(40)
    one_round(driver, 0, app_limited=True)
    assert packets(driver) == 40
    one_round(driver, 50, app_limited=True)
    assert packets(driver) < 40


def test_a_lone_flow_keeps_a_short_queue_that_empties_and_the_path_full():
    path = Path(rate=1.25e6, base_rtt=50 * MILLISECOND)
    controller = _core.make_controller("copa", {"competitive_mode": 0})
    rounds = AckRounds(controller, path).run(20 * SECOND)
    steady = [row.rtt - path.base_rtt for row in rounds.rows if row.now > 10 * SECOND]
    packets = [delay / (DATAGRAM / path.rate * 1e9) for delay in steady]
    # Figure 1 of the paper: the queue swings between 0 and 2.5 / delta packets around 1.25 / delta.
    assert min(packets) <= 1.5 and max(packets) <= 9
    assert 1 <= sum(packets) / len(packets) <= 5
    assert rounds.throughput(10 * SECOND, 20 * SECOND) > 0.98 * path.rate
