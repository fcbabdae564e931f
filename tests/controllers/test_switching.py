"""Several controllers on one connection: what standing by and taking over do to each family."""

import random

import pytest
from helpers.ack_rounds import DATAGRAM, MILLISECOND, SECOND, AckRounds, Driver, Path
from helpers.endpoints import Pair, make_flow
from hypothesis import given, settings
from hypothesis import strategies as st

from quicgym import _core, controllers
from quicgym.envs.actions import ACTION_VERSION, choices

Mode = _core.ControllerMode
RTT = 100 * MILLISECOND
RATE = 1.25e6  # bytes per second
BDP = RATE * RTT * 1e-9
MEMBERS = controllers.switching_members()
LOSS_BASED = ("newreno", "cubic", "vegas", "newreno+", "cubic+", "prague")
OF_THEIR_OWN = ("bbr3", "copa", "vivace")
BBR_FAMILY = tuple(name for name in MEMBERS if name not in (*LOSS_BASED, *OF_THEIR_OWN))
every_member = pytest.mark.parametrize("name", MEMBERS)
every_loss_based = pytest.mark.parametrize("name", LOSS_BASED)
every_bbr = pytest.mark.parametrize("name", BBR_FAMILY)


def make(active):
    return _core.make_controller("switching", {"active": MEMBERS.index(active)})


def switch(controller, active):
    controller.set_parameters({"active": MEMBERS.index(active)})


def steady(active):
    """A few rounds at the bottleneck's rate, with a loss: no search for the rate goes on."""
    driver = Driver(make(active), RTT)
    for _ in range(10):
        driver.ack(int(BDP), after=RTT, rate=RATE, round_start=True, in_flight=int(2.5 * BDP))
    driver.ack(rate=RATE, in_flight=int(BDP))
    driver.loss(in_flight=int(BDP))
    for _ in range(3):
        driver.ack(int(BDP), after=RTT + 1, rate=RATE, round_start=True, in_flight=int(BDP))
    return driver


def searching(active):
    """After the handshake."""
    driver = Driver(make(active), RTT)
    driver.ack(0)
    return driver


def rounds_of(driver, count, **arguments):
    """Rounds of a whole window each, the next one longer after the last than a round trip."""
    for _ in range(count):
        arguments.setdefault("in_flight", int(BDP))
        driver.controller.on_packet_sent(driver.now, DATAGRAM, int(BDP))
        driver.ack(driver.window, after=RTT + 1, rate=RATE, round_start=True, **arguments)


def test_the_members_are_the_actions_of_switch_and_none_changes_its_place():
    assert ACTION_VERSION == 1
    assert MEMBERS == choices("switch")
    assert MEMBERS == (
        *("newreno", "cubic", "vegas", "bbr", "bbr-smooth", "bbr-extended", "bbr-combined"),
        *("ebcc", "ibcca", "newreno+", "cubic+", "bbr3", "copa", "vivace", "prague"),
    )
    description = controllers.find("switching").parameter("active").description
    for index, name in enumerate(MEMBERS):
        assert f"{index} {name}" in description


def test_members_have_the_parameters_with_which_published_policies_were_trained():
    assert controllers.find("ibcca").complete()["rise_restarts_cycle"] == [0.0]
    others = {name: controllers.switching_parameters(name) for name in MEMBERS}
    assert others.pop("ibcca") == {"rise_restarts_cycle": [1.0]}
    standard = {"slow_start": [0.0]}
    assert others.pop("copa") == {"loss_response": [0.0]}
    hybrid = {"probing_pairs": [2.0], "double_check": [0.0], "swing_buffer": [2.0]}
    assert others.pop("vivace") == hybrid
    started = {"newreno": standard, "cubic": standard, "newreno+": standard, "cubic+": standard}
    assert {name: values for name, values in others.items() if values} == started


