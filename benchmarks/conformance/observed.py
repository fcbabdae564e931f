"""What an observer sees of one flow: the rows that every engine and every stack reports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from quicgym.envs.scenarios.model import Scenario
from quicgym.envs.simulation.run import Run

PACKET_BYTES = 1200
FRAMING = 1230 / PACKET_BYTES
"""Bytes on the wire for each byte of a full datagram."""


class Missed(Exception):
    """A case is not met; the text says what was seen instead."""


def require(met: bool, text: str) -> None:
    """Raises Missed with the text unless `met`."""
    if not met:
        raise Missed(text)


@dataclass(frozen=True)
class Spell:
    """Rows without interruption, from `first` to `last`, both inside."""

    first: int
    last: int


class Observed:
    """One flow's rows as arrays.

    Attributes:
        time: Time of each row, in s.
        gain: Pacing rate over the bandwidth that the flow can have, less a margin of 1%.
        window: Window over the BDP.
        in_flight: Data in flight over the BDP.
        rtt: Last RTT sample over the RTT without queue; NaN before the first.
        delivered, lost: Totals, in bytes.
        round_trip_s: The path's RTT without queue, in s, at the beginning.
        rate: The bandwidth, bytes of datagrams per second, at the beginning.
    """

    def __init__(self, run: Run, limit_mbps: float | None = None) -> None:
        """Reads the first flow's rows.

        Args:
            run: The run, with traces.
            limit_mbps: Rate at which the application writes, where that is below the bottleneck's.
        """
        link = run.scenario.bottleneck
        assert link is not None and link.rate_mbps is not None
        # Of a full datagram about 36 bytes are not the application's.
        own = link.rate_mbps / FRAMING if limit_mbps is None else limit_mbps * 1200 / 1164
        self.rate = own * 1e6 / 8
        self.round_trip_s = round_trip_s(run.scenario)
        bdp = self.rate * self.round_trip_s
        trace = run.trace(0)
        self.time = trace["time_s"].to_numpy()
        self.gain = trace["pacing_rate_mbps"].to_numpy() * 1e6 / 8 / (0.99 * self.rate)
        self.window_bytes = trace["window_bytes"].to_numpy()
        self.window = self.window_bytes / bdp
        self.in_flight = trace["in_flight_bytes"].to_numpy() / bdp
        self.rtt = trace["rtt_ms"].to_numpy() / 1e3 / self.round_trip_s
        self.delivered = trace["delivered_bytes"].to_numpy().astype(float)
        self.lost = trace["lost_bytes"].to_numpy().astype(float)
        self._in_flight_bytes = trace["in_flight_bytes"].to_numpy().astype(float)

    def row(self, time_s: float) -> int:
        """Returns the first row at or after a time, or the last row."""
        return min(int(np.searchsorted(self.time, time_s)), len(self.time) - 1)

    def startup_end(self) -> int:
        """Returns the first row after Startup, which paces at more than twice the bandwidth."""
        begin = self.row(4 * self.round_trip_s)
        fast = np.flatnonzero(self.gain[begin:] > 2.2)
        require(len(fast) > 0, "never paces at more than 2.2 times the bandwidth (STARTUP)")
        peak = begin + int(fast[0])
        slow = np.flatnonzero(self.gain[peak:] < 2)
        require(len(slow) > 0, "never leaves STARTUP")
        return peak + int(slow[0])

    def spells(self, gain: float, begin: int = 0, reach: float = 0.05) -> Sequence[Spell]:
        """Returns where the pacing gain is within `reach` of a gain, relatively, for two rows."""
        inside = np.abs(self.gain[begin:] / gain - 1) <= reach
        edges = np.flatnonzero(np.diff(np.concatenate(([0], inside.astype(np.int8), [0]))))
        pairs = zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True)
        return [Spell(begin + a, begin + b - 1) for a, b in pairs if b - a >= 2]

    def spell(self, name: str, gain: float, begin: int = 0, reach: float = 0.05) -> Spell:
        """Returns the first of `spells`; raises Missed, which names the phase, without one."""
        found = self.spells(gain, begin, reach)
        require(len(found) > 0, f"never paces at {gain:g} times the bandwidth ({name})")
        return found[0]

    def after(self, spell: Spell) -> int:
        """Returns the row after a spell; raises Missed where the run ends with it."""
        require(spell.last + 1 < len(self.time), "the run ended in the same state")
        return spell.last + 1

    def rounds(self, first: int, last: int) -> float:
        """Returns how many packet-timed rounds passed between two rows."""
        count, row = 0, first
        while row < last:
            end = self.delivered[row] + self._in_flight_bytes[row]
            following = int(np.searchsorted(self.delivered, end))
            if following > last:
                return count + (last - row) / (following - row)
            count, row = count + 1, max(following, row + 1)
        return count

    def used(self, from_s: float, until_s: float) -> float:
        """Returns the share of the bandwidth that was delivered between two times."""
        first, last = self.row(from_s), self.row(until_s)
        passed = (self.time[last] - self.time[first]) * self.rate
        return float(self.delivered[last] - self.delivered[first]) / passed

    def loss_rate(self, from_s: float, until_s: float) -> float:
        """Returns lost bytes over delivered and lost bytes between two times."""
        first, last = self.row(from_s), self.row(until_s)
        lost, delivered = (float(part[last] - part[first]) for part in (self.lost, self.delivered))
        return lost / max(lost + delivered, 1)

    def lowest_flights(self, from_s: float, limit: float) -> Sequence[Spell]:
        """Returns where at most `limit` BDPs are in flight for 150 ms or more, from a time on."""
        begin = self.row(from_s)
        low = self.in_flight[begin:] <= limit
        edges = np.flatnonzero(np.diff(np.concatenate(([0], low.astype(np.int8), [0]))))
        pairs = zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True)
        spells = [Spell(begin + a, begin + b - 1) for a, b in pairs]
        return [s for s in spells if self.time[s.last] - self.time[s.first] >= 0.15]


def round_trip_s(scenario: Scenario) -> float:
    """Returns the RTT without queue at the beginning, without access links, in s."""
    link, back = scenario.bottleneck, scenario.reverse
    assert link is not None
    return (link.delay_ms + (back or link).delay_ms) / 1e3
