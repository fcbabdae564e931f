"""The example test cases of BBR version 3: draft-ietf-ccwg-bbr, appendix "BBR Example Test Cases".

The appendix has been in the draft's repository since July 2026; the cases count from A.1 in its
order. The draft speaks of variables of an implementation. Here a case sees what every
stack reports of a connection, so that it judges all of them alike: pacing rate, window, data in
flight, totals delivered and lost, RTT. The pacing rate over the bandwidth shows the state: 2.77 in
STARTUP, 0.5 in DRAIN, 0.9 in PROBE_DOWN, 1 in PROBE_CRUISE and PROBE_REFILL, 1.25 in PROBE_UP.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from quicgym.benchmarks.conformance.observed import PACKET_BYTES, Observed, require

RATE_MBPS, DELAY_MS = 20, 25
SETUP = "20 Mbps, RTT 50 ms, queue of 400 packets (3.9 BDP), one flow that always has data"
NEVER_S = 1e5
"""A change that no run lives to see."""
UP, DOWN, CRUISE, DRAIN = 1.25, 0.9, 1.0, 0.5

Fields = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """One test case.

    Attributes:
        section: Number in the appendix.
        title: Name of the behaviour.
        setup: How path and workload differ from SETUP.
        expected: Behaviour of a conforming sender.
        scenario: The scenario's fields; the argument is when the path or workload changes, in s.
        check: Raises Missed if the rows are not as expected; the second argument is that time.
        cue: Returns that time, from the rows of a run in which nothing changes. None: the fields
            have their times.
    """

    section: str
    title: str
    setup: str
    expected: str
    scenario: Callable[[float], Fields]
    check: Callable[[Observed, float], None]
    cue: Callable[[Observed], float] | None = None
    application_mbps: float | None = None


def path(
    duration_s: float,
    application: Mapping[str, Any] | None = None,
    reverse: Mapping[str, Any] | None = None,
    **bottleneck: Any,
) -> Fields:
    """Returns a scenario's fields: SETUP, but for what is given."""
    link = {"rate_mbps": RATE_MBPS, "delay_ms": DELAY_MS, "queue": {"limit": 400}, **bottleneck}
    fields: Fields = {
        "name": "conformance-bbr3",
        "duration_s": duration_s,
        "bottleneck": link,
        "access": {"rate_mbps": 1000, "delay_ms": 0},
        "flows": [{"application": dict(application or {"kind": "bulk"})}],
    }
    if reverse:
        fields["reverse"] = {"rate_mbps": RATE_MBPS, "delay_ms": DELAY_MS, **reverse}
    return fields


def steps(at_s: float, field: str, *values: float, every_s: float = 0) -> list[Fields]:
    """Returns a schedule of values from a time on."""
    return [{"at_s": at_s + i * every_s, field: value} for i, value in enumerate(values)]


def _constant(rate_mbps: float) -> Fields:
    return {"kind": "constant-rate", "rate_mbps": rate_mbps}


# ---- the states' begin and end -----------------------------------------------------------------


def _startup_end_s(seen: Observed) -> float:
    return float(seen.time[seen.startup_end()])


def _down_begin_s(seen: Observed) -> float:
    up = seen.spell("PROBE_UP", UP, seen.startup_end())
    return float(seen.time[seen.spell("PROBE_DOWN", DOWN, up.last).first])


def _in_up_s(seen: Observed) -> float:
    """Returns the time a round trip after PROBE_UP begins."""
    up = seen.spell("PROBE_UP", UP, seen.startup_end())
    return float(seen.time[up.first]) + seen.round_trip_s


def _refill_s(seen: Observed) -> float:
    """Returns about the begin of PROBE_REFILL, the round before PROBE_UP."""
    up = seen.spell("PROBE_UP", UP, seen.startup_end())
    return float(seen.time[up.first]) - 1.1 * seen.round_trip_s


# ---- the cases ---------------------------------------------------------------------------------


def _startup_on_plateau(seen: Observed, _: float) -> None:
    end = seen.startup_end()
    begin = seen.row(4 * seen.round_trip_s)
    full = begin + int(np.flatnonzero(seen.gain[begin:end] > 2.77 / 1.25)[0])
    passed = seen.rounds(full, end)
    require(3 <= passed <= 6, f"left STARTUP {passed:.1f} rounds after the rate was found")
    drain = seen.spell("DRAIN", DRAIN, end, reach=0.15)
    require(seen.time[drain.first] - seen.time[end] < 0.03, "no DRAIN followed STARTUP")
    cruise = seen.spell("PROBE_CRUISE", CRUISE, drain.last)
    found = float(np.median(seen.gain[cruise.first : cruise.last + 1]))
    require(abs(found - 1) < 0.02, f"the bandwidth was estimated at {found:.0%} of the path's")