@every_loss_based
def test_a_window_is_taken_over_and_slow_start_is_not_begun_again(name):
    driver = steady("bbr")
    switch(driver.controller, name)
    assert driver.window == pytest.approx(BDP + 3 * DATAGRAM, abs=DATAGRAM)
    assert driver.mode != Mode.slow_start
    before = driver.window
    rounds_of(driver, 5)
    assert before < driver.window < before + 10 * DATAGRAM


@every_loss_based
@pytest.mark.parametrize("former", ["bbr", "cubic", "bbr that ignores a loss"])
def test_a_search_that_goes_on_is_continued(former, name):
    former, *lost = former.split(" ", 1)
    driver = searching(former)
    if lost:
        driver.loss(in_flight=10 * DATAGRAM)
        for window in (20, 40, 80):
            driver.ack(window * DATAGRAM // 2, after=RTT + 1, rate=1e5 * window, round_start=True)
        assert driver.mode == Mode.startup
    switch(driver.controller, name)
    assert driver.mode == Mode.slow_start
    before = driver.window
    rounds_of(driver, 5 if lost else 4)
    assert driver.window > 3 * before


def test_probe_rtts_four_packets_are_not_handed_over_and_it_does_not_come_back():
    driver = steady("bbr")
    driver.ack(after=11 * SECOND, rate=RATE, rtt=2 * RTT, in_flight=int(BDP))
    assert driver.mode == Mode.probe_rtt and driver.window == 4 * DATAGRAM
    switch(driver.controller, "cubic")
    assert driver.window > 0.9 * BDP
    rounds_of(driver, 1)
    switch(driver.controller, "bbr")
    rounds_of(driver, 10)
    assert driver.mode == Mode.probe_bw


def test_the_smallest_window_after_persistent_congestion_is_handed_over():
    for former in ("bbr", "newreno"):
        driver = steady(former)
        driver.controller.on_persistent_congestion(driver.now)
        switch(driver.controller, "cubic")
        assert driver.window <= 4 * DATAGRAM


@every_bbr
def test_bbrs_model_is_current_and_its_window_finds_the_target(name):
    driver = steady("newreno")
    switch(driver.controller, name)
    snapshot = driver.controller.snapshot
    assert snapshot.bandwidth_estimate == RATE
    assert snapshot.round_trip_estimate == RTT
    rounds_of(driver, 20)
    assert driver.mode == Mode.probe_bw
    assert 0.9 * BDP < driver.window <= 2 * BDP + 3 * DATAGRAM


def back_after_a_slower_one(name):
    driver = steady(name)
    switch(driver.controller, "vegas")
    for _ in range(40):
        driver.ack(after=RTT + 1, rate=RATE / 10, round_start=True, in_flight=10 * DATAGRAM)
    switch(driver.controller, name)
    return driver


@every_bbr
def test_anothers_rate_does_not_lower_the_bandwidth(name):
    driver = back_after_a_slower_one(name)
    snapshots = [driver.controller.snapshot]
    # Packets that vegas sent still say nothing; those sent from now on do.
    driver.ack(after=1, rate=RATE / 10, in_flight=10 * DATAGRAM)
    snapshots.append(driver.controller.snapshot)
    assert [snapshot.bandwidth_estimate for snapshot in snapshots] == [RATE, RATE]
    for later in (1, 0):  # a packet may leave in the moment of the switch
        driver = driver if later else back_after_a_slower_one(name)
        driver.controller.on_packet_sent(driver.now + later, DATAGRAM, 11 * DATAGRAM)
        driver.ack(after=RTT + 2 * later, rate=RATE / 10, in_flight=10 * DATAGRAM)
        assert driver.controller.snapshot.bandwidth_estimate == RATE / 10


@pytest.mark.parametrize("name", ["bbr", "bbr-extended", "bbr-combined", "ebcc"])
def test_an_old_rtprop_is_measured_when_bbr_is_active_again(name):
    driver = steady(name)
    switch(driver.controller, "cubic")
    for _ in range(20):
        driver.ack(after=SECOND, rate=RATE, rtt=2 * RTT, in_flight=int(2 * BDP))
    switch(driver.controller, name)
    assert driver.mode == Mode.probe_bw
    driver.ack(after=1, rate=RATE, rtt=2 * RTT, in_flight=int(2 * BDP))
    assert driver.mode == Mode.probe_rtt


def test_ibcca_does_not_answer_for_what_others_were_blocked_by():
    driver = steady("ibcca")
    switch(driver.controller, "cubic")
    for delay in (110, 120, 130, 140):
        driver.ack(after=RTT, rate=RATE, rtt=delay * MILLISECOND, round_start=True, blocked=1)
    switch(driver.controller, "ibcca")
    driver.ack(after=1, rate=RATE, rtt=140 * MILLISECOND)
    assert driver.mode == Mode.probe_bw
    driver.ack(after=1, rate=RATE, rtt=140 * MILLISECOND, blocked=1)
    assert driver.mode == Mode.probe_rtt


@every_member
def test_a_loss_is_answered_by_the_active_one_and_once(name):
    """Those who stood by know of the loss, and that the packets before it are answered for."""
    driver = steady(name)
    sent_time = driver.now - RTT
    driver.loss(sent_time=sent_time, in_flight=int(BDP))
    switch(driver.controller, "newreno" if name != "newreno" else "cubic")
    before = driver.window
    driver.loss(after=1, sent_time=sent_time + 1, in_flight=int(BDP))
    assert driver.window == before


@settings(max_examples=20, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    interval=st.sampled_from([10 * MILLISECOND, RTT, 500 * MILLISECOND]),
    queue=st.sampled_from([5, 50, 400]),
    loss_period=st.sampled_from([0, 100, 1000]),
)
def test_switched_for_ever_the_path_is_used_and_the_window_sane(seed, interval, queue, loss_period):
    choice = random.Random(seed)
    controller = make("newreno")
    path = Path(rate=2.5e5, base_rtt=50 * MILLISECOND, queue_packets=queue)
    lose = lambda number: loss_period > 0 and number % loss_period == 0  # noqa: E731
    rounds = AckRounds(controller, path, lose=lose, seed=seed)
    for step in range(1, 20 * SECOND // interval):
        rounds.run(step * interval)
        switch(controller, choice.choice(MEMBERS))
        assert 2 * DATAGRAM <= controller.window_bytes < 1000 * DATAGRAM
        assert 0 < controller.pacing_rate < 1e9
    assert rounds.throughput(5 * SECOND, 20 * SECOND) > 0.5 * path.rate


@pytest.mark.parametrize("name", ["newreno", "cubic", "vegas", "newreno+", "cubic+"])
def test_persistent_congestion_ends_the_recovery_period(name):
    driver = Driver(_core.make_controller(name))
    driver.ack(30 * DATAGRAM, round_start=True)
    driver.loss()
    assert driver.mode == Mode.recovery
    driver.controller.on_persistent_congestion(driver.now)
    assert driver.mode == Mode.slow_start
    # Packets from before the loss: their acknowledgements let the window grow.
    for round_start in (False, True, False):
        driver.ack(2 * DATAGRAM, after=1, round_start=round_start)
    assert driver.window >= 4 * DATAGRAM


def test_cubic_takes_over_with_its_plateau_at_the_window_and_not_where_it_lost_last():
    driver = Driver(make("cubic"), RTT)
    driver.ack(190 * DATAGRAM)
    driver.loss()
    driver.ack(0, after=RTT + 1)
    switch(driver.controller, "newreno")
    driver.loss(after=RTT)
    switch(driver.controller, "cubic")
    assert driver.window == 70 * DATAGRAM
    driver.ack(0, after=RTT + 1)
    rounds_of(driver, 10)
    assert 75 * DATAGRAM < driver.window < 82 * DATAGRAM


def test_vegas_that_takes_over_forgets_the_rtt_of_anothers_window():
    driver = steady("newreno")
    driver.ack(0, after=RTT, rtt=RTT, min_rtt=RTT)
    switch(driver.controller, "vegas")
    window = driver.window
    driver.ack(0, after=RTT, rtt=2 * RTT, min_rtt=RTT)
    driver.ack(0, after=RTT, rtt=0, min_rtt=RTT, round_start=True)
    assert driver.window == window - DATAGRAM


def test_bbr_that_takes_over_paces_at_the_bandwidth_of_now():
    driver = steady("bbr")
    switch(driver.controller, "cubic")
    driver.ack(after=RTT, rate=3 * RATE, round_start=True, in_flight=int(BDP))
    switch(driver.controller, "bbr")
    assert driver.controller.snapshot.bandwidth_estimate == 3 * RATE
    assert driver.controller.pacing_rate > 2 * RATE  # the gain is 0.75 at least


def test_bbr3_begins_with_the_window_and_a_search():
    driver = steady("newreno")
    window = driver.window
    switch(driver.controller, "bbr3")
    assert driver.window == window
    assert driver.mode == Mode.startup  # its own was never done


@pytest.mark.parametrize("name", ["copa", "vivace"])
def test_copa_and_vivace_begin_with_the_window_and_go_on_with_a_search(name):
    driver = steady("newreno")
    window = driver.window
    switch(driver.controller, name)
    in_flight = driver.window
    if name == "vivace":
        in_flight = driver.controller.pacing_rate * RTT * 1e-9
    assert in_flight == pytest.approx(window, rel=0.01)
    assert driver.mode == Mode.congestion_avoidance
    other = searching("bbr")
    switch(other.controller, name)
    assert other.mode == Mode.slow_start


def in_cruise_of_bbr3():
    driver = Driver(make("bbr3"), RTT)
    for _ in range(15):
        driver.controller.on_packet_sent(driver.now, DATAGRAM, driver.window)
        driver.ack(int(BDP), after=RTT, rate=RATE, round_start=True, in_flight=int(0.8 * BDP))
    assert driver.mode == Mode.probe_bw
    return driver


def test_bbr3_comes_back_with_its_model_and_drains_first():
    driver = in_cruise_of_bbr3()
    switch(driver.controller, "cubic")
    for _ in range(10):
        driver.ack(int(BDP), after=RTT + 1, rate=RATE / 10, round_start=True, rtt=2 * RTT)
    driver.ack(int(BDP), after=RTT, rate=2 * RATE, round_start=True, rtt=2 * RTT)
    switch(driver.controller, "bbr3")
    snapshot = driver.controller.snapshot
    assert snapshot.bandwidth_estimate == 2 * RATE
    assert snapshot.round_trip_estimate == RTT
    assert snapshot.probe_bw_phase == _core.ProbeBwPhase.down
    assert snapshot.inflight_shortterm_bytes == 0
    assert 1.7 * RATE < driver.controller.pacing_rate < 2 * RATE


def test_bbr3_does_not_take_the_losses_of_others_for_a_probes():
    driver = in_cruise_of_bbr3()
    bound = driver.controller.snapshot.inflight_longterm_bytes
    switch(driver.controller, "cubic")
    driver.ack(int(BDP), after=RTT, rate=RATE, round_start=True)
    for number in range(1000, 1050):
        driver.packet_lost(number, in_flight_at_send=int(BDP), lost_since_sent=int(BDP / 2))
    driver.loss(50 * DATAGRAM)
    switch(driver.controller, "bbr3")
    snapshot = driver.controller.snapshot
    assert snapshot.inflight_longterm_bytes == bound
    assert snapshot.inflight_shortterm_bytes == 0


def test_bbr3_measures_an_old_rtt_when_it_is_active_again_and_leaves_that_by_a_switch():
    driver = in_cruise_of_bbr3()
    switch(driver.controller, "cubic")
    for _ in range(10):
        driver.ack(after=SECOND, rate=RATE, rtt=2 * RTT, in_flight=int(2 * BDP))
    switch(driver.controller, "bbr3")
    driver.ack(after=1, rate=RATE, rtt=2 * RTT, in_flight=int(2 * BDP))
    assert driver.mode == Mode.probe_rtt
    switch(driver.controller, "cubic")
    assert driver.window > 0.9 * BDP  # not the window of ProbeRTT
    driver.ack(after=RTT, rate=RATE, rtt=2 * RTT, in_flight=int(2 * BDP))
    switch(driver.controller, "bbr3")
    driver.ack(after=1, rate=RATE, rtt=2 * RTT, in_flight=int(2 * BDP))
    assert driver.mode == Mode.probe_bw


def test_copa_does_not_take_anothers_queue_for_a_competitor():
    driver = searching("cubic")
    for rtt in (RTT, 3 * RTT // 2):  # in the end far from empty for more than 5 RTTs
        for _ in range(40):
            driver.ack(DATAGRAM, after=RTT, rtt=rtt, round_start=True, rate=RATE)
    switch(driver.controller, "copa")
    before = driver.window
    driver.ack(10 * DATAGRAM, after=1, rtt=3 * RTT // 2, rate=RATE)
    assert driver.window < before  # above the target of default mode


def test_vivace_measures_after_the_switch_and_hands_over_what_its_rate_keeps_in_flight():
    driver = steady("newreno")
    window = driver.window
    switch(driver.controller, "vivace")
    assert driver.window > 2 * window
    switch(driver.controller, "newreno")
    assert driver.window == pytest.approx(window, abs=DATAGRAM)
    switch(driver.controller, "vivace")
    rate = driver.controller.pacing_rate
    # Acknowledgements of packets from before the switch, and persistent loss of them.
    for _ in range(5):
        driver.packet_lost(1, sent_time=driver.now - RTT)
        driver.ack(after=1, rate=RATE, rtt=3 * RTT, sent_time=driver.now - RTT)
    assert driver.controller.pacing_rate == pytest.approx(rate, rel=0.06)  # one probing step


@pytest.mark.parametrize("marked_meanwhile", [False, True])
def test_prague_does_not_learn_alpha_from_marks_on_anothers_packets(marked_meanwhile):
    driver = steady("prague")
    switch(driver.controller, "cubic")
    for _ in range(20):
        if marked_meanwhile:
            driver.ecn(1)
        driver.ack(20 * DATAGRAM, after=RTT + 1, round_start=True)
    window = driver.window
    switch(driver.controller, "prague")
    assert driver.window == window
    driver.ecn(1, after=2 * RTT, sent_time=driver.now + 1)
    # Alpha is still 1, as before the first mark: half of the window goes.
    assert driver.window / window == pytest.approx(0.5, abs=0.01)


class Codepoints(Pair):
    """Keeps the codepoints of the data since they were last cleared."""

    def __init__(self, flow):
        self.codepoints = []
        super().__init__(flow)

    def carry(self, direction, now, datagram):
        if direction == "data":
            self.codepoints.append(datagram[2])
        super().carry(direction, now, datagram)


@pytest.mark.parametrize("ecn, classic", [(False, 0), (True, 2)])
def test_the_codepoint_follows_the_controller_in_force(ecn, classic):
    flow = make_flow(controller="switching", ecn=ecn, flow_control_window_bytes=60_000)
    pair = Codepoints(flow).run_until(SECOND)
    assert set(pair.codepoints[1:]) == {classic}  # the first is the handshake's
    for name, expected in (("prague", 1), ("copa", classic)):
        pair.codepoints.clear()
        pair.sender.set_parameters(pair.now, {"active": MEMBERS.index(name)})
        pair.run_until(pair.now + SECOND)
        assert len(pair.codepoints) > 10 and set(pair.codepoints) == {expected}
