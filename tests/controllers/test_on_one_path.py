"""Each controller alone on a path with scripted losses: what equals what, and what is used."""

import math

import pytest
from helpers.ack_rounds import DATAGRAM, MILLISECOND, SECOND, AckRounds, Path

from quicgym import _core, controllers

NAMES = controllers.names()
EXTENDED = {"gain_cycle": [1.25, 1, 1, 0.75, 1, 1], "entry_gain_minimum": [0]}
VARIANTS = {
    "bbr-smooth": {"alpha": [0.9], "smoothing_updates_rtprop": [0]},
    "bbr-extended": EXTENDED,
    "bbr-combined": {"alpha": [0.9], **EXTENDED},
}
"""What the high-latency report changes of BBR."""


def every(period):
    """Loses each packet whose number is a multiple of this; 0: none."""
    return lambda number: period > 0 and number % period == 0


def at_random(share):
    """Loses this share of the packets, the same ones in each run."""
    return lambda number: (number * 2654435761) % 2**32 < share * 2**32


def rows(name, parameters):
    path = Path(rate=5e5, base_rtt=50 * MILLISECOND, queue_packets=20)
    controller = _core.make_controller(name, parameters)
    rounds = AckRounds(controller, path, lose=every(101), seed=3).run(12 * SECOND)
    return [(row.now, row.window, row.snapshot.pacing_rate) for row in rounds.rows]


@pytest.mark.parametrize(
    "name, parameters, other, others",
    [
        *((name, {}, name, {}) for name in NAMES),
        *((name, {}, "bbr", changed) for name, changed in VARIANTS.items()),
        *(("ebcc", {"gamma": math.inf, "beta": beta}, "bbr", {}) for beta in (0.0, 0.5)),
        # Without congestion, the delayed window update changes nothing.
        *((f"{name}+", {"period_ms": 60_000}, name, {}) for name in ("newreno", "cubic")),
    ],
)
def test_one_does_what_the_other_does(name, parameters, other, others):
    found = rows(name, parameters)
    # Nobody sets the windows of the last two; on a short path LEDBAT++ grows slowly after a loss.
    assert len(found) > 1000 or name in ("ledbat++", "external", "guided")
    assert found == rows(other, others)


def test_different_controllers_do_different_things():
    of_bbr = rows("bbr", {})
    assert all(rows(name, {}) != of_bbr for name in (*VARIANTS, "ebcc"))


LOW = Path(125e3, 600 * MILLISECOND, 200)  # of the high-latency report


@pytest.mark.parametrize(
    "name, path, lose, seconds, share, rtts",
    [
        ("bbr", Path(1.25e6, 40 * MILLISECOND), every(0), (2, 20), 0.97, 1.15),
        ("bbr", Path(1.25e6, 100 * MILLISECOND, 200), at_random(0.02), (5, 20), 0.93, 3),
        *((name, LOW, every(0), (30, 120), 0.85, 3) for name in VARIANTS),
        ("bbr3", Path(1.25e6, 50 * MILLISECOND, 100), at_random(0.01), (10, 30), 0.8, 3),
        ("copa", Path(1.25e6, 50 * MILLISECOND), every(50), (10, 20), 0.95, 3),
        ("ibcca", Path(1.25e6, 100 * MILLISECOND, 100), every(0), (5, 30), 0.95, 3),
        ("vivace", Path(12.5e6, 30 * MILLISECOND, 1000), every(0), (5, 8), 0.85, 1.1),
        ("vivace", Path(2.5e6, 30 * MILLISECOND, 100), every(50), (10, 30), 0.7, 3),
    ],
)
def test_a_path_is_used_to_this_share_with_this_mean_rtt(name, path, lose, seconds, share, rtts):
    begin, end = (second * SECOND for second in seconds)
    rounds = AckRounds(_core.make_controller(name), path, lose=lose).run(end)
    assert rounds.throughput(begin, end) > share * path.rate
    steady = [row for row in rounds.rows if row.now > begin]
    assert sum(row.rtt for row in steady) / len(steady) < rtts * path.base_rtt
    if name == "bbr":
        assert rounds.rows[-1].snapshot.bandwidth_estimate == pytest.approx(path.rate, rel=0.03)
    if name == "ibcca":
        assert all(row.snapshot.mode != _core.ControllerMode.probe_rtt for row in rounds.rows)


@pytest.mark.parametrize("loss_period", [0, 7, 100])
@pytest.mark.parametrize("name", NAMES)
def test_any_path_is_survived_and_used(name, loss_period):
    path = Path(rate=2.5e5, base_rtt=30 * MILLISECOND, queue_packets=10)
    lose = every(loss_period)
    rounds = AckRounds(_core.make_controller(name), path, lose=lose).run(10 * SECOND)
    assert all(row.window >= 2 * DATAGRAM for row in rounds.rows)
    # LEDBAT++ gives a tenth of its time to slowdowns.
    least = 0.1 if loss_period else 0.85 if name == "ledbat++" else 0.9
    assert rounds.throughput(2 * SECOND, 10 * SECOND) > least * path.rate