def _startup_on_loss(seen: Observed, at: float) -> None:
    before, after = seen.row(at - 0.1), seen.row(at + 1.5)
    gain, later = float(seen.gain[before]), float(np.max(seen.gain[after:]))
    require(gain > 1.8, f"was not in STARTUP before the loss: paced at {gain:.2f}")
    require(later < gain / 2.2, f"still paced at {later:.2f} of the rate after the loss")


def _drain_on_inflight(seen: Observed, _: float) -> None:
    drain = seen.spell("DRAIN", DRAIN, seen.startup_end())
    left, begin = float(seen.in_flight[seen.after(drain)]), float(seen.in_flight[drain.first])
    require(begin > 1.5, f"DRAIN began with {begin:.2f} BDP in flight, no queue to drain")
    require(0.85 < left < 1.1, f"DRAIN ended with {left:.2f} BDP in flight")


def _drain_on_time(seen: Observed, at: float) -> None:
    drain = seen.spell("DRAIN", DRAIN, seen.row(at))
    passed = seen.rounds(drain.first, drain.last + 1)
    require(2 <= passed <= 3.6, f"DRAIN lasted {passed:.1f} rounds")
    left = float(seen.in_flight[seen.after(drain)])
    require(left > 1, f"DRAIN ended with {left:.2f} BDP in flight, not by its time")
    seen.spell("PROBE_BW", CRUISE, drain.last)


def _up_on_plateau(seen: Observed, _: float) -> None:
    up = seen.spell("PROBE_UP", UP, seen.startup_end())
    passed, lost = seen.rounds(up.first, up.last), float(seen.lost[up.last] - seen.lost[up.first])
    before = float(seen.gain[up.first - 3])
    require(abs(before - 1) < 0.1, f"paced at {before:.2f} before, not in PROBE_REFILL")
    require(lost == 0, f"PROBE_UP lost {lost:.0f} bytes")
    require(1.8 <= passed <= 5, f"PROBE_UP lasted {passed:.1f} rounds")
    down = seen.spell("PROBE_DOWN", DOWN, up.last)
    require(down.first - up.last <= 3, "no PROBE_DOWN followed PROBE_UP")


def _up_on_loss(seen: Observed, at: float) -> None:
    up = seen.spell("PROBE_UP", UP, seen.startup_end())
    require(seen.time[up.last] > at, "PROBE_UP ended before the loss")
    begin = int(np.flatnonzero(seen.lost > seen.lost[seen.row(at)])[0])
    passed = seen.rounds(begin, up.last)
    require(passed <= 2.5, f"PROBE_UP lasted {passed:.1f} rounds after the first loss")
    low = float(np.min(seen.gain[begin : seen.row(seen.time[begin] + 1)]))
    require(low < 0.95, f"paced at {low:.2f} at least after the loss, no PROBE_DOWN")
    window = float(seen.window[seen.row(seen.time[begin] + 0.5)])
    require(window < 0.9 * seen.window[begin - 1], "the window was not lowered (inflight_longterm)")


def _up_without_loss(seen: Observed, _: float) -> None:
    up = seen.spell("PROBE_UP", UP, seen.startup_end())
    passed = seen.rounds(up.first, up.last)
    require(passed >= 20, f"PROBE_UP ended after {passed:.1f} application-limited rounds")


def _down_on_inflight(seen: Observed, _: float) -> None:
    up = seen.spell("PROBE_UP", UP, seen.startup_end())
    down = seen.spell("PROBE_DOWN", DOWN, up.last)
    left = float(seen.in_flight[seen.after(down)])
    require(0.85 < left < 1.1, f"PROBE_DOWN ended with {left:.2f} BDP in flight")
    cruise = seen.spell("PROBE_CRUISE", CRUISE, down.last)
    passed = seen.rounds(cruise.first, cruise.last)
    require(passed > 2, f"PROBE_CRUISE lasted {passed:.1f} rounds")


def _down_on_time(seen: Observed, at: float) -> None:
    down = seen.spell("PROBE_DOWN", DOWN, seen.row(at))
    lasted = float(seen.time[down.last] - seen.time[down.first])
    require(1.5 < lasted < 3.2, f"PROBE_DOWN lasted {lasted:.1f} s")
    left = float(seen.in_flight[down.last])
    require(left > 1, f"PROBE_DOWN ended with {left:.2f} BDP in flight, not by its time")
    up = seen.spell("PROBE_UP", UP, down.last)
    passed = seen.rounds(down.last, up.first)
    require(passed < 2.5, f"{passed:.1f} rounds between PROBE_DOWN and PROBE_UP: not only REFILL")


def _probe_rtt(seen: Observed, at: float) -> None:
    found = seen.lowest_flights(at, 0.65)
    require(len(found) > 0, "never holds half a BDP in flight for 150 ms (PROBE_RTT)")
    low = found[0]
    lasted = float(seen.time[low.last] - seen.time[low.first])
    require(seen.time[low.first] < at + 6, f"PROBE_RTT began at {seen.time[low.first]:.1f} s only")
    require(lasted < 0.5, f"PROBE_RTT lasted {lasted:.2f} s")
    begin = float(seen.time[low.last]) + 0.2
    used = seen.used(begin, begin + 1)
    require(used > 0.9, f"{used:.0%} of the path were used after PROBE_RTT")


def _no_probe_rtt(seen: Observed, at: float) -> None:
    resumed = at + 6
    require(seen.row(resumed) > 0 and seen.in_flight[seen.row(resumed - 0.5)] < 0.05, "no pause")
    found = seen.lowest_flights(resumed + 0.1, 0.55)
    require(not found, "entered PROBE_RTT after the pause")


def _startup_with_aggregation(seen: Observed, _: float) -> None:
    cruise = seen.spell("PROBE_CRUISE", CRUISE, seen.startup_end(), reach=0.25)
    found = float(np.median(seen.gain[cruise.first : cruise.last + 1]))
    require(found > 0.95, f"the bandwidth was estimated at {found:.0%} of the path's")
    window = float(np.max(seen.window))
    require(window > 2.05, f"the window reached {window:.2f} BDP only (extra_acked)")


def _cruise_with_aggregation(seen: Observed, _: float) -> None:
    used = seen.used(3, 8)
    require(used > 0.95, f"{used:.0%} of the path were used")
    window = float(np.median(seen.window[seen.row(3) :]))
    require(window > 2.05, f"the window was {window:.2f} BDP (extra_acked)")


def _packet_sized_bdp(seen: Observed, _: float) -> None:
    least = float(np.min(seen.window_bytes)) / PACKET_BYTES
    require(least >= 4, f"the window fell to {least:.1f} packets")
    used = seen.used(10, 60)
    require(used > 0.95, f"{used:.0%} of the path were used")


def _ten_times_the_rate(seen: Observed, at: float) -> None:
    used = np.array([seen.used(t, t + 0.5) for t in np.arange(at, at + 14, 0.25)]) / 10
    require(bool(np.any(used > 0.9)), f"{used.max():.0%} of the new rate were reached in 14 s")
    late = seen.used(at + 10, at + 15) / 10
    require(late > 0.9, f"{late:.0%} of the new rate were used after 10 s")


def _a_tenth_of_the_rate(seen: Observed, at: float) -> None:
    soon = float(np.min(seen.gain[seen.row(at) : seen.row(at + 6)]))
    require(soon < 0.6, f"paced at {soon:.2f} of the old rate for 6 s (bw_shortterm)")
    late = float(np.median(seen.gain[seen.row(at + 20) :]))
    require(0.08 < late < 0.13, f"the bandwidth was estimated at {late:.3f} of the old (max_bw)")
    lost = seen.loss_rate(at + 20, at + 30)
    require(lost < 0.02, f"{lost:.1%} were lost after 20 s")


def _policer(seen: Observed, _: float) -> None:
    used, lost = seen.used(40, 60) / 0.5, seen.loss_rate(40, 60)
    require(used > 0.8, f"{used:.0%} of the policer's rate were used")
    require(lost < 0.05, f"{lost:.1%} were lost at the policer")


def _spurious_recovery(seen: Observed, at: float, over_s: float = 0.1) -> None:
    before, after = seen.row(at), seen.row(at + over_s)
    require(seen.lost[after] > seen.lost[before], "nothing was declared lost")
    soon = slice(after, seen.row(at + over_s + 0.3))
    window = float(seen.window[soon].max() / seen.window[before])
    require(window > 0.8, f"the window stayed at {window:.0%} of what it was")
    rate = float(seen.gain[soon].max())
    require(rate > 1.15, f"paced at {rate:.2f} at most afterwards, not in PROBE_UP again")


def _probe_rtt_in_startup(seen: Observed, _: float) -> None:
    found = np.flatnonzero(seen.gain[seen.row(4) :] > 2.2)
    require(len(found) > 0, "never paces at more than 2.2 times the bandwidth (STARTUP)")
    before = seen.in_flight[seen.row(4) : seen.row(4) + int(found[0])]
    halved = before < 0.6 * np.maximum.accumulate(before)
    require(bool(halved.any()), "data in flight never halved during STARTUP (PROBE_RTT)")


def _loss_in_up(seen: Observed, _: float) -> None:
    ups = seen.spells(UP, seen.startup_end())
    ups = [up for up in ups if seen.lost[seen.row(seen.time[up.last] + 0.1)] > seen.lost[up.first]]
    require(len(ups) > 1, f"{len(ups)} times PROBE_UP met loss; two are needed")
    for up in ups:
        begin = int(np.flatnonzero(seen.lost > seen.lost[up.first])[0])
        passed = seen.rounds(begin, max(begin, up.last))
        require(passed < 1.5, f"PROBE_UP lasted {passed:.1f} rounds after its first loss")
        highest = float(seen.window[up.first : begin + 1].max())
        later = float(seen.window[seen.row(seen.time[begin] + 0.5)])
        require(later < highest, f"the window stayed at {later:.2f} BDP after loss in PROBE_UP")


def _pause_in_refill(seen: Observed, at: float) -> None:
    before = float(seen.gain[seen.row(at)])
    rows = slice(seen.row(at), seen.row(at + 1))
    low = float(seen.gain[rows].min()) / before
    require(low > 0.97, f"the pacing rate fell to {low:.0%} after the pause")
    seen.spell("PROBE_UP", UP, seen.row(at))


CASES = (
    Case(
        "A.1", "STARTUP ends on a plateau of the rate", "none",
        "DRAIN follows three rounds of growth below 25%; the bandwidth is found within 2%",
        lambda at: path(3), _startup_on_plateau,
    ),
    Case(
        "A.2", "STARTUP ends on loss when application-limited",
        "the application writes 6 Mbps; the rate falls to 3 Mbps at 2 s; queue of 30 packets",
        "STARTUP ends, although samples are application-limited",
        lambda at: path(4, _constant(6), queue={"limit": 30},
                        rate_schedule=steps(2, "rate_mbps", 3)),
        lambda seen, at: _startup_on_loss(seen, 2),
    ),
    Case(
        "A.3", "DRAIN ends on data in flight", "none", "DRAIN ends with one BDP in flight",
        lambda at: path(3), _drain_on_inflight,
    ),
    Case(
        "A.4", "DRAIN ends on time", "the rate falls by 40% when DRAIN begins",
        "DRAIN ends after three rounds, with more than a BDP in flight",
        lambda at: path(3, rate_schedule=steps(at, "rate_mbps", 0.6 * RATE_MBPS)),
        _drain_on_time, _startup_end_s,
    ),
    Case(
        "A.5", "PROBE_UP ends on a plateau of the rate", "none",
        "PROBE_DOWN follows three rounds of growth below 25%, without loss",
        lambda at: path(8), _up_on_plateau,
    ),
    Case(
        "A.6", "PROBE_UP ends on loss when application-limited",
        "the application writes 16 Mbps; the rate falls to 12 Mbps at 4.5 s, with a queue of 60 "
        "packets",
        "PROBE_DOWN follows, and the window is lowered",
        lambda at: path(7, _constant(16), queue={"limit": 110},
                        rate_schedule=steps(4.5, "rate_mbps", 12)),
        lambda seen, at: _up_on_loss(seen, 4.5),
    ),
    Case(
        "A.7", "PROBE_UP goes on when application-limited without loss",
        "the application writes 16 Mbps", "PROBE_UP lasts 20 rounds and more",
        lambda at: path(6, _constant(16)), _up_without_loss,
    ),
    Case(
        "A.8", "PROBE_DOWN ends on data in flight", "none",
        "PROBE_CRUISE follows with one BDP in flight", lambda at: path(8), _down_on_inflight,
    ),
    Case(
        "A.9", "PROBE_DOWN ends after its time",
        "the rate falls by 10% when PROBE_DOWN begins; the RTT falls a little until then, so that "
        "no PROBE_RTT is due",
        "PROBE_REFILL and PROBE_UP follow after 2 to 3 s, without PROBE_CRUISE",
        lambda at: path(12, rate_schedule=steps(at, "rate_mbps", 0.9 * RATE_MBPS),
                        delay_schedule=steps(1, "delay_ms", 24.9, 24.8, 24.7, 24.6, every_s=0.5)),
        _down_on_time, _down_begin_s,
    ),
    Case(
        "A.10", "PROBE_RTT begins and ends", "the RTT rises to 55 ms at 4 s",
        "half a BDP is in flight for 200 ms within 5 s, and then the path is full again",
        lambda at: path(12, delay_schedule=steps(4, "delay_ms", DELAY_MS + 5)),
        lambda seen, at: _probe_rtt(seen, 4.0),
    ),
    Case(
        "A.11", "Idleness replaces PROBE_RTT",
        "the application writes 16 Mbps for 4 s, pauses for 6 s, and goes on; the RTT "
        "rises at 4.5 s",
        "no PROBE_RTT after the pause",
        lambda at: path(12, {"kind": "on-off", "rate_mbps": 16, "on_s": 4, "off_s": 6},
                        delay_schedule=steps(4.5, "delay_ms", DELAY_MS + 5)),
        lambda seen, at: _no_probe_rtt(seen, 4.0), application_mbps=16,
    ),
    Case(
        "A.12", "STARTUP finds the bandwidth with aggregation", "ACKs come in bursts every 25 ms",
        "the bandwidth is found, and the window exceeds two BDP",
        lambda at: path(3, reverse={"opens_every_ms": 25}), _startup_with_aggregation,
    ),
    Case(
        "A.13", "PROBE_CRUISE fills the path with aggregation", "ACKs come in bursts every 25 ms",
        "the path is used, and the window exceeds two BDP",
        lambda at: path(8, reverse={"opens_every_ms": 25}), _cruise_with_aggregation,
    ),
    Case(
        "A.14", "A BDP below a packet", "0.1 Mbps, RTT 4 ms",
        "the window never falls below four packets, and the path is used",
        lambda at: path(60, rate_mbps=0.1, delay_ms=2), _packet_sized_bdp,
    ),
    Case(
        "A.15", "Ten times the bandwidth", "4 Mbps, from 8 s on 40 Mbps",
        "the new rate is found within 10 s",
        lambda at: path(24, rate_mbps=4, rate_schedule=steps(8, "rate_mbps", 40)),
        lambda seen, at: _ten_times_the_rate(seen, 8.0),
    ),
    Case(
        "A.16", "A tenth of the bandwidth", "from 8 s on 2 Mbps, queue of 100 packets",
        "pacing falls at once, and the estimate to a tenth within 20 s, without further loss",
        lambda at: path(38, queue={"limit": 100}, rate_schedule=steps(8, "rate_mbps", 2)),
        lambda seen, at: _a_tenth_of_the_rate(seen, 8.0),
    ),
    Case(
        "A.17", "A policer", "a token bucket of 10 Mbps and 100 KB before the queue",
        "80% of the policer's rate with less than 5% loss after 40 s",
        lambda at: path(60, policer={"rate_mbps": 10, "burst_bytes": 100_000}), _policer,
    ),
    Case(
        "A.18", "Spurious fast recovery",
        "packets overtake those of PROBE_UP, because the one-way delay falls by 10 ms for good",
        "the window and the rate return",
        lambda at: path(8, delay_schedule=steps(at, "delay_ms", DELAY_MS - 10), reordering=True),
        _spurious_recovery, _in_up_s,
    ),
    Case(
        "A.19", "Spurious recovery from a timeout",
        "4 Mbps; in PROBE_UP the one-way delay rises by 300 ms for 150 ms, so that probes of the "
        "timeout overtake all packets in flight",
        "the window and the rate return",
        lambda at: path(8, rate_mbps=4, reordering=True,
                        delay_schedule=steps(at, "delay_ms", DELAY_MS + 300, DELAY_MS,
                                             every_s=0.15)),
        lambda seen, at: _spurious_recovery(seen, at, over_s=0.55), _in_up_s,
    ),
    Case(
        "A.20", "PROBE_RTT in STARTUP", "RTT 1 s, from 2.5 s on 1.1 s; queue of 10,000 packets",
        "PROBE_RTT comes during STARTUP, which goes on afterwards",
        lambda at: path(24, delay_ms=500, queue={"limit": 10_000},
                        delay_schedule=steps(2.5, "delay_ms", 600)),
        _probe_rtt_in_startup,
    ),
    Case(
        "A.21", "Loss in PROBE_UP after inflight_longterm is set",
        "a queue of 20 packets (0.2 BDP)",
        "PROBE_UP ends within a round of its first loss, and the window is lowered",
        lambda at: path(20, queue={"limit": 20}), _loss_in_up,
    ),
    Case(
        "A.22", "An application-limited PROBE_REFILL",
        "the application writes 16 Mbps and pauses for 50 ms when PROBE_REFILL begins",
        "the bandwidth is not lowered, and PROBE_UP follows",
        lambda at: path(8, {"kind": "on-off", "rate_mbps": 16, "on_s": at, "off_s": 0.05}),
        _pause_in_refill, _refill_s,
    ),
)  # fmt: skip
